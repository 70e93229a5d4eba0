// Fragments at size: bytes a row, build seconds, peak memory, batched probes a second.
//
// GREBE_BENCH_TINY=1 shrinks every case (ctest runs it so); GREBE_BENCH_LARGE=1 adds 100 M rows.
#include <benchmark/benchmark.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <thread>

#include "base/hash.h"
#include "base/rng.h"
#include "index/fragment.h"
#include "index/sorted_section.h"

namespace grebe::index {
namespace {

// An upload into a string.
class StringUpload final : public store::Upload {
 public:
  Status Append(std::string_view bytes) override {
    object.append(bytes);
    return Status::OK();
  }
  Result<store::Identity> Finish() override { return store::Identity{}; }
  std::string object;
};

struct Case {
  const char* name;
  bool word_keys;
  int64_t rows;
  int64_t rows_per_file;
  // The key id of a row.
  uint64_t (*id)(uint64_t row, uint64_t rows);
  // Words only: the word of an id.
  uint64_t (*word)(uint64_t id);
  bool sorted = false;   // with a sorted part
};

uint64_t Same(uint64_t id) { return id; }
uint64_t Scattered(uint64_t id) { return Mix64(id + 1); }
uint64_t Microseconds(uint64_t id) { return 1'700'000'000'000'000 + id * 1000; }
uint64_t Unique(uint64_t row, uint64_t) { return row; }
uint64_t TenRows(uint64_t row, uint64_t rows) { return Mix64(row) % (rows / 10 + 1); }
uint64_t Runs32(uint64_t row, uint64_t) { return row / 32; }

const Case kCases[] = {
    {"unique_16_bytes", false, 10'000'000, 100'000, Unique, nullptr},
    {"users_ten_rows", true, 16'000'000, 100'000, TenRows, Same},
    {"users_ten_rows_wide_ids", true, 16'000'000, 100'000, TenRows, Scattered},
    {"sorted_runs_of_32", true, 16'000'000, 100'000, Runs32, Same},
    {"sorted_runs_of_32_16_bytes", false, 16'000'000, 100'000, Runs32, nullptr},
    {"sorted_runs_of_32_wide_ids", true, 16'000'000, 100'000, Runs32, Scattered},
    {"unique_wide_ids", true, 16'000'000, 100'000, Unique, Scattered},
    {"ranges_in_time_order", true, 16'000'000, 100'000, Unique, Microseconds, true},
    {"ranges_users_ten_rows", true, 16'000'000, 100'000, TenRows, Same, true},
    {"ranges_users_ten_rows_wide_ids", true, 16'000'000, 100'000, TenRows, Scattered, true},
    {"ranges_unique_16_bytes", false, 10'000'000, 100'000, Unique, nullptr, true},
    {"large_users_ten_rows_wide_ids", true, 100'000'000, 500'000, TenRows, Scattered},
    {"large_unique_16_bytes", false, 100'000'000, 500'000, Unique, nullptr},
};

bool Tiny() { return std::getenv("GREBE_BENCH_TINY") != nullptr; }
int64_t RowsOf(const Case& spec) { return Tiny() ? spec.rows / 1000 : spec.rows; }

void AppendKey(const Case& spec, uint64_t id, key::EncodedKeys* keys) {
  if (spec.word_keys) {
    keys->words.push_back(spec.word(id));
    return;
  }
  const uint64_t parts[2] = {Mix64(2 * id + 1), Mix64(2 * id + 2)};
  keys->bytes.push_back(17);   // the canonical form: size + 1
  keys->bytes.append(reinterpret_cast<const char*>(parts), 16);
  keys->offsets.push_back(keys->bytes.size());
}

key::EncodedKeys NoKeys(const Case& spec) {
  key::EncodedKeys keys;
  keys.is_word = spec.word_keys;
  if (!spec.word_keys) keys.offsets.push_back(0);
  return keys;
}

// Peak resident memory since ResetPeak, in bytes.
void ResetPeak() { std::ofstream("/proc/self/clear_refs") << "5"; }
int64_t StatusBytes(const char* field) {
  std::ifstream status("/proc/self/status");
  std::string word;
  while (status >> word) {
    if (word != field) continue;
    int64_t kilobytes = 0;
    status >> kilobytes;
    return kilobytes << 10;
  }
  return 0;
}

Status AddFiles(const Case& spec, FragmentBuilder* builder, std::atomic<int64_t>* next_file) {
  const int64_t rows = RowsOf(spec);
  for (;;) {
    const int64_t begin = next_file->fetch_add(1) * spec.rows_per_file;
    if (begin >= rows) return Status::OK();
    FragmentFile file;
    file.path = "day=2026-01-" + std::to_string(begin) + "/part-0001.parquet";
    file.identity = {4'000'000, "1700000000000000000-123456"};
    file.row_count = std::min(spec.rows_per_file, rows - begin);
    ARROW_ASSIGN_OR_RAISE(const FileId id, builder->AddFile(file, ""));
    for (int64_t at = 0; at < file.row_count; at += 32768) {
      key::EncodedKeys keys = NoKeys(spec);
      const int64_t end = std::min(at + 32768, file.row_count);
      for (int64_t row = at; row < end; ++row) {
        AppendKey(spec, spec.id(static_cast<uint64_t>(begin + row), static_cast<uint64_t>(rows)),
                  &keys);
      }
      ARROW_RETURN_NOT_OK(builder->AddRows(id, RowIndex{at}, keys, nullptr));
    }
  }
}

Result<FragmentInfo> BuildFragment(const Case& spec, StringUpload* upload) {
  FragmentOptions options;
  options.word_keys = spec.word_keys;
  options.threads = 2;
  if (spec.sorted) {
    ARROW_ASSIGN_OR_RAISE(auto type, key::KeyType::Parse(spec.word_keys ? "int" : "binary"));
    options.sorted = {type};
  }
  ARROW_ASSIGN_OR_RAISE(auto builder, FragmentBuilder::Make(options));
  ARROW_RETURN_NOT_OK(builder->AddSchema("").status());
  std::atomic<int64_t> next_file{0};
  Status other;
  std::thread thread([&] { other = AddFiles(spec, builder.get(), &next_file); });
  const Status mine = AddFiles(spec, builder.get(), &next_file);
  thread.join();
  ARROW_RETURN_NOT_OK(mine);
  ARROW_RETURN_NOT_OK(other);
  return builder->Write(*upload);
}

struct Built {
  FragmentInfo info;
  std::string object;
  std::shared_ptr<const Fragment> fragment;
};

// The last fragment built, for its probes: one at a time, they are large.
std::map<const Case*, Built>& LastBuilt() {
  static auto* const built = new std::map<const Case*, Built>;
  return *built;
}

Status Ensure(const Case& spec, benchmark::State* state) {
  if (state == nullptr && LastBuilt().count(&spec) > 0) return Status::OK();
  LastBuilt().clear();
  ResetPeak();
  StringUpload upload;
  upload.object.reserve(static_cast<size_t>(RowsOf(spec)) * 9);
  const int64_t before = StatusBytes("VmRSS:");
  const auto start = std::chrono::steady_clock::now();
  ARROW_ASSIGN_OR_RAISE(const FragmentInfo info, BuildFragment(spec, &upload));
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  const int64_t peak = StatusBytes("VmHWM:") - before;
  Built built{info, std::move(upload.object), nullptr};
  ARROW_ASSIGN_OR_RAISE(built.fragment,
                        Fragment::Open(info, arrow::Buffer::FromString(built.object.substr(
                                                 static_cast<size_t>(info.head.begin)))));
  if (state != nullptr) {
    state->SetIterationTime(seconds.count());
    state->counters["bytes_a_row"] = static_cast<double>(info.size_bytes) /
                                     static_cast<double>(info.row_count);
    // The object itself is held in memory here; a real upload streams it.
    state->counters["peak_mb"] =
        static_cast<double>(peak - static_cast<int64_t>(built.object.size())) / 1e6;
    state->counters["keys"] = static_cast<double>(info.key_count);
    int64_t sorted_bytes = 0;
    for (const Fence& fence : spec.sorted ? built.fragment->sorted()->fences
                                          : std::vector<Fence>()) {
      sorted_bytes += fence.data.size_bytes() + fence.bytes.size_bytes();
    }
    state->counters["sorted_bytes_a_row"] =
        static_cast<double>(sorted_bytes) / static_cast<double>(info.row_count);
    state->counters["head_kb"] = static_cast<double>(info.head.size_bytes()) / 1e3;
  }
  LastBuilt().emplace(&spec, std::move(built));
  return Status::OK();
}

void BM_Build(benchmark::State& state, const Case* spec) {
  for (auto _ : state) {
    const Status status = Ensure(*spec, &state);
    if (!status.ok()) return state.SkipWithError(status.ToString().c_str());
  }
  state.SetItemsProcessed(state.iterations() * RowsOf(*spec));
}

// Present keys in random order, 4096 a call.
void BM_FindMany(benchmark::State& state, const Case* spec) {
  const Status ready = Ensure(*spec, nullptr);
  if (!ready.ok()) return state.SkipWithError(ready.ToString().c_str());
  const Built& built = LastBuilt().at(spec);
  const auto rows = static_cast<uint64_t>(RowsOf(*spec));
  Rng rng(5);
  std::vector<key::EncodedKeys> batches;
  for (int b = 0; b < 64; ++b) {
    batches.push_back(NoKeys(*spec));
    for (int i = 0; i < 4096; ++i) {
      AppendKey(*spec, spec->id(rng.Below(rows), rows), &batches.back());
    }
  }
  std::vector<Posting> postings;
  std::vector<uint64_t> ends;
  bool exact = false;
  size_t next = 0;
  int64_t found = 0, probes = 0;
  // The first use of a block checks it: do that once, outside the measure.
  for (const key::EncodedKeys& keys : batches) {
    const Status status =
        built.fragment->FindMany(keys, built.object, &postings, &ends, &exact);
    if (!status.ok()) return state.SkipWithError(status.ToString().c_str());
  }
  for (auto _ : state) {
    const key::EncodedKeys& keys = batches[next++ % batches.size()];
    const Status status =
        built.fragment->FindMany(keys, built.object, &postings, &ends, &exact);
    if (!status.ok()) return state.SkipWithError(status.ToString().c_str());
    probes += keys.count();
    found += static_cast<int64_t>(postings.size());
  }
  state.SetItemsProcessed(probes);
  state.counters["postings_a_key"] = static_cast<double>(found) / static_cast<double>(probes);
}

}  // namespace
}  // namespace grebe::index

int main(int argc, char** argv) {
  using namespace grebe::index;
  for (const Case& spec : kCases) {
    const bool large = std::string_view(spec.name).starts_with("large_");
    if (large && std::getenv("GREBE_BENCH_LARGE") == nullptr && !Tiny()) continue;
    benchmark::RegisterBenchmark((std::string("build/") + spec.name).c_str(), BM_Build, &spec)
        ->UseManualTime()
        ->Iterations(1)
        ->Unit(benchmark::kMillisecond);
    benchmark::RegisterBenchmark((std::string("find_many/") + spec.name).c_str(), BM_FindMany,
                                 &spec)
        ->Unit(benchmark::kMicrosecond);
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}

// What a lookup's probe costs with 1, 10, 100 and 1,000 fragments, on local disk.
//
// Each index has the same rows in all (kRows; tiny inside ctest) with keys drawn at random from
// one range, so that every fragment could have every key: the worst case for many fragments.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "base/rng.h"
#include "index/index_view.h"
#include "testing/test_index.h"
#include "store/local_store.h"

namespace grebe::index {
namespace {

using testing::TestFile;
using testing::TestIndex;

bool Tiny() { return std::getenv("GREBE_BENCH_TINY") != nullptr; }
int64_t Rows() { return Tiny() ? 20000 : 8000000; }
int64_t KeyRange() { return Rows() / 8; }

struct Built {
  std::string path;
  std::unique_ptr<TestIndex> index;
  ~Built() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
};

const TestIndex& IndexOf(int64_t fragments) {
  if (Tiny()) fragments = std::min<int64_t>(fragments, 20);   // each costs syncs
  static std::map<int64_t, Built> built;
  Built& slot = built[fragments];
  if (slot.index != nullptr) return *slot.index;
  std::string text = (std::filesystem::temp_directory_path() / "grebe-bench-XXXXXX").string();
  slot.path = ::mkdtemp(text.data());
  slot.index = std::make_unique<TestIndex>(
      store::Location{store::MakeLocalStore(), slot.path}, testing::TestOptions{});
  Rng rng(7);
  const int64_t rows = Rows() / fragments;
  for (int64_t f = 0; f < fragments; ++f) {
    TestFile file{"part-" + std::to_string(f) + ".parquet", {}};
    for (int64_t row = 0; row < rows; ++row) {
      file.keys.push_back(static_cast<int64_t>(rng.Below(static_cast<uint64_t>(KeyRange()))));
    }
    const Status added = slot.index->AddFragment({file});
    if (!added.ok()) std::abort();
  }
  return *slot.index;
}

void Find(benchmark::State& state, int64_t filter_bytes_max) {
  const TestIndex& index = IndexOf(state.range(0));
  const int64_t key_count = state.range(1);
  ViewOptions options;
  options.filter_bytes_max = filter_bytes_max;
  const auto view = index.Open(options).ValueOrDie();
  Rng rng(11);
  ProbeCounters counters;
  const auto find = [&] {
    std::vector<int64_t> keys;
    for (int64_t i = 0; i < key_count; ++i) {
      keys.push_back(static_cast<int64_t>(rng.Below(static_cast<uint64_t>(KeyRange()))));
    }
    const key::EncodedKeys encoded = index.Encode(keys);
    auto found = view->Find(encoded, {}, &counters);
    if (!found.ok()) state.SkipWithError(found.status().ToString().c_str());
    benchmark::DoNotOptimize(found);
  };
  // Until pages are faulted in and filters are built.
  for (int i = 0; i < (Tiny() ? 10 : 3000); ++i) find();
  counters = {};
  for (auto _ : state) find();
  const auto per_key = [&](int64_t value) {
    return static_cast<double>(value) /
           static_cast<double>(state.iterations() * key_count);
  };
  state.counters["fragments_probed"] = per_key(counters.fragments_probed);
  state.counters["runs"] = per_key(counters.postings);
  state.SetItemsProcessed(state.iterations() * key_count);
}

void BM_Find(benchmark::State& state) { Find(state, ViewOptions{}.filter_bytes_max); }
void BM_FindWithoutFilter(benchmark::State& state) { Find(state, 0); }
BENCHMARK(BM_Find)->ArgsProduct({{1, 10, 100, 1000}, {1, 100}})->ArgNames({"fragments", "keys"});
BENCHMARK(BM_FindWithoutFilter)
    ->ArgsProduct({{1, 10, 100, 1000}, {1, 100}})
    ->ArgNames({"fragments", "keys"});

void BM_Open(benchmark::State& state) {
  const TestIndex& index = IndexOf(state.range(0));
  for (auto _ : state) benchmark::DoNotOptimize(index.Open().ValueOrDie());
}
BENCHMARK(BM_Open)->ArgNames({"fragments"})->Arg(1)->Arg(10)->Arg(100)->Arg(1000)->Unit(
    benchmark::kMicrosecond);

// One fragment of many files: the file list is most of what opening costs.
void BM_OpenFiles(benchmark::State& state) {
  std::string text = (std::filesystem::temp_directory_path() / "grebe-bench-XXXXXX").string();
  Built built;
  built.path = ::mkdtemp(text.data());
  TestIndex index(store::Location{store::MakeLocalStore(), built.path}, {});
  if (!index.AddFragment(testing::RandomFiles(1, 0, static_cast<int>(state.range(0)), 100, 1000))
           .ok()) {
    std::abort();
  }
  for (auto _ : state) benchmark::DoNotOptimize(index.Open().ValueOrDie());
}
BENCHMARK(BM_OpenFiles)->ArgNames({"files"})->Arg(16)->Arg(160)->Arg(1600)->Unit(
    benchmark::kMicrosecond);

}  // namespace
}  // namespace grebe::index

BENCHMARK_MAIN();

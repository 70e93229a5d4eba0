// grebe bench lookup: one process, one lookup after another.
#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/number_option.h"
#include "grebe/lookup.h"

namespace grebe::cli {
namespace {

struct BenchFlags {
  std::string keys_from;
  std::string columns;
  int64_t warmup = 0;
  int64_t rounds = 1;
  bool no_coalesce = false;
  OpenOptions open;
};

double Percentile(const std::vector<double>& sorted, double share) {
  if (sorted.empty()) return 0;
  const size_t at = static_cast<size_t>(share * static_cast<double>(sorted.size() - 1) + 0.5);
  return sorted[at];
}

arrow::Status RunBench(const Common& common, const BenchFlags& flags) {
  ARROW_ASSIGN_OR_RAISE(auto index, Index::Open(common.ref, flags.open));
  ARROW_ASSIGN_OR_RAISE(const std::string text, ReadInput(flags.keys_from));
  ARROW_ASSIGN_OR_RAISE(auto keys, index->ParseKeys(text));
  if (keys->num_rows() == 0) return arrow::Status::Invalid("no keys path=", flags.keys_from);
  GetOptions options;
  ARROW_ASSIGN_OR_RAISE(options.columns, SplitColumns(flags.columns));
  options.coalesce = !flags.no_coalesce;

  std::vector<double> times_us;
  int64_t rows = 0, waves_max = 0, requests = 0, bytes = 0, pages = 0, cache_hits = 0;
  const int64_t total = flags.warmup + keys->num_rows() * flags.rounds;
  for (int64_t i = 0; i < total; ++i) {
    ARROW_RETURN_NOT_OK(Interrupt().Check());
    const auto key = keys->Slice(i % keys->num_rows(), 1);
    const auto start = std::chrono::steady_clock::now();
    ARROW_ASSIGN_OR_RAISE(GetResult result, index->Get(*key, options));
    const auto end = std::chrono::steady_clock::now();
    if (i < flags.warmup) continue;
    times_us.push_back(std::chrono::duration<double, std::micro>(end - start).count());
    rows += result.rows->num_rows();
    waves_max = std::max(waves_max, result.explain.waves);
    requests += result.explain.requests;
    bytes += result.explain.bytes_read;
    pages += result.explain.pages;
    cache_hits += result.explain.cache_hits;
  }
  std::vector<double> sorted = times_us;
  std::sort(sorted.begin(), sorted.end());
  double sum = 0;
  for (double time : times_us) sum += time;
  const double count = static_cast<double>(times_us.size());
  nlohmann::ordered_json json = {{"lookups", times_us.size()},
                                 {"rows", rows},
                                 {"p50_us", Percentile(sorted, 0.50)},
                                 {"p99_us", Percentile(sorted, 0.99)},
                                 {"mean_us", sum / count},
                                 {"min_us", sorted.front()},
                                 {"max_us", sorted.back()},
                                 {"waves_max", waves_max},
                                 {"requests_mean", static_cast<double>(requests) / count},
                                 {"bytes_mean", static_cast<double>(bytes) / count},
                                 {"pages_mean", static_cast<double>(pages) / count},
                                 {"cache_hits_mean", static_cast<double>(cache_hits) / count}};
  return WriteOutput(common, json.dump() + "\n");
}

}  // namespace

void AddBenchCommands(CLI::App* app, Common* common) {
  static BenchFlags flags;
  CLI::App* bench = app->add_subcommand("bench", "Measure lookups");
  bench->require_subcommand(1);
  CLI::App* lookup = bench->add_subcommand("lookup", "Time lookups, one key after another (JSON)");
  AddTableOptions(lookup, common);
  lookup->add_option("--keys-from", flags.keys_from, "JSON lines or CSV with a header (-: stdin)")
      ->required();
  lookup->add_option("--columns", flags.columns, "Columns to return (default: all)");
  lookup->add_option("--warmup", flags.warmup, "Lookups not counted, first")
      ->capture_default_str()->check(AtLeast(0));
  lookup->add_option("--rounds", flags.rounds, "Times to go through the keys")
      ->capture_default_str()->check(AtLeast(1));
  lookup->add_flag("--no-coalesce", flags.no_coalesce, "One request a page");
  auto& cache = flags.open.cache;
  lookup->add_option("--block-cache", cache.block_bytes_max, "Bytes (-1: 1/16 of memory)")
      ->capture_default_str()->transform(Size(-1));
  lookup->add_option("--dictionary-cache", cache.dictionary_bytes_max, "Bytes (-1: 1/8 of memory)")
      ->capture_default_str()->transform(Size(-1));
  lookup->add_option("--page-cache", cache.page_bytes_max, "Bytes (-1: 1/16 of memory)")
      ->capture_default_str()->transform(Size(-1));
  OnCommand(lookup, common, [=] { return RunBench(*common, flags); });
}

}  // namespace grebe::cli

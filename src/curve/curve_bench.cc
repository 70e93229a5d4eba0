// Cost of curve keys, rank ids and bucket hashes, per row.
#include <benchmark/benchmark.h>

#include <random>

#include "curve/bucket_hash.h"
#include "curve/curve.h"
#include "curve/rank.h"

namespace grebe::curve {
namespace {

constexpr size_t kRows = 1 << 16;

std::vector<std::vector<uint32_t>> RandomIds(int columns) {
  std::mt19937_64 random(1);
  std::vector<std::vector<uint32_t>> ids(columns, std::vector<uint32_t>(kRows));
  for (auto& column : ids) {
    for (uint32_t& id : column) id = static_cast<uint32_t>(random());
  }
  return ids;
}

void Keys(benchmark::State& state, CurveKind kind, int columns, int bits, Kernels kernels) {
  const auto ids = RandomIds(columns);
  std::vector<const uint32_t*> arrays;
  for (const auto& column : ids) arrays.push_back(column.data());
  const Curve curve(kind, std::vector<int>(columns, bits), kernels);
  std::vector<uint64_t> keys(kRows);
  std::vector<uint8_t> bytes(kRows * curve.key_bytes());
  for (auto _ : state) {
    if (curve.key_bits() <= 64) {
      curve.Keys64(arrays, kRows, keys.data());
    } else {
      curve.Keys(arrays, kRows, bytes.data());
    }
    benchmark::DoNotOptimize(keys.data());
    benchmark::DoNotOptimize(bytes.data());
  }
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations() * kRows));
}

void RankIds(benchmark::State& state) {
  std::mt19937_64 random(2);
  std::vector<uint64_t> sample(100'000), values(kRows);
  for (uint64_t& value : sample) value = random();
  for (uint64_t& value : values) value = random();
  const Ranks64 ranks(sample, {.buckets = static_cast<uint32_t>(state.range(0))});
  std::vector<uint32_t> ids(kRows);
  for (auto _ : state) {
    ranks.Ids(values.data(), kRows, ids.data());
    benchmark::DoNotOptimize(ids.data());
  }
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations() * kRows));
}

void RankIdsOfUrls(benchmark::State& state) {
  std::mt19937_64 random(3);
  std::vector<std::string> texts(kRows);
  for (std::string& text : texts) text = "https://example.com/item/" + std::to_string(random());
  const std::vector<std::string_view> values(texts.begin(), texts.end());
  const RanksOfStrings ranks(values, {.buckets = static_cast<uint32_t>(state.range(0))});
  std::vector<uint32_t> ids(kRows);
  for (auto _ : state) {
    ranks.Ids(values.data(), kRows, ids.data());
    benchmark::DoNotOptimize(ids.data());
  }
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations() * kRows));
}

void IcebergLongs(benchmark::State& state) {
  std::vector<int32_t> hashes(kRows);
  for (auto _ : state) {
    for (size_t i = 0; i < kRows; ++i) hashes[i] = IcebergHash::Long(static_cast<int64_t>(i));
    benchmark::DoNotOptimize(hashes.data());
  }
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations() * kRows));
}

#define CURVE_BENCH(name, ...)                                                    \
  BENCHMARK_CAPTURE(Keys, name, __VA_ARGS__, Kernels::kBest);                     \
  BENCHMARK_CAPTURE(Keys, name##_portable, __VA_ARGS__, Kernels::kPortable)

CURVE_BENCH(zorder_2x16, CurveKind::kZOrder, 2, 16);
CURVE_BENCH(zorder_2x32, CurveKind::kZOrder, 2, 32);
CURVE_BENCH(zorder_4x16, CurveKind::kZOrder, 4, 16);
CURVE_BENCH(zorder_4x32, CurveKind::kZOrder, 4, 32);
CURVE_BENCH(hilbert_2x16, CurveKind::kHilbert, 2, 16);
CURVE_BENCH(hilbert_3x16, CurveKind::kHilbert, 3, 16);
CURVE_BENCH(hilbert_4x16, CurveKind::kHilbert, 4, 16);
CURVE_BENCH(hilbert_4x32, CurveKind::kHilbert, 4, 32);
BENCHMARK(RankIds)->Arg(256)->Arg(1024)->Arg(65536);
BENCHMARK(RankIdsOfUrls)->Arg(1024);
BENCHMARK(IcebergLongs);

}  // namespace
}  // namespace grebe::curve

BENCHMARK_MAIN();

// Row -> page through a packed page map, maps loaded: the goal is 100 ns.
#include <benchmark/benchmark.h>

#include "base/rng.h"
#include "parquet/page_map.h"

namespace grebe::pq {
namespace {

std::shared_ptr<const PageMap> MapOfPages(int64_t pages, int row_groups, int leaves) {
  Rng rng(1);
  FilePages file;
  int64_t at = 4;
  for (int group = 0; group < row_groups; ++group) {
    RowGroupPages out;
    for (int leaf = 0; leaf < leaves; ++leaf) {
      ChunkPages chunk;
      int64_t row = 0;
      for (int64_t i = 0; i < pages; ++i) {
        const auto size = static_cast<int64_t>(30000 + rng.Below(3000));
        const int64_t rows = 9000 + (leaf == 0 ? static_cast<int64_t>(rng.Below(10)) : 5);
        chunk.pages.push_back({{at, at + size}, {row, row + rows}});
        at += size;
        row += rows;
      }
      out.row_count = leaf == 0 ? row : out.row_count;
      chunk.pages.back().rows.end = out.row_count;
      chunk.info.value_count = out.row_count;
      out.chunks.push_back(std::move(chunk));
    }
    file.row_groups.push_back(std::move(out));
  }
  auto packed = PackPageMap(file);
  return *PageMap::Open(arrow::Buffer::FromString(*packed));
}

void BM_FindPage(benchmark::State& state) {
  const auto map = MapOfPages(state.range(0), 4, 8);
  Rng rng(2);
  for (auto _ : state) {
    const RowIndex row{static_cast<int64_t>(rng.Below(static_cast<uint64_t>(map->row_count())))};
    const int group = map->FindRowGroup(row);
    const int64_t in_group = row.value - map->row_group_rows(group).begin;
    const auto span = map->FindPages(group, 3, {in_group, in_group + 1});
    benchmark::DoNotOptimize(span);
  }
  state.counters["bytes_per_page"] =
      static_cast<double>(map->memory_bytes()) / static_cast<double>(state.range(0) * 4 * 8);
}
BENCHMARK(BM_FindPage)->Arg(1)->Arg(10)->Arg(100)->Arg(1000)->Arg(10000);

void BM_FindAndReadPage(benchmark::State& state) {
  const auto map = MapOfPages(state.range(0), 4, 8);
  Rng rng(2);
  for (auto _ : state) {
    const RowIndex row{static_cast<int64_t>(rng.Below(static_cast<uint64_t>(map->row_count())))};
    const int group = map->FindRowGroup(row);
    const int64_t in_group = row.value - map->row_group_rows(group).begin;
    const auto span = map->FindPages(group, 3, {in_group, in_group + 1});
    benchmark::DoNotOptimize(map->page(group, 3, span->first));
  }
}
BENCHMARK(BM_FindAndReadPage)->Arg(1)->Arg(100)->Arg(1000);

void BM_Open(benchmark::State& state) {
  FilePages file;
  RowGroupPages group{100, {}};
  group.chunks.assign(static_cast<size_t>(state.range(0)), {{}, {{{4, 100}, {0, 100}}}});
  for (auto& chunk : group.chunks) chunk.info.value_count = 100;
  file.row_groups.push_back(std::move(group));
  const auto packed = arrow::Buffer::FromString(*PackPageMap(file));
  for (auto _ : state) benchmark::DoNotOptimize(PageMap::Open(packed));
}
BENCHMARK(BM_Open)->Arg(8)->Arg(1000);

}  // namespace
}  // namespace grebe::pq

BENCHMARK_MAIN();

// What decoding costs beyond decompression. The files lie in memory: no reads are timed.
//
//   Lookup/plain     one row from each of 10 files x 8 columns, pages as pyarrow writes them
//                    (20,000 rows, dictionaries), dictionaries cached
//   Lookup/small     10 neighbouring rows of 1 file x 8 columns, 8 KiB pages, no dictionaries
//   Floor/...        only the decompression (ZSTD, reused context) of the same pages
//   Assemble         10 slices x 8 flat columns
//   Column/...       one row of one page of a string column, plain and dictionary-encoded

#include <arrow/api.h>
#include <benchmark/benchmark.h>
#include <zstd.h>

#include <cstdlib>
#include <map>

#include "parquet/page_header.h"
#include "parquet/row_decode_test_util.h"

namespace grebe::pq {
namespace {

using testing::FileOptions;
using testing::Subject;
using Slice = std::shared_ptr<const LeafSlice>;

bool Tiny() { return std::getenv("GREBE_BENCH_TINY") != nullptr; }

template <class T>
T OrDie(Result<T> result) {
  if (!result.ok()) {
    std::fprintf(stderr, "%s\n", result.status().ToString().c_str());
    std::exit(1);
  }
  return std::move(result).ValueUnsafe();
}

template <class Builder, class Make>
std::shared_ptr<arrow::Array> ArrayOf(int64_t rows, Builder builder, Make make) {
  for (int64_t i = 0; i < rows; ++i) {
    if (!builder.Append(make(i)).ok()) std::exit(1);
  }
  return OrDie(builder.Finish());
}

// Play events: the columns of the lake in NUMBERS.md.
std::shared_ptr<arrow::Table> Events(int64_t rows, uint64_t seed) {
  Rng rng(seed);
  static const char* kDevices[] = {"phone", "tablet", "desktop", "tv", "car", "watch"};
  const auto words = [&](int count) {
    std::string text;
    for (int i = 0; i < count; ++i) text += "w" + std::to_string(rng.Below(5000)) + "-";
    return text;
  };
  const auto ts = arrow::timestamp(arrow::TimeUnit::MICRO);
  const auto schema = arrow::schema(
      {arrow::field("user_id", arrow::int64()), arrow::field("ts", ts),
       arrow::field("track", arrow::utf8()), arrow::field("session", arrow::utf8()),
       arrow::field("ms", arrow::int32()), arrow::field("device", arrow::utf8()),
       arrow::field("score", arrow::float64()), arrow::field("skipped", arrow::boolean())});
  arrow::ArrayVector columns{
      ArrayOf(rows, arrow::Int64Builder(), [&](int64_t) { return int64_t(rng.Below(1600000)); }),
      ArrayOf(rows, arrow::TimestampBuilder(ts, arrow::default_memory_pool()),
              [&](int64_t i) { return 1700000000000000 + i * 7919 + int64_t(rng.Below(5000)); }),
      ArrayOf(rows, arrow::StringBuilder(), [&](int64_t) { return words(6); }),
      ArrayOf(rows, arrow::StringBuilder(), [&](int64_t) { return words(8); }),
      ArrayOf(rows, arrow::Int32Builder(), [&](int64_t) { return int32_t(rng.Below(300000)); }),
      ArrayOf(rows, arrow::StringBuilder(), [&](int64_t) { return kDevices[rng.Below(6)]; }),
      ArrayOf(rows, arrow::DoubleBuilder(), [&](int64_t) { return rng.Fraction(); }),
      ArrayOf(rows, arrow::BooleanBuilder(), [&](int64_t) { return rng.Chance(0.3); })};
  return arrow::Table::Make(schema, columns, rows);
}

struct BenchFile {
  Subject subject;
  std::shared_ptr<arrow::Buffer> bytes;
};

BenchFile MakeFile(const arrow::Table& table, FileOptions options) {
  options.properties.compression(arrow::Compression::ZSTD)->enable_write_page_index();
  std::string bytes = OrDie(testing::WriteFile(table, &options));
  BenchFile file;
  file.bytes = arrow::Buffer::FromString(bytes);
  file.subject = OrDie(Subject::Open(std::move(bytes)));
  return file;
}

const std::vector<BenchFile>& PlainFiles() {
  static const std::vector<BenchFile> files = [] {
    std::vector<BenchFile> made;
    for (int i = 0; i < (Tiny() ? 2 : 10); ++i) {
      made.push_back(MakeFile(*Events(Tiny() ? 2000 : 100000, 7 + i), FileOptions()));
    }
    return made;
  }();
  return files;
}

const std::vector<BenchFile>& SmallPageFiles() {
  static const std::vector<BenchFile> files = [] {
    FileOptions options;
    options.properties.disable_dictionary()->data_pagesize(8 << 10)->write_batch_size(64);
    std::vector<BenchFile> made;
    made.push_back(MakeFile(*Events(Tiny() ? 2000 : 100000, 99), std::move(options)));
    return made;
  }();
  return files;
}

ChunkBytes BytesOf(const BenchFile& file, const ChunkRead& read) {
  const auto slice = [&](ByteRange range) {
    return arrow::SliceBuffer(file.bytes, range.begin, range.size_bytes());
  };
  ChunkBytes bytes;
  for (size_t i = 0; i < read.pages.size(); ++i) {
    bytes.pages.push_back(read.page_needed[i] ? slice(read.pages[i].bytes) : nullptr);
  }
  if (read.dictionary_needed) bytes.dictionary = slice(*read.info.dictionary);
  return bytes;
}

// One lookup: `rows_each` neighbouring rows of every file, all columns.
struct Lookup {
  const std::vector<BenchFile>& files;
  const Projection& projection;
  int64_t rows_each;
  DecodeOptions options;
  int64_t pages = 0;

  std::vector<std::vector<Slice>> Decode(Rng* rng) {
    std::vector<std::vector<Slice>> slices(projection.leaves.size());
    for (size_t f = 0; f < files.size(); ++f) {
      const Subject& subject = files[f].subject;
      const int64_t row = int64_t(rng->Below(
          static_cast<uint64_t>(subject.map->row_group_rows(0).row_count() - rows_each)));
      const RowRange range{row, row + rows_each};
      for (size_t leaf = 0; leaf < projection.leaves.size(); ++leaf) {
        const ChunkRead read =
            OrDie(PlanChunk(*subject.map, f + 1, 0, projection.leaves[leaf], {&range, 1},
                            options.cache));
        pages += int64_t(read.pages.size());
        slices[leaf].push_back(OrDie(
            DecodeChunk(*subject.schema, read, BytesOf(files[f], read), options)));
      }
    }
    return slices;
  }

  std::shared_ptr<arrow::RecordBatch> Run(Rng* rng) {
    return OrDie(Assemble(*files[0].subject.schema, projection, Decode(rng)));
  }
};

void RunLookups(benchmark::State& state, const std::vector<BenchFile>& files, int64_t rows_each,
                int64_t dictionary_bytes, int64_t page_bytes) {
  DecodeCache cache(dictionary_bytes, page_bytes);
  const Projection projection = OrDie(files[0].subject.schema->Project({}));
  Lookup lookup{files, projection, rows_each, {}};
  if (dictionary_bytes + page_bytes > 0) lookup.options.cache = &cache;
  Rng rng(1);
  for (int i = 0; i < 3; ++i) lookup.Run(&rng);
  lookup.pages = 0;
  for (auto _ : state) benchmark::DoNotOptimize(lookup.Run(&rng));
  state.counters["pages"] =
      benchmark::Counter(double(lookup.pages), benchmark::Counter::kAvgIterations);
}

// Decompresses the pages that the same lookups would read.
void RunFloor(benchmark::State& state, const std::vector<BenchFile>& files, int64_t rows_each) {
  ZSTD_DCtx* context = ZSTD_createDCtx();
  std::vector<uint8_t> out(8 << 20);
  Rng rng(1);
  int64_t bytes = 0;
  for (auto _ : state) {
    for (const BenchFile& file : files) {
      const PageMap& map = *file.subject.map;
      const int64_t row = int64_t(
          rng.Below(static_cast<uint64_t>(map.row_group_rows(0).row_count() - rows_each)));
      for (int leaf = 0; leaf < map.leaf_count(); ++leaf) {
        const auto span = OrDie(map.FindPages(0, leaf, {row, row + rows_each}));
        for (int page = span.first; page < span.last; ++page) {
          const ByteRange at = OrDie(map.page(0, leaf, page)).bytes;
          const std::span<const uint8_t> stored(file.bytes->data() + at.begin,
                                                static_cast<size_t>(at.size_bytes()));
          const auto header = *OrDie(ParsePageHeader(stored, {at.size_bytes(), -1}, {}));
          bytes += header.uncompressed_bytes;
          benchmark::DoNotOptimize(ZSTD_decompressDCtx(
              context, out.data(), out.size(), stored.data() + header.header_bytes,
              static_cast<size_t>(header.compressed_bytes)));
        }
      }
    }
  }
  state.counters["bytes"] = benchmark::Counter(double(bytes), benchmark::Counter::kAvgIterations);
  ZSTD_freeDCtx(context);
}

void LookupPlain(benchmark::State& state) { RunLookups(state, PlainFiles(), 1, 1 << 30, 0); }
void LookupPlainColdDictionaries(benchmark::State& state) {
  RunLookups(state, PlainFiles(), 1, 0, 0);
}
void LookupPlainCachedPages(benchmark::State& state) {
  RunLookups(state, PlainFiles(), 1, 1 << 30, 1 << 30);
}
void LookupSmall(benchmark::State& state) { RunLookups(state, SmallPageFiles(), 10, 0, 0); }
void LookupSmallCachedPages(benchmark::State& state) {
  RunLookups(state, SmallPageFiles(), 10, 0, 1 << 30);
}
void FloorPlain(benchmark::State& state) { RunFloor(state, PlainFiles(), 1); }
void FloorSmall(benchmark::State& state) { RunFloor(state, SmallPageFiles(), 10); }
BENCHMARK(FloorPlain)->Unit(benchmark::kMicrosecond);
BENCHMARK(LookupPlain)->Unit(benchmark::kMicrosecond);
BENCHMARK(LookupPlainColdDictionaries)->Unit(benchmark::kMicrosecond);
BENCHMARK(LookupPlainCachedPages)->Unit(benchmark::kMicrosecond);
BENCHMARK(FloorSmall)->Unit(benchmark::kMicrosecond);
BENCHMARK(LookupSmall)->Unit(benchmark::kMicrosecond);
BENCHMARK(LookupSmallCachedPages)->Unit(benchmark::kMicrosecond);

void AssembleFlat(benchmark::State& state) {
  const std::vector<BenchFile>& files = PlainFiles();
  const Projection projection = OrDie(files[0].subject.schema->Project({}));
  Rng rng(1);
  Lookup lookup{files, projection, 1, {}};
  const auto slices = lookup.Decode(&rng);
  for (auto _ : state) {
    benchmark::DoNotOptimize(OrDie(Assemble(*files[0].subject.schema, projection, slices)));
  }
}
BENCHMARK(AssembleFlat)->Unit(benchmark::kMicrosecond);

// Rows of one string column, uncompressed pages: the cost of the encoding alone.
void RunColumn(benchmark::State& state, bool dictionary) {
  static std::map<bool, BenchFile> files;
  if (!files.contains(dictionary)) {
    Rng rng(3);
    const int64_t rows = Tiny() ? 2000 : 100000;
    auto column = ArrayOf(rows, arrow::StringBuilder(), [&](int64_t) {
      return "value-number-" + std::to_string(rng.Below(8000));
    });
    const auto table = arrow::Table::Make(
        arrow::schema({arrow::field("s", arrow::utf8())}), {column}, rows);
    FileOptions options;
    if (!dictionary) options.properties.disable_dictionary();
    files.emplace(dictionary, MakeFile(*table, std::move(options)));
  }
  const BenchFile& file = files.at(dictionary);
  DecodeCache cache(1 << 30, 1 << 30);
  const Projection projection = OrDie(file.subject.schema->Project({}));
  std::vector<BenchFile> one{file};
  Lookup lookup{one, projection, 1, {}};
  lookup.options.cache = &cache;
  Rng rng(1);
  for (int i = 0; i < 500; ++i) lookup.Run(&rng);
  for (auto _ : state) benchmark::DoNotOptimize(lookup.Run(&rng));
}
void ColumnPlain(benchmark::State& state) { RunColumn(state, false); }
void ColumnDictionary(benchmark::State& state) { RunColumn(state, true); }
BENCHMARK(ColumnPlain)->Unit(benchmark::kMicrosecond);
BENCHMARK(ColumnDictionary)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace grebe::pq

BENCHMARK_MAIN();

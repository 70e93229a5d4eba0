// What building an index asks of one file: footer, pages, the key column. Beside it, the floor:
// libparquet decoding the same column of the same bytes.
#include <arrow/api.h>
#include <arrow/io/memory.h>
#include <benchmark/benchmark.h>
#include <parquet/arrow/reader.h>
#include <parquet/arrow/writer.h>

#include <cstdlib>

#include "base/rng.h"
#include "parquet/footer.h"
#include "store/memory_store.h"

namespace grebe::pq {
namespace {

int64_t Rows() { return std::getenv("GREBE_BENCH_TINY") != nullptr ? 2000 : 1000000; }

// Eight columns of numbers; the first is the key.
std::shared_ptr<arrow::Buffer> MakeFile(bool page_index) {
  Rng rng(1);
  arrow::FieldVector fields;
  arrow::ArrayVector columns;
  for (int column = 0; column < 8; ++column) {
    arrow::Int64Builder builder;
    for (int64_t i = 0; i < Rows(); ++i) {
      if (!builder.Append(static_cast<int64_t>(rng.Below(2000000))).ok()) std::abort();
    }
    fields.push_back(arrow::field("c" + std::to_string(column), arrow::int64()));
    columns.push_back(*builder.Finish());
  }
  const auto table = arrow::Table::Make(arrow::schema(fields), columns);
  ::parquet::WriterProperties::Builder properties;
  properties.compression(::parquet::Compression::ZSTD);
  page_index ? properties.enable_write_page_index() : properties.disable_write_page_index();
  auto out = *arrow::io::BufferOutputStream::Create();
  if (!::parquet::arrow::WriteTable(*table, arrow::default_memory_pool(), out, 100000,
                                    properties.build()).ok()) {
    std::abort();
  }
  return *out->Finish();
}

struct File {
  explicit File(bool page_index) : bytes(MakeFile(page_index)) {
    const auto identity = store->Put("f", std::string_view(*bytes), store::PutMode::kOverwrite);
    object = std::make_shared<const store::Object>(store::Object{"f", *identity});
  }
  std::shared_ptr<arrow::Buffer> bytes;
  std::shared_ptr<store::Store> store = store::MakeMemoryStore();
  std::shared_ptr<const store::Object> object;
};

File& TheFile(bool page_index) {
  static File with(true);
  static File without(false);
  return page_index ? with : without;
}

void BM_ReadFooter(benchmark::State& state) {
  File& file = TheFile(true);
  for (auto _ : state) benchmark::DoNotOptimize(Footer::Read(*file.store, file.object));
}
BENCHMARK(BM_ReadFooter)->Unit(benchmark::kMicrosecond);

void BM_FindPages(benchmark::State& state) {
  File& file = TheFile(state.range(0) != 0);
  const auto footer = *Footer::Read(*file.store, file.object);
  for (auto _ : state) benchmark::DoNotOptimize(FindPages(*file.store, *footer));
}
BENCHMARK(BM_FindPages)->ArgName("page_index")->Arg(1)->Arg(0)->Unit(benchmark::kMicrosecond);

void BM_PackPageMap(benchmark::State& state) {
  File& file = TheFile(true);
  const auto pages = *FindPages(*file.store, **Footer::Read(*file.store, file.object));
  for (auto _ : state) benchmark::DoNotOptimize(PackPageMap(pages));
}
BENCHMARK(BM_PackPageMap)->Unit(benchmark::kMicrosecond);

void BM_ScanKey(benchmark::State& state) {
  File& file = TheFile(true);
  const auto footer = *Footer::Read(*file.store, file.object);
  for (auto _ : state) {
    int64_t rows = 0;
    const auto status = ScanColumns(*file.store, *footer, {0}, {}, [&](const auto& batch, auto) {
      rows += batch->num_rows();
      return Status::OK();
    });
    if (!status.ok() || rows != Rows()) state.SkipWithError("scan failed");
  }
  state.SetItemsProcessed(state.iterations() * Rows());
}
BENCHMARK(BM_ScanKey)->Unit(benchmark::kMillisecond);

void BM_LibraryDecodesKey(benchmark::State& state) {
  File& file = TheFile(true);
  for (auto _ : state) {
    auto reader = *::parquet::arrow::OpenFile(
        std::make_shared<arrow::io::BufferReader>(file.bytes), arrow::default_memory_pool());
    std::shared_ptr<arrow::ChunkedArray> column;
    if (!reader->ReadColumn(0, &column).ok()) state.SkipWithError("read failed");
    benchmark::DoNotOptimize(column);
  }
  state.SetItemsProcessed(state.iterations() * Rows());
}
BENCHMARK(BM_LibraryDecodesKey)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace grebe::pq

BENCHMARK_MAIN();

#include "testing/table_builder.h"

#include <arrow/array/builder_binary.h>
#include <arrow/array/builder_nested.h>
#include <arrow/array/builder_primitive.h>
#include <arrow/compute/api_vector.h>
#include <arrow/datum.h>
#include <arrow/io/memory.h>
#include <parquet/arrow/writer.h>
#include <parquet/properties.h>

#include "base/rng.h"

namespace grebe::testing {

Result<std::string> ParquetBytes(const arrow::Table& rows, const FileOptions& options) {
  ::parquet::WriterProperties::Builder builder;
  builder.compression(::parquet::Compression::ZSTD)->data_pagesize(options.page_bytes);
  builder.write_batch_size(64);
  if (options.page_index) builder.enable_write_page_index();
  if (!options.dictionary) builder.disable_dictionary();
  if (options.page_v2) builder.data_page_version(::parquet::ParquetDataPageVersion::V2);
  if (options.checksums) builder.enable_page_checksum();
  ARROW_ASSIGN_OR_RAISE(auto sink, arrow::io::BufferOutputStream::Create());
  ARROW_RETURN_NOT_OK(::parquet::arrow::WriteTable(rows, arrow::default_memory_pool(), sink,
                                                   options.row_group_rows, builder.build()));
  ARROW_ASSIGN_OR_RAISE(auto buffer, sink->Finish());
  return buffer->ToString();
}

std::shared_ptr<arrow::Table> PlayEvents(int64_t rows, int64_t users, uint64_t seed) {
  Rng rng(seed);
  arrow::Int64Builder user_id, ts;
  arrow::StringBuilder title, note;
  arrow::DoubleBuilder score;
  auto tag_values = std::make_shared<arrow::StringBuilder>();
  arrow::ListBuilder tags(arrow::default_memory_pool(), tag_values);
  for (int64_t i = 0; i < rows; ++i) {
    ARROW_UNUSED(user_id.Append(static_cast<int64_t>(rng.Below(static_cast<uint64_t>(users)))));
    ARROW_UNUSED(ts.Append(1700000000000 + i * 1000));
    ARROW_UNUSED(title.Append("title number " + std::to_string(rng.Below(50))));
    ARROW_UNUSED(rng.Below(3) == 0 ? note.AppendNull()
                                   : note.Append("note " + std::to_string(rng.Next())));
    ARROW_UNUSED(score.Append(rng.Fraction()));
    ARROW_UNUSED(tags.Append());
    for (uint64_t t = rng.Below(4); t > 0; --t) {
      ARROW_UNUSED(tag_values->Append("t" + std::to_string(rng.Below(9))));
    }
  }
  const auto finish = [](arrow::ArrayBuilder& builder) { return builder.Finish().ValueOrDie(); };
  const auto schema = arrow::schema({arrow::field("user_id", arrow::int64()),
                                     arrow::field("ts", arrow::int64()),
                                     arrow::field("title", arrow::utf8()),
                                     arrow::field("note", arrow::utf8()),
                                     arrow::field("score", arrow::float64()),
                                     arrow::field("tags", arrow::list(arrow::utf8()))});
  return arrow::Table::Make(schema, {finish(user_id), finish(ts), finish(title), finish(note),
                                     finish(score), finish(tags)});
}

Result<std::vector<std::shared_ptr<arrow::Table>>> WritePlayTable(
    store::Store& store, const std::string& folder, int file_count, int64_t rows_per_file,
    int64_t users, uint64_t seed, const FileOptions& options) {
  std::vector<std::shared_ptr<arrow::Table>> tables;
  for (int i = 0; i < file_count; ++i) {
    tables.push_back(PlayEvents(rows_per_file, users, seed * 1000 + i));
    ARROW_ASSIGN_OR_RAISE(const std::string bytes, ParquetBytes(*tables.back(), options));
    char name[32];
    std::snprintf(name, sizeof(name), "/part-%05d.parquet", i);
    ARROW_RETURN_NOT_OK(store.Put(folder + name, bytes, store::PutMode::kOverwrite).status());
  }
  return tables;
}

std::shared_ptr<arrow::Table> RowsWhere(const std::vector<std::shared_ptr<arrow::Table>>& tables,
                                        const std::string& column, int64_t value) {
  const auto all = arrow::ConcatenateTables(tables).ValueOrDie()->CombineChunks().ValueOrDie();
  const auto& values =
      static_cast<const arrow::Int64Array&>(*all->GetColumnByName(column)->chunk(0));
  arrow::Int64Builder positions;
  for (int64_t i = 0; i < values.length(); ++i) {
    if (values.IsValid(i) && values.Value(i) == value) ARROW_UNUSED(positions.Append(i));
  }
  const auto taken = arrow::compute::Take(arrow::Datum(all),
                                          arrow::Datum(positions.Finish().ValueOrDie()));
  return taken.ValueOrDie().table();
}

}  // namespace grebe::testing

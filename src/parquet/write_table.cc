#include "parquet/write_table.h"

#include <arrow/table.h>

#include "parquet/write_file.h"

namespace grebe::pq {
namespace {

constexpr int64_t kGroupRows = 128 << 10;

}  // namespace

struct TableWriter::Impl {
  std::shared_ptr<arrow::Schema> schema;
  std::unique_ptr<FileWriter> writer;
  arrow::RecordBatchVector held;   // the next row group's rows
  int64_t held_rows = 0;

  Status WriteHeld() {
    ARROW_ASSIGN_OR_RAISE(auto table, arrow::Table::FromRecordBatches(schema, held));
    held.clear();
    held_rows = 0;
    return writer->WriteRowGroup(*table);
  }
};

TableWriter::TableWriter() : impl_(std::make_unique<Impl>()) {}
TableWriter::~TableWriter() = default;

Result<std::unique_ptr<TableWriter>> TableWriter::Open(const std::shared_ptr<arrow::Schema>& schema,
                                                       arrow::io::OutputStream* sink) {
  std::unique_ptr<TableWriter> out(new TableWriter());
  out->impl_->schema = schema;
  const std::shared_ptr<arrow::io::OutputStream> borrowed(sink, [](auto*) {});
  ARROW_ASSIGN_OR_RAISE(out->impl_->writer,
                        FileWriter::Open(borrowed, schema, nullptr, WriteOptions{}));
  return out;
}

Status TableWriter::Write(const arrow::RecordBatch& rows) {
  impl_->held.push_back(
      arrow::RecordBatch::Make(impl_->schema, rows.num_rows(), rows.columns()));
  impl_->held_rows += rows.num_rows();
  return impl_->held_rows < kGroupRows ? Status::OK() : impl_->WriteHeld();
}

Status TableWriter::Finish() {
  if (impl_->held_rows > 0) ARROW_RETURN_NOT_OK(impl_->WriteHeld());
  return impl_->writer->Finish().status();
}

}  // namespace grebe::pq

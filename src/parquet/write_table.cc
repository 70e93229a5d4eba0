#include "parquet/write_table.h"

#include <arrow/table.h>
#include <parquet/arrow/writer.h>
#include <parquet/properties.h>

#include "parquet/guard.h"

namespace grebe::pq {
namespace {

// Lends a caller's stream to a writer that wants to own one.
class BorrowedStream final : public arrow::io::OutputStream {
 public:
  explicit BorrowedStream(arrow::io::OutputStream* sink) : sink_(sink) {}
  Status Close() override { return Status::OK(); }
  bool closed() const override { return false; }
  Result<int64_t> Tell() const override { return position_; }
  Status Write(const void* data, int64_t size) override {
    position_ += size;
    return sink_->Write(data, size);
  }

 private:
  arrow::io::OutputStream* sink_;
  int64_t position_ = 0;   // from the file's first byte, whatever the sink held before
};

}  // namespace

Status WriteTable(const arrow::RecordBatch& rows, arrow::io::OutputStream* sink) {
  return Guarded("writing a Parquet file", [&]() -> Status {
    auto properties = ::parquet::WriterProperties::Builder()
                          .compression(::parquet::Compression::ZSTD)
                          ->enable_write_page_index()
                          ->build();
    auto arrow_properties = ::parquet::ArrowWriterProperties::Builder().store_schema()->build();
    auto stream = std::make_shared<BorrowedStream>(sink);
    ARROW_ASSIGN_OR_RAISE(
        auto writer,
        ::parquet::arrow::FileWriter::Open(*rows.schema(), arrow::default_memory_pool(), stream,
                                           properties, arrow_properties));
    if (rows.num_rows() > 0) ARROW_RETURN_NOT_OK(writer->WriteRecordBatch(rows));
    return writer->Close();
  });
}

}  // namespace grebe::pq

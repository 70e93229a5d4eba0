#include "parquet/write_file.h"

#include <arrow/io/memory.h>
#include <parquet/arrow/writer.h>
#include <parquet/properties.h>

#include "parquet/footer.h"
#include "parquet/guard.h"
#include "store/memory_store.h"

namespace grebe::pq {

struct FileWriter::Impl {
  std::shared_ptr<arrow::io::OutputStream> sink;
  std::shared_ptr<arrow::io::BufferOutputStream> bytes;
  std::unique_ptr<::parquet::arrow::FileWriter> writer;
  int64_t row_count = 0;
};

FileWriter::FileWriter() = default;
FileWriter::~FileWriter() = default;

Result<std::unique_ptr<FileWriter>> FileWriter::Open(
    std::shared_ptr<arrow::io::OutputStream> sink, const std::shared_ptr<arrow::Schema>& schema,
    std::shared_ptr<const arrow::KeyValueMetadata> key_values, const WriteOptions& options) {
  std::unique_ptr<FileWriter> file(new FileWriter());
  file->impl_ = std::make_unique<Impl>();
  Impl& impl = *file->impl_;
  impl.sink = std::move(sink);
  ARROW_ASSIGN_OR_RAISE(impl.bytes, arrow::io::BufferOutputStream::Create());
  ARROW_RETURN_NOT_OK(Guarded("opening a Parquet file", [&]() -> Status {
    auto properties = ::parquet::WriterProperties::Builder()
                          .compression(::parquet::Compression::ZSTD)
                          ->compression_level(options.codec_level)
                          ->data_pagesize(options.page_bytes_max)
                          ->max_rows_per_page(options.page_rows_max)
                          ->write_batch_size(std::min<int64_t>(1024, options.page_rows_max))
                          ->enable_write_page_index()
                          ->enable_page_checksum()
                          ->build();
    auto arrow_properties = ::parquet::ArrowWriterProperties::Builder().store_schema()->build();
    auto metadata = key_values == nullptr ? nullptr : key_values->Copy();
    if (metadata != nullptr && metadata->Contains("ARROW:schema")) {
      ARROW_RETURN_NOT_OK(metadata->Delete("ARROW:schema"));
    }
    ARROW_ASSIGN_OR_RAISE(
        impl.writer, ::parquet::arrow::FileWriter::Open(
                         *schema->WithMetadata(metadata), arrow::default_memory_pool(),
                         impl.bytes, properties, arrow_properties));
    return Status::OK();
  }));
  return file;
}

Status FileWriter::WriteRowGroup(const arrow::Table& rows, std::span<const int64_t>) {
  if (rows.num_rows() == 0) return Status::OK();
  impl_->row_count += rows.num_rows();
  return Guarded("writing a row group", [&]() -> Status {
    ARROW_RETURN_NOT_OK(impl_->writer->NewRowGroup());
    for (const auto& column : rows.columns()) {
      ARROW_RETURN_NOT_OK(impl_->writer->WriteColumnChunk(column));
    }
    return Status::OK();
  });
}

int64_t FileWriter::bytes_written() const { return impl_->bytes->Tell().ValueOr(0); }

Result<WrittenFile> FileWriter::Finish() {
  ARROW_RETURN_NOT_OK(Guarded("finishing a file", [&] { return impl_->writer->Close(); }));
  ARROW_ASSIGN_OR_RAISE(auto buffer, impl_->bytes->Finish());
  auto store = store::MakeMemoryStore();
  const std::string_view bytes(reinterpret_cast<const char*>(buffer->data()),
                               static_cast<size_t>(buffer->size()));
  ARROW_ASSIGN_OR_RAISE(auto identity, store->Put("f", bytes, store::PutMode::kOverwrite));
  auto object = std::make_shared<const store::Object>(store::Object{"f", identity});
  ARROW_ASSIGN_OR_RAISE(auto footer, Footer::Read(*store, object));
  WrittenFile file;
  file.size_bytes = buffer->size();
  file.row_count = impl_->row_count;
  file.schema = footer->schema();
  ARROW_ASSIGN_OR_RAISE(file.pages, FindPages(*store, *footer));
  ARROW_RETURN_NOT_OK(impl_->sink->Write(buffer));
  return file;
}

Result<std::vector<int64_t>> SharedPageEnds(const arrow::Table& rows,
                                            std::span<const int64_t> boundaries,
                                            const WriteOptions& options) {
  std::vector<int64_t> ends;
  int64_t begin = 0;
  for (const int64_t end : boundaries) {
    if (end - begin >= options.page_rows_max || end == rows.num_rows()) {
      ends.push_back(end);
      begin = end;
    }
  }
  if (rows.num_rows() > begin) ends.push_back(rows.num_rows());
  return ends;
}

}  // namespace grebe::pq

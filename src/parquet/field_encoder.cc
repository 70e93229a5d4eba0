#include "parquet/field_encoder.h"

#include <arrow/array/concatenate.h>
#include <parquet/arrow/writer.h>
#include <parquet/column_writer.h>
#include <parquet/file_writer.h>

#include <utility>

#include "parquet/guard.h"

namespace grebe::pq {
namespace {

namespace lib = ::parquet;

// One field's encoding: what the column writers need, and where their chunks go.
struct Job {
  const EncodePlan* plan = nullptr;
  const lib::SchemaDescriptor* schema = nullptr;
  PageCompressor* compressor = nullptr;
  int next_leaf = 0;
  std::span<const int64_t> page_ends;
  std::vector<EncodedChunk> chunks;
};

// A column writer that encodes what it is given at once. libparquet's Arrow writer calls it once a
// leaf, since the column is one array.
class LeafWriter final : public lib::ColumnWriter {
 public:
  LeafWriter(Job* job, int leaf) : job_(job), leaf_(leaf) {}

  arrow::Status WriteArrow(const int16_t* definition, const int16_t* repetition, int64_t count,
                           const arrow::Array& values, lib::ArrowWriteContext* context,
                           bool nullable) override {
    if (!nullable && values.null_count() != 0) {
      return InvalidArgument("a column that is declared to have no nulls has some", "column",
                             descr()->path()->ToDotString());
    }
    const auto index = static_cast<size_t>(leaf_);
    ChunkSettings settings;
    settings.options = &job_->plan->options;
    settings.dictionary = job_->plan->dictionary[index];
    settings.bloom = job_->plan->bloom[index];
    settings.page_ends = job_->page_ends;
    settings.compressor = job_->compressor;
    settings.pool = job_->plan->pool;
    const LeafLevels levels{descr()->max_definition_level() > 0 ? definition : nullptr,
                            descr()->max_repetition_level() > 0 ? repetition : nullptr, count};
    ARROW_ASSIGN_OR_RAISE(auto chunk, EncodeChunk(*descr(), levels, arrow::MakeArray(values.data()),
                                                  settings, context));
    job_->chunks.push_back(std::move(chunk));
    return arrow::Status::OK();
  }

  const lib::ColumnDescriptor* descr() const override { return job_->schema->Column(leaf_); }
  lib::Type::type type() const override { return descr()->physical_type(); }
  int64_t Close() override { return 0; }

  // The Arrow writer asks for none of these.
  int64_t rows_written() const override { return 0; }
  int64_t total_compressed_bytes() const override { return 0; }
  int64_t total_bytes_written() const override { return 0; }
  int64_t total_compressed_bytes_written() const override { return 0; }
  int64_t estimated_buffered_value_bytes() const override { return 0; }
  int64_t estimated_buffered_def_level_bytes() const override { return 0; }
  int64_t estimated_buffered_rep_level_bytes() const override { return 0; }
  int64_t estimated_buffered_dict_bytes() const override { return 0; }
  const lib::WriterProperties* properties() override { return nullptr; }
  void AddKeyValueMetadata(const std::shared_ptr<const arrow::KeyValueMetadata>&) override {}
  void ResetKeyValueMetadata() override {}

 private:
  Job* job_;
  const int leaf_;
};

class LeafRowGroup final : public lib::RowGroupWriter::Contents {
 public:
  explicit LeafRowGroup(Job* job) : job_(job) {}

  int num_columns() const override { return job_->schema->num_columns(); }
  int64_t num_rows() const override { return 0; }
  lib::ColumnWriter* NextColumn() override {
    column_ = std::make_unique<LeafWriter>(job_, job_->next_leaf++);
    return column_.get();
  }
  lib::ColumnWriter* column(int) override {
    throw lib::ParquetException("columns are written in order");
  }
  int current_column() const override { return job_->next_leaf - 1; }
  void Close() override {}
  int64_t total_bytes_written() const override { return 0; }
  int64_t total_compressed_bytes() const override { return 0; }
  int64_t total_compressed_bytes_written() const override { return 0; }
  lib::RowGroupWriter::BufferedStats EstimatedBufferedStats() const override { return {}; }
  bool buffered() const override { return false; }

 private:
  Job* job_;
  std::unique_ptr<LeafWriter> column_;
};

class LeafFile final : public lib::ParquetFileWriter::Contents {
 public:
  LeafFile(std::shared_ptr<lib::schema::GroupNode> root, Job* job)
      : Contents(std::move(root), nullptr), job_(job),
        properties_(lib::default_writer_properties()) {
    job_->schema = schema();
  }

  lib::RowGroupWriter* AppendRowGroup() override {
    row_group_ = std::make_unique<lib::RowGroupWriter>(std::make_unique<LeafRowGroup>(job_));
    return row_group_.get();
  }
  lib::RowGroupWriter* AppendBufferedRowGroup() override {
    throw lib::ParquetException("row groups are not buffered");
  }
  void Close() override {}
  int64_t num_rows() const override { return 0; }
  int num_columns() const override { return job_->schema->num_columns(); }
  int num_row_groups() const override { return 0; }
  const std::shared_ptr<lib::WriterProperties>& properties() const override {
    return properties_;
  }
  void AddKeyValueMetadata(const std::shared_ptr<const arrow::KeyValueMetadata>&) override {}

 private:
  Job* job_;
  std::shared_ptr<lib::WriterProperties> properties_;
  std::unique_ptr<lib::RowGroupWriter> row_group_;
};

Result<std::shared_ptr<arrow::Array>> AsOneArray(const arrow::ChunkedArray& column,
                                                 arrow::MemoryPool* pool) {
  arrow::ArrayVector pieces;
  for (const auto& piece : column.chunks()) {
    if (piece->length() > 0) pieces.push_back(piece);
  }
  if (pieces.size() == 1) return pieces[0];
  auto joined = arrow::Concatenate(pieces, pool);
  if (!joined.ok() && joined.status().IsInvalid()) {  // its word for offsets beyond 32 bits
    return LimitExceeded("a column of one row group is larger than its type can hold: make row "
                         "groups smaller", "cause", joined.status().message());
  }
  return joined;
}

}  // namespace

struct FieldEncoder::Impl {
  Job job;
  std::unique_ptr<PageCompressor> compressor;
  std::unique_ptr<lib::arrow::FileWriter> writer;
};

FieldEncoder::FieldEncoder() = default;
FieldEncoder::~FieldEncoder() = default;

Result<std::unique_ptr<FieldEncoder>> FieldEncoder::Make(const EncodePlan& plan) {
  std::unique_ptr<FieldEncoder> encoder(new FieldEncoder());
  encoder->impl_ = std::make_unique<Impl>();
  Impl& impl = *encoder->impl_;
  ARROW_ASSIGN_OR_RAISE(impl.compressor,
                        PageCompressor::Make(plan.options.codec, plan.options.codec_level));
  impl.job.plan = &plan;
  impl.job.compressor = impl.compressor.get();
  auto file = std::make_unique<lib::ParquetFileWriter>();
  file->Open(std::make_unique<LeafFile>(plan.root, &impl.job));
  ARROW_RETURN_NOT_OK(lib::arrow::FileWriter::Make(plan.pool, std::move(file), plan.arrow_schema,
                                                   lib::default_arrow_writer_properties(),
                                                   &impl.writer));
  return encoder;
}

Result<std::vector<EncodedChunk>> FieldEncoder::Encode(const arrow::ChunkedArray& column,
                                                       int leaf,
                                                       std::span<const int64_t> page_ends) {
  Job& job = impl_->job;
  job.next_leaf = leaf;
  job.page_ends = page_ends;
  job.chunks.clear();
  ARROW_ASSIGN_OR_RAISE(auto array, AsOneArray(column, job.plan->pool));
  ARROW_RETURN_NOT_OK(impl_->writer->NewRowGroup());
  ARROW_RETURN_NOT_OK(impl_->writer->WriteColumnChunk(*array));
  return std::exchange(job.chunks, {});
}

}  // namespace grebe::pq

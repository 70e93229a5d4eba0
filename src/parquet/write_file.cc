#include "parquet/write_file.h"

#include <arrow/io/memory.h>
#include <arrow/ipc/writer.h>
#include <arrow/util/base64.h>
#include <parquet/arrow/schema.h>
#include <parquet/file_writer.h>
#include <parquet/metadata.h>
#include <parquet/page_index.h>

#include <algorithm>
#include <atomic>
#include <iterator>
#include <limits>
#include <optional>
#include <utility>

#include "base/version.h"
#include "parquet/field_encoder.h"
#include "parquet/guard.h"
#include "parquet/schema_internal.h"
#include "store/work_pool.h"

namespace grebe::pq {
namespace {

namespace lib = ::parquet;

constexpr std::string_view kMagic = "PAR1";
constexpr const char* kArrowSchemaKey = "ARROW:schema";

// Counts from the file's first byte, whatever the sink held before.
class FileStream final : public arrow::io::OutputStream {
 public:
  explicit FileStream(std::shared_ptr<arrow::io::OutputStream> sink) : sink_(std::move(sink)) {}

  Status Close() override { return Status::OK(); }
  bool closed() const override { return false; }
  Result<int64_t> Tell() const override { return position_; }
  Status Write(const void* data, int64_t size_bytes) override {
    ARROW_RETURN_NOT_OK(sink_->Write(data, size_bytes));
    position_ += size_bytes;
    return Status::OK();
  }
  Status Write(std::string_view bytes) {
    return Write(bytes.data(), static_cast<int64_t>(bytes.size()));
  }
  int64_t position() const { return position_; }

 private:
  std::shared_ptr<arrow::io::OutputStream> sink_;
  int64_t position_ = 0;
};

// As Guarded; but here no file's bytes are at fault, only what the caller gave.
template <class Function>
auto GuardedWrite(std::string_view doing, Function&& function) {
  auto out = Guarded(doing, std::forward<Function>(function));
  const Status status = [&] {
    if constexpr (std::is_same_v<decltype(out), Status>) {
      return out;
    } else {
      return out.status();
    }
  }();
  if (IsKind(status, ErrorKind::kCorrupt)) {
    out = MakeError(ErrorKind::kInvalidArgument, status.message());
  }
  return out;
}

// The schema with the file's own keys: a reader that finds an Arrow schema takes the schema's
// metadata from there alone.
Result<std::string> ArrowSchemaText(
    const arrow::Schema& schema,
    const std::shared_ptr<const arrow::KeyValueMetadata>& key_values) {
  const auto whole = key_values->size() > 0 ? schema.WithMetadata(key_values)
                                            : schema.RemoveMetadata();
  ARROW_ASSIGN_OR_RAISE(auto bytes, arrow::ipc::SerializeSchema(*whole));
  return arrow::util::base64_encode(std::string_view(*bytes));
}

Result<std::shared_ptr<const arrow::KeyValueMetadata>> FileKeyValues(
    const std::shared_ptr<arrow::Schema>& schema,
    const std::shared_ptr<const arrow::KeyValueMetadata>& key_values) {
  const auto& given = key_values != nullptr ? key_values : schema->metadata();
  auto out = std::make_shared<arrow::KeyValueMetadata>();
  for (int64_t i = 0; given != nullptr && i < given->size(); ++i) {
    if (given->key(i) != kArrowSchemaKey) out->Append(given->key(i), given->value(i));
  }
  ARROW_ASSIGN_OR_RAISE(auto text, ArrowSchemaText(*schema, out));
  out->Append(kArrowSchemaKey, std::move(text));
  return out;
}

Result<int> LeafOf(const lib::SchemaDescriptor& schema, const std::string& path) {
  for (int leaf = 0; leaf < schema.num_columns(); ++leaf) {
    if (schema.Column(leaf)->path()->ToDotString() == path) return leaf;
  }
  return InvalidArgument("no such leaf column", "column", path);
}

Status CheckOptions(const WriteOptions& options) {
  if (!(options.bloom_false_share_max > 0 && options.bloom_false_share_max < 1)) {
    return InvalidArgument("a Bloom filter's false share lies between 0 and 1", "got",
                           options.bloom_false_share_max);
  }
  if (options.page_rows_max < 1 || options.page_bytes_max < 1 || options.bound_bytes_max < 1) {
    return InvalidArgument("page and bound limits are at least 1");
  }
  return Status::OK();
}

// Where the leaves of each top-level field begin.
std::vector<int> FieldLeaves(const lib::SchemaDescriptor& schema) {
  std::vector<int> first(static_cast<size_t>(schema.group_node()->field_count()), -1);
  for (int leaf = schema.num_columns() - 1; leaf >= 0; --leaf) {
    const int field = schema.group_node()->FieldIndex(*schema.GetColumnRoot(leaf));
    first[static_cast<size_t>(field)] = leaf;
  }
  return first;
}

// Serialized indexes of one kind, and where each one of them stands.
struct IndexBytes {
  lib::ColumnChunkId chunk;
  std::string bytes;
};

}  // namespace

struct FileWriter::Impl {
  explicit Impl(std::shared_ptr<arrow::io::OutputStream> sink) : stream(std::move(sink)) {}

  Status Open(const std::shared_ptr<arrow::Schema>& schema,
              const std::shared_ptr<const arrow::KeyValueMetadata>& key_values,
              const WriteOptions& options);
  Status MakeProperties(const WriteOptions& options);
  Status ResolveColumns(const WriteOptions& options);
  Status CheckRows(const arrow::Table& rows, std::span<const int64_t> page_ends) const;
  Result<std::vector<EncodedChunk>> Encode(const arrow::Table& rows,
                                           std::span<const int64_t> page_ends);
  Status Write(std::vector<EncodedChunk> chunks, int64_t row_count);
  Status WriteChunk(EncodedChunk* chunk, ChunkPages* out);
  void DescribeRowGroups();
  static void DescribeChunk(const ChunkPages& out, EncodedChunk* chunk, bool bounded,
                            lib::ColumnChunkMetaDataBuilder* column);
  Status WriteIndexes(lib::IndexKind kind, const std::vector<IndexBytes>& indexes);
  std::vector<IndexBytes> OffsetIndexes() const;
  Result<WrittenFile> Finish();

  FileStream stream;
  EncodePlan plan;
  std::shared_ptr<lib::SchemaDescriptor> descriptor;
  std::shared_ptr<lib::WriterProperties> properties;
  std::shared_ptr<const arrow::KeyValueMetadata> key_values;
  std::unique_ptr<lib::FileMetaDataBuilder> metadata;
  std::vector<int> field_leaves;
  std::vector<std::unique_ptr<FieldEncoder>> encoders;   // one a thread
  std::unique_ptr<store::WorkPool> pool;
  std::vector<IndexBytes> column_indexes;
  std::vector<IndexBytes> bloom_filters;
  FilePages pages;
  std::vector<std::vector<EncodedChunk>> groups;   // without their bytes
  std::vector<bool> unbounded;                     // leaves without bounds in this file
  int64_t row_count = 0;
  bool failed = false;
};

FileWriter::FileWriter() = default;
FileWriter::~FileWriter() = default;

Status FileWriter::Impl::MakeProperties(const WriteOptions& options) {
  lib::WriterProperties::Builder builder;
  std::vector<lib::SortingColumn> sorting;
  for (const SortingColumn& column : options.sorting_columns) {
    ARROW_ASSIGN_OR_RAISE(const int leaf, LeafOf(*descriptor, column.path));
    sorting.push_back({leaf, column.descending, column.nulls_first});
  }
  properties = builder.memory_pool(plan.pool)
                   ->compression(LibraryCodec(options.codec))
                   ->created_by(std::string("grebe version ") + kVersion)
                   ->set_sorting_columns(std::move(sorting))
                   ->build();
  return Status::OK();
}

Status FileWriter::Impl::ResolveColumns(const WriteOptions& options) {
  const auto leaves = static_cast<size_t>(descriptor->num_columns());
  plan.dictionary.assign(leaves, options.dictionary);
  plan.bloom.assign(leaves, false);
  unbounded.assign(leaves, false);
  for (const auto& [path, policy] : options.dictionary_of) {
    ARROW_ASSIGN_OR_RAISE(const int leaf, LeafOf(*descriptor, path));
    plan.dictionary[static_cast<size_t>(leaf)] = policy;
  }
  for (const std::string& path : options.bloom_columns) {
    ARROW_ASSIGN_OR_RAISE(const int leaf, LeafOf(*descriptor, path));
    if (descriptor->Column(leaf)->physical_type() == lib::Type::BOOLEAN) {
      return InvalidArgument("a column of booleans cannot have a Bloom filter", "column", path);
    }
    plan.bloom[static_cast<size_t>(leaf)] = true;
  }
  return Status::OK();
}

Status FileWriter::Impl::Open(const std::shared_ptr<arrow::Schema>& schema,
                              const std::shared_ptr<const arrow::KeyValueMetadata>& given,
                              const WriteOptions& options) {
  ARROW_RETURN_NOT_OK(CheckOptions(options));
  if (schema->num_fields() == 0) return Unsupported("a Parquet file without columns");
  plan.options = options;
  plan.pool = options.pool != nullptr ? options.pool : arrow::default_memory_pool();
  plan.arrow_schema = schema;
  // Decimals of up to 18 digits as integers: smaller, and Iceberg demands it.
  const auto shape =
      lib::WriterProperties::Builder().enable_store_decimal_as_integer()->build();
  ARROW_RETURN_NOT_OK(lib::arrow::ToParquetSchema(schema.get(), *shape,
                                                  *lib::default_arrow_writer_properties(),
                                                  &descriptor));
  plan.root = std::static_pointer_cast<lib::schema::GroupNode>(descriptor->schema_root());
  field_leaves = FieldLeaves(*descriptor);
  ARROW_RETURN_NOT_OK(ResolveColumns(options));
  ARROW_RETURN_NOT_OK(MakeProperties(options));
  ARROW_ASSIGN_OR_RAISE(key_values, FileKeyValues(schema, given));
  metadata = lib::FileMetaDataBuilder::Make(descriptor.get(), properties);
  const int threads = std::clamp(options.threads, 1, schema->num_fields());
  for (int i = 0; i < threads; ++i) {
    ARROW_ASSIGN_OR_RAISE(auto encoder, FieldEncoder::Make(plan));
    encoders.push_back(std::move(encoder));
  }
  if (threads > 1) pool = std::make_unique<store::WorkPool>(threads - 1);
  return stream.Write(kMagic);
}

Status FileWriter::Impl::CheckRows(const arrow::Table& rows,
                                   std::span<const int64_t> page_ends) const {
  if (failed) return InvalidArgument("the file is lost: an earlier row group failed");
  if (!rows.schema()->Equals(*plan.arrow_schema, /*check_metadata=*/false)) {
    return InvalidArgument("rows have another schema than the file", "expected",
                           plan.arrow_schema->ToString(), "got", rows.schema()->ToString());
  }
  const Status valid = rows.Validate();
  if (!valid.ok()) return InvalidArgument(valid.message());
  int64_t begin = 0;
  for (const int64_t end : page_ends) {
    if (end <= begin) return InvalidArgument("page ends do not ascend", "row", end);
    begin = end;
  }
  if (!page_ends.empty() && begin != rows.num_rows()) {
    return InvalidArgument("the last page does not end with the rows", "expected",
                           rows.num_rows(), "got", begin);
  }
  return Status::OK();
}

Result<std::vector<EncodedChunk>> FileWriter::Impl::Encode(const arrow::Table& rows,
                                                           std::span<const int64_t> page_ends) {
  const auto fields = static_cast<size_t>(rows.num_columns());
  std::vector<Result<std::vector<EncodedChunk>>> encoded(fields, std::vector<EncodedChunk>());
  const auto encode = [&](FieldEncoder* encoder, size_t field) {
    encoded[field] = GuardedWrite("encoding a column", [&] {
      return encoder->Encode(*rows.column(static_cast<int>(field)), field_leaves[field],
                             page_ends);
    });
    if (!encoded[field].ok()) {
      encoded[field] = AddContext(encoded[field].status(), "column",
                                  rows.field(static_cast<int>(field))->name());
    }
  };
  if (pool == nullptr) {
    for (size_t field = 0; field < fields; ++field) encode(encoders[0].get(), field);
  } else {
    // Each thread takes the next field there is; which one takes which does not show in the bytes.
    std::atomic<size_t> next{0};
    pool->ParallelFor(encoders.size(), [&](size_t thread) {
      for (size_t field = next++; field < fields; field = next++) {
        encode(encoders[thread].get(), field);
      }
    });
  }
  std::vector<EncodedChunk> chunks;
  for (auto& field : encoded) {
    ARROW_ASSIGN_OR_RAISE(auto leaves, std::move(field));
    std::ranges::move(leaves, std::back_inserter(chunks));
  }
  if (static_cast<int>(chunks.size()) != descriptor->num_columns()) {
    return Internal("not every leaf was encoded", "expected", descriptor->num_columns(), "got",
                    chunks.size());
  }
  return chunks;
}

Status FileWriter::Impl::WriteChunk(EncodedChunk* chunk, ChunkPages* out) {
  const int64_t begin = stream.position();
  ARROW_RETURN_NOT_OK(stream.Write(chunk->bytes->data(), chunk->bytes->size()));
  chunk->bytes.reset();
  out->info.codec = static_cast<int32_t>(plan.options.codec);
  out->info.value_count = chunk->value_count;
  out->info.page_count = static_cast<int32_t>(chunk->pages.size());
  if (chunk->dictionary) out->info.dictionary = ByteRange{begin, begin + chunk->dictionary->end};
  for (const EncodedChunk::Page& page : chunk->pages) {
    out->pages.push_back({{begin + page.bytes.begin, begin + page.bytes.end}, page.rows, false});
  }
  chunk->pages.clear();
  return Status::OK();
}

Status FileWriter::Impl::Write(std::vector<EncodedChunk> chunks, int64_t rows) {
  RowGroupPages out;
  out.row_count = rows;
  out.chunks.resize(chunks.size());
  for (size_t leaf = 0; leaf < chunks.size(); ++leaf) {
    ARROW_RETURN_NOT_OK(WriteChunk(&chunks[leaf], &out.chunks[leaf]));
    if (!chunks[leaf].bounded) unbounded[leaf] = true;
  }
  pages.row_groups.push_back(std::move(out));
  groups.push_back(std::move(chunks));
  row_count += rows;
  return Status::OK();
}

void FileWriter::Impl::DescribeChunk(const ChunkPages& out, EncodedChunk* chunk, bool bounded,
                                     lib::ColumnChunkMetaDataBuilder* column) {
  if (!bounded) chunk->statistics.ClearMinMax();
  if (chunk->statistics.is_set()) column->SetStatistics(chunk->statistics);
  column->SetSizeStatistics(chunk->sizes);
  const int64_t begin = out.info.dictionary ? out.info.dictionary->begin
                                            : out.pages[0].bytes.begin;
  column->Finish(chunk->value_count, out.info.dictionary ? begin : 0, -1,
                 out.pages[0].bytes.begin, out.pages.back().bytes.end - begin,
                 chunk->uncompressed_bytes, out.info.dictionary.has_value(),
                 chunk->dictionary_fallback, chunk->dictionary_encodings, chunk->data_encodings);
}

// Only now is it known which columns have bounds: a column that lacks them in one row group lacks
// them in all, since a reader that takes a file's bounds from the row groups that have some
// (DataFusion does) would pass over the rest.
void FileWriter::Impl::DescribeRowGroups() {
  for (size_t group = 0; group < groups.size(); ++group) {
    auto* row_group = metadata->AppendRowGroup();
    row_group->set_num_rows(pages.row_groups[group].row_count);
    int64_t uncompressed_bytes = 0;
    for (size_t leaf = 0; leaf < groups[group].size(); ++leaf) {
      EncodedChunk& chunk = groups[group][leaf];
      DescribeChunk(pages.row_groups[group].chunks[leaf], &chunk, !unbounded[leaf],
                    row_group->NextColumnChunk());
      uncompressed_bytes += chunk.uncompressed_bytes;
      const lib::ColumnChunkId id{static_cast<int32_t>(group), static_cast<int32_t>(leaf)};
      if (!chunk.column_index.empty() && !unbounded[leaf]) {
        column_indexes.push_back({id, std::move(chunk.column_index)});
      }
      if (!chunk.bloom_filter.empty()) {
        bloom_filters.push_back({id, std::move(chunk.bloom_filter)});
      }
    }
    const bool has_ordinal = group <= std::numeric_limits<int16_t>::max();
    row_group->Finish(uncompressed_bytes, has_ordinal ? static_cast<int16_t>(group) : -1);
  }
}

std::vector<IndexBytes> FileWriter::Impl::OffsetIndexes() const {
  std::vector<IndexBytes> indexes;
  for (size_t group = 0; group < pages.row_groups.size(); ++group) {
    const auto& chunks = pages.row_groups[group].chunks;
    for (size_t leaf = 0; leaf < chunks.size(); ++leaf) {
      auto builder = lib::OffsetIndexBuilder::Make();
      for (const PageLocation& page : chunks[leaf].pages) {
        builder->AddPage(page.bytes.begin, static_cast<int32_t>(page.bytes.size_bytes()),
                         page.rows.begin);
      }
      builder->Finish(0);
      PARQUET_ASSIGN_OR_THROW(auto bytes_out, arrow::io::BufferOutputStream::Create());
      builder->WriteTo(bytes_out.get());
      PARQUET_ASSIGN_OR_THROW(auto bytes, bytes_out->Finish());
      indexes.push_back({{static_cast<int32_t>(group), static_cast<int32_t>(leaf)},
                         bytes->ToString()});
    }
  }
  return indexes;
}

Status FileWriter::Impl::WriteIndexes(lib::IndexKind kind,
                                      const std::vector<IndexBytes>& indexes) {
  lib::IndexLocations locations;
  for (const IndexBytes& index : indexes) {
    locations.push_back(
        {index.chunk, {stream.position(), static_cast<int32_t>(index.bytes.size())}});
    ARROW_RETURN_NOT_OK(stream.Write(index.bytes));
  }
  if (!locations.empty()) metadata->SetIndexLocations(kind, locations);
  return Status::OK();
}

Result<WrittenFile> FileWriter::Impl::Finish() {
  DescribeRowGroups();
  ARROW_RETURN_NOT_OK(WriteIndexes(lib::IndexKind::kBloomFilter, bloom_filters));
  ARROW_RETURN_NOT_OK(WriteIndexes(lib::IndexKind::kColumnIndex, column_indexes));
  ARROW_RETURN_NOT_OK(WriteIndexes(lib::IndexKind::kOffsetIndex, OffsetIndexes()));
  const auto footer = metadata->Finish(key_values);
  lib::WriteFileMetaData(*footer, &stream);
  WrittenFile file;
  file.size_bytes = stream.position();
  file.row_count = row_count;
  ARROW_ASSIGN_OR_RAISE(file.schema, SchemaOf(*footer));
  file.pages = std::move(pages);
  file.footer_bytes = footer->SerializeToString();
  return file;
}

Result<std::unique_ptr<FileWriter>> FileWriter::Open(
    std::shared_ptr<arrow::io::OutputStream> sink, const std::shared_ptr<arrow::Schema>& schema,
    std::shared_ptr<const arrow::KeyValueMetadata> key_values, const WriteOptions& options) {
  std::unique_ptr<FileWriter> writer(new FileWriter());
  writer->impl_ = std::make_unique<Impl>(std::move(sink));
  ARROW_RETURN_NOT_OK(GuardedWrite("beginning a file", [&] {
    return writer->impl_->Open(schema, key_values, options);
  }));
  return writer;
}

Status FileWriter::WriteRowGroup(const arrow::Table& rows, std::span<const int64_t> page_ends) {
  ARROW_RETURN_NOT_OK(impl_->CheckRows(rows, page_ends));
  if (rows.num_rows() == 0) return Status::OK();
  impl_->failed = true;
  ARROW_ASSIGN_OR_RAISE(auto chunks, impl_->Encode(rows, page_ends));
  ARROW_RETURN_NOT_OK(GuardedWrite("writing a row group", [&] {
    return impl_->Write(std::move(chunks), rows.num_rows());
  }));
  impl_->failed = false;
  return Status::OK();
}

int64_t FileWriter::bytes_written() const { return impl_->stream.position(); }

Result<WrittenFile> FileWriter::Finish() {
  if (impl_->failed) return InvalidArgument("the file is lost: a row group failed");
  impl_->failed = true;  // it is over
  return GuardedWrite("finishing a file", [&] { return impl_->Finish(); });
}

}  // namespace grebe::pq

#include "parquet/footer.h"

#include <arrow/util/key_value_metadata.h>

#include <algorithm>
#include <limits>

#include "base/coding.h"
#include "parquet/footer_internal.h"
#include "parquet/guard.h"
#include "parquet/page_walk.h"
#include "parquet/schema_internal.h"

namespace grebe::pq {
namespace {

constexpr int64_t kTailBytes = 64 << 10;
constexpr int64_t kEndBytes = 8;         // footer length, magic
constexpr int64_t kFileBytesMin = 12;
// Old parquet-mr leaves the dictionary page's header out of a chunk's stated size
// (PARQUET-816); as libparquet does, such chunks are read a little further.
constexpr int64_t kOldChunkPaddingBytes = 100;

struct End {
  std::shared_ptr<arrow::Buffer> tail;
  int64_t tail_begin = 0;
  int64_t footer_begin = 0;
  int64_t footer_bytes = 0;
};

Result<std::shared_ptr<arrow::Buffer>> ReadRange(store::Store& store,
                                                 const std::shared_ptr<const store::Object>& object,
                                                 ByteRange range) {
  const store::ReadRequest request{object, range};
  ARROW_ASSIGN_OR_RAISE(auto buffers, store.Read(std::span(&request, 1)));
  if (buffers[0]->size() != range.size_bytes()) {
    return Internal("store gave another number of bytes than asked for", "expected",
                    range.size_bytes(), "got", buffers[0]->size());
  }
  return buffers[0];
}

// Reads the file's last bytes and, when the footer begins before them, the rest of it.
Result<End> ReadEnd(store::Store& store, const std::shared_ptr<const store::Object>& object,
                    const ReadLimits& limits) {
  const int64_t size = object->identity.size_bytes;
  if (size < kFileBytesMin) return Corrupt("file is too small to be Parquet", "size_bytes", size);
  End end;
  end.tail_begin = std::max<int64_t>(size - kTailBytes, 0);
  ARROW_ASSIGN_OR_RAISE(end.tail, ReadRange(store, object, {end.tail_begin, size}));
  const uint8_t* last = end.tail->data() + end.tail->size() - kEndBytes;
  const std::string_view magic(reinterpret_cast<const char*>(last + 4), 4);
  if (magic == "PARE") return Unsupported("file is encrypted, footer included");
  if (magic != "PAR1") return Corrupt("file does not end as Parquet files do: no magic bytes");
  end.footer_bytes = LoadLe<uint32_t>(last);
  if (end.footer_bytes > size - kFileBytesMin) {
    return Corrupt("footer is larger than the file", "footer_bytes", end.footer_bytes,
                   "size_bytes", size);
  }
  if (end.footer_bytes > limits.footer_bytes_max) {
    return LimitExceeded("footer is larger than the limit", "footer_bytes", end.footer_bytes,
                         "footer_bytes_max", limits.footer_bytes_max);
  }
  end.footer_begin = size - kEndBytes - end.footer_bytes;
  if (end.footer_begin >= end.tail_begin) return end;
  ARROW_ASSIGN_OR_RAISE(auto head,
                        ReadRange(store, object, {end.footer_begin, end.tail_begin}));
  ARROW_ASSIGN_OR_RAISE(end.tail, arrow::ConcatenateBuffers({head, end.tail}));
  end.tail_begin = end.footer_begin;
  return end;
}

Result<ByteRange> ChunkBytes(const ::parquet::ColumnChunkMetaData& chunk, int64_t footer_begin,
                             bool old_writer) {
  int64_t begin = chunk.data_page_offset();
  if (chunk.has_dictionary_page() && chunk.dictionary_page_offset() > 0) {
    begin = std::min(begin, chunk.dictionary_page_offset());
  }
  const int64_t size = chunk.total_compressed_size();
  // Inside of the file, behind its first magic bytes.
  if (begin < 4 || size < 0 || begin > footer_begin || size > footer_begin - begin) {
    return Corrupt("column chunk lies outside of the file's data", "offset_bytes", begin,
                   "size_bytes", size, "footer_begin", footer_begin);
  }
  int64_t end = begin + size;
  if (old_writer) end = std::min(end + kOldChunkPaddingBytes, footer_begin);
  return ByteRange{begin, end};
}

std::optional<ByteRange> OffsetIndexBytes(const ::parquet::ColumnChunkMetaData& chunk,
                                          int64_t footer_begin) {
  const auto location = chunk.GetOffsetIndexLocation();
  if (!location || location->offset < 4 || location->length <= 0 ||
      location->offset > footer_begin || location->length > footer_begin - location->offset) {
    return std::nullopt;
  }
  return ByteRange{location->offset, location->offset + location->length};
}

int64_t CountDataPages(const ::parquet::ColumnChunkMetaData& chunk) {
  int64_t pages = 0;
  bool any = false;
  for (const auto& stats : chunk.encoding_stats()) {
    if (stats.page_type != ::parquet::PageType::DATA_PAGE &&
        stats.page_type != ::parquet::PageType::DATA_PAGE_V2) {
      continue;
    }
    any = true;
    pages += stats.count;
  }
  return any ? pages : -1;
}

Result<ChunkMeta> ReadChunk(const ::parquet::ColumnChunkMetaData& chunk, int64_t footer_begin,
                            bool old_writer) {
  if (!chunk.file_path().empty()) {
    return Unsupported("column chunk lies in another file", "file", chunk.file_path());
  }
  if (chunk.crypto_metadata() != nullptr) return Unsupported("column is encrypted");
  ChunkMeta meta;
  meta.codec = ThriftCodec(chunk.compression());
  if (!chunk.can_decompress()) {
    return Unsupported("compression codec is not supported", "codec", meta.codec);
  }
  meta.value_count = chunk.num_values();
  if (meta.value_count < 0) return Corrupt("column chunk has a negative value count");
  if (meta.value_count == 0) return meta;  // what else it says does not matter
  ARROW_ASSIGN_OR_RAISE(meta.bytes, ChunkBytes(chunk, footer_begin, old_writer));
  meta.dictionary_first = chunk.has_dictionary_page() && chunk.dictionary_page_offset() > 0 &&
                          chunk.dictionary_page_offset() < chunk.data_page_offset();
  meta.offset_index = OffsetIndexBytes(chunk, footer_begin);
  meta.data_pages = CountDataPages(chunk);
  return meta;
}

// The number of values that every column which is not repeated states; nullopt: there is none.
Result<std::optional<int64_t>> FlatValues(const Schema& schema,
                                          std::span<const ChunkMeta> chunks) {
  std::optional<int64_t> values;
  for (size_t leaf = 0; leaf < chunks.size(); ++leaf) {
    if (schema.leaf_is_repeated(static_cast<int>(leaf))) continue;
    if (values && *values != chunks[leaf].value_count) {
      return Corrupt("columns of a row group differ in their number of values", "leaf", leaf,
                     "expected", *values, "got", chunks[leaf].value_count);
    }
    values = chunks[leaf].value_count;
  }
  return values;
}

// A row group whose number of rows its own columns contradict is added to *doubtful.
Status ReadRowGroup(const ::parquet::RowGroupMetaData& group, bool old_writer,
                    std::vector<size_t>* doubtful, Footer::Impl* impl) {
  const int leaves = impl->leaf_count();
  // libparquet indexes its schema by chunk without a check of its own.
  if (group.num_columns() != leaves) {
    return Corrupt("row group has another number of columns than the schema", "expected", leaves,
                   "got", group.num_columns());
  }
  const size_t first = impl->chunks.size();
  for (int leaf = 0; leaf < leaves; ++leaf) {
    auto chunk = Guarded("reading chunk metadata", [&] {
      return ReadChunk(*group.ColumnChunk(leaf), impl->footer_begin, old_writer);
    });
    if (!chunk.ok()) return AddContext(chunk.status(), "column", impl->schema->leaf_path(leaf));
    impl->chunks.push_back(*chunk);
  }
  const int64_t rows = group.num_rows();
  ARROW_ASSIGN_OR_RAISE(const auto values,
                        FlatValues(*impl->schema, std::span(impl->chunks).subspan(first)));
  if (values && *values != rows) {
    doubtful->push_back(impl->row_counts.size());
  } else if (rows < 0) {
    return Corrupt("row group has a negative row count", "rows", rows);
  }
  impl->row_counts.push_back(rows);
  return Status::OK();
}

// Settles the row count of a row group whose footer contradicts itself. Some writers state another
// number of rows than they wrote (0, or 2^32 - 2), some another number of values: the page headers
// of the columns that are not repeated know.
Status CountRows(store::Store* store, size_t row_group, bool old_writer, const ReadLimits& limits,
                 Footer::Impl* impl) {
  if (store == nullptr) return Corrupt("a footer contradicts itself on its rows");
  const auto leaves = static_cast<size_t>(impl->leaf_count());
  const auto chunks = std::span(impl->chunks).subspan(row_group * leaves, leaves);
  std::vector<PageWalk> walks;
  std::vector<ChunkMeta*> counted;
  for (size_t leaf = 0; leaf < leaves; ++leaf) {
    if (impl->schema->leaf_is_repeated(static_cast<int>(leaf))) continue;
    if (chunks[leaf].value_count == 0) {
      return Corrupt("row group has rows but its columns have no values", "rows",
                     impl->row_counts[row_group]);
    }
    counted.push_back(&chunks[leaf]);
    walks.push_back(PageWalk::CountingValues(
        chunks[leaf], old_writer ? kOldChunkPaddingBytes : 0, limits));
  }
  size_t failed = 0;
  ARROW_RETURN_NOT_OK(RunWalks(*store, *impl, walks, &failed));
  for (size_t i = 0; i < walks.size(); ++i) {
    counted[i]->value_count = walks[i].value_count();
    if (walks[i].value_count() == walks[0].value_count()) continue;
    return Corrupt("columns of a row group differ in their number of values", "expected",
                   walks[0].value_count(), "got", walks[i].value_count());
  }
  impl->row_counts[row_group] = walks[0].value_count();
  return Status::OK();
}

Status SumRows(Footer::Impl* impl) {
  for (const int64_t rows : impl->row_counts) {
    if (rows > std::numeric_limits<int64_t>::max() - impl->row_count) {
      return Corrupt("row counts overflow");
    }
    impl->row_count += rows;
  }
  return Status::OK();
}

// store: to settle what the footer leaves open; null: then that is an error.
Status ReadMetadata(store::Store* store, int64_t footer_bytes, const ReadLimits& limits,
                    Footer::Impl* impl) {
  impl->metadata = ::parquet::FileMetaData::Make(
      impl->tail->data() + (impl->footer_begin - impl->tail_begin),
      static_cast<uint32_t>(footer_bytes), FooterProperties());
  const auto& metadata = *impl->metadata;
  if (metadata.is_encryption_algorithm_set()) {
    return Unsupported("file is encrypted: its footer is signed or some columns are encrypted");
  }
  ARROW_ASSIGN_OR_RAISE(impl->schema, SchemaOf(metadata));
  impl->created_by = metadata.created_by();
  const auto& writer = metadata.writer_version();
  impl->always_compressed =
      writer.VersionLt(::parquet::ApplicationVersion::PARQUET_CPP_10353_FIXED_VERSION());
  const bool old_writer =
      writer.VersionLt(::parquet::ApplicationVersion::PARQUET_816_FIXED_VERSION());
  std::vector<size_t> doubtful;
  for (int i = 0; i < metadata.num_row_groups(); ++i) {
    const Status status = ReadRowGroup(*metadata.RowGroup(i), old_writer, &doubtful, impl);
    if (!status.ok()) return AddContext(status, "row_group", std::to_string(i));
  }
  for (const size_t group : doubtful) {
    const Status status = CountRows(store, group, old_writer, limits, impl);
    if (!status.ok()) return AddContext(status, "row_group", std::to_string(group));
  }
  return SumRows(impl);
}

Result<std::unique_ptr<Footer::Impl>> ReadFooter(store::Store& store,
                                                 std::shared_ptr<const store::Object> object,
                                                 const ReadLimits& limits) {
  if (object->identity.size_bytes < 0) {
    ARROW_ASSIGN_OR_RAISE(auto found, store.Stat(object->path));
    object = std::make_shared<const store::Object>(std::move(found));
  }
  ARROW_ASSIGN_OR_RAISE(End end, ReadEnd(store, object, limits));
  auto impl = std::make_unique<Footer::Impl>();
  impl->object = std::move(object);
  impl->tail = end.tail;
  impl->tail_begin = end.tail_begin;
  impl->footer_begin = end.footer_begin;
  ARROW_RETURN_NOT_OK(
      Guarded("reading the footer", [&] {
        return ReadMetadata(&store, end.footer_bytes, limits, impl.get());
      }));
  return impl;
}

}  // namespace

int32_t ThriftCodec(::parquet::Compression::type codec) {
  switch (codec) {
    case ::parquet::Compression::UNCOMPRESSED: return 0;
    case ::parquet::Compression::SNAPPY: return 1;
    case ::parquet::Compression::GZIP: return 2;
    case ::parquet::Compression::LZO: return 3;
    case ::parquet::Compression::BROTLI: return 4;
    case ::parquet::Compression::LZ4_HADOOP: return 5;
    case ::parquet::Compression::ZSTD: return 6;
    case ::parquet::Compression::LZ4: return 7;
    default: return 255;
  }
}

Footer::Footer() = default;
Footer::~Footer() = default;

Result<std::shared_ptr<const Footer>> Footer::Read(store::Store& store,
                                                   std::shared_ptr<const store::Object> object,
                                                   const ReadLimits& limits) {
  const std::string path = object->path;
  auto impl = ReadFooter(store, std::move(object), limits);
  if (!impl.ok()) return AddContext(impl.status(), "path", path);
  std::shared_ptr<Footer> footer(new Footer());
  footer->impl_ = *std::move(impl);
  return footer;
}

Result<std::shared_ptr<const Footer>> Footer::Parse(std::shared_ptr<const store::Object> object,
                                                    std::string_view bytes) {
  const auto size = static_cast<int64_t>(bytes.size());
  auto impl = std::make_unique<Footer::Impl>();
  impl->tail = arrow::Buffer::FromString(std::string(bytes));
  impl->tail_begin = impl->footer_begin = object->identity.size_bytes - kEndBytes - size;
  impl->object = std::move(object);
  ARROW_RETURN_NOT_OK(Guarded("reading a footer at hand", [&] {
    return ReadMetadata(nullptr, size, {}, impl.get());
  }));
  std::shared_ptr<Footer> footer(new Footer());
  footer->impl_ = std::move(impl);
  return footer;
}

const std::shared_ptr<const Schema>& Footer::schema() const { return impl_->schema; }
const store::Object& Footer::object() const { return *impl_->object; }
int64_t Footer::row_count() const { return impl_->row_count; }
int Footer::row_group_count() const { return static_cast<int>(impl_->row_counts.size()); }
int64_t Footer::row_group_row_count(int row_group) const {
  return impl_->row_counts[static_cast<size_t>(row_group)];
}
const std::string& Footer::created_by() const { return impl_->created_by; }
ByteRange Footer::chunk_range(int row_group, int leaf) const {
  return impl_->chunk(row_group, leaf).bytes;
}
std::optional<ByteRange> Footer::offset_index_range(int row_group, int leaf) const {
  return impl_->chunk(row_group, leaf).offset_index;
}

int64_t Footer::leaf_value_count(int leaf) const {
  int64_t count = 0;
  for (int group = 0; group < row_group_count(); ++group) {
    count += impl_->chunk(group, leaf).value_count;
  }
  return count;
}

std::shared_ptr<const arrow::KeyValueMetadata> Footer::key_values() const {
  const auto& all = impl_->metadata->key_value_metadata();
  if (all == nullptr) return nullptr;
  auto own = std::make_shared<arrow::KeyValueMetadata>();
  for (int64_t i = 0; i < all->size(); ++i) {
    if (all->key(i) != "ARROW:schema") own->Append(all->key(i), all->value(i));
  }
  return own->size() > 0 ? own : nullptr;
}

std::optional<std::string> Footer::key_value(const std::string& key) const {
  const auto& pairs = impl_->metadata->key_value_metadata();
  const int at = pairs == nullptr ? -1 : pairs->FindKey(key);
  if (at < 0) return std::nullopt;
  return pairs->value(at);
}

}  // namespace grebe::pq

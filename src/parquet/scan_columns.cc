// Decoding a few columns of a whole file, by libparquet's Arrow reader over bytes that were read
// and whose page headers were checked before any decoder sees them.
#include <arrow/io/interfaces.h>
#include <arrow/table.h>
#include <parquet/arrow/reader.h>
#include <parquet/file_reader.h>

#include <algorithm>
#include <cstring>

#include "parquet/footer.h"
#include "parquet/footer_internal.h"
#include "parquet/guard.h"
#include "parquet/page_walk.h"
#include "parquet/schema_internal.h"

namespace grebe::pq {
namespace {

// Row groups are read ahead together while their chunks stay below this, and below
// ScanOptions::held_bytes_max.
constexpr int64_t kReadAheadBytes = 32 << 20;
// Of one column of a row group that is read in pieces.
constexpr int64_t kStreamBufferBytesMin = 64 << 10;
constexpr int64_t kStreamBufferBytesMax = 8 << 20;

// The file as libparquet wants to see it. Chunks that were read ahead are served from memory,
// without a copy; anything else is read from the store.
class StoreFile final : public arrow::io::RandomAccessFile {
 public:
  StoreFile(store::Store& store, const Footer::Impl& footer) : store_(store), footer_(footer) {}

  // Replaces what was read ahead.
  void SetAhead(std::vector<std::pair<ByteRange, std::shared_ptr<arrow::Buffer>>> ahead) {
    ahead_ = std::move(ahead);
  }

  arrow::Result<std::shared_ptr<arrow::Buffer>> ReadAt(int64_t position,
                                                       int64_t nbytes) override {
    if (position < 0 || nbytes < 0 || position > size()) {
      return Corrupt("read outside of the file", "offset_bytes", position, "bytes", nbytes);
    }
    const ByteRange range{position, position + std::min(nbytes, size() - position)};
    for (const auto& [held, bytes] : ahead_) {
      if (held.begin <= range.begin && range.end <= held.end) {
        return arrow::SliceBuffer(bytes, range.begin - held.begin, range.size_bytes());
      }
    }
    if (range.empty()) return arrow::Buffer::FromString("");
    const store::ReadRequest request{footer_.object, range};
    ARROW_ASSIGN_OR_RAISE(auto buffers, store_.Read(std::span(&request, 1)));
    return buffers[0];
  }

  arrow::Result<int64_t> ReadAt(int64_t position, int64_t nbytes, void* out) override {
    ARROW_ASSIGN_OR_RAISE(auto bytes, ReadAt(position, nbytes));
    std::memcpy(out, bytes->data(), static_cast<size_t>(bytes->size()));
    return bytes->size();
  }

  arrow::Result<int64_t> GetSize() override { return size(); }
  arrow::Status Close() override {
    closed_ = true;
    return Status::OK();
  }
  bool closed() const override { return closed_; }
  arrow::Result<int64_t> Tell() const override { return position_; }
  arrow::Status Seek(int64_t position) override {
    position_ = position;
    return Status::OK();
  }
  arrow::Result<int64_t> Read(int64_t nbytes, void* out) override {
    ARROW_ASSIGN_OR_RAISE(const int64_t got, ReadAt(position_, nbytes, out));
    position_ += got;
    return got;
  }
  arrow::Result<std::shared_ptr<arrow::Buffer>> Read(int64_t nbytes) override {
    ARROW_ASSIGN_OR_RAISE(auto bytes, ReadAt(position_, nbytes));
    position_ += bytes->size();
    return bytes;
  }

 private:
  int64_t size() const { return footer_.object->identity.size_bytes; }

  store::Store& store_;
  const Footer::Impl& footer_;
  std::vector<std::pair<ByteRange, std::shared_ptr<arrow::Buffer>>> ahead_;
  int64_t position_ = 0;
  bool closed_ = false;
};

class ColumnScan {
 public:
  ColumnScan(store::Store& store, const Footer::Impl& footer, std::vector<int> leaves,
             const ScanOptions& options, const BatchCallback& on_batch)
      : store_(store), footer_(footer), leaves_(std::move(leaves)), options_(options),
        on_batch_(on_batch), file_(std::make_shared<StoreFile>(store, footer)) {}

  Status Run();

 private:
  Status MakeReader();
  Status ReadAhead(int first, int last);
  Status CheckStreamed(int row_group);
  Status ScanRowGroup(int row_group);
  Status Deliver(arrow::RecordBatchReader& batches, int64_t rows_expected);
  int64_t GroupBytes(int row_group) const;
  bool IsStreamed(int row_group) const { return GroupBytes(row_group) > options_.held_bytes_max; }

  store::Store& store_;
  const Footer::Impl& footer_;
  const std::vector<int> leaves_;
  const ScanOptions& options_;
  const BatchCallback& on_batch_;
  const ReadLimits limits_;
  std::shared_ptr<StoreFile> file_;
  std::unique_ptr<::parquet::arrow::FileReader> reader_;
  int64_t first_row_ = 0;
};

int64_t ColumnScan::GroupBytes(int row_group) const {
  int64_t bytes = 0;
  for (const int leaf : leaves_) bytes += footer_.chunk(row_group, leaf).bytes.size_bytes();
  return bytes;
}

Status ColumnScan::MakeReader() {
  arrow::MemoryPool* pool = options_.pool ? options_.pool : arrow::default_memory_pool();
  ::parquet::ReaderProperties properties(pool);
  properties.set_page_checksum_verification(true);
  bool streamed = false;
  for (size_t group = 0; group < footer_.row_counts.size(); ++group) {
    streamed = streamed || IsStreamed(static_cast<int>(group));
  }
  if (streamed) {
    properties.enable_buffered_stream();
    const auto columns = std::max<int64_t>(1, static_cast<int64_t>(leaves_.size()));
    properties.set_buffer_size(std::clamp(options_.held_bytes_max / columns,
                                          kStreamBufferBytesMin, kStreamBufferBytesMax));
  }
  auto arrow_properties = ArrowProperties();
  arrow_properties.set_pre_buffer(false);
  arrow_properties.set_batch_size(options_.batch_rows);
  auto file = ::parquet::ParquetFileReader::Open(file_, properties, footer_.metadata);
  ARROW_ASSIGN_OR_RAISE(reader_, ::parquet::arrow::FileReader::Make(pool, std::move(file),
                                                                    arrow_properties));
  return Status::OK();
}

// Reads the chunks of row groups [first, last) as one wave, and checks their page headers.
Status ColumnScan::ReadAhead(int first, int last) {
  std::vector<store::ReadRequest> requests;
  std::vector<std::pair<const ChunkMeta*, bool>> metas;
  for (int group = first; group < last; ++group) {
    for (const int leaf : leaves_) {
      const ChunkMeta& meta = footer_.chunk(group, leaf);
      if (meta.bytes.empty()) continue;
      requests.push_back({footer_.object, meta.bytes});
      metas.emplace_back(&meta, footer_.schema->leaf_is_repeated(leaf));
    }
  }
  ARROW_ASSIGN_OR_RAISE(auto buffers, store_.Read(requests));
  std::vector<std::pair<ByteRange, std::shared_ptr<arrow::Buffer>>> ahead;
  for (size_t i = 0; i < buffers.size(); ++i) {
    ARROW_RETURN_NOT_OK(CheckPageHeaders(
        *metas[i].first, metas[i].second,
        {buffers[i]->data(), static_cast<size_t>(buffers[i]->size())}, limits_));
    ahead.emplace_back(requests[i].range, std::move(buffers[i]));
  }
  file_->SetAhead(std::move(ahead));
  return Status::OK();
}

// The same for chunks that are too large to be held: their headers are walked first.
Status ColumnScan::CheckStreamed(int row_group) {
  std::vector<PageWalk> walks;
  walks.reserve(leaves_.size());
  for (const int leaf : leaves_) {
    const ChunkMeta& meta = footer_.chunk(row_group, leaf);
    if (meta.value_count == 0) continue;
    walks.push_back(
        PageWalk::OverHeaders(meta, footer_.schema->leaf_is_repeated(leaf), limits_));
  }
  size_t failed = 0;
  file_->SetAhead({});
  return RunWalks(store_, footer_, walks, &failed);
}

Status ColumnScan::Deliver(arrow::RecordBatchReader& batches, int64_t rows_expected) {
  int64_t rows = 0;
  for (;;) {
    if (options_.stop != nullptr) ARROW_RETURN_NOT_OK(options_.stop->Check());
    std::shared_ptr<arrow::RecordBatch> batch;
    ARROW_RETURN_NOT_OK(Guarded("decoding a column", [&] { return batches.ReadNext(&batch); }));
    if (batch == nullptr) break;
    if (batch->num_rows() == 0) continue;
    if (batch->num_rows() > rows_expected - rows) {
      return Corrupt("column has more rows than its row group", "expected", rows_expected);
    }
    ARROW_RETURN_NOT_OK(on_batch_(batch, RowIndex{first_row_ + rows}));
    rows += batch->num_rows();
  }
  if (rows != rows_expected) {
    return Corrupt("column has fewer rows than its row group", "expected", rows_expected, "got",
                   rows);
  }
  first_row_ += rows;
  return Status::OK();
}

Status ColumnScan::ScanRowGroup(int row_group) {
  const int64_t rows = footer_.row_counts[static_cast<size_t>(row_group)];
  if (rows == 0) return Status::OK();
  ARROW_ASSIGN_OR_RAISE(const int64_t claimed, Guarded("reading row group metadata", [&] {
                          return footer_.metadata->RowGroup(row_group)->num_rows();
                        }));
  // The batch reader stops at the claimed row count; ReadRowGroup reads all values, but reserves
  // memory for the claim. So each takes the lies that it bears.
  if (claimed >= rows) {
    ARROW_ASSIGN_OR_RAISE(auto batches, Guarded("opening columns", [&] {
                            return reader_->GetRecordBatchReader({row_group}, leaves_);
                          }));
    return Deliver(*batches, rows);
  }
  ARROW_ASSIGN_OR_RAISE(auto table, Guarded("decoding columns", [&] {
                          return reader_->ReadRowGroup(row_group, leaves_);
                        }));
  arrow::TableBatchReader batches(table);
  batches.set_chunksize(options_.batch_rows);
  return Deliver(batches, rows);
}

Status ColumnScan::Run() {
  ARROW_RETURN_NOT_OK(Guarded("opening the file", [&] { return MakeReader(); }));
  const int groups = static_cast<int>(footer_.row_counts.size());
  int ahead_end = 0;
  for (int group = 0; group < groups; ++group) {
    Status status;
    if (IsStreamed(group)) {
      status = CheckStreamed(group);
      ahead_end = group + 1;
    } else if (group >= ahead_end) {
      int64_t bytes = GroupBytes(group);
      ahead_end = group + 1;
      const int64_t bytes_max = std::min(kReadAheadBytes, options_.held_bytes_max);
      while (ahead_end < groups && bytes + GroupBytes(ahead_end) <= bytes_max) {
        bytes += GroupBytes(ahead_end++);
      }
      status = ReadAhead(group, ahead_end);
    }
    if (status.ok()) status = ScanRowGroup(group);
    if (!status.ok()) return AddContext(status, "row_group", std::to_string(group));
  }
  return Status::OK();
}

}  // namespace

Status ScanColumns(store::Store& store, const Footer& footer, const std::vector<int>& leaves,
                   const ScanOptions& options, const BatchCallback& on_batch) {
  std::vector<int> sorted = leaves;
  std::ranges::sort(sorted);
  const auto same = std::ranges::unique(sorted);
  sorted.erase(same.begin(), same.end());
  if (sorted.empty() || sorted.front() < 0 || sorted.back() >= footer.impl().leaf_count()) {
    return InvalidArgument("no such leaf column", "leaves", sorted.size());
  }
  if (options.batch_rows <= 0) return InvalidArgument("batch_rows must be positive");
  const Status status =
      ColumnScan(store, footer.impl(), std::move(sorted), options, on_batch).Run();
  return AddContext(status, "path", footer.object().path);
}

}  // namespace grebe::pq

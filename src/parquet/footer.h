// The footer of a Parquet file and what Grebe takes from it: schema, page map, column values.
// Read when a file is indexed or inspected; never on the lookup path.
#pragma once

#include <arrow/record_batch.h>
#include <arrow/type_fwd.h>
#include <arrow/util/key_value_metadata.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/stop.h"
#include "base/types.h"
#include "parquet/page_map.h"
#include "parquet/file_schema.h"
#include "store/store.h"

namespace grebe::pq {

// Limits that keep hostile files from using memory or time.
struct ReadLimits {
  int64_t footer_bytes_max = 256 << 20;
  int64_t page_bytes_max = 1 << 30;        // compressed or decompressed size of one page
  // A page may not decompress to more than ratio_max times its compressed size + 1 MiB.
  int64_t decompress_ratio_max = 16384;
};

class Footer {
 public:
  // Reads and parses the footer. Cost: one range read of 64 KiB at the file's end, and a second
  // one when the footer is larger. Errors: Corrupt, Unsupported (encrypted, ...), Stale, store's.
  static Result<std::shared_ptr<const Footer>> Read(store::Store& store,
                                                    std::shared_ptr<const store::Object> object,
                                                    const ReadLimits& limits = {});
  // A footer whose bytes (Thrift alone) are at hand, as the file's writer has them: no request.
  static Result<std::shared_ptr<const Footer>> Parse(std::shared_ptr<const store::Object> object,
                                                     std::string_view bytes);
  ~Footer();

  const std::shared_ptr<const Schema>& schema() const;
  const store::Object& object() const;
  int64_t row_count() const;         // the sum over the row groups, not the footer's own claim
  int row_group_count() const;
  int64_t row_group_row_count(int row_group) const;
  const std::string& created_by() const;
  // Levels of a leaf column in the whole file: its values and nulls, and one for each empty list.
  int64_t leaf_value_count(int leaf) const;
  // The file's own key-value pairs, ARROW:schema left out; null when there are none.
  std::shared_ptr<const arrow::KeyValueMetadata> key_values() const;
  // Where the chunk's pages lie, dictionary among them; and its OffsetIndex, if it has one.
  ByteRange chunk_range(int row_group, int leaf) const;
  std::optional<ByteRange> offset_index_range(int row_group, int leaf) const;
  // A value of the file's key-value metadata; nullopt: no such key.
  std::optional<std::string> key_value(const std::string& key) const;

  // For this room only: the libparquet object (a std::shared_ptr<::parquet::FileMetaData>).
  struct Impl;
  const Impl& impl() const { return *impl_; }

 private:
  Footer();
  std::unique_ptr<Impl> impl_;
};

// Finds every page of every chunk: from the OffsetIndex where there is one, else from the page
// headers (payloads are skipped, not read, except v1 chunks of repeated columns without an
// OffsetIndex, whose repetition levels must be decoded). Cost: one range read for all offset
// indexes that lie together; header walks read 64 KiB at a time. Errors: Corrupt, Unsupported.
Result<FilePages> FindPages(store::Store& store, const Footer& footer,
                            const ReadLimits& limits = {});

// One column chunk of a file.
struct ChunkId {
  int row_group = 0;
  int leaf = 0;
  auto operator<=>(const ChunkId&) const = default;
};
// The same for a few chunks, in their order.
Result<std::vector<ChunkPages>> FindChunkPages(store::Store& store, const Footer& footer,
                                               std::span<const ChunkId> chunks,
                                               const ReadLimits& limits = {});

// Decodes some leaf columns of the whole file, in row order, a batch at a time (batches never
// span row groups). The batch has one column per TOP-LEVEL field that owns a requested leaf, in
// schema order whatever the order of `leaves` (as Schema::Project gives them).
// Only those chunks are read. on_batch gets the batch and its first row in the file.
struct ScanOptions {
  int64_t batch_rows = 64 << 10;
  arrow::MemoryPool* pool = nullptr;   // null: the default pool
  // Of column chunks as they are in the file. Row groups below it are read ahead together, larger
  // ones in pieces, after a walk over their page headers.
  int64_t held_bytes_max = 64 << 20;
  const StopToken* stop = nullptr;
};
using BatchCallback =
    std::function<Status(const std::shared_ptr<arrow::RecordBatch>&, RowIndex first_row)>;
Status ScanColumns(store::Store& store, const Footer& footer, const std::vector<int>& leaves,
                   const ScanOptions& options, const BatchCallback& on_batch);

}  // namespace grebe::pq

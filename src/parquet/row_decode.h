// From page bytes to the wanted rows. No I/O: the caller fetches what ChunkRead names.
//
// Three steps, so that many chunks of many files decode in parallel:
//   PlanChunk: rows -> the pages (exactly the needed ones) and, if not cached, the dictionary
//   DecodeChunk: those pages' bytes -> the wanted rows' levels and values of one leaf (a LeafSlice)
//   Assemble: the slices of all leaves, in row order -> one RecordBatch
// Decoders only ever see pages whose headers were validated. Corrupt pages give Corrupt.
// Threads: all functions are safe; a LeafSlice is immutable.
#pragma once

#include <arrow/record_batch.h>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/types.h"
#include "parquet/footer.h"
#include "parquet/page_map.h"
#include "parquet/file_schema.h"

namespace grebe::pq {

// Caches shared by lookups: decoded dictionaries and decompressed pages, each with a byte budget
// (least recently used goes first). Keyed by (file key, row group, leaf[, page]); the file key is
// the caller's and must change when the file's identity does. Threads: safe.
class DecodeCache {
 public:
  DecodeCache(int64_t dictionary_bytes_max, int64_t page_bytes_max);
  ~DecodeCache();
  struct Counters {
    int64_t dictionary_hits = 0, dictionary_misses = 0;
    int64_t page_hits = 0, page_misses = 0;
  };
  Counters counters() const;
  struct Impl;
  Impl& impl() const { return *impl_; }

 private:
  std::unique_ptr<Impl> impl_;
};

// What must be read of one column chunk to get some of its rows.
struct ChunkRead {
  uint64_t file_key = 0;
  int row_group = 0;
  int leaf = 0;
  ChunkInfo info;
  std::vector<RowRange> rows;              // of the row group; sorted, disjoint, not empty
  std::vector<PageLocation> pages;         // the needed pages, in file order
  std::vector<int> page_indexes;           // their ordinals in the chunk
  // Parallel to pages: the range still has to be fetched (false: decompressed page is cached).
  std::vector<bool> page_needed;
  bool dictionary_needed = false;          // info.dictionary must be fetched: not cached
  // Held so that an eviction between plan and decode does no harm.
  std::shared_ptr<const void> cached_dictionary;
  std::vector<std::shared_ptr<const void>> cached_pages;
};

// Plans one chunk. `cache` may be null. Cost: no I/O; about 100 ns a page. Errors: Corrupt.
Result<ChunkRead> PlanChunk(const PageMap& map, uint64_t file_key, int row_group, int leaf,
                            std::span<const RowRange> rows, DecodeCache* cache);

// The same of a chunk whose pages were just found. row_count: of the row group.
Result<ChunkRead> PlanChunk(const ChunkPages& chunk, int64_t row_count, uint64_t file_key,
                            int row_group, int leaf, std::span<const RowRange> rows,
                            DecodeCache* cache);

// The bytes of a ChunkRead's pages, parallel to pages (null where page_needed is false).
struct ChunkBytes {
  std::vector<std::shared_ptr<arrow::Buffer>> pages;
  std::shared_ptr<arrow::Buffer> dictionary;   // null when not needed
};

// The wanted rows of one leaf.
class LeafSlice;

struct DecodeOptions {
  DecodeCache* cache = nullptr;
  bool verify_crc = true;                 // page CRCs, where the page has one
  ReadLimits limits;
  // Slices and pages come from it (null: the default pool) and must not outlive it; what the cache
  // keeps comes from the default pool.
  arrow::MemoryPool* pool = nullptr;
};

// Errors: Corrupt, Unsupported, LimitExceeded (one slice takes more than 1 GiB).
Result<std::shared_ptr<const LeafSlice>> DecodeChunk(const Schema& schema, const ChunkRead& read,
                                                     const ChunkBytes& bytes,
                                                     const DecodeOptions& options);

// Puts rows together. slices[i] are the slices of projection.leaves[i], one per chunk read, in
// row order; every leaf must have the same total rows (else Corrupt). All slices must come from
// files with this schema. Every logical type and nesting that libparquet's Arrow reader gives,
// gives exactly the same here (type, value, nulls).
Result<std::shared_ptr<arrow::RecordBatch>> Assemble(
    const Schema& schema, const Projection& projection,
    std::span<const std::vector<std::shared_ptr<const LeafSlice>>> slices,
    arrow::MemoryPool* pool = nullptr);

}  // namespace grebe::pq

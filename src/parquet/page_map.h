// The page map of one Parquet file: where each page of each column chunk lies, and which rows it
// holds, without the footer. Built once when a file is indexed; a lookup needs nothing else.
//
// Rows are counted within a row group. Pages of a chunk are in file order, which is row order.
// Packed goal: at most 4 bytes a page plus a small fixed part a chunk; row -> page in at most
// 100 ns. Format: docs/format/page-map.md. Threads: immutable, safe.
#pragma once

#include <arrow/buffer.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/types.h"

namespace grebe::pq {

// One data page. `bytes` covers its header and its (compressed) payload.
struct PageLocation {
  ByteRange bytes;
  // Rows of the row group that BEGIN in this page: [rows.begin, rows.end). Empty when the page
  // only continues a row, or has no values.
  RowRange rows;
  // The page's first values belong to the row before rows.begin (a v1 page of a repeated
  // column): to read that row the pages before must be read as well.
  bool begins_mid_row = false;
};

// What a reader must know of one column chunk besides its pages.
struct ChunkInfo {
  int32_t codec = 0;                     // parquet::Compression as its Thrift number
  // The chunk's v2 pages are compressed even where their headers say they are not (parquet-cpp
  // before Arrow 3 wrote the flag wrongly). Means nothing for v1 pages or codec 0.
  bool always_compressed = false;
  int64_t value_count = 0;               // levels in the chunk (num_values)
  std::optional<ByteRange> dictionary;   // header and payload of the dictionary page
  int32_t page_count = 0;
};

// Plain description of a file's pages: what the builder makes and the packed form holds.
struct ChunkPages {
  ChunkInfo info;
  std::vector<PageLocation> pages;
};
struct RowGroupPages {
  int64_t row_count = 0;
  std::vector<ChunkPages> chunks;  // one per leaf column
};
struct FilePages {
  std::vector<RowGroupPages> row_groups;
};

class PageMap {
 public:
  // Opens a packed page map; the map keeps `packed` alive. Validates structure (not each page).
  // Errors: Corrupt.
  static Result<std::shared_ptr<const PageMap>> Open(std::shared_ptr<arrow::Buffer> packed);
  ~PageMap();

  int row_group_count() const;
  int leaf_count() const;
  int64_t row_count() const;                       // of the file
  RowRange row_group_rows(int row_group) const;    // in rows of the file
  int FindRowGroup(RowIndex row) const;            // REQUIRES: row < row_count()

  ChunkInfo chunk(int row_group, int leaf) const;
  // REQUIRES: page < chunk(...).page_count. Corrupt bytes give a Corrupt status.
  Result<PageLocation> page(int row_group, int leaf, int page) const;
  // The pages that hold any value of the rows (of the row group), as [first, last), including
  // pages that merely continue the last of them. Empty only when rows is empty.
  struct PageSpan { int first = 0; int last = 0; };
  Result<PageSpan> FindPages(int row_group, int leaf, RowRange rows) const;

  int64_t memory_bytes() const;

 private:
  PageMap();
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Packs a description. Errors: InvalidArgument when it is not consistent (rows not covering the
// row group, ranges that overlap or run backwards).
Result<std::string> PackPageMap(const FilePages& pages);

}  // namespace grebe::pq

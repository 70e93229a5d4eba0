// What is known of a data file without reading its data: rows, bytes, and the bounds of every leaf
// column, for the file, each row group and (on request) each page. What may be believed, and what a
// bound means, is told in parquet/leaf_bounds.h.
// Threads: plain values; safe.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "parquet/file_schema.h"
#include "parquet/footer.h"
#include "parquet/leaf_bounds.h"
#include "store/store.h"

namespace grebe::scan {

struct ChunkStats {
  int64_t bytes = 0;          // of its pages, compressed, dictionary among them
  pq::Bounds bounds;
};

struct RowGroupStats {
  int64_t rows = 0;
  std::vector<ChunkStats> leaves;   // one per leaf column of the schema
  int64_t bytes() const;
};

struct FileStats {
  int64_t rows = 0;
  int64_t bytes = 0;                // of the whole file
  std::shared_ptr<const pq::Schema> schema;
  std::vector<RowGroupStats> row_groups;
  std::vector<pq::Bounds> leaves;   // per leaf column, over all row groups
  // The file's "grebe.layout" metadata: how a rewrite laid it out, as JSON (docs/format/stats.md);
  // empty: not said.
  std::string layout;
};

inline constexpr const char* kLayoutKey = "grebe.layout";

// From the footer, without I/O.
FileStats StatsOf(const pq::Footer& footer);

// The bounds that hold for all parts together: a part without a bound takes the bound away, one of
// nulls alone does not.
pq::Bounds JoinBounds(std::span<const pq::Bounds> parts);

// [row group][leaf of `leaves`] -> its pages in row order; empty where there is no page index that
// can be believed. Cost: one wave.
using PageStats = std::vector<std::vector<std::vector<pq::PageBounds>>>;
Result<PageStats> ReadPageStats(store::Store& store, const pq::Footer& footer,
                                std::span<const int> leaves);

// File and row group level as bytes, for an index to keep: docs/format/stats.md.
std::string PackStats(const pq::Footer& footer);
// Errors: Corrupt.
Result<FileStats> UnpackStats(std::shared_ptr<const pq::Schema> schema, std::string_view packed);

}  // namespace grebe::scan

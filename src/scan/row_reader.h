// Chosen rows of chosen row groups, in one wave: plan -> fetch -> decode -> assemble.
#pragma once

#include <arrow/record_batch.h>

#include <cstdint>
#include <memory>
#include <span>
#include <unordered_set>
#include <vector>

#include "base/status.h"
#include "base/types.h"
#include "parquet/row_decode.h"
#include "scan/ahead_store.h"
#include "scan/scan_file.h"
#include "table/row_shape.h"

namespace grebe::scan {

struct RowsWanted {
  const ScanFile* file = nullptr;     // the pages of the shape's leaves are known
  int row_group = 0;
  std::vector<RowRange> rows;         // of the row group; sorted, disjoint, none empty
};

struct RowReaderOptions {
  pq::DecodeCache* cache = nullptr;
  bool coalesce = true;
  bool verify_crc = true;
  arrow::MemoryPool* pool = nullptr;
  // The pages that were counted before, by file and place: each counts once, although rows of one
  // page may be read in several goes.
  std::unordered_set<uint64_t>* counted_pages = nullptr;
};

struct RowReaderCounters {
  int64_t gap_bytes = 0;
  int64_t pages = 0;              // data pages fetched, not counted before
  int64_t dictionary_pages = 0;   // fetched
  int64_t cache_hits = 0;
  int64_t fetch_us = 0, decode_us = 0;
};

// out[i]: the rows of wanted[i], of the shape's schema; or why its file could not be read. Cost:
// one wave of the needed pages and dictionaries that are neither in the cache nor read ahead (the
// store counts it). Adds to *counters.
std::vector<Result<std::shared_ptr<arrow::RecordBatch>>> ReadRows(
    AheadStore& store, const table::RowShape& shape, std::span<const RowsWanted> wanted,
    const RowReaderOptions& options, RowReaderCounters* counters);

}  // namespace grebe::scan

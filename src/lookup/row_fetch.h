// Rows of known places, in one wave: plan -> fetch -> decode.
#pragma once

#include <arrow/record_batch.h>

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/status.h"
#include "base/types.h"
#include "grebe/explain.h"
#include "index/index_view.h"
#include "table/row_shape.h"
#include "parquet/row_decode.h"
#include "store/store.h"

namespace grebe::lookup {

// Rows wanted of one file.
struct FileRows {
  uint32_t file = 0;            // ordinal among IndexView::files
  std::vector<RowRange> rows;   // rows of the file; sorted, disjoint, none empty
};

struct FetchOptions {
  pq::DecodeCache* cache = nullptr;
  bool coalesce = true;
  bool verify_crc = true;
  arrow::MemoryPool* pool = nullptr;
};

// Some columns of some rows. Several parts are read in one wave (all columns of the rows to
// return, and just the key columns of rows that a limit skips).
struct FetchPart {
  const table::RowShape* shape = nullptr;
  std::vector<FileRows> rows;   // files ascending and distinct
};

// Reads the parts' rows, each part as one batch of its shape's schema, rows in the order given.
// The files' page maps must be loaded (IndexView::Find does). Cost: one wave of exactly the needed
// pages and the dictionary pages not yet cached (plus bridged gaps when coalescing), or none when
// all are cached. Adds to *explain. Errors: Stale, NotFound, Corrupt, Transient, Permission; the
// message names the file. Threads: safe.
Result<std::vector<std::shared_ptr<arrow::RecordBatch>>> FetchRows(
    index::IndexView& view, store::Store& store, std::span<const FetchPart> parts,
    const FetchOptions& options, Explain* explain);

}  // namespace grebe::lookup

// The rows of one data page, front to back: some are skipped, some are taken into a slice.
//
// Rows are told by repetition levels: a row begins where the level is 0. A page of a repeated
// column may begin in the middle of a row (its tail), and its last row may go on in the next page.
#pragma once

#include <parquet/schema.h>

#include <cstdint>

#include "base/status.h"
#include "parquet/decode_cache.h"
#include "parquet/leaf_slice.h"
#include "parquet/page_bytes.h"
#include "parquet/run_reader.h"
#include "parquet/value_reader.h"

namespace grebe::pq {

class PageRows {
 public:
  struct Source {
    PageBytes* page = nullptr;
    const CachedPage* cached = nullptr;  // where the page comes from the cache
    DictionaryReader* dictionary = nullptr;
    const ::parquet::ColumnDescriptor* descriptor = nullptr;
    LeafShape shape;
    const ReadLimits* limits = nullptr;
    arrow::MemoryPool* pool = nullptr;
  };

  // The page must outlive the rows. Errors: Corrupt, Unsupported.
  Status Open(const Source& source);

  // The levels before the first row that begins here: they belong to the row before. The first
  // drops them, the second adds them to the slice (which adds no row).
  Status SkipTail();
  Status TakeTail(LeafSlice* out);
  bool has_tail();

  // The next `count` rows that begin here, each as far as this page has it. REQUIRES: the tail
  // was skipped or taken. Errors: Corrupt when the page has fewer rows, or is damaged.
  Status SkipRows(int64_t count);
  Status TakeRows(int64_t count, LeafSlice* out);

  // Every level of the page was passed.
  bool at_end() const { return levels_left_ == 0; }

 private:
  Status OpenLevels(int64_t* values_begin);
  Status OpenV1Levels(int16_t level_max, int32_t encoding, int64_t* at, RunReader* out);
  Status Skip(int64_t levels);
  Status Take(int64_t levels, const RunReader& repetition, LeafSlice* out);
  bool repeated() const { return source_.shape.repetition_level_max > 0; }

  Source source_;
  RunReader repetition_;
  RunReader definition_;
  ValueReader values_;
  int64_t levels_left_ = 0;
};

}  // namespace grebe::pq

// What a Parquet file says of a leaf column's values: least, greatest, nulls; per row group (its
// statistics) and per page (the page index). Only what may be believed comes out:
//   - bounds without a known order are no bounds: a column order this reader does not know, none at
//     all (the deprecated min and max, except for plain signed numbers), INT96, intervals, writers
//     known to be wrong
//   - so are NaN, and both when one is no value of the type: stored values may be none either, and
//     wrap around when they are read
//   - statistics that contradict themselves say nothing at all: a least above the greatest, more
//     nulls than values, bounds where all are null
//   - a bound that was shortened still is one: min is at most every value, max at least, always
//   - bounds say nothing of NaN values: a float column may hold some wherever it holds values
//   - zero as a bound stands for both zeros: -0.0 as min, 0.0 as max
//   - an absent null count is not zero; one of a leaf inside an optional group is as good as
//     absent, short of all nulls: writers forget the group's nulls
// Values inside lists are bounded like others; what counts as null is then a missing element too.
// A false bound that looks like a true one is believed: only reading the values would tell.
//
// (Not named statistics.h: libparquet has a header of that name and path.)
// Threads: pure functions but for the reads; safe.
#pragma once

#include <arrow/scalar.h>
#include <arrow/type.h>
#include <arrow/util/decimal.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/types.h"
#include "parquet/footer.h"
#include "store/store.h"

namespace grebe::pq {

// Why a bound is missing.
enum class BoundsNote : uint8_t {
  kNone = 0,            // nothing is missing, or there are only nulls
  kMissing = 1,         // the file has none
  kUntrusted = 2,       // the order is unknown, or the writer is known to be wrong
  kContradictory = 3,   // min above max, nulls that cannot be that many
  kNaN = 4,
  kUnreadable = 5,      // not a value of the column's type
};

// As the file has them, in PLAIN encoding (byte arrays without their length).
struct RawBounds {
  std::optional<std::string> min, max;
  // The bound is a value of the column, not a shortened one. False: not known.
  bool min_exact = false, max_exact = false;
  std::optional<int64_t> null_count;
  int64_t value_count = 0;                // nulls included; rows, in a column that is not repeated
  BoundsNote note = BoundsNote::kNone;
};

// The same, decoded. Scalars have the ComparableType of the leaf's Arrow type.
struct Bounds {
  std::shared_ptr<arrow::Scalar> min, max;  // null: not known, or there is no value
  bool min_exact = false, max_exact = false;
  std::optional<int64_t> null_count;
  int64_t value_count = 0;
  BoundsNote note = BoundsNote::kNone;

  bool only_nulls() const { return null_count && *null_count == value_count; }
  bool has_both() const { return min != nullptr && max != nullptr; }
};

// The type in which values are compared: a dictionary's values, an extension's storage, decimals of
// at least 128 bits and of the greatest precision (files hold values wider than the one they
// declare), half floats as floats, fixed-size and view binaries as plain ones.
std::shared_ptr<arrow::DataType> ComparableType(const std::shared_ptr<arrow::DataType>& type);

// A decimal, by its unscaled value, as a scalar of this ComparableType; null: wider than its bits.
std::shared_ptr<arrow::Scalar> DecimalScalar(const arrow::Decimal256& unscaled,
                                             const std::shared_ptr<arrow::DataType>& type);

// The leaf's own Arrow type.
std::shared_ptr<arrow::DataType> LeafArrowType(const Schema& schema, int leaf);

// -1, 0 or 1. REQUIRES: both valid, of one ComparableType that has an order; no NaN.
int CompareScalars(const arrow::Scalar& a, const arrow::Scalar& b);

// From the footer, without I/O. Never fails: what cannot be read is unknown.
RawBounds ReadChunkBounds(const Footer& footer, int row_group, int leaf);
Bounds DecodeBounds(const Schema& schema, int leaf, const RawBounds& raw);
inline Bounds ChunkBounds(const Footer& footer, int row_group, int leaf) {
  return DecodeBounds(*footer.schema(), leaf, ReadChunkBounds(footer, row_group, leaf));
}

// The bounds of one page. rows: of the row group. Of a repeated column value_count is -1: unknown.
struct PageBounds {
  RowRange rows;
  Bounds bounds;
};

// Where the chunk's ColumnIndex and OffsetIndex lie; empty when it does not have both.
std::vector<ByteRange> PageIndexRanges(const Footer& footer, ChunkId chunk);

// The pages' bounds of each chunk, in row order, together covering its rows; empty for a chunk
// without a page index, or with one that contradicts itself, the footer, or the chunk's statistics:
// numbers of pages that differ, an order that is not there, null pages that hold values, bounds
// beyond the chunk's. Pages without rows are left out. Cost: one wave of the indexes (near ones in
// one request). Errors: the store's; damage is not one.
Result<std::vector<std::vector<PageBounds>>> ReadPageBounds(store::Store& store,
                                                            const Footer& footer,
                                                            std::span<const ChunkId> chunks);

}  // namespace grebe::pq

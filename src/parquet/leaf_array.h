// One leaf's slices as an Arrow array. For this room only.
#pragma once

#include <arrow/array/data.h>
#include <arrow/type.h>
#include <parquet/level_conversion.h>

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/status.h"
#include "parquet/leaf_slice.h"

namespace grebe::pq {

// The slices of one leaf, in row order, and their sums.
struct LeafSlices {
  std::span<const std::shared_ptr<const LeafSlice>> slices;
  int64_t row_count = 0;
  int64_t level_count = 0;
  int64_t value_count = 0;
  int64_t value_bytes = 0;

  explicit LeafSlices(std::span<const std::shared_ptr<const LeafSlice>> slices_);
};

// The slots of the array that the leaf makes: a slot a level, but for levels that say that a list
// above holds nothing there. Nulls of any ancestor below the innermost list are nulls here.
//
// Gives exactly the array that libparquet's Arrow reader gives for a leaf of this type: a field
// that is not nullable has no validity, and zeros where an ancestor is null. Errors: Corrupt,
// Unsupported (a type this does not build), LimitExceeded (more than 2 GiB in 32-bit offsets).
Result<std::shared_ptr<arrow::ArrayData>> BuildLeafArray(
    const LeafSlices& leaf, const ::parquet::internal::LevelInfo& level_info,
    const std::shared_ptr<arrow::DataType>& type, bool nullable, arrow::MemoryPool* pool);

}  // namespace grebe::pq

// The order that a layout gives to sampled rows. For src/layout/advisor.cc.
#pragma once

#include <arrow/array.h>
#include <arrow/record_batch.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "curve/curve.h"
#include "layout/table_tree.h"

namespace grebe::layout {

// A column of the sample in numbers.
struct RankedColumn {
  std::vector<uint32_t> ranks;          // of each row, from 1; 0: null
  std::vector<int64_t> first_rows;      // of each rank: a row that has it; of rank 0: -1
  std::vector<uint64_t> words;          // raw mode: order-preserving, 8 bytes
  int64_t nulls = 0;
  bool has_nan = false;                 // then NaN is the highest rank
  int64_t distinct() const { return static_cast<int64_t>(first_rows.size()) - 1; }
};
// Errors: InvalidArgument for a type without an order.
Result<RankedColumn> RankColumn(const arrow::Array& values);

// Rows in order, cut into `pieces`; ends of the pieces, the last one all rows.
struct CutOrder {
  std::vector<uint32_t> rows;
  std::vector<size_t> ends;
};
using ColumnRefs = std::vector<const RankedColumn*>;
// By the first column, then the second, ..; cut into equal pieces.
CutOrder SortOrder(const ColumnRefs& columns, int64_t pieces);
// Along a curve; cut at its highest borders between 0.7 and 1.4 of an equal piece. bits_max: as of
// LayoutSpec, in rank mode.
CutOrder CurveOrder(curve::CurveKind kind, bool raw, const ColumnRefs& columns, int64_t pieces,
                    const std::vector<int>& bits_max = {});
// By the tree's leaves.
Result<CutOrder> TreeOrder(const TableTree& tree, const arrow::RecordBatch& rows);
// By a hash of the column's value into `pieces` buckets.
CutOrder BucketOrder(const RankedColumn& column, int64_t pieces);

}  // namespace grebe::layout

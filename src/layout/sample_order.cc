#include "layout/sample_order.h"

#include <arrow/array/array_primitive.h>
#include <arrow/compute/api_vector.h>
#include <arrow/scalar.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <numeric>

#include "base/hash.h"
#include "curve/ordered_bytes.h"
#include "curve/rank.h"
#include "layout/cuts.h"
#include "layout/value_order.h"

namespace grebe::layout {
namespace {

constexpr int kRankBits = 16;

// Ids of a column for a curve, and how many bits they have.
std::vector<uint64_t> IdsOf(const RankedColumn& column, bool raw, bool spread, int* bits) {
  const size_t rows = column.ranks.size();
  std::vector<uint64_t> ids(rows);
  if (raw) {
    *bits = 64;
    for (size_t i = 0; i < rows; ++i) {
      ids[i] = curve::OrNull(column.ranks[i] != 0, column.words[i]);
    }
    return ids;
  }
  std::vector<uint64_t> values;
  for (uint32_t rank : column.ranks) {
    if (rank != 0) values.push_back(rank);
  }
  const curve::Ranks64 ranks(values, {uint32_t{1} << kRankBits, column.nulls > 0});
  *bits = spread ? kRankBits : std::max(1, static_cast<int>(std::bit_width(ranks.count() - 1)));
  const std::vector<uint32_t> places =
      spread ? curve::SpreadIds(ranks.count(), kRankBits) : std::vector<uint32_t>{};
  for (size_t i = 0; i < rows; ++i) {
    const uint32_t id = column.ranks[i] == 0 ? ranks.null_id() : ranks.Id(column.ranks[i]);
    ids[i] = spread ? places[id] : id;
  }
  return ids;
}

std::vector<uint32_t> AllRows(size_t count) {
  std::vector<uint32_t> rows(count);
  std::iota(rows.begin(), rows.end(), 0);
  return rows;
}

std::vector<size_t> EqualEnds(size_t rows, int64_t pieces) {
  std::vector<size_t> ends;
  for (int64_t p = 1; p <= pieces; ++p) {
    ends.push_back(rows * static_cast<size_t>(p) / static_cast<size_t>(pieces));
  }
  return ends;
}

// Rows by the number of their piece, of which there are `pieces`.
CutOrder PieceOrder(const std::vector<uint32_t>& piece_of, int64_t pieces) {
  CutOrder out{AllRows(piece_of.size()), std::vector<size_t>(static_cast<size_t>(pieces))};
  std::stable_sort(out.rows.begin(), out.rows.end(),
                   [&](uint32_t a, uint32_t b) { return piece_of[a] < piece_of[b]; });
  for (const uint32_t piece : piece_of) ++out.ends[piece];
  std::partial_sum(out.ends.begin(), out.ends.end(), out.ends.begin());
  return out;
}

}  // namespace

Result<RankedColumn> RankColumn(const arrow::Array& values) {
  RankedColumn out;
  const auto rows = static_cast<size_t>(values.length());
  out.ranks.assign(rows, 0);
  out.words.assign(rows, 0);
  out.first_rows = {-1};
  out.nulls = values.null_count();
  arrow::compute::ArraySortOptions options;
  ARROW_ASSIGN_OR_RAISE(const auto sorted,
                        arrow::compute::SortIndices(values, options));
  const auto& order = static_cast<const arrow::UInt64Array&>(*sorted);
  arrow::EqualOptions equal = arrow::EqualOptions::Defaults().nans_equal(true);
  ARROW_RETURN_NOT_OK(ValueWords(values, out.words.data()));
  for (int64_t i = 0; i < order.length(); ++i) {
    const auto row = static_cast<int64_t>(order.Value(i));
    if (values.IsNull(row)) break;    // at the end
    const int64_t last = out.first_rows.back();
    if (last < 0 || !values.RangeEquals(last, last + 1, row, values, equal)) {
      out.first_rows.push_back(row);
      ARROW_ASSIGN_OR_RAISE(const auto value, values.GetScalar(row));
      if (value->type->id() == arrow::Type::DOUBLE) {
        out.has_nan = std::isnan(static_cast<const arrow::DoubleScalar&>(*value).value);
      } else if (value->type->id() == arrow::Type::FLOAT) {
        out.has_nan = std::isnan(static_cast<const arrow::FloatScalar&>(*value).value);
      }
    }
    out.ranks[static_cast<size_t>(row)] = static_cast<uint32_t>(out.first_rows.size() - 1);
  }
  return out;
}

CutOrder SortOrder(const ColumnRefs& columns, int64_t pieces) {
  CutOrder out{AllRows(columns[0]->ranks.size()), {}};
  std::stable_sort(out.rows.begin(), out.rows.end(), [&](uint32_t a, uint32_t b) {
    for (const RankedColumn* column : columns) {
      if (column->ranks[a] != column->ranks[b]) return column->ranks[a] < column->ranks[b];
    }
    return false;
  });
  out.ends = EqualEnds(out.rows.size(), pieces);
  return out;
}

CutOrder CurveOrder(curve::CurveKind kind, bool raw, const ColumnRefs& columns, int64_t pieces,
                    const std::vector<int>& bits_max) {
  std::vector<std::vector<uint64_t>> ids;
  std::vector<int> bits;
  for (size_t c = 0; c < columns.size(); ++c) {
    const bool few = !bits_max.empty() && bits_max[c] > 0;
    bits.push_back(0);
    ids.push_back(IdsOf(*columns[c], raw, few || kind == curve::CurveKind::kHilbert, &bits[c]));
    if (!few || bits_max[c] >= bits[c]) continue;
    for (uint64_t& id : ids[c]) id >>= bits[c] - bits_max[c];
    bits[c] = bits_max[c];
  }
  const curve::Curve curve(kind, bits);
  std::vector<const uint64_t*> arrays;
  for (const auto& some : ids) arrays.push_back(some.data());
  const size_t rows = ids[0].size();
  const auto size = static_cast<size_t>(curve.key_bytes());
  std::vector<uint8_t> keys(rows * size);
  curve.Keys(arrays, rows, keys.data());
  CutOrder out{AllRows(rows), {}};
  std::stable_sort(out.rows.begin(), out.rows.end(), [&](uint32_t a, uint32_t b) {
    return std::memcmp(&keys[a * size], &keys[b * size], size) < 0;
  });
  const auto target = std::max<int64_t>(
      1, std::llround(static_cast<double>(rows) / static_cast<double>(pieces)));
  const auto ends = AllCuts(static_cast<int64_t>(rows), target, [&](int64_t cut) {
    const auto at = static_cast<size_t>(cut);
    return curve::HighestDifferentBit(&keys[out.rows[at - 1] * size], &keys[out.rows[at] * size],
                                      size);
  });
  out.ends.assign(ends.begin(), ends.end());
  return out;
}

Result<CutOrder> TreeOrder(const TableTree& tree, const arrow::RecordBatch& rows) {
  ARROW_ASSIGN_OR_RAISE(const LeafFinder finder, LeafFinder::Make(tree, rows));
  std::vector<uint32_t> leaves(static_cast<size_t>(rows.num_rows()));
  ARROW_RETURN_NOT_OK(finder.Leaves(rows, leaves.data()));
  return PieceOrder(leaves, tree.leaf_count());
}

CutOrder BucketOrder(const RankedColumn& column, int64_t pieces) {
  std::vector<uint32_t> buckets;
  for (const uint32_t rank : column.ranks) {
    buckets.push_back(static_cast<uint32_t>(Mix64(rank) % static_cast<uint64_t>(pieces)));
  }
  return PieceOrder(buckets, pieces);
}

}  // namespace grebe::layout

#include "layout/row_order.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>

#include "curve/ordered_bytes.h"
#include "layout/bucket_ids.h"
#include "layout/value_order.h"

namespace grebe::layout {
namespace {

constexpr int kRankBitsMax = 16;
// Cells per row, as a power of two: enough that files, row groups and pages can be cut between
// cells, few enough that ids stay cheap.
constexpr int kCellBitsPerRow = 3;

// Bits of a curve's columns in rank mode: of those whose bits are not given.
int RankBits(int64_t row_count, const LayoutSpec& spec) {
  int given = 0;
  auto columns = static_cast<int>(spec.columns.size());
  for (const int bits : spec.bits_max) {
    given += bits;
    if (bits > 0) --columns;
  }
  if (columns == 0) return kRankBitsMax;
  const int row_bits = static_cast<int>(std::bit_width(static_cast<uint64_t>(row_count)));
  const int wanted = (row_bits + kCellBitsPerRow - given) / columns + 1;
  return std::clamp(std::max(wanted, 4), 1,
                    std::max(1, std::min(kRankBitsMax, (64 - given) / columns)));
}

curve::CurveKind KindOf(const LayoutSpec& spec) {
  return spec.kind == LayoutKind::kHilbert ? curve::CurveKind::kHilbert
                                           : curve::CurveKind::kZOrder;
}

Status MakeCurveOf(const LayoutSpec& spec, std::vector<int> bits,
                   std::unique_ptr<curve::Curve>* out) {
  const std::string problem = curve::Curve::Problem(KindOf(spec), bits);
  if (!problem.empty()) return InvalidArgument(problem, "layout", spec.ToString());
  *out = std::make_unique<curve::Curve>(KindOf(spec), std::move(bits));
  return Status::OK();
}

// 64 bits of a big-endian key, from the bit first_bit on; zeros follow the key.
uint64_t WindowOf(const uint8_t* key, size_t key_bytes, int first_bit) {
  uint8_t bytes[9] = {};
  const auto first_byte = static_cast<size_t>(first_bit / 8);
  std::memcpy(bytes, key + first_byte, std::min<size_t>(9, key_bytes - first_byte));
  uint64_t word = 0;
  std::memcpy(&word, bytes, 8);
  word = __builtin_bswap64(word);
  const int shift = first_bit % 8;
  return shift == 0 ? word : (word << shift) | (bytes[8] >> (8 - shift));
}

}  // namespace

std::vector<std::string> RowOrder::ColumnsUsed(const Request& request) {
  std::vector<std::string> columns = request.by.columns;
  if (request.tree != nullptr) columns = request.tree->columns();
  if (request.then) {
    for (const std::string& column : request.then->columns) {
      if (std::find(columns.begin(), columns.end(), column) == columns.end()) {
        columns.push_back(column);
      }
    }
  }
  return columns;
}

Result<std::shared_ptr<const RowOrder>> RowOrder::Make(const Request& request,
                                                       const arrow::RecordBatch& sample,
                                                       int64_t row_count) {
  auto order = std::make_shared<RowOrder>();
  LayoutSpec inner = request.then.value_or(request.by);
  if (request.by.kind == LayoutKind::kTree) {
    if (request.tree == nullptr || !request.then) {
      return Internal("a tree's rows need a tree and an order within its leaves");
    }
    ARROW_ASSIGN_OR_RAISE(order->leaves_, LeafFinder::Make(*request.tree, sample));
    order->section_count_ = request.tree->leaf_count();
  } else if (request.by.kind == LayoutKind::kBucket) {
    order->buckets_ = request.by.bucket_count;
    order->section_count_ = static_cast<uint32_t>(order->buckets_) + 1;
    order->bucket_column_ = request.by.columns.front();
    if (!request.then) inner.kind = LayoutKind::kSort;
  } else if (request.then) {
    return InvalidArgument("a second order goes with buckets and trees only", "by",
                           request.by.ToString());
  }
  order->columns_ = inner.columns;
  ARROW_ASSIGN_OR_RAISE(auto columns, ColumnsOf(sample, inner.columns));
  for (size_t i = 0; i < columns.size(); ++i) {
    ARROW_RETURN_NOT_OK(CheckOrdered(*columns[i]->type(), inner.columns[i]));
  }
  // A curve through one column is its order.
  if (inner.is_curve() && inner.columns.size() > 1) {
    ARROW_RETURN_NOT_OK(order->MakeCurve(inner, sample, row_count));
  } else {
    order->tie_columns_ = inner.columns;
    order->word_decides_ = WordsAreExact(*columns.front()->type());
  }
  RowKeys keys;   // finds what else is wrong before any work is done
  ARROW_RETURN_NOT_OK(order->Keys(*sample.Slice(0, 1), &keys));
  return order;
}

Status RowOrder::MakeCurve(const LayoutSpec& spec, const arrow::RecordBatch& sample,
                           int64_t row_count) {
  ARROW_ASSIGN_OR_RAISE(const Columns columns, ColumnsOf(sample, spec.columns));
  std::vector<int> bits;
  if (spec.mode == CurveMode::kRaw) {
    if (!spec.bits_max.empty()) {
      return InvalidArgument("a column's bits are given in rank mode only", "layout",
                             spec.ToString());
    }
    bits.assign(columns.size(), 64);
    ARROW_RETURN_NOT_OK(MakeCurveOf(spec, bits, &curve_));
    std::vector<uint8_t> keys;
    ARROW_RETURN_NOT_OK(RawKeys(columns, &keys));
    const auto size = static_cast<size_t>(curve_->key_bytes());
    raw_low_.assign(size, 0);
    if (!keys.empty()) raw_low_.assign(keys.begin(), keys.begin() + static_cast<int64_t>(size));
    int highest = 0;   // in which any two keys differ, counted from the lowest
    for (size_t at = 0; at < keys.size(); at += size) {
      highest = std::max(highest,
                         curve::HighestDifferentBit(raw_low_.data(), keys.data() + at, size));
    }
    raw_first_bit_ = std::min(curve_->key_bits() - 1 - highest, curve_->key_bits() - 64);
    return Status::OK();
  }
  const int wanted = RankBits(row_count, spec);
  for (size_t i = 0; i < columns.size(); ++i) {
    const int bits_max = spec.bits_max.empty() ? 0 : spec.bits_max[i];
    // The highest bits of spread ids are slices of about equally many distinct values.
    const bool spread = spec.kind == LayoutKind::kHilbert || bits_max > 0;
    ARROW_ASSIGN_OR_RAISE(auto ranks, ValueRanks::Make(*columns[i], wanted, spread));
    bits.push_back(bits_max > 0 ? std::min(bits_max, ranks.bits()) : ranks.bits());
    ranks_.push_back(std::move(ranks));
    rank_shifts_.push_back(ranks_.back().bits() - bits.back());
  }
  if (std::accumulate(bits.begin(), bits.end(), 0) > 64) {
    return InvalidArgument("a curve's columns have at most 64 bits in all", "layout",
                           spec.ToString());
  }
  return MakeCurveOf(spec, bits, &curve_);
}

Status RowOrder::RankWords(const Columns& columns, std::vector<uint64_t>* words) const {
  const size_t rows = words->size();
  std::vector<std::vector<uint32_t>> ids(columns.size(), std::vector<uint32_t>(rows));
  std::vector<const uint32_t*> arrays;
  for (size_t i = 0; i < columns.size(); ++i) {
    ARROW_RETURN_NOT_OK(ranks_[i].Ids(*columns[i], ids[i].data()));
    if (rank_shifts_[i] > 0) {
      for (uint32_t& id : ids[i]) id >>= rank_shifts_[i];
    }
    arrays.push_back(ids[i].data());
  }
  curve_->Keys64(arrays, rows, words->data());
  return Status::OK();
}

Status RowOrder::RawKeys(const Columns& columns, std::vector<uint8_t>* keys) const {
  const auto rows = static_cast<size_t>(columns[0]->length());
  std::vector<std::vector<uint64_t>> values(columns.size(), std::vector<uint64_t>(rows));
  std::vector<const uint64_t*> arrays;
  for (size_t i = 0; i < columns.size(); ++i) {
    ARROW_RETURN_NOT_OK(ValueWords(*columns[i], values[i].data()));
    for (size_t row = 0; row < rows; ++row) {
      values[i][row] =
          curve::OrNull(columns[i]->IsValid(static_cast<int64_t>(row)), values[i][row]);
    }
    arrays.push_back(values[i].data());
  }
  keys->resize(rows * static_cast<size_t>(curve_->key_bytes()));
  curve_->Keys(arrays, rows, keys->data());
  return Status::OK();
}

Status RowOrder::RawWords(const Columns& columns, std::vector<uint64_t>* words) const {
  std::vector<uint8_t> keys;
  ARROW_RETURN_NOT_OK(RawKeys(columns, &keys));
  const size_t size = raw_low_.size();
  for (size_t row = 0; row < words->size(); ++row) {
    const uint8_t* key = keys.data() + row * size;
    const int differs = curve::HighestDifferentBit(raw_low_.data(), key, size);
    if (differs >= static_cast<int>(size) * 8 - raw_first_bit_) {
      (*words)[row] = std::memcmp(key, raw_low_.data(), size) < 0 ? 0 : UINT64_MAX;
    } else {
      (*words)[row] = WindowOf(key, size, raw_first_bit_);
    }
  }
  return Status::OK();
}

Status RowOrder::Keys(const arrow::RecordBatch& batch, RowKeys* keys) const {
  const auto rows = static_cast<size_t>(batch.num_rows());
  keys->sections.clear();
  keys->words.assign(rows, 0);
  if (has_sections()) keys->sections.resize(rows);
  if (leaves_) ARROW_RETURN_NOT_OK(leaves_->Leaves(batch, keys->sections.data()));
  if (buckets_ > 0) {
    ARROW_ASSIGN_OR_RAISE(auto column, ColumnOf(batch, bucket_column_));
    ARROW_RETURN_NOT_OK(BucketIds(*column, buckets_, keys->sections.data()));
  }
  if (curve_ == nullptr) {
    ARROW_ASSIGN_OR_RAISE(auto column, ColumnOf(batch, columns_.front()));
    return ValueWords(*column, keys->words.data());
  }
  ARROW_ASSIGN_OR_RAISE(const Columns columns, ColumnsOf(batch, columns_));
  return ranks_.empty() ? RawWords(columns, &keys->words) : RankWords(columns, &keys->words);
}

int CompareRows(const Columns& a, int64_t i, const Columns& b, int64_t j, size_t first) {
  for (size_t column = first; column < a.size(); ++column) {
    const int order = CompareValues(*a[column], i, *b[column], j);
    if (order != 0) return order;
  }
  return 0;
}

}  // namespace grebe::layout

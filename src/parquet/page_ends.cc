// Page ends that all columns share: by the largest column, at the boundaries given.
#include <arrow/array/array_nested.h>
#include <arrow/extension_type.h>

#include <algorithm>

#include "parquet/leaf_values.h"
#include "parquet/write_file.h"

namespace grebe::pq {
namespace {

// The plain size of one leaf's values, by rows of one array.
class LeafBytes {
 public:
  // From the root down: how a run of parents becomes a run of children.
  struct Step {
    const int32_t* offsets32 = nullptr;
    const int64_t* offsets64 = nullptr;
    int64_t width = 1;      // children a parent, where there are no offsets
    int64_t shift = 0;      // of the child's array, which was sliced

    int64_t Child(int64_t parent) const {
      if (offsets32 != nullptr) return offsets32[parent];
      if (offsets64 != nullptr) return offsets64[parent];
      return parent * width + shift;
    }
  };

  LeafBytes(std::vector<Step> steps, std::shared_ptr<arrow::Array> leaf)
      : steps_(std::move(steps)), leaf_(std::move(leaf)), sizes_(*leaf_) {}

  int64_t BytesOf(int64_t begin, int64_t end) const {
    for (const Step& step : steps_) {
      begin = step.Child(begin);
      end = step.Child(end);
    }
    return sizes_.BytesOf(begin, end);
  }

 private:
  std::vector<Step> steps_;
  std::shared_ptr<arrow::Array> leaf_;   // from its first value on, whatever the rows' offset
  ValueSizes sizes_;
};

// The leaves of one array. Types that are not looked into (views of lists, dictionaries) are left
// out: their sizes do not limit a page.
class LeafFinder {
 public:
  explicit LeafFinder(std::vector<LeafBytes>* out) : out_(out) {}

  void Visit(const std::shared_ptr<arrow::Array>& array) {
    switch (array->type_id()) {
      case arrow::Type::EXTENSION:
        return Visit(static_cast<const arrow::ExtensionArray&>(*array).storage());
      case arrow::Type::STRUCT: {
        const auto& group = static_cast<const arrow::StructArray&>(*array);
        for (int i = 0; i < group.num_fields(); ++i) Visit(group.field(i));
        return;
      }
      case arrow::Type::LIST:
      case arrow::Type::MAP: {
        const auto& list = static_cast<const arrow::ListArray&>(*array);
        return Descend({.offsets32 = list.raw_value_offsets()}, list.values());
      }
      case arrow::Type::LARGE_LIST: {
        const auto& list = static_cast<const arrow::LargeListArray&>(*array);
        return Descend({.offsets64 = list.raw_value_offsets()}, list.values());
      }
      case arrow::Type::FIXED_SIZE_LIST: {
        const auto& list = static_cast<const arrow::FixedSizeListArray&>(*array);
        const int64_t width = list.list_type()->list_size();
        return Descend({.width = width, .shift = list.offset() * width}, list.values());
      }
      case arrow::Type::DICTIONARY:
      case arrow::Type::LIST_VIEW:
      case arrow::Type::LARGE_LIST_VIEW: return;
      default: out_->emplace_back(steps_, array);
    }
  }

 private:
  void Descend(LeafBytes::Step step, const std::shared_ptr<arrow::Array>& values) {
    steps_.push_back(step);
    Visit(values);
    steps_.pop_back();
  }

  std::vector<LeafBytes>* out_;
  std::vector<LeafBytes::Step> steps_;
};

// One column: its pieces, each with where its rows begin and its leaves.
class ColumnBytes {
 public:
  explicit ColumnBytes(const arrow::ChunkedArray& column) {
    int64_t row = 0;
    for (const auto& array : column.chunks()) {
      if (array->length() == 0) continue;
      Piece piece{{row, row + array->length()}, {}};
      LeafFinder(&piece.leaves).Visit(array);
      row = piece.rows.end;
      pieces_.push_back(std::move(piece));
    }
  }

  // Of its largest leaf.
  int64_t BytesOf(RowRange rows) const {
    std::vector<int64_t> bytes;
    for (const Piece& piece : pieces_) {
      const int64_t begin = std::max(rows.begin, piece.rows.begin) - piece.rows.begin;
      const int64_t end = std::min(rows.end, piece.rows.end) - piece.rows.begin;
      if (begin >= end) continue;
      bytes.resize(piece.leaves.size());
      for (size_t i = 0; i < bytes.size(); ++i) bytes[i] += piece.leaves[i].BytesOf(begin, end);
    }
    return bytes.empty() ? 0 : std::ranges::max(bytes);
  }

 private:
  struct Piece {
    RowRange rows;
    std::vector<LeafBytes> leaves;
  };
  std::vector<Piece> pieces_;
};

}  // namespace

Result<std::vector<int64_t>> SharedPageEnds(const arrow::Table& rows,
                                            std::span<const int64_t> boundaries,
                                            const WriteOptions& options) {
  std::vector<ColumnBytes> columns;
  for (const auto& column : rows.columns()) columns.emplace_back(*column);
  const int64_t row_count = rows.num_rows();
  const auto fits = [&](int64_t begin, int64_t end) {
    return end - begin <= options.page_rows_max &&
           std::ranges::all_of(columns, [&](const ColumnBytes& column) {
             return column.BytesOf({begin, end}) <= options.page_bytes_max;
           });
  };
  for (size_t i = 0; i < boundaries.size(); ++i) {
    if (boundaries[i] <= (i == 0 ? 0 : boundaries[i - 1]) || boundaries[i] > row_count) {
      return InvalidArgument("boundaries do not ascend within the rows", "row", boundaries[i]);
    }
  }
  std::vector<int64_t> ends;
  int64_t begin = 0;
  size_t next = 0;   // the first boundary after begin
  while (begin < row_count) {
    // The last place to cut that keeps the limits, else the first place there is.
    const auto place = [&](size_t i) {
      if (boundaries.empty()) return std::min(begin + 1 + static_cast<int64_t>(i), row_count);
      return next + i < boundaries.size() ? boundaries[next + i] : row_count;
    };
    size_t low = 0;
    size_t high = boundaries.empty() ? static_cast<size_t>(row_count - begin - 1)
                                     : boundaries.size() - next;
    high = std::min(high, static_cast<size_t>(options.page_rows_max));
    while (low < high) {
      const size_t middle = high - (high - low) / 2;
      if (fits(begin, place(middle))) {
        low = middle;
      } else {
        high = middle - 1;
      }
    }
    begin = place(low);
    ends.push_back(begin);
    while (next < boundaries.size() && boundaries[next] <= begin) ++next;
  }
  return ends;
}

}  // namespace grebe::pq

#include "layout/row_sample.h"

#include <arrow/scalar.h>

#include <algorithm>
#include <numeric>
#include <tuple>

#include "layout/cuts.h"
#include "layout/value_order.h"

namespace grebe::layout {
namespace {

// The first tie column in which two rows differ; their number when none does.
int FirstDifference(const RowPlace& a, const RowPlace& b, int first = 0) {
  const auto count = static_cast<int>(a.ties->size());
  for (int column = first; column < count; ++column) {
    const auto at = static_cast<size_t>(column);
    if (CompareValues(*(*a.ties)[at], a.tie_row, *(*b.ties)[at], b.tie_row) != 0) return column;
  }
  return count;
}

}  // namespace

int BorderLevel(const RowOrder& order, const RowPlace& before, const RowPlace& after) {
  if (order.is_curve()) return CellLevel(before.word, after.word);
  const auto columns = static_cast<int>(order.tie_columns().size());
  if (before.word != after.word) return columns;
  return columns - FirstDifference(before, after, static_cast<int>(order.FirstTie(before.word)));
}

Result<std::shared_ptr<const RowSample>> RowSample::Make(std::shared_ptr<const RowOrder> order,
                                                         const arrow::RecordBatch& rows,
                                                         std::vector<int> files,
                                                         std::vector<int64_t> file_rows,
                                                         double weight) {
  auto sample = std::make_shared<RowSample>();
  ARROW_RETURN_NOT_OK(order->Keys(rows, &sample->keys_));
  ARROW_ASSIGN_OR_RAISE(sample->ties_, ColumnsOf(rows, order->tie_columns()));
  sample->order_ = std::move(order);
  sample->files_ = std::move(files);
  sample->file_rows_ = std::move(file_rows);
  sample->weight_ = weight;
  sample->sorted_.resize(static_cast<size_t>(rows.num_rows()));
  std::iota(sample->sorted_.begin(), sample->sorted_.end(), 0);
  const RowSample& s = *sample;
  std::sort(sample->sorted_.begin(), sample->sorted_.end(), [&s](uint32_t a, uint32_t b) {
    if (s.keys_.section(a) != s.keys_.section(b)) return s.keys_.section(a) < s.keys_.section(b);
    if (s.keys_.words[a] != s.keys_.words[b]) return s.keys_.words[a] < s.keys_.words[b];
    const int ties = CompareRows(s.ties_, a, s.ties_, b);
    if (ties != 0) return ties < 0;
    return std::tie(s.files_[a], s.file_rows_[a]) < std::tie(s.files_[b], s.file_rows_[b]);
  });
  return sample;
}

int RowSample::Level(int64_t i) const {
  const auto at = static_cast<size_t>(i);
  const uint32_t before = sorted_[at - 1], after = sorted_[at];
  return BorderLevel(*order_, {0, keys_.words[before], &ties_, before},
                     {0, keys_.words[after], &ties_, after});
}

Border RowSample::BorderBefore(int64_t i) const {
  const auto at = static_cast<size_t>(i);
  const uint32_t before = sorted_[at - 1], after = sorted_[at];
  Border border;
  border.section = keys_.section(after);
  border.word = keys_.words[after];
  if (keys_.words[before] != keys_.words[after]) {
    if (order_->is_curve()) {
      // The border of the larger of the two cells: the first word of the upper one.
      const int low_bits = CellLevel(keys_.words[before], keys_.words[after]) - 1;
      border.word = border.word >> low_bits << low_bits;
    }
    return border;
  }
  border.sample = after;
  const int first = FirstDifference({0, 0, &ties_, before}, {0, 0, &ties_, after});
  border.by_source = first == static_cast<int>(ties_.size());
  border.columns = border.by_source ? first : first + 1;
  return border;
}

Result<RowSample::Run> RowSample::LongestRun() const {
  const auto key_level = static_cast<int>(order_->tie_columns().size());
  int64_t longest = 0, longest_begin = 0, begin = 0;
  for (int64_t i = 1; i <= count(); ++i) {
    if (i < count() && section(i) == section(i - 1) && Level(i) < key_level) continue;
    if (i - begin > longest) {
      longest = i - begin;
      longest_begin = begin;
    }
    begin = i;
  }
  ARROW_ASSIGN_OR_RAISE(const auto value,
                        ties_[0]->GetScalar(sorted_[static_cast<size_t>(longest_begin)]));
  return Run{longest, value->ToString()};
}

bool RowSample::IsBefore(const RowPlace& row, const Border& border) const {
  if (row.section != border.section) return row.section < border.section;
  if (row.word != border.word) return row.word < border.word;
  if (border.sample < 0) return false;
  for (int column = 0; column < border.columns; ++column) {
    const auto at = static_cast<size_t>(column);
    const int order =
        CompareValues(*(*row.ties)[at], row.tie_row, *ties_[at], border.sample);
    if (order != 0) return order < 0;
  }
  if (!border.by_source) return false;
  const auto at = static_cast<size_t>(border.sample);
  return std::tie(row.file, row.file_row) < std::tie(files_[at], file_rows_[at]);
}

}  // namespace grebe::layout

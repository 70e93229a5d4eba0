#include "engine/key_rows.h"

#include <algorithm>

namespace grebe::engine {

int64_t KeyRows::row_count() const {
  int64_t count = 0;
  for (const index::FoundRun& run : runs) count += run.row_count;
  return count;
}

KeyRows KeyRows::Window(int64_t offset, int64_t limit) const {
  KeyRows out;
  out.exact = exact;
  int64_t skip = offset;
  int64_t left = limit < 0 ? INT64_MAX : limit;
  for (index::FoundRun run : runs) {
    const int64_t skipped = std::min(skip, run.row_count);
    skip -= skipped;
    run.first_row.value += skipped;
    run.row_count = std::min(run.row_count - skipped, left);
    left -= run.row_count;
    if (run.row_count > 0) out.runs.push_back(run);
    if (left == 0) break;
  }
  return out;
}

void AppendRow(uint32_t file, RowIndex row, std::vector<index::FoundRun>* runs) {
  if (!runs->empty()) {
    index::FoundRun& last = runs->back();
    if (last.file == file && last.first_row.value + last.row_count == row.value) {
      ++last.row_count;
      return;
    }
  }
  runs->push_back({file, row, 1});
}

RowSet::RowSet(const std::vector<KeyRows>& keys) {
  for (const KeyRows& key : keys) {
    for (const index::FoundRun& run : key.runs) {
      ranges_.push_back(
          {run.file, {run.first_row.value, run.first_row.value + run.row_count}, 0});
    }
  }
  const auto before = [](const Range& a, const Range& b) {
    return a.file != b.file ? a.file < b.file : a.rows.begin < b.rows.begin;
  };
  if (!std::is_sorted(ranges_.begin(), ranges_.end(), before)) {
    std::sort(ranges_.begin(), ranges_.end(), before);
  }
  size_t kept = 0;
  for (const Range& range : ranges_) {
    Range* last = kept == 0 ? nullptr : &ranges_[kept - 1];
    if (last != nullptr && last->file == range.file && range.rows.begin <= last->rows.end) {
      last->rows.end = std::max(last->rows.end, range.rows.end);
    } else {
      ranges_[kept++] = range;
    }
  }
  ranges_.resize(kept);
  int64_t position = 0;
  for (Range& range : ranges_) {
    range.position = position;
    position += range.rows.row_count();
    if (files_.empty() || files_.back().file != range.file) files_.push_back({range.file, {}});
    files_.back().rows.push_back(range.rows);
  }
}

int64_t RowSet::PositionOf(uint32_t file, RowIndex row) const {
  const auto after = std::upper_bound(
      ranges_.begin(), ranges_.end(), row.value, [&](int64_t value, const Range& range) {
        return range.file != file ? file < range.file : value < range.rows.begin;
      });
  const Range& range = *(after - 1);
  return range.position + row.value - range.rows.begin;
}

}  // namespace grebe::engine

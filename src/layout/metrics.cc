#include "layout/metrics.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <span>

namespace grebe::layout {
namespace {

using Indexes = std::vector<uint32_t>;

// The greatest of any run of values in constant time: one row per power of two.
class RangeMaximum {
 public:
  explicit RangeMaximum(std::vector<int64_t> values) {
    rows_.push_back(std::move(values));
    for (size_t width = 2; width <= rows_[0].size(); width *= 2) {
      const std::vector<int64_t>& half = rows_.back();
      std::vector<int64_t> row(rows_[0].size() - width + 1);
      for (size_t i = 0; i < row.size(); ++i) row[i] = std::max(half[i], half[i + width / 2]);
      rows_.push_back(std::move(row));
    }
  }
  // REQUIRES: begin < end.
  int64_t Of(size_t begin, size_t end) const {
    const int level = std::bit_width(end - begin) - 1;
    return std::max(rows_[level][begin], rows_[level][end - (size_t{1} << level)]);
  }

 private:
  std::vector<std::vector<int64_t>> rows_;
};

int64_t CountBelow(const std::vector<int64_t>& sorted, int64_t value) {
  return std::lower_bound(sorted.begin(), sorted.end(), value) - sorted.begin();
}
int64_t CountUpTo(const std::vector<int64_t>& sorted, int64_t value) {
  return std::upper_bound(sorted.begin(), sorted.end(), value) - sorted.begin();
}

// Depth and overlaps in one column, of ranges that are not empty. A greatest depth is always
// reached where some range begins, so only those places are looked at.
void MeasureLine(const std::vector<Interval>& ranges, std::vector<int64_t>* depths,
                 std::vector<int64_t>* overlaps) {
  std::vector<int64_t> lows, highs;
  for (const Interval& range : ranges) {
    lows.push_back(range.low);
    highs.push_back(range.high);
  }
  std::sort(lows.begin(), lows.end());
  std::sort(highs.begin(), highs.end());
  std::vector<int64_t> covering;    // at each beginning, in order
  for (size_t i = 0; i < lows.size(); ++i) {
    covering.push_back(CountUpTo(lows, lows[i]) - CountBelow(highs, lows[i]));
  }
  const RangeMaximum most(std::move(covering));
  for (const Interval& range : ranges) {
    const int64_t begin = CountBelow(lows, range.low), end = CountUpTo(lows, range.high);
    depths->push_back(most.Of(begin, end));
    overlaps->push_back(end - CountBelow(highs, range.low) - 1);
  }
}

// Depth of boxes: space is cut into cells. In a cell, boxes that cover it whole only add to the
// count; boxes that reach through it in every column but one are slabs, and slabs of different
// columns always meet, so their depths are found column by column and added up.
class BoxDepth {
 public:
  BoxDepth(const std::vector<Box>& boxes, int64_t steps_max)
      : boxes_(boxes), columns_(boxes[0].size()), steps_left_(steps_max) {}

  Result<std::vector<int64_t>> Run() {
    depths_.assign(boxes_.size(), 0);
    Indexes all(boxes_.size());
    std::iota(all.begin(), all.end(), 0);
    Box cell(columns_, kEverything);
    ARROW_RETURN_NOT_OK(Solve(&cell, all, 0, 0).status());
    return std::move(depths_);
  }

 private:
  // How a box lies in a cell it meets: the columns in which it does not reach through.
  int OpenColumns(const Box& box, const Box& cell, size_t* column) const {
    int open = 0;
    for (size_t c = 0; c < columns_; ++c) {
      if (box[c].low > cell[c].low || box[c].high < cell[c].high) {
        ++open;
        *column = c;
      }
    }
    return open;
  }

  bool Meets(const Box& box, const Box& cell) const {
    for (size_t c = 0; c < columns_; ++c) {
      if (box[c].high < cell[c].low || box[c].low > cell[c].high) return false;
    }
    return true;
  }

  // The greatest depth in the cell, of which `base` comes from boxes that cover it and are not in
  // `inside`.
  Result<int64_t> Solve(Box* cell, const Indexes& inside, int64_t base, size_t turn) {
    steps_left_ -= static_cast<int64_t>(inside.size()) + 1;
    if (steps_left_ < 0) {
      return LimitExceeded("too many boxes overlap to count their joint depth", "boxes",
                           boxes_.size(), "columns", columns_);
    }
    Indexes whole, slabs, cornered;
    size_t column = 0;
    for (uint32_t index : inside) {
      const int open = OpenColumns(boxes_[index], *cell, &column);
      (open == 0 ? whole : open == 1 ? slabs : cornered).push_back(index);
    }
    base += static_cast<int64_t>(whole.size());
    int64_t most = base;
    if (!cornered.empty()) {
      ARROW_ASSIGN_OR_RAISE(most, Cut(cell, slabs, cornered, base, turn));
    } else if (!slabs.empty()) {
      most = SolveSlabs(*cell, slabs, base);
    }
    Raise(whole, most);
    return most;
  }

  Result<int64_t> Cut(Box* cell, const Indexes& slabs, const Indexes& cornered, int64_t base,
                      size_t turn) {
    // The middle one of the cornered boxes' sides inside the cell, in the next column that has any.
    std::vector<int64_t> cuts;
    size_t column = turn;
    for (size_t tried = 0; tried < columns_ && cuts.empty(); ++tried) {
      column = (turn + tried) % columns_;
      const Interval& side = (*cell)[column];
      for (uint32_t index : cornered) {
        const Interval& range = boxes_[index][column];
        if (range.low > side.low) cuts.push_back(range.low);
        if (range.high < side.high) cuts.push_back(range.high + 1);
      }
    }
    std::nth_element(cuts.begin(), cuts.begin() + cuts.size() / 2, cuts.end());
    const int64_t cut = cuts[cuts.size() / 2];
    const Interval side = (*cell)[column];
    int64_t most = base;
    for (const Interval half : {Interval{side.low, cut - 1}, Interval{cut, side.high}}) {
      (*cell)[column] = half;
      Indexes inside;
      for (const Indexes* some : {&slabs, &cornered}) {
        for (uint32_t index : *some) {
          if (Meets(boxes_[index], *cell)) inside.push_back(index);
        }
      }
      ARROW_ASSIGN_OR_RAISE(const int64_t here, Solve(cell, inside, base, column + 1));
      most = std::max(most, here);
    }
    (*cell)[column] = side;
    return most;
  }

  int64_t SolveSlabs(const Box& cell, const Indexes& slabs, int64_t base) {
    std::vector<Indexes> of_column(columns_);
    for (uint32_t index : slabs) {
      size_t column = 0;
      OpenColumns(boxes_[index], cell, &column);
      of_column[column].push_back(index);
    }
    std::vector<std::vector<int64_t>> line_depths(columns_);
    std::vector<int64_t> most(columns_, 0);
    for (size_t c = 0; c < columns_; ++c) {
      if (of_column[c].empty()) continue;
      std::vector<Interval> ranges;
      for (uint32_t index : of_column[c]) {
        const Interval& range = boxes_[index][c];
        ranges.push_back({std::max(range.low, cell[c].low), std::min(range.high, cell[c].high)});
      }
      std::vector<int64_t> overlaps;
      MeasureLine(ranges, &line_depths[c], &overlaps);
      most[c] = *std::max_element(line_depths[c].begin(), line_depths[c].end());
    }
    const int64_t total = base + std::accumulate(most.begin(), most.end(), int64_t{0});
    for (size_t c = 0; c < columns_; ++c) {
      for (size_t i = 0; i < of_column[c].size(); ++i) {
        Raise({of_column[c][i]}, total - most[c] + line_depths[c][i]);
      }
    }
    return total;
  }

  void Raise(const Indexes& some, int64_t depth) {
    for (uint32_t index : some) depths_[index] = std::max(depths_[index], depth);
  }

  const std::vector<Box>& boxes_;
  const size_t columns_;
  int64_t steps_left_;
  std::vector<int64_t> depths_;
};

// Counts the boxes that a box overlaps: a k-d tree over the boxes as points of twice as many
// numbers, all lows and all highs. A subtree that lies wholly inside or outside the question is
// not opened.
class OverlapCounter {
 public:
  explicit OverlapCounter(const std::vector<Box>& boxes)
      : boxes_(boxes), columns_(boxes[0].size()), order_(boxes.size()) {
    std::iota(order_.begin(), order_.end(), 0);
    nodes_.reserve(2 * boxes.size() / kLeafBoxes + 2);
    Build(0, order_.size(), 0);
  }

  // Itself among them.
  int64_t Count(const Box& box, int64_t* steps) const { return Count(0, box, steps); }

 private:
  static constexpr size_t kLeafBoxes = 8;
  struct Node {
    size_t begin = 0, end = 0;
    int left = -1, right = -1;
    Box lows, highs;              // the least and greatest low, and high, of each column
  };

  int Build(size_t begin, size_t end, size_t turn) {
    const int id = static_cast<int>(nodes_.size());
    nodes_.emplace_back();
    Node node{begin, end, -1, -1, boxes_[order_[begin]], boxes_[order_[begin]]};
    for (size_t c = 0; c < columns_; ++c) {
      node.lows[c].high = node.lows[c].low;
      node.highs[c].low = node.highs[c].high;
      for (size_t i = begin; i < end; ++i) {
        const Interval& range = boxes_[order_[i]][c];
        node.lows[c] = {std::min(node.lows[c].low, range.low),
                        std::max(node.lows[c].high, range.low)};
        node.highs[c] = {std::min(node.highs[c].low, range.high),
                         std::max(node.highs[c].high, range.high)};
      }
    }
    if (end - begin > kLeafBoxes) {
      const size_t middle = (begin + end) / 2, column = turn / 2 % columns_;
      const auto number = [&](uint32_t index) {
        const Interval& range = boxes_[index][column];
        return turn % 2 == 0 ? range.low : range.high;
      };
      std::nth_element(order_.begin() + begin, order_.begin() + middle, order_.begin() + end,
                       [&](uint32_t a, uint32_t b) { return number(a) < number(b); });
      node.left = Build(begin, middle, turn + 1);
      node.right = Build(middle, end, turn + 1);
    }
    nodes_[id] = std::move(node);
    return id;
  }

  int64_t Count(int id, const Box& box, int64_t* steps) const {
    const Node& node = nodes_[id];
    ++*steps;
    bool all = true;
    for (size_t c = 0; c < columns_; ++c) {
      if (node.lows[c].low > box[c].high || node.highs[c].high < box[c].low) return 0;
      all = all && node.lows[c].high <= box[c].high && node.highs[c].low >= box[c].low;
    }
    if (all) return static_cast<int64_t>(node.end - node.begin);
    if (node.left >= 0) return Count(node.left, box, steps) + Count(node.right, box, steps);
    int64_t count = 0;
    for (size_t i = node.begin; i < node.end; ++i) {
      bool meets = true;
      for (size_t c = 0; c < columns_ && meets; ++c) {
        const Interval& range = boxes_[order_[i]][c];
        meets = range.low <= box[c].high && range.high >= box[c].low;
      }
      count += meets;
    }
    return count;
  }

  const std::vector<Box>& boxes_;
  const size_t columns_;
  Indexes order_;
  std::vector<Node> nodes_;
};

// Spreads figures of the boxes that have a point over all boxes, and sums them up.
DepthMetrics Summarize(size_t count, const Indexes& kept, const std::vector<int64_t>& depths,
                       const std::vector<int64_t>& overlaps) {
  DepthMetrics metrics;
  metrics.boxes = static_cast<int64_t>(kept.size());
  metrics.empty_boxes = static_cast<int64_t>(count - kept.size());
  metrics.depths.assign(count, 0);
  metrics.overlaps.assign(count, 0);
  for (size_t i = 0; i < kept.size(); ++i) {
    metrics.depths[kept[i]] = depths[i];
    metrics.overlaps[kept[i]] = overlaps[i];
    metrics.average_depth += static_cast<double>(depths[i]);
    metrics.average_overlaps += static_cast<double>(overlaps[i]);
    metrics.max_depth = std::max(metrics.max_depth, depths[i]);
    ++metrics.histogram[depths[i]];
  }
  if (!kept.empty()) {
    metrics.average_depth /= static_cast<double>(kept.size());
    metrics.average_overlaps /= static_cast<double>(kept.size());
  }
  return metrics;
}

bool IsConstant(const Interval& range) { return range.low == range.high; }

}  // namespace

DepthMetrics MeasureDepth(const std::vector<Interval>& intervals) {
  Indexes kept;
  std::vector<Interval> ranges;
  for (size_t i = 0; i < intervals.size(); ++i) {
    if (intervals[i].empty()) continue;
    kept.push_back(static_cast<uint32_t>(i));
    ranges.push_back(intervals[i]);
  }
  std::vector<int64_t> depths, overlaps;
  MeasureLine(ranges, &depths, &overlaps);
  DepthMetrics metrics = Summarize(intervals.size(), kept, depths, overlaps);
  metrics.constant = std::count_if(ranges.begin(), ranges.end(), IsConstant);
  return metrics;
}

Result<DepthMetrics> MeasureJointDepth(const std::vector<Box>& boxes, int64_t steps_max) {
  Indexes kept;
  std::vector<Box> solid;
  int64_t constant = 0;
  for (size_t i = 0; i < boxes.size(); ++i) {
    const Box& box = boxes[i];
    if (std::any_of(box.begin(), box.end(), [](const Interval& r) { return r.empty(); })) continue;
    kept.push_back(static_cast<uint32_t>(i));
    solid.push_back(box);
    constant += std::all_of(box.begin(), box.end(), IsConstant);
  }
  if (solid.empty()) return Summarize(boxes.size(), kept, {}, {});
  ARROW_ASSIGN_OR_RAISE(const std::vector<int64_t> depths, BoxDepth(solid, steps_max).Run());
  const OverlapCounter counter(solid);
  std::vector<int64_t> overlaps;
  int64_t steps = 0;
  for (const Box& box : solid) {
    overlaps.push_back(counter.Count(box, &steps) - 1);
    if (steps > steps_max) {
      return LimitExceeded("too many boxes overlap to count their overlaps", "boxes", solid.size());
    }
  }
  DepthMetrics metrics = Summarize(boxes.size(), kept, depths, overlaps);
  metrics.constant = constant;
  return metrics;
}

}  // namespace grebe::layout

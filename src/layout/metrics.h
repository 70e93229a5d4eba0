// How much the ranges of files (or row groups, or pages) cover each other, in a column or jointly.
//
// A piece is a box: one closed range in each column. The numbers are ranks of bounds, or anything
// else that orders as the values do. Two boxes overlap when they overlap in every column; the depth
// of a box is the most boxes, itself among them, that share one point of it: 1 for one that is
// alone. A range that is not known is kEverything. A box without a point in some column (only
// nulls) overlaps nothing and is left out of every figure but the count of such boxes.
//
// Cost, n boxes: one column n log n. Jointly, depth by cutting space at the boxes' corners until
// what is left of each box lies across a cell like a slab: at most n^(columns/2) log n, far less
// where boxes are apart or cover each other whole. Overlaps by a k-d tree: n^(2 - 1/(2 columns)).
// Source: T. Chan, "Klee's measure problem made easy", FOCS 2013, for the cutting.
// Threads: pure functions; safe.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <vector>

#include "base/status.h"

namespace grebe::layout {

// Closed. REQUIRES: |low|, |high| < 2^62, but for kEverything.
struct Interval {
  int64_t low = 0, high = 0;
  bool empty() const { return low > high; }
  bool Contains(int64_t value) const { return low <= value && value <= high; }
  bool operator==(const Interval&) const = default;
};
inline constexpr Interval kEverything{std::numeric_limits<int64_t>::min(),
                                      std::numeric_limits<int64_t>::max()};
inline constexpr Interval kNothing{1, 0};

using Box = std::vector<Interval>;    // one per column

struct DepthMetrics {
  int64_t boxes = 0;                  // with a point: those that the figures are about
  int64_t empty_boxes = 0;            // without
  std::vector<int64_t> depths, overlaps;  // of each box, as given; of one without a point 0
  double average_depth = 0, average_overlaps = 0;
  int64_t max_depth = 0;
  int64_t constant = 0;               // boxes that are one point
  std::map<int64_t, int64_t> histogram;   // depth -> boxes
};

DepthMetrics MeasureDepth(const std::vector<Interval>& intervals);

// REQUIRES: boxes of one number of columns, at least one. Errors: LimitExceeded when counting would
// take more than `steps_max` visits of a box (about 10 ns each).
Result<DepthMetrics> MeasureJointDepth(const std::vector<Box>& boxes,
                                       int64_t steps_max = int64_t{1} << 31);

}  // namespace grebe::layout

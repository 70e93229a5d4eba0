#include "layout/metrics.h"

#include <gtest/gtest.h>

#include "base/rng.h"
#include "testing/seed.h"

namespace grebe::layout {
namespace {

struct GoldenCase {
  std::vector<Interval> files;
  std::vector<int64_t> depths, overlaps;
  double average_depth, average_overlaps;
  int64_t max_depth, constant;
  std::map<int64_t, int64_t> histogram;
};

// The worked cases of the design: closed ranges of files in one column.
const std::vector<GoldenCase> kGolden = {
    {{{0, 25}, {0, 25}, {0, 25}, {0, 25}, {0, 25}},
     {5, 5, 5, 5, 5}, {4, 4, 4, 4, 4}, 5.0, 4.0, 5, 0, {{5, 5}}},
    {{{0, 9}, {10, 19}, {20, 29}, {30, 39}},
     {1, 1, 1, 1}, {0, 0, 0, 0}, 1.0, 0.0, 1, 0, {{1, 4}}},
    {{{0, 10}, {5, 15}, {12, 20}, {30, 30}},
     {2, 2, 2, 1}, {1, 2, 1, 0}, 1.75, 1.0, 2, 1, {{1, 1}, {2, 3}}},
    {{{1, 4}, {4, 8}, {8, 8}, {2, 9}, {0, 9}},
     {4, 4, 4, 4, 4}, {3, 4, 3, 4, 4}, 4.0, 3.6, 4, 1, {{4, 5}}},
};

void ExpectGolden(const DepthMetrics& metrics, const GoldenCase& golden) {
  EXPECT_EQ(metrics.depths, golden.depths);
  EXPECT_EQ(metrics.overlaps, golden.overlaps);
  EXPECT_DOUBLE_EQ(metrics.average_depth, golden.average_depth);
  EXPECT_DOUBLE_EQ(metrics.average_overlaps, golden.average_overlaps);
  EXPECT_EQ(metrics.max_depth, golden.max_depth);
  EXPECT_EQ(metrics.constant, golden.constant);
  EXPECT_EQ(metrics.histogram, golden.histogram);
  EXPECT_EQ(metrics.boxes, static_cast<int64_t>(golden.files.size()));
}

std::vector<Box> AsBoxes(const std::vector<Interval>& ranges, size_t columns) {
  std::vector<Box> boxes;
  for (const Interval& range : ranges) boxes.push_back(Box(columns, range));
  return boxes;
}

TEST(Metrics, GoldenCasesOfOneColumn) {
  for (const GoldenCase& golden : kGolden) ExpectGolden(MeasureDepth(golden.files), golden);
}

// Boxes of the same range in every column lie along a diagonal: they overlap as the ranges do.
TEST(Metrics, GoldenCasesAlongADiagonal) {
  for (size_t columns : {1, 2, 3, 4}) {
    for (const GoldenCase& golden : kGolden) {
      ExpectGolden(MeasureJointDepth(AsBoxes(golden.files, columns)).ValueOrDie(), golden);
    }
  }
}

TEST(Metrics, BoxesOverlapOnlyWhenTheyDoInEveryColumn) {
  // Four quarters of a square: each column alone sees depth 2, jointly they are apart.
  const std::vector<Box> quarters = {
      {{0, 4}, {0, 4}}, {{0, 4}, {5, 9}}, {{5, 9}, {0, 4}}, {{5, 9}, {5, 9}}};
  EXPECT_EQ(MeasureJointDepth(quarters)->max_depth, 1);
  EXPECT_EQ(MeasureDepth({{0, 4}, {0, 4}, {5, 9}, {5, 9}}).max_depth, 2);
}

TEST(Metrics, UnknownCoversEverythingAndNothingIsLeftOut) {
  const DepthMetrics metrics = MeasureDepth({{0, 1}, {2, 3}, kEverything, kNothing});
  EXPECT_EQ(metrics.depths, (std::vector<int64_t>{2, 2, 2, 0}));
  EXPECT_EQ(metrics.overlaps, (std::vector<int64_t>{1, 1, 2, 0}));
  EXPECT_EQ(metrics.boxes, 3);
  EXPECT_EQ(metrics.empty_boxes, 1);
  EXPECT_DOUBLE_EQ(metrics.average_depth, 2.0);
  const DepthMetrics joint =
      MeasureJointDepth({{{0, 1}, kEverything}, {{2, 3}, {7, 7}}, {kEverything, {8, 9}},
                         {{0, 9}, kNothing}}).ValueOrDie();
  EXPECT_EQ(joint.depths, (std::vector<int64_t>{2, 1, 2, 0}));
  EXPECT_EQ(joint.overlaps, (std::vector<int64_t>{1, 0, 1, 0}));
}

TEST(Metrics, NoFilesHaveNoDepth) {
  EXPECT_EQ(MeasureDepth({}).boxes, 0);
  EXPECT_EQ(MeasureDepth({kNothing}).max_depth, 0);
  EXPECT_EQ(MeasureJointDepth({})->boxes, 0);
}

TEST(Metrics, StopsAtTheLimitOfSteps) {
  Rng rng(7);
  std::vector<Box> boxes;
  for (int i = 0; i < 500; ++i) {
    Box box;
    for (int c = 0; c < 3; ++c) {
      const int64_t low = static_cast<int64_t>(rng.Below(1000));
      box.push_back({low, low + static_cast<int64_t>(rng.Below(1000))});
    }
    boxes.push_back(box);
  }
  EXPECT_TRUE(IsKind(MeasureJointDepth(boxes, 1000).status(), ErrorKind::kLimitExceeded));
  EXPECT_TRUE(MeasureJointDepth(boxes).ok());
}

// By brute force: every point of a small grid.
void ExpectAsOnTheGrid(const std::vector<Box>& boxes, int64_t side) {
  const size_t columns = boxes[0].size();
  std::vector<int64_t> depths(boxes.size(), 0), overlaps(boxes.size(), 0), point(columns, 0);
  for (bool more = true; more;) {
    std::vector<size_t> here;
    for (size_t i = 0; i < boxes.size(); ++i) {
      bool inside = true;
      for (size_t c = 0; c < columns; ++c) inside = inside && boxes[i][c].Contains(point[c]);
      if (inside) here.push_back(i);
    }
    for (size_t i : here) depths[i] = std::max<int64_t>(depths[i], here.size());
    more = false;
    for (size_t c = 0; c < columns && !more; ++c) {
      more = ++point[c] < side;
      if (!more) point[c] = 0;
    }
  }
  for (size_t i = 0; i < boxes.size(); ++i) {
    for (size_t j = 0; j < boxes.size(); ++j) {
      bool meet = i != j;
      for (size_t c = 0; c < columns; ++c) {
        meet = meet && !boxes[i][c].empty() && !boxes[j][c].empty() &&
               boxes[i][c].low <= boxes[j][c].high && boxes[j][c].low <= boxes[i][c].high;
      }
      overlaps[i] += meet;
    }
    for (const Interval& range : boxes[i]) {
      if (range.empty()) overlaps[i] = 0;
    }
  }
  const DepthMetrics metrics = MeasureJointDepth(boxes).ValueOrDie();
  ASSERT_EQ(metrics.depths, depths);
  ASSERT_EQ(metrics.overlaps, overlaps);
  if (columns > 1) return;
  std::vector<Interval> ranges;
  for (const Box& box : boxes) ranges.push_back(box[0]);
  const DepthMetrics line = MeasureDepth(ranges);
  ASSERT_EQ(line.depths, depths);
  ASSERT_EQ(line.overlaps, overlaps);
}

TEST(Metrics, RandomBoxesAgreeWithEveryPointOfAGrid) {
  Rng rng(grebe::testing::Seed("Metrics"));
  for (int round = 0; round < 600; ++round) {
    const size_t columns = 1 + rng.Below(3);
    const int64_t side = columns == 3 ? 8 : 14;
    const int64_t width = 1 + static_cast<int64_t>(rng.Below(static_cast<uint64_t>(side)));
    std::vector<Box> boxes(1 + rng.Below(40));
    for (Box& box : boxes) {
      for (size_t c = 0; c < columns; ++c) {
        if (rng.Chance(0.05)) {
          box.push_back(rng.Chance(0.5) ? kEverything : kNothing);
          continue;
        }
        const int64_t low = static_cast<int64_t>(rng.Below(static_cast<uint64_t>(side)));
        const auto more = static_cast<int64_t>(rng.Below(static_cast<uint64_t>(width)));
        box.push_back({low, std::min(side - 1, low + more)});
      }
    }
    ASSERT_NO_FATAL_FAILURE(ExpectAsOnTheGrid(boxes, side));
  }
}

}  // namespace
}  // namespace grebe::layout

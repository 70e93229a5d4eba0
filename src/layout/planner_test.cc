#include "layout/planner.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/rng.h"
#include "testing/seed.h"

namespace grebe::layout {
namespace {

UpkeepFile FileOf(int64_t low, int64_t high, int64_t bytes, int group = 0) {
  return {{{low, high}}, bytes, bytes, group};
}

std::vector<uint32_t> FilesOf(const UpkeepPlan& plan) {
  std::vector<uint32_t> files;
  for (const UpkeepGroup& group : plan.groups) {
    files.insert(files.end(), group.files.begin(), group.files.end());
  }
  std::sort(files.begin(), files.end());
  return files;
}

TEST(Planner, FilesSideBySideAreLeftAlone) {
  std::vector<UpkeepFile> files;
  for (int i = 0; i < 100; ++i) files.push_back(FileOf(i * 10, i * 10 + 9, 1 + i % 7));
  const UpkeepPlan plan = PlanUpkeep(files, {});
  EXPECT_TRUE(plan.groups.empty());
  EXPECT_EQ(plan.bytes, 0);
  EXPECT_NEAR(plan.depth_before, 1, 1e-9);
  EXPECT_NEAR(plan.depth_after, 1, 1e-9);
}

TEST(Planner, FilesThatTouchAreLeftAlone) {
  std::vector<UpkeepFile> files;
  for (int i = 0; i < 100; ++i) files.push_back(FileOf(i * 10, i * 10 + 10, 5));
  EXPECT_EQ(PlanUpkeep(files, {}).bytes, 0);
}

TEST(Planner, FilesAllOverEachOtherAreRewritten) {
  const std::vector<UpkeepFile> files(10, FileOf(0, 1000, 7));
  const UpkeepPlan plan = PlanUpkeep(files, {});
  ASSERT_EQ(plan.groups.size(), 1u);
  EXPECT_EQ(plan.files, 10);
  EXPECT_EQ(plan.bytes, 70);
  EXPECT_NEAR(plan.groups[0].depth_before, 10, 1e-9);
  EXPECT_NEAR(plan.depth_before, 10, 1e-9);
  EXPECT_NEAR(plan.depth_after, 1, 1e-9);
}

// Ten new files over an ordered run of a thousand times their bytes: only they are worth it.
TEST(Planner, AThinLayerIsRewrittenWithoutTheDenseOneUnderIt) {
  std::vector<UpkeepFile> files;
  for (int i = 0; i < 100; ++i) files.push_back(FileOf(i * 100, i * 100 + 99, 1000));
  for (int i = 0; i < 10; ++i) files.push_back(FileOf(i, 9990 + i, 10));
  const UpkeepPlan plan = PlanUpkeep(files, {});
  EXPECT_EQ(FilesOf(plan), (std::vector<uint32_t>{100, 101, 102, 103, 104, 105, 106, 107, 108,
                                                   109}));
  EXPECT_NEAR(plan.depth_before, 11, 0.1);
  EXPECT_NEAR(plan.depth_after, 2, 0.1);
}

TEST(Planner, OnlyTheDeepRegionIsRewritten) {
  std::vector<UpkeepFile> files;
  for (int i = 0; i < 50; ++i) files.push_back(FileOf(i * 100, i * 100 + 99, 100));
  for (int i = 0; i < 8; ++i) files.push_back(FileOf(2000 + i, 2390 + i, 400));
  const std::vector<uint32_t> chosen = FilesOf(PlanUpkeep(files, {}));
  for (uint32_t f = 50; f < 58; ++f) {
    EXPECT_TRUE(std::binary_search(chosen.begin(), chosen.end(), f)) << f;
  }
  for (uint32_t f : chosen) EXPECT_TRUE(f >= 50 || (f >= 19 && f <= 24)) << f;
}

TEST(Planner, GroupsAreNeverMixed) {
  std::vector<UpkeepFile> files;
  for (int i = 0; i < 20; ++i) files.push_back(FileOf(0, 100, 10, i % 10));
  EXPECT_EQ(PlanUpkeep(files, {}).bytes, 0);     // two files a group
  for (int i = 0; i < 60; ++i) files.push_back(FileOf(0, 100, 10, i % 10));
  const UpkeepPlan plan = PlanUpkeep(files, {});       // eight
  ASSERT_EQ(plan.groups.size(), 10u);
  for (const UpkeepGroup& group : plan.groups) {
    for (uint32_t f : group.files) EXPECT_EQ(files[f].group, files[group.files[0]].group);
  }
}

TEST(Planner, BoxesApartInAnotherColumnAreNotRewritten) {
  std::vector<UpkeepFile> apart, together;
  for (int i = 0; i < 10; ++i) {
    apart.push_back({{{0, 100}, {i * 10, i * 10 + 9}}, 5, 5, 0});
    together.push_back({{{0, 100}, {0, 100}}, 5, 5, 0});
  }
  EXPECT_EQ(PlanUpkeep(apart, {}).bytes, 0);
  EXPECT_EQ(PlanUpkeep(together, {}).bytes, 50);
}

TEST(Planner, UnknownBoundsLieOverEverything) {
  std::vector<UpkeepFile> files;
  for (int i = 0; i < 8; ++i) files.push_back({{kEverything}, 10, 10, 0});
  files.push_back({{kNothing}, 10, 10, 0});
  EXPECT_EQ(FilesOf(PlanUpkeep(files, {})), (std::vector<uint32_t>{0, 1, 2, 3, 4, 5, 6, 7}));
}

TEST(Planner, ABudgetIsKeptAndSpentOnTheDeepest) {
  std::vector<UpkeepFile> files;
  for (int i = 0; i < 20; ++i) files.push_back(FileOf(0, 99, 10));
  for (int i = 0; i < 6; ++i) files.push_back(FileOf(200, 299, 10));
  UpkeepOptions options;
  EXPECT_EQ(PlanUpkeep(files, options).bytes, 260);
  options.budget_bytes = 200;
  const UpkeepPlan plan = PlanUpkeep(files, options);
  EXPECT_EQ(plan.bytes, 200);
  EXPECT_EQ(FilesOf(plan).back(), 19u);
  EXPECT_GT(plan.weight_min, options.weight_min);
  options.budget_bytes = 0;
  EXPECT_EQ(PlanUpkeep(files, options).bytes, 0);
}

TEST(Planner, NoFilesNoPlan) {
  EXPECT_EQ(PlanUpkeep({}, {}).bytes, 0);
  EXPECT_EQ(PlanUpkeep({{{kEverything}, 0, 0, 0}}, {}).bytes, 0);
}

// Random tables: what is planned obeys the rule, measured by brute force on whole ranges; and
// after the rewrite, modelled as equal pieces side by side, there is nothing left to do.
TEST(Planner, RandomTablesHaveAnEmptySecondPlan) {
  const uint64_t seed = grebe::testing::Seed("Planner");
  Rng rng(seed);
  int64_t planned = 0;
  for (int round = 0; round < 200; ++round) {
    std::vector<UpkeepFile> files(10 + rng.Below(100));
    for (UpkeepFile& file : files) {
      const auto low = static_cast<int64_t>(rng.Below(10000));
      const auto width = static_cast<int64_t>(1 + rng.Below(rng.Chance(0.3) ? 10000 : 500));
      file = FileOf(low, low + width, static_cast<int64_t>(1 + rng.Below(1000)));
    }
    const UpkeepPlan plan = PlanUpkeep(files, {});
    planned += !plan.groups.empty();
    EXPECT_LE(plan.depth_after, plan.depth_before);
    std::vector<bool> gone(files.size(), false);
    std::vector<UpkeepFile> after;
    for (const UpkeepGroup& group : plan.groups) {
      EXPECT_GT(group.depth_before, 1);
      EXPECT_GT(group.files.size(), 2u);
      // Rows lie evenly in each file: they are put in order and cut into files of equal bytes.
      std::vector<int64_t> rows;
      for (uint32_t f : group.files) {
        EXPECT_FALSE(gone[f]);
        gone[f] = true;
        const Interval range = files[f].box[0];
        for (int64_t i = 0; i < files[f].rows; ++i) {
          rows.push_back(range.low + (range.high - range.low) * i /
                                         std::max<int64_t>(1, files[f].rows - 1));
        }
      }
      std::sort(rows.begin(), rows.end());
      EXPECT_EQ(static_cast<int64_t>(rows.size()), group.rows);
      for (size_t begin = 0; begin < rows.size(); begin += 500) {
        const size_t end = std::min(rows.size(), begin + 500);
        after.push_back(FileOf(rows[begin], rows[end - 1], static_cast<int64_t>(end - begin)));
      }
    }
    for (size_t f = 0; f < files.size(); ++f) {
      if (!gone[f]) after.push_back(files[f]);
    }
    EXPECT_EQ(PlanUpkeep(after, {}).bytes, 0) << "round " << round;
  }
  EXPECT_GT(planned, 20);
}

}  // namespace
}  // namespace grebe::layout

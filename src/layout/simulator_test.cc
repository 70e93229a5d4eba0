#include "layout/simulator.h"

#include <gtest/gtest.h>

namespace grebe::layout {
namespace {

Simulation Replay(Arrival arrival, UpkeepPolicy upkeep, int runs = 4, double weight_min = 3) {
  SimulateOptions options;
  options.arrival = arrival;
  options.upkeep = upkeep;
  options.runs = runs;
  options.weight_min = weight_min;
  options.measure_every = 1;
  return Simulate(options);
}

// What a depth costs at least, of all mixtures of the given (depth, amplification) pairs: the
// lower edge of their hull.
double Frontier(const std::vector<Simulation>& others, double depth) {
  double least = 1e9;
  for (const Simulation& a : others) {
    if (a.average_depth <= depth) least = std::min(least, a.write_amplification);
    for (const Simulation& b : others) {
      if (a.average_depth > depth || b.average_depth <= depth) continue;
      const double part = (depth - a.average_depth) / (b.average_depth - a.average_depth);
      least = std::min(least, a.write_amplification +
                                  part * (b.write_amplification - a.write_amplification));
    }
  }
  return least;
}

TEST(Simulator, SpreadAppendsStayBelowTheFrontierOfTieredAndLevelled) {
  std::vector<Simulation> others;
  for (int runs = 2; runs <= 16; ++runs) {
    others.push_back(Replay(Arrival::kSpread, UpkeepPolicy::kTiered, runs));
    others.push_back(Replay(Arrival::kSpread, UpkeepPolicy::kLevelled, runs));
  }
  const Simulation own = Replay(Arrival::kSpread, UpkeepPolicy::kPlanner);
  EXPECT_LE(own.average_depth, 8);
  EXPECT_LE(own.write_amplification, 5);
  EXPECT_LE(own.write_amplification, Frontier(others, own.average_depth));
  EXPECT_EQ(own.second_plan_bytes, 0);
  for (double weight_min : {2.0, 5.0}) {
    const Simulation other = Replay(Arrival::kSpread, UpkeepPolicy::kPlanner, 0, weight_min);
    EXPECT_LE(other.write_amplification, Frontier(others, other.average_depth)) << weight_min;
    EXPECT_EQ(other.second_plan_bytes, 0) << weight_min;
  }
}

TEST(Simulator, AppendsThatFollowTimeNeedNoRewriting) {
  const Simulation own = Replay(Arrival::kTime, UpkeepPolicy::kPlanner);
  EXPECT_LE(own.max_average_depth, 2);
  EXPECT_LE(own.write_amplification, 2);
}

TEST(Simulator, LateRowsAreKeptInOrderToo) {
  const Simulation own = Replay(Arrival::kLate, UpkeepPolicy::kPlanner);
  const Simulation none = Replay(Arrival::kLate, UpkeepPolicy::kNone);
  EXPECT_LE(own.average_depth, 8);
  EXPECT_LE(own.write_amplification, 4);
  EXPECT_GT(none.average_depth, 100);
  EXPECT_EQ(own.second_plan_bytes, 0);
}

TEST(Simulator, WithoutUpkeepEveryAppendAddsToTheDepth) {
  const Simulation none = Replay(Arrival::kSpread, UpkeepPolicy::kNone);
  EXPECT_DOUBLE_EQ(none.write_amplification, 1);
  EXPECT_NEAR(none.steps.back().average_depth, 1000, 1);
}

// Merging four runs of a level: 1,000 is 33220 in base 4, and so many runs are left.
TEST(Simulator, TieredLeavesTheDigitsOfTheAppends) {
  const Simulation tiered = Replay(Arrival::kSpread, UpkeepPolicy::kTiered, 4);
  EXPECT_NEAR(tiered.steps.back().average_depth, 3 + 3 + 2 + 2 + 0, 0.1);
  EXPECT_EQ(tiered.rewrites, 250 + 62 + 15 + 3);
  EXPECT_NEAR(tiered.write_amplification, 1 + (250 * 4 + 62 * 16 + 15 * 64 + 3 * 256) / 1000.0,
              1e-9);
}

}  // namespace
}  // namespace grebe::layout

// Which files to rewrite: those whose ranges other files cover, by measure and not by size.
//
// A file is a box over the columns that the table is ordered by. Places are drawn from the boxes as
// rows would be; at a place every file that covers it has a density: its bytes over the share of
// all places that it covers. A wide file of few bytes is thin, a file of a well ordered run dense.
// The weight on a file is how many other files lie over it, a neighbour thinner than itself counted
// by the ratio of the densities: a new small file over a large ordered run weighs little, because
// reading around it costs little and rewriting the run costs much.
//
// A file is rewritten together with those it meets when the weight on each of them, counting only
// files that are rewritten too, is at least weight_min / 2, and over all their bytes at least
// weight_min on average. So the plan does not depend on the order of the files or on their sizes
// as such, small files that nothing lies over are left alone, and a table that was just rewritten
// has an empty plan: in place of several layers there is one, which weighs on the files left out no
// more than the layers did.
//
// Merging sorted runs by this rule costs fewer bytes at the same depth than size-tiered or levelled
// merging: docs/concepts/upkeep.md has the curves, simulator.h runs this very code.
//
// Cost: places (at most 65,536, or two a file) times the depth, a few times over.
// Threads: pure functions; safe.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "layout/metrics.h"

namespace grebe::layout {

struct UpkeepFile {
  // Numbers in proportion to the values where they have one (a number, a time), else ranks. A
  // column of unknown bounds: kEverything.
  Box box;
  int64_t bytes = 0, rows = 0;
  int group = 0;            // a Hive partition: its files are written together with no others
};

struct UpkeepOptions {
  // Raise it to rewrite less and live with more depth. The default is chosen by the simulator.
  double weight_min = 3;
  // Most bytes to rewrite. When the set is larger, weight_min is raised until it fits.
  int64_t budget_bytes = std::numeric_limits<int64_t>::max();
  uint64_t seed = 1;        // of the places
};

// Files that overlap, to be ordered together.
struct UpkeepGroup {
  std::vector<uint32_t> files;    // of the input, ascending
  int64_t bytes = 0, rows = 0;
  // How many of the plan's files a row of theirs lies in, on average: after, 1.
  double depth_before = 0;
};

struct UpkeepPlan {
  std::vector<UpkeepGroup> groups;  // the heaviest first
  int64_t files = 0, bytes = 0, rows = 0;
  double weight_min = 0;          // as used: above the option's when the budget was too small
  // Of the whole table: how many files cover the place of a row, on average; the most at any place.
  double depth_before = 0, depth_after = 0;
  double depth_max_before = 0, depth_max_after = 0;
};

UpkeepPlan PlanUpkeep(const std::vector<UpkeepFile>& files, const UpkeepOptions& options);

}  // namespace grebe::layout

// Replays appends to a table and the upkeep of its order, and tells what both cost: how deep the
// files lie over time, and how many bytes were written for each byte appended.
//
// A table here is real in all but its bytes: every append brings rows with keys, a rewrite sorts
// the keys of the files it takes and cuts them into files, and depth is what metrics.h measures on
// the files' least and greatest keys. The planner is the one of planner.h.
// Threads: pure functions; safe.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "layout/planner.h"

namespace grebe::layout {

// Where the keys of an append lie.
enum class Arrival {
  kSpread,      // all over the key space
  kTime,        // each append after the one before, with a little overlap
  kLate,        // as kTime, but a tenth of the rows belongs to any earlier time
};

enum class UpkeepPolicy {
  kPlanner,     // PlanUpkeep after each append
  kTiered,      // `runs` runs of a level are merged into one of the next
  kLevelled,    // each level is one run, `runs` times as large as the level before
  kNone,
};

struct SimulateOptions {
  int64_t appends = 1000;
  int64_t rows_per_append = 64;
  int64_t rows_per_file = 512;      // of what a rewrite writes
  Arrival arrival = Arrival::kSpread;
  UpkeepPolicy upkeep = UpkeepPolicy::kPlanner;
  int runs = 4;                     // of kTiered and kLevelled
  double weight_min = UpkeepOptions{}.weight_min;   // of kPlanner
  int64_t measure_every = 1;        // appends between two measures of depth
  uint64_t seed = 1;
};

struct SimulatedStep {
  int64_t appends = 0;
  int64_t files = 0;
  double average_depth = 0;         // over the files
  double write_amplification = 0;   // rows written so far over rows appended so far
};

struct Simulation {
  std::vector<SimulatedStep> steps;
  double average_depth = 0;         // the mean over the steps
  double max_average_depth = 0;
  double write_amplification = 0;   // at the end
  int64_t rewrites = 0;
  int64_t second_plan_bytes = 0;    // what plans made again right after a rewrite would rewrite
};

Simulation Simulate(const SimulateOptions& options);

}  // namespace grebe::layout

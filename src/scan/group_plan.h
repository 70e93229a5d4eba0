// Which rows of some row groups may be wanted: Bloom filters, then page indexes; and where the
// pages of the needed columns lie. For src/scan only.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/status.h"
#include "base/types.h"
#include "scan/file_set.h"

namespace grebe::scan {

struct GroupPlan {
  struct Part {
    RowRange rows;           // of the row group
    bool all_rows = false;   // every one is wanted
  };
  size_t file = 0;
  int group = 0;
  std::vector<Part> parts;   // sorted, disjoint; row groups without any are left out
};

// Cost: one wave of Bloom filters and page indexes together (one more where a filter's size is not
// in the footer; where there is no page index, the filter columns' page headers are walked).
// The pages of the filter's columns are found, and those of the others where that needs no wave.
Result<std::vector<GroupPlan>> PlanGroups(std::span<const FileSet::Candidate> candidates,
                                          const ScannerOptions& options, FileSet* set,
                                          AheadStore* store, ScanCost* cost);

struct GroupLeaves {
  size_t file = 0;
  int group = 0;
};

// Makes the pages of the shape's leaves known, of row groups whose others already are. No wave
// where they were found before.
Status FindPages(std::span<const GroupLeaves> groups, const table::RowShape& shape,
                 const ScannerOptions& options, FileSet* set, AheadStore* store, ScanCost* cost);

}  // namespace grebe::scan

// The statistics of many files as one object, which an index keeps beside each fragment:
// docs/format/stats.md. Entries name files by path and identity, so that those of other versions
// of a file are never taken for its own.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "store/store.h"

namespace grebe::scan {

struct StatsEntry {
  std::string path;            // relative to the table
  store::Identity identity;
  std::string packed;          // PackStats
};

std::string PackStatsObject(const std::vector<StatsEntry>& entries);
// Errors: Corrupt, Unsupported (another version of the format).
Result<std::vector<StatsEntry>> UnpackStatsObject(std::string_view bytes);

}  // namespace grebe::scan

// Which files of a table a rewrite lays out together, and in which folder the result goes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "store/store.h"
#include "table/snapshot.h"

namespace grebe::engine {

struct RewriteGroup {
  std::string folder;                  // "day=2026-01-01/" or ""
  std::vector<store::Object> files;    // by path
};

struct RewriteGroups {
  std::vector<RewriteGroup> groups;    // by folder, then by what keeps files apart
  // Partition columns that become columns of the files.
  table::PartitionScheme columns;
  // Partition columns that stay in the folders' names, and are no columns of the files.
  std::vector<std::string> kept;
};

// partitions: as RewriteLayout::partitions. apart: per file of the snapshot, a number; files of
// different ones are never laid out together. Empty: all may be. Errors: InvalidArgument.
Result<RewriteGroups> GroupFiles(const table::Snapshot& snapshot, std::string_view partitions,
                                 const std::vector<size_t>& apart = {});

}  // namespace grebe::engine

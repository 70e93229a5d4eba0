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
  std::vector<RewriteGroup> groups;    // by folder
  // Partition columns that become columns of the files.
  table::PartitionScheme columns;
  // Partition columns that stay in the folders' names, and are no columns of the files.
  std::vector<std::string> kept;
};

// partitions: as RewriteLayout::partitions. Errors: InvalidArgument.
Result<RewriteGroups> GroupFiles(const table::Snapshot& snapshot, std::string_view partitions);

}  // namespace grebe::engine

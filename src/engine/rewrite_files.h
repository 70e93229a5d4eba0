// Which files of a table a rewrite takes when a plan, or a list, names them.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "table/snapshot.h"

namespace grebe::engine {

// Leaves in the snapshot only the files that are named, and makes its id theirs: a file that comes
// meanwhile is none of the rewrite's business. Gives the group of each file that is left.
// Errors: NotFound, InvalidArgument (a file named twice, a group without files).
Result<std::vector<size_t>> KeepFiles(const std::vector<std::vector<std::string>>& groups,
                                      table::Snapshot* snapshot);

}  // namespace grebe::engine

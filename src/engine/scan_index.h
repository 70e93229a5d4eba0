// Lookups on a table that has no index of the key: an Index whose answers come from a scan.
#pragma once

#include <memory>

#include "base/status.h"
#include "engine/table_context.h"
#include "grebe/lookup.h"

namespace grebe::engine {

// Cost: one listing, and one footer for the key columns' types. Errors: as Scan::Open.
Result<std::shared_ptr<Index>> OpenScanIndexAt(const TableContext& context,
                                               const OpenOptions& options);

}  // namespace grebe::engine

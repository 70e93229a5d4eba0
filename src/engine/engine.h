// The public calls, after their URIs were resolved: what tests call with stores of their own.
#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "engine/build.h"
#include "engine/table_context.h"
#include "grebe/index.h"
#include "grebe/lookup.h"
#include "grebe/scan.h"
#include "table/snapshot.h"

namespace grebe::engine {

Result<BuildSummary> CreateIndexAt(const TableContext& context, const std::string& name,
                                   const CreateOptions& options);
// Publishes the first version of an index whose fragment was built from the snapshot's files.
Result<BuildSummary> PublishIndexAt(const TableContext& context, const std::string& name,
                                    const table::Snapshot& snapshot, const IndexSpec& spec,
                                    const BuiltFragment& built);
Result<BuildSummary> RefreshIndexAt(const TableContext& context, const std::string& name,
                                    const BuildOptions& options);
Result<BuildSummary> CompactIndexAt(const TableContext& context, const std::string& name,
                                    const BuildOptions& options, bool all);
Result<std::shared_ptr<Index>> OpenIndexAt(const TableContext& context, const std::string& name,
                                           const OpenOptions& options);
Result<std::unique_ptr<Scan>> OpenScanAt(const TableContext& context, const ScanOptions& options);

}  // namespace grebe::engine

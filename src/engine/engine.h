// The public calls, after their URIs were resolved: what tests call with stores of their own.
#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "engine/table_context.h"
#include "grebe/index.h"
#include "grebe/lookup.h"
#include "grebe/scan.h"

namespace grebe::engine {

Result<BuildSummary> CreateIndexAt(const TableContext& context, const std::string& name,
                                   const CreateOptions& options);
Result<BuildSummary> RefreshIndexAt(const TableContext& context, const std::string& name,
                                    const BuildOptions& options);
Result<BuildSummary> CompactIndexAt(const TableContext& context, const std::string& name,
                                    const BuildOptions& options, bool all);
Result<std::shared_ptr<Index>> OpenIndexAt(const TableContext& context, const std::string& name,
                                           const OpenOptions& options);
Result<std::unique_ptr<Scan>> OpenScanAt(const TableContext& context, const ScanOptions& options);

}  // namespace grebe::engine

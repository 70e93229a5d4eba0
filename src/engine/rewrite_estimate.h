// What a rewrite would write, from some rows that are written to nowhere.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "engine/rewrite_source.h"
#include "engine/rewrite_target.h"
#include "layout/rewrite_job.h"

namespace grebe::engine {

struct RewriteEstimate {
  int64_t files = 0;
  int64_t rows = 0;
  int64_t bytes = 0;
  int64_t spilled_bytes = 0;
  int64_t memory_bytes = 0;
};

// Lays some rows of the source out as the rewrite would lay all of them, encodes them by the same
// code into memory, and counts. Reads rows that take at most a partition's memory: exact, but for
// spill and memory, when these are all there are. Errors: the source's.
Result<RewriteEstimate> EstimateRewrite(RewriteSource& source,
                                        const layout::PreparedRewrite& prepared,
                                        const layout::RewriteOptions& options,
                                        const RewriteFileOptions& file);

}  // namespace grebe::engine

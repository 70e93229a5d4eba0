#include "engine/rewrite_estimate.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "layout/memory_share.h"
#include "layout/rewrite_estimate.h"
#include "store/memory_store.h"

namespace grebe::engine {
namespace {

// Of a rewrite of the sampled rows: all in memory.
constexpr int64_t kSampleMemoryBytes = int64_t{1} << 30;

struct Written {
  int64_t files = 0;
  int64_t rows_in = 0, rows_out = 0;   // a cogroup makes fewer
  int64_t bytes = 0;
};

Result<Written> WriteSample(layout::SampledSource& sampled, layout::RewriteOptions options,
                            const RewriteFileOptions& file) {
  Written out;
  ARROW_ASSIGN_OR_RAISE(const auto prepared, layout::PrepareRewrite(sampled, options));
  const store::Location nowhere{store::MakeMemoryStore("sample"), "sample"};
  ARROW_ASSIGN_OR_RAISE(const auto folder, RewriteFolder::Open(nowhere, "sample"));
  GroupTarget target(folder.get(), 0, "", "", file, [] { return ""; }, nullptr);
  ARROW_ASSIGN_OR_RAISE(const auto result,
                        layout::RunRewrite(sampled, target, prepared, options));
  out.rows_in = result.row_count;
  for (const RewrittenFile& written : folder->files()) {
    out.files += 1;
    out.rows_out += written.row_count;
    out.bytes += written.identity.size_bytes;
  }
  return out;
}

// As for the whole rewrite, but in memory, in silence, and with the row groups that its memory
// limit allows.
layout::RewriteOptions SampleOptions(const layout::RewriteOptions& whole,
                                     const layout::SampledSource& sampled,
                                     const layout::MemoryShare& share, double row_bytes) {
  layout::RewriteOptions options = whole;
  options.memory_bytes_max = kSampleMemoryBytes;
  options.progress = nullptr;
  options.target_row_group_rows =
      std::clamp<int64_t>(static_cast<int64_t>(static_cast<double>(share.row_group_bytes) /
                                               row_bytes), 1, whole.target_row_group_rows);
  if (whole.skip_file) {
    options.skip_file = [&](int file, const Status& error) {
      return whole.skip_file(sampled.whole_file(file), error);
    };
  }
  return options;
}

}  // namespace

Result<RewriteEstimate> EstimateRewrite(RewriteSource& source,
                                        const layout::PreparedRewrite& prepared,
                                        const layout::RewriteOptions& options,
                                        const RewriteFileOptions& file) {
  const auto share = layout::MemoryShare::Of(options.memory_bytes_max, options.threads);
  const auto rows_max = static_cast<int64_t>(static_cast<double>(share.partition_bytes) /
                                             prepared.row_bytes);
  layout::SampledSource sampled(source, prepared.skipped, rows_max);
  ARROW_ASSIGN_OR_RAISE(const auto costs, layout::EstimateCosts(sampled, prepared, options));
  RewriteEstimate out;
  if (costs.sampled_rows == 0) return out;
  const auto sample_options = SampleOptions(options, sampled, share, prepared.row_bytes);
  ARROW_ASSIGN_OR_RAISE(const Written written, WriteSample(sampled, sample_options, file));
  out.spilled_bytes = costs.spilled_bytes;
  out.memory_bytes = costs.memory_bytes;
  if (sampled.is_whole()) {
    out.files = written.files;
    out.rows = written.rows_out;
    out.bytes = written.bytes;
    return out;
  }
  out.files = layout::EstimateFiles(prepared);
  out.rows = file.cogroup.empty() ? prepared.row_count : layout::EstimateKeys(prepared);
  out.bytes = std::llround(static_cast<double>(written.bytes) *
                           static_cast<double>(prepared.row_count) /
                           static_cast<double>(written.rows_in));
  return out;
}

}  // namespace grebe::engine

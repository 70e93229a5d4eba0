// What a rewrite will make and cost, told from its sample and a few whole rows: for dry runs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "layout/rewrite_job.h"

namespace grebe::layout {

// Some rows of another source: all of them when they are at most rows_max, else the first ones of
// up to 16 files that are spread over the source.
class SampledSource final : public RowSource {
 public:
  // skipped: per file of the whole source.
  SampledSource(RowSource& whole, const std::vector<bool>& skipped, int64_t rows_max);

  const std::shared_ptr<arrow::Schema>& schema() const override { return whole_.schema(); }
  int file_count() const override { return static_cast<int>(parts_.size()); }
  int64_t row_count(int file) const override { return PartOf(file).rows; }
  Status Read(int file, const std::vector<std::string>& columns, int64_t batch_rows,
              const RowsCallback& on_rows) override;

  // Whether these are all rows of the whole source.
  bool is_whole() const { return is_whole_; }
  // The file's number in the whole source.
  int whole_file(int file) const { return PartOf(file).file; }

 private:
  struct Part {
    int file = 0;
    int64_t rows = 0;
  };
  const Part& PartOf(int file) const { return parts_[static_cast<size_t>(file)]; }

  RowSource& whole_;
  std::vector<Part> parts_;
  bool is_whole_ = false;
};

struct RewriteCosts {
  int64_t sampled_rows = 0;
  int64_t spilled_bytes = 0;
  int64_t memory_bytes = 0;    // the most that rows will take at once
};

// sampled: rows of the source that was prepared. Packs them as they would be spilled.
Result<RewriteCosts> EstimateCosts(RowSource& sampled, const PreparedRewrite& prepared,
                                   const RewriteOptions& options);

// Planned files, without those of buckets that have no row in the sample.
int64_t EstimateFiles(const PreparedRewrite& prepared);

// Distinct values of the order's first tie column: exact when the sample holds every row, else from
// the values that it holds once (Charikar's GEE). REQUIRES: a sort.
int64_t EstimateKeys(const PreparedRewrite& prepared);

}  // namespace grebe::layout

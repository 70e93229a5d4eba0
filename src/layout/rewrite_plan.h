// Which files a rewrite makes, and the partitions of rows they are made from.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/status.h"
#include "layout/row_sample.h"

namespace grebe::layout {

struct PlanOptions {
  int64_t target_file_rows = 0;
  double row_bytes = 0;               // of a row in memory
  int64_t partition_bytes_max = 0;    // what is sorted at once
  uint32_t section_count = 1;         // every one has a file, though it may turn out empty
  // Rows that are equal in this many tie columns stay together (0: any rows may part).
  int unparted_columns = 0;
};

struct PlannedFile {
  uint32_t section = 0;
  Border begin;
};

// Rows from one border to the next. A partition holds several whole files, or a part of one.
struct PlannedPartition {
  Border begin;
  int first_file = 0;
  int file_count = 1;
};

// Partitions that one thread writes, in order: those of one file, or one with its files.
struct PlannedTask {
  int first_partition = 0;
  int partition_count = 1;
};

struct RewritePlan {
  std::vector<PlannedFile> files;
  std::vector<PlannedPartition> partitions;
  std::vector<PlannedTask> tasks;
};

// Files are cut at the highest borders between 0.7 and 1.4 of the target. The files depend on the
// sample, the target and unparted_columns only, never on memory.
RewritePlan PlanRewrite(const RowSample& sample, const PlanOptions& options);

// The partition a row belongs to. Threads: safe.
class PartitionFinder {
 public:
  PartitionFinder(const RewritePlan& plan, const RowSample& sample);
  size_t Find(const RowPlace& row) const;

 private:
  const RowSample& sample_;
  std::vector<Border> begins_;   // of every partition but the first
};

}  // namespace grebe::layout

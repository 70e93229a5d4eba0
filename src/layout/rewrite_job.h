// One rewrite: rows of many source files, put in order within a memory limit and cut into new
// files.
//
//   sample -> order and plan -> partition (spilling) -> per partition: sort, gather, cut -> target
//
// What is read and what is written is the caller's: RowSource and RewriteTarget. Given the same
// source and the same options (memory, threads and spill folder aside) the same files are made, row
// for row.
#pragma once

#include <arrow/record_batch.h>
#include <arrow/table.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/stop.h"
#include "layout/row_order.h"
#include "layout/rewrite_plan.h"

namespace grebe::layout {

using RowsCallback =
    std::function<Status(const std::shared_ptr<arrow::RecordBatch>& rows, int64_t first_row)>;

// The rows of a rewrite's source files, all of one schema. Threads: Read may be called for several
// files at once.
class RowSource {
 public:
  virtual ~RowSource() = default;
  virtual const std::shared_ptr<arrow::Schema>& schema() const = 0;
  virtual int file_count() const = 0;
  virtual int64_t row_count(int file) const = 0;   // about, where reading makes rows
  // The file's rows in order, in batches of at most batch_rows. columns: those wanted at least
  // (dotted paths), by name in the batches; empty: all, in the schema's order.
  virtual Status Read(int file, const std::vector<std::string>& columns, int64_t batch_rows,
                      const RowsCallback& on_rows) = 0;
};

// A file being written. Threads: one at a time. Destroyed before Finish, it leaves nothing.
class TargetFile {
 public:
  virtual ~TargetFile() = default;
  // key_ends: with RewriteOptions::key_ends the rows after which a key ends, ascending, the last
  // one the row count; else empty.
  virtual Status WriteRowGroup(const std::shared_ptr<arrow::Table>& rows,
                               std::span<const int64_t> key_ends) = 0;
  virtual Status Finish() = 0;
};

// Where new files go. Threads: safe.
class RewriteTarget {
 public:
  virtual ~RewriteTarget() = default;
  // True when this file was finished by an earlier run: its rows are dropped.
  virtual bool IsFinished(int file) const = 0;
  // All source files are read, or were found bad; no file is created yet.
  virtual Status BeginWriting() = 0;
  virtual Result<std::unique_ptr<TargetFile>> Create(int file, uint32_t section) = 0;
};

struct RewriteOptions {
  RowOrder::Request order;
  int64_t target_file_rows = 1 << 20;
  int64_t target_row_group_rows = 128 << 10;   // fewer where memory does not hold them
  int64_t sample_rows_max = 256 << 10;         // fewer of wide rows: 32 MiB
  // Rows that are equal in this many columns of the order share a row group.
  int unparted_columns = 0;
  // Tell the target where keys end: values of the order's first column, cells of a curve.
  bool key_ends = false;
  int64_t memory_bytes_max = int64_t{1} << 30;
  std::string spill_folder;
  int threads = 1;
  const StopToken* stop = nullptr;
  // Whether to go on without a file that could not be read; unset: never. Any thread.
  std::function<bool(int file, const Status& error)> skip_file;
  // rows: read and written so far, of twice the source's. One call at a time.
  std::function<void(int64_t rows)> progress;
};

struct RewriteResult {
  int64_t row_count = 0;         // read; rows of finished files among them
  int64_t files_written = 0;
  int64_t files_kept = 0;        // finished by an earlier run
  int64_t partitions = 0;
  int64_t spilled_bytes = 0;
  double row_bytes = 0;          // of a row in memory
};

// Every stride-th row of all files together: some columns of theirs.
struct SampledRows {
  std::shared_ptr<arrow::RecordBatch> rows;
  std::vector<int> files;           // where each came from
  std::vector<int64_t> file_rows;
  double weight = 1;                // rows that each stands for
  int64_t row_count = 0;            // of the files that are not skipped, as the source counts them
  std::vector<bool> skipped;        // per source file
};
// REQUIRES: columns. Errors: InvalidArgument (no rows, no such column), the source's, Cancelled.
Result<SampledRows> SampleRows(RowSource& source, const std::vector<std::string>& columns,
                               const RewriteOptions& options);

// The order and the files that a rewrite would have, from a sample of the source.
struct PreparedRewrite {
  std::shared_ptr<const RowSample> sample;
  RewritePlan plan;
  int64_t row_count = 0;            // of the files that are not skipped, as the source counts them
  double row_bytes = 0;
  int64_t key_bytes = 0;            // with unparted_columns: of the largest key's rows, about
  std::vector<bool> skipped;        // per source file
};

// Reads the sample: the order's columns of every file, and a few whole rows. Errors: the source's,
// InvalidArgument, LimitExceeded (rows that may not part do not fit the memory limit).
Result<PreparedRewrite> PrepareRewrite(RowSource& source, const RewriteOptions& options);

// Errors: the source's, the target's, LimitExceeded (no space left to spill; rows that may not part
// do not fit the memory limit), Cancelled. Nothing but finished files is left behind.
Result<RewriteResult> RunRewrite(RowSource& source, RewriteTarget& target,
                                 const PreparedRewrite& prepared, const RewriteOptions& options);

}  // namespace grebe::layout

// Where the rows of keys are, and the set of distinct rows that several keys need.
#pragma once

#include <arrow/record_batch.h>

#include <memory>
#include <vector>

#include "base/status.h"
#include "base/types.h"
#include "index/index_view.h"
#include "lookup/row_fetch.h"

namespace grebe::engine {

// The rows of one key: runs sorted by (file, row).
struct KeyRows {
  std::vector<index::FoundRun> runs;
  bool exact = true;
  std::shared_ptr<arrow::RecordBatch> covering;

  int64_t row_count() const;
  // Rows [offset, offset + limit) of these; a negative limit means all after offset.
  KeyRows Window(int64_t offset, int64_t limit) const;
};

// Appends one row to runs, extending the last run when it follows on.
void AppendRow(uint32_t file, RowIndex row, std::vector<index::FoundRun>* runs);

// The distinct rows of several keys, by file and row: what is read, each once.
class RowSet {
 public:
  explicit RowSet(const std::vector<KeyRows>& keys);
  bool empty() const { return files_.empty(); }
  const std::vector<lookup::FileRows>& files() const { return files_; }
  // The place of a row among all rows of the set, in order. REQUIRES: the row is in the set.
  int64_t PositionOf(uint32_t file, RowIndex row) const;

 private:
  struct Range {
    uint32_t file;
    RowRange rows;
    int64_t position;   // of rows.begin
  };
  std::vector<lookup::FileRows> files_;
  std::vector<Range> ranges_;   // sorted
};

}  // namespace grebe::engine

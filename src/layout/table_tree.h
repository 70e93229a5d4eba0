// A partition tree over a table's columns: which leaf a row belongs to. Learnt from a query log and
// a sample, or read from the file that an earlier rewrite left, for new rows to be placed alike.
#pragma once

#include <arrow/record_batch.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "layout/query_cost.h"

namespace grebe::layout {

class TableTree {
 public:
  // A cut: rows whose value is null or less than the text's go to `below`, the others (NaN among
  // them) to `above`. The text is as a predicate has it, read by the column's
  // type.
  struct Node {
    std::string column;
    std::string value;
    int below = -1, above = -1;
    int leaf = -1;             // its number; -1: a cut
    bool is_leaf() const { return leaf >= 0; }
  };
  static constexpr size_t kNodesMax = size_t{1} << 20;

  // columns: those of the cuts and perhaps more, the most important first. Node 0 is the root,
  // children come after their parents, each has one parent, leaves are numbered from 0 in order.
  // Errors: InvalidArgument.
  static Result<std::shared_ptr<const TableTree>> Make(std::vector<std::string> columns,
                                                       std::vector<Node> nodes);

  // columns: those that may be cut; the sample has those of them that the log uses. target_rows:
  // of a leaf, in sample rows. Errors: InvalidArgument (a literal that is no value of its column;
  // no query that a cut could help).
  static Result<std::shared_ptr<const TableTree>> Learn(const std::vector<LoggedQuery>& log,
                                                        const std::vector<std::string>& columns,
                                                        const arrow::RecordBatch& sample,
                                                        double target_rows);

  const std::vector<Node>& nodes() const { return nodes_; }
  uint32_t leaf_count() const { return leaf_count_; }
  const std::vector<std::string>& columns() const { return columns_; }

 private:
  std::vector<std::string> columns_;
  std::vector<Node> nodes_;
  uint32_t leaf_count_ = 0;
};

// Finds leaves of rows of certain types. Threads: immutable, safe.
class LeafFinder {
 public:
  // rows: any of them, for their columns' types. Errors: InvalidArgument (a column that is not
  // there, or whose type has no order or does not compare with a cut's value).
  static Result<LeafFinder> Make(const TableTree& tree, const arrow::RecordBatch& rows);
  // One leaf a row.
  Status Leaves(const arrow::RecordBatch& rows, uint32_t* leaves) const;

 private:
  // The places of the cuts in one column, in order: a value's place is the number of cuts at or
  // below it, plus one; that of null is 0.
  struct Column {
    std::string path;
    std::vector<uint64_t> words;       // where the type's words are exact
    std::vector<std::string> texts;    // else
  };
  struct Step {
    int column = -1;
    uint32_t place = 0;                // rows of lower places go below
    int below = -1, above = -1;        // < 0: leaf -(n + 1)
  };
  static Status Places(const Column& column, const arrow::RecordBatch& rows, uint32_t* places);

  std::vector<Column> columns_;
  std::vector<Step> steps_;            // empty: one leaf
};

}  // namespace grebe::layout

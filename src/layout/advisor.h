// Tries layouts on a sample of a table's rows: sorts the sample as a rewrite would sort the table,
// cuts it into as many pieces as the table would have files, and asks the pieces' bounds what each
// logged query would read.
//
// Bytes are files read times the bytes of a file; what the table reads as it lies is taken from its
// own files. A query is bound to read one file at least in every candidate. What the sample cannot
// tell: order within files (pages), Bloom filters, and queries that want fewer rows than one in
// rows / sample_rows of the table.
// Threads: one at a time; reading works on several.
#pragma once

#include <arrow/array.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "layout/query_cost.h"
#include "layout/table_view.h"

namespace grebe::layout {

// Rows drawn evenly over the table, in its order.
struct TableSample {
  int64_t rows = 0;
  std::vector<std::shared_ptr<arrow::Array>> columns;   // per view column, of its type
};
// Reads every column of the view once. Errors: Corrupt, Unsupported, the store's.
Result<TableSample> ReadTableSample(store::Store& store, const TableView& view, int64_t sample_rows,
                                    uint64_t seed, const StopToken* stop);

struct ColumnUse {
  size_t column = 0;            // of the view
  double weight = 0, equality_weight = 0;     // of the queries that filter it, as a share of all
  int64_t distinct = 0;         // values in the sample
  int64_t distinct_prefixes = 0;  // of their first 8 bytes, which is what raw mode sees
  double null_share = 0;
  double order_correlation = 0; // with the order of the rows
  bool has_bounds = true;       // in every file
};

// The tree is judged by queries that its cuts were not made for: see Advisor::TryTree.
constexpr const char* kTreeCandidate = "tree(LOG)";

struct Candidate {
  std::string by, mode;         // "" for the table as it is
  int columns = 0;
  double bytes_read = 0;        // per query, by weight
  std::vector<double> query_bytes;
};

struct Advice {
  int64_t files = 0;            // simulated
  double bytes_fewest = 0;      // per query, by weight
  std::vector<ColumnUse> columns;       // of the queries, the most used first
  // Pairs of columns that order the rows alike: the second adds nothing to the first.
  std::vector<std::pair<size_t, size_t>> followers;
  std::vector<Candidate> candidates;    // the best first
};

// target_file_bytes: 0: as the table's own files. REQUIRES: queries; the view has their columns.
// Errors: InvalidArgument, Cancelled.
Result<Advice> AdviseOnSample(const TableView& view, const TableSample& sample,
                              const std::vector<LoggedQuery>& queries, int64_t target_file_bytes,
                              const StopToken* stop);

}  // namespace grebe::layout

// The queries of a log and a sample of a table as ranks, which is what a partition tree is built
// from (cut_tree.h).
//
// The rank of a row's value is the number of cut values at or below it, 0 for null. Cut values are
// the values of the sample and of the queries, so that a cut can be made at the very value that a
// query names; those without a text (bound_text.h: NaN) share the rank below them, and long text
// counts by its beginning.
// Threads: pure functions.
#pragma once

#include <arrow/record_batch.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "layout/cut_tree.h"
#include "layout/query_cost.h"

namespace grebe::layout {

struct LogRanks {
  // Columns that a query asks a range of, the most used first.
  std::vector<std::string> columns;
  std::vector<std::vector<uint32_t>> ranks;    // per column and row of the sample
  std::vector<RankQuery> queries;              // those that ask for one of the columns
  // The text of the cut value that rank `rank` begins with. REQUIRES: rank > 0.
  Result<std::string> TextAt(size_t column, uint32_t rank) const;

  std::vector<std::shared_ptr<arrow::Array>> values;    // per column
  std::vector<std::vector<int64_t>> rank_values;        // per column: where in values rank i + 1 is
};

// Columns of the log that are not among `columns` are taken as not asked for. NOT, OR and IN make
// several boxes, of which many are taken as the one around them; LIKE 'prefix%' is a range.
// Errors: InvalidArgument (a literal that is no value of its column; a column without an order).
Result<LogRanks> RankLog(const std::vector<LoggedQuery>& log,
                         const std::vector<std::string>& columns,
                         const arrow::RecordBatch& sample);

}  // namespace grebe::layout

// What each predicate of a log would read of a table as it lies, and the least that any table of
// such pieces could read.
//
// A file, row group or page is read when its bounds leave it possible that a wanted row is in it
// (scan/predicate.h); Bloom filters and the values themselves are not asked. Reading a page level
// answer means: the pages, of every column, that hold a row which the pages of the predicate's own
// columns leave possible, and the dictionaries of their chunks. The lower bound of a predicate that
// wants m rows is the fewest pieces of the table that could hold m rows if they held nothing else,
// and the fewest bytes such pieces could have: no order of the rows does better with such pieces.
//
// Wanted rows are counted by reading the predicates' columns, once for all predicates, of the files
// whose bounds do not decide already; or, with sample_rows, of randomly chosen files, the rest
// being estimated by the share that matched in those. Threads: works on several itself.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "layout/table_view.h"
#include "scan/predicate.h"

namespace grebe::layout {

struct LoggedQuery {
  std::string text;
  double weight = 1;            // how often it was asked
  scan::Predicate predicate;
};

// One predicate a line; a count may stand before it or, after a '#' or a tab, behind it. Empty
// lines and lines that begin with '#' are left out. Errors: InvalidArgument, with the line.
Result<std::vector<LoggedQuery>> ParseQueryLog(std::string_view text);

// The columns that the queries use, the most used first, by weight.
std::vector<std::string> ColumnsOf(const std::vector<LoggedQuery>& queries);

struct ReadShare {
  int64_t total = 0, read = 0, fewest = 0;        // pieces
  int64_t bytes_total = 0, bytes_read = 0, bytes_fewest = 0;
};

struct QueryCost {
  int64_t rows = 0;             // that it wants
  bool estimated = false;       // from a sample
  ReadShare files, row_groups, pages;
};

struct QueryCostOptions {
  int64_t sample_rows = 0;      // 0: exact
  uint64_t seed = 1;
  const StopToken* stop = nullptr;
};

// One per query. REQUIRES: the view has every column of the queries. Errors: InvalidArgument (a
// literal that is no value of its column), the store's, Corrupt.
Result<std::vector<QueryCost>> MeasureQueries(store::Store& store, const TableView& view,
                                              const std::vector<LoggedQuery>& queries,
                                              const QueryCostOptions& options);

// The fewest pieces that could hold so many rows, and the fewest bytes of any that could.
struct PieceSize {
  int64_t rows = 0, bytes = 0;
};
struct Fewest {
  int64_t pieces = 0, bytes = 0;
};
Fewest FewestPieces(const std::vector<PieceSize>& pieces, int64_t wanted_rows);

}  // namespace grebe::layout

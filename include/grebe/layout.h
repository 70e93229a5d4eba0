// Measuring how a table's rows lie, planning which files to rewrite, and advising on a layout.
//
// A query reads a file when the file's least and greatest values leave it possible that a wanted
// row is inside. So what counts is how much the files' ranges cover each other: their depth, the
// most files that share one value (docs/concepts/depth.md). Nothing here changes a table; the
// rewriting is in rewrite.h.
//
// Cost: a report and a plan read footers and page indexes; counting the rows that logged queries
// want reads the queries' columns too, once. Advice reads those columns.
// Errors of all calls: InvalidArgument (a column, a predicate, an option), NotFound, Corrupt,
// Unsupported, Transient, Permission, LimitExceeded, Cancelled. Threads: safe.
#pragma once

#include <arrow/result.h>
#include <arrow/scalar.h>

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "grebe/connect.h"
#include "grebe/index.h"
#include "grebe/stop.h"

namespace grebe {

struct LayoutTable {
  std::string table_uri;
  ConnectOptions connect;
  // Leave out files that cannot be read instead of failing; they are listed in the answer.
  bool skip_bad_files = false;
  const StopToken* stop = nullptr;
};

struct LayoutReportOptions {
  // Dotted paths of columns that are not in lists, or partition columns. Default: those of the
  // queries, or every column that has an order. The first two make the picture; up to four are
  // measured jointly.
  std::vector<std::string> columns;
  // A query log: one predicate a line, as `grebe scan --where` takes it, with a count before it or,
  // after '#' or a tab, behind it.
  std::string queries;
  bool pages = true;                // false: page indexes are not read
  int64_t sample_rows = 0;          // 0: count wanted rows exactly; else estimate from so many
};

// Files, row groups or pages by their ranges.
struct DepthFigures {
  int64_t pieces = 0;               // that hold a value
  int64_t without_values = 0;       // only nulls: in none of the other figures
  int64_t unknown = 0;              // of pieces: a bound is missing, so taken to cover everything
  int64_t constant = 0;             // of pieces: one value
  double average_depth = 0, average_overlaps = 0;
  int64_t max_depth = 0;
  std::map<int64_t, int64_t> histogram;   // depth -> pieces
  bool counted = true;              // false: too many overlap to be counted jointly
};

struct ColumnDepth {
  std::vector<std::string> columns;   // one, or several measured jointly
  DepthFigures files, row_groups, pages;
  std::vector<std::string> files_without_bounds;
  // Text and binary whose bounds may be shortened: they still hold, but cover more than they must.
  std::vector<std::string> files_with_shortened_bounds;
};

// Pieces read, of how many, and the fewest that could hold the wanted rows; and their bytes.
struct LayoutReads {
  int64_t total = 0, read = 0, fewest = 0;
  int64_t bytes_total = 0, bytes_read = 0, bytes_fewest = 0;
};

struct LayoutQuery {
  std::string predicate;
  double weight = 1;                // how often it was asked
  int64_t rows = 0;                 // that it wants
  bool estimated = false;
  LayoutReads files, row_groups, pages;
};

// A file's range in the first two columns; null where it is not known or there is no value.
struct LayoutBox {
  std::string file;
  int64_t rows = 0, bytes = 0;
  std::shared_ptr<arrow::Scalar> x_min, x_max, y_min, y_max;
};

struct LayoutReport {
  std::string table;
  int64_t files = 0, row_groups = 0, rows = 0, bytes = 0;
  std::vector<ColumnDepth> columns;   // each by itself, then jointly
  std::vector<LayoutQuery> queries;
  std::string x_column, y_column;     // of the boxes; y empty when there is one column
  std::vector<LayoutBox> boxes;       // in file order
  std::vector<SkippedFile> skipped;
  std::string ToJson() const;
  std::string ToText() const;
};

arrow::Result<LayoutReport> ReportLayout(const LayoutTable& table,
                                         const LayoutReportOptions& options);

// One HTML page without any outside resource; `after` (may be null): another table to compare with.
std::string LayoutReportHtml(const LayoutReport& report, const LayoutReport* after);

struct LayoutPlanOptions {
  // That part the files, at least one: of a sort only its first column, of a curve all of them.
  std::vector<std::string> columns;
  // Most bytes to rewrite.
  int64_t budget_bytes = std::numeric_limits<int64_t>::max();
  // Raise it to rewrite less and live with more depth (docs/concepts/upkeep.md).
  double weight_min = 3;
};

struct LayoutPlanGroup {
  std::vector<std::string> files;     // to be ordered together
  int64_t rows = 0, bytes = 0;
  double depth_before = 0;            // among themselves; afterwards 1
};

struct LayoutPlan {
  std::string table;
  std::vector<std::string> columns;
  int64_t files_total = 0, bytes_total = 0;
  int64_t files = 0, rows = 0, bytes = 0;     // to rewrite
  double rewritten_share = 0;         // of the table's bytes: what this plan adds to amplification
  // Files that cover the place of a row, on average, and the most of any place.
  double depth_before = 0, depth_after = 0;
  double depth_max_before = 0, depth_max_after = 0;
  double weight_min = 0;              // as used: raised until the budget is kept
  std::vector<LayoutPlanGroup> groups;
  std::vector<SkippedFile> skipped;
  std::string ToJson() const;
  std::string ToText() const;
};

// Which files to rewrite so that the columns' ranges overlap less. Empty when nothing is worth it,
// as after a rewrite. Files of different Hive partitions are never planned together.
arrow::Result<LayoutPlan> PlanLayout(const LayoutTable& table, const LayoutPlanOptions& options);

// Replays appends to a synthetic table and the upkeep of its order.
struct ReplayOptions {
  int64_t appends = 1000;
  // Where the keys of an append lie: "spread" over all; "time", each after the one before; "late",
  // as time, but a tenth belongs to any earlier time.
  std::string arrival = "spread";
  // "plan": PlanLayout after each append. "tiered": `runs` runs of a level become one of the next.
  // "levelled": each level is one run, `runs` times as large as the one before. "none".
  std::string upkeep = "plan";
  int runs = 4;
  double weight_min = 3;            // of "plan"
  int64_t rows_per_append = 64;
  int64_t rows_per_file = 512;      // of what a rewrite writes
  uint64_t seed = 1;
};

struct ReplayStep {
  int64_t appends = 0, files = 0;
  double average_depth = 0;         // over the files
  double write_amplification = 0;   // rows written so far over rows appended so far
};

struct ReplayReport {
  double average_depth = 0;         // the mean over the steps
  double max_average_depth = 0;
  double write_amplification = 0;
  int64_t rewrites = 0;
  int64_t second_plan_rows = 0;     // that a plan made again right after a rewrite would rewrite
  std::vector<ReplayStep> steps;    // one per append
  std::string ToJson() const;
  std::string ToText() const;
};

arrow::Result<ReplayReport> ReplayUpkeep(const ReplayOptions& options);

struct LayoutAdviceOptions {
  std::string queries;                // a query log, as for a report; at least one predicate
  std::string queries_path = "LOG";   // where it lies, for the command that follows the advice
  int64_t sample_rows = 100000;       // raise it for queries that want few rows
  // Of the files that a layout would have. 0: as many bytes as the table's own files, on average.
  int64_t target_file_bytes = 0;
};

struct LayoutColumnUse {
  std::string column;
  double weight = 0;                  // of the queries that filter it, as a share of all
  double equality_weight = 0;         // of those with = or IN
  int64_t distinct = 0;               // values in the sample
  double null_share = 0;
  double order_correlation = 0;       // of its order with the order of the rows, -1 to 1
};

struct LayoutCandidate {
  // As rewrite takes them; "" for the table as it is; "tree(LOG)" for the tree that the log asks
  // for, judged by queries that its cuts were not made for.
  std::string by, mode;
  double bytes_read = 0;              // per query, by weight
  double over_fewest = 0;             // the same over the lower bound
  std::vector<double> query_bytes;    // of each query
};

struct LayoutAdvice {
  std::string table;
  int64_t sample_rows = 0, files = 0;     // simulated files
  double bytes_fewest = 0;            // per query, by weight
  std::vector<std::string> predicates;
  std::vector<LayoutColumnUse> columns;   // the most used first
  std::vector<LayoutCandidate> candidates;    // the best first
  std::vector<std::string> warnings;
  std::string command;                // the recommended rewrite, ready to run but for its target
  std::vector<SkippedFile> skipped;
  std::string ToJson() const;
  std::string ToText() const;
};

// Simulates layouts on a sample of the table's rows and ranks them by the bytes that the logged
// queries would read.
arrow::Result<LayoutAdvice> AdviseLayout(const LayoutTable& table,
                                         const LayoutAdviceOptions& options);

}  // namespace grebe

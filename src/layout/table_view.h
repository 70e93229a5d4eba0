// What the footers and page indexes of a table's files say of some of its columns, at file, row
// group and page level: what metrics, plans and query costs are measured on. No data is read.
//
// A column is a leaf that is not inside a list, by its dotted path, or a partition column. Its
// bounds have one type in all files: that of the first file that has it. Where a file's own type
// cannot be turned into it, the bounds are unknown; where a file lacks the column, all are null.
//
// Cost: one footer a file, and one wave a file for the page indexes. Files are read in parallel.
// Threads: a TableView is immutable once read.
#pragma once

#include <arrow/scalar.h>
#include <arrow/type.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/stop.h"
#include "layout/metrics.h"
#include "parquet/footer.h"
#include "parquet/leaf_bounds.h"
#include "store/store.h"

namespace grebe::layout {

struct ViewFile {
  std::shared_ptr<const store::Object> object;   // path: within the store
  std::string name;                              // for people: within the table
  // Values of the partition columns, one per field of ViewOptions::partitions.
  std::vector<std::shared_ptr<arrow::Scalar>> partition_values;
};

struct ViewOptions {
  std::vector<std::string> columns;              // empty: every one that has an order
  std::shared_ptr<arrow::Schema> partitions;     // null: none
  bool pages = true;                             // false: no page indexes are read
  bool skip_bad_files = false;
  const StopToken* stop = nullptr;
};

struct ViewColumn {
  std::string path;
  std::shared_ptr<arrow::DataType> type;         // as bounds compare
  std::shared_ptr<arrow::DataType> own_type;     // as the first file has it
  int partition = -1;                            // field of the partitions, or -1
};

// A run of rows whose pages are read or left out together, and what reading them costs.
struct PagePiece {
  RowRange rows;                                 // of the row group
  int64_t bytes = 0;
};

struct GroupView {
  int64_t rows = 0, bytes = 0;
  std::vector<pq::Bounds> bounds;                // per view column
  // Per view column, its pages; empty: no page index that can be believed.
  std::vector<std::vector<pq::PageBounds>> pages;
  // Per leaf of the file: its pages (the whole chunk as one where there is no page index), and the
  // bytes of its dictionary page.
  std::vector<std::vector<PagePiece>> leaf_pages;
  std::vector<int64_t> dictionary_bytes;
};

struct FileView {
  int input = 0;                                 // of the files given
  std::string name;
  int64_t rows = 0, bytes = 0;
  std::shared_ptr<const pq::Footer> footer;
  std::vector<int> leaves;                       // per view column; -1: not in the file
  std::vector<std::shared_ptr<arrow::Scalar>> constants;  // of those: their one value
  std::vector<pq::Bounds> bounds;                // per view column
  std::vector<GroupView> groups;
};

struct BadFile {
  std::string name, reason;
};

struct TableView {
  std::vector<ViewColumn> columns;
  std::vector<FileView> files;
  std::vector<BadFile> bad_files;
  int64_t rows = 0, bytes = 0;
  int leaf_count = 0;                            // the most of any file

  // Errors: InvalidArgument for a column that no file has.
  static Result<TableView> Read(store::Store& store, const std::vector<ViewFile>& files,
                                const ViewOptions& options);
};

// Bounds as ranges of numbers that order as they do, for metrics.h; pieces of one column that are
// compared with one another must be ranked together.
class BoundRanks {
 public:
  void Add(const pq::Bounds& bounds);
  void Finish();
  // kNothing for nulls alone, kEverything where a bound is missing.
  Interval Of(const pq::Bounds& bounds) const;
  // The distinct bounds, ascending.
  const std::vector<std::shared_ptr<arrow::Scalar>>& values() const { return values_; }

 private:
  std::vector<std::shared_ptr<arrow::Scalar>> values_;
};

}  // namespace grebe::layout

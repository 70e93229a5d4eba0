// A sample of a table's rows in the order of a rewrite, and borders between its rows: what files
// and partitions are planned by.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "layout/row_order.h"

namespace grebe::layout {

// Where a row stands: its key, the values that decide between equal keys, and its place in the
// source.
struct RowPlace {
  uint32_t section = 0;
  uint64_t word = 0;
  const Columns* ties = nullptr;   // the order's tie columns
  int64_t tie_row = 0;             // the row's place in them
  int file = 0;                    // of the source
  int64_t file_row = 0;
};

// A border between two rows of the order. Rows before it are those with a smaller (section, word)
// and, of that very word, those whose first `columns` tie columns are before sample row `sample`'s,
// and, of those equal in all of them, when by_source, those before it in the source.
struct Border {
  uint32_t section = 0;
  uint64_t word = 0;
  int64_t sample = -1;   // -1: the word decides
  int columns = 0;
  bool by_source = false;
};

class RowSample {
 public:
  // rows: as ColumnsUsed of the order; files, file_rows: where each came from. weight: rows of the
  // table that each stands for.
  static Result<std::shared_ptr<const RowSample>> Make(std::shared_ptr<const RowOrder> order,
                                                       const arrow::RecordBatch& rows,
                                                       std::vector<int> files,
                                                       std::vector<int64_t> file_rows,
                                                       double weight);

  int64_t count() const { return static_cast<int64_t>(sorted_.size()); }
  double weight() const { return weight_; }
  const RowOrder& order() const { return *order_; }
  // Of the i-th row in order.
  uint32_t section(int64_t i) const { return keys_.section(sorted_[static_cast<size_t>(i)]); }

  // How high the border before the i-th row is (0: nothing but the source's order tells it from
  // the row before). REQUIRES: i > 0, both rows of one section.
  int Level(int64_t i) const;
  // The border before the i-th row. REQUIRES: as Level.
  Border BorderBefore(int64_t i) const;

  bool IsBefore(const RowPlace& row, const Border& border) const;

  // The most rows that are equal in the first tie column (and of one section), and their value.
  struct Run {
    int64_t rows = 0;
    std::string value;
  };
  Result<Run> LongestRun() const;

 private:
  std::shared_ptr<const RowOrder> order_;
  RowKeys keys_;
  Columns ties_;
  std::vector<int> files_;
  std::vector<int64_t> file_rows_;
  double weight_ = 1;
  std::vector<uint32_t> sorted_;
};

// How high the border between two neighbours is: for a curve the highest bit in which their words
// differ, plus one; for a sort the number of tie columns from the first one that differs on.
int BorderLevel(const RowOrder& order, const RowPlace& before, const RowPlace& after);

}  // namespace grebe::layout

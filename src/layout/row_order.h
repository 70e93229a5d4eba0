// The order that a rewrite gives rows: a section (a bucket, a tree's leaf) and a place within it,
// by values (sort) or along a curve (zorder, hilbert).
//
// A row's key is (section, word). A curve's word is the row's cell; rows of one cell keep the order
// of the source. A sort's word is the order-preserving head of its first column: equal words are
// decided by comparing the columns' values, and only then by the order of the source.
// Threads: a RowOrder is immutable, safe.
#pragma once

#include <arrow/record_batch.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "curve/curve.h"
#include "layout/layout_spec.h"
#include "layout/table_tree.h"
#include "layout/value_ranks.h"

namespace grebe::layout {

struct RowKeys {
  std::vector<uint32_t> sections;   // empty: every row is of section 0
  std::vector<uint64_t> words;
  uint32_t section(size_t row) const { return sections.empty() ? 0 : sections[row]; }
};

using Columns = std::vector<std::shared_ptr<arrow::Array>>;

class RowOrder {
 public:
  // What a rewrite is asked for. A bucket without `then` is sorted by its column.
  struct Request {
    LayoutSpec by;
    std::optional<LayoutSpec> then;   // within the sections: a sort or a curve; a tree has one
    std::shared_ptr<const TableTree> tree;
  };
  // Columns that Make and Keys look at.
  static std::vector<std::string> ColumnsUsed(const Request& request);

  // From a sample of the table's rows. row_count: of the table.
  // Errors: InvalidArgument (no such column, or one of a type without an order).
  static Result<std::shared_ptr<const RowOrder>> Make(const Request& request,
                                                      const arrow::RecordBatch& sample,
                                                      int64_t row_count);

  // Replaces *keys. batch holds the used columns at least.
  Status Keys(const arrow::RecordBatch& batch, RowKeys* keys) const;

  // Columns whose values decide between rows of equal keys, in order; empty for a curve.
  const std::vector<std::string>& tie_columns() const { return tie_columns_; }
  // The first tie column that may differ between rows of this one word: those before it are equal.
  size_t FirstTie(uint64_t word) const { return word_decides_ && word != 0 ? 1 : 0; }
  bool is_curve() const { return curve_ != nullptr; }
  bool has_sections() const { return buckets_ > 0 || leaves_; }
  // Sections are 0 to this, less one.
  uint32_t section_count() const { return section_count_; }

 private:
  Status MakeCurve(const LayoutSpec& spec, const arrow::RecordBatch& sample, int64_t row_count);
  Status RankWords(const Columns& columns, std::vector<uint64_t>* words) const;
  Status RawKeys(const Columns& columns, std::vector<uint8_t>* keys) const;
  Status RawWords(const Columns& columns, std::vector<uint64_t>* words) const;

  uint32_t section_count_ = 1;
  int buckets_ = 0;                        // the last section is that of nulls
  std::string bucket_column_;
  std::optional<LeafFinder> leaves_;
  std::vector<std::string> columns_;       // of the sort or curve
  std::vector<std::string> tie_columns_;
  bool word_decides_ = false;              // equal words other than 0 (nulls): equal first values
  std::unique_ptr<curve::Curve> curve_;
  std::vector<ValueRanks> ranks_;          // per curve column, in rank mode
  std::vector<int> rank_shifts_;           // ids give the curve their bits above so many
  // Raw keys are longer than 64 bits: a word is the 64 bits from the first one in which the
  // sample's keys differ; keys outside the sample's range stay at its ends.
  std::vector<uint8_t> raw_low_;           // any key of the sample
  int raw_first_bit_ = 0;
};

// Row i of a against row j of b, column by column, from column `first` on.
int CompareRows(const Columns& a, int64_t i, const Columns& b, int64_t j, size_t first = 0);

}  // namespace grebe::layout

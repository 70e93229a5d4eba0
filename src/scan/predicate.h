// Predicates over the columns of a table: text -> a tree -> an arrow::compute::Expression, and what
// bounds of the columns say of it.
//
//   amount >= 9.5 AND (day BETWEEN '2026-01-01' AND '2026-01-31' OR country IN ('DE', 'AT'))
//   NOT url LIKE 'https://%' AND "odd name" IS NOT NULL AND payload.id = 0x00ff
//
// docs/guide/scan.md tells the language. Nulls as in SQL: a comparison with null is unknown, NOT of
// unknown is unknown, and only rows for which the whole is true are wanted. NaN as IEEE 754 and
// Arrow have it: equal to nothing, not below or above anything, so `x != 1` and `NOT x < 1` hold
// for it; `x IS NAN` finds it.
// A tree is kept with its NOTs pushed down to the atoms, so that AND and OR never turn a wider
// answer into a narrower one. Threads: immutable once made; safe.
#pragma once

#include <arrow/compute/expression.h>
#include <arrow/record_batch.h>
#include <arrow/scalar.h>
#include <arrow/type.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "parquet/leaf_bounds.h"

namespace grebe::scan {

// A value as it was written.
struct Literal {
  enum class Kind { kNull, kNumber, kText, kBool };
  Kind kind = Kind::kNull;
  std::string text;
  size_t position = 0;    // in the predicate's text, for messages
};

enum class AtomOp {
  kEqual, kNotEqual, kLess, kLessEqual, kGreater, kGreaterEqual,   // with value(s)[0]
  kIn,          // with values
  kLike,        // with values[0], a pattern of % and _
  kIsNull,
  kIsNaN,
  kIsTrue,      // a boolean column by itself
};

// The tree as parsed: and/or over atoms.
struct PredicateNode {
  enum class Kind { kAnd, kOr, kAtom };
  Kind kind = Kind::kAtom;
  std::vector<PredicateNode> children;   // of kAnd and kOr: two or more
  AtomOp op = AtomOp::kEqual;
  bool negated = false;                  // of an atom
  std::string column;                    // dotted path
  size_t position = 0;
  std::vector<Literal> values;
};

class Predicate {
 public:
  // Errors: InvalidArgument, with the position in the text.
  static Result<Predicate> Parse(std::string_view text);
  const PredicateNode& root() const { return root_; }
  // The columns it uses, each once, in the order of first use.
  const std::vector<std::string>& columns() const { return columns_; }

 private:
  PredicateNode root_;
  std::vector<std::string> columns_;
};

// A column that a predicate is bound to. type: its Arrow type; null: not known yet, so that
// nothing is known of the atoms that use it.
struct PredicateColumn {
  std::string path;
  std::shared_ptr<arrow::DataType> type;
};

// What is known of one column's values in some containers (files, row groups or runs of rows).
struct ColumnBounds {
  std::vector<pq::Bounds> bounds;   // one per container
};

// An atom with its literals as values of the column's pq::ComparableType. Literals that the type
// cannot hold are gone: `x < 7.5` of an integer is `x <= 7`, `x = 7.5` never holds.
struct BoundAtom {
  enum class Op {
    kEqual, kNotEqual, kLess, kLessEqual, kGreater, kGreaterEqual,
    kIn, kLike, kIsNull, kIsNaN,
    kIsValid,     // true of every value, unknown of null
    kUnknown,     // never true: a comparison with NULL
    kUntyped,     // the column's type is not known
  };
  Op op = Op::kUnknown;
  bool negated = false;
  int column = -1;                                        // of the predicate's columns
  std::vector<std::shared_ptr<arrow::Scalar>> values;     // kIn: sorted, distinct
  std::string pattern;                                    // kLike
};

struct BoundNode {
  PredicateNode::Kind kind = PredicateNode::Kind::kAtom;
  std::vector<BoundNode> children;
  BoundAtom atom;
};

class BoundPredicate {
 public:
  // columns: one for each of predicate.columns(), in any order. Errors: InvalidArgument (a column
  // that is not among them, or literals that do not compare with its type; with the position).
  static Result<std::shared_ptr<const BoundPredicate>> Bind(const Predicate& predicate,
                                                            std::vector<PredicateColumn> columns);
  // From a tree that has its values already.
  static Result<std::shared_ptr<const BoundPredicate>> Make(BoundNode root,
                                                            std::vector<PredicateColumn> columns);

  const BoundNode& root() const { return root_; }
  const std::vector<PredicateColumn>& columns() const { return columns_; }
  // One flat field per column, named by its path, of its ComparableType.
  const std::shared_ptr<arrow::Schema>& schema() const { return schema_; }
  // Over a batch of schema(). Not valid while a column's type is not known.
  const arrow::compute::Expression& expression() const { return expression_; }

  // Which rows of a batch (columns: as schema(), or of the columns' own types) are wanted.
  // Appends to *rows the runs of wanted rows, counted from first_row on.
  Status Filter(const arrow::RecordBatch& batch, int64_t first_row,
                std::vector<RowRange>* rows) const;

  // What the bounds of the containers leave possible. bounds: per column, each of `count`
  // containers. Cost: a few kernel calls for all containers together.
  struct Verdicts {
    std::vector<bool> may_match;    // false: surely no row is wanted
    std::vector<bool> must_match;   // true: surely every row is wanted
  };
  Result<Verdicts> Judge(std::span<const ColumnBounds> bounds, size_t count) const;

  // Whether the whole may hold, given which atoms may (asked only as far as it matters).
  bool MayHold(const std::function<bool(const BoundAtom&)>& atom_may_hold) const;

 private:
  BoundNode root_;
  std::vector<PredicateColumn> columns_;
  std::shared_ptr<arrow::Schema> schema_;
  arrow::compute::Expression expression_;
  // Over columns of bounds: see predicate_prune.cc.
  std::shared_ptr<arrow::Schema> bounds_schema_;
  arrow::compute::Expression may_, must_;
};

// Bounds of a constant, such as a partition column's value in a file: null is all nulls.
pq::Bounds ConstantBounds(const std::shared_ptr<arrow::Scalar>& value, int64_t row_count);

// The least text above every text that begins with prefix; nullopt: there is none.
std::optional<std::string> PrefixEnd(std::string prefix);
// The literal text before a pattern's first wildcard.
std::string LikePrefix(std::string_view pattern);

}  // namespace grebe::scan

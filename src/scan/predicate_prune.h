// From a bound predicate to expressions over bounds. Private to src/scan.
#pragma once

#include <arrow/compute/expression.h>
#include <arrow/type.h>

#include <memory>
#include <vector>

#include "base/status.h"
#include "scan/predicate.h"
#include "scan/predicate_value.h"

namespace grebe::scan {

// Over a batch of one row per container, with four columns per predicate column: min, max (null:
// not known), may hold nulls, may hold values. Null, in the answer too, means: not known.
struct Judges {
  std::shared_ptr<arrow::Schema> schema;
  arrow::compute::Expression may;    // false: no row can be wanted
  arrow::compute::Expression must;   // true: every row is wanted
};
Result<Judges> MakeJudges(const BoundNode& root, const arrow::Schema& columns);

// Gives a comparison its value, or what it comes to when the column's type has no such value.
void ApplyPlace(const PlacedValue& placed, BoundAtom* atom);

arrow::compute::Expression JoinExpressions(bool is_and,
                                           std::vector<arrow::compute::Expression> parts);

}  // namespace grebe::scan

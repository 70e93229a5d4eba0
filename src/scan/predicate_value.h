// Literals and keys as values of a column's type.
#pragma once

#include <arrow/scalar.h>
#include <arrow/type.h>

#include <memory>
#include <vector>

#include "base/status.h"
#include "scan/predicate.h"

namespace grebe::scan {

// A literal among the values of a type.
struct PlacedValue {
  enum class Place { kExact, kAbove, kBelowAll, kAboveAll };
  Place place = Place::kExact;
  // kExact: the value. kAbove: the greatest value below the literal, which is none itself.
  std::shared_ptr<arrow::Scalar> value;
};

// The literal's place among the values of a column of this Arrow type, in its ComparableType.
// Errors: InvalidArgument (does not compare with the type, or is no value).
Result<PlacedValue> PlaceLiteral(const Literal& literal,
                                 const std::shared_ptr<arrow::DataType>& column_type);
// The same for a value of any type that key::ParseValue(column_type, ...) may give.
Result<PlacedValue> PlaceScalar(const std::shared_ptr<arrow::Scalar>& value,
                                const std::shared_ptr<arrow::DataType>& column_type);

// An array as its type's ComparableType, or as the wider `to`. Errors: Arrow's cast.
Result<std::shared_ptr<arrow::Array>> ToComparable(std::shared_ptr<arrow::Array> array,
                                                   const std::shared_ptr<arrow::DataType>& to);

// A float that is NaN.
bool IsNaN(const arrow::Scalar& scalar);

// Values in ascending order, equal ones once. REQUIRES: one type; no null, no NaN.
void SortValues(std::vector<std::shared_ptr<arrow::Scalar>>* values);

// Arrow's compute functions are there. Every use of an expression comes after it.
Status EnsureCompute();

}  // namespace grebe::scan

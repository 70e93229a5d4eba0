// The values that cuts are made at, as text that scan::PlaceLiteral reads again as the same value.
#pragma once

#include <arrow/array.h>
#include <arrow/scalar.h>

#include <string>

#include "base/status.h"

namespace grebe::layout {

// Whether a value has such a text. NaN has none, nor text that is not UTF-8, nor a time of day that
// no clock shows. REQUIRES: not null; a pq::ComparableType.
bool HasText(const arrow::Array& values, int64_t row);

// REQUIRES: HasText of the value. Errors: InvalidArgument for a type without an order.
Result<std::string> TextOf(const arrow::Scalar& value);

}  // namespace grebe::layout

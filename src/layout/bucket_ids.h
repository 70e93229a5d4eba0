// Rows to hash buckets: Iceberg's bucket transform over Arrow columns.
#pragma once

#include <arrow/array.h>

#include <cstdint>

#include "base/status.h"

namespace grebe::layout {

// One id per row, 0 to buckets - 1; a null is in no bucket and has id `buckets`. Timestamps and
// times of any unit hash as microseconds (nanoseconds rounded towards the past), as Iceberg's do.
// Errors: InvalidArgument for a type that the transform does not know (float, bool, nested, ...).
Status BucketIds(const arrow::Array& values, int32_t buckets, uint32_t* ids);

}  // namespace grebe::layout

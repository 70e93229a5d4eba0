// Rows of a batch in another order: Arrow's Take, for every type.
#pragma once

#include <arrow/record_batch.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "base/status.h"

namespace grebe {

// batch's rows at these positions, in this order; batch itself when that is all of them. Types
// that Arrow's Take has no kernel for (views) are copied row by row. REQUIRES: positions inside
// the batch.
Result<std::shared_ptr<arrow::RecordBatch>> TakeRows(
    const std::shared_ptr<arrow::RecordBatch>& batch, const std::vector<int64_t>& positions);

// No rows of a schema, also where Arrow's RecordBatch::MakeEmpty fails (an extension type within a
// struct).
Result<std::shared_ptr<arrow::RecordBatch>> EmptyRows(
    const std::shared_ptr<arrow::Schema>& schema);

}  // namespace grebe

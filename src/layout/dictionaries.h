// Columns with their dictionaries taken away and given back: rows on their way are plain.
#pragma once

#include <arrow/record_batch.h>
#include <arrow/type.h>

#include <memory>

#include "base/status.h"

namespace grebe::layout {

// The schema with value types in place of dictionary types, however deep; field metadata kept.
std::shared_ptr<arrow::Schema> PlainSchema(const std::shared_ptr<arrow::Schema>& schema);

// A column as PlainSchema's type, or as `type`, which differs from it in dictionaries only.
Result<std::shared_ptr<arrow::Array>> WithDictionariesOf(
    const std::shared_ptr<arrow::Array>& array, const std::shared_ptr<arrow::DataType>& type);

// All columns of a batch, as schema has them.
Result<std::shared_ptr<arrow::RecordBatch>> WithDictionariesOf(
    const std::shared_ptr<arrow::RecordBatch>& batch, const std::shared_ptr<arrow::Schema>& schema);

}  // namespace grebe::layout

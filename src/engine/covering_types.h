// The types covering columns are kept in: plain ones. A dictionary column is kept as its values,
// an extension (UUID, ...) as its storage; a lookup gives the file's own type again.
#pragma once

#include <arrow/array.h>
#include <arrow/type.h>

#include <memory>

#include "base/status.h"

namespace grebe::engine {

// The type that a column of this type is kept in.
std::shared_ptr<arrow::DataType> StoredType(const std::shared_ptr<arrow::DataType>& type);

// The values as the stored type (of this or a wider column). Errors: Arrow's cast.
Result<std::shared_ptr<arrow::Array>> ToStored(std::shared_ptr<arrow::Array> array,
                                               const std::shared_ptr<arrow::DataType>& stored);

// Stored values as the type that a lookup returns.
Result<std::shared_ptr<arrow::Array>> FromStored(std::shared_ptr<arrow::Array> array,
                                                 const std::shared_ptr<arrow::DataType>& type);

}  // namespace grebe::engine

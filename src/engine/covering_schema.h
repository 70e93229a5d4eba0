// Arrow schemas as text-safe bytes, for the manifest.
#pragma once

#include <arrow/type.h>

#include <memory>
#include <string>

#include "base/status.h"

namespace grebe::engine {

// The schema as an Arrow IPC message. Errors: Arrow's.
Result<std::string> SerializeSchema(const arrow::Schema& schema);
Result<std::shared_ptr<arrow::Schema>> ParseSchema(const std::string& bytes);

}  // namespace grebe::engine

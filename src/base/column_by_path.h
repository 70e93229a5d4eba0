// A column of a batch by its dotted path.
#pragma once

#include <arrow/record_batch.h>

#include <memory>
#include <string>

#include "base/status.h"

namespace grebe {

// A column by name or dotted path through structs (with the structs' nulls applied). Of several
// readings the longest names win. Errors: InvalidArgument when there is none.
Result<std::shared_ptr<arrow::Array>> ColumnByPath(const arrow::RecordBatch& rows,
                                                   const std::string& path);

}  // namespace grebe

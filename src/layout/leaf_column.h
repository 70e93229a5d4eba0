// The values of a view's columns, file by file. For src/layout only.
#pragma once

#include <arrow/array.h>

#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "base/status.h"
#include "layout/table_view.h"

namespace grebe::layout {

using ViewArrays = std::map<size_t, std::shared_ptr<arrow::Array>>;   // by view column

// Decodes some of the view's columns of one file, in row order, a batch at a time; batches never
// span row groups. A column that the file lacks is its one value, over and over.
// Errors: Corrupt, Unsupported, the store's, and on_batch's.
Status ScanViewColumns(
    store::Store& store, const TableView& view, const FileView& file,
    const std::vector<size_t>& columns, const StopToken* stop,
    const std::function<Status(const ViewArrays&, int64_t first_row, int64_t rows)>& on_batch);

}  // namespace grebe::layout

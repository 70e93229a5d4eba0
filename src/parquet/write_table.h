// Rows as one plain Parquet file: the command line's --format parquet.
#pragma once

#include <arrow/io/interfaces.h>
#include <arrow/record_batch.h>

#include "base/status.h"

namespace grebe::pq {

// Writes the rows as a file of one row group (zstd, page index, Arrow schema). Errors: the sink's,
// Unsupported for types that Parquet does not have.
Status WriteTable(const arrow::RecordBatch& rows, arrow::io::OutputStream* sink);

}  // namespace grebe::pq

// Rows as one plain Parquet file: the command line's --format parquet.
#pragma once

#include <arrow/io/interfaces.h>
#include <arrow/record_batch.h>

#include <memory>

#include "base/status.h"

namespace grebe::pq {

// Writes batches of one schema as a file (zstd, page index, Arrow schema; row groups of at
// least 128 Ki rows). Errors: the sink's, Unsupported for types that Parquet does not have.
class TableWriter {
 public:
  static Result<std::unique_ptr<TableWriter>> Open(const std::shared_ptr<arrow::Schema>& schema,
                                                   arrow::io::OutputStream* sink);
  ~TableWriter();
  Status Write(const arrow::RecordBatch& rows);
  Status Finish();

 private:
  TableWriter();
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace grebe::pq

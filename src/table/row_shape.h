// The columns a caller asked for, resolved against every Parquet schema of a table and its
// partition columns: what to read of each file, and how to make all files' rows alike.
// Threads: immutable, safe.
#pragma once

#include <arrow/record_batch.h>
#include <arrow/type.h>

#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/status.h"
#include "parquet/file_schema.h"
#include "table/snapshot.h"

namespace grebe::table {

class RowShape {
 public:
  using Schemas = std::vector<std::shared_ptr<const pq::Schema>>;

  // columns: dotted paths or partition columns; empty: all (file columns, then partition columns;
  // a partition column hides a file column of its name). A file that lacks a column gives nulls;
  // types that differ between files are widened. Errors: InvalidArgument (no file has the column,
  // or types that cannot be reconciled).
  static Result<std::shared_ptr<const RowShape>> Make(const Schemas& schemas,
                                                      const PartitionScheme& partitions,
                                                      const std::vector<std::string>& columns);

  // The rows' schema: fields in the order asked.
  const std::shared_ptr<arrow::Schema>& schema() const { return schema_; }
  // What to read of a file with this schema. REQUIRES: one of the schemas given to Make.
  const pq::Projection& projection(const pq::Schema* schema) const {
    return per_schema_.at(schema).projection;
  }

  // Rows of one file schema, as the projection gave them, to the common schema. paths: the files'
  // relative paths with the number of rows of each, in row order.
  Result<std::shared_ptr<arrow::RecordBatch>> Conform(
      const pq::Schema* schema, const std::shared_ptr<arrow::RecordBatch>& rows,
      const std::vector<std::pair<std::string_view, int64_t>>& paths) const;

 private:
  struct PerSchema {
    pq::Projection projection;
    std::vector<int> source;   // per field of schema_: column of the projected rows, or -1
  };
  // The rows' fields, in the order asked.
  void PlaceFields(const arrow::Schema& unified, const arrow::Schema& partitions,
                   const std::vector<std::string>& columns);
  // Where each field is in the projected rows of each schema.
  void FindSources(const arrow::Schema& unified, bool by_position);

  std::shared_ptr<arrow::Schema> schema_;
  std::vector<bool> is_partition_;   // per field of schema_
  std::unordered_map<const pq::Schema*, PerSchema> per_schema_;
};

}  // namespace grebe::table

// One row per key: the key's column, then a list of structs with the other columns of its rows; and
// the way back.
//
//   user_id, ts, track          user_id, rows: list<struct<ts, track>>
//   1, 10, "a"                  1, [{10, "a"}, {11, "b"}]
//   1, 11, "b"                  2, [{10, "c"}]
//   2, 10, "c"
#pragma once

#include <arrow/record_batch.h>
#include <arrow/table.h>
#include <arrow/util/key_value_metadata.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"

namespace grebe::layout {

// The name of the list column, and of the key-value metadata that keeps where the key's column was.
constexpr const char* kCogroupColumn = "rows";
constexpr const char* kCogroupKey = "grebe.cogroup";

// Errors: InvalidArgument (no such top-level column, another one named `rows`, nothing to group).
Result<std::shared_ptr<arrow::Schema>> CogroupedSchema(const std::shared_ptr<arrow::Schema>& schema,
                                                       const std::string& key);

// What kCogroupKey holds for a schema: the key's place among the columns.
std::string CogroupMetadata(const arrow::Schema& schema, const std::string& key);

// rows: sorted by the key. key_ends: the rows after which a key ends, the last one the row count.
Result<std::shared_ptr<arrow::Table>> Cogroup(const std::shared_ptr<arrow::Table>& rows,
                                              const std::string& key,
                                              std::span<const int64_t> key_ends,
                                              const std::shared_ptr<arrow::Schema>& schema);

// The schema of rows taken apart. metadata: of the files; when a cogroup made them the columns
// come back in their old order, else the list's members take the list's place.
// Errors: InvalidArgument (no such column, not a list of structs, a member named as a column).
Result<std::shared_ptr<arrow::Schema>> UngroupedSchema(const std::shared_ptr<arrow::Schema>& schema,
                                                       const std::string& list,
                                                       const arrow::KeyValueMetadata* metadata);

// One row for each item of the list. Errors: InvalidArgument (a row whose list is empty or null:
// it would be lost), which names the row by its number, counted from first_row.
Result<std::shared_ptr<arrow::RecordBatch>> Ungroup(const arrow::RecordBatch& rows,
                                                    int64_t first_row, const std::string& list,
                                                    const std::shared_ptr<arrow::Schema>& schema);

}  // namespace grebe::layout

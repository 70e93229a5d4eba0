// Which files of a folder are live: the snapshot of a plain or Hive-partitioned table.
//
// Live: names ending in .parquet, .parq or .pq, no path component beginning with '_' or '.'
// (except Hive components such as _p=1). A Delta or Iceberg table is refused as Unsupported:
// its folder also holds deleted rows. Threads: pure functions and one listing; safe.
#pragma once

#include <arrow/array.h>
#include <arrow/type.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "store/store.h"

namespace grebe::table {

// Partition columns that the paths of a table spell, and how their text becomes values.
struct PartitionScheme {
  std::shared_ptr<arrow::Schema> schema;   // int64, date32 or utf8 per column, in path order
  bool empty() const { return schema->num_fields() == 0; }
};

// name=value components of a relative path, in order, URL-decoded once.
// __HIVE_DEFAULT_PARTITION__ is null. Errors: InvalidArgument for a name that occurs twice.
struct PartitionValue {
  std::string name;
  std::optional<std::string> value;
};
Result<std::vector<PartitionValue>> ParsePartitions(std::string_view path);

// The scheme of all paths together: the union of their names; a column is int64 when every value
// is a decimal integer, date32 when every one is YYYY-MM-DD, else utf8.
Result<PartitionScheme> InferPartitions(const std::vector<std::string_view>& paths);

// The value of one partition column for a path, as a scalar of the scheme's type (null when the
// path lacks the column).
Result<std::shared_ptr<arrow::Scalar>> PartitionScalar(const arrow::Field& field,
                                                       std::string_view path);

struct Snapshot {
  std::string kind;                     // "plain" or "hive"
  std::string id;                       // changes when any file does
  store::Location root;                 // folder that paths are relative to
  std::string single_file;              // the file's name when TABLE is one file, else empty
  std::vector<store::Object> files;     // paths relative to root, sorted
  PartitionScheme partitions;
};

// An id of some files: another one when any of them changes, comes or goes.
std::string SnapshotId(const std::vector<store::Object>& files);

// Lists the table. Cost: one listing (and one stat when TABLE is a file). Errors: NotFound when
// nothing is there, Unsupported for Delta and Iceberg, InvalidArgument.
Result<Snapshot> ReadSnapshot(const store::Location& table);

// True when the listing shows that TABLE is a single file; cheap guess from its name.
bool LooksLikeFile(std::string_view path);

}  // namespace grebe::table

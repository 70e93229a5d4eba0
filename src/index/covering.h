// Covering rows on their way to covering blocks. Private to this room.
#pragma once

#include <arrow/record_batch.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "index/hash_block.h"
#include "index/spill.h"

namespace grebe::index {

// Errors: Unsupported for types that a covering block cannot hold (dictionaries).
Status CheckCoveringSchema(const arrow::Schema& schema);
Result<std::string> SerializeSchema(const arrow::Schema& schema);
Result<std::shared_ptr<arrow::Schema>> ParseSchema(std::string_view bytes);
// One batch without its schema, and back. Errors: Corrupt.
Result<std::string> SerializeBatch(const arrow::RecordBatch& batch);
Result<std::shared_ptr<arrow::RecordBatch>> ParseBatch(
    std::string bytes, const std::shared_ptr<arrow::Schema>& schema);

// The covering schema with the column that says each row's global row.
std::shared_ptr<arrow::Schema> WithRowColumn(const std::shared_ptr<arrow::Schema>& covering);

// The covering rows of one partition, found by global row.
class CoveringRows {
 public:
  Status Load(const std::shared_ptr<arrow::Schema>& covering,
              const std::vector<BlobStore::Ref>& pieces, BlobStore* store);
  // Appends the covering block of the runs: checksum and Arrow IPC stream.
  Status AppendBlock(std::span<const RowRun> runs, std::string* out);

 private:
  std::shared_ptr<arrow::RecordBatch> batch_;           // without the row column
  std::vector<std::pair<uint64_t, int64_t>> index_;     // (global row, row of batch_), sorted
};

}  // namespace grebe::index

// Rows of several batches brought together in any order: what sorting and partitioning do to data.
#pragma once

#include <arrow/memory_pool.h>
#include <arrow/record_batch.h>

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/status.h"

namespace grebe::layout {

// One row of one of several batches.
struct RowRef {
  uint32_t batch = 0;
  uint32_t row = 0;
  bool operator==(const RowRef&) const = default;
};

using Batches = std::vector<std::shared_ptr<arrow::RecordBatch>>;

// The rows, in this order, as one batch. The batches have one schema. Numbers, text, lists and
// structs are copied directly, rarer types by Arrow's kernels.
// Errors: LimitExceeded when a column's text would pass 2 GiB: ask for fewer rows.
Result<std::shared_ptr<arrow::RecordBatch>> Gather(const Batches& batches,
                                                   std::span<const RowRef> rows,
                                                   arrow::MemoryPool* pool);

// The same rows as one batch or, where a column's text would pass 2 GiB, as several.
Result<Batches> GatherSome(const Batches& batches, std::span<const RowRef> rows,
                           arrow::MemoryPool* pool);

// Bytes of the rows in memory: what a batch of Gather takes.
int64_t BytesOf(const arrow::RecordBatch& batch);

}  // namespace grebe::layout

// How a rewrite divides its memory limit, and where it takes memory from.
#pragma once

#include <arrow/memory_pool.h>

#include <algorithm>
#include <cstdint>

namespace grebe::layout {

// The pool of a rewrite's rows: one that gives memory back when it is freed. Arrow's default pool
// (mimalloc) keeps a third more than is in use, which a limit must not.
inline arrow::MemoryPool* RowPool() {
  arrow::MemoryPool* pool = nullptr;
  return arrow::jemalloc_memory_pool(&pool).ok() ? pool : arrow::system_memory_pool();
}

struct MemoryShare {
  int64_t held_bytes = 0;        // of rows that wait in memory, in all
  int64_t scatter_bytes = 0;     // of rows that one thread collects before it scatters them
  int64_t partition_bytes = 0;   // of rows that one thread sorts at once
  int64_t row_group_bytes = 0;   // of rows that one thread gathers and encodes at once

  // The program itself, the reader's and the writer's buffers take a part; sorting takes row
  // numbers and the row group at hand beside the rows. The shares add up to the limit at the
  // worst moment, when partitions are sorted while others are still held.
  static MemoryShare Of(int64_t memory_bytes_max, int threads) {
    const auto limit = static_cast<double>(std::max<int64_t>(memory_bytes_max, 32 << 20));
    const double fixed = std::min(limit * 0.35, 96.0 * (1 << 20));
    const double each = (limit - fixed) / std::max(threads, 1);
    MemoryShare share;
    share.held_bytes = static_cast<int64_t>((limit - fixed) * 0.3);
    share.scatter_bytes = static_cast<int64_t>(std::min(each * 0.2, 64.0 * (1 << 20)));
    share.partition_bytes = static_cast<int64_t>(each * 0.35);
    share.row_group_bytes = static_cast<int64_t>(std::min(each * 0.1, 64.0 * (1 << 20)));
    return share;
  }
};

}  // namespace grebe::layout

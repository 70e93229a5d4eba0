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

  // The program itself, the reader's and the writer's buffers take a part. A thread at work has a
  // partition, half as much again for the order of its rows, what it gathers of them, and that
  // once more encoded. Partitions and what is scattered stay small however large the limit: they
  // are faster in the processor's caches. What is left holds rows that need not spill.
  static MemoryShare Of(int64_t memory_bytes_max, int threads) {
    constexpr double kMiB = 1 << 20;
    const auto limit = static_cast<double>(std::max<int64_t>(memory_bytes_max, 32 << 20));
    const double fixed = std::min(limit * 0.35, 96 * kMiB);
    const double workers = std::max(threads, 1);
    const double each = (limit - fixed) / workers;
    const double scatter = std::min(each * 0.2, 24 * kMiB);
    const double partition = std::min(each * 0.35, 48 * kMiB);
    const double row_group = std::min(each * 0.1, 24 * kMiB);
    const double at_work = 2.5 * partition + scatter + 2 * row_group;
    MemoryShare share;
    share.held_bytes =
        static_cast<int64_t>(std::max(0.0, (limit - fixed - workers * at_work) * 0.8));
    share.scatter_bytes = static_cast<int64_t>(scatter);
    share.partition_bytes = static_cast<int64_t>(partition);
    share.row_group_bytes = static_cast<int64_t>(row_group);
    return share;
  }
};

}  // namespace grebe::layout

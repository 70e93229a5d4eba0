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

// The least limit that a rewrite keeps to.
constexpr int64_t kRewriteMemoryMin = 128 << 20;

struct MemoryShare {
  int threads = 1;               // that may read, scatter and sort at once: no more than asked for
  int writers = 1;               // of them: that may write at once
  int64_t held_bytes = 0;        // of rows that wait in memory, in all
  int64_t reading_bytes = 0;     // of column chunks that one thread holds as they are in the file
  int64_t scatter_bytes = 0;     // of rows that one thread collects before it scatters them
  int64_t partition_bytes = 0;   // of rows that one thread sorts at once
  int64_t row_group_bytes = 0;   // of rows that one thread gathers and encodes at once
  int64_t key_bytes_max = 0;     // of one key's rows, where they may not part

  // The program itself with its libraries, and what allocators keep, take a part that no limit
  // makes smaller. A thread that writes has a partition, as much again at most for the order of
  // its rows, what it gathers of them, and that once more encoded. Partitions and what is scattered
  // stay small however large the limit: they are faster in the processor's caches. What is left
  // holds rows that need not spill. key_bytes: of the largest key whose rows may not part (0: any
  // may): there are so few writers that each can hold one; where even one cannot, key_bytes_max is
  // less.
  static MemoryShare Of(int64_t memory_bytes_max, int threads, int64_t key_bytes = 0) {
    constexpr double kMiB = 1 << 20;
    constexpr double kFixed = 96 * kMiB;
    constexpr double kThreadMin = 16 * kMiB;
    const double rows = std::max(static_cast<double>(memory_bytes_max) - kFixed, kThreadMin);
    MemoryShare share;
    share.threads = static_cast<int>(
        std::clamp(rows / kThreadMin, 1.0, static_cast<double>(std::max(threads, 1))));
    const double each = rows / share.threads;
    const double scatter = std::min(each * 0.1, 24 * kMiB);
    const double partition = std::min(each * 0.25, 48 * kMiB);
    const double row_group = std::min(each * 0.08, 24 * kMiB);
    const double at_work = 2 * partition + 2 * row_group;
    const double key = kKeyCopies * static_cast<double>(key_bytes);
    share.writers = static_cast<int>(
        std::clamp(rows / (at_work + key), 1.0, static_cast<double>(share.threads)));
    const double writing = share.writers * (at_work + key);
    const double working =
        std::max({share.threads * at_work, share.threads * 2 * scatter, writing});
    // So few rows are not worth holding.
    constexpr double kHeldMin = 12 * kMiB;
    share.held_bytes = static_cast<int64_t>(std::max(0.0, (rows - working - kHeldMin) * 0.9));
    share.reading_bytes = static_cast<int64_t>(std::min(each * 0.3, 64 * kMiB));
    share.scatter_bytes = static_cast<int64_t>(scatter);
    share.partition_bytes = static_cast<int64_t>(partition);
    share.row_group_bytes = static_cast<int64_t>(row_group);
    share.key_bytes_max = static_cast<int64_t>((rows / share.writers - at_work) / kKeyCopies);
    return share;
  }

  // How often the rows of a key are there at once: as they were sorted, gathered, joined to one
  // list, and encoded.
  static constexpr double kKeyCopies = 5;
};

}  // namespace grebe::layout

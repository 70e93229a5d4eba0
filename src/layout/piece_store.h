// Rows waiting in partitions to be sorted: in memory while they fit, else compressed in a nameless
// spill file.
#pragma once

#include <arrow/ipc/options.h>
#include <arrow/memory_pool.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/spill_file.h"
#include "base/status.h"
#include "layout/gather.h"

namespace grebe::layout {

// Rows of some source files that came together: runs of rows, each of one file, in its order.
struct Piece {
  struct Run {
    int file = 0;
    int64_t row_count = 0;
  };
  std::shared_ptr<arrow::RecordBatch> rows;
  std::vector<Run> runs;
};

// How rows are packed in the spill file.
arrow::ipc::IpcWriteOptions SpillFormat(arrow::MemoryPool* pool);

// Threads: Add is safe; Take and row_count are, once all is added; Exclude between the two. The
// rows of one source file must be added in their order.
class PieceStore {
 public:
  PieceStore(size_t partitions, int source_files, std::shared_ptr<arrow::Schema> schema,
             int64_t memory_bytes_max, std::string spill_folder, arrow::MemoryPool* pool);

  Status Add(size_t partition, Piece piece);

  // The file's rows, those added and those to come, do not count any more.
  void Exclude(int file) { excluded_[static_cast<size_t>(file)] = true; }
  const std::vector<bool>& excluded() const { return excluded_; }

  // The partition's rows (those of excluded files among them); the store forgets them.
  // Errors: those of SpillFile.
  Result<std::vector<Piece>> Take(size_t partition);
  // Without those of excluded files.
  int64_t row_count(size_t partition) const;
  // In memory, those of excluded files among them.
  int64_t size_bytes(size_t partition) const;
  int64_t spilled_bytes() const { return spill_.size_bytes(); }

 private:
  struct Kept {
    Piece piece;                 // rows is null: spilled
    int64_t size_bytes = 0;      // in memory
    int64_t offset_bytes = 0;    // in the spill file
    int64_t spilled_bytes = 0;
  };
  Result<Piece> Load(Kept kept);

  const std::shared_ptr<arrow::Schema> schema_;
  const int64_t memory_bytes_max_;
  arrow::MemoryPool* pool_;
  const arrow::ipc::IpcWriteOptions write_options_;
  SpillFile spill_;
  mutable std::mutex mutex_;
  std::vector<std::vector<Kept>> partitions_;
  std::vector<bool> excluded_;
  std::atomic<int64_t> memory_bytes_{0};
};

}  // namespace grebe::layout

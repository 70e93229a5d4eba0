// The two halves of an external sort: rows scattered to their partitions, and partitions sorted and
// written. Private to this room.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/status.h"
#include "layout/gather.h"
#include "layout/memory_share.h"
#include "layout/piece_store.h"
#include "layout/rewrite_job.h"

namespace grebe::layout {

// The schema of rows on their way: the source's, then their keys.
std::shared_ptr<arrow::Schema> PieceSchema(const std::shared_ptr<arrow::Schema>& source,
                                           bool has_sections);
// Rows with their keys, as PieceSchema has them.
std::shared_ptr<arrow::RecordBatch> WithKeys(const std::shared_ptr<arrow::RecordBatch>& rows,
                                             RowKeys keys);

// Collects batches of one thread and scatters them. Threads: one at a time.
class PieceScatter {
 public:
  // dropped: partitions whose rows are not wanted any more.
  PieceScatter(const RowSample& sample, const PartitionFinder& finder, std::vector<bool> dropped,
               int64_t bytes_max, PieceStore* store)
      : sample_(sample), finder_(finder), dropped_(std::move(dropped)), bytes_max_(bytes_max),
        store_(store) {}

  // Rows of one file must come in order.
  Status Add(const std::shared_ptr<arrow::RecordBatch>& rows, int file, int64_t first_row);
  Status Flush();

 private:
  Status AddPiece(size_t partition, std::span<const RowRef> rows);

  const RowSample& sample_;
  const PartitionFinder& finder_;
  const std::vector<bool> dropped_;
  const int64_t bytes_max_;
  PieceStore* store_;
  Batches batches_;
  std::vector<int> files_;                           // per batch
  std::vector<std::vector<uint32_t>> partitions_;    // per batch and row
  int64_t bytes_ = 0;
};

// Sorts and writes the partitions of one task. Threads: one at a time.
class PartitionWriter {
 public:
  struct Context {
    const PreparedRewrite* prepared = nullptr;
    const RewriteOptions* options = nullptr;
    MemoryShare share;
    PieceStore* store = nullptr;
    RewriteTarget* target = nullptr;
    std::atomic<int64_t>* files_written = nullptr;
    std::function<void(int64_t rows)> report;
  };

  PartitionWriter(const Context& context, const PlannedTask& task);
  Status Run();

 private:
  // The rows at hand: batches and, in order, which of their rows.
  struct Sorted {
    Batches batches;                        // without keys
    std::vector<Columns> ties;              // per batch
    std::vector<RowRef> rows;
    std::vector<uint64_t> words;            // per row in order
    std::vector<uint32_t> sections;         // likewise; empty: all 0
    int64_t count() const { return static_cast<int64_t>(rows.size()); }
  };

  Status WritePartition(int partition);
  Status CheckFits(size_t partition) const;
  Result<Sorted> Sort(std::vector<Piece> pieces) const;
  Status SortEqualWords(Sorted* sorted) const;
  template <class Less>
  static void SortRun(std::span<RowRef> rows, const Less& less);
  RowPlace PlaceOf(const Sorted& sorted, int64_t i) const;
  // Where the rows of a file begin, from `from` on.
  int64_t FirstRowOf(const Sorted& sorted, const Border& border, int64_t from) const;

  Status BeginFile(int file);
  // Writes rows [begin, end) to the file; file_ends: no more rows of it will come. Rows that no row
  // group could be chosen for yet are carried to the next call.
  Status AppendRows(const Sorted& sorted, int64_t begin, int64_t end, bool file_ends);
  Status WriteRowGroup(const Sorted& sorted, int64_t begin, int64_t end);
  Status Carry(const Sorted& sorted, int64_t begin, int64_t end);
  Status EndFile();

  const Context context_;
  const RowOrder& order_;
  const PlannedTask task_;
  const int level_min_;
  int64_t row_group_rows_ = 1;
  int64_t gather_rows_ = 1;
  std::unique_ptr<TargetFile> file_;
  int open_file_ = -1;
  uint32_t open_section_ = 0;
  int64_t file_rows_left_ = 0;    // of the open file: still to be written
  Sorted carried_;
};

}  // namespace grebe::layout

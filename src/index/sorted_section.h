// The sorted part of a fragment: blocks of entries in key order, and two levels of fences over
// them. fragment_format.h says the bytes. Private to this room, but for SortedDirectory.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/stop.h"
#include "base/types.h"
#include "index/sorted_entries.h"
#include "index/spill.h"
#include "key/ordered.h"
#include "store/store.h"

namespace grebe::index {

// A stretch of keys: a block's, or all blocks' of a fence block. Its keys are at least `key`, and
// at most the next fence's (equal only when a key's rows go on there).
struct Fence {
  std::string key;
  ByteRange bytes;         // of the block, or of the fence block, in the object
  ByteRange data;          // of a fence block: its blocks; else empty
  uint64_t row_count = 0;
};

struct SortedDirectory {
  std::string begin, end;          // every key is in [begin, end)
  std::vector<Fence> fences;       // one a fence block; ascending keys
};

// The fences whose stretches may hold keys of the range: [first, last).
struct FenceSpan {
  size_t first = 0, last = 0;
};
FenceSpan FencesOf(std::span<const Fence> fences, const key::OrderedRange& range);

// Checks and reads a fence block. Errors: Corrupt.
Result<std::vector<Fence>> ReadFenceBlock(std::string_view bytes, const Fence& fence);
// Checks a block's checksum and returns its entries. Errors: Corrupt.
Result<std::string_view> OpenSortedBlock(std::string_view bytes);

// Runs in (key, row) order.
class EntryStream {
 public:
  virtual ~EntryStream() = default;
  // Goes to the next run; false at the end.
  virtual Result<bool> Next() = 0;
  virtual std::string_view key() const = 0;
  virtual uint64_t row() const = 0;
  virtual uint64_t count() const = 0;
};

using EntrySink = std::function<Status(std::string_view key, uint64_t row, uint64_t count)>;

// All runs of the streams, in order. Errors: the streams', the sink's, Cancelled.
Status MergeStreams(std::vector<std::unique_ptr<EntryStream>> streams, const StopToken* stop,
                    const EntrySink& sink);

// Writes the section to an upload as runs come. Joins runs that follow each other in one file.
class SortedWriter {
 public:
  // file_bases: where files begin, as FileBases gives them.
  SortedWriter(store::Upload& upload, int64_t offset_bytes, std::vector<uint64_t> file_bases,
               std::string spill_folder);
  Status Add(std::string_view key, uint64_t row, uint64_t count);
  Status Finish(SortedDirectory* directory);
  uint64_t row_count() const { return row_count_; }

 private:
  Status Put();
  Status CloseBlock();
  Status CloseFenceBlock();

  store::Upload& upload_;
  int64_t offset_bytes_;             // where the open block begins
  const std::vector<uint64_t> file_bases_;
  bool open_ = false;                // there is a run to put
  std::string key_;
  uint64_t row_ = 0, count_ = 0;

  EntryWriter entries_;
  std::string block_;
  uint64_t block_runs_ = 0, block_rows_ = 0;
  std::string block_fence_, last_key_;

  std::string fences_;               // the open fence block's
  uint64_t fence_count_ = 0;
  std::string fence_key_;            // of the fence before
  Fence top_;                        // of the open fence block
  SpillBuffer fence_blocks_;
  std::vector<uint64_t> fence_sizes_;
  SortedDirectory directory_;
  uint64_t row_count_ = 0;
};

// Sorts the keys of a build, in bounded memory: each batch in its own thread, batches merged into
// spilled pieces when memory is full. Threads: Add is safe.
class KeySorter {
 public:
  KeySorter(int64_t memory_bytes_max, std::string spill_folder, const StopToken* stop);

  // Key i is of global row first_row + i; the rows are of one file.
  Status Add(const key::OrderedKeys& keys, uint64_t first_row);
  // Everything, in order. Called once, after all Adds.
  Status Drain(const EntrySink& sink);

 private:
  struct Chunk {
    std::string bytes;               // empty when spilled
    int64_t offset_bytes = 0;
    size_t size_bytes = 0;
  };
  using Piece = std::vector<Chunk>;  // entries in order; each chunk readable by itself
  class PieceStream;

  Status SpillAll();                 // REQUIRES: mutex_ held

  const int64_t memory_bytes_max_;
  const StopToken* const stop_;
  std::mutex mutex_;
  SpillFile file_;
  std::vector<Piece> pieces_;        // in memory
  std::vector<Piece> spilled_;
  int64_t piece_bytes_ = 0;
};

}  // namespace grebe::index

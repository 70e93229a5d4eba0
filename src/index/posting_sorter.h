// From postings in any order to a fragment's blocks, lists and covering blocks, in bounded memory.
//
// Postings are scattered into partitions by the high bits of their hash (packed tight, spilled to
// a nameless file beyond the memory limit); then each partition is sorted and packed by itself,
// several threads at a time, and appended in hash order. There is no merge, except for a partition
// that alone outgrows the memory (one key with very many rows).
#pragma once

#include <arrow/record_batch.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/stop.h"
#include "index/fragment_format.h"
#include "index/fragment_head.h"
#include "index/hash_block.h"
#include "index/key_hash.h"
#include "index/spill.h"

namespace grebe::index {

// A posting while it is sorted: row << 24 | rows of the run.
struct SortEntry {
  uint64_t hash = 0;
  uint64_t row_length = 0;
  auto operator<=>(const SortEntry&) const = default;
};
constexpr int kSortLengthBits = 24;
constexpr uint64_t kSortLengthMax = (uint64_t{1} << kSortLengthBits) - 1;

struct GroupedKeys;

class PostingSorter {
 public:
  struct Options {
    HashSpace space;
    std::vector<uint64_t> file_bases;       // ascending: runs never reach across these rows
    uint64_t row_count = 0;                 // of all files
    uint64_t entry_count = 0;               // about how many postings will come
    bool has_lengths = false;               // some posting has more than one row
    int64_t memory_bytes_max = 256 << 20;
    std::string spill_folder;
    int threads = 1;
    const StopToken* stop = nullptr;
    std::shared_ptr<arrow::Schema> covering;
    int64_t covering_bytes = 0;             // about how many bytes the covering rows take
  };
  explicit PostingSorter(Options options);
  ~PostingSorter();

  // Takes postings. One per thread; Finish before Write. Errors are kept until Finish.
  class Feeder {
   public:
    void Add(uint64_t hash, uint64_t row, uint64_t length) {
      Put(sorter_->PartitionOf(hash), hash & sorter_->remainder_mask_, row, length);
    }
    void AddNull(uint64_t row, uint64_t length) {
      Put(sorter_->partitions_.size() - 1, 0, row, length);
    }
    // Covering rows: row i is global row rows[i] of the key with hashes[i]; null_rows (may be
    // empty) marks null keys.
    Status AddCovering(const std::shared_ptr<arrow::RecordBatch>& batch,
                       const std::vector<uint64_t>& rows, const std::vector<uint64_t>& hashes,
                       const std::vector<uint8_t>& null_rows);
    Status Finish();

   private:
    friend class PostingSorter;
    struct Slot {
      char* at = nullptr;
      char* end = nullptr;
      std::unique_ptr<char[]> chunk;
    };
    explicit Feeder(PostingSorter* sorter);
    GREBE_INLINE void Put(size_t partition, uint64_t remainder, uint64_t row, uint64_t length) {
      do {
        const uint64_t piece = length < kSortLengthMax ? length : kSortLengthMax;
        Slot& slot = slots_[partition];
        if (slot.at == slot.end) [[unlikely]] NewChunk(partition);
        StoreLe(slot.at, remainder);
        StoreLe(slot.at + sorter_->hash_bytes_, row);
        if (sorter_->options_.has_lengths) {
          StoreLe(slot.at + sorter_->hash_bytes_ + sorter_->row_bytes_,
                  static_cast<uint32_t>(piece));
        }
        slot.at += sorter_->tuple_bytes_;
        row += piece;
        length -= piece;
      } while (length > 0);
    }
    void NewChunk(size_t partition);

    PostingSorter* sorter_;
    std::vector<Slot> slots_;
    Status status_;
  };
  std::unique_ptr<Feeder> NewFeeder();

  // Memory that the caller holds beside the sorter's own, counted against the limit.
  std::atomic<int64_t>& reserved_bytes() { return reserved_bytes_; }

  // Appends blocks, lists and covering blocks; fills in the head's directory, counts and flags.
  Status Write(store::Upload& upload, FragmentHead* head);

 private:
  struct Chunk {
    std::unique_ptr<char[]> bytes;
    size_t size_bytes = 0;
  };
  struct Extent {
    int64_t offset_bytes = 0;
    size_t size_bytes = 0;
  };
  struct Partition {
    std::vector<Chunk> chunks;
    std::vector<Extent> extents;
    std::vector<BlobStore::Ref> covering;
    uint64_t entry_count = 0;
  };
  struct PartitionOutput;

  size_t PartitionOf(uint64_t hash) const { return (hash >> partition_shift_) & partition_mask_; }
  Status Push(size_t partition, std::unique_ptr<char[]> chunk, size_t size_bytes);
  Status SpillChunks();   // REQUIRES: mutex_ held
  void Decode(size_t partition, std::string_view tuples, std::vector<SortEntry>* entries) const;
  bool IsOversize(size_t partition) const {
    return partitions_[partition].entry_count > entries_max_;
  }
  Status Load(size_t partition, std::vector<SortEntry>* entries);
  Status SpillRuns(size_t partition, SpillFile* file, std::vector<Extent>* runs);
  Status Group(size_t partition, SpillBuffer* list_sink, GroupedKeys* grouped);
  Status GroupOversize(size_t partition, SpillBuffer* list_sink, GroupedKeys* grouped);
  void ChooseBlocks(const GroupedKeys& first);
  Status Pack(size_t partition, const GroupedKeys& grouped, PartitionOutput* out);
  Status PackCovering(size_t partition, const GroupedKeys& grouped, PartitionOutput* out);
  Status Append(const PartitionOutput& out, store::Upload& upload, FragmentHead* head);
  Status RunWorkers(store::Upload& upload, FragmentHead* head);
  Status Process(size_t partition, store::Upload& upload, FragmentHead* head);
  Status WaitForTurn(size_t partition);

  Options options_;
  int partition_bits_ = 0;
  int partition_shift_ = 0;
  uint64_t partition_mask_ = 0;
  int remainder_bits_ = 0;
  uint64_t remainder_mask_ = 0;
  size_t hash_bytes_ = 0, row_bytes_ = 0, tuple_bytes_ = 0;
  size_t chunk_tuples_ = 0;
  uint64_t entries_max_ = 0;             // of a partition that is sorted in memory
  uint64_t blocks_per_partition_ = 1;

  std::mutex mutex_;
  std::vector<Partition> partitions_;    // the last one: null keys
  int64_t chunk_bytes_ = 0;
  std::atomic<int64_t> reserved_bytes_{0};
  SpillFile spill_;
  BlobStore covering_rows_;
  SpillBuffer lists_;
  SpillBuffer block_covering_, list_covering_;
  std::vector<uint64_t> block_covering_sizes_, list_covering_sizes_;

  std::mutex turn_mutex_;
  std::condition_variable turn_changed_;
  size_t turn_ = 0;
  bool failed_ = false;
};

}  // namespace grebe::index

// Bytes of fragments kept in memory: the blocks that lookups read from a remote store.
//
// Least recently used goes first, by bytes. Sharded by key; the budget is of all shards together,
// so one large block may use most of it. Only bytes whose checksum was verified are put in.
// Threads: safe.
#pragma once

#include <arrow/buffer.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "base/types.h"

namespace grebe::index {

class BlockCache {
 public:
  explicit BlockCache(int64_t bytes_max) : bytes_max_(bytes_max) {}

  // A number that stands for an object in keys: the same for equal names, for the cache's life.
  // The name must be of one content for ever, as fragments' are.
  uint32_t ObjectId(const std::string& name);

  struct Key {
    uint32_t object = 0;
    ByteRange range;
    bool operator==(const Key&) const = default;
  };

  // Null when it is not there.
  std::shared_ptr<arrow::Buffer> Find(const Key& key);
  // Replaces what is there. A block larger than the whole budget is not kept.
  void Insert(const Key& key, std::shared_ptr<arrow::Buffer> bytes);

  struct Counters {
    int64_t hits = 0, misses = 0, evictions = 0;
    int64_t bytes = 0, blocks = 0;  // held now
  };
  Counters counters() const;

 private:
  // What a block costs besides its bytes (list node, map node, buffer).
  static constexpr int64_t kBlockOverheadBytes = 192;
  static constexpr size_t kShards = 16;

  struct KeyHash {
    size_t operator()(const Key& key) const;
  };
  struct Block {
    Key key;
    std::shared_ptr<arrow::Buffer> bytes;
  };
  struct Shard {
    mutable std::mutex mutex;
    std::list<Block> by_use;  // most recent first
    std::unordered_map<Key, std::list<Block>::iterator, KeyHash> by_key;
    Counters counters;
  };

  Shard& ShardOf(const Key& key) { return shards_[KeyHash()(key) % kShards]; }
  // Drops the shard's least recently used block; false when it has none but `keep`.
  bool DropOne(Shard& shard, const Key* keep);

  const int64_t bytes_max_;
  std::atomic<int64_t> bytes_{0};
  std::array<Shard, kShards> shards_;
  std::mutex ids_mutex_;
  std::unordered_map<std::string, uint32_t> ids_;
};

}  // namespace grebe::index

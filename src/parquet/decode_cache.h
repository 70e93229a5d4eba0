// What DecodeCache holds, for this room only: decoded dictionaries and decompressed pages.
#pragma once

#include <arrow/buffer.h>

#include <atomic>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "parquet/page_header.h"
#include "parquet/row_decode.h"

namespace grebe::pq {

// A decoded dictionary, ready for access by index. Immutable.
struct Dictionary {
  std::shared_ptr<arrow::Buffer> bytes;  // PLAIN values
  int64_t count = 0;
  int32_t width = 0;                     // bytes a value; 0: byte arrays
  std::vector<uint32_t> offsets;         // byte arrays: where each value's length prefix stands

  int64_t memory_bytes() const {
    return bytes->size() + static_cast<int64_t>(offsets.size() * sizeof(uint32_t)) + 160;
  }
};

// A page with its header, decompressed whole: the levels first (v2 pages too), then the values.
struct CachedPage {
  PageHeader header;
  std::shared_ptr<arrow::Buffer> bytes;

  int64_t memory_bytes() const { return bytes->size() + 224; }
};

struct CacheKey {
  uint64_t file_key = 0;
  int32_t row_group = 0;
  int32_t leaf = 0;
  int32_t page = -1;  // -1: the dictionary
  bool operator==(const CacheKey&) const = default;
};

struct CacheKeyHash {
  size_t operator()(const CacheKey& key) const;
};

// Least recently used goes first. Several locks, so that threads seldom wait for each other.
class LruCache {
 public:
  explicit LruCache(int64_t bytes_max);

  std::shared_ptr<const void> Find(const CacheKey& key);
  // Replaces what is there. A value larger than a shard's budget is not kept.
  void Insert(const CacheKey& key, std::shared_ptr<const void> value, int64_t bytes);
  int64_t bytes_max() const { return bytes_max_; }

 private:
  struct Entry {
    CacheKey key;
    std::shared_ptr<const void> value;
    int64_t bytes;
  };
  struct Shard {
    std::mutex mutex;
    std::list<Entry> entries;  // most recently used first
    std::unordered_map<CacheKey, std::list<Entry>::iterator, CacheKeyHash> index;
    int64_t bytes = 0;
  };
  Shard& ShardOf(const CacheKey& key);

  int64_t bytes_max_;
  int64_t shard_bytes_max_;
  std::vector<Shard> shards_;
};

struct DecodeCache::Impl {
  Impl(int64_t dictionary_bytes_max, int64_t page_bytes_max)
      : dictionaries(dictionary_bytes_max), pages(page_bytes_max) {}

  LruCache dictionaries;  // of Dictionary
  LruCache pages;         // of CachedPage
  std::atomic<int64_t> dictionary_hits{0}, dictionary_misses{0}, page_hits{0}, page_misses{0};
};

}  // namespace grebe::pq

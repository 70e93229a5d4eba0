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

#include "parquet/dictionary.h"
#include "parquet/page_header.h"
#include "parquet/row_decode.h"

namespace grebe::pq {

// A page, either decompressed whole (the levels first, for v2 pages too; then the values), or as it
// is stored in the file: large pages come into the cache so, and are decompressed whole when they
// are asked for again. Immutable but for the marks.
struct CachedPage {
  PageHeader header;
  std::shared_ptr<arrow::Buffer> bytes;   // decompressed; null: not yet
  std::shared_ptr<arrow::Buffer> stored;  // header and payload as stored; null once decompressed

  // PLAIN byte arrays: where every kMarkStep-th value stands in `bytes`, as far as the values are
  // sound. Walked once, at the second use of the page. Threads: safe.
  static constexpr int64_t kMarkStep = 16;
  const std::vector<uint32_t>& Marks(int64_t values_begin_bytes) const;

  int64_t memory_bytes() const;

 private:
  mutable std::once_flag marked_;
  mutable std::vector<uint32_t> marks_;
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

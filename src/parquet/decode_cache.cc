#include "parquet/decode_cache.h"

#include <algorithm>

#include "base/coding.h"

namespace grebe::pq {
namespace {

// A shard must be able to hold the largest dictionaries (1 MiB and more), so small budgets have
// few shards.
size_t ShardCount(int64_t bytes_max) {
  return static_cast<size_t>(std::clamp<int64_t>(bytes_max / (16 << 20), 1, 16));
}

}  // namespace

const std::vector<uint32_t>& CachedPage::Marks(int64_t values_begin_bytes) const {
  std::call_once(marked_, [&] {
    const uint8_t* data = bytes->data();
    const int64_t size = bytes->size();
    int64_t at = values_begin_bytes;
    for (int64_t i = 0; i < header.value_count && at + 4 <= size; ++i) {
      if (i % kMarkStep == 0) marks_.push_back(static_cast<uint32_t>(at));
      at += 4 + static_cast<int64_t>(LoadLe<uint32_t>(data + at));
    }
  });
  return marks_;
}

int64_t CachedPage::memory_bytes() const {
  const int64_t marks = header.encoding == 0 ? header.value_count / kMarkStep * 4 : 0;
  return 320 + (bytes != nullptr ? bytes->size() + marks : 0) +
         (stored != nullptr ? stored->size() : 0);
}

size_t CacheKeyHash::operator()(const CacheKey& key) const {
  uint64_t mixed = key.file_key * 0x9e3779b97f4a7c15ull;
  mixed ^= (static_cast<uint64_t>(static_cast<uint32_t>(key.row_group)) << 32) |
           static_cast<uint32_t>(key.leaf);
  mixed *= 0xff51afd7ed558ccdull;
  mixed ^= mixed >> 32;
  mixed += static_cast<uint32_t>(key.page);
  mixed *= 0xc4ceb9fe1a85ec53ull;
  return mixed ^ (mixed >> 29);
}

LruCache::LruCache(int64_t bytes_max)
    : bytes_max_(std::max<int64_t>(bytes_max, 0)),
      shard_bytes_max_(bytes_max_ / static_cast<int64_t>(ShardCount(bytes_max_))),
      shards_(ShardCount(bytes_max_)) {}

LruCache::Shard& LruCache::ShardOf(const CacheKey& key) {
  return shards_[(CacheKeyHash()(key) >> 40) % shards_.size()];
}

std::shared_ptr<const void> LruCache::Find(const CacheKey& key) {
  Shard& shard = ShardOf(key);
  const std::lock_guard<std::mutex> lock(shard.mutex);
  const auto found = shard.index.find(key);
  if (found == shard.index.end()) return nullptr;
  shard.entries.splice(shard.entries.begin(), shard.entries, found->second);
  return found->second->value;
}

void LruCache::Insert(const CacheKey& key, std::shared_ptr<const void> value, int64_t bytes) {
  if (bytes > shard_bytes_max_) return;
  Shard& shard = ShardOf(key);
  std::list<Entry> dropped;  // freed after the lock
  const std::lock_guard<std::mutex> lock(shard.mutex);
  if (const auto found = shard.index.find(key); found != shard.index.end()) {
    shard.bytes -= found->second->bytes;
    dropped.splice(dropped.begin(), shard.entries, found->second);
    shard.index.erase(found);
  }
  shard.entries.push_front(Entry{key, std::move(value), bytes});
  shard.index[key] = shard.entries.begin();
  shard.bytes += bytes;
  while (shard.bytes > shard_bytes_max_) {
    const auto last = std::prev(shard.entries.end());
    shard.bytes -= last->bytes;
    shard.index.erase(last->key);
    dropped.splice(dropped.begin(), shard.entries, last);
  }
}

DecodeCache::DecodeCache(int64_t dictionary_bytes_max, int64_t page_bytes_max)
    : impl_(std::make_unique<Impl>(dictionary_bytes_max, page_bytes_max)) {}

DecodeCache::~DecodeCache() = default;

DecodeCache::Counters DecodeCache::counters() const {
  Counters counters;
  counters.dictionary_hits = impl_->dictionary_hits.load(std::memory_order_relaxed);
  counters.dictionary_misses = impl_->dictionary_misses.load(std::memory_order_relaxed);
  counters.page_hits = impl_->page_hits.load(std::memory_order_relaxed);
  counters.page_misses = impl_->page_misses.load(std::memory_order_relaxed);
  return counters;
}

}  // namespace grebe::pq

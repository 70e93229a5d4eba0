#include "index/block_cache.h"

#include <utility>

#include "base/hash.h"

namespace grebe::index {

size_t BlockCache::KeyHash::operator()(const Key& key) const {
  const uint64_t place = static_cast<uint64_t>(key.range.begin) * 0x9e3779b97f4a7c15ULL;
  return Mix64(place ^ key.object ^ (static_cast<uint64_t>(key.range.size_bytes()) << 32));
}

uint32_t BlockCache::ObjectId(const std::string& name) {
  std::lock_guard lock(ids_mutex_);
  return ids_.emplace(name, static_cast<uint32_t>(ids_.size())).first->second;
}

std::shared_ptr<arrow::Buffer> BlockCache::Find(const Key& key) {
  Shard& shard = ShardOf(key);
  std::lock_guard lock(shard.mutex);
  const auto found = shard.by_key.find(key);
  if (found == shard.by_key.end()) {
    ++shard.counters.misses;
    return nullptr;
  }
  ++shard.counters.hits;
  shard.by_use.splice(shard.by_use.begin(), shard.by_use, found->second);
  return found->second->bytes;
}

bool BlockCache::DropOne(Shard& shard, const Key* keep) {
  std::shared_ptr<arrow::Buffer> dropped;  // freed after the lock is gone
  std::lock_guard lock(shard.mutex);
  if (shard.by_use.empty() || (keep != nullptr && shard.by_use.back().key == *keep)) return false;
  dropped = std::move(shard.by_use.back().bytes);
  shard.by_key.erase(shard.by_use.back().key);
  shard.by_use.pop_back();
  ++shard.counters.evictions;
  bytes_ -= dropped->size() + kBlockOverheadBytes;
  return true;
}

void BlockCache::Insert(const Key& key, std::shared_ptr<arrow::Buffer> bytes) {
  if (bytes == nullptr || bytes->size() + kBlockOverheadBytes > bytes_max_) return;
  Shard& shard = ShardOf(key);
  {
    std::lock_guard lock(shard.mutex);
    const auto found = shard.by_key.find(key);
    if (found != shard.by_key.end()) {
      bytes_ += bytes->size() - found->second->bytes->size();
      found->second->bytes = std::move(bytes);
      shard.by_use.splice(shard.by_use.begin(), shard.by_use, found->second);
    } else {
      bytes_ += bytes->size() + kBlockOverheadBytes;
      shard.by_use.push_front({key, std::move(bytes)});
      shard.by_key.emplace(key, shard.by_use.begin());
    }
  }
  // The own shard pays first, then the others: never the new block itself.
  const size_t own = static_cast<size_t>(&shard - shards_.data());
  for (size_t i = 0; i < kShards && bytes_ > bytes_max_; ++i) {
    while (bytes_ > bytes_max_ && DropOne(shards_[(own + i) % kShards], &key)) {
    }
  }
}

BlockCache::Counters BlockCache::counters() const {
  Counters sum;
  for (const Shard& shard : shards_) {
    std::lock_guard lock(shard.mutex);
    sum.hits += shard.counters.hits;
    sum.misses += shard.counters.misses;
    sum.evictions += shard.counters.evictions;
    sum.blocks += static_cast<int64_t>(shard.by_use.size());
  }
  sum.bytes = bytes_;
  return sum;
}

}  // namespace grebe::index

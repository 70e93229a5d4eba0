#include "index/fragment_filter.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <iterator>
#include <map>
#include <utility>

#include "base/hash.h"
#include "index/hash_block.h"
#include "index/key_hash.h"

namespace grebe::index {
namespace {

// Bits a key where they fit, else fewer (rows are a power of two, so up to twice as many). With
// four probes at most 0.3 % of the fragments are probed for nothing, or 2.4 %.
constexpr uint64_t kBitsPerKeyChoices[] = {16, 8};
constexpr int kProbes = 4;
constexpr size_t kGroupColumnsMin = 16;
constexpr uint64_t kRowsMin = 256;
// A fragment with more keys is large: there are few of those, and a filter would not pay.
constexpr uint64_t kKeysMax = 1 << 24;
// Bytes keys are known to every fragment by at least this many bits of their hash.
constexpr int kSharedHashBits = 40;

// The rows of a key: a walk with a stride, both from its mixed hash.
struct Rows {
  uint64_t at, stride;
  explicit Rows(uint64_t shared) {
    const uint64_t mixed = Mix64(shared + 0x9e3779b97f4a7c15ULL);
    at = mixed & 0xffffffff;
    stride = mixed >> 32 | 1;
  }
  uint64_t Next(uint64_t mask) {
    const uint64_t row = at & mask;
    at += stride;
    return row;
  }
};

int64_t BytesOf(uint64_t rows, size_t columns) {
  if (columns < kGroupColumnsMin) return 0;
  return static_cast<int64_t>(rows * ((columns + 63) / 64) * sizeof(uint64_t));
}

int64_t NowNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

FragmentFilter::FragmentFilter(const std::vector<OpenedFragment>& fragments, int64_t bytes_max)
    : fragments_(fragments) {
  std::map<uint64_t, std::vector<uint32_t>> by_rows;
  for (const uint64_t bits_per_key : kBitsPerKeyChoices) {
    by_rows.clear();
    for (uint32_t f = 0; f < fragments.size(); ++f) {
      if (!fragments[f].in_memory()) continue;
      const auto keys = static_cast<uint64_t>(fragments[f].info.key_count);
      if (keys > kKeysMax) {
        always_.push_back(f);
        continue;
      }
      by_rows[std::bit_ceil(std::max(kRowsMin, bits_per_key * keys))].push_back(f);
    }
    int64_t bytes = 0;
    for (const auto& [rows, members] : by_rows) bytes += BytesOf(rows, members.size());
    if (bytes <= bytes_max || bits_per_key == std::end(kBitsPerKeyChoices)[-1]) break;
    always_.clear();
  }
  // Small fragments first: they gain most for their bytes.
  for (auto& [rows, members] : by_rows) {
    const size_t words = (members.size() + 63) / 64;
    const int64_t bytes = BytesOf(rows, members.size());
    if (members.size() < kGroupColumnsMin || bytes > bytes_max) {
      always_.insert(always_.end(), members.begin(), members.end());
      continue;
    }
    bytes_max -= bytes;
    Group group;
    group.row_mask = rows - 1;
    group.words = words;
    for (const uint32_t f : members) {
      group.readers.push_back(dynamic_cast<const FragmentReader*>(fragments[f].fragment.get()));
    }
    group.fragments = std::move(members);
    group.ready = std::make_unique<std::atomic<uint64_t>[]>(words);
    groups_.push_back(std::move(group));
  }
  std::sort(always_.begin(), always_.end());
  done_ = groups_.empty();
}

void FragmentFilter::Candidates(const key::EncodedKeys& keys, int64_t i,
                                std::vector<uint32_t>* fragments) const {
  const size_t begin = fragments->size();
  fragments->insert(fragments->end(), always_.begin(), always_.end());
  const bool is_null = keys.is_null(i);
  const uint64_t shared = is_null          ? 0
                          : keys.is_word ? keys.words[static_cast<size_t>(i)]
                                         : HashBytes(keys.view(i)) >> (64 - kSharedHashBits);
  for (const Group& group : groups_) {
    for (size_t word = 0; word < group.words; ++word) {
      const uint64_t ready = group.ready[word].load(std::memory_order_acquire);
      uint64_t may = ~uint64_t{0};
      // Null words are in no filter: nothing rules a fragment out.
      if (ready != 0 && !is_null) {
        Rows rows(shared);
        for (int probe = 0; probe < kProbes; ++probe) {
          may &= group.bits[rows.Next(group.row_mask) * group.words + word].load(
              std::memory_order_relaxed);
        }
        may |= ~ready;
      }
      const size_t columns = std::min<size_t>(64, group.fragments.size() - word * 64);
      if (columns < 64) may &= (uint64_t{1} << columns) - 1;
      for (; may != 0; may &= may - 1) {
        fragments->push_back(
            group.fragments[word * 64 + static_cast<size_t>(std::countr_zero(may))]);
      }
    }
  }
  std::sort(fragments->begin() + static_cast<std::ptrdiff_t>(begin), fragments->end());
}

void FragmentFilter::AddHash(const Group& group, size_t column, uint64_t hash) {
  const HashSpace& space = group.readers[column]->head().space;
  Rows rows(space.word_keys ? space.WordOf(hash) : hash >> (space.bits - kSharedHashBits));
  const size_t word = column / 64;
  const uint64_t bit = uint64_t{1} << (column % 64);
  for (int probe = 0; probe < kProbes; ++probe) {
    std::atomic<uint64_t>& cell = group.bits[rows.Next(group.row_mask) * group.words + word];
    // Only Build writes, one thread at a time.
    cell.store(cell.load(std::memory_order_relaxed) | bit, std::memory_order_relaxed);
  }
}

// False when the block is damaged: then the fragment must be probed, and the probe will say so.
bool FragmentFilter::AddBlock(const Group& group, size_t column, uint64_t block) {
  const OpenedFragment& opened = fragments_[group.fragments[column]];
  const FragmentReader& reader = *group.readers[column];
  const ByteRange range = reader.block_range(block);
  const std::string_view bytes = opened.whole().substr(static_cast<size_t>(range.begin),
                                                       static_cast<size_t>(range.size_bytes()));
  if (bytes.empty()) return true;
  KeyRuns keys;
  if (!CheckBlock(bytes) || !DecodeBlock(bytes, reader.scope(block), &keys).ok()) return false;
  for (const uint64_t hash : keys.hashes) AddHash(group, column, hash);
  return true;
}

bool FragmentFilter::AddLists(const Group& group, size_t column) {
  const FragmentHead& head = group.readers[column]->head();
  if (!head.space.word_keys && head.space.bits < kSharedHashBits) return false;
  for (const ListEntry& list : head.lists) {
    if (!list.null_keys) AddHash(group, column, list.hash);
  }
  return true;
}

void FragmentFilter::NextColumn(bool ready) {
  Group& group = groups_[cursor_.group];
  if (ready) {
    group.ready[cursor_.column / 64].fetch_or(uint64_t{1} << (cursor_.column % 64),
                                              std::memory_order_release);
    useful_.store(true, std::memory_order_release);
  }
  cursor_.block = 0;
  if (++cursor_.column < group.fragments.size()) return;
  cursor_.column = 0;
  if (++cursor_.group == groups_.size()) done_.store(true, std::memory_order_relaxed);
}

void FragmentFilter::Build(int64_t budget_ns) {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return;
  const int64_t end_ns = NowNs() + budget_ns;
  while (!done() && NowNs() < end_ns) {
    Group& group = groups_[cursor_.group];
    if (group.bits == nullptr) {
      group.bits =
          std::make_unique<std::atomic<uint64_t>[]>((group.row_mask + 1) * group.words);
    }
    const FragmentReader& reader = *group.readers[cursor_.column];
    if (cursor_.block == 0 && !AddLists(group, cursor_.column)) {
      NextColumn(false);
    } else if (!AddBlock(group, cursor_.column, cursor_.block)) {
      NextColumn(false);
    } else if (++cursor_.block == reader.head().block_sizes.size()) {
      NextColumn(true);
    }
  }
}

}  // namespace grebe::index

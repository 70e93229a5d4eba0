#include "curve/rank.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <optional>
#include <span>

#include "curve/ordered_bytes.h"

namespace grebe::curve {

namespace {

// How many of the ascending `sorted` are at most each value: a search whose steps depend on the
// number of entries only, run for eight values side by side, so that their cache misses overlap.
void CountsAtMost(std::span<const uint64_t> sorted, const uint64_t* values, size_t rows,
                  uint32_t first, uint32_t* counts) {
  constexpr size_t kLanes = 8;
  uint64_t padded[kLanes];
  for (size_t row = 0; row < rows; row += kLanes) {
    const size_t lanes = std::min(kLanes, rows - row);
    const uint64_t* wanted = values + row;
    if (lanes < kLanes) {
      std::fill(std::copy(wanted, wanted + lanes, padded), padded + kLanes, 0);
      wanted = padded;
    }
    uint32_t at[kLanes] = {};
    size_t size = sorted.size();
    while (size > 1) {
      const size_t half = size / 2;
      for (size_t lane = 0; lane < kLanes; ++lane) {
        // A mask, not a choice: a branch would be mispredicted half of the time.
        const bool right = sorted[at[lane] + half - 1] <= wanted[lane];
        at[lane] += static_cast<uint32_t>(half) & (0u - static_cast<uint32_t>(right));
      }
      size -= half;
    }
    for (size_t lane = 0; lane < lanes; ++lane) {
      const bool above = size == 1 && sorted[at[lane]] <= wanted[lane];
      counts[row + lane] = first + at[lane] + (above ? 1 : 0);
    }
  }
}

// The lowest value above this one.
std::optional<uint64_t> After(uint64_t value) {
  if (value == std::numeric_limits<uint64_t>::max()) return std::nullopt;
  return value + 1;
}

std::optional<std::string> After(std::string_view value) { return std::string(value) + '\0'; }

// Walks the sorted sample's distinct values and closes the open bucket where it is nearest to its
// share of what is left. A value of a whole share or more begins a bucket, and the next begins
// right after it.
template <typename Value, typename Boundary>
std::vector<Boundary> Boundaries(std::vector<Value> sample, uint32_t buckets) {
  std::sort(sample.begin(), sample.end());
  std::vector<Boundary> boundaries;
  size_t left = sample.size();   // rows not in a closed bucket
  uint32_t buckets_left = buckets;  // the open one included
  size_t open = 0;               // rows in the open bucket
  const auto close_before = [&](Boundary boundary) {
    boundaries.push_back(std::move(boundary));
    left -= open;
    open = 0;
    --buckets_left;
  };
  for (size_t begin = 0, end; begin < sample.size(); begin = end) {
    end = std::upper_bound(sample.begin() + begin, sample.end(), sample[begin]) - sample.begin();
    const size_t count = end - begin;
    const auto share = [&] { return static_cast<double>(left) / buckets_left; };
    const bool heavy = static_cast<double>(count) >= share() && count > 1;
    const bool full = 2 * static_cast<double>(open) + static_cast<double>(count) > 2 * share();
    if (buckets_left > 1 && open > 0 && (heavy || full)) close_before(Boundary(sample[begin]));
    open += count;
    if (buckets_left > 1 && heavy && open == count && end < sample.size()) {
      if (auto next = After(sample[begin])) close_before(std::move(*next));
    }
  }
  return boundaries;
}

uint32_t ValueBuckets(const RankOptions& options) {
  return std::max<uint32_t>(1, options.buckets - (options.nulls ? 1 : 0));
}

}  // namespace

std::vector<uint32_t> SpreadIds(uint32_t count, int bits) {
  std::vector<uint32_t> ids(count);
  for (uint64_t i = 0; i < count; ++i) {
    ids[i] = static_cast<uint32_t>((i << bits) / count);
  }
  return ids;
}

Ranks64::Ranks64(std::vector<uint64_t> sample, const RankOptions& options)
    : first_id_(options.nulls ? 1 : 0),
      boundaries_(Boundaries<uint64_t, uint64_t>(std::move(sample), ValueBuckets(options))) {}

uint32_t Ranks64::Id(uint64_t value) const {
  uint32_t id;
  Ids(&value, 1, &id);
  return id;
}

void Ranks64::Ids(const uint64_t* values, size_t rows, uint32_t* ids) const {
  CountsAtMost(boundaries_, values, rows, first_id_, ids);
}

RanksOfStrings::RanksOfStrings(std::vector<std::string_view> sample, const RankOptions& options)
    : first_id_(options.nulls ? 1 : 0),
      boundaries_(
          Boundaries<std::string_view, std::string>(std::move(sample), ValueBuckets(options))) {
  if (boundaries_.empty()) return;
  // Boundaries ascend, so what the first and the last share, all do.
  const std::string& first = boundaries_.front();
  const std::string& last = boundaries_.back();
  while (shared_bytes_ < std::min(first.size(), last.size()) &&
         first[shared_bytes_] == last[shared_bytes_]) {
    ++shared_bytes_;
  }
  for (const std::string& boundary : boundaries_) {
    words_.push_back(OrderedPrefix(std::string_view(boundary).substr(shared_bytes_)));
  }
}

uint32_t RanksOfStrings::Id(std::string_view value) const {
  uint32_t id;
  Ids(&value, 1, &id);
  return id;
}

// `candidate`: how many boundaries' words are at most the value's. Those with the same word may
// still be above it.
uint32_t RanksOfStrings::IdFrom(std::string_view value, size_t candidate) const {
  if (candidate == 0) return first_id_;
  const uint64_t word = OrderedPrefix(value.substr(shared_bytes_));
  if (words_[candidate - 1] != word) return first_id_ + static_cast<uint32_t>(candidate);
  const auto same = std::lower_bound(words_.begin(), words_.begin() + candidate, word);
  const auto begin = boundaries_.begin() + (same - words_.begin());
  const auto found = std::upper_bound(begin, boundaries_.begin() + candidate, value);
  return first_id_ + static_cast<uint32_t>(found - boundaries_.begin());
}

void RanksOfStrings::Ids(const std::string_view* values, size_t rows, uint32_t* ids) const {
  constexpr size_t kBlockRows = 256;
  const std::string_view shared = boundaries_.empty()
                                      ? std::string_view()
                                      : std::string_view(boundaries_[0]).substr(0, shared_bytes_);
  uint64_t words[kBlockRows];
  for (size_t row = 0; row < rows; row += kBlockRows) {
    const size_t block_rows = std::min(kBlockRows, rows - row);
    for (size_t i = 0; i < block_rows; ++i) {
      const std::string_view value = values[row + i];
      words[i] = OrderedPrefix(value.substr(std::min(shared_bytes_, value.size())));
    }
    CountsAtMost(words_, words, block_rows, 0, ids + row);
    for (size_t i = 0; i < block_rows; ++i) {
      const std::string_view value = values[row + i];
      const int order = value.substr(0, shared_bytes_).compare(shared);
      ids[row + i] = order < 0   ? first_id_
                     : order > 0 ? count() - 1
                                 : IdFrom(value, ids[row + i]);
    }
  }
}

}  // namespace grebe::curve

// One block of a fragment's hash section, and one posting list. docs/format/fragment.md.
//
// A block maps the keys of one range of hashes to their postings. Rows here are the fragment's
// GLOBAL rows: a file's base (the rows of the files before it) plus the row within it.
// Nothing read from a block is trusted: every offset is checked against the block's bytes.
// Threads: pure functions over immutable bytes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "index/bit_pack.h"

namespace grebe::index {

// A run of global rows.
struct RowRun {
  uint64_t row = 0;
  uint64_t count = 0;
  bool operator==(const RowRun&) const = default;
};

// Keys in ascending hash order with their runs in ascending row order; ends[k] is where the runs
// of key k end.
struct KeyRuns {
  std::vector<uint64_t> hashes;
  std::vector<uint64_t> ends;
  std::vector<RowRun> runs;
  void Clear() {
    hashes.clear();
    ends.clear();
    runs.clear();
  }
};

// What a block's bytes do not say: its range of hashes and the fragment's row numbers.
struct BlockScope {
  uint64_t first_hash = 0;
  uint64_t last_remainder = 0;   // last hash of the range - first_hash
  uint64_t row_count = 0;        // of the fragment
  int row_bits = 0;              // BitsOfRows(row_count)
};

inline int BitsOfRows(uint64_t row_count) {
  return row_count == 0 ? 0 : BitWidth(row_count - 1);
}

// Appends the block that holds keys [key_begin, key_end) of `keys` (none: no bytes).
// REQUIRES: their hashes ascend strictly and lie in the scope.
void AppendBlock(const KeyRuns& keys, size_t key_begin, size_t key_end, const BlockScope& scope,
                 std::string* out);

// Where a block's parts lie, in bytes from its start.
struct BlockLayout {
  const uint8_t* data = nullptr;
  size_t size_bytes = 0;
  uint32_t key_count = 0;
  uint32_t run_count = 0;
  int low_bits = 0;
  int extra_low_bits = 0;
  int length_bits = 0;
  int row_bits = 0;
  bool single = false;         // every key has one run: no extra counts
  uint64_t upper_bits = 0;
  uint64_t extra_upper_bits = 0;
  uint64_t upper_at = 0, low_at = 0, extra_upper_at = 0, extra_low_at = 0, rows_at = 0,
           lengths_at = 0;

  // False when the bytes are not a block of that scope.
  [[nodiscard]] bool Parse(std::string_view bytes, const BlockScope& scope);

  // The bucket of a remainder: its first bit in the upper part; upper_bits or more: corrupt.
  GREBE_INLINE uint64_t BucketStart(uint64_t remainder) const;
  // The key of that remainder, from its bucket's start; -1: absent, -2: corrupt.
  GREBE_INLINE int64_t KeyAt(uint64_t bucket_start, uint64_t remainder) const;
  // The runs of a key, [first, last). False: corrupt.
  [[nodiscard]] GREBE_INLINE bool RunsOf(uint64_t key, uint64_t* first, uint64_t* last) const;
  GREBE_INLINE uint64_t low(uint64_t key) const {
    return GetBits(data + low_at, size_bytes - low_at, key * static_cast<uint64_t>(low_bits),
                   low_bits);
  }
  GREBE_INLINE RowRun run(uint64_t index) const {
    const uint64_t row = GetBits(data + rows_at, size_bytes - rows_at,
                                 index * static_cast<uint64_t>(row_bits), row_bits);
    if (length_bits == 0) return {row, 1};
    return {row, 1 + GetBits(data + lengths_at, size_bytes - lengths_at,
                             index * static_cast<uint64_t>(length_bits), length_bits)};
  }
};

// Checks a block's checksum. False also when it is too short to have one.
bool CheckBlock(std::string_view block);

// Every key of a block, in order (hashes in full). Appends. Checks order and bounds of all of it,
// not the checksum. Errors: Corrupt.
Status DecodeBlock(std::string_view block, const BlockScope& scope, KeyRuns* keys);

// Writes a posting list piece by piece: groups of 128 runs, gaps and lengths packed.
class ListWriter {
 public:
  static constexpr size_t kGroupRuns = 128;
  // REQUIRES: rows ascend, runs do not touch the one before.
  void Add(RowRun run, std::string* out);
  void Finish(std::string* out);

 private:
  void Flush(std::string* out);
  std::vector<RowRun> group_;
  uint64_t end_ = 0;
};

// The runs of a list, appended. Errors: Corrupt when they do not ascend within row_count rows or
// the bytes are not exactly run_count runs.
Status DecodeList(std::string_view bytes, uint64_t run_count, uint64_t row_count,
                  std::vector<RowRun>* runs);

// ---- inline parts ----

GREBE_INLINE uint64_t BlockLayout::BucketStart(uint64_t remainder) const {
  const uint64_t bucket = low_bits >= 64 ? 0 : remainder >> low_bits;
  if (bucket == 0) return 0;
  return SelectBit<false>(data + upper_at, size_bytes - upper_at, upper_bits, bucket - 1) + 1;
}

GREBE_INLINE int64_t BlockLayout::KeyAt(uint64_t bit, uint64_t remainder) const {
  const uint64_t bucket = low_bits >= 64 ? 0 : remainder >> low_bits;
  if (bit >= upper_bits) return -2;
  const uint64_t wanted = remainder & LowMask(low_bits);
  for (uint64_t key = bit - bucket; bit < upper_bits; ++bit, ++key) {
    if ((data[upper_at + (bit >> 3)] >> (bit & 7) & 1) == 0) return -1;
    if (key >= key_count) return -2;
    const uint64_t got = low(key);
    if (got >= wanted) return got == wanted ? static_cast<int64_t>(key) : -1;
  }
  return -2;
}

GREBE_INLINE bool BlockLayout::RunsOf(uint64_t key, uint64_t* first, uint64_t* last) const {
  *first = key;
  *last = key + 1;
  if (single) return true;
  const uint8_t* upper = data + extra_upper_at;
  const size_t upper_size = size_bytes - extra_upper_at;
  const uint8_t* lows = data + extra_low_at;
  const size_t lows_size = size_bytes - extra_low_at;
  const uint64_t width = static_cast<uint64_t>(extra_low_bits);
  uint64_t bit = 0;
  if (key > 0) {
    bit = SelectBit<true>(upper, upper_size, extra_upper_bits, key - 1);
    if (bit >= extra_upper_bits) return false;
    *first += ((bit - (key - 1)) << width) + GetBits(lows, lows_size, (key - 1) * width,
                                                     extra_low_bits);
    ++bit;
  }
  while (bit < extra_upper_bits) {
    const uint64_t ahead = GetBits(upper, upper_size, bit, 57);
    if (ahead != 0) {
      bit += static_cast<uint64_t>(__builtin_ctzll(ahead));
      break;
    }
    bit += 57;
  }
  if (bit >= extra_upper_bits) return false;
  *last += ((bit - key) << width) + GetBits(lows, lows_size, key * width, extra_low_bits);
  return *first < *last && *last <= run_count;
}

}  // namespace grebe::index

// Packed bits, least significant first within bytes, and Elias-Fano sequences over them.
//
// Readers take the bytes that may be read and treat what lies beyond them as zeros, so no input
// can make them read out of bounds. Threads: pure functions.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

#include "base/coding.h"

namespace grebe::index {

#define GREBE_INLINE inline __attribute__((always_inline))

// REQUIRES: 0 <= bits <= 64.
GREBE_INLINE uint64_t LowMask(int bits) {
  return bits >= 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
}

// The 8 bytes at `byte`, zeros beyond size_bytes.
GREBE_INLINE uint64_t LoadWord(const uint8_t* data, size_t size_bytes, size_t byte) {
  if (byte + 8 <= size_bytes) [[likely]] return LoadLe<uint64_t>(data + byte);
  uint64_t value = 0;
  for (int i = 0; byte < size_bytes; ++byte, i += 8) {
    value |= static_cast<uint64_t>(data[byte]) << i;
  }
  return value;
}

// The `width` bits (0 to 64) at bit offset `bit`.
GREBE_INLINE uint64_t GetBits(const uint8_t* data, size_t size_bytes, uint64_t bit, int width) {
  const size_t byte = bit >> 3;
  const int shift = static_cast<int>(bit & 7);
  uint64_t value = LoadWord(data, size_bytes, byte) >> shift;
  if (shift + width > 64) [[unlikely]] {
    const uint64_t top = byte + 8 < size_bytes ? data[byte + 8] : 0;
    value |= top << (64 - shift);
  }
  return value & LowMask(width);
}

// The position of the rank-th (from 0) set bit of word. REQUIRES: rank < popcount(word).
GREBE_INLINE int SelectInWord(uint64_t word, int rank) {
  int at = 0;
  for (int half = 32; half >= 8; half >>= 1) {
    const int ones = __builtin_popcountll(word & LowMask(half));
    const bool upper = rank >= ones;
    rank -= upper ? ones : 0;
    at += upper ? half : 0;
    word >>= upper ? half : 0;
  }
  for (; rank > 0; --rank) word &= word - 1;
  return at + __builtin_ctzll(word);
}

// The position of the rank-th (from 0) bit equal to kBit in a string of bit_count bits; bit_count
// or more when there is none.
template <bool kBit>
GREBE_INLINE uint64_t SelectBit(const uint8_t* data, size_t size_bytes, uint64_t bit_count,
                                uint64_t rank) {
  for (uint64_t at = 0; at < bit_count; at += 64) {
    uint64_t word = LoadWord(data, size_bytes, at >> 3);
    if (!kBit) word = ~word;
    const uint64_t ones = static_cast<uint64_t>(__builtin_popcountll(word));
    if (rank < ones) return at + static_cast<uint64_t>(SelectInWord(word, static_cast<int>(rank)));
    rank -= ones;
  }
  return bit_count;
}

// Appends packed bits to a string.
class BitWriter {
 public:
  explicit BitWriter(std::string* out) : out_(out) {}

  // REQUIRES: value < 2^width, 0 <= width <= 64.
  void Put(uint64_t value, int width) {
    if (width == 0) return;
    pending_ |= value << fill_;
    fill_ += width;
    if (fill_ >= 64) {
      PutFixed(out_, pending_);
      fill_ -= 64;
      pending_ = fill_ == 0 ? 0 : value >> (width - fill_);
    }
  }

  // Fills up the last byte with zeros.
  void Align() {
    for (; fill_ > 0; fill_ -= 8) {
      out_->push_back(static_cast<char>(pending_));
      pending_ >>= 8;
    }
    fill_ = 0;
    pending_ = 0;
  }

 private:
  std::string* out_;
  uint64_t pending_ = 0;
  int fill_ = 0;
};

inline int BitWidth(uint64_t value) { return static_cast<int>(std::bit_width(value)); }
inline uint64_t BytesOfBits(uint64_t bits) { return (bits + 7) / 8; }

// The low bits an Elias-Fano sequence of `count` values in [0, last] keeps apart: the choice that
// makes it smallest.
inline int EliasFanoLowBits(uint64_t last, uint64_t count) {
  if (count == 0) return 0;
  const uint64_t share = last / count;
  return share == 0 ? 0 : BitWidth(share) - 1;
}

// Bits of the upper part of such a sequence: a one per value, a zero per bucket passed.
inline uint64_t EliasFanoUpperBits(uint64_t last, uint64_t count, int low_bits) {
  return count + (low_bits >= 64 ? 0 : last >> low_bits) + 1;
}

// Appends the upper part, byte-aligned, then the low parts, byte-aligned.
// REQUIRES: values ascend (equal ones allowed), none above last.
void AppendEliasFano(std::span<const uint64_t> values, uint64_t last, int low_bits,
                     std::string* out);

}  // namespace grebe::index

// The hash by which a fragment orders its keys.
//
// WORD form: keys lie in the domain [base, base + span] (wrapping, so that -1 and 0 are
// neighbours); key - base is mixed by a bijection on `bits` bits. Equal hashes mean equal keys, and
// the key can be had back. BYTES form: the top `bits` bits of HashBytes(); a fingerprint only.
// Persisted: none of this may change. Source: docs/format/fragment.md. Threads: pure functions.
#pragma once

#include <bit>
#include <cstdint>
#include <string_view>

#include "base/hash.h"
#include "index/bit_pack.h"

namespace grebe::index {

constexpr uint64_t kMixA = 0xbf58476d1ce4e5b9ULL;
constexpr uint64_t kMixB = 0x94d049bb133111ebULL;
constexpr uint64_t kMixC = 0x9e3779b97f4a7c15ULL;

// The inverse of an odd number modulo 2^64 (and so modulo every smaller power of two).
constexpr uint64_t InverseOf(uint64_t odd) {
  uint64_t inverse = odd;
  for (int i = 0; i < 6; ++i) inverse *= 2 - odd * inverse;
  return inverse;
}
static_assert(kMixA * InverseOf(kMixA) == 1 && kMixB * InverseOf(kMixB) == 1 &&
              kMixC * InverseOf(kMixC) == 1);

// A bijection of [0, 2^bits). Each step undoes itself or has an inverse: a xor-shift by at least
// half the width is its own inverse. REQUIRES: x < 2^bits, 0 <= bits <= 64.
GREBE_INLINE uint64_t MixBits(uint64_t x, int bits) {
  const uint64_t mask = LowMask(bits);
  const int half = (bits + 1) / 2;
  x ^= x >> half;
  x = (x * kMixA) & mask;
  x ^= x >> half;
  x = (x * kMixB) & mask;
  x ^= x >> half;
  x = (x * kMixC) & mask;
  return x ^ (x >> half);
}

GREBE_INLINE uint64_t UnmixBits(uint64_t x, int bits) {
  const uint64_t mask = LowMask(bits);
  const int half = (bits + 1) / 2;
  x ^= x >> half;
  x = (x * InverseOf(kMixC)) & mask;
  x ^= x >> half;
  x = (x * InverseOf(kMixB)) & mask;
  x ^= x >> half;
  x = (x * InverseOf(kMixA)) & mask;
  return x ^ (x >> half);
}

struct HashSpace {
  bool word_keys = true;
  int bits = 0;        // word: 0 to 64; bytes: 1 to 64
  uint64_t base = 0;   // word form only
  uint64_t span = 0;   // word form only

  static HashSpace OfWords(uint64_t base, uint64_t span) {
    return {true, BitWidth(span), base, span};
  }
  // Bytes form: about 16 bits beyond those that tell `entry_count` keys apart (one false candidate
  // in 65,536 absent keys), and never fewer than 40, so that small fragments still merge well.
  static HashSpace OfBytes(uint64_t entry_count) {
    const int wanted = BitWidth(entry_count) + 16;
    return {false, wanted < 40 ? 40 : (wanted > 64 ? 64 : wanted), 0, 0};
  }

  // False when no key of the fragment can be this word.
  GREBE_INLINE bool HashWord(uint64_t word, uint64_t* hash) const {
    const uint64_t offset = word - base;
    *hash = MixBits(offset & LowMask(bits), bits);
    return offset <= span;
  }
  uint64_t WordOf(uint64_t hash) const { return UnmixBits(hash, bits) + base; }
  uint64_t Truncate(uint64_t hash64) const { return hash64 >> (64 - bits); }
  uint64_t last_hash() const { return LowMask(bits); }
  bool operator==(const HashSpace&) const = default;
};

// Which of block_count equal ranges of the hash space a hash lies in.
GREBE_INLINE uint64_t BlockOf(uint64_t hash, uint64_t block_count, int bits) {
  return static_cast<uint64_t>((static_cast<unsigned __int128>(hash) * block_count) >> bits);
}
// The first hash of a block. REQUIRES: block < block_count.
inline uint64_t BlockStart(uint64_t block, uint64_t block_count, int bits) {
  const auto scaled = static_cast<unsigned __int128>(block) << bits;
  return static_cast<uint64_t>((scaled + block_count - 1) / block_count);
}

}  // namespace grebe::index

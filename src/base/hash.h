// Hashes and checksums. All are persisted: their values may never change.
#pragma once

#include <xxhash.h>

#include <cstdint>
#include <string_view>

namespace grebe {

// Checksum of persisted bytes: XXH3, 64 bits, seed 0.
inline uint64_t Checksum(std::string_view bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

// Hash of a key of more than 64 bits: XXH3, 64 bits, with a seed of its own.
inline uint64_t HashBytes(std::string_view bytes) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), 0x67726562655f6b31ULL);
}

// An invertible mix of 64 bits (splitmix64's finalizer): equal outputs mean equal inputs.
inline uint64_t Mix64(uint64_t x) {
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9ULL;
  x ^= x >> 27;
  x *= 0x94d049bb133111ebULL;
  x ^= x >> 31;
  return x;
}

// The inverse of Mix64.
inline uint64_t Unmix64(uint64_t x) {
  x ^= (x >> 31) ^ (x >> 62);
  x *= 0x319642b2d24d8ec3ULL;
  x ^= (x >> 27) ^ (x >> 54);
  x *= 0x96de1b173f119089ULL;
  x ^= (x >> 30) ^ (x >> 60);
  return x;
}

}  // namespace grebe

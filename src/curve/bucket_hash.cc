#include "curve/bucket_hash.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <string>

namespace grebe::curve {

namespace {

// The steps of murmur3 x86 32 (A. Appleby, public domain).
uint32_t MixIn(uint32_t hash, uint32_t block) {
  block *= 0xcc9e2d51;
  block = std::rotl(block, 15);
  block *= 0x1b873593;
  return std::rotl(hash ^ block, 13) * 5 + 0xe6546b64;
}

uint32_t MixInTail(uint32_t hash, uint32_t tail) {
  tail *= 0xcc9e2d51;
  tail = std::rotl(tail, 15);
  return hash ^ (tail * 0x1b873593);
}

int32_t Finish(uint32_t hash, size_t length_bytes) {
  hash ^= static_cast<uint32_t>(length_bytes);
  hash ^= hash >> 16;
  hash *= 0x85ebca6b;
  hash ^= hash >> 13;
  hash *= 0xc2b2ae35;
  return static_cast<int32_t>(hash ^ (hash >> 16));
}

uint32_t BlockAt(std::string_view bytes, size_t at) {
  uint32_t block = 0;
  for (int i = 3; i >= 0; --i) block = block << 8 | static_cast<uint8_t>(bytes[at + i]);
  return block;
}

int32_t HashLong(uint64_t value, uint32_t seed) {
  const uint32_t hash = MixIn(seed, static_cast<uint32_t>(value));
  return Finish(MixIn(hash, static_cast<uint32_t>(value >> 32)), 8);
}

// The shortest big-endian two's complement of a number, at least one byte.
std::string ShortestBigEndian(std::span<const uint64_t> words) {
  std::string bytes;
  for (size_t i = words.size(); i-- > 0;) {
    for (int shift = 56; shift >= 0; shift -= 8) {
      bytes.push_back(static_cast<char>(words[i] >> shift));
    }
  }
  size_t skip = 0;
  const auto byte = [&](size_t i) { return static_cast<int8_t>(bytes[i]); };
  while (skip + 1 < bytes.size() && (byte(skip) == 0 || byte(skip) == -1) &&
         (byte(skip) < 0) == (byte(skip + 1) < 0)) {
    ++skip;
  }
  return bytes.substr(skip);
}

}  // namespace

int32_t IcebergHash::Long(int64_t value) { return HashLong(static_cast<uint64_t>(value), 0); }

int32_t IcebergHash::TimestampNs(int64_t value) {
  return Long(value / 1000 - (value % 1000 < 0 ? 1 : 0));
}

int32_t IcebergHash::Bytes(std::string_view value) {
  uint32_t hash = 0;
  size_t at = 0;
  for (; at + 4 <= value.size(); at += 4) hash = MixIn(hash, BlockAt(value, at));
  uint32_t tail = 0;
  for (size_t i = value.size(); i > at; --i) tail = tail << 8 | static_cast<uint8_t>(value[i - 1]);
  return Finish(MixInTail(hash, tail), value.size());
}

int32_t IcebergHash::Decimal(std::span<const uint64_t> words) {
  return Bytes(ShortestBigEndian(words));
}

int32_t SparkHash::Int(int32_t value, int32_t seed) {
  return Finish(MixIn(static_cast<uint32_t>(seed), static_cast<uint32_t>(value)), 4);
}

int32_t SparkHash::Long(int64_t value, int32_t seed) {
  return HashLong(static_cast<uint64_t>(value), static_cast<uint32_t>(seed));
}

int32_t SparkHash::Float(float value, int32_t seed) {
  if (value == 0) return Int(0, seed);
  if (std::isnan(value)) return Int(0x7fc00000, seed);
  return Int(std::bit_cast<int32_t>(value), seed);
}

int32_t SparkHash::Double(double value, int32_t seed) {
  if (value == 0) return Long(0, seed);
  if (std::isnan(value)) return Long(0x7ff8000000000000LL, seed);
  return Long(std::bit_cast<int64_t>(value), seed);
}

int32_t SparkHash::Bytes(std::string_view value, int32_t seed) {
  uint32_t hash = static_cast<uint32_t>(seed);
  size_t at = 0;
  for (; at + 4 <= value.size(); at += 4) hash = MixIn(hash, BlockAt(value, at));
  // Each byte left is a block of its own, its sign kept.
  for (; at < value.size(); ++at) {
    hash = MixIn(hash, static_cast<uint32_t>(static_cast<int8_t>(value[at])));
  }
  return Finish(hash, value.size());
}

int32_t SparkHash::Decimal(std::span<const uint64_t> words, int precision, int32_t seed) {
  constexpr int kLongDigitsMax = 18;
  if (precision <= kLongDigitsMax) return Long(static_cast<int64_t>(words[0]), seed);
  return Bytes(ShortestBigEndian(words), seed);
}

}  // namespace grebe::curve

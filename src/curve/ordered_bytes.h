// Values as unsigned numbers and as bytes that order as the values do.
//
// The 64-bit forms are what the raw mode of curves takes and what rank buckets sort by. All of them
// keep the order (a < b gives form(a) <= form(b)); those of values of at most 64 bits keep equality
// both ways too. Nulls have a place of their own, below every value (OrNull, AppendNull).
//
// Dates, times, timestamps and durations are ordered as their integers. Big-endian bytes of a form
// compare by memcmp as the forms do.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace grebe::curve {

constexpr uint64_t kSignBit = 1ULL << 63;

inline uint64_t OrderedInt(int64_t value) { return static_cast<uint64_t>(value) ^ kSignBit; }
inline uint64_t OrderedUint(uint64_t value) { return value; }
inline uint64_t OrderedBool(bool value) { return value ? 1 : 0; }
inline int64_t IntOfOrdered(uint64_t ordered) { return static_cast<int64_t>(ordered ^ kSignBit); }

// Floats are widened to double first, which keeps them. -0.0 is placed right before 0.0, as
// Iceberg's Z-order does; any NaN is one value, after infinity.
inline uint64_t OrderedDoubleTwoZeros(double value) {
  if (std::isnan(value)) return 0xfff8000000000000ULL;
  const uint64_t bits = std::bit_cast<uint64_t>(value);
  return (bits & kSignBit) != 0 ? ~bits : bits | kSignBit;
}

// The same with -0.0 = 0.0, as values compare: what boundaries and ids are made of.
inline uint64_t OrderedDouble(double value) {
  return OrderedDoubleTwoZeros(value == 0 ? 0.0 : value);
}

// The highest 64 bits of what a decimal of `precision` digits needs, so that the digits that differ
// are among them: exact up to 18 digits. `words`: the unscaled value in two's complement, lowest
// word first, 1 to 4 of them. A value that has more digits than that stays at its end.
uint64_t OrderedDecimal(std::span<const uint64_t> words, int precision);

// The first 8 bytes, filled up with zeros. Strings that differ only later are equal here.
uint64_t OrderedPrefix(std::string_view value);

// The first `length_bytes` bytes, filled up with zeros, as words for a curve's arrays: 8 bytes a
// word, the last word what is left (Iceberg's var_length_contribution; its default is 8).
// Writes (length_bytes + 7) / 8 words.
void OrderedPrefixWords(std::string_view value, int length_bytes, uint64_t* words);
constexpr int kVarLengthContribution = 8;

// A place below every value for null: the lowest two values share the next place.
inline uint64_t OrNull(bool is_valid, uint64_t ordered) {
  return is_valid ? (ordered == 0 ? 1 : ordered) : 0;
}

// Whole values and tuples as bytes, one after another: tuples compare by memcmp as their values do,
// column by column, and no tuple's bytes begin with another's of the same columns.
//   null: 00.  value: 01, then 8 bytes of a 64-bit form; or a decimal's bytes, sign bit flipped,
//   highest first; or a string, in which each 00 is followed by ff, then 00 00.
void AppendNull(std::string* out);
void AppendOrdered(uint64_t ordered, std::string* out);
void AppendOrderedDecimal(std::span<const uint64_t> words, std::string* out);
void AppendOrderedString(std::string_view value, std::string* out);

}  // namespace grebe::curve

#include "key/number.h"

#include <array>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "base/coding.h"

namespace grebe::key::internal {

namespace {

constexpr int kDigitsMax = 76;
constexpr int32_t kExponentMax = 100000;

constexpr std::array<__int128, 39> MakePowers() {
  std::array<__int128, 39> powers{};
  __int128 power = 1;
  for (int i = 0; i < 39; ++i) {
    powers[i] = power;
    if (i < 38) power *= 10;
  }
  return powers;
}
constexpr std::array<__int128, 39> kPowersOfTen = MakePowers();

arrow::Decimal256 Widen(__int128 value) {
  const uint64_t sign = value < 0 ? ~uint64_t{0} : 0;
  return arrow::Decimal256(std::array<uint64_t, 4>{
      static_cast<uint64_t>(value),
      static_cast<uint64_t>(static_cast<unsigned __int128>(value) >> 64), sign, sign});
}

std::optional<__int128> Narrow(const arrow::Decimal256& value) {
  const std::array<uint64_t, 4> words = value.little_endian_array();
  const uint64_t sign = static_cast<uint64_t>(static_cast<int64_t>(words[1]) >> 63);
  if (words[2] != sign || words[3] != sign) return std::nullopt;
  return static_cast<__int128>((static_cast<unsigned __int128>(words[1]) << 64) | words[0]);
}

// Strips trailing zeros; counts them into *exponent.
__int128 Strip(__int128 value, int32_t* exponent) {
  while (value != static_cast<int64_t>(value)) {
    if (value % 10 != 0) return value;
    value /= 10;
    ++*exponent;
  }
  int64_t small = static_cast<int64_t>(value);
  while (small != 0 && small % 10 == 0) {
    small /= 10;
    ++*exponent;
  }
  return small;
}

uint8_t* PutExponent(int32_t exponent, uint8_t* at) {
  uint64_t rest = ZigZag(exponent);
  for (; rest >= 0x80; rest >>= 7) *at++ = static_cast<uint8_t>(rest | 0x80);
  *at++ = static_cast<uint8_t>(rest);
  return at;
}

}  // namespace

Number NumberOf(__int128 unscaled, int32_t scale) {
  if (unscaled == 0) return {};
  Number number;
  number.exponent = -scale;
  number.coefficient = Widen(Strip(unscaled, &number.exponent));
  return number;
}

Number NumberOf(arrow::Decimal256 unscaled, int32_t scale) {
  int32_t exponent = -scale;
  std::optional<__int128> narrow = Narrow(unscaled);
  while (!narrow) {
    arrow::BasicDecimal256 quotient, remainder;
    static_cast<const arrow::BasicDecimal256&>(unscaled).Divide(arrow::BasicDecimal256(10),
                                                                &quotient, &remainder);
    if (remainder != arrow::BasicDecimal256(0)) break;
    unscaled = quotient;
    ++exponent;
    narrow = Narrow(unscaled);
  }
  if (narrow) return NumberOf(*narrow, -exponent);
  return {unscaled, exponent};
}

std::optional<Number> NumberOfDouble(double value) {
  if (!std::isfinite(value)) return std::nullopt;
  if (value == 0) return Number{};
  int exponent2 = 0;
  auto mantissa = static_cast<int64_t>(std::ldexp(std::frexp(value, &exponent2), 53));
  exponent2 -= 53;
  while ((mantissa & 1) == 0) {
    mantissa /= 2;
    ++exponent2;
  }
  // Must stay below 255 bits, a factor of five counted as 2.33. Decimals of at most 76 digits have
  // scales of at most 76 and lie below 2^253, so no decimal that equals the value is missed.
  const int mantissa_bits = 64 - __builtin_clzll(static_cast<uint64_t>(std::abs(mantissa)));
  if (exponent2 < -86 || mantissa_bits + exponent2 > 254) return std::nullopt;
  arrow::Decimal256 coefficient(mantissa);
  for (int i = 0; i < exponent2; ++i) coefficient *= arrow::BasicDecimal256(2);
  for (int i = exponent2; i < 0; ++i) coefficient *= arrow::BasicDecimal256(5);
  return NumberOf(coefficient, exponent2 < 0 ? -exponent2 : 0);
}

std::optional<int64_t> Rescale128(__int128 unscaled, int32_t scale, int32_t to_scale) {
  if (unscaled == 0) return 0;
  const int64_t up = static_cast<int64_t>(to_scale) - scale;
  if (up > 0) {
    if (up > 18 || unscaled != static_cast<int64_t>(unscaled)) return std::nullopt;
    unscaled *= kPowersOfTen[up];
  } else if (up < 0) {
    if (up < -38 || unscaled % kPowersOfTen[-up] != 0) return std::nullopt;
    unscaled /= kPowersOfTen[-up];
  }
  if (unscaled != static_cast<int64_t>(unscaled)) return std::nullopt;
  return static_cast<int64_t>(unscaled);
}

std::optional<int64_t> ToInt64(const Number& number, int32_t scale) {
  const std::optional<__int128> narrow = Narrow(number.coefficient);
  if (!narrow) return std::nullopt;
  return Rescale128(*narrow, -number.exponent, scale);
}

std::optional<uint64_t> ToUInt64(const Number& number) {
  const std::optional<__int128> narrow = Narrow(number.coefficient);
  if (!narrow || *narrow < 0 || *narrow > std::numeric_limits<uint64_t>::max() ||
      number.exponent < 0 || number.exponent > 19) {
    return std::nullopt;
  }
  // Below 2^64 * 10^19, which is below 2^127.2: check before multiplying.
  const __int128 limit = std::numeric_limits<uint64_t>::max();
  if (*narrow > limit / kPowersOfTen[number.exponent]) return std::nullopt;
  return static_cast<uint64_t>(*narrow * kPowersOfTen[number.exponent]);
}

std::optional<std::pair<int64_t, uint32_t>> ToSeconds(const Number& number) {
  constexpr __int128 kPerSecond = 1000000000;
  const std::optional<arrow::Decimal256> unscaled = Unscaled(number, 9);
  const std::optional<__int128> nanoseconds = unscaled ? Narrow(*unscaled) : std::nullopt;
  if (!nanoseconds) return std::nullopt;
  __int128 seconds = *nanoseconds / kPerSecond;
  __int128 rest = *nanoseconds % kPerSecond;
  if (rest < 0) {
    rest += kPerSecond;
    --seconds;
  }
  if (seconds != static_cast<int64_t>(seconds)) return std::nullopt;
  return std::pair(static_cast<int64_t>(seconds), static_cast<uint32_t>(rest));
}

std::optional<arrow::Decimal256> Unscaled(const Number& number, int32_t scale) {
  arrow::Decimal256 value = number.coefficient;
  if (value == arrow::Decimal256(0)) return value;
  const int64_t up = static_cast<int64_t>(number.exponent) + scale;
  if (up < 0 || up > kDigitsMax) return std::nullopt;
  for (int64_t i = 0; i < up; ++i) {
    if (!value.FitsInPrecision(kDigitsMax - 1)) return std::nullopt;
    value *= arrow::BasicDecimal256(10);
  }
  return value.FitsInPrecision(kDigitsMax) ? std::optional(value) : std::nullopt;
}

uint8_t* PutPayload(const Number& number, uint8_t* at) {
  const std::array<uint64_t, 4> words = number.coefficient.little_endian_array();
  if ((words[0] | words[1] | words[2] | words[3]) == 0) return at;
  at = PutExponent(number.exponent, at);
  const auto* bytes = reinterpret_cast<const uint8_t*>(words.data());
  size_t size = 32;
  const uint8_t filler = (bytes[31] & 0x80) != 0 ? 0xff : 0;
  while (size > 1 && bytes[size - 1] == filler && ((bytes[size - 2] ^ filler) & 0x80) == 0) {
    --size;
  }
  std::memcpy(at, bytes, size);
  return at + size;
}

uint8_t* PutPayload(__int128 unscaled, int32_t scale, uint8_t* at) {
  if (unscaled == 0) return at;
  int32_t exponent = -scale;
  const __int128 coefficient = Strip(unscaled, &exponent);
  const auto small = static_cast<int64_t>(coefficient);
  if (small != coefficient) return PutPayload(Number{Widen(coefficient), exponent}, at);
  at = PutExponent(exponent, at);
  StoreLe(at, small);
  // Bits of the value and its sign, in whole bytes.
  const auto magnitude = static_cast<uint64_t>(small ^ (small >> 63));
  const int bits = magnitude == 0 ? 1 : 65 - __builtin_clzll(magnitude);
  return at + (bits + 7) / 8;
}

std::optional<Number> ParseNumber(std::string_view text) {
  size_t at = 0;
  const auto digit = [&] { return at < text.size() && text[at] >= '0' && text[at] <= '9'; };
  const bool negative = !text.empty() && text[0] == '-';
  if (negative || (!text.empty() && text[0] == '+')) ++at;
  arrow::Decimal256 value;
  int significant = 0, zeros = 0, digits = 0;
  int64_t exponent = 0;
  // Zeros are held back, so that "1" and 80 zeros is one significant digit.
  const auto take = [&](bool fraction) {
    for (; digit(); ++at, ++digits) {
      if (fraction) --exponent;
      if (text[at] == '0') {
        if (significant > 0) ++zeros;
        continue;
      }
      if (significant + zeros + 1 > kDigitsMax) return false;
      for (; zeros > 0; --zeros, ++significant) value *= arrow::BasicDecimal256(10);
      value *= arrow::BasicDecimal256(10);
      value += arrow::BasicDecimal256(text[at] - '0');
      ++significant;
    }
    return true;
  };
  if (!take(false)) return std::nullopt;
  if (at < text.size() && text[at] == '.') {
    ++at;
    if (!take(true)) return std::nullopt;
  }
  if (digits == 0) return std::nullopt;
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    ++at;
    const bool down = at < text.size() && text[at] == '-';
    if (at < text.size() && (text[at] == '-' || text[at] == '+')) ++at;
    if (!digit()) return std::nullopt;
    int64_t written = 0;
    for (; digit(); ++at) {
      if (written <= kExponentMax) written = written * 10 + (text[at] - '0');
    }
    exponent += down ? -written : written;
  }
  if (at != text.size()) return std::nullopt;
  if (significant == 0) return Number{};
  exponent += zeros;
  if (exponent > kExponentMax || exponent < -kExponentMax) return std::nullopt;
  if (negative) value.Negate();
  return NumberOf(value, static_cast<int32_t>(-exponent));
}

}  // namespace grebe::key::internal

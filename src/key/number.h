// Exact decimal numbers in normal form: coefficient * 10^exponent, the coefficient not divisible
// by ten (zero is 0 * 10^0). Equal numbers have equal normal forms. Private to src/key.
#pragma once

#include <arrow/scalar.h>
#include <arrow/util/decimal.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/status.h"

namespace grebe::key::internal {

struct Number {
  arrow::Decimal256 coefficient;
  int32_t exponent = 0;
};

// The value unscaled * 10^-scale.
Number NumberOf(arrow::Decimal256 unscaled, int32_t scale);
Number NumberOf(__int128 unscaled, int32_t scale);

// The exact value of a double; nullopt when it is not finite or needs more than 255 bits (then no
// decimal of a Parquet file equals it).
std::optional<Number> NumberOfDouble(double value);

// The value of a scalar of an integer or decimal type. Errors: InvalidArgument for other types.
Result<Number> NumberOfScalar(const arrow::Scalar& scalar);

// number * 10^scale as an integer; nullopt when it is not one or does not fit.
std::optional<int64_t> ToInt64(const Number& number, int32_t scale);
std::optional<uint64_t> ToUInt64(const Number& number);
// number as whole seconds (rounded down) and nanoseconds.
std::optional<std::pair<int64_t, uint32_t>> ToSeconds(const Number& number);
// number * 10^scale, if it is an integer of at most 76 digits.
std::optional<arrow::Decimal256> Unscaled(const Number& number, int32_t scale);

// The same as above for unscaled * 10^-scale, without normalising: the common, fast cases.
std::optional<int64_t> Rescale128(__int128 unscaled, int32_t scale, int32_t to_scale);

// Writes the canonical payload (docs/format/key.md): zigzag varint of the exponent, then the
// coefficient as the shortest two's complement, little-endian; nothing at all for zero. Returns
// its end. REQUIRES: room for kPayloadBytesMax at `at`.
uint8_t* PutPayload(const Number& number, uint8_t* at);
// The same for unscaled * 10^-scale.
uint8_t* PutPayload(__int128 unscaled, int32_t scale, uint8_t* at);
// Upper bound of a payload's size.
inline constexpr int kPayloadBytesMax = 5 + 32;

// Parses "[+-]digits[.digits][e[+-]digits]". nullopt: not a number, more than 76 significant
// digits, or an exponent beyond +-100,000.
std::optional<Number> ParseNumber(std::string_view text);

}  // namespace grebe::key::internal

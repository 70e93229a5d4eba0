#include "key/ordered.h"

#include <arrow/scalar.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/coding.h"
#include "key/kinds_internal.h"
#include "key/number.h"

namespace grebe::key {
namespace {

using namespace internal;  // NOLINT: the kinds

constexpr uint64_t kSignBit = uint64_t{1} << 63;
constexpr uint64_t kNaN = 0x7ff8000000000000ULL;
constexpr int32_t kDigitsOf[] = {0, 3, 6, 9};   // of a time unit, beyond seconds
constexpr char kNullMark = '\0';
constexpr char kValueMark = '\1';

void PutBigEndian(uint64_t word, int bytes, std::string* out) {
  for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8) {
    out->push_back(static_cast<char>(word >> shift));
  }
}

// A canonical word as a number that orders as its values do.
uint64_t OrderWord(const KeyType& type, uint64_t word) {
  switch (type.kind) {
    case kUInt64:
    case kBool:
      return word;
    case kFloat:
      return (word & kSignBit) != 0 ? ~word : word | kSignBit;
    default:
      return word ^ kSignBit;
  }
}

// Bytes that end by themselves: each 00 is followed by ff, and 00 00 is the end.
void PutEscaped(std::string_view bytes, std::string* out) {
  while (true) {
    const size_t zero = bytes.find('\0');
    out->append(bytes.substr(0, zero));
    if (zero == std::string_view::npos) break;
    out->append("\0\xff", 2);
    bytes.remove_prefix(zero + 1);
  }
  out->append(2, '\0');
}

// 01 for zero; 02, the exponent of 0.d1d2.. * 10^exponent, two digits a byte (plus 1), 00 for
// positive numbers; for negative ones 00 and the complement of the rest.
bool PutDecimal(std::string_view payload, std::string* out) {
  if (payload.empty()) {
    out->push_back('\1');
    return true;
  }
  ByteReader reader(payload);
  uint64_t zigzag = 0;
  if (!reader.ReadVarint(&zigzag) || reader.remaining_bytes() == 0 ||
      reader.remaining_bytes() > 32) {
    return false;
  }
  const size_t size = reader.remaining_bytes();
  std::array<uint8_t, 32> bytes;
  bytes.fill((reader.cursor()[size - 1] & 0x80) != 0 ? 0xff : 0);
  std::memcpy(bytes.data(), reader.cursor(), size);
  std::array<uint64_t, 4> words;
  std::memcpy(words.data(), bytes.data(), 32);
  arrow::Decimal256 coefficient(words);
  const bool negative = (words[3] & kSignBit) != 0;
  if (negative) coefficient.Negate();
  const std::string digits = coefficient.ToIntegerString();
  const int64_t exponent = UnZigZag(zigzag) + static_cast<int64_t>(digits.size());
  out->push_back(negative ? '\0' : '\2');
  const size_t begin = out->size();
  PutBigEndian(static_cast<uint64_t>(exponent + (int64_t{1} << 31)), 4, out);
  for (size_t i = 0; i < digits.size(); i += 2) {
    const int tens = digits[i] - '0';
    const int ones = i + 1 < digits.size() ? digits[i + 1] - '0' : 0;
    out->push_back(static_cast<char>(tens * 10 + ones + 1));
  }
  out->push_back('\0');
  if (negative) {
    for (size_t i = begin; i < out->size(); ++i) (*out)[i] = static_cast<char>(~(*out)[i]);
  }
  return true;
}

bool PutPayload(const KeyType& type, std::string_view payload, std::string* out) {
  out->push_back(kValueMark);
  if (type.fits_word()) {
    if (payload.size() != 8) return false;
    PutBigEndian(OrderWord(type, LoadLe<uint64_t>(payload.data())), 8, out);
    return true;
  }
  switch (type.kind) {
    case kDecimal:
      return PutDecimal(payload, out);
    case kTimestampMixed:
      if (payload.size() != 12) return false;
      PutBigEndian(LoadLe<uint64_t>(payload.data()) ^ kSignBit, 8, out);
      PutBigEndian(LoadLe<uint32_t>(payload.data() + 8), 4, out);
      return true;
    default:
      PutEscaped(payload, out);
      return true;
  }
}

bool PutPieces(std::span<const KeyType> types, std::string_view key, std::string* out) {
  ByteReader reader(key);
  for (const KeyType& type : types) {
    uint64_t size = 0;
    if (!reader.ReadVarint(&size)) return false;
    if (size == 0) {
      out->push_back(kNullMark);
      continue;
    }
    const std::string_view payload(reinterpret_cast<const char*>(reader.cursor()), size - 1);
    if (!reader.Skip(size - 1) || !PutPayload(type, payload, out)) return false;
  }
  return reader.remaining_bytes() == 0;
}

// The least bytes above all that begin with these. REQUIRES: some byte is not ff.
std::string After(std::string bytes) {
  while (!bytes.empty() && bytes.back() == '\xff') bytes.pop_back();
  if (!bytes.empty()) bytes.back() = static_cast<char>(bytes.back() + 1);
  return bytes;
}

// number * 10^scale, rounded down, cut to what the type's words hold: one below the least when it
// is below all, and so on.
__int128 FloorUnits(const Number& number, int32_t scale) {
  constexpr __int128 kFar = static_cast<__int128>(1) << 100;
  const bool negative = number.coefficient < arrow::Decimal256(0);
  const int64_t up = static_cast<int64_t>(number.exponent) + scale;
  arrow::BasicDecimal256 value = number.coefficient;
  for (int64_t i = 0; i < up && value != arrow::BasicDecimal256(0); ++i) {
    if (!arrow::Decimal256(value).FitsInPrecision(40)) return negative ? -kFar : kFar;
    value *= arrow::BasicDecimal256(10);
  }
  bool inexact = false;
  for (int64_t i = up; i < 0 && value != arrow::BasicDecimal256(0); ++i) {
    arrow::BasicDecimal256 quotient, remainder;
    value.Divide(arrow::BasicDecimal256(10), &quotient, &remainder);
    inexact = inexact || remainder != arrow::BasicDecimal256(0);
    value = quotient;
  }
  if (!arrow::Decimal256(value).FitsInPrecision(29)) return negative ? -kFar : kFar;
  const auto words = value.little_endian_array();
  const auto high = static_cast<unsigned __int128>(words[1]) << 64;
  const auto units = static_cast<__int128>(high | words[0]);
  return negative && inexact ? units - 1 : units;
}

// The exact number of a value in the type's units, before scaling by 10^*scale.
std::optional<Number> NumberFor(const KeyType& type, const arrow::Scalar& value, int32_t* scale) {
  using arrow::Type;
  *scale = type.kind == kDecimal64 ? type.param
           : type.kind == kTime || type.kind == kTimestamp || type.kind == kDuration
               ? kDigitsOf[type.param]
               : 0;
  const auto units = [](int64_t count, arrow::TimeUnit::type unit) {
    return NumberOf(static_cast<__int128>(count), kDigitsOf[unit]);
  };
  switch (value.type->id()) {
    case Type::DOUBLE:
      return NumberOfDouble(static_cast<const arrow::DoubleScalar&>(value).value);
    case Type::FLOAT:
      return NumberOfDouble(static_cast<const arrow::FloatScalar&>(value).value);
    case Type::TIMESTAMP:
      return units(static_cast<const arrow::TimestampScalar&>(value).value,
                   static_cast<const arrow::TimestampType&>(*value.type).unit());
    case Type::DURATION:
      return units(static_cast<const arrow::DurationScalar&>(value).value,
                   static_cast<const arrow::DurationType&>(*value.type).unit());
    case Type::TIME32:
      return units(static_cast<const arrow::Time32Scalar&>(value).value,
                   static_cast<const arrow::TimeType&>(*value.type).unit());
    case Type::TIME64:
      return units(static_cast<const arrow::Time64Scalar&>(value).value,
                   static_cast<const arrow::TimeType&>(*value.type).unit());
    default: {
      auto number = NumberOfScalar(value);
      return number.ok() ? std::optional(*number) : std::nullopt;
    }
  }
}

// A bound as the ordered form of the greatest key value that is not above it. `exact`: the bound
// itself is one. Nothing is below `below_all`.
struct Floor {
  std::string bytes;
  bool exact = true;
  bool below_all = false;
  bool is_nan = false;
};

Result<Floor> FloorOfInexact(const KeyType& type, const arrow::Scalar& value) {
  Floor floor;
  floor.exact = false;
  __int128 units = 0;
  int32_t scale = 0;
  const std::optional<Number> number = NumberFor(type, value, &scale);
  if (type.kind == kDate && value.type->id() == arrow::Type::DATE64) {
    constexpr int64_t kMsPerDay = 86400000;
    const int64_t ms = static_cast<const arrow::Date64Scalar&>(value).value;
    units = ms / kMsPerDay - (ms % kMsPerDay < 0 ? 1 : 0);
  } else if (value.type->id() == arrow::Type::DOUBLE && !number) {
    const double real = static_cast<const arrow::DoubleScalar&>(value).value;
    floor.is_nan = std::isnan(real);
    // Without a number it is infinite, or too near zero to have 255 bits.
    units = std::isinf(real) ? static_cast<__int128>(real > 0 ? 1 : -1) << 100 : real < 0 ? -1 : 0;
  } else if (number && type.kind == kFloat &&
             std::isinf(number->coefficient.ToDouble(-number->exponent))) {
    // Between the infinite doubles and the finite ones.
    const double below = number->coefficient < arrow::Decimal256(0)
                             ? -std::numeric_limits<double>::infinity()
                             : std::numeric_limits<double>::max();
    floor.bytes.push_back(kValueMark);
    PutBigEndian(OrderWord(type, std::bit_cast<uint64_t>(below)), 8, &floor.bytes);
    return floor;
  } else if (number && type.fits_word() && type.kind != kFloat && type.kind != kBool) {
    units = FloorUnits(*number, scale);
  } else {
    return InvalidArgument("the key's type cannot be compared with this bound exactly", "key_type",
                           type.ToString(), "bound", value.ToString());
  }
  const __int128 least = type.kind == kUInt64 ? 0 : std::numeric_limits<int64_t>::min();
  const __int128 most = type.kind == kUInt64
                            ? static_cast<__int128>(std::numeric_limits<uint64_t>::max())
                            : std::numeric_limits<int64_t>::max();
  floor.below_all = units < least;
  floor.bytes.push_back(kValueMark);
  PutBigEndian(OrderWord(type, static_cast<uint64_t>(std::clamp(units, least, most))), 8,
               &floor.bytes);
  return floor;
}

Result<Floor> FloorOf(const KeyType& type, const std::shared_ptr<arrow::Array>& value) {
  if (value == nullptr || value->length() != 1 || value->IsNull(0)) {
    return InvalidArgument("a bound is one value, not null");
  }
  EncodedKeys encoded;
  std::vector<bool> absent;
  ARROW_RETURN_NOT_OK(KeyCodec({type}).EncodeQuery(std::span(&value, 1), &encoded, &absent));
  if (absent[0]) {
    ARROW_ASSIGN_OR_RAISE(const auto scalar, value->GetScalar(0));
    return FloorOfInexact(type, *scalar);
  }
  OrderedKeys ordered;
  ARROW_RETURN_NOT_OK(OrderKeys(std::span(&type, 1), encoded, &ordered));
  Floor floor;
  floor.bytes = ordered.bytes;
  floor.is_nan = type.kind == kFloat && encoded.words[0] == kNaN;
  return floor;
}

// Cuts the range of all values of a column (not null, not NaN) to the query's bounds.
Status CutToBounds(const KeyType& type, const RangeQuery& query, const std::string& prefix,
                   OrderedRange* range) {
  range->begin = prefix + kValueMark;
  range->end = After(range->begin);
  if (type.kind == kFloat) {
    range->end = range->begin;
    PutBigEndian(OrderWord(type, kNaN), 8, &range->end);
  }
  if (query.lower) {
    ARROW_ASSIGN_OR_RAISE(const Floor floor, FloorOf(type, query.lower->value));
    if (floor.is_nan) range->begin = range->end;
    // What is above an inexact bound is above its floor.
    const bool holds_floor = floor.exact ? query.lower->inclusive : floor.below_all;
    const std::string at = prefix + floor.bytes;
    range->begin = std::max(range->begin, holds_floor ? at : After(at));
  }
  if (query.upper) {
    ARROW_ASSIGN_OR_RAISE(const Floor floor, FloorOf(type, query.upper->value));
    if (floor.is_nan) range->end = range->begin;
    const bool holds_floor = floor.exact ? query.upper->inclusive : !floor.below_all;
    const std::string at = prefix + floor.bytes;
    range->end = std::min(range->end, holds_floor ? After(at) : at);
  }
  return Status::OK();
}

}  // namespace

Status OrderKeys(std::span<const KeyType> types, const EncodedKeys& keys, OrderedKeys* out) {
  out->bytes.clear();
  out->offsets.assign(1, 0);
  out->offsets.reserve(static_cast<size_t>(keys.count()) + 1);
  for (int64_t i = 0; i < keys.count(); ++i) {
    if (!keys.is_word) {
      if (!PutPieces(types, keys.view(i), &out->bytes)) {
        return Corrupt("not a key of the index's types", "key", i);
      }
    } else if (keys.is_null(i)) {
      out->bytes.push_back(kNullMark);
    } else {
      out->bytes.push_back(kValueMark);
      PutBigEndian(OrderWord(types[0], keys.words[static_cast<size_t>(i)]), 8, &out->bytes);
    }
    out->offsets.push_back(out->bytes.size());
  }
  return Status::OK();
}

Result<OrderedRange> OrderRange(std::span<const KeyType> types, const RangeQuery& query) {
  const bool bounded = query.lower || query.upper;
  if (query.equal.size() + (bounded ? 1 : 0) > types.size()) {
    return InvalidArgument("more columns than the key has", "key_columns", types.size());
  }
  OrderedRange range;
  std::string prefix;
  for (size_t i = 0; i < query.equal.size(); ++i) {
    EncodedKeys encoded;
    std::vector<bool> absent;
    ARROW_RETURN_NOT_OK(KeyCodec({types[i]}).EncodeQuery(std::span(&query.equal[i], 1), &encoded,
                                                         &absent));
    if (encoded.count() != 1) return InvalidArgument("a range has one value a column");
    if (absent[0]) return OrderedRange{};   // equal to no key
    OrderedKeys ordered;
    ARROW_RETURN_NOT_OK(OrderKeys(types.subspan(i, 1), encoded, &ordered));
    prefix += ordered.bytes;
  }
  if (bounded) {
    ARROW_RETURN_NOT_OK(CutToBounds(types[query.equal.size()], query, prefix, &range));
    return range;
  }
  range.begin = prefix;
  range.end = After(prefix);
  range.has_end = !range.end.empty();
  return range;
}

}  // namespace grebe::key

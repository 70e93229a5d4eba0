#include <arrow/scalar.h>
#include <arrow/util/base64.h>
#include <arrow/util/float16.h>

#include <cctype>
#include <charconv>
#include <cmath>
#include <limits>
#include <utility>

#include "key/key.h"
#include "key/kinds_internal.h"
#include "key/number.h"
#include "key/parse_internal.h"

namespace grebe::key {

namespace {

using internal::Number;
using ScalarResult = Result<std::shared_ptr<arrow::Scalar>>;

constexpr int64_t kUnitsPerSecond[] = {1, 1000, 1000000, 1000000000};

// Long texts are cut in messages.
std::string Shown(std::string_view text) {
  constexpr size_t kShownMax = 80;
  if (text.size() <= kShownMax) return std::string(text);
  return std::string(text.substr(0, kShownMax)) + "...";
}

Status NotA(const arrow::DataType& type, std::string_view text, std::string_view hint = "") {
  Status status = InvalidArgument("not a value of the key's type", "type", type.ToString(),
                                  "text", Shown(text));
  return hint.empty() ? status : AddContext(status, "hint", hint);
}

bool EqualsNoCase(std::string_view text, std::string_view lower) {
  if (text.size() != lower.size()) return false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (std::tolower(static_cast<unsigned char>(text[i])) != lower[i]) return false;
  }
  return true;
}

std::shared_ptr<arrow::Scalar> DecimalScalar(const Number& number) {
  return std::make_shared<arrow::Decimal256Scalar>(
      number.coefficient,
      arrow::decimal256(arrow::Decimal256Type::kMaxPrecision, -number.exponent));
}

template <class CType, class ScalarType>
std::shared_ptr<arrow::Scalar> IfFits(int64_t value) {
  if (value < static_cast<int64_t>(std::numeric_limits<CType>::min()) ||
      value > static_cast<int64_t>(std::numeric_limits<CType>::max())) {
    return nullptr;
  }
  return std::make_shared<ScalarType>(static_cast<CType>(value));
}

std::shared_ptr<arrow::Scalar> IntegerScalar(arrow::Type::type id, const Number& number) {
  if (id == arrow::Type::UINT64) {
    const auto value = internal::ToUInt64(number);
    return value ? std::make_shared<arrow::UInt64Scalar>(*value) : nullptr;
  }
  const auto value = internal::ToInt64(number, 0);
  if (!value) return nullptr;
  switch (id) {
    case arrow::Type::INT8: return IfFits<int8_t, arrow::Int8Scalar>(*value);
    case arrow::Type::INT16: return IfFits<int16_t, arrow::Int16Scalar>(*value);
    case arrow::Type::INT32: return IfFits<int32_t, arrow::Int32Scalar>(*value);
    case arrow::Type::UINT8: return IfFits<uint8_t, arrow::UInt8Scalar>(*value);
    case arrow::Type::UINT16: return IfFits<uint16_t, arrow::UInt16Scalar>(*value);
    case arrow::Type::UINT32: return IfFits<uint32_t, arrow::UInt32Scalar>(*value);
    default: return std::make_shared<arrow::Int64Scalar>(*value);
  }
}

ScalarResult ParseInteger(const arrow::DataType& type, std::string_view text) {
  const std::optional<Number> number = internal::ParseNumber(text);
  if (!number) return NotA(type, text);
  std::shared_ptr<arrow::Scalar> scalar = IntegerScalar(type.id(), *number);
  return scalar != nullptr ? scalar : DecimalScalar(*number);
}

ScalarResult ParseDecimal(const arrow::DataType& type, std::string_view text) {
  const std::optional<Number> number = internal::ParseNumber(text);
  if (!number) return NotA(type, text);
  const auto& decimal = static_cast<const arrow::DecimalType&>(type);
  const std::optional<arrow::Decimal256> value = internal::Unscaled(*number, decimal.scale());
  if (!value || !value->FitsInPrecision(decimal.precision())) return DecimalScalar(*number);
  const auto made = [&]<class ArrowType>(std::type_identity<ArrowType>) {
    return ArrowType::Make(decimal.precision(), decimal.scale());
  };
  const std::array<uint64_t, 4> words = value->little_endian_array();
  switch (type.id()) {
    case arrow::Type::DECIMAL32: {
      ARROW_ASSIGN_OR_RAISE(auto own, made(std::type_identity<arrow::Decimal32Type>{}));
      return std::make_shared<arrow::Decimal32Scalar>(
          arrow::Decimal32(static_cast<int32_t>(words[0])), own);
    }
    case arrow::Type::DECIMAL64: {
      ARROW_ASSIGN_OR_RAISE(auto own, made(std::type_identity<arrow::Decimal64Type>{}));
      return std::make_shared<arrow::Decimal64Scalar>(
          arrow::Decimal64(static_cast<int64_t>(words[0])), own);
    }
    case arrow::Type::DECIMAL128: {
      ARROW_ASSIGN_OR_RAISE(auto own, made(std::type_identity<arrow::Decimal128Type>{}));
      return std::make_shared<arrow::Decimal128Scalar>(
          arrow::Decimal128(static_cast<int64_t>(words[1]), words[0]), own);
    }
    default: {
      ARROW_ASSIGN_OR_RAISE(auto own, made(std::type_identity<arrow::Decimal256Type>{}));
      return std::make_shared<arrow::Decimal256Scalar>(*value, own);
    }
  }
}

template <class T>
std::optional<T> ParseReal(std::string_view text) {
  const bool negative = text.starts_with('-');
  std::string_view digits = text;
  if (negative || text.starts_with('+')) digits.remove_prefix(1);
  if (EqualsNoCase(digits, "nan")) return std::numeric_limits<T>::quiet_NaN();
  if (EqualsNoCase(digits, "inf") || EqualsNoCase(digits, "infinity")) {
    const T infinity = std::numeric_limits<T>::infinity();
    return negative ? -infinity : infinity;
  }
  // from_chars also takes "nan(...)" and a second sign, which are not ours.
  const char first = digits.empty() ? 'x' : digits[0];
  if (!std::isdigit(static_cast<unsigned char>(first)) && first != '.') return std::nullopt;
  T value = 0;
  const char* end = digits.data() + digits.size();
  const auto [stopped, error] = std::from_chars(digits.data(), end, value);
  if (error != std::errc() || stopped != end) return std::nullopt;
  return negative ? -value : value;
}

ScalarResult ParseFloat(const arrow::DataType& type, std::string_view text) {
  if (type.id() == arrow::Type::FLOAT) {
    if (const auto value = ParseReal<float>(text)) {
      return std::make_shared<arrow::FloatScalar>(*value);
    }
  }
  std::optional<double> value = ParseReal<double>(text);
  if (!value) {
    // Not a number, or one without a double near it.
    const std::optional<Number> number = internal::ParseNumber(text);
    if (!number) return NotA(type, text);
    if (number->exponent >= 0) return DecimalScalar(*number);
    value = text.starts_with('-') ? -0.0 : 0.0;
  }
  // A finite number beyond the type's is none of them: it must not find infinity.
  switch (type.id()) {
    case arrow::Type::DOUBLE: return std::make_shared<arrow::DoubleScalar>(*value);
    case arrow::Type::FLOAT:
      if (std::abs(*value) >= 1) return std::make_shared<arrow::DoubleScalar>(*value);
      return std::make_shared<arrow::FloatScalar>(std::copysign(0.0F, static_cast<float>(*value)));
    default: {
      const arrow::util::Float16 half(*value);
      if (half.is_infinity() && std::isfinite(*value)) {
        return std::make_shared<arrow::DoubleScalar>(*value);
      }
      return std::make_shared<arrow::HalfFloatScalar>(half);
    }
  }
}

ScalarResult ParseBool(const arrow::DataType& type, std::string_view text) {
  if (EqualsNoCase(text, "true") || text == "1") {
    return std::make_shared<arrow::BooleanScalar>(true);
  }
  if (EqualsNoCase(text, "false") || text == "0") {
    return std::make_shared<arrow::BooleanScalar>(false);
  }
  return NotA(type, text, "true or false");
}

std::optional<std::string> ParseHex(std::string_view text) {
  const auto nibble = [](char c) -> int {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
  };
  if (text.size() % 2 != 0) return std::nullopt;
  std::string bytes;
  bytes.reserve(text.size() / 2);
  for (size_t i = 0; i < text.size(); i += 2) {
    const int high = nibble(text[i]), low = nibble(text[i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    bytes.push_back(static_cast<char>(high * 16 + low));
  }
  return bytes;
}

std::optional<std::string> ParseUuid(std::string_view text) {
  if (text.size() == 38 && text.front() == '{' && text.back() == '}') text = text.substr(1, 36);
  std::string digits;
  if (text.size() == 36) {
    for (size_t i = 0; i < text.size(); ++i) {
      const bool dash = i == 8 || i == 13 || i == 18 || i == 23;
      if (dash != (text[i] == '-')) return std::nullopt;
      if (!dash) digits.push_back(text[i]);
    }
  } else if (text.size() == 32) {
    digits = text;
  } else {
    return std::nullopt;
  }
  return ParseHex(digits);
}

std::optional<std::string> ParseBase64(std::string_view text) {
  auto decoded = arrow::util::base64_decode(text);
  if (!decoded.ok()) return std::nullopt;
  return decoded.MoveValueUnsafe();
}

ScalarResult ParseBinary(const arrow::DataType& type, std::string_view text) {
  const bool fixed = type.id() == arrow::Type::FIXED_SIZE_BINARY;
  const int width =
      fixed ? static_cast<const arrow::FixedSizeBinaryType&>(type).byte_width() : -1;
  std::optional<std::string> bytes;
  if (text.starts_with("0x") || text.starts_with("0X")) {
    bytes = ParseHex(text.substr(2));
  } else if (text.starts_with("base64:")) {
    bytes = ParseBase64(text.substr(7));
  } else if (width == 16) {
    bytes = ParseUuid(text);
  }
  if (!bytes) {
    return NotA(type, text, width == 16 ? "a UUID, 0x and hex digits, or base64: and text"
                                        : "0x and hex digits, or base64: and text");
  }
  const size_t size = bytes->size();
  std::shared_ptr<arrow::Buffer> buffer = arrow::Buffer::FromString(*std::move(bytes));
  if (fixed && size == static_cast<size_t>(width)) {
    return std::make_shared<arrow::FixedSizeBinaryScalar>(std::move(buffer),
                                                          arrow::fixed_size_binary(width));
  }
  if (type.id() == arrow::Type::LARGE_BINARY) {
    return std::make_shared<arrow::LargeBinaryScalar>(std::move(buffer));
  }
  if (type.id() == arrow::Type::BINARY_VIEW) {
    return std::make_shared<arrow::BinaryViewScalar>(std::move(buffer));
  }
  return std::make_shared<arrow::BinaryScalar>(std::move(buffer));
}

ScalarResult ParseString(const arrow::DataType& type, std::string_view text) {
  std::string copy(text);
  switch (type.id()) {
    case arrow::Type::LARGE_STRING:
      return std::make_shared<arrow::LargeStringScalar>(std::move(copy));
    case arrow::Type::STRING_VIEW:
      return std::make_shared<arrow::StringViewScalar>(std::move(copy));
    default:
      return std::make_shared<arrow::StringScalar>(std::move(copy));
  }
}

ScalarResult ParseDay(const arrow::DataType& type, std::string_view text) {
  constexpr int64_t kMsPerDay = 86400000;
  const std::optional<int64_t> days = internal::ParseDate(text);
  if (!days) return NotA(type, text, "YYYY-MM-DD");
  const bool fits = *days == static_cast<int32_t>(*days);
  if (type.id() == arrow::Type::DATE32 && fits) {
    return std::make_shared<arrow::Date32Scalar>(static_cast<int32_t>(*days));
  }
  int64_t milliseconds = 0;
  if (__builtin_mul_overflow(*days, kMsPerDay, &milliseconds)) return NotA(type, text);
  return std::make_shared<arrow::Date64Scalar>(milliseconds);
}

int FinestUnit(int fraction_digits) { return (fraction_digits + 2) / 3; }

ScalarResult ParseTimeOfDay(const arrow::DataType& type, std::string_view text) {
  const auto time = internal::ParseTime(text);
  if (!time) return NotA(type, text, "hh:mm:ss.fraction");
  int unit = static_cast<const arrow::TimeType&>(type).unit();
  unit = std::max(unit, FinestUnit(time->fraction_digits));
  const int64_t value = time->seconds * kUnitsPerSecond[unit] +
                        time->nanoseconds / (kUnitsPerSecond[3] / kUnitsPerSecond[unit]);
  const auto arrow_unit = static_cast<arrow::TimeUnit::type>(unit);
  if (unit <= arrow::TimeUnit::MILLI) {
    return std::make_shared<arrow::Time32Scalar>(static_cast<int32_t>(value),
                                                 arrow::time32(arrow_unit));
  }
  return std::make_shared<arrow::Time64Scalar>(value, arrow::time64(arrow_unit));
}

// seconds and nanoseconds in a unit; nullopt: does not fit, or is not a whole number of units.
std::optional<int64_t> InUnit(int64_t seconds, int32_t nanoseconds, int unit) {
  const int64_t per_unit = kUnitsPerSecond[3] / kUnitsPerSecond[unit];
  if (nanoseconds % per_unit != 0) return std::nullopt;
  // The sum may fit although the product alone does not (just below the least nanosecond).
  const __int128 value =
      static_cast<__int128>(seconds) * kUnitsPerSecond[unit] + nanoseconds / per_unit;
  if (value != static_cast<int64_t>(value)) return std::nullopt;
  return static_cast<int64_t>(value);
}

ScalarResult ParseTimestamp(const arrow::DataType& type, std::string_view text) {
  const auto& timestamp = static_cast<const arrow::TimestampType&>(type);
  const auto instant = internal::ParseInstant(text);
  if (!instant) return NotA(type, text, "YYYY-MM-DDThh:mm:ss.fraction, and Z or +hh:mm");
  if (timestamp.timezone().empty() && instant->zone_seconds != 0) {
    return NotA(type, text, "the column has no time zone");
  }
  // The type's own unit, or else the finest that can hold the value.
  int units[] = {timestamp.unit(), 3, 2, 1, 0};
  for (const int unit : units) {
    const auto value = InUnit(instant->seconds, instant->nanoseconds, unit);
    if (!value) continue;
    return std::make_shared<arrow::TimestampScalar>(
        *value, arrow::timestamp(static_cast<arrow::TimeUnit::type>(unit), timestamp.timezone()));
  }
  // Too fine a fraction so far from 1970: seconds, as MakeQueryColumn has them.
  constexpr int32_t kNanoDigits = 9;
  return DecimalScalar(internal::NumberOf(
      static_cast<__int128>(instant->seconds) * kUnitsPerSecond[3] + instant->nanoseconds,
      kNanoDigits));
}

ScalarResult ParseDuration(const arrow::DataType& type, std::string_view text) {
  const std::optional<Number> number = internal::ParseNumber(text);
  const std::optional<int64_t> value =
      number ? internal::ToInt64(*number, 0) : std::optional<int64_t>();
  if (!value) return NotA(type, text, "a whole number of the type's unit");
  return std::make_shared<arrow::DurationScalar>(
      *value, arrow::duration(static_cast<const arrow::DurationType&>(type).unit()));
}

}  // namespace

ScalarResult ParseValue(const arrow::DataType& outer, std::string_view text) {
  const arrow::DataType& type = internal::Unwrap(outer);
  ARROW_ASSIGN_OR_RAISE(const KeyType key_type, KeyType::FromArrow(type));
  switch (key_type.kind) {
    case internal::kDate: return ParseDay(type, text);
    case internal::kTime: return ParseTimeOfDay(type, text);
    case internal::kTimestamp: return ParseTimestamp(type, text);
    case internal::kDuration: return ParseDuration(type, text);
    case internal::kBool: return ParseBool(type, text);
    case internal::kFloat: return ParseFloat(type, text);
    case internal::kString: return ParseString(type, text);
    case internal::kBinary:
    case internal::kUuid: return ParseBinary(type, text);
    default: break;
  }
  return arrow::is_decimal(type.id()) ? ParseDecimal(type, text) : ParseInteger(type, text);
}

}  // namespace grebe::key

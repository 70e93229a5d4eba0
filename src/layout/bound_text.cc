#include "layout/bound_text.h"

#include <arrow/array/array_binary.h>
#include <arrow/array/array_primitive.h>
#include <arrow/util/utf8.h>

#include <charconv>
#include <cmath>
#include <cstdio>

namespace grebe::layout {
namespace {

using arrow::Type;

constexpr int64_t kUnitsPerSecond[] = {1, 1000, 1000000, 1000000000};
constexpr int64_t kSecondsPerDay = 86400;

int64_t FloorDivide(int64_t a, int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

// YYYY-MM-DD of days since 1970-01-01, in the proleptic Gregorian calendar; years are counted from
// March, in eras of 400 years.
std::string DateText(int64_t days) {
  const int64_t shifted = days + 719468;
  const int64_t era = FloorDivide(shifted, 146097);
  const int64_t day_of_era = shifted - era * 146097;
  const int64_t year_of_era =
      (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
  const int64_t day_of_year =
      day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
  const int64_t month_from_march = (5 * day_of_year + 2) / 153;
  const int64_t day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
  const int64_t month = month_from_march < 10 ? month_from_march + 3 : month_from_march - 9;
  const int64_t year = year_of_era + era * 400 + (month <= 2 ? 1 : 0);
  char text[48];
  std::snprintf(text, sizeof text, "%s%04lld-%02lld-%02lld", year < 0 ? "-" : "",
                static_cast<long long>(std::abs(year)), static_cast<long long>(month),
                static_cast<long long>(day));
  return text;
}

// hh:mm:ss and the unit's digits behind the point. units: within a day.
std::string TimeText(int64_t units, int unit) {
  const int64_t seconds = units / kUnitsPerSecond[unit];
  char text[48];
  std::snprintf(text, sizeof text, "%02lld:%02lld:%02lld",
                static_cast<long long>(seconds / 3600),
                static_cast<long long>(seconds / 60 % 60), static_cast<long long>(seconds % 60));
  std::string out = text;
  if (unit > 0) {
    const std::string digits = std::to_string(units % kUnitsPerSecond[unit]);
    out += "." + std::string(static_cast<size_t>(3 * unit) - digits.size(), '0') + digits;
  }
  return out;
}

std::string InstantText(int64_t value, int unit) {
  const int64_t per_day = kSecondsPerDay * kUnitsPerSecond[unit];
  const int64_t units = (value % per_day + per_day) % per_day;   // days * per_day may not fit
  return DateText(FloorDivide(value, per_day)) + "T" + TimeText(units, unit);
}

std::string HexText(std::string_view bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string out = "0x";
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    out += kDigits[byte >> 4];
    out += kDigits[byte & 15];
  }
  return out;
}

template <class ScalarType>
auto ValueOf(const arrow::Scalar& scalar) {
  return static_cast<const ScalarType&>(scalar).value;
}

template <class Number>
std::string NumberText(Number value) {
  char text[64];
  const auto end = std::to_chars(text, text + sizeof text, value).ptr;
  return {text, end};
}

int UnitOf(const arrow::DataType& type) {
  return type.id() == Type::TIMESTAMP ? static_cast<const arrow::TimestampType&>(type).unit()
                                      : static_cast<const arrow::TimeType&>(type).unit();
}

bool IsTimeOfDay(int64_t units, const arrow::DataType& type) {
  return units >= 0 && units < kSecondsPerDay * kUnitsPerSecond[UnitOf(type)];
}

}  // namespace

bool HasText(const arrow::Array& values, int64_t row) {
  const auto is_utf8 = [](std::string_view text) {
    arrow::util::InitializeUTF8();
    return arrow::util::ValidateUTF8(text);
  };
  switch (values.type_id()) {
    case Type::FLOAT: return !std::isnan(static_cast<const arrow::FloatArray&>(values).Value(row));
    case Type::DOUBLE:
      return !std::isnan(static_cast<const arrow::DoubleArray&>(values).Value(row));
    case Type::STRING:
      return is_utf8(static_cast<const arrow::StringArray&>(values).GetView(row));
    case Type::LARGE_STRING:
      return is_utf8(static_cast<const arrow::LargeStringArray&>(values).GetView(row));
    case Type::TIME32:
      return IsTimeOfDay(static_cast<const arrow::Time32Array&>(values).Value(row),
                         *values.type());
    case Type::TIME64:
      return IsTimeOfDay(static_cast<const arrow::Time64Array&>(values).Value(row),
                         *values.type());
    case Type::DATE64:   // not of whole days: none that a date can say
      return static_cast<const arrow::Date64Array&>(values).Value(row) %
                 (kSecondsPerDay * 1000) == 0;
    default: return true;
  }
}

Result<std::string> TextOf(const arrow::Scalar& value) {
  const arrow::DataType& type = *value.type;
  switch (type.id()) {
    case Type::BOOL: return std::string(ValueOf<arrow::BooleanScalar>(value) ? "true" : "false");
    case Type::INT8: return NumberText<int>(ValueOf<arrow::Int8Scalar>(value));
    case Type::INT16: return NumberText(ValueOf<arrow::Int16Scalar>(value));
    case Type::INT32: return NumberText(ValueOf<arrow::Int32Scalar>(value));
    case Type::INT64: return NumberText(ValueOf<arrow::Int64Scalar>(value));
    case Type::UINT8: return NumberText<int>(ValueOf<arrow::UInt8Scalar>(value));
    case Type::UINT16: return NumberText(ValueOf<arrow::UInt16Scalar>(value));
    case Type::UINT32: return NumberText(ValueOf<arrow::UInt32Scalar>(value));
    case Type::UINT64: return NumberText(ValueOf<arrow::UInt64Scalar>(value));
    case Type::FLOAT: return NumberText(ValueOf<arrow::FloatScalar>(value));
    case Type::DOUBLE: return NumberText(ValueOf<arrow::DoubleScalar>(value));
    case Type::DURATION: return NumberText(ValueOf<arrow::DurationScalar>(value));
    case Type::DATE32: return DateText(ValueOf<arrow::Date32Scalar>(value));
    case Type::DATE64:
      return DateText(FloorDivide(ValueOf<arrow::Date64Scalar>(value), kSecondsPerDay * 1000));
    case Type::TIME32: return TimeText(ValueOf<arrow::Time32Scalar>(value), UnitOf(type));
    case Type::TIME64: return TimeText(ValueOf<arrow::Time64Scalar>(value), UnitOf(type));
    case Type::TIMESTAMP:
      return InstantText(ValueOf<arrow::TimestampScalar>(value), UnitOf(type));
    case Type::DECIMAL128:
    case Type::DECIMAL256: return value.ToString();
    case Type::STRING:
    case Type::LARGE_STRING:
      return std::string(static_cast<const arrow::BaseBinaryScalar&>(value).view());
    case Type::BINARY:
    case Type::LARGE_BINARY:
      return HexText(static_cast<const arrow::BaseBinaryScalar&>(value).view());
    default:
      return InvalidArgument("rows cannot be cut by a column of this type", "type",
                             type.ToString());
  }
}

}  // namespace grebe::layout

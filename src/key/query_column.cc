// Values of several types, as ParseValue may give them, in one column.
#include <arrow/builder.h>
#include <arrow/scalar.h>
#include <arrow/util/float16.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "key/key.h"
#include "key/kinds_internal.h"
#include "key/number.h"

namespace grebe::key {

namespace {

using internal::Number;
using Values = std::span<const std::shared_ptr<arrow::Scalar>>;
using ArrayResult = Result<std::shared_ptr<arrow::Array>>;

constexpr int64_t kUnitsPerSecond[] = {1, 1000, 1000000, 1000000000};

// Builds an array of the type from a function that gives each value's scalar of that type.
template <class Of>
ArrayResult Build(const std::shared_ptr<arrow::DataType>& type, Values values, Of&& scalar_of) {
  ARROW_ASSIGN_OR_RAISE(auto builder, arrow::MakeBuilder(type));
  ARROW_RETURN_NOT_OK(builder->Reserve(static_cast<int64_t>(values.size())));
  for (const auto& value : values) {
    if (value == nullptr) {
      ARROW_RETURN_NOT_OK(builder->AppendNull());
    } else {
      ARROW_ASSIGN_OR_RAISE(const std::shared_ptr<arrow::Scalar> scalar, scalar_of(*value));
      ARROW_RETURN_NOT_OK(builder->AppendScalar(*scalar));
    }
  }
  return builder->Finish();
}

// Seconds since 1970.
Result<Number> SecondsOfScalar(const arrow::Scalar& scalar) {
  if (scalar.type->id() != arrow::Type::TIMESTAMP) return internal::NumberOfScalar(scalar);
  const int unit = static_cast<const arrow::TimestampType&>(*scalar.type).unit();
  return internal::NumberOf(
      __int128{static_cast<const arrow::TimestampScalar&>(scalar).value}, unit * 3);
}

// Decimals of the least scale that is enough for all.
template <class Of>
ArrayResult Decimals(Values values, Of&& number_of) {
  int32_t scale = 0;
  for (const auto& value : values) {
    if (value == nullptr) continue;
    ARROW_ASSIGN_OR_RAISE(const Number number, number_of(*value));
    scale = std::max(scale, -number.exponent);
  }
  const auto type = arrow::decimal256(arrow::Decimal256Type::kMaxPrecision, scale);
  return Build(type, values,
               [&](const arrow::Scalar& value) -> Result<std::shared_ptr<arrow::Scalar>> {
                 ARROW_ASSIGN_OR_RAISE(const Number number, number_of(value));
                 const auto unscaled = internal::Unscaled(number, scale);
                 if (!unscaled) {
                   return InvalidArgument("numbers too far apart for one call: ask separately",
                                          "value", value.ToString());
                 }
                 return std::make_shared<arrow::Decimal256Scalar>(*unscaled, type);
               });
}

ArrayResult Doubles(Values values) {
  return Build(arrow::float64(), values,
               [](const arrow::Scalar& value) -> Result<std::shared_ptr<arrow::Scalar>> {
                 if (value.type->id() == arrow::Type::DOUBLE) return value.GetSharedPtr();
                 if (value.type->id() == arrow::Type::FLOAT) {
                   return std::make_shared<arrow::DoubleScalar>(
                       static_cast<const arrow::FloatScalar&>(value).value);
                 }
                 if (value.type->id() != arrow::Type::HALF_FLOAT) {   // beyond the doubles
                   return InvalidArgument("numbers too far apart for one call: ask separately",
                                          "value", value.ToString());
                 }
                 const uint16_t bits = static_cast<const arrow::HalfFloatScalar&>(value).value;
                 return std::make_shared<arrow::DoubleScalar>(
                     arrow::util::Float16::FromBits(bits).ToDouble());
               });
}

ArrayResult Nanoseconds(Values values) {
  const auto type = arrow::time64(arrow::TimeUnit::NANO);
  return Build(type, values,
               [&](const arrow::Scalar& value) -> Result<std::shared_ptr<arrow::Scalar>> {
                 const int unit = static_cast<const arrow::TimeType&>(*value.type).unit();
                 const int64_t factor = kUnitsPerSecond[3] / kUnitsPerSecond[unit];
                 // A parsed time is below one day: no overflow.
                 const int64_t units = value.type->id() == arrow::Type::TIME32
                                           ? static_cast<const arrow::Time32Scalar&>(value).value
                                           : static_cast<const arrow::Time64Scalar&>(value).value;
                 return std::make_shared<arrow::Time64Scalar>(units * factor, type);
               });
}

ArrayResult Dates(Values values) {
  return Build(arrow::date64(), values,
               [](const arrow::Scalar& value) -> Result<std::shared_ptr<arrow::Scalar>> {
                 if (value.type->id() == arrow::Type::DATE64) return value.GetSharedPtr();
                 const auto& date = static_cast<const arrow::Date32Scalar&>(value);
                 return std::make_shared<arrow::Date64Scalar>(int64_t{date.value} * 86400000);
               });
}

ArrayResult Binaries(Values values) {
  return Build(arrow::binary(), values,
               [](const arrow::Scalar& value) -> Result<std::shared_ptr<arrow::Scalar>> {
                 return std::make_shared<arrow::BinaryScalar>(
                     static_cast<const arrow::BaseBinaryScalar&>(value).value);
               });
}

}  // namespace

Result<internal::Number> internal::NumberOfScalar(const arrow::Scalar& scalar) {
  using arrow::Type;
  const auto integer = [](auto value) { return internal::NumberOf(__int128{value}, 0); };
  const auto scale = [&] { return static_cast<const arrow::DecimalType&>(*scalar.type).scale(); };
  switch (scalar.type->id()) {
    case Type::INT8: return integer(static_cast<const arrow::Int8Scalar&>(scalar).value);
    case Type::INT16: return integer(static_cast<const arrow::Int16Scalar&>(scalar).value);
    case Type::INT32: return integer(static_cast<const arrow::Int32Scalar&>(scalar).value);
    case Type::INT64: return integer(static_cast<const arrow::Int64Scalar&>(scalar).value);
    case Type::UINT8: return integer(static_cast<const arrow::UInt8Scalar&>(scalar).value);
    case Type::UINT16: return integer(static_cast<const arrow::UInt16Scalar&>(scalar).value);
    case Type::UINT32: return integer(static_cast<const arrow::UInt32Scalar&>(scalar).value);
    case Type::UINT64: return integer(static_cast<const arrow::UInt64Scalar&>(scalar).value);
    case Type::DECIMAL32: {
      const auto& value = static_cast<const arrow::Decimal32Scalar&>(scalar).value;
      return internal::NumberOf(__int128{static_cast<int32_t>(value.value())}, scale());
    }
    case Type::DECIMAL64: {
      const auto& value = static_cast<const arrow::Decimal64Scalar&>(scalar).value;
      return internal::NumberOf(__int128{value.value()}, scale());
    }
    case Type::DECIMAL128: {
      const auto& value = static_cast<const arrow::Decimal128Scalar&>(scalar).value;
      return internal::NumberOf(arrow::Decimal256(arrow::BasicDecimal256(value)), scale());
    }
    case Type::DECIMAL256:
      return internal::NumberOf(static_cast<const arrow::Decimal256Scalar&>(scalar).value,
                                scale());
    default:
      return InvalidArgument("values do not go into one column", "type",
                             scalar.type->ToString());
  }
}

ArrayResult MakeQueryColumn(const arrow::DataType& outer, Values values) {
  std::shared_ptr<arrow::DataType> common = internal::Unwrap(outer).GetSharedPtr();
  bool same = true;
  bool first = true;
  for (const auto& value : values) {
    if (value == nullptr) continue;
    if (first) common = value->type;
    first = false;
    same = same && value->type->Equals(*common);
  }
  if (same) {
    return Build(common, values,
                 [](const arrow::Scalar& value) -> Result<std::shared_ptr<arrow::Scalar>> {
                   return value.GetSharedPtr();
                 });
  }
  ARROW_ASSIGN_OR_RAISE(const KeyType type, KeyType::FromArrow(outer));
  switch (type.kind) {
    case internal::kTimestamp: return Decimals(values, SecondsOfScalar);
    case internal::kTime: return Nanoseconds(values);
    case internal::kDate: return Dates(values);
    case internal::kFloat: return Doubles(values);
    case internal::kBinary:
    case internal::kUuid: return Binaries(values);
    default: return Decimals(values, internal::NumberOfScalar);
  }
}

}  // namespace grebe::key

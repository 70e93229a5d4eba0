#include "scan/predicate_value.h"

#include <arrow/array.h>
#include <arrow/builder.h>
#include <arrow/compute/cast.h>
#include <arrow/compute/initialize.h>
#include <arrow/extension_type.h>
#include <arrow/util/decimal.h>
#include <arrow/util/float16.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "key/key.h"

namespace grebe::scan {
namespace {

using arrow::Decimal256;
using Place = PlacedValue::Place;

Status DoesNotCompare(const Literal& literal, const arrow::DataType& type, std::string_view hint) {
  return InvalidArgument("the value does not compare with the column's type", "type",
                         type.ToString(), "value", literal.text, "hint", hint, "position",
                         literal.position);
}

// floor(value / 10^digits); a negative count of digits multiplies. *exact: nothing was lost.
// nullopt: beyond what 256 bits hold.
std::optional<Decimal256> FloorShift(const Decimal256& value, int32_t digits, bool* exact) {
  *exact = true;
  if (value == Decimal256(0)) return value;
  constexpr int32_t kDigitsMax = 76;
  if (digits <= 0) {
    if (-digits > kDigitsMax) return std::nullopt;
    const Decimal256 factor(Decimal256::GetScaleMultiplier(-digits));
    const Decimal256 most(std::array<uint64_t, 4>{UINT64_MAX, UINT64_MAX, UINT64_MAX, INT64_MAX});
    // A product that does not fit would wrap around unseen.
    auto limit = most.Divide(factor);
    if (!limit.ok() || value > limit->first || value < -limit->first) return std::nullopt;
    return Decimal256(value * factor);
  }
  Decimal256 quotient(0), remainder = value;
  if (digits <= kDigitsMax) {
    auto divided = value.Divide(Decimal256(Decimal256::GetScaleMultiplier(digits)));
    if (!divided.ok()) return std::nullopt;
    quotient = divided->first;
    remainder = divided->second;
  }
  *exact = remainder == Decimal256(0);
  if (!*exact && value < Decimal256(0)) quotient -= Decimal256(1);
  return quotient;
}

struct Unscaled {
  Decimal256 value;
  int32_t scale = 0;
};

// A decimal literal's exact value, when it is one.
std::optional<Unscaled> DecimalOf(const arrow::Scalar& scalar) {
  if (scalar.type->id() == arrow::Type::DECIMAL256) {
    const auto& decimal = static_cast<const arrow::Decimal256Scalar&>(scalar);
    return Unscaled{decimal.value,
                    static_cast<const arrow::DecimalType&>(*scalar.type).scale()};
  }
  return std::nullopt;
}

PlacedValue Beyond(bool negative) {
  return {negative ? Place::kBelowAll : Place::kAboveAll, nullptr};
}

// A whole number placed in an integer type (or a date, time, timestamp: its units).
template <class ScalarType>
PlacedValue PlaceInteger(const Decimal256& floor, bool exact,
                         const std::shared_ptr<arrow::DataType>& type) {
  using C = typename ScalarType::ValueType;
  const auto limit = [](C value) {
    if constexpr (std::is_unsigned_v<C>) {
      return Decimal256(arrow::Decimal128(0, static_cast<uint64_t>(value)));
    } else {
      return Decimal256(static_cast<int64_t>(value));
    }
  };
  if (floor > limit(std::numeric_limits<C>::max())) return Beyond(false);
  if (floor < limit(std::numeric_limits<C>::min())) return Beyond(true);
  const uint64_t low = floor.little_endian_array()[0];
  return {exact ? Place::kExact : Place::kAbove,
          std::make_shared<ScalarType>(static_cast<C>(low), type)};
}

Result<PlacedValue> PlaceWhole(const Decimal256& floor, bool exact,
                               const std::shared_ptr<arrow::DataType>& type) {
  switch (type->id()) {
    case arrow::Type::INT8: return PlaceInteger<arrow::Int8Scalar>(floor, exact, type);
    case arrow::Type::INT16: return PlaceInteger<arrow::Int16Scalar>(floor, exact, type);
    case arrow::Type::INT32: return PlaceInteger<arrow::Int32Scalar>(floor, exact, type);
    case arrow::Type::INT64: return PlaceInteger<arrow::Int64Scalar>(floor, exact, type);
    case arrow::Type::UINT8: return PlaceInteger<arrow::UInt8Scalar>(floor, exact, type);
    case arrow::Type::UINT16: return PlaceInteger<arrow::UInt16Scalar>(floor, exact, type);
    case arrow::Type::UINT32: return PlaceInteger<arrow::UInt32Scalar>(floor, exact, type);
    case arrow::Type::UINT64: return PlaceInteger<arrow::UInt64Scalar>(floor, exact, type);
    case arrow::Type::DATE32: return PlaceInteger<arrow::Date32Scalar>(floor, exact, type);
    case arrow::Type::DATE64: return PlaceInteger<arrow::Date64Scalar>(floor, exact, type);
    case arrow::Type::TIME32: return PlaceInteger<arrow::Time32Scalar>(floor, exact, type);
    case arrow::Type::TIME64: return PlaceInteger<arrow::Time64Scalar>(floor, exact, type);
    case arrow::Type::TIMESTAMP: return PlaceInteger<arrow::TimestampScalar>(floor, exact, type);
    case arrow::Type::DURATION: return PlaceInteger<arrow::DurationScalar>(floor, exact, type);
    case arrow::Type::DECIMAL128:
    case arrow::Type::DECIMAL256: {
      auto value = pq::DecimalScalar(floor, type);
      if (value == nullptr) return Beyond(floor < Decimal256(0));
      return PlacedValue{exact ? Place::kExact : Place::kAbove, std::move(value)};
    }
    default: return InvalidArgument("the value does not compare with the column's type", "type",
                                    type->ToString());
  }
}

// The decimal digits of a type's unit below a second; nullopt: it has no unit.
std::optional<int32_t> UnitDigits(const arrow::DataType& type) {
  constexpr int32_t kDigits[] = {0, 3, 6, 9};
  switch (type.id()) {
    case arrow::Type::TIME32:
    case arrow::Type::TIME64: return kDigits[static_cast<const arrow::TimeType&>(type).unit()];
    case arrow::Type::TIMESTAMP:
      return kDigits[static_cast<const arrow::TimestampType&>(type).unit()];
    default: return std::nullopt;
  }
}

int64_t TimeValue(const arrow::Scalar& scalar) {
  switch (scalar.type->id()) {
    case arrow::Type::TIME32: return static_cast<const arrow::Time32Scalar&>(scalar).value;
    case arrow::Type::TIME64: return static_cast<const arrow::Time64Scalar&>(scalar).value;
    case arrow::Type::DATE32: return static_cast<const arrow::Date32Scalar&>(scalar).value;
    case arrow::Type::DATE64: return static_cast<const arrow::Date64Scalar&>(scalar).value;
    default: return static_cast<const arrow::TimestampScalar&>(scalar).value;
  }
}

Result<PlacedValue> PlaceDecimal(const Unscaled& number,
                                 const std::shared_ptr<arrow::DataType>& type) {
  const int32_t scale = arrow::is_decimal(type->id())
                            ? static_cast<const arrow::DecimalType&>(*type).scale()
                            : UnitDigits(*type).value_or(0);
  bool exact = true;
  const auto floor = FloorShift(number.value, number.scale - scale, &exact);
  if (!floor) return Beyond(number.value < Decimal256(0));
  return PlaceWhole(*floor, exact, type);
}

// A double among the floats.
PlacedValue PlaceDouble(double value) {
  constexpr float kMost = std::numeric_limits<float>::max();
  if (std::isfinite(value) && std::abs(value) > kMost) {   // not the infinite one
    const float below = value > 0 ? kMost : -std::numeric_limits<float>::infinity();
    return {Place::kAbove, std::make_shared<arrow::FloatScalar>(below)};
  }
  const float nearest = static_cast<float>(value);
  if (std::isnan(value) || static_cast<double>(nearest) == value) {
    return {Place::kExact, std::make_shared<arrow::FloatScalar>(nearest)};
  }
  const float below = static_cast<double>(nearest) < value
                          ? nearest
                          : std::nextafter(nearest, -std::numeric_limits<float>::infinity());
  return {Place::kAbove, std::make_shared<arrow::FloatScalar>(below)};
}

bool IsFloat(const arrow::DataType& type) {
  return type.id() == arrow::Type::FLOAT || type.id() == arrow::Type::DOUBLE;
}

// A decimal number among the floats or doubles.
PlacedValue PlaceAmongFloats(const Unscaled& number, const arrow::DataType& type) {
  double value = number.value.ToDouble(number.scale);
  Place place = Place::kExact;
  if (std::isinf(value)) {   // beyond the finite ones
    place = Place::kAbove;
    value = value > 0 ? std::numeric_limits<double>::max() : value;
  }
  if (type.id() == arrow::Type::DOUBLE) {
    return {place, std::make_shared<arrow::DoubleScalar>(value)};
  }
  PlacedValue placed = PlaceDouble(value);
  if (place == Place::kAbove) placed.place = place;
  return placed;
}

bool IsBinaryLike(const arrow::DataType& type) {
  return arrow::is_base_binary_like(type.id()) || arrow::is_binary_view_like(type.id()) ||
         type.id() == arrow::Type::FIXED_SIZE_BINARY;
}

Result<std::shared_ptr<arrow::Scalar>> CastScalar(const std::shared_ptr<arrow::Scalar>& value,
                                                  const std::shared_ptr<arrow::DataType>& type) {
  if (value->type->Equals(*type)) return value;
  ARROW_ASSIGN_OR_RAISE(auto array, arrow::MakeArrayFromScalar(*value, 1));
  ARROW_ASSIGN_OR_RAISE(array, ToComparable(std::move(array), type));
  return array->GetScalar(0);
}

const arrow::DataType& Plain(const arrow::DataType& type) {
  if (type.id() == arrow::Type::DICTIONARY) {
    return Plain(*static_cast<const arrow::DictionaryType&>(type).value_type());
  }
  if (type.id() == arrow::Type::EXTENSION) {
    return Plain(*static_cast<const arrow::ExtensionType&>(type).storage_type());
  }
  return type;
}

// Whether a literal of this form may be compared with the type at all.
Status CheckForm(const Literal& literal, const arrow::DataType& type) {
  const bool number = arrow::is_integer(type.id()) || arrow::is_floating(type.id()) ||
                      arrow::is_decimal(type.id()) || type.id() == arrow::Type::DURATION;
  if (literal.kind == Literal::Kind::kNumber && !number) {
    return DoesNotCompare(literal, type, "such values stand in 'single quotes'");
  }
  if (literal.kind == Literal::Kind::kBool && type.id() != arrow::Type::BOOL) {
    return DoesNotCompare(literal, type, "true and false compare with booleans only");
  }
  return Status::OK();
}

// Decimals that differ by precision only: a cast would refuse values wider than what is declared.
bool HasSameNumbers(const arrow::DataType& from, const arrow::DataType& to) {
  return from.id() == to.id() && arrow::is_decimal(from.id()) &&
         static_cast<const arrow::DecimalType&>(from).scale() ==
             static_cast<const arrow::DecimalType&>(to).scale();
}

// Halves to floats; Arrow's cast knows them only in newer versions.
Result<std::shared_ptr<arrow::Array>> FloatsOfHalves(const arrow::Array& array) {
  const auto& halves = static_cast<const arrow::HalfFloatArray&>(array);
  arrow::FloatBuilder builder;
  ARROW_RETURN_NOT_OK(builder.Reserve(array.length()));
  for (int64_t i = 0; i < array.length(); ++i) {
    if (halves.IsNull(i)) {
      builder.UnsafeAppendNull();
    } else {
      builder.UnsafeAppend(arrow::util::Float16::FromBits(halves.Value(i)).ToFloat());
    }
  }
  return builder.Finish();
}

}  // namespace

Result<PlacedValue> PlaceScalar(const std::shared_ptr<arrow::Scalar>& value,
                                const std::shared_ptr<arrow::DataType>& column_type) {
  const auto type = pq::ComparableType(column_type);
  if (IsFloat(*type) || IsBinaryLike(*type) || type->id() == arrow::Type::BOOL) {
    if (type->id() == arrow::Type::FLOAT && value->type->id() == arrow::Type::DOUBLE) {
      return PlaceDouble(static_cast<const arrow::DoubleScalar&>(*value).value);
    }
    if (const auto number = DecimalOf(*value); number && IsFloat(*type)) {
      return PlaceAmongFloats(*number, *type);
    }
    ARROW_ASSIGN_OR_RAISE(auto cast, CastScalar(value, type));
    return PlacedValue{Place::kExact, std::move(cast)};
  }
  if (const auto number = DecimalOf(*value)) return PlaceDecimal(*number, type);
  const auto from = UnitDigits(*value->type), to = UnitDigits(*type);
  if (from && to && *from != *to) {
    bool exact = true;
    const auto floor = FloorShift(Decimal256(TimeValue(*value)), *from - *to, &exact);
    if (!floor) return Beyond(TimeValue(*value) < 0);
    return PlaceWhole(*floor, exact, type);
  }
  if (type->id() == arrow::Type::DATE32 && value->type->id() == arrow::Type::DATE64) {
    return Beyond(TimeValue(*value) < 0);   // a day that 32 bits do not hold
  }
  ARROW_ASSIGN_OR_RAISE(auto cast, CastScalar(value, type));
  return PlacedValue{Place::kExact, std::move(cast)};
}

Result<PlacedValue> PlaceLiteral(const Literal& literal,
                                 const std::shared_ptr<arrow::DataType>& column_type) {
  const arrow::DataType& plain = Plain(*column_type);
  ARROW_RETURN_NOT_OK(CheckForm(literal, plain));
  // Durations are their numbers, which may be beyond them or between two.
  const bool is_duration = plain.id() == arrow::Type::DURATION;
  auto parsed = key::ParseValue(is_duration ? *arrow::int64() : plain, literal.text);
  if (!parsed.ok()) {
    const Status status = IsKind(parsed.status(), ErrorKind::kUnsupported)
                              ? InvalidArgument("columns of this type do not compare", "type",
                                                column_type->ToString())
                              : parsed.status();
    return AddContext(status, "position", std::to_string(literal.position));
  }
  return PlaceScalar(*parsed, column_type);
}

Result<std::shared_ptr<arrow::Array>> ToComparable(std::shared_ptr<arrow::Array> array,
                                                   const std::shared_ptr<arrow::DataType>& to) {
  ARROW_RETURN_NOT_OK(EnsureCompute());
  while (true) {
    if (array->type()->Equals(*to)) return array;
    if (array->type_id() == arrow::Type::EXTENSION) {
      array = static_cast<const arrow::ExtensionArray&>(*array).storage();
    } else if (array->type_id() == arrow::Type::DICTIONARY) {
      const auto& type = static_cast<const arrow::DictionaryType&>(*array->type());
      ARROW_ASSIGN_OR_RAISE(array, arrow::compute::Cast(*array, type.value_type()));
    } else if (HasSameNumbers(*array->type(), *to)) {
      auto data = array->data()->Copy();
      data->type = to;
      return arrow::MakeArray(std::move(data));
    } else if (array->type_id() == arrow::Type::HALF_FLOAT) {
      ARROW_ASSIGN_OR_RAISE(array, FloatsOfHalves(*array));
    } else {
      return arrow::compute::Cast(*array, to);
    }
  }
}

bool IsNaN(const arrow::Scalar& scalar) {
  if (scalar.type->id() == arrow::Type::FLOAT) {
    return std::isnan(static_cast<const arrow::FloatScalar&>(scalar).value);
  }
  return scalar.type->id() == arrow::Type::DOUBLE &&
         std::isnan(static_cast<const arrow::DoubleScalar&>(scalar).value);
}

void SortValues(std::vector<std::shared_ptr<arrow::Scalar>>* values) {
  std::sort(values->begin(), values->end(), [](const auto& a, const auto& b) {
    return pq::CompareScalars(*a, *b) < 0;
  });
  values->erase(std::unique(values->begin(), values->end(),
                            [](const auto& a, const auto& b) {
                              return pq::CompareScalars(*a, *b) == 0;
                            }),
                values->end());
}

Status EnsureCompute() {
  static const Status status = arrow::compute::Initialize();
  return status;
}

}  // namespace grebe::scan

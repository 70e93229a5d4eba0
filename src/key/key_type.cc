#include <arrow/array.h>
#include <arrow/extension_type.h>
#include <arrow/type_traits.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "key/key.h"
#include "key/kinds_internal.h"

namespace grebe::key {

using internal::IsBytes;
using internal::IsNumber;
using internal::MakeType;

namespace internal {

const arrow::DataType& Unwrap(const arrow::DataType& type) {
  const arrow::DataType* at = &type;
  while (true) {
    if (at->id() == arrow::Type::DICTIONARY) {
      at = static_cast<const arrow::DictionaryType*>(at)->value_type().get();
    } else if (at->id() == arrow::Type::EXTENSION) {
      at = static_cast<const arrow::ExtensionType*>(at)->storage_type().get();
    } else {
      return *at;
    }
  }
}

}  // namespace internal

namespace {

constexpr const char* kUnitNames[] = {"s", "ms", "us", "ns"};
constexpr int kWordDecimalDigits = 18;

std::optional<int> UnitOf(std::string_view text) {
  for (int unit = 0; unit < 4; ++unit) {
    if (text == kUnitNames[unit]) return unit;
  }
  return std::nullopt;
}

KeyType FromDecimal(const arrow::DecimalType& type) {
  const int64_t integer_digits = static_cast<int64_t>(type.precision()) - type.scale();
  if (type.scale() <= 0) {
    return MakeType(integer_digits <= kWordDecimalDigits ? internal::kInt : internal::kDecimal);
  }
  if (type.precision() > kWordDecimalDigits) return MakeType(internal::kDecimal);
  return MakeType(internal::kDecimal64, type.scale());
}

Status NoUnion(const KeyType& a, const KeyType& b) {
  return Unsupported("no key type holds the values of both", "a", a.ToString(), "b",
                     b.ToString());
}

}  // namespace

Result<KeyType> KeyType::FromArrow(const arrow::DataType& outer) {
  const arrow::DataType& type = internal::Unwrap(outer);
  switch (type.id()) {
    case arrow::Type::INT8:
    case arrow::Type::INT16:
    case arrow::Type::INT32:
    case arrow::Type::INT64:
    case arrow::Type::UINT8:
    case arrow::Type::UINT16:
    case arrow::Type::UINT32:
      return MakeType(internal::kInt);
    case arrow::Type::UINT64:
      return MakeType(internal::kUInt64);
    case arrow::Type::DECIMAL32:
    case arrow::Type::DECIMAL64:
    case arrow::Type::DECIMAL128:
    case arrow::Type::DECIMAL256:
      return FromDecimal(static_cast<const arrow::DecimalType&>(type));
    case arrow::Type::STRING:
    case arrow::Type::LARGE_STRING:
    case arrow::Type::STRING_VIEW:
      return MakeType(internal::kString);
    case arrow::Type::BINARY:
    case arrow::Type::LARGE_BINARY:
    case arrow::Type::BINARY_VIEW:
      return MakeType(internal::kBinary);
    case arrow::Type::FIXED_SIZE_BINARY: {
      const int width = static_cast<const arrow::FixedSizeBinaryType&>(type).byte_width();
      return MakeType(width == 16 ? internal::kUuid : internal::kBinary);
    }
    case arrow::Type::DATE32:
    case arrow::Type::DATE64:
      return MakeType(internal::kDate);
    case arrow::Type::TIME32:
    case arrow::Type::TIME64:
      return MakeType(internal::kTime, static_cast<const arrow::TimeType&>(type).unit());
    case arrow::Type::TIMESTAMP: {
      const auto& timestamp = static_cast<const arrow::TimestampType&>(type);
      return MakeType(internal::kTimestamp, timestamp.unit(), !timestamp.timezone().empty());
    }
    case arrow::Type::DURATION:
      return MakeType(internal::kDuration, static_cast<const arrow::DurationType&>(type).unit());
    case arrow::Type::BOOL:
      return MakeType(internal::kBool);
    case arrow::Type::HALF_FLOAT:
      return MakeType(internal::kFloat, 16);
    case arrow::Type::FLOAT:
      return MakeType(internal::kFloat, 32);
    case arrow::Type::DOUBLE:
      return MakeType(internal::kFloat, 64);
    default:
      return Unsupported("values of this type cannot be keys", "type", outer.ToString());
  }
}

Result<KeyType> KeyType::Parse(std::string_view text) {
  const auto invalid = [&] { return InvalidArgument("not a key type", "text", text); };
  const size_t paren = text.find('(');
  const std::string_view name = text.substr(0, paren);
  if (paren == std::string_view::npos) {
    static constexpr std::pair<std::string_view, internal::Kind> kPlain[] = {
        {"int", internal::kInt},       {"uint64", internal::kUInt64},
        {"decimal", internal::kDecimal}, {"string", internal::kString},
        {"binary", internal::kBinary}, {"uuid", internal::kUuid},
        {"date", internal::kDate},     {"bool", internal::kBool}};
    for (const auto& [plain, kind] : kPlain) {
      if (name == plain) return MakeType(kind);
    }
    if (name == "float") return MakeType(internal::kFloat, 64);
    return invalid();
  }
  if (text.back() != ')') return invalid();
  std::string_view param = text.substr(paren + 1, text.size() - paren - 2);
  if (name == "decimal64") {
    int scale = 0;
    const auto [end, error] = std::from_chars(param.data(), param.data() + param.size(), scale);
    const bool canonical = std::to_string(scale) == param;
    if (error != std::errc() || !canonical || scale < 1 || scale > 1000) return invalid();
    return MakeType(internal::kDecimal64, scale);
  }
  if (name == "float") {
    if (param == "16") return MakeType(internal::kFloat, 16);
    if (param == "32") return MakeType(internal::kFloat, 32);
    return invalid();
  }
  const bool utc = name == "timestamp" && param.ends_with(",utc");
  if (utc) param.remove_suffix(4);
  if (name == "timestamp" && param == "mixed") {
    return MakeType(internal::kTimestampMixed, 0, utc);
  }
  const std::optional<int> unit = UnitOf(param);
  if (!unit) return invalid();
  if (name == "time") return MakeType(internal::kTime, *unit);
  if (name == "duration") return MakeType(internal::kDuration, *unit);
  if (name == "timestamp") return MakeType(internal::kTimestamp, *unit, utc);
  return invalid();
}

Result<KeyType> KeyType::Unify(const KeyType& a, const KeyType& b) {
  if (a == b) return a;
  if (IsNumber(a.kind) && IsNumber(b.kind)) return MakeType(internal::kDecimal);
  if (IsBytes(a.kind) && IsBytes(b.kind)) return MakeType(internal::kBinary);
  if (internal::IsTimestamp(a) && internal::IsTimestamp(b)) {
    if (a.utc != b.utc) return NoUnion(a, b);
    // Not the finer unit: nanoseconds in 64 bits end in 2262, and the year 9999 is a common value.
    return MakeType(internal::kTimestampMixed, 0, a.utc);
  }
  if (a.kind != b.kind) return NoUnion(a, b);
  switch (a.kind) {
    case internal::kTime:
    case internal::kDuration:
    case internal::kFloat:
      return MakeType(static_cast<internal::Kind>(a.kind), std::max(a.param, b.param));
    default:
      return NoUnion(a, b);
  }
}

bool KeyType::SameForm(const KeyType& a, const KeyType& b) {
  if (IsBytes(a.kind) && IsBytes(b.kind)) return true;
  if (a.kind == internal::kFloat && b.kind == internal::kFloat) return true;
  return a == b;
}

std::string KeyType::ToString() const {
  const auto with_unit = [&](const char* name) {
    return std::string(name) + "(" + kUnitNames[param & 3] + (utc ? ",utc)" : ")");
  };
  switch (kind) {
    case internal::kInt: return "int";
    case internal::kUInt64: return "uint64";
    case internal::kDecimal64: return "decimal64(" + std::to_string(param) + ")";
    case internal::kDecimal: return "decimal";
    case internal::kString: return "string";
    case internal::kBinary: return "binary";
    case internal::kUuid: return "uuid";
    case internal::kDate: return "date";
    case internal::kTime: return with_unit("time");
    case internal::kTimestamp: return with_unit("timestamp");
    case internal::kTimestampMixed: return utc ? "timestamp(mixed,utc)" : "timestamp(mixed)";
    case internal::kDuration: return with_unit("duration");
    case internal::kBool: return "bool";
    case internal::kFloat: return param == 64 ? "float" : "float(" + std::to_string(param) + ")";
    default: return "none";
  }
}

std::shared_ptr<arrow::DataType> KeyType::value_type() const {
  const auto unit = static_cast<arrow::TimeUnit::type>(param & 3);
  switch (kind) {
    case internal::kInt: return arrow::int64();
    case internal::kUInt64: return arrow::uint64();
    case internal::kDecimal64: return arrow::decimal128(kWordDecimalDigits, param);
    case internal::kDecimal: return arrow::decimal256(arrow::Decimal256Type::kMaxPrecision, 0);
    case internal::kString: return arrow::utf8();
    case internal::kBinary: return arrow::binary();
    case internal::kUuid: return arrow::fixed_size_binary(16);
    case internal::kDate: return arrow::date32();
    case internal::kTime:
      return unit <= arrow::TimeUnit::MILLI ? arrow::time32(unit) : arrow::time64(unit);
    case internal::kTimestamp: return arrow::timestamp(unit, utc ? "UTC" : "");
    case internal::kTimestampMixed:
      return arrow::timestamp(arrow::TimeUnit::NANO, utc ? "UTC" : "");
    case internal::kDuration: return arrow::duration(unit);
    case internal::kBool: return arrow::boolean();
    case internal::kFloat:
      return param == 16 ? arrow::float16() : param == 32 ? arrow::float32() : arrow::float64();
    default: return arrow::null();
  }
}

bool KeyType::fits_word() const {
  return !IsBytes(kind) && kind != internal::kDecimal && kind != internal::kTimestampMixed &&
         kind != internal::kNone;
}

void EncodedKeys::Clear() {
  is_word = true;
  words.clear();
  null_rows.clear();
  bytes.clear();
  offsets.clear();
}

}  // namespace grebe::key

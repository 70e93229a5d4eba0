#include "parquet/leaf_bounds.h"

#include <arrow/extension_type.h>
#include <arrow/util/decimal.h>
#include <arrow/util/float16.h>
#include <parquet/schema.h>
#include <parquet/statistics.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string_view>

#include "base/coding.h"
#include "parquet/bounds_internal.h"
#include "parquet/footer_internal.h"
#include "parquet/guard.h"
#include "parquet/schema_internal.h"

namespace grebe::pq {
namespace {

using ScalarPtr = std::shared_ptr<arrow::Scalar>;

// The number that a PLAIN INT32 or INT64 holds; nullopt: the bytes have another size.
std::optional<int64_t> PlainInteger(const ::parquet::ColumnDescriptor& column,
                                    std::string_view bytes, bool is_unsigned) {
  if (column.physical_type() == ::parquet::Type::INT32 && bytes.size() == 4) {
    if (is_unsigned) return int64_t{LoadLe<uint32_t>(bytes.data())};
    return int64_t{LoadLe<int32_t>(bytes.data())};
  }
  if (column.physical_type() == ::parquet::Type::INT64 && bytes.size() == 8) {
    return LoadLe<int64_t>(bytes.data());
  }
  return std::nullopt;
}

template <class ArrowType>
ScalarPtr IntegerScalar(const ::parquet::ColumnDescriptor& column, std::string_view bytes,
                        const std::shared_ptr<arrow::DataType>& type) {
  using C = typename ArrowType::c_type;
  const auto value = PlainInteger(column, bytes, std::is_unsigned_v<C>);
  if (!value) return nullptr;
  if constexpr (sizeof(C) < 8) {
    if (*value < static_cast<int64_t>(std::numeric_limits<C>::min()) ||
        *value > static_cast<int64_t>(std::numeric_limits<C>::max())) {
      return nullptr;
    }
  }
  return std::make_shared<typename arrow::TypeTraits<ArrowType>::ScalarType>(
      static_cast<C>(*value), type);
}

// The unit of a TIME or TIMESTAMP column as Arrow has it; nullopt: it is none.
std::optional<arrow::TimeUnit::type> UnitOf(const ::parquet::ColumnDescriptor& column) {
  ::parquet::LogicalType::TimeUnit::unit unit = ::parquet::LogicalType::TimeUnit::UNKNOWN;
  if (const auto& logical = column.logical_type(); logical == nullptr) {
    return std::nullopt;
  } else if (logical->is_timestamp()) {
    unit = static_cast<const ::parquet::TimestampLogicalType&>(*logical).time_unit();
  } else if (logical->is_time()) {
    unit = static_cast<const ::parquet::TimeLogicalType&>(*logical).time_unit();
  }
  switch (unit) {
    case ::parquet::LogicalType::TimeUnit::MILLIS: return arrow::TimeUnit::MILLI;
    case ::parquet::LogicalType::TimeUnit::MICROS: return arrow::TimeUnit::MICRO;
    case ::parquet::LogicalType::TimeUnit::NANOS: return arrow::TimeUnit::NANO;
    default: return std::nullopt;
  }
}

// A time or timestamp whose unit is the file's own: the reader gives no other without a division.
template <class ArrowType>
ScalarPtr TimeScalar(const ::parquet::ColumnDescriptor& column, std::string_view bytes,
                     const std::shared_ptr<arrow::DataType>& type) {
  if (UnitOf(column) != static_cast<const ArrowType&>(*type).unit()) return nullptr;
  return IntegerScalar<ArrowType>(column, bytes, type);
}

ScalarPtr Date64Scalar(const ::parquet::ColumnDescriptor& column, std::string_view bytes,
                       const std::shared_ptr<arrow::DataType>& type) {
  constexpr int64_t kMsPerDay = 86400000;
  if (column.physical_type() != ::parquet::Type::INT32) return nullptr;
  const auto days = PlainInteger(column, bytes, false);
  return days ? std::make_shared<arrow::Date64Scalar>(*days * kMsPerDay, type) : nullptr;
}

// Decimals are compared as numbers: integers, or two's complement, big-endian, of any width.
ScalarPtr DecimalBound(const ::parquet::ColumnDescriptor& column, std::string_view bytes,
                       const std::shared_ptr<arrow::DataType>& type) {
  const auto& decimal = static_cast<const arrow::DecimalType&>(*type);
  const auto& logical = column.logical_type();
  if (logical == nullptr || !logical->is_decimal() ||
      static_cast<const ::parquet::DecimalLogicalType&>(*logical).scale() != decimal.scale()) {
    return nullptr;
  }
  arrow::Decimal256 value;
  if (const auto integer = PlainInteger(column, bytes, false)) {
    value = arrow::Decimal256(*integer);
  } else {
    const bool is_bytes = column.physical_type() == ::parquet::Type::BYTE_ARRAY ||
                          column.physical_type() == ::parquet::Type::FIXED_LEN_BYTE_ARRAY;
    constexpr size_t kDecimalBytesMax = 32;
    if (!is_bytes || bytes.empty() || bytes.size() > kDecimalBytesMax) return nullptr;
    auto parsed = arrow::Decimal256::FromBigEndian(reinterpret_cast<const uint8_t*>(bytes.data()),
                                                   static_cast<int32_t>(bytes.size()));
    if (!parsed.ok()) return nullptr;
    value = *parsed;
  }
  return DecimalScalar(value, type);
}

// A float's bound, which stands for both zeros.
template <class T>
T WidenZero(T value, bool is_min) {
  if (value != 0) return value;
  return is_min ? -T{0} : T{0};
}

ScalarPtr FloatScalar(const ::parquet::ColumnDescriptor& column, std::string_view bytes,
                      bool is_min) {
  if (column.physical_type() == ::parquet::Type::FLOAT && bytes.size() == 4) {
    return std::make_shared<arrow::FloatScalar>(WidenZero(LoadLe<float>(bytes.data()), is_min));
  }
  if (column.physical_type() == ::parquet::Type::FIXED_LEN_BYTE_ARRAY && bytes.size() == 2) {
    const auto half = arrow::util::Float16::FromBits(LoadLe<uint16_t>(bytes.data()));
    return std::make_shared<arrow::FloatScalar>(WidenZero(half.ToFloat(), is_min));
  }
  return nullptr;
}

ScalarPtr BytesScalar(const ::parquet::ColumnDescriptor& column, std::string_view bytes,
                      const std::shared_ptr<arrow::DataType>& type) {
  if (column.physical_type() != ::parquet::Type::BYTE_ARRAY &&
      (column.physical_type() != ::parquet::Type::FIXED_LEN_BYTE_ARRAY ||
       bytes.size() > static_cast<size_t>(column.type_length()))) {
    return nullptr;
  }
  auto buffer = arrow::Buffer::FromString(std::string(bytes));
  switch (type->id()) {
    case arrow::Type::STRING: return std::make_shared<arrow::StringScalar>(buffer);
    case arrow::Type::LARGE_STRING: return std::make_shared<arrow::LargeStringScalar>(buffer);
    case arrow::Type::LARGE_BINARY: return std::make_shared<arrow::LargeBinaryScalar>(buffer);
    default: return std::make_shared<arrow::BinaryScalar>(buffer);
  }
}

ScalarPtr BoolScalar(const ::parquet::ColumnDescriptor& column, std::string_view bytes) {
  if (column.physical_type() != ::parquet::Type::BOOLEAN || bytes.size() != 1) return nullptr;
  if (bytes[0] != 0 && bytes[0] != 1) return nullptr;
  return std::make_shared<arrow::BooleanScalar>(bytes[0] == 1);
}

// One bound as a scalar of the comparable type; null: the bytes are no value of it.
ScalarPtr DecodeBound(const ::parquet::ColumnDescriptor& column,
                      const std::shared_ptr<arrow::DataType>& type, std::string_view bytes,
                      bool is_min) {
  switch (type->id()) {
    case arrow::Type::BOOL: return BoolScalar(column, bytes);
    case arrow::Type::INT8: return IntegerScalar<arrow::Int8Type>(column, bytes, type);
    case arrow::Type::INT16: return IntegerScalar<arrow::Int16Type>(column, bytes, type);
    case arrow::Type::INT32: return IntegerScalar<arrow::Int32Type>(column, bytes, type);
    case arrow::Type::INT64: return IntegerScalar<arrow::Int64Type>(column, bytes, type);
    case arrow::Type::UINT8: return IntegerScalar<arrow::UInt8Type>(column, bytes, type);
    case arrow::Type::UINT16: return IntegerScalar<arrow::UInt16Type>(column, bytes, type);
    case arrow::Type::UINT32: return IntegerScalar<arrow::UInt32Type>(column, bytes, type);
    case arrow::Type::UINT64: return IntegerScalar<arrow::UInt64Type>(column, bytes, type);
    case arrow::Type::DATE32: return IntegerScalar<arrow::Date32Type>(column, bytes, type);
    case arrow::Type::DATE64: return Date64Scalar(column, bytes, type);
    case arrow::Type::TIME32: return TimeScalar<arrow::Time32Type>(column, bytes, type);
    case arrow::Type::TIME64: return TimeScalar<arrow::Time64Type>(column, bytes, type);
    case arrow::Type::TIMESTAMP: return TimeScalar<arrow::TimestampType>(column, bytes, type);
    case arrow::Type::DURATION: return IntegerScalar<arrow::DurationType>(column, bytes, type);
    case arrow::Type::DECIMAL128:
    case arrow::Type::DECIMAL256: return DecimalBound(column, bytes, type);
    case arrow::Type::FLOAT: return FloatScalar(column, bytes, is_min);
    case arrow::Type::DOUBLE:
      if (column.physical_type() != ::parquet::Type::DOUBLE || bytes.size() != 8) return nullptr;
      return std::make_shared<arrow::DoubleScalar>(WidenZero(LoadLe<double>(bytes.data()), is_min));
    case arrow::Type::STRING:
    case arrow::Type::LARGE_STRING:
    case arrow::Type::BINARY:
    case arrow::Type::LARGE_BINARY: return BytesScalar(column, bytes, type);
    default: return nullptr;
  }
}

bool IsNaN(const arrow::Scalar& scalar) {
  if (scalar.type->id() == arrow::Type::FLOAT) {
    return std::isnan(static_cast<const arrow::FloatScalar&>(scalar).value);
  }
  return scalar.type->id() == arrow::Type::DOUBLE &&
         std::isnan(static_cast<const arrow::DoubleScalar&>(scalar).value);
}

bool IsBytes(const ::parquet::ColumnDescriptor& column) {
  return column.physical_type() == ::parquet::Type::BYTE_ARRAY ||
         column.physical_type() == ::parquet::Type::FIXED_LEN_BYTE_ARRAY;
}

// Whether min and max are in an order that is known.
bool OrderIsKnown(const ::parquet::ColumnDescriptor& column) {
  if (!column.can_use_min_max() || column.sort_order() == ::parquet::SortOrder::UNKNOWN) {
    return false;
  }
  // The deprecated fields, for files that say no order, were compared byte by byte with signed
  // bytes: right for signed numbers, wrong for strings, and for decimals in bytes.
  return column.column_order().get_order() == ::parquet::ColumnOrder::TYPE_DEFINED_ORDER ||
         !IsBytes(column);
}

// Whether a null count counts every null. Arrow's writer forgets those of a null struct around the
// leaf (dictionaries, required leaves), so a count of a leaf in an optional group may be too low.
bool CountsEveryNull(const ::parquet::ColumnDescriptor& column) {
  const int own = column.schema_node()->is_optional() ? 1 : 0;
  return column.max_definition_level() == own;
}

// Parquet.Net, to its newest version: bounds of times are in milliseconds or microseconds whatever
// the column's unit is, and those of local times are shifted to UTC while the values are not.
bool WriterIsWrong(const ::parquet::FileMetaData& file, const ::parquet::ColumnDescriptor& column) {
  return file.created_by().starts_with("Parquet.Net") && UnitOf(column).has_value();
}

RawBounds RawOf(const ::parquet::EncodedStatistics* statistics, bool is_set,
                const ::parquet::ColumnDescriptor& column, int64_t value_count) {
  RawBounds out;
  out.value_count = value_count;
  if (statistics == nullptr) {
    out.note = is_set ? BoundsNote::kUntrusted : BoundsNote::kMissing;
    return out;
  }
  if (statistics->has_null_count) {
    const bool all_null = statistics->null_count == value_count;
    if (statistics->null_count < 0 || statistics->null_count > value_count ||
        (all_null && value_count > 0 && (statistics->has_min || statistics->has_max))) {
      out.note = BoundsNote::kContradictory;
      return out;
    }
    out.null_count = statistics->null_count;
    if (all_null) return out;
  }
  if (!CountsEveryNull(column)) out.null_count.reset();
  if (!OrderIsKnown(column)) {
    out.note = BoundsNote::kUntrusted;
    return out;
  }
  const bool exact_if_unsaid = !IsBytes(column);
  if (statistics->has_min) {
    out.min = statistics->min();
    out.min_exact = statistics->is_min_value_exact.value_or(exact_if_unsaid);
  }
  if (statistics->has_max) {
    out.max = statistics->max();
    out.max_exact = statistics->is_max_value_exact.value_or(exact_if_unsaid);
  }
  if (!out.min || !out.max) out.note = BoundsNote::kMissing;
  return out;
}

template <class T>
int Compare(const T& a, const T& b) {
  return a < b ? -1 : b < a ? 1 : 0;
}

}  // namespace

std::shared_ptr<arrow::DataType> ComparableType(const std::shared_ptr<arrow::DataType>& type) {
  switch (type->id()) {
    case arrow::Type::DICTIONARY:
      return ComparableType(static_cast<const arrow::DictionaryType&>(*type).value_type());
    case arrow::Type::EXTENSION:
      return ComparableType(static_cast<const arrow::ExtensionType&>(*type).storage_type());
    case arrow::Type::HALF_FLOAT: return arrow::float32();
    case arrow::Type::DECIMAL32:
    case arrow::Type::DECIMAL64:
    case arrow::Type::DECIMAL128:
      return arrow::decimal128(arrow::Decimal128Type::kMaxPrecision,
                               static_cast<const arrow::DecimalType&>(*type).scale());
    case arrow::Type::DECIMAL256:
      return arrow::decimal256(arrow::Decimal256Type::kMaxPrecision,
                               static_cast<const arrow::DecimalType&>(*type).scale());
    case arrow::Type::FIXED_SIZE_BINARY:
    case arrow::Type::BINARY_VIEW: return arrow::binary();
    case arrow::Type::STRING_VIEW: return arrow::utf8();
    default: return type;
  }
}

std::shared_ptr<arrow::Scalar> DecimalScalar(const arrow::Decimal256& unscaled,
                                             const std::shared_ptr<arrow::DataType>& type) {
  if (type->id() == arrow::Type::DECIMAL256) {
    return std::make_shared<arrow::Decimal256Scalar>(unscaled, type);
  }
  const auto words = unscaled.little_endian_array();
  const arrow::Decimal128 narrow(static_cast<int64_t>(words[1]), words[0]);
  if (arrow::Decimal256(narrow) != unscaled) return nullptr;
  return std::make_shared<arrow::Decimal128Scalar>(narrow, type);
}

std::shared_ptr<arrow::DataType> LeafArrowType(const Schema& schema, int leaf) {
  const auto& fields = schema.impl().manifest.column_index_to_field;
  const auto found = fields.find(leaf);
  return found == fields.end() ? arrow::null() : found->second->field->type();
}

int CompareScalars(const arrow::Scalar& a, const arrow::Scalar& b) {
  const auto by_value = [&]<class ScalarType>(std::type_identity<ScalarType>) {
    return Compare(static_cast<const ScalarType&>(a).value,
                   static_cast<const ScalarType&>(b).value);
  };
  switch (a.type->id()) {
    case arrow::Type::BOOL: return by_value(std::type_identity<arrow::BooleanScalar>{});
    case arrow::Type::INT8: return by_value(std::type_identity<arrow::Int8Scalar>{});
    case arrow::Type::INT16: return by_value(std::type_identity<arrow::Int16Scalar>{});
    case arrow::Type::INT32: return by_value(std::type_identity<arrow::Int32Scalar>{});
    case arrow::Type::INT64: return by_value(std::type_identity<arrow::Int64Scalar>{});
    case arrow::Type::UINT8: return by_value(std::type_identity<arrow::UInt8Scalar>{});
    case arrow::Type::UINT16: return by_value(std::type_identity<arrow::UInt16Scalar>{});
    case arrow::Type::UINT32: return by_value(std::type_identity<arrow::UInt32Scalar>{});
    case arrow::Type::UINT64: return by_value(std::type_identity<arrow::UInt64Scalar>{});
    case arrow::Type::FLOAT: return by_value(std::type_identity<arrow::FloatScalar>{});
    case arrow::Type::DOUBLE: return by_value(std::type_identity<arrow::DoubleScalar>{});
    case arrow::Type::DATE32: return by_value(std::type_identity<arrow::Date32Scalar>{});
    case arrow::Type::DATE64: return by_value(std::type_identity<arrow::Date64Scalar>{});
    case arrow::Type::TIME32: return by_value(std::type_identity<arrow::Time32Scalar>{});
    case arrow::Type::TIME64: return by_value(std::type_identity<arrow::Time64Scalar>{});
    case arrow::Type::TIMESTAMP: return by_value(std::type_identity<arrow::TimestampScalar>{});
    case arrow::Type::DURATION: return by_value(std::type_identity<arrow::DurationScalar>{});
    case arrow::Type::DECIMAL128: return by_value(std::type_identity<arrow::Decimal128Scalar>{});
    case arrow::Type::DECIMAL256: return by_value(std::type_identity<arrow::Decimal256Scalar>{});
    default: {
      const auto view = [](const arrow::Scalar& scalar) {
        return static_cast<const arrow::BaseBinaryScalar&>(scalar).view();
      };
      return Compare(view(a), view(b));   // bytes as unsigned, as char_traits compares them
    }
  }
}

RawBounds ReadChunkBounds(const Footer& footer, int row_group, int leaf) {
  const auto& impl = footer.impl();
  const int64_t value_count = impl.chunk(row_group, leaf).value_count;
  RawBounds none;
  none.value_count = value_count;
  none.note = BoundsNote::kUnreadable;
  auto raw = Guarded("reading statistics", [&] {
    const auto chunk = impl.metadata->RowGroup(row_group)->ColumnChunk(leaf);
    const auto& column = *impl.metadata->schema()->Column(leaf);
    const auto statistics = WriterIsWrong(*impl.metadata, column) ? nullptr
                                                                  : chunk->encoded_statistics();
    return RawOf(statistics.get(), chunk->is_stats_set(), column, value_count);
  });
  return raw.ok() ? *std::move(raw) : none;
}

bool PageOrderIsKnown(const Footer& footer, int leaf) {
  auto known = Guarded("reading the column order", [&] {
    const auto& column = *footer.impl().metadata->schema()->Column(leaf);
    return column.column_order().get_order() == ::parquet::ColumnOrder::TYPE_DEFINED_ORDER &&
           OrderIsKnown(column) && !WriterIsWrong(*footer.impl().metadata, column);
  });
  return known.ok() && *known;
}

bool NullCountsAreWhole(const Schema& schema, int leaf) {
  return CountsEveryNull(*schema.impl().descriptor->Column(leaf));
}

bool HasFixedWidth(const Schema& schema, int leaf) {
  return !IsBytes(*schema.impl().descriptor->Column(leaf));
}

Bounds DecodeBounds(const Schema& schema, int leaf, const RawBounds& raw) {
  Bounds out;
  out.null_count = raw.null_count;
  out.value_count = raw.value_count;
  out.note = raw.note;
  const auto& column = *schema.impl().descriptor->Column(leaf);
  const auto type = ComparableType(LeafArrowType(schema, leaf));
  const auto decode = [&](const std::optional<std::string>& bytes, bool is_min) -> ScalarPtr {
    if (!bytes) return nullptr;
    ScalarPtr bound = DecodeBound(column, type, *bytes, is_min);
    if (bound == nullptr) {
      out.note = BoundsNote::kUnreadable;
    } else if (IsNaN(*bound)) {
      out.note = BoundsNote::kNaN;
      bound = nullptr;
    }
    return bound;
  };
  out.min = decode(raw.min, true);
  out.max = decode(raw.max, false);
  // With NaN the other bound was computed beside it.
  if (out.note == BoundsNote::kNaN || out.note == BoundsNote::kUnreadable) {
    out.min = out.max = nullptr;
  } else if (out.has_both() && CompareScalars(*out.min, *out.max) > 0) {
    out.note = BoundsNote::kContradictory;
    out.min = out.max = nullptr;
  }
  out.min_exact = raw.min_exact && out.min != nullptr;
  out.max_exact = raw.max_exact && out.max != nullptr;
  return out;
}

}  // namespace grebe::pq

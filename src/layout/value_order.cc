#include "layout/value_order.h"

#include <arrow/compute/cast.h>
#include <arrow/extension_type.h>
#include <arrow/util/decimal.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <string_view>
#include <type_traits>

#include "base/column_by_path.h"
#include "curve/ordered_bytes.h"

namespace grebe::layout {
namespace {

using arrow::Type;

double HalfToDouble(uint16_t half) {
  const int exponent = (half >> 10) & 31;
  const double fraction = half & 1023;
  double value = 0;
  if (exponent == 31) {
    value = fraction == 0 ? INFINITY : NAN;
  } else if (exponent == 0) {
    value = std::ldexp(fraction, -24);
  } else {
    value = std::ldexp(1024 + fraction, exponent - 25);
  }
  return (half & 0x8000) != 0 ? -value : value;
}

// A decimal of more than 64 bits: its value where an int64 holds it, else the nearest end.
template <class Decimal>
uint64_t WordOfDecimal(const Decimal& value) {
  static const Decimal kLow(INT64_MIN), kHigh(INT64_MAX);
  if (value < kLow) return curve::OrderedInt(INT64_MIN);
  if (value > kHigh) return curve::OrderedInt(INT64_MAX);
  return curve::OrderedInt(static_cast<int64_t>(value.little_endian_array()[0]));
}

const arrow::Array& StorageOf(const arrow::Array& values) {
  if (values.type_id() != Type::EXTENSION) return values;
  return StorageOf(*static_cast<const arrow::ExtensionArray&>(values).storage());
}

// Numbers of at most 64 bits, and what is stored as them.
template <class Visit>
bool VisitNumber(const arrow::DataType& type, const Visit& visit) {
  const auto plain = [&](auto tag) {
    using Array = typename decltype(tag)::type;
    visit([](const arrow::Array& a, int64_t i) {
      const auto value = static_cast<const Array&>(a).Value(i);
      using Value = std::remove_const_t<decltype(value)>;
      if constexpr (std::is_floating_point_v<Value>) {
        return static_cast<double>(value);
      } else if constexpr (std::is_unsigned_v<Value>) {
        return static_cast<uint64_t>(value);
      } else {
        return static_cast<int64_t>(value);
      }
    });
    return true;
  };
  switch (type.id()) {
    case Type::BOOL: return plain(std::type_identity<arrow::BooleanArray>{});
    case Type::INT8: return plain(std::type_identity<arrow::Int8Array>{});
    case Type::INT16: return plain(std::type_identity<arrow::Int16Array>{});
    case Type::INT32: return plain(std::type_identity<arrow::Int32Array>{});
    case Type::INT64: return plain(std::type_identity<arrow::Int64Array>{});
    case Type::UINT8: return plain(std::type_identity<arrow::UInt8Array>{});
    case Type::UINT16: return plain(std::type_identity<arrow::UInt16Array>{});
    case Type::UINT32: return plain(std::type_identity<arrow::UInt32Array>{});
    case Type::UINT64: return plain(std::type_identity<arrow::UInt64Array>{});
    case Type::FLOAT: return plain(std::type_identity<arrow::FloatArray>{});
    case Type::DOUBLE: return plain(std::type_identity<arrow::DoubleArray>{});
    case Type::DATE32: return plain(std::type_identity<arrow::Date32Array>{});
    case Type::DATE64: return plain(std::type_identity<arrow::Date64Array>{});
    case Type::TIME32: return plain(std::type_identity<arrow::Time32Array>{});
    case Type::TIME64: return plain(std::type_identity<arrow::Time64Array>{});
    case Type::TIMESTAMP: return plain(std::type_identity<arrow::TimestampArray>{});
    case Type::DURATION: return plain(std::type_identity<arrow::DurationArray>{});
    default: return false;
  }
}

// Calls visit(get) with get(array, row) -> a value that the words and comparisons understand:
// int64, uint64, double, std::string_view, Decimal128 or Decimal256. False: no order.
template <class Visit>
bool VisitGetter(const arrow::DataType& type, const Visit& visit) {
  const auto text = [&](auto tag) {
    using Array = typename decltype(tag)::type;
    visit([](const arrow::Array& a, int64_t i) -> std::string_view {
      return static_cast<const Array&>(a).GetView(i);
    });
    return true;
  };
  switch (type.id()) {
    case Type::STRING: return text(std::type_identity<arrow::StringArray>{});
    case Type::BINARY: return text(std::type_identity<arrow::BinaryArray>{});
    case Type::LARGE_STRING: return text(std::type_identity<arrow::LargeStringArray>{});
    case Type::LARGE_BINARY: return text(std::type_identity<arrow::LargeBinaryArray>{});
    case Type::STRING_VIEW: return text(std::type_identity<arrow::StringViewArray>{});
    case Type::BINARY_VIEW: return text(std::type_identity<arrow::BinaryViewArray>{});
    case Type::FIXED_SIZE_BINARY: return text(std::type_identity<arrow::FixedSizeBinaryArray>{});
    case Type::HALF_FLOAT:
      visit([](const arrow::Array& a, int64_t i) {
        return HalfToDouble(static_cast<const arrow::HalfFloatArray&>(a).Value(i));
      });
      return true;
    case Type::DECIMAL32:
      visit([](const arrow::Array& a, int64_t i) {
        const auto& array = static_cast<const arrow::Decimal32Array&>(a);
        return static_cast<int64_t>(arrow::Decimal32(array.GetValue(i)).value());
      });
      return true;
    case Type::DECIMAL64:
      visit([](const arrow::Array& a, int64_t i) {
        const auto& array = static_cast<const arrow::Decimal64Array&>(a);
        return static_cast<int64_t>(arrow::Decimal64(array.GetValue(i)).value());
      });
      return true;
    case Type::DECIMAL128:
      visit([](const arrow::Array& a, int64_t i) {
        return arrow::Decimal128(static_cast<const arrow::Decimal128Array&>(a).GetValue(i));
      });
      return true;
    case Type::DECIMAL256:
      visit([](const arrow::Array& a, int64_t i) {
        return arrow::Decimal256(static_cast<const arrow::Decimal256Array&>(a).GetValue(i));
      });
      return true;
    default: return VisitNumber(type, visit);
  }
}

template <class T>
uint64_t WordOf(const T& value) {
  if constexpr (std::is_same_v<T, int64_t>) {
    return curve::OrderedInt(value);
  } else if constexpr (std::is_same_v<T, uint64_t>) {
    return value;
  } else if constexpr (std::is_same_v<T, double>) {
    return curve::OrderedDouble(value);
  } else if constexpr (std::is_same_v<T, std::string_view>) {
    return curve::OrderedPrefix(value);
  } else {
    return WordOfDecimal(value);
  }
}

template <class T>
int Compare(const T& a, const T& b) {
  if constexpr (std::is_same_v<T, std::string_view>) {
    return a.compare(b);
  } else if constexpr (std::is_same_v<T, double>) {
    const uint64_t x = curve::OrderedDouble(a), y = curve::OrderedDouble(b);
    return x < y ? -1 : x > y ? 1 : 0;
  } else {
    return a < b ? -1 : b < a ? 1 : 0;
  }
}

template <class T>
void AppendValue(const T& value, std::string* bytes) {
  if constexpr (std::is_same_v<T, std::string_view>) {
    bytes->append(value);
  } else if constexpr (std::is_same_v<T, arrow::Decimal128> ||
                       std::is_same_v<T, arrow::Decimal256>) {
    const auto& words = value.little_endian_array();
    curve::AppendOrderedDecimal({words.data(), words.size()}, bytes);
  } else {
    curve::AppendOrdered(WordOf(value), bytes);
  }
}

Status NoOrder(const arrow::DataType& type) {
  return InvalidArgument("rows cannot be ordered by a column of this type", "type",
                         type.ToString());
}

}  // namespace

Status ValueWords(const arrow::Array& values, uint64_t* words) {
  const arrow::Array& storage = StorageOf(values);
  const bool ordered = VisitGetter(*storage.type(), [&](const auto& get) {
    const bool nulls = storage.null_count() != 0;
    for (int64_t i = 0; i < storage.length(); ++i) {
      words[i] = nulls && storage.IsNull(i) ? 0 : WordOf(get(storage, i));
    }
  });
  return ordered ? Status::OK() : NoOrder(*values.type());
}

Status OrderedViews(const arrow::Array& values, std::vector<std::string_view>* views,
                    std::string* bytes) {
  const arrow::Array& storage = StorageOf(values);
  const auto count = static_cast<size_t>(storage.length());
  views->assign(count, {});
  bytes->clear();
  std::vector<size_t> ends;   // of encoded values: *bytes still moves while it grows
  const bool ordered = VisitGetter(*storage.type(), [&](const auto& get) {
    for (size_t i = 0; i < count; ++i) {
      const auto row = static_cast<int64_t>(i);
      const bool null = storage.IsNull(row);
      using Value = decltype(get(storage, row));
      if constexpr (std::is_same_v<Value, std::string_view>) {
        if (!null) (*views)[i] = get(storage, row);
      } else {
        if (!null) AppendValue(get(storage, row), bytes);
        ends.push_back(bytes->size());
      }
    }
  });
  if (!ordered) return NoOrder(*values.type());
  for (size_t i = 0, begin = 0; i < ends.size(); begin = ends[i++]) {
    (*views)[i] = std::string_view(*bytes).substr(begin, ends[i] - begin);
  }
  return Status::OK();
}

bool WordsAreExact(const arrow::DataType& type) {
  switch (type.id()) {
    case Type::EXTENSION:
      return WordsAreExact(*static_cast<const arrow::ExtensionType&>(type).storage_type());
    case Type::FIXED_SIZE_BINARY:
      return static_cast<const arrow::FixedSizeBinaryType&>(type).byte_width() <= 8;
    case Type::STRING:
    case Type::BINARY:
    case Type::LARGE_STRING:
    case Type::LARGE_BINARY:
    case Type::STRING_VIEW:
    case Type::BINARY_VIEW:
    case Type::DECIMAL128:
    case Type::DECIMAL256: return false;
    default: return true;
  }
}

Status CheckOrdered(const arrow::DataType& type, const std::string& column) {
  if (type.id() == Type::EXTENSION) {
    return CheckOrdered(*static_cast<const arrow::ExtensionType&>(type).storage_type(), column);
  }
  if (type.id() == Type::DICTIONARY) {
    return CheckOrdered(*static_cast<const arrow::DictionaryType&>(type).value_type(), column);
  }
  if (VisitGetter(type, [](const auto&) {})) return Status::OK();
  return AddContext(NoOrder(type), "column", column);
}

int CompareValues(const arrow::Array& a, int64_t i, const arrow::Array& b, int64_t j) {
  const arrow::Array& left = StorageOf(a);
  const arrow::Array& right = StorageOf(b);
  const bool left_null = left.IsNull(i), right_null = right.IsNull(j);
  if (left_null || right_null) return static_cast<int>(right_null) - static_cast<int>(left_null);
  int order = 0;
  VisitGetter(*left.type(),
              [&](const auto& get) { order = Compare(get(left, i), get(right, j)); });
  return order;
}

Result<std::shared_ptr<arrow::Array>> ColumnOf(const arrow::RecordBatch& batch,
                                               const std::string& path) {
  ARROW_ASSIGN_OR_RAISE(auto column, ColumnByPath(batch, path));
  if (column->type_id() != Type::DICTIONARY) return column;
  return arrow::compute::Cast(
      *column, static_cast<const arrow::DictionaryType&>(*column->type()).value_type());
}

Result<std::vector<std::shared_ptr<arrow::Array>>> ColumnsOf(
    const arrow::RecordBatch& batch, const std::vector<std::string>& paths) {
  std::vector<std::shared_ptr<arrow::Array>> columns;
  for (const std::string& path : paths) {
    ARROW_ASSIGN_OR_RAISE(auto column, ColumnOf(batch, path));
    columns.push_back(std::move(column));
  }
  return columns;
}

}  // namespace grebe::layout

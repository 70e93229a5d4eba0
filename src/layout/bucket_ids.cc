#include "layout/bucket_ids.h"

#include <arrow/extension_type.h>
#include <arrow/util/decimal.h>

#include "curve/bucket_hash.h"

namespace grebe::layout {
namespace {

using arrow::Type;
using curve::IcebergHash;

// Microseconds of a time or timestamp in a coarser unit wrap only beyond the year 294,000.
int64_t ToMicros(int64_t value, arrow::TimeUnit::type unit) {
  switch (unit) {
    case arrow::TimeUnit::SECOND: return value * 1'000'000;
    case arrow::TimeUnit::MILLI: return value * 1'000;
    default: return value;
  }
}

template <class Array, class Hash>
Status HashEach(const arrow::Array& values, int32_t buckets, uint32_t* ids, const Hash& hash) {
  const auto& array = static_cast<const Array&>(values);
  for (int64_t i = 0; i < array.length(); ++i) {
    ids[i] = static_cast<uint32_t>(array.IsNull(i) ? buckets
                                                   : IcebergHash::Bucket(hash(array, i), buckets));
  }
  return Status::OK();
}

template <class Array>
Status HashInts(const arrow::Array& values, int32_t buckets, uint32_t* ids) {
  return HashEach<Array>(values, buckets, ids, [](const Array& array, int64_t i) {
    return IcebergHash::Long(static_cast<int64_t>(array.Value(i)));
  });
}

template <class Array>
Status HashText(const arrow::Array& values, int32_t buckets, uint32_t* ids) {
  return HashEach<Array>(values, buckets, ids, [](const Array& array, int64_t i) {
    return IcebergHash::Bytes(array.GetView(i));
  });
}

template <class Array>
Status HashTimes(const arrow::Array& values, arrow::TimeUnit::type unit, int32_t buckets,
                 uint32_t* ids) {
  return HashEach<Array>(values, buckets, ids, [unit](const Array& array, int64_t i) {
    const int64_t value = array.Value(i);
    return unit == arrow::TimeUnit::NANO ? IcebergHash::TimestampNs(value)
                                         : IcebergHash::Long(ToMicros(value, unit));
  });
}

template <class Array, class Decimal>
Status HashDecimals(const arrow::Array& values, int32_t buckets, uint32_t* ids) {
  return HashEach<Array>(values, buckets, ids, [](const Array& array, int64_t i) {
    const Decimal value(array.GetValue(i));
    if constexpr (sizeof(Decimal) <= 8) {
      const auto word = static_cast<uint64_t>(static_cast<int64_t>(value.value()));
      return IcebergHash::Decimal({&word, 1});
    } else {
      const auto& words = value.little_endian_array();
      return IcebergHash::Decimal({words.data(), words.size()});
    }
  });
}

}  // namespace

Status BucketIds(const arrow::Array& values, int32_t buckets, uint32_t* ids) {
  const arrow::DataType& type = *values.type();
  switch (type.id()) {
    case Type::INT8: return HashInts<arrow::Int8Array>(values, buckets, ids);
    case Type::INT16: return HashInts<arrow::Int16Array>(values, buckets, ids);
    case Type::INT32: return HashInts<arrow::Int32Array>(values, buckets, ids);
    case Type::INT64: return HashInts<arrow::Int64Array>(values, buckets, ids);
    case Type::UINT8: return HashInts<arrow::UInt8Array>(values, buckets, ids);
    case Type::UINT16: return HashInts<arrow::UInt16Array>(values, buckets, ids);
    case Type::UINT32: return HashInts<arrow::UInt32Array>(values, buckets, ids);
    case Type::DATE32: return HashInts<arrow::Date32Array>(values, buckets, ids);
    case Type::TIME32:
      return HashTimes<arrow::Time32Array>(
          values, static_cast<const arrow::TimeType&>(type).unit(), buckets, ids);
    case Type::TIME64:
      return HashTimes<arrow::Time64Array>(
          values, static_cast<const arrow::TimeType&>(type).unit(), buckets, ids);
    case Type::TIMESTAMP:
      return HashTimes<arrow::TimestampArray>(
          values, static_cast<const arrow::TimestampType&>(type).unit(), buckets, ids);
    case Type::STRING: return HashText<arrow::StringArray>(values, buckets, ids);
    case Type::BINARY: return HashText<arrow::BinaryArray>(values, buckets, ids);
    case Type::LARGE_STRING: return HashText<arrow::LargeStringArray>(values, buckets, ids);
    case Type::LARGE_BINARY: return HashText<arrow::LargeBinaryArray>(values, buckets, ids);
    case Type::STRING_VIEW: return HashText<arrow::StringViewArray>(values, buckets, ids);
    case Type::BINARY_VIEW: return HashText<arrow::BinaryViewArray>(values, buckets, ids);
    case Type::FIXED_SIZE_BINARY:
      return HashText<arrow::FixedSizeBinaryArray>(values, buckets, ids);
    case Type::DECIMAL32:
      return HashDecimals<arrow::Decimal32Array, arrow::Decimal32>(values, buckets, ids);
    case Type::DECIMAL64:
      return HashDecimals<arrow::Decimal64Array, arrow::Decimal64>(values, buckets, ids);
    case Type::DECIMAL128:
      return HashDecimals<arrow::Decimal128Array, arrow::Decimal128>(values, buckets, ids);
    case Type::DECIMAL256:
      return HashDecimals<arrow::Decimal256Array, arrow::Decimal256>(values, buckets, ids);
    case Type::EXTENSION:
      return BucketIds(*static_cast<const arrow::ExtensionArray&>(values).storage(), buckets, ids);
    default:
      return InvalidArgument("Iceberg's bucket transform has no hash for this type", "type",
                             type.ToString());
  }
}

}  // namespace grebe::layout

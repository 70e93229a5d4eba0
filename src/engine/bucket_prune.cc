#include "engine/bucket_prune.h"

#include <arrow/scalar.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "curve/bucket_hash.h"
#include "layout/layout_spec.h"

namespace grebe::engine {
namespace {

using curve::IcebergHash;
using Op = scan::BoundAtom::Op;

// The one bucket that all rows of a file are in.
struct FileBucket {
  int32_t count = 0;
  std::string column;
  std::optional<int64_t> bucket;   // nullopt: the column is null in every row
};

// bucket(16,user_id); nullopt: something else, as buckets of several columns.
std::optional<FileBucket> ParseBucket(const std::string& layout) {
  const auto json = nlohmann::json::parse(layout, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("by") || !json["by"].is_string() ||
      !json.contains("bucket")) {
    return std::nullopt;
  }
  FileBucket out;
  const auto by = layout::ParseLayout(json["by"].get<std::string>());
  if (!by.ok() || by->kind != layout::LayoutKind::kBucket || by->columns.size() != 1) {
    return std::nullopt;
  }
  out.count = by->bucket_count;
  out.column = by->columns.front();
  if (json["bucket"].is_number_integer()) {
    out.bucket = json["bucket"].get<int64_t>();
  } else if (!json["bucket"].is_null()) {
    return std::nullopt;
  }
  return out;
}

int64_t Micros(int64_t value, arrow::TimeUnit::type unit) {
  return unit == arrow::TimeUnit::SECOND ? value * 1000000
         : unit == arrow::TimeUnit::MILLI ? value * 1000 : value;
}

int32_t TimeHash(int64_t value, arrow::TimeUnit::type unit) {
  return unit == arrow::TimeUnit::NANO ? IcebergHash::TimestampNs(value)
                                       : IcebergHash::Long(Micros(value, unit));
}

template <class ScalarType>
int64_t ValueOf(const arrow::Scalar& scalar) {
  return static_cast<int64_t>(static_cast<const ScalarType&>(scalar).value);
}

// The hash of a value; nullopt: of types whose hash depends on how the file stores them (decimals
// of another scale), or that have none.
std::optional<int32_t> HashOf(const arrow::Scalar& value) {
  const auto unit = [&] { return static_cast<const arrow::TimeType&>(*value.type).unit(); };
  switch (value.type->id()) {
    case arrow::Type::INT8: return IcebergHash::Long(ValueOf<arrow::Int8Scalar>(value));
    case arrow::Type::INT16: return IcebergHash::Long(ValueOf<arrow::Int16Scalar>(value));
    case arrow::Type::INT32: return IcebergHash::Long(ValueOf<arrow::Int32Scalar>(value));
    case arrow::Type::INT64: return IcebergHash::Long(ValueOf<arrow::Int64Scalar>(value));
    case arrow::Type::UINT8: return IcebergHash::Long(ValueOf<arrow::UInt8Scalar>(value));
    case arrow::Type::UINT16: return IcebergHash::Long(ValueOf<arrow::UInt16Scalar>(value));
    case arrow::Type::UINT32: return IcebergHash::Long(ValueOf<arrow::UInt32Scalar>(value));
    case arrow::Type::DATE32: return IcebergHash::Long(ValueOf<arrow::Date32Scalar>(value));
    case arrow::Type::TIME32: return TimeHash(ValueOf<arrow::Time32Scalar>(value), unit());
    case arrow::Type::TIME64: return TimeHash(ValueOf<arrow::Time64Scalar>(value), unit());
    case arrow::Type::TIMESTAMP:
      return TimeHash(ValueOf<arrow::TimestampScalar>(value),
                      static_cast<const arrow::TimestampType&>(*value.type).unit());
    case arrow::Type::STRING:
    case arrow::Type::LARGE_STRING:
    case arrow::Type::BINARY:
    case arrow::Type::LARGE_BINARY:
      return IcebergHash::Bytes(static_cast<const arrow::BaseBinaryScalar&>(value).view());
    default: return std::nullopt;
  }
}

bool MayHold(const FileBucket& file, const scan::BoundAtom& atom) {
  if (atom.negated) return true;
  if (atom.op == Op::kIsNull) return !file.bucket;
  if (atom.op != Op::kEqual && atom.op != Op::kIn) return true;
  for (const auto& value : atom.values) {
    const auto hash = HashOf(*value);
    if (!hash) return true;
    if (file.bucket == IcebergHash::Bucket(*hash, file.count)) return true;
  }
  return false;
}

}  // namespace

bool MayMatchBucket(const std::string& layout, const scan::BoundPredicate& predicate) {
  const auto file = ParseBucket(layout);
  if (!file) return true;
  return predicate.MayHold([&](const scan::BoundAtom& atom) {
    const auto& column = predicate.columns()[static_cast<size_t>(atom.column)].path;
    return column != file->column || MayHold(*file, atom);
  });
}

}  // namespace grebe::engine

#include "parquet/bloom_probe.h"

#include <arrow/io/memory.h>
#include <arrow/util/decimal.h>
#include <parquet/bloom_filter.h>
#include <parquet/schema.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "parquet/footer_internal.h"
#include "parquet/guard.h"
#include "parquet/schema_internal.h"
#include "parquet/thrift.h"

namespace grebe::pq {
namespace {

// The header is a handful of bytes; small filters come with it.
constexpr int64_t kFirstReadBytes = 4096;
constexpr int64_t kFilterBytesMax = 32 << 20;

struct Header {
  int32_t filter_bytes = 0;
  int64_t header_bytes = 0;
};

std::optional<Header> ParseHeader(const arrow::Buffer& bytes) {
  ThriftReader in({bytes.data(), static_cast<size_t>(bytes.size())});
  Header header;
  int previous_id = 0;
  ThriftReader::Field field;
  while (in.ReadField(&previous_id, &field)) {
    if (field.type == ThriftReader::kStop) {
      header.header_bytes = in.consumed_bytes();
      if (header.filter_bytes <= 0 || header.filter_bytes > kFilterBytesMax) return std::nullopt;
      return header;
    }
    const bool is_size = field.id == 1 && ThriftReader::IsInt(field.type);
    const bool ok = is_size ? in.ReadI32(&header.filter_bytes)
                            : ThriftReader::IsBool(field.type) || in.Skip(field.type);
    if (!ok) return std::nullopt;
  }
  return std::nullopt;
}

// Where the footer puts a chunk's filter.
struct Place {
  int64_t offset = 0;
  std::optional<int64_t> length;
};

std::optional<Place> PlaceOf(const Footer::Impl& impl, ChunkId chunk) {
  auto place = Guarded("reading chunk metadata", [&]() -> std::optional<Place> {
    const auto meta = impl.metadata->RowGroup(chunk.row_group)->ColumnChunk(chunk.leaf);
    const auto offset = meta->bloom_filter_offset();
    if (!offset) return std::nullopt;
    return Place{*offset, meta->bloom_filter_length()};
  });
  if (!place.ok() || !*place) return std::nullopt;
  const Place& found = **place;
  if (found.offset < 4 || found.offset >= impl.footer_begin) return std::nullopt;
  if (found.length && (*found.length <= 0 || *found.length > kFilterBytesMax + kFirstReadBytes ||
                       *found.length > impl.footer_begin - found.offset)) {
    return std::nullopt;
  }
  return found;
}

bool Overlap(ByteRange a, ByteRange b) { return a.begin < b.end && b.begin < a.end; }

// Whether the bytes are also a chunk's, an index's, or another filter's.
bool ReachesIntoOthers(const Footer::Impl& impl, ChunkId chunk, ByteRange filter) {
  for (int group = 0; group < static_cast<int>(impl.row_counts.size()); ++group) {
    for (int leaf = 0; leaf < impl.leaf_count(); ++leaf) {
      const ChunkMeta& meta = impl.chunk(group, leaf);
      if (Overlap(filter, meta.bytes)) return true;
      if (meta.offset_index && Overlap(filter, *meta.offset_index)) return true;
    }
  }
  // Filters follow each other; looking at this column's and this row group's neighbours is enough
  // to see one that is too long.
  for (int group = 0; group < static_cast<int>(impl.row_counts.size()); ++group) {
    for (int leaf = 0; leaf < impl.leaf_count(); ++leaf) {
      if (group != chunk.row_group && leaf != chunk.leaf) continue;
      if (ChunkId{group, leaf} == chunk) continue;
      const auto other = PlaceOf(impl, {group, leaf});
      if (other && other->offset > filter.begin && other->offset < filter.end) return true;
    }
  }
  return false;
}

Result<std::shared_ptr<arrow::Buffer>> ReadRange(store::Store& store, const Footer::Impl& impl,
                                                 ByteRange range) {
  if (auto held = impl.FromTail(range)) return held;
  const store::ReadRequest request{impl.object, range};
  ARROW_ASSIGN_OR_RAISE(auto buffers, store.Read(std::span(&request, 1)));
  return buffers[0];
}

template <class ScalarType>
auto ValueOf(const arrow::Scalar& scalar) {
  return static_cast<const ScalarType&>(scalar).value;
}

// An integer as the column stores it; nullopt: the type is stored otherwise.
std::optional<int64_t> StoredInteger(const arrow::Scalar& value) {
  switch (value.type->id()) {
    case arrow::Type::INT8: return ValueOf<arrow::Int8Scalar>(value);
    case arrow::Type::INT16: return ValueOf<arrow::Int16Scalar>(value);
    case arrow::Type::INT32: return ValueOf<arrow::Int32Scalar>(value);
    case arrow::Type::INT64: return ValueOf<arrow::Int64Scalar>(value);
    case arrow::Type::UINT8: return ValueOf<arrow::UInt8Scalar>(value);
    case arrow::Type::UINT16: return ValueOf<arrow::UInt16Scalar>(value);
    case arrow::Type::UINT32: return ValueOf<arrow::UInt32Scalar>(value);
    case arrow::Type::UINT64:
      return static_cast<int64_t>(ValueOf<arrow::UInt64Scalar>(value));
    case arrow::Type::DATE32: return ValueOf<arrow::Date32Scalar>(value);
    case arrow::Type::TIME32: return ValueOf<arrow::Time32Scalar>(value);
    case arrow::Type::TIME64: return ValueOf<arrow::Time64Scalar>(value);
    case arrow::Type::TIMESTAMP: return ValueOf<arrow::TimestampScalar>(value);
    case arrow::Type::DURATION: return ValueOf<arrow::DurationScalar>(value);
    case arrow::Type::DECIMAL128: {
      const arrow::Decimal128 decimal = ValueOf<arrow::Decimal128Scalar>(value);
      if (decimal != arrow::Decimal128(static_cast<int64_t>(decimal.low_bits()))) {
        return std::nullopt;
      }
      return static_cast<int64_t>(decimal.low_bits());
    }
    default: return std::nullopt;
  }
}

// The bytes of a fixed-size column; nullopt: not known, or not of this size.
std::optional<std::string> StoredBytes(const arrow::Scalar& value, int32_t size) {
  if (value.type->id() == arrow::Type::DECIMAL128 && size > 0 && size <= 16) {
    // Two's complement, big-endian, cut or sign-extended (a value that fits needs no more).
    const auto bytes = ValueOf<arrow::Decimal128Scalar>(value).ToBytes();
    std::string out(bytes.rbegin(), bytes.rend());
    return out.substr(out.size() - static_cast<size_t>(size));
  }
  if (!arrow::is_base_binary_like(value.type->id())) return std::nullopt;
  const std::string_view view = static_cast<const arrow::BaseBinaryScalar&>(value).view();
  if (view.size() != static_cast<size_t>(size)) return std::nullopt;
  return std::string(view);
}

}  // namespace

struct BloomProbe::Impl {
  ::parquet::BlockSplitBloomFilter filter;
  ::parquet::Type::type physical = ::parquet::Type::UNDEFINED;
  int32_t type_length = 0;
  std::shared_ptr<arrow::DataType> type;

  template <class T>
  bool FindFloat(T value) const {
    if (std::isnan(value)) return true;
    if (value == 0) {
      return filter.FindHash(filter.Hash(T{0})) || filter.FindHash(filter.Hash(-T{0}));
    }
    return filter.FindHash(filter.Hash(value));
  }

  bool Find(const arrow::Scalar& value) const {
    switch (physical) {
      case ::parquet::Type::INT32: {
        const auto stored = StoredInteger(value);
        return !stored || filter.FindHash(filter.Hash(static_cast<int32_t>(*stored)));
      }
      case ::parquet::Type::INT64: {
        const auto stored = StoredInteger(value);
        return !stored || filter.FindHash(filter.Hash(*stored));
      }
      case ::parquet::Type::FLOAT:
        return type->id() != arrow::Type::FLOAT || FindFloat(ValueOf<arrow::FloatScalar>(value));
      case ::parquet::Type::DOUBLE:
        return type->id() != arrow::Type::DOUBLE || FindFloat(ValueOf<arrow::DoubleScalar>(value));
      case ::parquet::Type::BYTE_ARRAY: {
        if (!arrow::is_base_binary_like(type->id())) return true;
        const std::string_view view = static_cast<const arrow::BaseBinaryScalar&>(value).view();
        const ::parquet::ByteArray bytes(static_cast<uint32_t>(view.size()),
                                         reinterpret_cast<const uint8_t*>(view.data()));
        return filter.FindHash(filter.Hash(&bytes));
      }
      case ::parquet::Type::FIXED_LEN_BYTE_ARRAY: {
        const auto stored = StoredBytes(value, type_length);
        if (!stored) return true;
        const ::parquet::FLBA bytes(reinterpret_cast<const uint8_t*>(stored->data()));
        return filter.FindHash(filter.Hash(&bytes, static_cast<uint32_t>(type_length)));
      }
      default: return true;
    }
  }
};

BloomProbe::BloomProbe() : impl_(std::make_unique<Impl>()) {}
BloomProbe::~BloomProbe() = default;

std::optional<ByteRange> BloomProbe::RangeOf(const Footer& footer, ChunkId chunk) {
  const auto& impl = footer.impl();
  const auto place = PlaceOf(impl, chunk);
  if (!place) return std::nullopt;
  const int64_t guess = std::min(kFirstReadBytes, impl.footer_begin - place->offset);
  return ByteRange{place->offset, place->offset + place->length.value_or(guess)};
}

Result<std::shared_ptr<const BloomProbe>> BloomProbe::Read(store::Store& store,
                                                           const Footer& footer, ChunkId chunk) {
  const std::shared_ptr<const BloomProbe> none;
  const auto& impl = footer.impl();
  const auto place = PlaceOf(impl, chunk);
  const auto first = RangeOf(footer, chunk);
  if (!first) return none;
  ARROW_ASSIGN_OR_RAISE(auto bytes, ReadRange(store, impl, *first));
  const auto header = ParseHeader(*bytes);
  if (!header) return none;
  const int64_t size = header->header_bytes + header->filter_bytes;
  if ((place->length && *place->length != size) || size > impl.footer_begin - place->offset) {
    return none;
  }
  const ByteRange whole{place->offset, place->offset + size};
  if (ReachesIntoOthers(impl, chunk, whole)) return none;
  if (bytes->size() < size) {
    ARROW_ASSIGN_OR_RAISE(bytes, ReadRange(store, impl, whole));
  }
  bytes = arrow::SliceBuffer(bytes, 0, size);
  std::shared_ptr<BloomProbe> probe(new BloomProbe());
  const Status status = Guarded("reading a Bloom filter", [&] {
    arrow::io::BufferReader input(bytes);
    probe->impl_->filter =
        ::parquet::BlockSplitBloomFilter::Deserialize(FooterProperties(), &input, size);
    const auto& column = *impl.metadata->schema()->Column(chunk.leaf);
    probe->impl_->physical = column.physical_type();
    probe->impl_->type_length = column.type_length();
    probe->impl_->type = ComparableType(LeafArrowType(*footer.schema(), chunk.leaf));
  });
  if (!status.ok()) return none;
  return std::shared_ptr<const BloomProbe>(std::move(probe));
}

bool BloomProbe::MayHold(const arrow::Scalar& value) const {
  if (!value.is_valid || !value.type->Equals(*impl_->type)) return true;
  return impl_->Find(value);
}

}  // namespace grebe::pq

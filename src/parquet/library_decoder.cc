#include "parquet/library_decoder.h"

#include <parquet/encoding.h>

#include <algorithm>
#include <array>

#include "base/coding.h"
#include "parquet/guard.h"

namespace grebe::pq {
namespace {

constexpr int64_t kBatch = 512;

template <class DType>
class TypedLibraryDecoder : public LibraryDecoder {
 public:
  using T = typename DType::c_type;

  TypedLibraryDecoder(int64_t bytes_max, arrow::MemoryPool* pool)
      : counted_(pool), pool_(&counted_, bytes_max) {}

  void Open(::parquet::Encoding::type encoding, const ::parquet::ColumnDescriptor* descriptor,
            std::span<const uint8_t> values, int64_t value_count_max) {
    decoder_ = ::parquet::MakeTypedDecoder<DType>(encoding, descriptor, &pool_);
    if (decoder_ == nullptr) throw ::parquet::ParquetException("unsupported encoding");
    decoder_->SetData(static_cast<int>(value_count_max), values.data(),
                      static_cast<int>(values.size()));
  }

  Status Skip(int64_t count) override {
    return Each(count, [](int64_t) { return Status::OK(); });
  }

  Status Take(int64_t count, LeafSlice* out) override {
    return Each(count, [&](int64_t batch) { return Append(batch, out); });
  }

 private:
  template <class OnBatch>
  Status Each(int64_t count, OnBatch&& on_batch) {
    while (count > 0) {
      const int64_t batch = std::min(count, kBatch);
      ARROW_ASSIGN_OR_RAISE(const int decoded, Guarded("decoding values", [&] {
        return decoder_->Decode(values_.data(), static_cast<int>(batch));
      }));
      if (decoded != batch) return Corrupt("page has fewer values than its levels say");
      ARROW_RETURN_NOT_OK(on_batch(batch));
      count -= batch;
    }
    return Status::OK();
  }

  Status Append(int64_t batch, LeafSlice* out) {
    uint8_t* to = nullptr;
    if constexpr (std::is_same_v<T, ::parquet::ByteArray>) {
      for (int64_t i = 0; i < batch; ++i) {
        const T& value = values_[static_cast<size_t>(i)];
        ARROW_RETURN_NOT_OK(out->values.Grow(4 + static_cast<int64_t>(value.len), &to));
        StoreLe<uint32_t>(to, value.len);
        if (value.len > 0) std::memcpy(to + 4, value.ptr, value.len);
      }
    } else if constexpr (std::is_same_v<T, ::parquet::FixedLenByteArray>) {
      const int64_t width = out->shape.width;
      ARROW_RETURN_NOT_OK(out->values.Grow(batch * width, &to));
      for (int64_t i = 0; i < batch; ++i, to += width) {
        std::memcpy(to, values_[static_cast<size_t>(i)].ptr, static_cast<size_t>(width));
      }
    } else {
      const auto bytes = batch * static_cast<int64_t>(sizeof(T));
      ARROW_RETURN_NOT_OK(out->values.Grow(bytes, &to));
      std::memcpy(to, values_.data(), static_cast<size_t>(bytes));
    }
    return Status::OK();
  }

  arrow::ProxyMemoryPool counted_;  // what this decoder alone allocates
  arrow::CappedMemoryPool pool_;
  std::unique_ptr<typename ::parquet::EncodingTraits<DType>::Decoder> decoder_;
  std::array<T, kBatch> values_;
};

// A page of nulls only may have no bytes at all.
class EmptyDecoder : public LibraryDecoder {
 public:
  Status Skip(int64_t count) override { return None(count); }
  Status Take(int64_t count, LeafSlice*) override { return None(count); }

 private:
  static Status None(int64_t count) {
    return count == 0 ? Status::OK() : Corrupt("page has levels but no values");
  }
};

// The head of DELTA data claims a number of values, by which libparquet allocates.
Status CheckDeltaHead(std::span<const uint8_t> values, int64_t value_count_max) {
  ByteReader in(values.data(), values.size());
  uint64_t block = 0, mini_blocks = 0, count = 0;
  if (!in.ReadVarint(&block) || !in.ReadVarint(&mini_blocks) || !in.ReadVarint(&count)) {
    return Corrupt("DELTA page has no head");
  }
  if (count > static_cast<uint64_t>(value_count_max)) {
    return Corrupt("DELTA page claims more values than the page has", "values", count,
                   "values_max", value_count_max);
  }
  // Each block has a byte for every miniblock.
  if (count > 1 && mini_blocks > values.size()) {
    return Corrupt("DELTA page claims more miniblocks than it can hold", "miniblocks",
                   mini_blocks);
  }
  return Status::OK();
}

template <class DType>
Result<std::unique_ptr<LibraryDecoder>> Make(::parquet::Encoding::type encoding,
                                             const ::parquet::ColumnDescriptor* descriptor,
                                             std::span<const uint8_t> values,
                                             int64_t value_count_max, int64_t bytes_max,
                                             arrow::MemoryPool* pool) {
  auto decoder = std::make_unique<TypedLibraryDecoder<DType>>(bytes_max, pool);
  ARROW_RETURN_NOT_OK(Guarded("opening a value decoder", [&] {
    decoder->Open(encoding, descriptor, values, value_count_max);
  }));
  return decoder;
}

}  // namespace

Result<std::unique_ptr<LibraryDecoder>> MakeLibraryDecoder(
    int32_t encoding, const ::parquet::ColumnDescriptor* descriptor,
    std::span<const uint8_t> values, int64_t value_count_max, int64_t bytes_max,
    arrow::MemoryPool* pool) {
  using ::parquet::Encoding;
  using ::parquet::Type;
  const auto type = descriptor->physical_type();
  const bool is_integer = type == Type::INT32 || type == Type::INT64;
  const bool is_bytes = type == Type::BYTE_ARRAY;
  const bool exists =
      (encoding == Encoding::DELTA_BINARY_PACKED && is_integer) ||
      (encoding == Encoding::DELTA_LENGTH_BYTE_ARRAY && is_bytes) ||
      (encoding == Encoding::DELTA_BYTE_ARRAY &&
       (is_bytes || type == Type::FIXED_LEN_BYTE_ARRAY));
  if (!exists) {
    return Unsupported("encoding does not exist for this type", "encoding", encoding, "type",
                       static_cast<int>(type));
  }
  if (values.empty()) return std::make_unique<EmptyDecoder>();
  ARROW_RETURN_NOT_OK(CheckDeltaHead(values, value_count_max));
  const auto as = static_cast<Encoding::type>(encoding);
  switch (type) {
    case Type::INT32:
      return Make<::parquet::Int32Type>(as, descriptor, values, value_count_max, bytes_max, pool);
    case Type::INT64:
      return Make<::parquet::Int64Type>(as, descriptor, values, value_count_max, bytes_max, pool);
    case Type::BYTE_ARRAY:
      return Make<::parquet::ByteArrayType>(as, descriptor, values, value_count_max, bytes_max,
                                            pool);
    default:
      return Make<::parquet::FLBAType>(as, descriptor, values, value_count_max, bytes_max, pool);
  }
}

}  // namespace grebe::pq

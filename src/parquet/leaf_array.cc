#include "parquet/leaf_array.h"

#include <arrow/array/builder_dict.h>
#include <arrow/buffer.h>
#include <arrow/extension_type.h>
#include <arrow/util/bit_util.h>
#include <arrow/util/decimal.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "base/coding.h"

namespace grebe::pq {
namespace {

using arrow::ArrayData;
using arrow::Buffer;
using arrow::DataType;
using arrow::Type;
using ArrayDataPtr = std::shared_ptr<ArrayData>;
using BufferPtr = std::shared_ptr<Buffer>;
using Physical = ::parquet::Type;

constexpr int64_t kMillisecondsPerDay = 86'400'000;

Result<BufferPtr> NewBuffer(int64_t bytes, arrow::MemoryPool* pool) {
  ARROW_ASSIGN_OR_RAISE(std::unique_ptr<Buffer> buffer, arrow::AllocateBuffer(bytes, pool));
  return BufferPtr(std::move(buffer));
}

// Builds one leaf's array.
class LeafArrayBuilder {
 public:
  LeafArrayBuilder(const LeafSlices& leaf, const ::parquet::internal::LevelInfo& level_info,
                   std::shared_ptr<DataType> type, bool nullable, arrow::MemoryPool* pool)
      : leaf_(leaf), level_info_(level_info), type_(std::move(type)), nullable_(nullable),
        pool_(pool), shape_(leaf.slices.empty() ? LeafShape() : leaf.slices[0]->shape) {}

  Result<ArrayDataPtr> Build() {
    ARROW_RETURN_NOT_OK(PlaceSlots());
    switch (type_->id()) {
      case Type::NA: return ArrayData::Make(type_, slots_, {nullptr}, slots_);
      case Type::BOOL: return Bools();
      case Type::INT8:
      case Type::UINT8: return Converted<int32_t, int8_t>(Physical::INT32, Narrow<int8_t>());
      case Type::INT16:
      case Type::UINT16: return Converted<int32_t, int16_t>(Physical::INT32, Narrow<int16_t>());
      case Type::INT32:
      case Type::UINT32:
      case Type::DATE32:
      case Type::TIME32: return SameWidth(Physical::INT32);
      case Type::INT64:
      case Type::UINT64:
      case Type::TIME64:
      case Type::DURATION: return SameWidth(Physical::INT64);
      case Type::DATE64:
        return Converted<int32_t, int64_t>(
            Physical::INT32, [](int32_t days) { return int64_t{days} * kMillisecondsPerDay; });
      case Type::TIMESTAMP:
        return shape_.type == Physical::INT96 ? Int96() : SameWidth(Physical::INT64);
      case Type::FLOAT: return SameWidth(Physical::FLOAT);
      case Type::DOUBLE: return SameWidth(Physical::DOUBLE);
      case Type::HALF_FLOAT:
      case Type::FIXED_SIZE_BINARY: return SameWidth(Physical::FIXED_LEN_BYTE_ARRAY);
      case Type::STRING:
      case Type::BINARY: return ByteArrays<int32_t>();
      case Type::LARGE_STRING:
      case Type::LARGE_BINARY: return ByteArrays<int64_t>();
      case Type::STRING_VIEW:
      case Type::BINARY_VIEW: return Views();
      case Type::DECIMAL32: return Decimals<arrow::Decimal32>();
      case Type::DECIMAL64: return Decimals<arrow::Decimal64>();
      case Type::DECIMAL128: return Decimals<arrow::Decimal128>();
      case Type::DECIMAL256: return Decimals<arrow::Decimal256>();
      case Type::DICTIONARY: return Dictionaries();
      default: return BadType();
    }
  }

 private:
  template <class To>
  struct Narrow {
    To operator()(int32_t value) const { return static_cast<To>(value); }
  };

  Status BadType() const {
    return Unsupported("a column of this type cannot be assembled", "type", type_->ToString(),
                       "physical_type", static_cast<int>(shape_.type));
  }

  // Finds the number of slots, of nulls, and, where there are nulls, which slots are valid.
  Status PlaceSlots() {
    if (shape_.definition_level_max == 0) {
      slots_ = leaf_.row_count;
      return Status::OK();
    }
    const int16_t slot_level = level_info_.repeated_ancestor_def_level;
    for (const auto& slice : leaf_.slices) {
      if (slot_level == 0) {
        slots_ += slice->definition_levels.size();
        continue;
      }
      for (const int16_t level : slice->definition_levels.span()) slots_ += level >= slot_level;
    }
    nulls_ = slots_ - leaf_.value_count;
    if (nulls_ < 0) return Corrupt("column has more values than slots");
    if (nulls_ == 0) return Status::OK();
    ARROW_ASSIGN_OR_RAISE(validity_, NewBuffer(arrow::bit_util::BytesForBits(slots_), pool_));
    uint8_t* bits = validity_->mutable_data();
    std::memset(bits, 0, static_cast<size_t>(validity_->size()));
    const int16_t value_level = shape_.definition_level_max;
    int64_t slot = 0;
    for (const auto& slice : leaf_.slices) {
      for (const int16_t level : slice->definition_levels.span()) {
        if (level == value_level) arrow::bit_util::SetBit(bits, slot);
        slot += level >= slot_level;
      }
    }
    return Status::OK();
  }

  // Calls on_value(slot, value's bytes) for every value. Byte arrays: from their length on.
  template <class OnValue>
  void EachValue(OnValue&& on_value) const {
    int64_t slot = 0;
    const uint8_t* bits = validity_ == nullptr ? nullptr : validity_->data();
    for (const auto& slice : leaf_.slices) {
      const uint8_t* value = slice->values.data();
      for (int64_t left = slice->value_count; left > 0; --left, ++slot) {
        while (bits != nullptr && !arrow::bit_util::GetBit(bits, slot)) ++slot;
        on_value(slot, value);
        value += shape_.width != 0 ? shape_.width : 4 + int64_t{LoadLe<uint32_t>(value)};
      }
    }
  }

  ArrayDataPtr Finish(BufferPtr values) const {
    return FinishAll({nullptr, std::move(values)});
  }
  ArrayDataPtr FinishAll(std::vector<BufferPtr> buffers) const {
    const bool has_nulls = nullable_ && nulls_ > 0;
    if (has_nulls) buffers[0] = validity_;
    return ArrayData::Make(type_, slots_, std::move(buffers), has_nulls ? nulls_ : 0);
  }

  // Slots that hold no value are zero.
  Result<BufferPtr> NewSlots(int64_t width) const {
    ARROW_ASSIGN_OR_RAISE(BufferPtr buffer, NewBuffer(slots_ * width, pool_));
    if (nulls_ > 0) std::memset(buffer->mutable_data(), 0, static_cast<size_t>(buffer->size()));
    return buffer;
  }

  template <size_t kWidth>
  void CopySpaced(uint8_t* to) const {
    EachValue([&](int64_t slot, const uint8_t* value) {
      std::memcpy(to + slot * static_cast<int64_t>(kWidth), value, kWidth);
    });
  }

  Result<ArrayDataPtr> SameWidth(Physical::type expected) {
    if (!leaf_.slices.empty() && shape_.type != expected) return BadType();
    const auto width = static_cast<int64_t>(
        arrow::internal::checked_cast<const arrow::FixedWidthType&>(*type_).bit_width() / 8);
    if (!leaf_.slices.empty() && width != shape_.width) return BadType();
    ARROW_ASSIGN_OR_RAISE(BufferPtr values, NewSlots(width));
    uint8_t* to = values->mutable_data();
    if (nulls_ == 0) {
      for (const auto& slice : leaf_.slices) {
        const auto bytes = static_cast<size_t>(slice->values.size());
        if (bytes > 0) std::memcpy(to, slice->values.data(), bytes);
        to += bytes;
      }
    } else if (width == 4) {
      CopySpaced<4>(to);
    } else if (width == 8) {
      CopySpaced<8>(to);
    } else {
      EachValue([&](int64_t slot, const uint8_t* value) {
        std::memcpy(to + slot * width, value, static_cast<size_t>(width));
      });
    }
    return Finish(std::move(values));
  }

  template <class From, class To, class Convert>
  Result<ArrayDataPtr> Converted(Physical::type expected, Convert convert) {
    if (!leaf_.slices.empty() && shape_.type != expected) return BadType();
    ARROW_ASSIGN_OR_RAISE(BufferPtr values, NewSlots(sizeof(To)));
    auto* to = reinterpret_cast<To*>(values->mutable_data());
    EachValue([&](int64_t slot, const uint8_t* value) { to[slot] = convert(LoadLe<From>(value)); });
    return Finish(std::move(values));
  }

  Result<ArrayDataPtr> Int96() {
    const auto unit = arrow::internal::checked_cast<const arrow::TimestampType&>(*type_).unit();
    if (unit != arrow::TimeUnit::NANO) return BadType();
    ARROW_ASSIGN_OR_RAISE(BufferPtr values, NewSlots(8));
    auto* to = reinterpret_cast<int64_t*>(values->mutable_data());
    EachValue([&](int64_t slot, const uint8_t* value) {
      const auto moment = LoadLe<::parquet::Int96>(value);
      // As libparquet has it: Julian day 0 is taken for a null's place.
      to[slot] = moment.value[2] == 0 ? 0 : ::parquet::Int96GetNanoSeconds(moment);
    });
    return Finish(std::move(values));
  }

  Result<ArrayDataPtr> Bools() {
    if (!leaf_.slices.empty() && shape_.type != Physical::BOOLEAN) return BadType();
    ARROW_ASSIGN_OR_RAISE(BufferPtr values,
                          NewBuffer(arrow::bit_util::BytesForBits(slots_), pool_));
    uint8_t* bits = values->mutable_data();
    std::memset(bits, 0, static_cast<size_t>(values->size()));
    EachValue([&](int64_t slot, const uint8_t* value) {
      if (*value != 0) arrow::bit_util::SetBit(bits, slot);
    });
    return Finish(std::move(values));
  }

  template <class Offset>
  Result<ArrayDataPtr> ByteArrays() {
    if (!leaf_.slices.empty() && shape_.type != Physical::BYTE_ARRAY) return FixedAsByteArrays();
    const int64_t bytes = leaf_.value_bytes - 4 * leaf_.value_count;
    if (bytes > std::numeric_limits<Offset>::max()) {
      return LimitExceeded("column does not fit an array with 32-bit offsets", "bytes", bytes);
    }
    ARROW_ASSIGN_OR_RAISE(BufferPtr offsets,
                          NewBuffer((slots_ + 1) * static_cast<int64_t>(sizeof(Offset)), pool_));
    ARROW_ASSIGN_OR_RAISE(BufferPtr values, NewBuffer(bytes, pool_));
    auto* offset = reinterpret_cast<Offset*>(offsets->mutable_data());
    uint8_t* to = values->mutable_data();
    Offset at = 0;
    int64_t next = 0;  // the first slot whose offset is not set
    EachValue([&](int64_t slot, const uint8_t* value) {
      while (next <= slot) offset[next++] = at;
      const auto length = LoadLe<uint32_t>(value);
      if (length > 0) std::memcpy(to + at, value + 4, length);
      at += static_cast<Offset>(length);
    });
    while (next <= slots_) offset[next++] = at;
    return FinishAll({nullptr, std::move(offsets), std::move(values)});
  }

  // An Arrow schema in the file may say binary where the values have a fixed size: libparquet
  // refuses or casts, by type; nothing here.
  Result<ArrayDataPtr> FixedAsByteArrays() { return BadType(); }

  Result<ArrayDataPtr> Views() {
    if (!leaf_.slices.empty() && shape_.type != Physical::BYTE_ARRAY) return BadType();
    const int64_t bytes = leaf_.value_bytes - 4 * leaf_.value_count;
    if (bytes > std::numeric_limits<int32_t>::max()) {
      return LimitExceeded("column does not fit one view buffer", "bytes", bytes);
    }
    using View = arrow::BinaryViewType::c_type;
    ARROW_ASSIGN_OR_RAISE(BufferPtr views,
                          NewBuffer(slots_ * static_cast<int64_t>(sizeof(View)), pool_));
    std::memset(views->mutable_data(), 0, static_cast<size_t>(views->size()));
    ARROW_ASSIGN_OR_RAISE(BufferPtr values, NewBuffer(bytes, pool_));
    auto* view = reinterpret_cast<View*>(views->mutable_data());
    uint8_t* to = values->mutable_data();
    int32_t at = 0;
    EachValue([&](int64_t slot, const uint8_t* value) {
      const auto length = static_cast<int32_t>(LoadLe<uint32_t>(value));
      if (length <= arrow::BinaryViewType::kInlineSize) {
        view[slot].inlined = {length, {}};
        std::memcpy(view[slot].inlined.data.data(), value + 4, static_cast<size_t>(length));
        return;
      }
      view[slot].ref = {length, {}, 0, at};
      std::memcpy(view[slot].ref.prefix.data(), value + 4, arrow::BinaryViewType::kPrefixSize);
      std::memcpy(to + at, value + 4, static_cast<size_t>(length));
      at += length;
    });
    return FinishAll({nullptr, std::move(views), std::move(values)});
  }

  template <class Decimal>
  Result<ArrayDataPtr> Decimals() {
    constexpr auto kWidth = static_cast<int64_t>(sizeof(Decimal));
    ARROW_ASSIGN_OR_RAISE(BufferPtr values, NewSlots(kWidth));
    uint8_t* to = values->mutable_data();
    Status bad;
    switch (shape_.type) {
      case Physical::INT32:
        EachValue([&](int64_t slot, const uint8_t* value) {
          Decimal(static_cast<int64_t>(LoadLe<int32_t>(value))).ToBytes(to + slot * kWidth);
        });
        break;
      case Physical::INT64:
        EachValue([&](int64_t slot, const uint8_t* value) {
          Decimal(LoadLe<int64_t>(value)).ToBytes(to + slot * kWidth);
        });
        break;
      case Physical::FIXED_LEN_BYTE_ARRAY:
        EachValue([&](int64_t slot, const uint8_t* value) {
          bad &= BigEndian(value, shape_.width, kWidth, to + slot * kWidth);
        });
        break;
      case Physical::BYTE_ARRAY:
        EachValue([&](int64_t slot, const uint8_t* value) {
          bad &= BigEndian(value + 4, LoadLe<uint32_t>(value), kWidth, to + slot * kWidth);
        });
        break;
      default:
        if (!leaf_.slices.empty()) return BadType();
    }
    ARROW_RETURN_NOT_OK(bad);
    return Finish(std::move(values));
  }

  // Two's complement, most significant byte first, to `width` bytes, least significant first.
  static Status BigEndian(const uint8_t* value, int64_t size, int64_t width, uint8_t* to) {
    if (size == 0) return Corrupt("decimal has no bytes");
    const uint8_t sign = (value[0] & 0x80) != 0 ? 0xff : 0;
    const int64_t extra = std::max<int64_t>(size - width, 0);
    for (int64_t i = 0; i < extra; ++i) {
      if (value[i] != sign) return Corrupt("decimal does not fit its type", "bytes", size);
    }
    if (extra > 0 && ((value[extra] ^ sign) & 0x80) != 0) {
      return Corrupt("decimal does not fit its type", "bytes", size);
    }
    for (int64_t i = 0; i < width; ++i) to[i] = i < size ? value[size - 1 - i] : sign;
    return Status::OK();
  }

  template <class ValueType>
  Result<ArrayDataPtr> DictionariesOf() {
    arrow::Dictionary32Builder<ValueType> builder(pool_);
    ARROW_RETURN_NOT_OK(builder.Reserve(slots_));
    Status status;
    int64_t next = 0;
    EachValue([&](int64_t slot, const uint8_t* value) {
      if (slot > next) status &= builder.AppendNulls(slot - next);
      next = slot + 1;
      status &= builder.Append(
          std::string_view(reinterpret_cast<const char*>(value) + 4, LoadLe<uint32_t>(value)));
    });
    ARROW_RETURN_NOT_OK(status);
    if (slots_ > next) ARROW_RETURN_NOT_OK(builder.AppendNulls(slots_ - next));
    std::shared_ptr<arrow::Array> array;
    ARROW_RETURN_NOT_OK(builder.Finish(&array));
    ArrayDataPtr data = array->data()->Copy();
    ARROW_ASSIGN_OR_RAISE(data->buffers[1], NarrowIndexes(*data));
    data->type = type_;  // with its "ordered"
    if (!nullable_) {
      data->buffers[0] = nullptr;
      data->null_count = 0;
    }
    return data;
  }

  // The 32-bit indexes in the type that the Arrow schema in the file asks for.
  Result<BufferPtr> NarrowIndexes(const ArrayData& indexes) const {
    const auto& type = arrow::internal::checked_cast<const arrow::DictionaryType&>(*type_);
    switch (type.index_type()->id()) {
      case Type::INT8: return IndexesAs<int8_t>(indexes);
      case Type::UINT8: return IndexesAs<uint8_t>(indexes);
      case Type::INT16: return IndexesAs<int16_t>(indexes);
      case Type::UINT16: return IndexesAs<uint16_t>(indexes);
      case Type::INT64:
      case Type::UINT64: return IndexesAs<int64_t>(indexes);
      default: return indexes.buffers[1];
    }
  }
  template <class To>
  Result<BufferPtr> IndexesAs(const ArrayData& indexes) const {
    if (indexes.dictionary->length > 0 &&
        indexes.dictionary->length - 1 > static_cast<int64_t>(std::numeric_limits<To>::max())) {
      return LimitExceeded("dictionary does not fit its index type", "type", type_->ToString(),
                           "entries", indexes.dictionary->length);
    }
    ARROW_ASSIGN_OR_RAISE(BufferPtr buffer,
                          NewBuffer(slots_ * static_cast<int64_t>(sizeof(To)), pool_));
    std::copy_n(reinterpret_cast<const int32_t*>(indexes.buffers[1]->data()), slots_,
                reinterpret_cast<To*>(buffer->mutable_data()));
    return buffer;
  }

  // The dictionary holds the values of these rows, in the order in which they appear.
  Result<ArrayDataPtr> Dictionaries() {
    const auto& type = arrow::internal::checked_cast<const arrow::DictionaryType&>(*type_);
    if (!leaf_.slices.empty() && shape_.type != Physical::BYTE_ARRAY) return BadType();
    switch (type.value_type()->id()) {
      case Type::STRING: return DictionariesOf<arrow::StringType>();
      case Type::BINARY: return DictionariesOf<arrow::BinaryType>();
      case Type::LARGE_STRING: return DictionariesOf<arrow::LargeStringType>();
      case Type::LARGE_BINARY: return DictionariesOf<arrow::LargeBinaryType>();
      default: return BadType();
    }
  }

  const LeafSlices& leaf_;
  const ::parquet::internal::LevelInfo& level_info_;
  std::shared_ptr<DataType> type_;
  bool nullable_;
  arrow::MemoryPool* pool_;
  LeafShape shape_;
  int64_t slots_ = 0;
  int64_t nulls_ = 0;
  BufferPtr validity_;  // where nulls_ > 0
};

}  // namespace

LeafSlices::LeafSlices(std::span<const std::shared_ptr<const LeafSlice>> slices_)
    : slices(slices_) {
  for (const auto& slice : slices) {
    row_count += slice->row_count;
    level_count += slice->level_count();
    value_count += slice->value_count;
    value_bytes += slice->values.size();
  }
}

Result<std::shared_ptr<ArrayData>> BuildLeafArray(
    const LeafSlices& leaf, const ::parquet::internal::LevelInfo& level_info,
    const std::shared_ptr<DataType>& type, bool nullable, arrow::MemoryPool* pool) {
  return LeafArrayBuilder(leaf, level_info, type, nullable, pool).Build();
}

}  // namespace grebe::pq

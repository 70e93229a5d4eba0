#include "parquet/leaf_values.h"

#include <arrow/type.h>
#include <arrow/type_traits.h>
#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <string_view>

#include "base/hash.h"

namespace grebe::pq {
namespace {

constexpr int64_t kLengthBytes = 4;        // before each string

// Which values occurred, by hash: from the share of bits that stayed clear follows how many differ
// (linear counting).
class HashSet {
 public:
  explicit HashSet(int64_t values) {
    constexpr uint64_t kBitsMin = 1 << 12;
    constexpr uint64_t kBitsMax = 1 << 24;
    const auto bits = std::bit_ceil(
        std::clamp(static_cast<uint64_t>(values) * 2, kBitsMin, kBitsMax));
    words_.resize(bits / 64);
    mask_ = bits - 1;
  }
  void Add(uint64_t hash) {
    const uint64_t bit = hash & mask_;
    words_[bit >> 6] |= uint64_t{1} << (bit & 63);
  }
  int64_t Estimate() const {
    uint64_t set = 0;
    for (const uint64_t word : words_) set += static_cast<uint64_t>(std::popcount(word));
    const double bits = static_cast<double>(mask_) + 1;
    const double clear = std::max(bits - static_cast<double>(set), 1.0);
    return std::llround(bits * std::log(bits / clear));
  }

 private:
  std::vector<uint64_t> words_;
  uint64_t mask_ = 0;
};

template <class Word>
void AddWords(const arrow::Array& values, HashSet* out) {
  const Word* words = values.data()->GetValues<Word>(1);
  for (int64_t i = 0; i < values.length(); ++i) {
    if (values.IsValid(i)) out->Add(Mix64(static_cast<uint64_t>(words[i]) + 1));
  }
}

void AddFixed(const arrow::Array& values, int64_t width, HashSet* out) {
  const uint8_t* bytes = values.data()->GetValues<uint8_t>(1, 0) + values.offset() * width;
  for (int64_t i = 0; i < values.length(); ++i) {
    if (values.IsValid(i)) {
      out->Add(XXH3_64bits(bytes + i * width, static_cast<size_t>(width)));
    }
  }
}

template <class ArrayType>
void AddStrings(const arrow::Array& values, HashSet* out) {
  const auto& strings = static_cast<const ArrayType&>(values);
  for (int64_t i = 0; i < values.length(); ++i) {
    if (!values.IsValid(i)) continue;
    const std::string_view value = strings.GetView(i);
    out->Add(XXH3_64bits(value.data(), value.size()));
  }
}

int64_t WidthBits(const arrow::DataType& type) {
  return arrow::is_fixed_width(type) && type.id() != arrow::Type::DICTIONARY
             ? static_cast<const arrow::FixedWidthType&>(type).bit_width()
             : 0;
}

}  // namespace

ValueSizes::ValueSizes(const arrow::Array& values, int64_t width_bits) {
  switch (values.type_id()) {
    case arrow::Type::STRING:
    case arrow::Type::BINARY:
      offsets32_ = static_cast<const arrow::BinaryArray&>(values).raw_value_offsets();
      break;
    case arrow::Type::LARGE_STRING:
    case arrow::Type::LARGE_BINARY:
      offsets64_ = static_cast<const arrow::LargeBinaryArray&>(values).raw_value_offsets();
      break;
    case arrow::Type::STRING_VIEW:
    case arrow::Type::BINARY_VIEW: {
      const auto& views = static_cast<const arrow::BinaryViewArray&>(values);
      view_offsets_.reserve(static_cast<size_t>(values.length()) + 1);
      view_offsets_.push_back(0);
      for (int64_t i = 0; i < values.length(); ++i) {
        const size_t size = values.IsValid(i) ? views.GetView(i).size() : 0;
        view_offsets_.push_back(view_offsets_.back() + static_cast<int64_t>(size));
      }
      offsets64_ = view_offsets_.data();
      break;
    }
    default: width_bits_ = width_bits > 0 ? width_bits : WidthBits(*values.type()); break;
  }
}

int64_t ValueSizes::BytesOf(int64_t begin, int64_t end) const {
  if (offsets32_ != nullptr) {
    return offsets32_[end] - offsets32_[begin] + kLengthBytes * (end - begin);
  }
  if (offsets64_ != nullptr) {
    return offsets64_[end] - offsets64_[begin] + kLengthBytes * (end - begin);
  }
  return (width_bits_ * (end - begin) + 7) / 8;
}

int64_t EstimateDistinct(const arrow::Array& values) {
  if (values.length() == 0) return 0;
  HashSet set(values.length());
  switch (values.type_id()) {
    case arrow::Type::BOOL:
    case arrow::Type::NA: return 0;
    case arrow::Type::STRING:
    case arrow::Type::BINARY: AddStrings<arrow::BinaryArray>(values, &set); break;
    case arrow::Type::LARGE_STRING:
    case arrow::Type::LARGE_BINARY: AddStrings<arrow::LargeBinaryArray>(values, &set); break;
    case arrow::Type::STRING_VIEW:
    case arrow::Type::BINARY_VIEW: AddStrings<arrow::BinaryViewArray>(values, &set); break;
    default:
      switch (WidthBits(*values.type())) {
        case 0: return 0;
        case 8: AddWords<uint8_t>(values, &set); break;
        case 16: AddWords<uint16_t>(values, &set); break;
        case 32: AddWords<uint32_t>(values, &set); break;
        case 64: AddWords<uint64_t>(values, &set); break;
        default: AddFixed(values, WidthBits(*values.type()) / 8, &set); break;
      }
  }
  return set.Estimate();
}

}  // namespace grebe::pq

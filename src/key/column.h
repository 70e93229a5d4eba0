// One key column, converted: words, or byte strings. Private to src/key.
#pragma once

#include <arrow/array.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "key/key.h"

namespace grebe::key::internal {

struct Column {
  bool is_word = true;
  std::vector<uint64_t> words;             // word kinds
  std::vector<std::string_view> payloads;  // the others; into the array or into arena
  std::vector<uint8_t> nulls;              // empty: none, else one byte a row
  std::vector<uint8_t> bad;                // likewise: the key type cannot represent the value
  std::shared_ptr<arrow::Array> held;      // keeps what payloads point to
  std::shared_ptr<const std::string> arena;

  int64_t count() const {
    return static_cast<int64_t>(is_word ? words.size() : payloads.size());
  }
};

// Converts an array into the form of type. `query` also admits numbers of another kind. Rows that
// are null have word 0 or an empty payload. Errors: Unsupported (types that do not compare).
Result<Column> EncodeColumn(const KeyType& type, const std::shared_ptr<arrow::Array>& array,
                            bool query);

// Rewrites bits of a double so that equal values are equal: -0.0 is 0.0, every NaN is one.
inline uint64_t CanonicalDouble(double value) {
  constexpr uint64_t kNaN = 0x7ff8000000000000ULL;
  uint64_t bits;
  static_assert(sizeof(bits) == sizeof(value));
  __builtin_memcpy(&bits, &value, sizeof(bits));
  if ((bits << 1) == 0) return 0;
  return (bits << 1) > 0xffe0000000000000ULL ? kNaN : bits;
}

}  // namespace grebe::key::internal

// Keys as bytes that order as their values do: what sorted indexes hold. docs/format/key.md,
// "Ordered form". memcmp orders composite keys column by column; nulls come first, NaN after every
// other number, -0.0 equals 0.0. Equal keys have equal bytes, and no key's bytes begin with another
// key's. Threads: pure functions.
#pragma once

#include <arrow/array.h>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "key/key.h"

namespace grebe::key {

struct OrderedKeys {
  std::string bytes;
  std::vector<uint64_t> offsets = {0};   // key i is bytes[offsets[i], offsets[i + 1])

  int64_t count() const { return static_cast<int64_t>(offsets.size()) - 1; }
  std::string_view view(int64_t i) const {
    return std::string_view(bytes).substr(offsets[i], offsets[i + 1] - offsets[i]);
  }
};

// The ordered forms of canonical keys of these types. Replaces *out. Errors: Corrupt when the keys
// are not canonical forms of the types.
Status OrderKeys(std::span<const KeyType> types, const EncodedKeys& keys, OrderedKeys* out);

// The keys whose ordered form is in [begin, end), or from begin on.
struct OrderedRange {
  std::string begin;
  std::string end;
  bool has_end = true;

  bool empty() const { return has_end && begin >= end; }
  bool Contains(std::string_view key) const { return key >= begin && (!has_end || key < end); }
};

struct RangeBound {
  std::shared_ptr<arrow::Array> value;   // one row, not null
  bool inclusive = true;
};

// The first key columns equal to given values, then, maybe, the next one within bounds.
struct RangeQuery {
  arrow::ArrayVector equal;              // one row each; a null equals nulls
  std::optional<RangeBound> lower, upper;
};

// The keys that a query means. Values compare as numbers do whatever their type (>= 7.5 of an int
// key is >= 8). A null, and a NaN, is within no bounds; bounds that are NaN hold nothing. Errors:
// InvalidArgument (too many columns, a null bound, a bound that the key's type cannot be compared
// with exactly), Unsupported (types that do not compare).
Result<OrderedRange> OrderRange(std::span<const KeyType> types, const RangeQuery& query);

}  // namespace grebe::key

// Small value types that must not be mixed up: ids, row numbers, half-open ranges.
#pragma once

#include <compare>
#include <cstdint>

namespace grebe {

// The ordinal of a data file within one fragment of an index. Persisted as u32.
struct FileId {
  uint32_t value = 0;
  auto operator<=>(const FileId&) const = default;
};

// A row of one data file, counted from 0 over all its row groups.
struct RowIndex {
  int64_t value = 0;
  auto operator<=>(const RowIndex&) const = default;
};

// Bytes [begin, end) of one object.
struct ByteRange {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t size_bytes() const { return end - begin; }
  bool empty() const { return end <= begin; }
  auto operator<=>(const ByteRange&) const = default;
};

// Rows [begin, end) of a data file or of a row group (the name at the use says which).
struct RowRange {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t row_count() const { return end - begin; }
  bool empty() const { return end <= begin; }
  auto operator<=>(const RowRange&) const = default;
};

}  // namespace grebe

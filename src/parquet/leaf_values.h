// What the writer asks of a leaf's values before it encodes them: their plain size, and how many
// of them differ. For this room only.
#pragma once

#include <arrow/array.h>

#include <cstdint>
#include <memory>
#include <vector>

namespace grebe::pq {

// The size of runs of values, PLAIN encoded, nulls counted as if they were values.
class ValueSizes {
 public:
  // The array must outlive it. width_bits: of a value as stored, where it is not a string; 0: as
  // Arrow holds it. Cost: none, but for views (about a nanosecond a value).
  explicit ValueSizes(const arrow::Array& values, int64_t width_bits = 0);

  // Of values [begin, end). Never less for a larger run. Cost: a few nanoseconds.
  int64_t BytesOf(int64_t begin, int64_t end) const;

 private:
  int64_t width_bits_ = 0;               // of fixed-width types
  const int32_t* offsets32_ = nullptr;   // of strings
  const int64_t* offsets64_ = nullptr;
  std::vector<int64_t> view_offsets_;
};

// About how many values of the array differ (nulls apart): within 2 % where up to 10 million do.
// 0 for types whose values have no bytes. The same for the same values, wherever they lie.
// Cost: 2 to 10 ns a value.
int64_t EstimateDistinct(const arrow::Array& values);

}  // namespace grebe::pq

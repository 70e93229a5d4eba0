// The values of one column as small numbers for a curve: buckets of about equally many rows, learnt
// from a sample (curve/rank.h), for every type that has an order.
#pragma once

#include <arrow/array.h>

#include <cstdint>
#include <memory>

#include "base/status.h"
#include "curve/rank.h"

namespace grebe::layout {

class ValueRanks {
 public:
  // 2^bits buckets at most; nulls have the lowest one to themselves. spread: ids are spread over
  // all 2^bits numbers, as a Hilbert curve needs it of a column of few values.
  static Result<ValueRanks> Make(const arrow::Array& sample, int bits, bool spread);

  // Bits that the ids need: at most those asked for.
  int bits() const { return bits_; }

  // One id per row of values, which have the sample's type.
  Status Ids(const arrow::Array& values, uint32_t* ids) const;

 private:
  ValueRanks() = default;

  int bits_ = 1;
  std::shared_ptr<const curve::Ranks64> words_;
  std::shared_ptr<const curve::RanksOfStrings> strings_;
  std::vector<uint32_t> spread_;   // empty: ids as they are
};

}  // namespace grebe::layout

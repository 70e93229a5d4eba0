// The wanted rows of one leaf column, decoded: levels and PLAIN values. For this room only.
#pragma once

#include <arrow/memory_pool.h>
#include <parquet/types.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>

#include "base/status.h"

namespace grebe::pq {

// A growing array of trivial values from a memory pool; the first few need no allocation, which
// is all that one row takes.
template <class T, int kInline>
class PoolArray {
 public:
  explicit PoolArray(arrow::MemoryPool* pool) : pool_(pool) {}
  PoolArray(const PoolArray&) = delete;
  PoolArray& operator=(const PoolArray&) = delete;
  ~PoolArray() {
    if (data_ != inline_) pool_->Free(bytes(), capacity_ * kItem);
  }

  int64_t size() const { return size_; }
  const T* data() const { return data_; }
  std::span<const T> span() const { return {data_, static_cast<size_t>(size_)}; }

  // Room for `count` more; *out is where they go. Their values are not set. Errors: OutOfMemory,
  // LimitExceeded (more than 1 GiB in all).
  Status Grow(int64_t count, T** out) {
    if (size_ + count > capacity_) ARROW_RETURN_NOT_OK(Reserve(size_ + count));
    *out = data_ + size_;
    size_ += count;
    return Status::OK();
  }
  Status Append(const T* values, int64_t count) {
    T* to = nullptr;
    ARROW_RETURN_NOT_OK(Grow(count, &to));
    if (count > 0) std::memcpy(to, values, static_cast<size_t>(count * kItem));
    return Status::OK();
  }

 private:
  static constexpr int64_t kItem = static_cast<int64_t>(sizeof(T));

  uint8_t* bytes() { return reinterpret_cast<uint8_t*>(data_); }

  // A few bytes of a hostile page can stand for billions of levels or of repeated values.
  static constexpr int64_t kItemsMax = (int64_t{1} << 30) / kItem;

  Status Reserve(int64_t count) {
    if (count > kItemsMax) {
      return LimitExceeded("rows of one column chunk take more than 1 GiB", "items", count);
    }
    const int64_t capacity = std::min(std::max(count, capacity_ * 2), kItemsMax);
    uint8_t* grown = data_ == inline_ ? nullptr : bytes();
    if (grown == nullptr) {
      ARROW_RETURN_NOT_OK(pool_->Allocate(capacity * kItem, &grown));
      std::memcpy(grown, inline_, static_cast<size_t>(size_ * kItem));
    } else {
      ARROW_RETURN_NOT_OK(pool_->Reallocate(capacity_ * kItem, capacity * kItem, &grown));
    }
    data_ = reinterpret_cast<T*>(grown);
    capacity_ = capacity;
    return Status::OK();
  }

  arrow::MemoryPool* pool_;
  T* data_ = inline_;
  int64_t size_ = 0;
  int64_t capacity_ = kInline;
  T inline_[kInline];
};

// How a leaf's values and levels look, as its schema says.
struct LeafShape {
  ::parquet::Type::type type = ::parquet::Type::UNDEFINED;
  int32_t width = 0;             // bytes a PLAIN value; 0: byte arrays. Booleans: 1
  int16_t definition_level_max = 0;
  int16_t repetition_level_max = 0;
};

class LeafSlice {
 public:
  LeafSlice(int leaf_, const LeafShape& shape_, arrow::MemoryPool* pool)
      : leaf(leaf_), shape(shape_), definition_levels(pool), repetition_levels(pool),
        values(pool) {}

  int leaf;
  LeafShape shape;
  int64_t row_count = 0;
  int64_t value_count = 0;     // not null
  // One a level; empty where the maximum is 0. Never more than the maximum.
  PoolArray<int16_t, 12> definition_levels;
  PoolArray<int16_t, 4> repetition_levels;
  // The values that are not null, PLAIN: little-endian, byte arrays behind a 32-bit length. But
  // booleans take a byte each.
  PoolArray<uint8_t, 64> values;

  // Levels in all: rows, where nothing is repeated.
  int64_t level_count() const {
    return shape.definition_level_max > 0 ? definition_levels.size() : row_count;
  }
};

}  // namespace grebe::pq

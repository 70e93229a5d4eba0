// A sequence of integers, packed: a few straight lines predict it, and what they miss is stored at
// one fixed width. Evenly spaced values (page offsets, first rows) cost few bits each or none, and
// any element is read alone, in a few nanoseconds.
//
//   element i = base + ((i - start) * slope >> 24) + residual i, of the line that holds i
//
//   head      1   bits 0..6: residual width, 0 to 64; bit 7: several lines
//   one line:     zigzag varint base, zigzag varint slope (start is 0)
//   several:  1   number of lines, 2 to 255
//           n*20  per line: u32 start (ascending, the first 0), i64 base, i64 slope
//   residuals     count * width bits, lowest bit first, up to the next whole byte
//
// The count is not stored: whoever holds the sequence knows it. A sequence of none has no bytes.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/coding.h"

namespace grebe::pq {

// Bytes that must be readable behind any packed sequence.
inline constexpr int64_t kLinePaddingBytes = 8;

class LineSequence {
 public:
  // Reads the head and steps `in` over the whole sequence. The bytes must outlive this object and
  // kLinePaddingBytes more must follow what `in` may read. False when the bytes are damaged; then
  // At must not be called.
  [[nodiscard]] bool Parse(ByteReader* in, int64_t count);

  int64_t count() const { return count_; }

  // REQUIRES: 0 <= i < count(). Damaged bytes give any number.
  int64_t At(int64_t i) const {
    int64_t start = 0;
    int64_t base = base_;
    int64_t slope = slope_;
    if (lines_ != nullptr) FindLine(i, &start, &base, &slope);
    const auto line = static_cast<uint64_t>(
        static_cast<int64_t>(static_cast<__int128>(i - start) * slope >> kSlopeShift));
    return static_cast<int64_t>(static_cast<uint64_t>(base) + line + Residual(i));
  }

  static constexpr int kSlopeShift = 24;

 private:
  uint64_t Residual(int64_t i) const {
    if (width_ == 0) return 0;
    const uint64_t bit = static_cast<uint64_t>(i) * static_cast<uint64_t>(width_);
    const uint8_t* at = residuals_ + (bit >> 3);
    const int shift = static_cast<int>(bit & 7);
    uint64_t value = LoadLe<uint64_t>(at) >> shift;
    if (width_ + shift > 64) value |= static_cast<uint64_t>(at[8]) << (64 - shift);
    return width_ == 64 ? value : value & ((uint64_t{1} << width_) - 1);
  }
  void FindLine(int64_t i, int64_t* start, int64_t* base, int64_t* slope) const;

  int64_t count_ = 0;
  int64_t base_ = 0;
  int64_t slope_ = 0;
  const uint8_t* lines_ = nullptr;  // null: one line
  const uint8_t* residuals_ = nullptr;
  int line_count_ = 0;
  int width_ = 0;
};

// Appends the sequence, as small as it gets. Cost: about 0.2 us a value.
void PutLineSequence(std::span<const int64_t> values, std::string* out);

}  // namespace grebe::pq

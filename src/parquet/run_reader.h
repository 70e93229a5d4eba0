// Reads Parquet's RLE / bit-packed hybrid: levels, dictionary indexes, RLE booleans.
//
// Made for picking few values out of many: skipping costs one step a run, and counting how often
// a value occurs among skipped ones costs a popcount per 64 values at bit width 1. A reader is a
// small value: copy it to remember a place. Nothing is allocated, and nothing outside the given
// bytes is read. Every method returns false when the bytes end early or are malformed; the reader
// must not be used after that.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>

namespace grebe::pq {

class RunReader {
 public:
  RunReader() = default;
  // value_count bounds how many values may be taken. REQUIRES: 0 <= bit_width <= 32.
  RunReader(const uint8_t* data, int64_t size_bytes, int bit_width, int64_t value_count)
      : cursor_(data), end_(data + size_bytes), bit_width_(bit_width), left_(value_count) {}

  // The deprecated BIT_PACKED levels: one run without a header. (Grebe reads them least
  // significant bit first, as libparquet does.)
  static RunReader BitPacked(const uint8_t* data, int64_t size_bytes, int bit_width,
                             int64_t value_count) {
    RunReader reader(data, size_bytes, bit_width, value_count);
    reader.literal_ = data;
    reader.run_left_ = bit_width == 0 ? value_count
                                      : std::min(value_count, size_bytes * 8 / bit_width);
    reader.cursor_ = reader.end_;
    return reader;
  }

  int64_t values_left() const { return left_; }

  [[nodiscard]] bool Skip(int64_t count) {
    if (count > left_) return false;
    left_ -= count;
    while (count > 0) {
      if (run_left_ == 0 && !NextRun()) return false;
      count -= Step(std::min(count, run_left_));
    }
    return true;
  }

  // Skips `count` values and adds to *equal how many of them are `value`. False also when a
  // value above value_max is met (seen in every run, packed or not).
  [[nodiscard]] bool SkipCounting(int64_t count, uint32_t value, uint32_t value_max,
                                  int64_t* equal) {
    if (count > left_) return false;
    left_ -= count;
    while (count > 0) {
      if (run_left_ == 0 && !NextRun()) return false;
      const int64_t take = std::min(count, run_left_);
      if (literal_ == nullptr) {
        if (repeated_ > value_max) return false;
        if (repeated_ == value) *equal += take;
      } else if (bit_width_ == 1) {
        const int64_t ones = CountOnes(0, take);
        *equal += value == 1 ? ones : value == 0 ? take - ones : 0;
      } else {
        for (int64_t i = 0; i < take; ++i) {
          const uint32_t at = Literal(i);
          if (at > value_max) return false;
          *equal += at == value;
        }
      }
      count -= Step(take);
    }
    return true;
  }

  // Reads `count` values. False also when a value above value_max is met.
  template <class T>
  [[nodiscard]] bool Read(int64_t count, uint32_t value_max, T* out) {
    if (count > left_) return false;
    left_ -= count;
    while (count > 0) {
      if (run_left_ == 0 && !NextRun()) return false;
      const int64_t take = std::min(count, run_left_);
      if (literal_ == nullptr) {
        if (repeated_ > value_max) return false;
        std::fill_n(out, take, static_cast<T>(repeated_));
      } else {
        for (int64_t i = 0; i < take; ++i) {
          const uint32_t at = Literal(i);
          if (at > value_max) return false;
          out[i] = static_cast<T>(at);
        }
      }
      out += take;
      count -= Step(take);
    }
    return true;
  }

  // Repetition levels: passes `rows` zeros and stops before the zero after them, or at the end.
  // *levels gets the number of values passed (any non-zero ones at the start among them). False
  // also when the values end before `rows` zeros were met.
  [[nodiscard]] bool PassRows(int64_t rows, uint32_t value_max, int64_t* levels) {
    int64_t passed = 0;
    bool stop = false;
    while (left_ > 0 && !stop) {
      if (run_left_ == 0 && !NextRun()) return false;
      const int64_t take = std::min(left_, run_left_);
      int64_t here = 0;
      if (literal_ == nullptr) {
        if (repeated_ > value_max) return false;
        here = repeated_ != 0 ? take : std::min(take, rows);
        if (repeated_ == 0) rows -= here;
        stop = here < take;
      } else if (!PassLiteralRows(take, value_max, &rows, &here, &stop)) {
        return false;
      }
      passed += here;
      left_ -= here;
      Step(here);
    }
    *levels = passed;
    return rows == 0;
  }

  // The next value without taking it. False at the end.
  [[nodiscard]] bool Peek(uint32_t* value) {
    if (left_ == 0 || (run_left_ == 0 && !NextRun())) return false;
    *value = literal_ == nullptr ? repeated_ : Literal(0);
    return true;
  }

 private:
  // PassRows within `take` values of a bit-packed run: *here gets how many were passed, *stop
  // whether the zero after the wanted rows was met.
  bool PassLiteralRows(int64_t take, uint32_t value_max, int64_t* rows, int64_t* here,
                       bool* stop) const {
    int64_t at = 0;
    if (bit_width_ == 1) {
      for (; *rows >= 64 && take - at >= 64; at += 64) *rows -= 64 - CountOnes(at, 64);
    }
    for (; at < take; ++at) {
      const uint32_t level = Literal(at);
      if (level > value_max) return false;
      if (level != 0) continue;
      if (*rows == 0) {
        *stop = true;
        break;
      }
      --*rows;
    }
    *here = at;
    return true;
  }

  int64_t Step(int64_t count) {
    run_left_ -= count;
    if (literal_ != nullptr) bit_offset_ += count * bit_width_;
    return count;
  }

  bool NextRun() {
    uint32_t header = 0;
    for (int shift = 0;; shift += 7) {
      if (cursor_ == end_ || shift > 28) return false;
      const uint8_t byte = *cursor_++;
      header |= static_cast<uint32_t>(byte & 0x7f) << shift;
      if (byte < 0x80) break;
    }
    const int64_t count = header >> 1;
    if (count == 0) return false;
    if (header & 1) {
      literal_ = cursor_;
      bit_offset_ = 0;
      const int64_t bytes = std::min<int64_t>(count * bit_width_, end_ - cursor_);
      // Some writers cut the last run's padding off.
      run_left_ = bit_width_ == 0 ? count * 8 : std::min(count * 8, bytes * 8 / bit_width_);
      cursor_ += bytes;
      return run_left_ > 0;
    }
    const int bytes = (bit_width_ + 7) / 8;
    if (end_ - cursor_ < bytes) return false;
    repeated_ = 0;
    std::memcpy(&repeated_, cursor_, static_cast<size_t>(bytes));
    cursor_ += bytes;
    literal_ = nullptr;
    run_left_ = count;
    return true;
  }

  // The value `index` places into the current bit-packed run.
  uint32_t Literal(int64_t index) const {
    const int64_t bit = bit_offset_ + index * bit_width_;
    const uint8_t* at = literal_ + (bit >> 3);
    uint64_t word = 0;
    const int64_t room = end_ - at;
    if (room >= 8) {
      std::memcpy(&word, at, 8);
    } else {
      std::memcpy(&word, at, static_cast<size_t>(std::max<int64_t>(room, 0)));
    }
    return static_cast<uint32_t>((word >> (bit & 7)) & ((uint64_t{1} << bit_width_) - 1));
  }

  // The ones among `count` values of a bit-packed run of width 1, from `index` places on.
  int64_t CountOnes(int64_t index, int64_t count) const {
    int64_t ones = 0;
    int64_t bit = bit_offset_ + index;
    const int64_t stop = bit + count;
    for (; bit < stop && (bit & 7) != 0; ++bit) ones += (literal_[bit >> 3] >> (bit & 7)) & 1;
    for (; stop - bit >= 64; bit += 64) {
      uint64_t word;
      std::memcpy(&word, literal_ + (bit >> 3), 8);
      ones += std::popcount(word);
    }
    for (; stop - bit >= 8; bit += 8) ones += std::popcount(literal_[bit >> 3]);
    for (; bit < stop; ++bit) ones += (literal_[bit >> 3] >> (bit & 7)) & 1;
    return ones;
  }

  const uint8_t* cursor_ = nullptr;   // the next run's header
  const uint8_t* end_ = nullptr;
  const uint8_t* literal_ = nullptr;  // the current run's bits; null: an RLE run of repeated_
  int64_t bit_offset_ = 0;
  int64_t run_left_ = 0;
  uint32_t repeated_ = 0;
  int bit_width_ = 0;
  int64_t left_ = 0;
};

}  // namespace grebe::pq

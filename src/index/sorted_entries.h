// Runs of rows in (key, row) order, packed: what sorted blocks, and the builder's sorted pieces,
// hold. Keys are ordered forms (key/ordered.h); each is stored as what differs from the one before.
// The bytes: fragment_format.h, SORTED ENTRY. Private to this room.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/coding.h"
#include "index/fragment_format.h"

namespace grebe::index {

inline size_t SharedBytes(std::string_view a, std::string_view b) {
  const size_t limit = std::min(a.size(), b.size());
  size_t shared = 0;
  while (shared < limit && a[shared] == b[shared]) ++shared;
  return shared;
}

class EntryWriter {
 public:
  // Begins a block: nothing is known of what was before.
  void Restart() { begun_ = false; }

  // REQUIRES: (key, row) is above the one before, and its rows are not among that one's.
  void Add(std::string_view key, uint64_t row, uint64_t count, std::string* out) {
    const bool fresh = !begun_ || key != key_;
    if (!begun_) {
      key_.clear();
      row_end_ = 0;
      begun_ = true;
    }
    const auto step = static_cast<int64_t>(row - row_end_);
    const uint64_t gap = fresh ? ZigZag(step) : static_cast<uint64_t>(step);
    PutVarint(out, gap << 2 | (count > 1 ? 2 : 0) | (fresh ? 1 : 0));
    if (fresh) PutKey(key, out);
    if (count > 1) PutVarint(out, count - 2);
    row_end_ = row + count;
  }

 private:
  static constexpr uint64_t kNibble = 15;   // it, and the rest as a varint

  void PutKey(std::string_view key, std::string* out) {
    const size_t shared = SharedBytes(key, key_);
    const std::string_view rest = key.substr(shared);
    const uint64_t high = std::min<uint64_t>(shared, kNibble);
    const uint64_t low = std::min<uint64_t>(rest.size(), kNibble);
    out->push_back(static_cast<char>(high << 4 | low));
    if (high == kNibble) PutVarint(out, shared - kNibble);
    if (low == kNibble) PutVarint(out, rest.size() - kNibble);
    out->append(rest);
    key_.replace(shared, std::string::npos, rest);
  }

  bool begun_ = false;
  std::string key_;
  uint64_t row_end_ = 0;
};

// Reads entries that an EntryWriter wrote since Restart.
class EntryReader {
 public:
  EntryReader() = default;
  // row_count: of the fragment; rows beyond it are damage.
  EntryReader(std::string_view bytes, uint64_t row_count)
      : reader_(bytes), row_count_(row_count) {}

  // False at the end, and when the bytes are damaged: then `damaged` is set.
  [[nodiscard]] bool Next() {
    if (reader_.remaining_bytes() == 0) return false;
    damaged_ = !Read();
    return !damaged_;
  }

  std::string_view key() const { return key_; }
  uint64_t row() const { return row_; }
  uint64_t count() const { return count_; }
  bool damaged() const { return damaged_; }
  // Whether this entry begins a key.
  bool fresh() const { return fresh_; }

 private:
  bool Read() {
    uint64_t tag = 0, extra = 0;
    if (!reader_.ReadVarint(&tag)) return false;
    fresh_ = (tag & 1) != 0;
    if (fresh_ ? !ReadKey() : !begun_) return false;
    if ((tag & 2) != 0 && (!reader_.ReadVarint(&extra) || extra > kRowsMax)) return false;
    count_ = (tag & 2) != 0 ? extra + 2 : 1;
    const uint64_t end = begun_ ? row_ + count_before_ : 0;
    const uint64_t gap = tag >> 2;
    row_ = end + (fresh_ ? static_cast<uint64_t>(UnZigZag(gap)) : gap);
    begun_ = true;
    count_before_ = count_;
    return row_ < row_count_ && count_ <= row_count_ - row_;
  }

  bool ReadKey() {
    uint8_t sizes = 0;
    uint64_t shared = 0, rest = 0;
    if (!reader_.ReadFixed(&sizes)) return false;
    if ((sizes >> 4) == 15 && !reader_.ReadVarint(&shared)) return false;
    if ((sizes & 15) == 15 && !reader_.ReadVarint(&rest)) return false;
    if (shared > kRowsMax || rest > kRowsMax) return false;
    shared += sizes >> 4;
    rest += sizes & 15;
    if (shared > key_.size() || rest > reader_.remaining_bytes()) return false;
    const std::string_view text(reinterpret_cast<const char*>(reader_.cursor()), rest);
    // Keys ascend: what replaces the old rest is above it.
    if (begun_ && text <= std::string_view(key_).substr(shared)) return false;
    key_.replace(shared, std::string::npos, text);
    return reader_.Skip(rest);
  }

  ByteReader reader_{std::string_view()};
  uint64_t row_count_ = 0;
  std::string key_;
  uint64_t row_ = 0, count_ = 0, count_before_ = 0;
  bool begun_ = false, fresh_ = false, damaged_ = false;
};

}  // namespace grebe::index

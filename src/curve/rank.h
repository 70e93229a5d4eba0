// Rank ids: the number of a value's bucket among buckets of about equally many rows, learnt from a
// sample. Skew, shared prefixes and units of measure then do not matter to a curve.
//
// Ids are monotone in the value, and equal values have one id. A value that fills a bucket by
// itself has a bucket, and so an id, of its own, as far as the number of buckets allows; buckets
// may therefore be fewer than asked for. Nulls, when told of, have id 0 to themselves.
//
// A column's weight in a curve is its number of bits: ask for 2^bits buckets.
// Threads: immutable after it is made.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace grebe::curve {

struct RankOptions {
  // Buckets in all, that of nulls included; at least 1, with nulls 2.
  uint32_t buckets = 1024;
  // Whether nulls occur: they take bucket 0, and values the buckets from 1 on.
  bool nulls = false;
};

// Which id each bucket gets when `count` buckets are spread over ids of `bits` bits, so that the
// ids' highest bits tell the buckets apart: what a curve of equal bits (Hilbert) needs of a column
// of few values. REQUIRES: count <= 2^bits.
std::vector<uint32_t> SpreadIds(uint32_t count, int bits);

// Ranks of 64-bit ordered forms (ordered_bytes.h).
class Ranks64 {
 public:
  // `sample`: any order, duplicates as often as they occur, nulls left out. Empty: one bucket.
  Ranks64(std::vector<uint64_t> sample, const RankOptions& options);

  // Ids are 0 to count() - 1.
  uint32_t count() const { return first_id_ + static_cast<uint32_t>(boundaries_.size()) + 1; }
  // Ascending: the lowest value of each bucket but the first.
  const std::vector<uint64_t>& boundaries() const { return boundaries_; }
  uint32_t null_id() const { return 0; }

  uint32_t Id(uint64_t value) const;
  // Of many values; nulls among them are the caller's to overwrite with null_id().
  // Cost: log2(count()) steps a value without branches, eight values at once.
  void Ids(const uint64_t* values, size_t rows, uint32_t* ids) const;

 private:
  uint32_t first_id_;
  std::vector<uint64_t> boundaries_;
};

// The same of strings, compared as bytes.
class RanksOfStrings {
 public:
  RanksOfStrings(std::vector<std::string_view> sample, const RankOptions& options);

  uint32_t count() const { return first_id_ + static_cast<uint32_t>(boundaries_.size()) + 1; }
  const std::vector<std::string>& boundaries() const { return boundaries_; }
  uint32_t null_id() const { return 0; }

  uint32_t Id(std::string_view value) const;
  // Cost: as Ranks64 by the 8 bytes after what all boundaries begin with; whole strings are
  // compared only where boundaries share those too.
  void Ids(const std::string_view* values, size_t rows, uint32_t* ids) const;

 private:
  uint32_t IdFrom(std::string_view value, size_t candidate) const;

  uint32_t first_id_;
  std::vector<std::string> boundaries_;
  size_t shared_bytes_ = 0;      // every boundary begins with the same so many bytes
  std::vector<uint64_t> words_;  // the 8 bytes after them
};

}  // namespace grebe::curve

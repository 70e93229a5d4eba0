// Space-filling curves over grids of ids: several columns become one key whose order keeps rows
// that are near in every column near each other.
//
// An id is an unsigned number of a column's bits (1 to 64); higher bits of an id are ignored. The
// first column is the slowest, or gives the higher bit.
//   kSort     the ids one after another: plain order by (a, b, ..)
//   kZOrder   the ids' bits in turn, highest first, until each column's bits are used up
//   kHilbert  2 to 9 columns of equal bits: consecutive keys are cells that touch
// One column is its own order under every kind. A Z-order column of more than 64 bits (the first
// bytes of a string) is given as several arrays, see arrays().
//
// Source: J. Skilling, "Programming the Hilbert curve", AIP Conference Proceedings 707, 2004.
// Threads: a Curve is immutable; any number may use it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "curve/interleave.h"

namespace grebe::curve {

enum class CurveKind : uint8_t { kSort, kZOrder, kHilbert };

class Curve {
 public:
  static constexpr int kHilbertColumnsMax = 9;

  // What is wrong with such a curve, or "" when there is one. `bits`: of each column.
  static std::string Problem(CurveKind kind, std::span<const int> bits);

  // REQUIRES: Problem(kind, bits) is "".
  Curve(CurveKind kind, std::vector<int> bits, Kernels kernels = Kernels::kBest);

  CurveKind kind() const { return kind_; }
  int columns() const { return static_cast<int>(bits_.size()); }
  int key_bits() const { return interleave_.key_bits(); }
  int key_bytes() const { return (key_bits() + 7) / 8; }

  // Arrays of ids that the calls below take: one a column, but (bits + 63) / 64 for a column of
  // more than 64 bits: its first 64 bits, its next 64, .. and what is left, as a number.
  int arrays() const { return interleave_.arrays(); }

  // The key of each row, as a number. REQUIRES: key_bits() <= 64, ids.size() == arrays().
  void Keys64(std::span<const uint64_t* const> ids, size_t rows, uint64_t* keys) const;
  void Keys64(std::span<const uint32_t* const> ids, size_t rows, uint64_t* keys) const;

  // The key of each row as key_bytes() bytes, big-endian, to be compared by memcmp.
  void Keys(std::span<const uint64_t* const> ids, size_t rows, uint8_t* keys) const;
  void Keys(std::span<const uint32_t* const> ids, size_t rows, uint8_t* keys) const;

  // The inverse: the ids (arrays() of them) of a key.
  void Ids64(uint64_t key, uint64_t* ids) const;
  void Ids(const uint8_t* key, uint64_t* ids) const;

  // The cell of all keys that differ from `key` in at most their `free_bits` lowest bits: it is a
  // box, the ids from low[i] to high[i], both included. REQUIRES: columns of at most 64 bits.
  void Cell64(uint64_t key, int free_bits, uint64_t* low, uint64_t* high) const;
  void Cell(const uint8_t* key, int free_bits, uint64_t* low, uint64_t* high) const;

 private:
  using Words = std::vector<uint64_t>;  // a key, lowest word first

  template <typename Id>
  void Run(std::span<const Id* const> ids, size_t rows, uint64_t* keys64, uint8_t* keys) const;
  void KeysOfWidened(std::span<const uint32_t* const> ids, size_t rows, uint8_t* keys) const;
  void IdsOfWords(const Words& key, uint64_t* ids) const;
  void CellOfWords(Words key, int free_bits, uint64_t* low, uint64_t* high) const;
  Words WordsOf(const uint8_t* key) const;

  CurveKind kind_;
  std::vector<int> bits_;
  bool use_avx2_;
  Interleave interleave_;
};

// The place of the highest bit in which two keys differ, 0 the lowest; -1 for equal keys. Where it
// is highest among consecutive rows in key order is where the curve leaves its largest cell.
int HighestDifferentBit(uint64_t a, uint64_t b);
int HighestDifferentBit(const uint8_t* a, const uint8_t* b, size_t key_bytes);

}  // namespace grebe::curve

// Puts the bits of several ids into one key by a fixed plan, and takes them out again.
//
// A key is a number of any size, kept as 64-bit words, the lowest first.
// Cost: one pdep a column and word with BMI2 (where the CPU has a fast one), else one table look-up
// for each 8 bits of an id.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace grebe::curve {

// kPortable is for tests that compare the two.
enum class Kernels : uint8_t { kBest, kPortable };

class Interleave {
 public:
  // The columns' bits in turn, the highest of each first; a column whose bits are used up is left
  // out of later turns.
  static Interleave InTurn(std::span<const int> bits, Kernels kernels);
  // All bits of the first column, then all of the second.
  static Interleave OneAfterAnother(std::span<const int> bits, Kernels kernels);

  int key_bits() const { return key_bits_; }
  int words() const { return (key_bits_ + 63) / 64; }
  int arrays() const { return arrays_; }

  // keys[row * words() + w] of each row. REQUIRES: ids.size() == arrays().
  template <typename Id>
  void Keys(std::span<const Id* const> ids, size_t rows, uint64_t* keys) const;

  // ids[arrays()] of a key of words() words.
  void Ids(const uint64_t* key, uint64_t* ids) const;

 private:
  // `bits` bits of an array's ids, from bit `shift` on, go to the set bits of `mask` in a word.
  struct Piece {
    int array;
    int word;
    int shift;
    int bits;
    uint64_t mask;
    size_t table;  // where its tables begin, kPortable only
  };

  // `columns[i]`: whose next bit, from its highest down, is the i-th highest of the key.
  Interleave(std::span<const int> bits, const std::vector<int>& columns, Kernels kernels);
  void AddBit(int array, int array_bit, int key_bit);
  void MakeTables();

  int key_bits_ = 0;
  int arrays_ = 0;
  bool use_pdep_ = false;
  std::vector<Piece> pieces_;
  std::vector<uint64_t> tables_;  // 256 words for each 8 bits of a piece
};

extern template void Interleave::Keys(std::span<const uint32_t* const>, size_t, uint64_t*) const;
extern template void Interleave::Keys(std::span<const uint64_t* const>, size_t, uint64_t*) const;

}  // namespace grebe::curve

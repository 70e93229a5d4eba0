#include "curve/interleave.h"

#include <algorithm>
#include <bit>

#include "curve/cpu.h"

#ifdef GREBE_X86
#include <immintrin.h>
#endif

namespace grebe::curve {

namespace {

uint64_t LowBits(int bits) { return bits >= 64 ? ~0ULL : (1ULL << bits) - 1; }

// pdep and pext in plain code: one step a set bit of the mask.
uint64_t Deposit(uint64_t value, uint64_t mask) {
  uint64_t result = 0;
  for (; mask != 0; mask &= mask - 1, value >>= 1) {
    if (value & 1) result |= mask & (~mask + 1);
  }
  return result;
}

uint64_t Extract(uint64_t value, uint64_t mask) {
  uint64_t result = 0;
  for (int i = 0; mask != 0; mask &= mask - 1, ++i) {
    if (value & mask & (~mask + 1)) result |= 1ULL << i;
  }
  return result;
}

#ifdef GREBE_X86
template <typename Id>
__attribute__((target("bmi2"))) void DepositRows(const Id* ids, int shift, uint64_t mask,
                                                 size_t rows, int stride, uint64_t* keys) {
  for (size_t row = 0; row < rows; ++row) {
    keys[row * stride] |= _pdep_u64(static_cast<uint64_t>(ids[row]) >> shift, mask);
  }
}
#endif

template <typename Id>
void LookUpRows(const Id* ids, int shift, int bits, const uint64_t* tables, size_t rows,
                int stride, uint64_t* keys) {
  for (int at = 0; at < bits; at += 8, tables += 256) {
    const uint64_t byte_mask = LowBits(std::min(8, bits - at));
    for (size_t row = 0; row < rows; ++row) {
      keys[row * stride] |= tables[(static_cast<uint64_t>(ids[row]) >> (shift + at)) & byte_mask];
    }
  }
}

}  // namespace

Interleave Interleave::InTurn(std::span<const int> bits, Kernels kernels) {
  std::vector<int> columns;
  for (int turn = 0; turn < *std::max_element(bits.begin(), bits.end()); ++turn) {
    for (size_t column = 0; column < bits.size(); ++column) {
      if (turn < bits[column]) columns.push_back(static_cast<int>(column));
    }
  }
  return Interleave(bits, columns, kernels);
}

Interleave Interleave::OneAfterAnother(std::span<const int> bits, Kernels kernels) {
  std::vector<int> columns;
  for (size_t column = 0; column < bits.size(); ++column) {
    columns.insert(columns.end(), bits[column], static_cast<int>(column));
  }
  return Interleave(bits, columns, kernels);
}

Interleave::Interleave(std::span<const int> bits, const std::vector<int>& columns,
                       Kernels kernels)
    : key_bits_(static_cast<int>(columns.size())),
      use_pdep_(kernels == Kernels::kBest && CpuHasFastPdep()) {
  std::vector<int> first_array(bits.size());
  for (size_t column = 0; column < bits.size(); ++column) {
    first_array[column] = arrays_;
    arrays_ += (bits[column] + 63) / 64;
  }
  std::vector<int> used(bits.size());
  for (int i = 0; i < key_bits_; ++i) {
    const int column = columns[i];
    const int at = used[column]++;
    // An array has 64 of the column's bits, the last one what is left.
    const int array_bits = std::min(64, bits[column] - at / 64 * 64);
    AddBit(first_array[column] + at / 64, array_bits - 1 - at % 64, key_bits_ - 1 - i);
  }
  if (!use_pdep_) MakeTables();
}

// Bits come from the highest down, so a piece grows at its low end.
void Interleave::AddBit(int array, int array_bit, int key_bit) {
  const int word = key_bit / 64;
  const uint64_t mask = 1ULL << (key_bit % 64);
  for (Piece& piece : pieces_) {
    if (piece.array == array && piece.word == word) {
      piece.shift = array_bit;
      piece.bits += 1;
      piece.mask |= mask;
      return;
    }
  }
  pieces_.push_back({array, word, array_bit, 1, mask, 0});
}

void Interleave::MakeTables() {
  for (Piece& piece : pieces_) {
    piece.table = tables_.size();
    uint64_t mask = piece.mask;
    for (int at = 0; at < piece.bits; at += 8) {
      for (uint64_t byte = 0; byte < 256; ++byte) tables_.push_back(Deposit(byte, mask));
      for (int used = 0; used < 8; ++used) mask &= mask - 1;
    }
  }
}

template <typename Id>
void Interleave::Keys(std::span<const Id* const> ids, size_t rows, uint64_t* keys) const {
  const int stride = words();
  std::fill(keys, keys + rows * stride, 0);
  // A block of rows at a time, so that the keys stay in the cache while the columns add to them.
  constexpr size_t kBlockRows = 1024;
  for (size_t row = 0; row < rows; row += kBlockRows) {
    const size_t block_rows = std::min(kBlockRows, rows - row);
    for (const Piece& piece : pieces_) {
      const Id* from = ids[piece.array] + row;
      uint64_t* to = keys + row * stride + piece.word;
#ifdef GREBE_X86
      if (use_pdep_) {
        DepositRows(from, piece.shift, piece.mask, block_rows, stride, to);
        continue;
      }
#endif
      LookUpRows(from, piece.shift, piece.bits, tables_.data() + piece.table, block_rows, stride,
                 to);
    }
  }
}

template void Interleave::Keys(std::span<const uint32_t* const>, size_t, uint64_t*) const;
template void Interleave::Keys(std::span<const uint64_t* const>, size_t, uint64_t*) const;

void Interleave::Ids(const uint64_t* key, uint64_t* ids) const {
  std::fill(ids, ids + arrays_, 0);
  for (const Piece& piece : pieces_) {
    ids[piece.array] |= Extract(key[piece.word], piece.mask) << piece.shift;
  }
}

}  // namespace grebe::curve

#include "curve/hilbert.h"

#include "curve/cpu.h"

namespace grebe::curve {

namespace {

// One step of the transform: where bit `level` of x is set, the first column's lower bits are
// inverted, else they are exchanged with x's. Its own inverse.
template <typename Word>
[[gnu::always_inline]] inline void Turn(Word& first, Word& x, int level) {
  const Word low = (Word{1} << level) - 1;
  const Word set = Word{0} - ((x >> level) & 1);
  const Word exchange = (first ^ x) & low & ~set;
  first ^= exchange | (low & set);
  x ^= exchange;
}

// The same for the first column itself, which has nothing to exchange.
template <typename Word>
[[gnu::always_inline]] inline void TurnFirst(Word& first, int level) {
  const Word low = (Word{1} << level) - 1;
  first ^= low & (Word{0} - ((first >> level) & 1));
}

// Bit i of the result: whether an odd number of the bits above i are set.
template <typename Word>
[[gnu::always_inline]] inline Word ParityAbove(Word x) {
  x >>= 1;
  for (int step = 1; step < static_cast<int>(sizeof(Word) * 8); step *= 2) x ^= x >> step;
  return x;
}

template <typename Word>
[[gnu::always_inline]] inline void FromCells(Word* x, int columns, int bits) {
  for (int level = bits - 1; level > 0; --level) {
    for (size_t lane = 0; lane < kHilbertLanes; ++lane) TurnFirst(x[lane], level);
    for (int column = 1; column < columns; ++column) {
      Word* other = x + column * kHilbertLanes;
      for (size_t lane = 0; lane < kHilbertLanes; ++lane) Turn(x[lane], other[lane], level);
    }
  }
  for (size_t lane = 0; lane < kHilbertLanes; ++lane) {
    Word before = x[lane];
    for (int column = 1; column < columns; ++column) {
      before = x[column * kHilbertLanes + lane] ^= before;
    }
    const Word flips = ParityAbove(before);
    for (int column = 0; column < columns; ++column) x[column * kHilbertLanes + lane] ^= flips;
  }
}

#ifdef GREBE_X86
template <typename Word>
__attribute__((target("avx2"))) void FromCellsAvx2(Word* x, int columns, int bits) {
  FromCells(x, columns, bits);
}
#endif

template <typename Word>
void FromCellsByCpu(Word* x, int columns, int bits, bool use_avx2) {
#ifdef GREBE_X86
  if (use_avx2) return FromCellsAvx2(x, columns, bits);
#endif
  FromCells(x, columns, bits);
}

}  // namespace

void HilbertFromCells(uint32_t* x, int columns, int bits, bool use_avx2) {
  FromCellsByCpu(x, columns, bits, use_avx2);
}

void HilbertFromCells(uint64_t* x, int columns, int bits, bool use_avx2) {
  FromCellsByCpu(x, columns, bits, use_avx2);
}

void HilbertToCell(uint64_t* x, int columns, int bits) {
  // The index as one number becomes its Gray code, index ^ (index >> 1), word by word; then the
  // turns are taken back, last one first.
  const uint64_t from_last = x[columns - 1] >> 1;
  for (int column = columns - 1; column > 0; --column) x[column] ^= x[column - 1];
  x[0] ^= from_last;
  for (int level = 1; level < bits; ++level) {
    for (int column = columns - 1; column > 0; --column) Turn(x[0], x[column], level);
    TurnFirst(x[0], level);
  }
}

}  // namespace grebe::curve

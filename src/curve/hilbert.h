// Skilling's transform between the coordinates of a cell and the Hilbert index of the cell in
// "transposed" form: as many words, whose bits in turn, the first word's first, are the index.
//
// Works on a block of rows at once, lane by lane, without branches: with AVX2 eight or four lanes
// take the time of one.
#pragma once

#include <cstddef>
#include <cstdint>

namespace grebe::curve {

constexpr size_t kHilbertLanes = 128;

// x[column * kHilbertLanes + lane], in place. REQUIRES: columns >= 2, 1 <= bits <= 32 or 64,
// coordinates below 2^bits.
void HilbertFromCells(uint32_t* x, int columns, int bits, bool use_avx2);
void HilbertFromCells(uint64_t* x, int columns, int bits, bool use_avx2);

// The inverse, of one row: x[column].
void HilbertToCell(uint64_t* x, int columns, int bits);

}  // namespace grebe::curve

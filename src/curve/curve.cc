#include "curve/curve.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "curve/cpu.h"
#include "curve/hilbert.h"

namespace grebe::curve {

namespace {

constexpr int kKeyBitsMax = 1 << 16;

Interleave PlanOf(CurveKind kind, std::span<const int> bits, Kernels kernels) {
  return kind == CurveKind::kSort ? Interleave::OneAfterAnother(bits, kernels)
                                  : Interleave::InTurn(bits, kernels);
}

// The lowest words of `words` are the key's last bytes.
void WriteBigEndian(const uint64_t* words, int key_bytes, uint8_t* bytes) {
  for (int at = key_bytes; at > 0; at -= 8, ++words) {
    const uint64_t word =
        std::endian::native == std::endian::little ? __builtin_bswap64(*words) : *words;
    if (at >= 8) {
      std::memcpy(bytes + at - 8, &word, 8);
    } else {
      std::memcpy(bytes, reinterpret_cast<const uint8_t*>(&word) + 8 - at, at);
    }
  }
}

}  // namespace

std::string Curve::Problem(CurveKind kind, std::span<const int> bits) {
  if (bits.empty()) return "a curve needs a column";
  const bool hilbert = kind == CurveKind::kHilbert;
  if (hilbert && bits.size() > kHilbertColumnsMax) {
    return "hilbert takes at most " + std::to_string(kHilbertColumnsMax) + " columns";
  }
  int64_t key_bits = 0;
  for (const int column_bits : bits) {
    if (column_bits < 1) return "a curve's column needs at least 1 bit";
    if (hilbert && column_bits > 64) return "hilbert takes at most 64 bits a column";
    if (hilbert && column_bits != bits[0]) return "hilbert needs equally many bits of every column";
    key_bits += column_bits;
  }
  if (key_bits > kKeyBitsMax) {
    return "a curve's key has at most " + std::to_string(kKeyBitsMax) + " bits";
  }
  return "";
}

Curve::Curve(CurveKind kind, std::vector<int> bits, Kernels kernels)
    : kind_(bits.size() == 1 ? CurveKind::kSort : kind),
      bits_(std::move(bits)),
      use_avx2_(kernels == Kernels::kBest && CpuHasAvx2()),
      interleave_(PlanOf(kind_, bits_, kernels)) {}

template <typename Id>
void Curve::Run(std::span<const Id* const> ids, size_t rows, uint64_t* keys64,
                uint8_t* keys) const {
  const int words = interleave_.words();
  const size_t bytes = key_bytes();
  constexpr size_t kBlockRows = kHilbertLanes;
  std::vector<uint64_t> block_words(keys64 == nullptr ? kBlockRows * words : 0);
  std::vector<const Id*> from(ids.size());
  std::array<Id, kHilbertColumnsMax * kHilbertLanes> cells;
  const int bits = bits_[0];
  const Id mask = bits >= static_cast<int>(sizeof(Id) * 8) ? ~Id{0} : (Id{1} << bits) - 1;
  for (size_t row = 0; row < rows; row += kBlockRows) {
    const size_t block_rows = std::min(kBlockRows, rows - row);
    for (size_t i = 0; i < ids.size(); ++i) from[i] = ids[i] + row;
    if (kind_ == CurveKind::kHilbert) {
      for (size_t i = 0; i < ids.size(); ++i) {
        Id* cell = cells.data() + i * kHilbertLanes;
        for (size_t lane = 0; lane < block_rows; ++lane) cell[lane] = from[i][lane] & mask;
        std::fill(cell + block_rows, cell + kHilbertLanes, 0);
        from[i] = cell;
      }
      HilbertFromCells(cells.data(), columns(), bits, use_avx2_);
    }
    if (keys64 != nullptr) {
      interleave_.Keys<Id>(from, block_rows, keys64 + row);
      continue;
    }
    interleave_.Keys<Id>(from, block_rows, block_words.data());
    for (size_t i = 0; i < block_rows; ++i) {
      WriteBigEndian(block_words.data() + i * words, key_bytes(), keys + (row + i) * bytes);
    }
  }
}

void Curve::Keys64(std::span<const uint64_t* const> ids, size_t rows, uint64_t* keys) const {
  if (kind_ != CurveKind::kHilbert) return interleave_.Keys<uint64_t>(ids, rows, keys);
  Run<uint64_t>(ids, rows, keys, nullptr);
}

void Curve::Keys64(std::span<const uint32_t* const> ids, size_t rows, uint64_t* keys) const {
  if (kind_ != CurveKind::kHilbert) return interleave_.Keys<uint32_t>(ids, rows, keys);
  Run<uint32_t>(ids, rows, keys, nullptr);
}

void Curve::Keys(std::span<const uint64_t* const> ids, size_t rows, uint8_t* keys) const {
  Run<uint64_t>(ids, rows, nullptr, keys);
}

void Curve::Keys(std::span<const uint32_t* const> ids, size_t rows, uint8_t* keys) const {
  if (kind_ == CurveKind::kHilbert && bits_[0] > 32) return KeysOfWidened(ids, rows, keys);
  Run<uint32_t>(ids, rows, nullptr, keys);
}

void Curve::KeysOfWidened(std::span<const uint32_t* const> ids, size_t rows,
                          uint8_t* keys) const {
  std::vector<std::vector<uint64_t>> widened;
  std::vector<const uint64_t*> pointers;
  for (const uint32_t* column : ids) {
    pointers.push_back(widened.emplace_back(column, column + rows).data());
  }
  Run<uint64_t>(pointers, rows, nullptr, keys);
}

Curve::Words Curve::WordsOf(const uint8_t* key) const {
  Words words(interleave_.words());
  for (int i = 0; i < key_bytes(); ++i) {
    const int place = key_bytes() - 1 - i;
    words[place / 8] |= static_cast<uint64_t>(key[i]) << (place % 8 * 8);
  }
  return words;
}

void Curve::IdsOfWords(const Words& key, uint64_t* ids) const {
  interleave_.Ids(key.data(), ids);
  if (kind_ == CurveKind::kHilbert) HilbertToCell(ids, columns(), bits_[0]);
}

void Curve::Ids64(uint64_t key, uint64_t* ids) const { IdsOfWords({key}, ids); }
void Curve::Ids(const uint8_t* key, uint64_t* ids) const { IdsOfWords(WordsOf(key), ids); }

// Clears the free bits, then sees which bits of the ids change with them. For kSort and kZOrder
// those are the ids' bits in those places. For kHilbert, the lowest whole levels are a cube, full
// of cells; the free bits above them count through the cubes of one level as a Gray code does, so
// that setting the i-th moves from the first cube along the axes i and i - 1: together, along each
// axis that is free.
void Curve::CellOfWords(Words key, int free_bits, uint64_t* low, uint64_t* high) const {
  const auto flip = [&key](int bit) { key[bit / 64] ^= 1ULL << (bit % 64); };
  for (int bit = 0; bit < free_bits; ++bit) key[bit / 64] &= ~(1ULL << (bit % 64));
  IdsOfWords(key, low);
  const int cube_level = kind_ == CurveKind::kHilbert ? free_bits / columns() : 0;
  const uint64_t cube = cube_level >= 64 ? ~0ULL : (1ULL << cube_level) - 1;
  std::vector<uint64_t> moved(arrays()), changed(arrays(), cube);
  for (int bit = cube_level * columns(); bit < free_bits; ++bit) {
    flip(bit);
    IdsOfWords(key, moved.data());
    flip(bit);
    for (int i = 0; i < arrays(); ++i) changed[i] |= (moved[i] ^ low[i]) & ~cube;
  }
  for (int i = 0; i < arrays(); ++i) {
    high[i] = low[i] | changed[i];
    low[i] &= ~changed[i];
  }
}

void Curve::Cell64(uint64_t key, int free_bits, uint64_t* low, uint64_t* high) const {
  CellOfWords({key}, free_bits, low, high);
}

void Curve::Cell(const uint8_t* key, int free_bits, uint64_t* low, uint64_t* high) const {
  CellOfWords(WordsOf(key), free_bits, low, high);
}

int HighestDifferentBit(uint64_t a, uint64_t b) {
  return a == b ? -1 : 63 - std::countl_zero(a ^ b);
}

int HighestDifferentBit(const uint8_t* a, const uint8_t* b, size_t key_bytes) {
  for (size_t i = 0; i < key_bytes; ++i) {
    if (a[i] != b[i]) {
      const uint8_t difference = a[i] ^ b[i];
      return static_cast<int>(key_bytes - 1 - i) * 8 + 7 - std::countl_zero(difference);
    }
  }
  return -1;
}

}  // namespace grebe::curve

// Curves: worked values, a slow reference, and what every curve must be.
#include "curve/curve.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "testing/seed.h"

namespace grebe::curve {
namespace {

constexpr Kernels kBoth[] = {Kernels::kBest, Kernels::kPortable};

using Row = std::vector<uint64_t>;
__extension__ typedef unsigned __int128 Wide;


// The keys of rows, as bytes.
std::vector<std::string> KeysOf(const Curve& curve, const std::vector<Row>& rows) {
  std::vector<std::vector<uint64_t>> arrays(curve.arrays());
  for (const Row& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) arrays[i].push_back(row[i]);
  }
  std::vector<const uint64_t*> ids;
  for (const auto& array : arrays) ids.push_back(array.data());
  std::vector<uint8_t> keys(rows.size() * curve.key_bytes());
  curve.Keys(ids, rows.size(), keys.data());
  std::vector<std::string> out;
  for (size_t i = 0; i < rows.size(); ++i) {
    out.emplace_back(reinterpret_cast<char*>(keys.data()) + i * curve.key_bytes(),
                     curve.key_bytes());
  }
  return out;
}

// The same of 32-bit ids, where the bits allow.
std::vector<std::string> KeysOfNarrow(const Curve& curve, const std::vector<Row>& rows, int bits) {
  if (bits > 32) return KeysOf(curve, rows);
  std::vector<std::vector<uint32_t>> narrow(curve.columns());
  std::vector<const uint32_t*> ids;
  for (int column = 0; column < curve.columns(); ++column) {
    for (const Row& row : rows) narrow[column].push_back(static_cast<uint32_t>(row[column]));
    ids.push_back(narrow[column].data());
  }
  const size_t size = curve.key_bytes();
  std::vector<uint8_t> keys(rows.size() * size);
  curve.Keys(ids, rows.size(), keys.data());
  std::vector<std::string> out;
  for (size_t i = 0; i < rows.size(); ++i) {
    out.emplace_back(reinterpret_cast<char*>(keys.data()) + i * size, size);
  }
  return out;
}

Wide NumberOf(const std::string& key) {
  Wide number = 0;
  for (const char byte : key) number = number << 8 | static_cast<uint8_t>(byte);
  return number;
}

std::string Text(Wide number) {
  std::string digits;
  do digits.insert(digits.begin(), static_cast<char>('0' + static_cast<int>(number % 10)));
  while ((number /= 10) != 0);
  return digits;
}

// Bit by bit, as the words say: the next bit of each column that has one left, in turn.
std::vector<bool> SlowZOrder(const Row& ids, const std::vector<int>& bits) {
  std::vector<bool> key;
  for (int turn = 0; turn < 64; ++turn) {
    for (size_t column = 0; column < ids.size(); ++column) {
      if (turn < bits[column]) key.push_back(ids[column] >> (bits[column] - 1 - turn) & 1);
    }
  }
  return key;
}

// Skilling's transform as his paper writes it: a bit at a time, with branches.
Wide SlowHilbert(Row x, int bits) {
  const size_t n = x.size();
  for (uint64_t q = 1ULL << (bits - 1); q > 1; q >>= 1) {
    for (size_t i = 0; i < n; ++i) {
      if (x[i] & q) {
        x[0] ^= q - 1;
      } else {
        const uint64_t t = (x[0] ^ x[i]) & (q - 1);
        x[0] ^= t;
        x[i] ^= t;
      }
    }
  }
  for (size_t i = 1; i < n; ++i) x[i] ^= x[i - 1];
  uint64_t t = 0;
  for (uint64_t q = 1ULL << (bits - 1); q > 1; q >>= 1) {
    if (x[n - 1] & q) t ^= q - 1;
  }
  Wide index = 0;
  for (int bit = bits - 1; bit >= 0; --bit) {
    for (size_t i = 0; i < n; ++i) index = index << 1 | ((x[i] ^ t) >> bit & 1);
  }
  return index;
}

TEST(ZOrder, WorkedValues) {
  struct Case {
    Row ids;
    int bits;
    const char* key;
  };
  const Case cases[] = {
      {{2, 3}, 2, "13"},
      {{0, 0, 7}, 3, "73"},
      {{5, 2, 6}, 3, "348"},
      {{255, 0}, 8, "43690"},
      {{1, 2, 3, 4}, 4, "362"},
      {{4294967295u, 0}, 32, "12297829382473034410"},
      {{123456789, 987654321}, 32, "391377617982474019"},
      {{9223372036854775808u, 1}, 64, "170141183460469231731687303715884105729"},
  };
  for (const Kernels kernels : kBoth) {
    for (const Case& c : cases) {
      const Curve curve(CurveKind::kZOrder, std::vector<int>(c.ids.size(), c.bits), kernels);
      EXPECT_EQ(Text(NumberOf(KeysOf(curve, {c.ids})[0])), c.key);
    }
  }
}

TEST(ZOrder, SixteenCells) {
  const Curve curve(CurveKind::kZOrder, {2, 2});
  const uint64_t expected[4][4] = {{0, 1, 4, 5}, {2, 3, 6, 7}, {8, 9, 12, 13}, {10, 11, 14, 15}};
  for (uint64_t a = 0; a < 4; ++a) {
    for (uint64_t b = 0; b < 4; ++b) {
      const uint64_t* ids[] = {&a, &b};
      uint64_t key;
      curve.Keys64(ids, 1, &key);
      EXPECT_EQ(key, expected[a][b]);
    }
  }
  // 7 and 8 follow each other and are far apart.
  uint64_t seven[2], eight[2];
  curve.Ids64(7, seven);
  curve.Ids64(8, eight);
  EXPECT_EQ(Row(seven, seven + 2), (Row{1, 3}));
  EXPECT_EQ(Row(eight, eight + 2), (Row{2, 0}));
}

TEST(ZOrder, AgreesWithASlowReference) {
  std::mt19937_64 random(testing::Seed("zorder"));
  for (int round = 0; round < 200; ++round) {
    std::vector<int> bits(1 + random() % 12);
    for (int& b : bits) b = 1 + static_cast<int>(random() % 64);
    std::vector<Row> rows(1 + random() % 300, Row(bits.size()));
    for (Row& row : rows) {
      for (uint64_t& id : row) id = random();
    }
    for (const Kernels kernels : kBoth) {
      const Curve curve(CurveKind::kZOrder, bits, kernels);
      const auto keys = KeysOf(curve, rows);
      for (size_t i = 0; i < rows.size(); ++i) {
        const auto expected = SlowZOrder(rows[i], bits);
        const int unused = static_cast<int>(keys[i].size()) * 8 - curve.key_bits();
        for (size_t bit = 0; bit < expected.size(); ++bit) {
          const size_t at = bit + unused;
          ASSERT_EQ((keys[i][at / 8] >> (7 - at % 8)) & 1, expected[bit] ? 1 : 0);
        }
      }
    }
  }
}

TEST(ZOrder, ColumnsOfMoreThan64BitsAreGivenInArrays) {
  // 96 and 40 bits: the first 40 turns alternate, the rest is the first column's.
  const std::vector<int> bits = {96, 40};
  for (const Kernels kernels : kBoth) {
    const Curve curve(CurveKind::kZOrder, bits, kernels);
    ASSERT_EQ(curve.arrays(), 3);
    const Row row = {0x0123456789abcdefULL, 0xdeadbeef, 0xaaaaaaaaaaULL};
    const std::string key = KeysOf(curve, {row})[0];
    Row back(3);
    curve.Ids(reinterpret_cast<const uint8_t*>(key.data()), back.data());
    EXPECT_EQ(back, row);
    const Curve top(CurveKind::kZOrder, {40, 40}, kernels);
    const std::string head = KeysOf(top, {{row[0] >> 24, row[2]}})[0];
    EXPECT_EQ(key.substr(0, head.size()), head);
    EXPECT_EQ(key.substr(head.size()), std::string("\xab\xcd\xef\xde\xad\xbe\xef", 7));
  }
}

TEST(Sort, OrdersByTheFirstColumnThenTheNext) {
  std::mt19937_64 random(testing::Seed("sort"));
  const Curve curve(CurveKind::kSort, {7, 64, 3});
  std::vector<Row> rows(500, Row(3));
  for (Row& row : rows) row = {random() % 128, random() % 3, random() % 8};
  const auto keys = KeysOf(curve, rows);
  for (size_t i = 1; i < rows.size(); ++i) {
    EXPECT_EQ(rows[i - 1] < rows[i], keys[i - 1] < keys[i]);
    EXPECT_EQ(rows[i - 1] == rows[i], keys[i - 1] == keys[i]);
  }
}

// Every cell of every grid of at most 2^18 cells.
TEST(Hilbert, ConsecutiveKeysAreNeighboursAndEveryCellHasOneKey) {
  for (int columns = 2; columns <= 9; ++columns) {
    for (int bits = 1; columns * bits <= 18; ++bits) {
      for (const Kernels kernels : kBoth) {
        const Curve curve(CurveKind::kHilbert, std::vector<int>(columns, bits), kernels);
        const uint64_t cells = 1ULL << (columns * bits);
        std::vector<std::vector<uint64_t>> ids(columns, std::vector<uint64_t>(cells));
        for (uint64_t key = 0; key < cells; ++key) {
          uint64_t cell[9];
          curve.Ids64(key, cell);
          for (int i = 0; i < columns; ++i) ids[i][key] = cell[i];
          uint64_t steps = 0;
          for (int i = 0; key > 0 && i < columns; ++i) {
            const auto [near, far] = std::minmax(ids[i][key], ids[i][key - 1]);
            steps += far - near;
          }
          ASSERT_EQ(steps, key > 0 ? 1u : 0u) << columns << " columns, " << bits << " bits";
        }
        std::vector<const uint64_t*> arrays;
        for (const auto& array : ids) arrays.push_back(array.data());
        std::vector<uint64_t> keys(cells);
        curve.Keys64(arrays, cells, keys.data());
        for (uint64_t key = 0; key < cells; ++key) ASSERT_EQ(keys[key], key);
      }
    }
  }
}

TEST(Hilbert, AgreesWithASlowReferenceOnBothPathsAndWordSizes) {
  std::mt19937_64 random(testing::Seed("hilbert"));
  for (int columns = 2; columns <= 9; ++columns) {
    for (const int bits : {1, 2, 5, 13, 14, 31, 32, 33, 64}) {
      std::vector<Row> rows(300, Row(columns));
      const uint64_t mask = bits == 64 ? ~0ULL : (1ULL << bits) - 1;
      for (Row& row : rows) {
        for (uint64_t& id : row) id = random() & mask;
      }
      const Curve best(CurveKind::kHilbert, std::vector<int>(columns, bits));
      const Curve portable(CurveKind::kHilbert, std::vector<int>(columns, bits),
                           Kernels::kPortable);
      const auto keys = KeysOf(best, rows);
      ASSERT_EQ(keys, KeysOf(portable, rows));
      ASSERT_EQ(keys, KeysOfNarrow(best, rows, bits));
      for (size_t i = 0; i < rows.size(); ++i) {
        if (columns * bits <= 128) {
          ASSERT_EQ(NumberOf(keys[i]), SlowHilbert(rows[i], bits));
        }
        Row back(columns);
        best.Ids(reinterpret_cast<const uint8_t*>(keys[i].data()), back.data());
        ASSERT_EQ(back, rows[i]);
      }
    }
  }
}

TEST(Hilbert, NeighboursOnGridsTooLargeToVisit) {
  std::mt19937_64 random(testing::Seed("hilbert neighbours"));
  for (int columns = 2; columns <= 9; ++columns) {
    const int bits = 64 / columns;
    const Curve curve(CurveKind::kHilbert, std::vector<int>(columns, bits));
    const uint64_t keys = columns * bits == 64 ? ~0ULL : 1ULL << (columns * bits);
    for (int i = 0; i < 2000; ++i) {
      const uint64_t key = random() % (keys - 1);
      uint64_t cell[9], next[9];
      curve.Ids64(key, cell);
      curve.Ids64(key + 1, next);
      int moved = 0;
      for (int c = 0; c < columns; ++c) {
        if (cell[c] == next[c]) continue;
        ++moved;
        EXPECT_EQ(std::max(cell[c], next[c]) - std::min(cell[c], next[c]), 1u);
      }
      ASSERT_EQ(moved, 1) << key;
    }
  }
}

TEST(Curve, OneColumnIsItsOwnOrder) {
  for (const CurveKind kind : {CurveKind::kSort, CurveKind::kZOrder, CurveKind::kHilbert}) {
    const Curve curve(kind, {10});
    for (uint64_t id = 0; id < 1024; ++id) {
      const uint64_t* ids[] = {&id};
      uint64_t key;
      curve.Keys64(ids, 1, &key);
      EXPECT_EQ(key, id);
    }
  }
}

TEST(Curve, HigherBitsOfAnIdAreIgnored) {
  for (const CurveKind kind : {CurveKind::kSort, CurveKind::kZOrder, CurveKind::kHilbert}) {
    const Curve curve(kind, {5, 5});
    EXPECT_EQ(KeysOf(curve, {{3, 4}}), KeysOf(curve, {{3 | 0xff00, 4 | 1ULL << 63}}));
  }
}

// Against every key of the cell.
TEST(Curve, CellsAreBoxes) {
  struct Case {
    CurveKind kind;
    std::vector<int> bits;
  };
  const Case cases[] = {
      {CurveKind::kSort, {3, 5}},         {CurveKind::kZOrder, {4, 4}},
      {CurveKind::kZOrder, {2, 6, 3}},    {CurveKind::kHilbert, {5, 5}},
      {CurveKind::kHilbert, {3, 3, 3}},   {CurveKind::kHilbert, {2, 2, 2, 2}},
      {CurveKind::kHilbert, {2, 2, 2, 2, 2}}, {CurveKind::kHilbert, {9}},
  };
  for (const Case& c : cases) {
    const Curve curve(c.kind, c.bits);
    const int columns = curve.columns();
    for (int free_bits = 0; free_bits <= curve.key_bits(); ++free_bits) {
      const uint64_t size = 1ULL << free_bits;
      for (uint64_t first = 0; first < 1ULL << curve.key_bits(); first += size) {
        Row least(columns, ~0ULL), most(columns, 0);
        for (uint64_t key = first; key < first + size; ++key) {
          Row ids(columns);
          curve.Ids64(key, ids.data());
          for (int i = 0; i < columns; ++i) {
            least[i] = std::min(least[i], ids[i]);
            most[i] = std::max(most[i], ids[i]);
          }
        }
        uint64_t volume = 1;
        for (int i = 0; i < columns; ++i) volume *= most[i] - least[i] + 1;
        ASSERT_EQ(volume, size);
        Row low(columns), high(columns);
        curve.Cell64(first + size / 2, free_bits, low.data(), high.data());
        ASSERT_EQ(low, least);
        ASSERT_EQ(high, most);
      }
    }
  }
}

TEST(Curve, CellsOfLargeKeys) {
  const Curve curve(CurveKind::kHilbert, {64, 64, 64});
  const Row row = {1ULL << 63, 12345, ~0ULL};
  const std::string key = KeysOf(curve, {row})[0];
  const auto* bytes = reinterpret_cast<const uint8_t*>(key.data());
  Row low(3), high(3);
  curve.Cell(bytes, 192, low.data(), high.data());
  EXPECT_EQ(low, (Row{0, 0, 0}));
  EXPECT_EQ(high, (Row{~0ULL, ~0ULL, ~0ULL}));
  curve.Cell(bytes, 9, low.data(), high.data());
  EXPECT_EQ(low, (Row{1ULL << 63, 12344, ~0ULL - 7}));
  EXPECT_EQ(high, (Row{(1ULL << 63) + 7, 12351, ~0ULL}));
  curve.Cell(bytes, 0, low.data(), high.data());
  EXPECT_EQ(low, row);
  EXPECT_EQ(high, row);
}

TEST(Curve, WhatIsNoCurveIsSaid) {
  EXPECT_NE(Curve::Problem(CurveKind::kZOrder, {}), "");
  for (const auto& [kind, bits] : std::vector<std::pair<CurveKind, std::vector<int>>>{
           {CurveKind::kSort, {0}},
           {CurveKind::kZOrder, {4, -1}},
           {CurveKind::kZOrder, {65537}},
           {CurveKind::kHilbert, {4, 5}},
           {CurveKind::kHilbert, {65, 65}},
           {CurveKind::kHilbert, std::vector<int>(10, 2)}}) {
    EXPECT_NE(Curve::Problem(kind, bits), "");
  }
  EXPECT_EQ(Curve::Problem(CurveKind::kHilbert, std::vector<int>(9, 64)), "");
  EXPECT_EQ(Curve::Problem(CurveKind::kZOrder, std::vector<int>{128, 1}), "");
}

TEST(HighestDifferentBit, OfNumbersAndBytes) {
  EXPECT_EQ(HighestDifferentBit(5, 5), -1);
  EXPECT_EQ(HighestDifferentBit(7, 8), 3);
  EXPECT_EQ(HighestDifferentBit(0, ~0ULL), 63);
  const uint8_t a[] = {1, 0x80, 0}, b[] = {1, 0x81, 0xff}, c[] = {0x81, 0, 0};
  EXPECT_EQ(HighestDifferentBit(a, a, 3), -1);
  EXPECT_EQ(HighestDifferentBit(a, b, 3), 8);
  EXPECT_EQ(HighestDifferentBit(a, c, 3), 23);
}

}  // namespace
}  // namespace grebe::curve

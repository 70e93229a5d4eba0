// Ordered forms: worked values, and order against the values' own for every type.
#include "curve/ordered_bytes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <random>
#include <vector>

#include "testing/seed.h"

namespace grebe::curve {
namespace {

__extension__ typedef __int128 Int128;

constexpr double kInf = std::numeric_limits<double>::infinity();

TEST(OrderedBytes, WorkedIntegers) {
  const std::pair<int64_t, uint64_t> cases[] = {
      {std::numeric_limits<int64_t>::min(), 0},
      {-2, 0x7ffffffffffffffe},
      {-1, 0x7fffffffffffffff},
      {0, 0x8000000000000000},
      {1, 0x8000000000000001},
      {255, 0x80000000000000ff},
      {std::numeric_limits<int64_t>::max(), 0xffffffffffffffff},
      // 32-bit integers, widened.
      {std::numeric_limits<int32_t>::min(), 0x7fffffff80000000},
      {7, 0x8000000000000007},
      {std::numeric_limits<int32_t>::max(), 0x800000007fffffff},
  };
  for (const auto& [value, ordered] : cases) {
    EXPECT_EQ(OrderedInt(value), ordered);
    EXPECT_EQ(IntOfOrdered(ordered), value);
  }
}

TEST(OrderedBytes, WorkedDoubles) {
  const std::pair<double, uint64_t> cases[] = {
      {-kInf, 0x000fffffffffffff}, {-1.5, 0x4007ffffffffffff}, {-0.0, 0x7fffffffffffffff},
      {0.0, 0x8000000000000000},   {1.5, 0xbff8000000000000},  {kInf, 0xfff0000000000000},
  };
  for (const auto& [value, ordered] : cases) {
    EXPECT_EQ(OrderedDoubleTwoZeros(value), ordered);
    if (value != 0) {
      EXPECT_EQ(OrderedDouble(value), ordered);
    }
  }
  EXPECT_EQ(OrderedDouble(-0.0), OrderedDouble(0.0));
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_GT(OrderedDouble(nan), OrderedDouble(kInf));
  EXPECT_EQ(OrderedDouble(nan), OrderedDouble(-nan));
  EXPECT_EQ(OrderedDouble(nan), OrderedDouble(std::bit_cast<double>(0xfff123456789abcdULL)));
}

TEST(OrderedBytes, WorkedStrings) {
  const std::pair<const char*, uint64_t> cases[] = {
      {"", 0},
      {"a", 0x6100000000000000},
      {"abcdefgh", 0x6162636465666768},
      {"abcdefghi", 0x6162636465666768},
      {"https://a.example/1", 0x68747470733a2f2f},
      {"https://b.example/2", 0x68747470733a2f2f},
  };
  for (const auto& [value, ordered] : cases) EXPECT_EQ(OrderedPrefix(value), ordered);
  std::array<uint64_t, 2> a, b;
  OrderedPrefixWords("https://a.example/1", 16, a.data());
  OrderedPrefixWords("https://b.example/2", 16, b.data());
  EXPECT_EQ(a, (std::array<uint64_t, 2>{0x68747470733a2f2f, 0x612e6578616d706c}));
  EXPECT_EQ(b, (std::array<uint64_t, 2>{0x68747470733a2f2f, 0x622e6578616d706c}));
  // 11 bytes: the last word is a number of 24 bits.
  OrderedPrefixWords("https://a.example/1", 11, a.data());
  EXPECT_EQ(a[1], 0x612e65u);
  OrderedPrefixWords("https://a", 11, a.data());
  EXPECT_EQ(a[1], 0x610000u);
}

TEST(OrderedBytes, NullsAreBelowEveryValue) {
  EXPECT_EQ(OrNull(false, 77), 0u);
  EXPECT_EQ(OrNull(true, 0), 1u);
  EXPECT_EQ(OrNull(true, 5), 5u);
  EXPECT_EQ(OrNull(true, ~0ULL), ~0ULL);
}

template <typename Value, typename Form>
void ExpectSameOrder(const std::vector<Value>& values, Form form) {
  for (const Value& a : values) {
    for (const Value& b : values) {
      ASSERT_EQ(a < b, form(a) < form(b));
      ASSERT_EQ(a == b, form(a) == form(b));
    }
  }
}

TEST(OrderedBytes, OrderAsNumbersDo) {
  std::mt19937_64 random(testing::Seed("numbers"));
  std::vector<int64_t> ints;
  std::vector<uint64_t> uints;
  std::vector<double> doubles = {0.0, -0.0, kInf, -kInf, std::numeric_limits<double>::denorm_min(),
                                 -std::numeric_limits<double>::denorm_min()};
  std::vector<float> floats = {0.0f, -0.0f};
  for (int i = 0; i < 300; ++i) {
    ints.push_back(static_cast<int64_t>(random()) >> (random() % 64));
    uints.push_back(random() >> (random() % 64));
    const auto real = std::bit_cast<double>(random());
    if (real == real) doubles.push_back(real);
    const auto single = std::bit_cast<float>(static_cast<uint32_t>(random()));
    if (single == single) floats.push_back(single);
  }
  ExpectSameOrder(ints, OrderedInt);
  ExpectSameOrder(uints, OrderedUint);
  ExpectSameOrder(doubles, OrderedDouble);
  ExpectSameOrder(floats, [](float value) { return OrderedDouble(value); });
  ExpectSameOrder(std::vector<bool>{false, true}, OrderedBool);
}

std::array<uint64_t, 2> WordsOf(Int128 value) {
  return {static_cast<uint64_t>(value), static_cast<uint64_t>(value >> 64)};
}

TEST(OrderedBytes, DecimalsKeepOrderInTheirHighestBits) {
  std::mt19937_64 random(testing::Seed("decimals"));
  for (const int precision : {1, 9, 18, 19, 25, 38}) {
    Int128 end = 1;
    for (int i = 0; i < precision; ++i) end *= 10;
    std::vector<Int128> values = {end - 1, 1 - end, 0, 1, -1};
    for (int i = 0; i < 200; ++i) {
      const Int128 wide = static_cast<Int128>(random()) << 64 | random();
      values.push_back(wide % end);
    }
    std::sort(values.begin(), values.end());
    const auto form = [&](Int128 value) { return OrderedDecimal(WordsOf(value), precision); };
    if (precision <= 18) {
      ExpectSameOrder(values, form);
      continue;
    }
    for (size_t i = 1; i < values.size(); ++i) EXPECT_LE(form(values[i - 1]), form(values[i]));
    // The forms use most of their bits: the extremes are far apart.
    EXPECT_GT(form(end - 1) - form(1 - end), 1ULL << 61);
  }
}

TEST(OrderedBytes, DecimalsOf76DigitsAndTooManyDigits) {
  const std::array<uint64_t, 4> one = {1, 0, 0, 0};
  const std::array<uint64_t, 4> minus_one = {~0ULL, ~0ULL, ~0ULL, ~0ULL};
  const std::array<uint64_t, 4> large = {0, 0, 0, 1ULL << 60};
  EXPECT_LT(OrderedDecimal(minus_one, 76), OrderedDecimal(one, 76));
  EXPECT_LT(OrderedDecimal(one, 76), OrderedDecimal(large, 76));
  EXPECT_EQ(OrderedDecimal(one, 10), OrderedDecimal(WordsOf(1), 10));
  EXPECT_EQ(OrderedDecimal(large, 10), ~0ULL);
  EXPECT_EQ(OrderedDecimal(WordsOf(-(static_cast<Int128>(1) << 100)), 10), 0u);
}

std::string RandomString(std::mt19937_64& random) {
  // Few letters, zero bytes among them, and shared beginnings.
  std::string text = random() % 2 ? "https://example" : "";
  const char letters[] = {'\0', '\1', 'a', '\xff'};
  for (size_t i = random() % 12; i > 0; --i) text.push_back(letters[random() % 4]);
  return text;
}

TEST(OrderedBytes, PrefixesKeepOrder) {
  std::mt19937_64 random(testing::Seed("prefixes"));
  std::vector<std::string> values;
  for (int i = 0; i < 500; ++i) values.push_back(RandomString(random));
  std::sort(values.begin(), values.end());
  for (const int length : {1, 8, 11, 16, 20}) {
    std::vector<uint64_t> before(3), words(3);
    for (size_t i = 0; i < values.size(); ++i) {
      OrderedPrefixWords(values[i], length, words.data());
      if (i > 0) {
        ASSERT_LE(before, words);
      }
      before = words;
    }
  }
}

using Tuple = std::tuple<std::optional<int64_t>, std::optional<std::string>,
                         std::optional<Int128>, std::optional<double>>;

std::string BytesOf(const Tuple& tuple) {
  std::string bytes;
  const auto& [i, s, d, f] = tuple;
  i ? AppendOrdered(OrderedInt(*i), &bytes) : AppendNull(&bytes);
  s ? AppendOrderedString(*s, &bytes) : AppendNull(&bytes);
  d ? AppendOrderedDecimal(WordsOf(*d), &bytes) : AppendNull(&bytes);
  f ? AppendOrdered(OrderedDouble(*f), &bytes) : AppendNull(&bytes);
  return bytes;
}

// std::optional too has nothing below everything.
TEST(OrderedBytes, TuplesOrderColumnByColumn) {
  std::mt19937_64 random(testing::Seed("tuples"));
  std::vector<Tuple> tuples;
  for (int i = 0; i < 400; ++i) {
    Tuple tuple;
    if (random() % 4) std::get<0>(tuple) = static_cast<int64_t>(random() % 3) - 1;
    if (random() % 4) std::get<1>(tuple) = RandomString(random);
    if (random() % 4) std::get<2>(tuple) = static_cast<Int128>(random() % 3 - 1) << 70;
    if (random() % 4) std::get<3>(tuple) = static_cast<double>(random() % 3) - 1;
    tuples.push_back(tuple);
  }
  std::vector<std::string> bytes;
  for (const Tuple& tuple : tuples) bytes.push_back(BytesOf(tuple));
  for (size_t a = 0; a < tuples.size(); ++a) {
    for (size_t b = 0; b < tuples.size(); ++b) {
      ASSERT_EQ(tuples[a] < tuples[b], bytes[a] < bytes[b]);
      ASSERT_EQ(tuples[a] == tuples[b], bytes[a] == bytes[b]);
    }
  }
}

}  // namespace
}  // namespace grebe::curve

// Ranks: worked values, and what ids must be for any sample.
#include "curve/rank.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>

#include "testing/seed.h"

namespace grebe::curve {
namespace {

std::vector<uint32_t> IdsOf(const Ranks64& ranks, const std::vector<uint64_t>& values) {
  std::vector<uint32_t> ids(values.size());
  ranks.Ids(values.data(), values.size(), ids.data());
  return ids;
}

TEST(Ranks, WorkedValues) {
  const std::vector<uint64_t> values = {0, 1, 3, 15, 36, 99};
  const Ranks64 ranks(values, {.buckets = 3});
  EXPECT_EQ(IdsOf(ranks, values), (std::vector<uint32_t>{0, 0, 1, 1, 2, 2}));
}

TEST(Ranks, AValueThatFillsABucketHasAnIdOfItsOwn) {
  const std::vector<uint64_t> values = {0, 0, 0, 0, 0, 0, 0, 0, 0, 1000000};
  const Ranks64 ranks(values, {.buckets = 2});
  EXPECT_EQ(IdsOf(ranks, values), (std::vector<uint32_t>{0, 0, 0, 0, 0, 0, 0, 0, 0, 1}));
  // In the middle too, and for values that the sample has not: 49 and 51 are not 50.
  std::vector<uint64_t> sample(100, 50);
  for (uint64_t i = 0; i < 100; ++i) sample.push_back(i);
  const Ranks64 middle(sample, {.buckets = 10});
  EXPECT_NE(middle.Id(49), middle.Id(50));
  EXPECT_NE(middle.Id(50), middle.Id(51));
}

TEST(Ranks, NullsHaveTheFirstIdToThemselves) {
  const Ranks64 ranks({5, 6, 7, 8}, {.buckets = 3, .nulls = true});
  EXPECT_EQ(ranks.null_id(), 0u);
  EXPECT_EQ(IdsOf(ranks, {0, 5, 6, 7, 8, ~0ULL}), (std::vector<uint32_t>{1, 1, 1, 2, 2, 2}));
  EXPECT_EQ(ranks.count(), 3u);
}

TEST(Ranks, WithoutASampleThereIsOneBucket) {
  const Ranks64 ranks({}, {});
  EXPECT_EQ(ranks.count(), 1u);
  EXPECT_EQ(ranks.Id(7), 0u);
  const RanksOfStrings strings({}, {});
  EXPECT_EQ(strings.Id("x"), 0u);
  EXPECT_EQ(Ranks64({1, 2, 3}, {.buckets = 1}).count(), 1u);
}

TEST(Ranks, SpreadIdsUseTheHighestBits) {
  EXPECT_EQ(SpreadIds(2, 10), (std::vector<uint32_t>{0, 512}));
  EXPECT_EQ(SpreadIds(3, 2), (std::vector<uint32_t>{0, 1, 2}));
  EXPECT_EQ(SpreadIds(4, 2), (std::vector<uint32_t>{0, 1, 2, 3}));
  for (uint32_t count = 1; count <= 300; ++count) {
    const auto ids = SpreadIds(count, 9);
    EXPECT_TRUE(std::adjacent_find(ids.begin(), ids.end(), std::greater_equal<>()) == ids.end());
    EXPECT_LT(ids.back(), 512u);
  }
}

// Rows of each bucket, of a sample cut into `buckets`: none has more than twice its share, unless
// it holds one value only.
void ExpectEven(const std::vector<uint64_t>& sample, const Ranks64& ranks, uint32_t buckets) {
  std::map<uint32_t, std::map<uint64_t, size_t>> rows;
  const auto ids = IdsOf(ranks, sample);
  for (size_t i = 0; i < sample.size(); ++i) ++rows[ids[i]][sample[i]];
  for (const auto& [id, values] : rows) {
    size_t count = 0;
    for (const auto& [value, times] : values) count += times;
    if (values.size() > 1) {
      EXPECT_LE(count, 2 * sample.size() / buckets + 2) << "bucket " << id;
    }
  }
}

TEST(Ranks, BucketsOfDistinctValuesDifferByOne) {
  for (const uint32_t buckets : {2u, 3u, 7u, 64u, 1000u}) {
    std::vector<uint64_t> sample;
    for (uint64_t i = 0; i < 1000; ++i) sample.push_back(i * 1000003);
    const Ranks64 ranks(sample, {.buckets = buckets});
    ASSERT_EQ(ranks.count(), buckets);
    std::vector<size_t> rows(buckets);
    for (const uint32_t id : IdsOf(ranks, sample)) ++rows[id];
    const auto [least, most] = std::minmax_element(rows.begin(), rows.end());
    EXPECT_LE(*most - *least, 1u);
  }
}

TEST(Ranks, AreMonotoneAndBoundedForAnySample) {
  std::mt19937_64 random(testing::Seed("ranks"));
  for (int round = 0; round < 200; ++round) {
    std::vector<uint64_t> sample(random() % 2000);
    const int kind = static_cast<int>(random() % 4);
    for (uint64_t& value : sample) {
      const double u = (static_cast<double>(random() >> 11) + 1) * 0x1p-53;
      value = kind == 0   ? random()
              : kind == 1 ? random() % 20
              : kind == 2 ? static_cast<uint64_t>(std::pow(u, -1.2))
                          : ~0ULL - random() % 3;
    }
    const uint32_t buckets = 1 + static_cast<uint32_t>(random() % 300);
    const bool nulls = buckets > 1 && random() % 2;
    const Ranks64 ranks(sample, {.buckets = buckets, .nulls = nulls});
    ASSERT_LE(ranks.count(), buckets);
    if (kind == 0 && !nulls) ExpectEven(sample, ranks, buckets);
    // Values of the sample, beside it, and others, against the boundaries one by one.
    std::vector<uint64_t> values = {0, ~0ULL};
    for (const uint64_t value : sample) values.insert(values.end(), {value, value - 1, value + 1});
    for (int i = 0; i < 100; ++i) values.push_back(random());
    const auto ids = IdsOf(ranks, values);
    for (size_t i = 0; i < values.size(); ++i) {
      uint32_t expected = nulls ? 1 : 0;
      for (const uint64_t boundary : ranks.boundaries()) expected += boundary <= values[i];
      ASSERT_EQ(ids[i], expected);
    }
    ASSERT_TRUE(std::adjacent_find(ranks.boundaries().begin(), ranks.boundaries().end(),
                                   std::greater_equal<>()) == ranks.boundaries().end());
  }
}

TEST(RanksOfStrings, AgreeWithTheirBoundariesOneByOne) {
  std::mt19937_64 random(testing::Seed("string ranks"));
  const std::string prefixes[] = {"", "https://a.example/", "https://a.example/long/path/to/"};
  for (int round = 0; round < 100; ++round) {
    std::vector<std::string> texts(1 + random() % 500);
    for (std::string& text : texts) {
      text = prefixes[round % 2 ? 2 : random() % 3];
      for (size_t i = random() % 14; i > 0; --i) text.push_back("\0ab\xff"[random() % 4]);
    }
    const std::vector<std::string_view> sample(texts.begin(), texts.end());
    const uint32_t buckets = 1 + static_cast<uint32_t>(random() % 64);
    const RanksOfStrings ranks(sample, {.buckets = buckets});
    ASSERT_LE(ranks.count(), buckets);
    std::vector<std::string_view> values = sample;
    values.insert(values.end(), {"", "https", "zzz", "https://a.example/long/path/to"});
    std::vector<std::string> longer;
    for (const std::string& text : texts) longer.push_back(text + '\0');
    values.insert(values.end(), longer.begin(), longer.end());
    std::vector<uint32_t> ids(values.size());
    ranks.Ids(values.data(), values.size(), ids.data());
    for (size_t i = 0; i < values.size(); ++i) {
      uint32_t expected = 0;
      for (const std::string& boundary : ranks.boundaries()) expected += boundary <= values[i];
      ASSERT_EQ(ids[i], expected);
    }
  }
}

// What raw mode cannot do with 8 bytes.
TEST(RanksOfStrings, SeparateWhatSharesALongPrefix) {
  std::vector<std::string> texts;
  for (int i = 0; i < 1000; ++i) {
    texts.push_back("https://www.example.com/" + std::to_string(100000 + i));
  }
  const std::vector<std::string_view> sample(texts.begin(), texts.end());
  const RanksOfStrings ranks(sample, {.buckets = 100});
  EXPECT_EQ(ranks.count(), 100u);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(ranks.Id(texts[i]), static_cast<uint32_t>(i / 10));
}

}  // namespace
}  // namespace grebe::curve

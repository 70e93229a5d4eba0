#include "index/block_cache.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "base/rng.h"

namespace grebe::index {
namespace {

std::shared_ptr<arrow::Buffer> Bytes(int64_t size, char fill = 'x') {
  return arrow::Buffer::FromString(std::string(static_cast<size_t>(size), fill));
}

TEST(BlockCacheTest, GivesBackWhatWasPutIn) {
  BlockCache cache(1 << 20);
  const uint32_t a = cache.ObjectId("a"), b = cache.ObjectId("b");
  EXPECT_NE(a, b);
  EXPECT_EQ(cache.ObjectId("a"), a);
  cache.Insert({a, {0, 10}}, Bytes(10, 'a'));
  cache.Insert({b, {0, 10}}, Bytes(10, 'b'));
  cache.Insert({a, {0, 20}}, Bytes(20, 'c'));
  EXPECT_EQ(cache.Find({a, {0, 10}})->ToString(), std::string(10, 'a'));
  EXPECT_EQ(cache.Find({b, {0, 10}})->ToString(), std::string(10, 'b'));
  EXPECT_EQ(cache.Find({a, {0, 20}})->ToString(), std::string(20, 'c'));
  EXPECT_EQ(cache.Find({b, {0, 20}}), nullptr);
  EXPECT_EQ(cache.counters().hits, 3);
  EXPECT_EQ(cache.counters().misses, 1);
}

TEST(BlockCacheTest, NeverHoldsMoreThanItsBudget) {
  constexpr int64_t kBudget = 100000;
  BlockCache cache(kBudget);
  Rng rng(1);
  for (int i = 0; i < 5000; ++i) {
    const auto begin = static_cast<int64_t>(rng.Below(1000)) * 10000;
    cache.Insert({0, {begin, begin + 1}}, Bytes(static_cast<int64_t>(rng.Below(9000))));
    ASSERT_LE(cache.counters().bytes, kBudget);
  }
  EXPECT_GT(cache.counters().evictions, 0);
  EXPECT_GT(cache.counters().bytes, kBudget / 2);
}

TEST(BlockCacheTest, OneLargeBlockMayUseMostOfTheBudgetAndATooLargeOneIsNotKept) {
  BlockCache cache(100000);
  for (int64_t i = 0; i < 100; ++i) cache.Insert({0, {i, i + 1}}, Bytes(500));
  cache.Insert({1, {0, 90000}}, Bytes(90000));
  EXPECT_NE(cache.Find({1, {0, 90000}}), nullptr);
  EXPECT_LE(cache.counters().bytes, 100000);
  cache.Insert({2, {0, 100000}}, Bytes(100000));
  EXPECT_EQ(cache.Find({2, {0, 100000}}), nullptr);
  EXPECT_NE(cache.Find({1, {0, 90000}}), nullptr);
}

TEST(BlockCacheTest, WhatIsUsedStaysLonger) {
  BlockCache cache(200000);
  cache.Insert({0, {0, 1}}, Bytes(1000));
  for (int64_t i = 1; i < 2000; ++i) {
    cache.Insert({0, {i, i + 1}}, Bytes(1000));
    ASSERT_NE(cache.Find({0, {0, 1}}), nullptr) << i;
  }
  EXPECT_EQ(cache.Find({0, {1, 2}}), nullptr);
}

TEST(BlockCacheTest, ReplacingKeepsTheCountRight) {
  BlockCache cache(100000);
  for (int i = 0; i < 100; ++i) cache.Insert({0, {0, 1}}, Bytes(1000 + i));
  EXPECT_EQ(cache.counters().blocks, 1);
  EXPECT_LT(cache.counters().bytes, 2000);
}

TEST(BlockCacheTest, ManyThreads) {
  BlockCache cache(50000);
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&cache, t] {
      Rng rng(static_cast<uint64_t>(t));
      for (int i = 0; i < 3000; ++i) {
        const auto begin = static_cast<int64_t>(rng.Below(200));
        const auto found = cache.Find({0, {begin, begin + 1}});
        if (found == nullptr) {
          cache.Insert({0, {begin, begin + 1}}, Bytes(500 + begin));
        } else {
          ASSERT_EQ(found->size(), 500 + begin);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(cache.counters().bytes, 50000);
}

}  // namespace
}  // namespace grebe::index

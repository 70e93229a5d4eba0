#include "store/coalesce.h"

#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <utility>

#include "base/rng.h"
#include "store/memory_store.h"
#include "testing/counting_store.h"
#include "testing/store_conformance.h"

namespace grebe::store {
namespace {

std::shared_ptr<const Object> ObjectOf(const std::string& path, int64_t size = 1 << 20) {
  return std::make_shared<Object>(Object{path, {.size_bytes = size, .tag = "t"}});
}

std::vector<ByteRange> RangesOf(const CoalescedWave& wave) {
  std::vector<ByteRange> ranges;
  for (const ReadRequest& request : wave.requests) ranges.push_back(request.range);
  return ranges;
}

TEST(CoalesceTest, JoinsAcrossSmallGapsOnly) {
  const auto a = ObjectOf("a");
  const std::vector<ReadRequest> requests = {{a, {100, 200}}, {a, {0, 50}}, {a, {200, 210}},
                                             {a, {260, 300}}};
  EXPECT_EQ(RangesOf(Coalesce(requests, {.gap_bytes_max = 0})),
            (std::vector<ByteRange>{{0, 50}, {100, 210}, {260, 300}}));
  const CoalescedWave at_50 = Coalesce(requests, {.gap_bytes_max = 50});
  EXPECT_EQ(RangesOf(at_50), (std::vector<ByteRange>{{0, 300}}));
  EXPECT_EQ(at_50.bridged_bytes, 100);
  EXPECT_EQ(RangesOf(Coalesce(requests, {.gap_bytes_max = 49})),
            (std::vector<ByteRange>{{0, 50}, {100, 210}, {260, 300}}));
  EXPECT_EQ(RangesOf(Coalesce(requests, {.gap_bytes_max = 50, .range_bytes_max = 210})),
            (std::vector<ByteRange>{{0, 210}, {260, 300}}));
  EXPECT_EQ(Coalesce(requests, {.gap_bytes_max = -1}).requests.size(), 4u);
}

TEST(CoalesceTest, ObjectsAreToldApartByPathAndIdentity) {
  const auto a = ObjectOf("a");
  const auto same = ObjectOf("a");
  const auto other = std::make_shared<Object>(Object{"a", {.size_bytes = 1 << 20, .tag = "u"}});
  const std::vector<ReadRequest> requests = {{a, {0, 10}}, {other, {10, 20}}, {same, {10, 20}},
                                             {ObjectOf("b"), {10, 20}}};
  EXPECT_EQ(Coalesce(requests, {.gap_bytes_max = 100}).requests.size(), 3u);
}

// Any wave over any settings: every request gets its own bytes once, nothing grows past the limit.
TEST(CoalesceTest, RandomWavesAnswerEveryRequestWithItsBytes) {
  const uint64_t seed = 20261130;
  SCOPED_TRACE("seed " + std::to_string(seed));
  Rng rng(seed);
  auto counting = std::make_shared<testing::CountingStore>(MakeMemoryStore());
  std::vector<std::shared_ptr<const Object>> objects;
  std::vector<std::string> contents;
  for (int f = 0; f < 3; ++f) {
    contents.push_back(testing::PatternBytes(5000, static_cast<uint64_t>(f)));
    const std::string path = "f" + std::to_string(f);
    const auto put = counting->Put(path, contents.back(), PutMode::kOverwrite);
    objects.push_back(std::make_shared<Object>(Object{path, *put}));
  }
  for (int round = 0; round < 300; ++round) {
    const CoalesceOptions options{.gap_bytes_max = static_cast<int64_t>(rng.Below(400)) - 1,
                                  .range_bytes_max = 1 + static_cast<int64_t>(rng.Below(3000))};
    std::vector<ReadRequest> requests;
    std::vector<size_t> files;
    for (uint64_t i = 0, n = rng.Below(30); i < n; ++i) {
      files.push_back(rng.Below(3));
      const auto begin = static_cast<int64_t>(rng.Below(5000));
      const auto end = begin + static_cast<int64_t>(rng.Below(std::min<uint64_t>(
                                   500, static_cast<uint64_t>(5001 - begin))));
      requests.push_back({objects[files.back()], {begin, end}});
    }
    counting->Reset();
    std::vector<int> calls(requests.size());
    int64_t bridged = 0;
    ReadEachCoalesced(
        counting.get(), requests, options,
        [&](size_t i, Result<std::shared_ptr<arrow::Buffer>> answer) {
          ++calls[i];
          ASSERT_TRUE(answer.ok()) << answer.status();
          const ByteRange range = requests[i].range;
          EXPECT_EQ((*answer)->ToString(),
                    contents[files[i]].substr(range.begin, range.size_bytes()));
        },
        &bridged);
    for (const int n : calls) EXPECT_EQ(n, 1);
    std::set<std::pair<size_t, int64_t>> wanted;
    int64_t largest = 0;
    for (size_t i = 0; i < requests.size(); ++i) {
      largest = std::max(largest, requests[i].range.size_bytes());
      for (int64_t b = requests[i].range.begin; b < requests[i].range.end; ++b) {
        wanted.emplace(files[i], b);
      }
    }
    for (const auto& entry : counting->log()) {
      EXPECT_LE(entry.range.size_bytes(), std::max(options.range_bytes_max, largest));
    }
    if (options.gap_bytes_max >= 0 && options.range_bytes_max >= 2900) {
      // Nothing is read twice when the limit does not bind.
      EXPECT_LE(counting->counts().bytes,
                static_cast<int64_t>(wanted.size()) + bridged + 3 * 2100);
    }
    EXPECT_LE(counting->counts().requests, static_cast<int64_t>(requests.size()));
    EXPECT_EQ(counting->counts().waves, requests.empty() ? 0 : 1);
  }
}

TEST(CoalesceTest, AnErrorReachesEveryRangeOfItsRequest) {
  auto store = MakeMemoryStore();
  const auto put = store->Put("x", std::string(100, 'x'), PutMode::kOverwrite);
  const auto stale = std::make_shared<Object>(Object{"x", {.size_bytes = 100, .tag = "old"}});
  const auto live = std::make_shared<Object>(Object{"x", *put});
  const std::vector<ReadRequest> requests = {{stale, {0, 10}}, {live, {0, 10}}, {stale, {10, 20}}};
  std::vector<Status> got(3);
  ReadEachCoalesced(store.get(), requests, {.gap_bytes_max = 10},
                    [&](size_t i, Result<std::shared_ptr<arrow::Buffer>> answer) {
                      got[i] = answer.status();
                    });
  EXPECT_TRUE(IsKind(got[0], ErrorKind::kStale));
  EXPECT_TRUE(got[1].ok());
  EXPECT_TRUE(IsKind(got[2], ErrorKind::kStale));
}

}  // namespace
}  // namespace grebe::store

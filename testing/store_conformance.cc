#include "testing/store_conformance.h"

#include <atomic>
#include <set>
#include <thread>
#include <vector>

#include "base/coding.h"
#include "base/rng.h"

namespace grebe::testing {

using store::Identity;
using store::Object;
using store::PutMode;
using store::ReadRequest;
using store::WholeObject;

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(StoreConformance);

std::string PatternBytes(int64_t n, uint64_t seed) {
  Rng rng(seed);
  std::string bytes(static_cast<size_t>(n), '\0');
  size_t at = 0;
  for (; at + 8 <= bytes.size(); at += 8) StoreLe(bytes.data() + at, rng.Next());
  for (; at < bytes.size(); ++at) bytes[at] = static_cast<char>(rng.Next());
  return bytes;
}

void StoreConformance::SetUp() {
  Result<store::Location> place = GetParam().open();
  ASSERT_TRUE(place.ok()) << place.status();
  place_ = *place;
}

std::shared_ptr<const Object> StoreConformance::Write(const std::string& name,
                                                      const std::string& bytes) {
  Result<Identity> identity = store().Put(PathOf(name), bytes, PutMode::kOverwrite);
  EXPECT_TRUE(identity.ok()) << identity.status();
  if (!identity.ok()) return nullptr;
  EXPECT_EQ(identity->size_bytes, static_cast<int64_t>(bytes.size()));
  EXPECT_FALSE(identity->tag.empty());
  return std::make_shared<Object>(Object{PathOf(name), *identity});
}

namespace {

ErrorKind ReadErrorKind(store::Store& store, const ReadRequest& request) {
  const auto answer = store.Read(std::span(&request, 1));
  EXPECT_FALSE(answer.ok());
  return answer.ok() ? ErrorKind::kInternal : KindOf(answer.status());
}

}  // namespace

TEST_P(StoreConformance, RangesComeBackExactlyOncePerRequest) {
  constexpr int kFiles = 5;
  std::vector<std::string> contents;
  std::vector<std::shared_ptr<const Object>> objects;
  for (int f = 0; f < kFiles; ++f) {
    contents.push_back(PatternBytes(200000 + f, 100 + static_cast<uint64_t>(f)));
    objects.push_back(Write("ranges/" + std::to_string(f), contents.back()));
    ASSERT_NE(objects.back(), nullptr);
  }
  Rng rng(3);
  for (const size_t count : {1, 7, 120}) {
    std::vector<ReadRequest> requests;
    std::vector<size_t> files;
    for (size_t i = 0; i < count; ++i) {
      const size_t f = rng.Below(kFiles);
      const auto begin = static_cast<int64_t>(rng.Below(contents[f].size()));
      const auto size = static_cast<int64_t>(
          rng.Below(std::min<uint64_t>(40000, contents[f].size() - begin) + 1));
      requests.push_back({objects[f], {begin, begin + size}});
      files.push_back(f);
    }
    std::vector<std::atomic<int>> calls(count);
    store().ReadEach(requests, [&](size_t i, Result<std::shared_ptr<arrow::Buffer>> answer) {
      ++calls[i];
      ASSERT_TRUE(answer.ok()) << answer.status();
      const auto& range = requests[i].range;
      EXPECT_EQ((*answer)->ToString(),
                contents[files[i]].substr(range.begin, range.size_bytes()));
    });
    for (const auto& n : calls) EXPECT_EQ(n.load(), 1);
  }
}

TEST_P(StoreConformance, NoRequestsNoCalls) {
  store().ReadEach({}, [](size_t, Result<std::shared_ptr<arrow::Buffer>>) { ADD_FAILURE(); });
  EXPECT_TRUE(store().ReadWhole({}).empty());
}

TEST_P(StoreConformance, ReplacedObjectIsStaleAndUnpinnedReadsGoOn) {
  const auto old_object = Write("stale", std::string(1000, 'a'));
  ASSERT_NE(old_object, nullptr);
  const auto new_object = Write("stale", std::string(1000, 'b'));
  EXPECT_NE(old_object->identity.tag, new_object->identity.tag);
  EXPECT_EQ(ReadErrorKind(store(), {old_object, {0, 10}}), ErrorKind::kStale);
  const ReadRequest fresh{new_object, {0, 3}};
  const auto bytes = store().Read(std::span(&fresh, 1));
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  EXPECT_EQ((*bytes)[0]->ToString(), "bbb");
  const auto unpinned = std::make_shared<Object>(Object{PathOf("stale"), {}});
  const ReadRequest any{unpinned, {998, 1000}};
  const auto tail = store().Read(std::span(&any, 1));
  ASSERT_TRUE(tail.ok()) << tail.status();
  EXPECT_EQ((*tail)[0]->ToString(), "bb");
}

TEST_P(StoreConformance, RangesOutsideAndMissingObjectsAreTypedErrors) {
  const auto object = Write("small", "0123456789");
  ASSERT_NE(object, nullptr);
  EXPECT_EQ(ReadErrorKind(store(), {object, {5, 11}}), ErrorKind::kCorrupt);
  EXPECT_EQ(ReadErrorKind(store(), {object, {10, 12}}), ErrorKind::kCorrupt);
  EXPECT_EQ(ReadErrorKind(store(), {object, {7, 5}}), ErrorKind::kInvalidArgument);
  EXPECT_EQ(ReadErrorKind(store(), {object, {-1, 5}}), ErrorKind::kInvalidArgument);
  const auto unpinned = std::make_shared<Object>(Object{PathOf("small"), {}});
  EXPECT_EQ(ReadErrorKind(store(), {unpinned, {5, 11}}), ErrorKind::kCorrupt);
  EXPECT_EQ(ReadErrorKind(store(), {unpinned, {100, 110}}), ErrorKind::kCorrupt);
  const auto missing = std::make_shared<Object>(Object{PathOf("missing"), object->identity});
  EXPECT_EQ(ReadErrorKind(store(), {missing, {0, 1}}), ErrorKind::kNotFound);

  // Each request has an answer of its own.
  const std::vector<ReadRequest> mixed = {{object, {0, 4}}, {missing, {0, 1}}, {object, {5, 11}}};
  std::vector<Status> got(3, Status::UnknownError("no call"));
  store().ReadEach(mixed, [&](size_t i, Result<std::shared_ptr<arrow::Buffer>> answer) {
    got[i] = answer.status();
  });
  EXPECT_TRUE(got[0].ok()) << got[0];
  EXPECT_EQ(KindOf(got[1]), ErrorKind::kNotFound);
  EXPECT_EQ(KindOf(got[2]), ErrorKind::kCorrupt);
}

TEST_P(StoreConformance, WholeObjectsOfUnknownSize) {
  const std::string large = PatternBytes(GetParam().large_object_bytes, 5);
  const auto a = Write("whole/a", large);
  const auto b = Write("whole/b", "");
  ASSERT_TRUE(a != nullptr && b != nullptr);
  const std::vector<std::string> paths = {PathOf("whole/a"), PathOf("whole/none"),
                                          PathOf("whole/b")};
  const std::vector<Result<WholeObject>> got = store().ReadWhole(paths);
  ASSERT_EQ(got.size(), 3u);
  ASSERT_TRUE(got[0].ok()) << got[0].status();
  EXPECT_EQ(got[0]->bytes->ToString(), large);
  EXPECT_EQ(got[0]->identity, a->identity);
  EXPECT_EQ(KindOf(got[1].status()), ErrorKind::kNotFound);
  ASSERT_TRUE(got[2].ok()) << got[2].status();
  EXPECT_EQ(got[2]->bytes->size(), 0);
}

TEST_P(StoreConformance, ListIsRecursiveSortedByBytesAndPinned) {
  const std::vector<std::string> names = {
      "l/a-b", "l/a/1.parquet", "l/a/2 x=y+z%20.parquet", "l/a.b", "l/.hidden", "l/_index/m/0.json",
      "l/\xc3\xa9.parquet", "l/date=2026-01-01/p#q?.parquet", "lx/outside"};
  std::set<std::string> expected;
  for (const std::string& name : names) {
    ASSERT_NE(Write(name, "bytes of " + name), nullptr);
    if (name.starts_with("l/")) expected.insert(PathOf(name));
  }
  const auto listed = store().List(PathOf("l/"));
  ASSERT_TRUE(listed.ok()) << listed.status();
  std::vector<std::string> paths;
  for (const Object& object : *listed) paths.push_back(object.path);
  EXPECT_EQ(paths, std::vector<std::string>(expected.begin(), expected.end()));
  // The identities listed are the ones reads are pinned to.
  for (const Object& object : *listed) {
    const ReadRequest request{std::make_shared<Object>(object), {0, object.identity.size_bytes}};
    const auto bytes = store().Read(std::span(&request, 1));
    ASSERT_TRUE(bytes.ok()) << bytes.status();
    EXPECT_EQ((*bytes)[0]->ToString(), "bytes of " + object.path.substr(place_.path.size() + 1));
  }
  const std::string middle = paths[paths.size() / 2];
  const auto after = store().List(PathOf("l/"), middle);
  ASSERT_TRUE(after.ok()) << after.status();
  ASSERT_EQ(after->size(), paths.size() - paths.size() / 2 - 1);
  EXPECT_GT(after->front().path, middle);
  const auto part = store().List(PathOf("l/a/2 x"));
  ASSERT_TRUE(part.ok()) << part.status();
  ASSERT_EQ(part->size(), 1u);
  const auto none = store().List(PathOf("nowhere/"));
  ASSERT_TRUE(none.ok()) << none.status();
  EXPECT_TRUE(none->empty());
}

TEST_P(StoreConformance, PutIfAbsentHasOneWinner) {
  const int writers = GetParam().racing_writers;
  std::atomic<int> winners{0};
  std::atomic<int> conflicts{0};
  std::atomic<int> winner{-1};
  std::vector<std::thread> threads;
  for (int w = 0; w < writers; ++w) {
    threads.emplace_back([&, w] {
      const auto put = store().Put(PathOf("race/m.json"), "writer " + std::to_string(w),
                                   PutMode::kIfAbsent);
      if (put.ok()) {
        ++winners;
        winner = w;
      } else if (KindOf(put.status()) == ErrorKind::kConflict) {
        ++conflicts;
      } else {
        ADD_FAILURE() << put.status();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(winners.load(), 1);
  EXPECT_EQ(conflicts.load(), writers - 1);
  const std::vector<std::string> path = {PathOf("race/m.json")};
  const auto whole = store().ReadWhole(path);
  ASSERT_TRUE(whole[0].ok()) << whole[0].status();
  EXPECT_EQ(whole[0]->bytes->ToString(), "writer " + std::to_string(winner.load()));
  const auto listed = store().List(PathOf("race/"));
  ASSERT_TRUE(listed.ok());
  EXPECT_EQ(listed->size(), 1u);  // no temporary files stay behind
}

TEST_P(StoreConformance, UploadShowsOnlyWhenFinished) {
  const std::string bytes = PatternBytes(GetParam().large_object_bytes, 8);
  {
    auto upload = store().StartUpload(PathOf("up/x"));
    ASSERT_TRUE(upload.ok()) << upload.status();
    for (size_t at = 0; at < bytes.size(); at += 700001) {
      ASSERT_TRUE((*upload)->Append(std::string_view(bytes).substr(at, 700001)).ok());
    }
    EXPECT_EQ(KindOf(store().Stat(PathOf("up/x")).status()), ErrorKind::kNotFound);
    const auto finished = (*upload)->Finish();
    ASSERT_TRUE(finished.ok()) << finished.status();
    const auto stat = store().Stat(PathOf("up/x"));
    ASSERT_TRUE(stat.ok()) << stat.status();
    EXPECT_EQ(stat->identity, *finished);
  }
  const std::vector<std::string> path = {PathOf("up/x")};
  const auto whole = store().ReadWhole(path);
  ASSERT_TRUE(whole[0].ok()) << whole[0].status();
  EXPECT_TRUE(whole[0]->bytes->ToString() == bytes);
  {
    auto dropped = store().StartUpload(PathOf("up/dropped"));
    ASSERT_TRUE(dropped.ok());
    ASSERT_TRUE((*dropped)->Append(bytes).ok());
  }
  const auto listed = store().List(PathOf("up/"));
  ASSERT_TRUE(listed.ok());
  EXPECT_EQ(listed->size(), 1u);
  {
    auto empty = store().StartUpload(PathOf("up/empty"));
    ASSERT_TRUE(empty.ok());
    const auto finished = (*empty)->Finish();
    ASSERT_TRUE(finished.ok()) << finished.status();
    EXPECT_EQ(finished->size_bytes, 0);
  }
}

TEST_P(StoreConformance, StatAndDelete) {
  const auto object = Write("d/x", "123");
  ASSERT_NE(object, nullptr);
  const auto stat = store().Stat(PathOf("d/x"));
  ASSERT_TRUE(stat.ok()) << stat.status();
  EXPECT_EQ(stat->identity, object->identity);
  EXPECT_EQ(KindOf(store().Stat(PathOf("d")).status()), ErrorKind::kNotFound);
  EXPECT_TRUE(store().Delete(PathOf("d/x")).ok());
  EXPECT_TRUE(store().Delete(PathOf("d/x")).ok());
  EXPECT_EQ(KindOf(store().Stat(PathOf("d/x")).status()), ErrorKind::kNotFound);
  EXPECT_EQ(ReadErrorKind(store(), {object, {0, 1}}), ErrorKind::kNotFound);
}

TEST_P(StoreConformance, ManyThreadsReadAtOnce) {
  const std::string bytes = PatternBytes(300000, 21);
  const auto object = Write("threads", bytes);
  ASSERT_NE(object, nullptr);
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      Rng rng(t);
      for (int round = 0; round < 10; ++round) {
        std::vector<ReadRequest> requests;
        for (int i = 0; i < 20; ++i) {
          const auto begin = static_cast<int64_t>(rng.Below(250000));
          requests.push_back({object, {begin, begin + 1 + static_cast<int64_t>(rng.Below(40000))}});
        }
        const auto got = store().Read(requests);
        ASSERT_TRUE(got.ok()) << got.status();
        for (size_t i = 0; i < requests.size(); ++i) {
          const auto& range = requests[i].range;
          ASSERT_TRUE((*got)[i]->ToString() == bytes.substr(range.begin, range.size_bytes()));
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace grebe::testing

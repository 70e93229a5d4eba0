// The conformance battery over the stores that need no server, and the test doubles themselves.
#include "store/store.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>

#include "store/local_store.h"
#include "store/memory_store.h"
#include "testing/counting_store.h"
#include "testing/faulty_store.h"
#include "testing/store_conformance.h"

namespace grebe::testing {
namespace {

using store::Location;
using store::MakeMemoryStore;
using store::Object;
using store::PutMode;
using store::ReadRequest;

// Folders made by the tests, removed at the end.
std::string FreshFolder() {
  struct Folders {
    std::vector<std::string> paths;
    ~Folders() {
      for (const std::string& path : paths) std::filesystem::remove_all(path);
    }
  };
  static Folders folders;
  std::string pattern = (std::filesystem::temp_directory_path() / "grebe_store_XXXXXX").string();
  folders.paths.emplace_back(::mkdtemp(pattern.data()));
  return folders.paths.back();
}

StoreBackend Local(int threads) {
  return {.name = "Local" + std::to_string(threads),
          .open = [threads]() -> Result<Location> {
            return Location{store::MakeLocalStore({.threads = threads}), FreshFolder()};
          }};
}

StoreBackend Memory() {
  return {.name = "Memory",
          .open = []() -> Result<Location> { return Location{MakeMemoryStore(), "place"}; }};
}

StoreBackend Counted() {
  return {.name = "Counted", .open = []() -> Result<Location> {
            return Location{std::make_shared<CountingStore>(MakeMemoryStore()), "place"};
          }};
}

StoreBackend FaultyWithoutFaults() {
  return {.name = "Faultless", .open = []() -> Result<Location> {
            return Location{std::make_shared<FaultyStore>(MakeMemoryStore(), FaultOptions{}),
                            "place"};
          }};
}

INSTANTIATE_TEST_SUITE_P(Stores, StoreConformance,
                         ::testing::Values(Local(1), Local(4), Memory(), Counted(),
                                           FaultyWithoutFaults()),
                         [](const auto& info) { return info.param.name; });

class DoublesTest : public ::testing::Test {
 protected:
  DoublesTest() {
    const auto put = memory_->Put("x", std::string(1000, 'x'), PutMode::kOverwrite);
    object_ = std::make_shared<Object>(Object{"x", *put});
  }
  std::vector<ReadRequest> Requests(int count) const {
    std::vector<ReadRequest> requests;
    for (int i = 0; i < count; ++i) requests.push_back({object_, {i, i + 100}});
    return requests;
  }

  std::shared_ptr<store::Store> memory_ = MakeMemoryStore();
  std::shared_ptr<const Object> object_;
};

TEST_F(DoublesTest, CountingStoreCounts) {
  CountingStore counting(memory_, /*mappable=*/false, "s3");
  EXPECT_EQ(counting.kind(), "s3");
  ASSERT_TRUE(counting.Read(Requests(3)).ok());
  ASSERT_TRUE(counting.Read({}).ok());
  const std::vector<std::string> paths = {"x", "none"};
  counting.ReadWhole(paths);
  ASSERT_TRUE(counting.List("", {}).ok());
  ASSERT_TRUE(counting.Stat("x").ok());
  ASSERT_TRUE(counting.Put("y", "1", PutMode::kIfAbsent).ok());
  ASSERT_TRUE((*counting.StartUpload("z"))->Finish().ok());
  ASSERT_TRUE(counting.Delete("z").ok());
  const StoreCounts counts = counting.counts();
  EXPECT_EQ(counts.waves, 2);
  EXPECT_EQ(counts.requests, 5);
  EXPECT_EQ(counts.bytes, 1300);
  EXPECT_EQ(counts.lists, 1);
  EXPECT_EQ(counts.stats, 1);
  EXPECT_EQ(counts.puts, 2);
  EXPECT_EQ(counts.deletes, 1);
  ASSERT_EQ(counting.log().size(), 5u);
  EXPECT_EQ(counting.log()[1], (ReadLogEntry{1, "x", {1, 101}}));
  EXPECT_EQ(counting.log()[3], (ReadLogEntry{2, "x", {0, -1}}));
  EXPECT_TRUE(IsKind(counting.Map(*object_).status(), ErrorKind::kUnsupported));
  counting.Reset();
  EXPECT_EQ(counting.counts().waves, 0);
}

TEST_F(DoublesTest, NthReadFailsOnce) {
  FaultyStore faulty(memory_, {.error_on_read = 5});
  EXPECT_TRUE(faulty.Read(Requests(4)).ok());
  EXPECT_TRUE(IsKind(faulty.Read(Requests(4)).status(), ErrorKind::kTransient));
  EXPECT_TRUE(faulty.Read(Requests(4)).ok());
  EXPECT_EQ(faulty.fault_count(), 1);
}

TEST_F(DoublesTest, TransientThenOk) {
  FaultyStore faulty(memory_, {.read_transient_once = 1});
  EXPECT_TRUE(IsKind(faulty.Read(Requests(4)).status(), ErrorKind::kTransient));
  EXPECT_TRUE(faulty.Read(Requests(4)).ok());
  EXPECT_EQ(faulty.fault_count(), 4);
}

TEST_F(DoublesTest, BodiesAreSpoiledAsDeclared) {
  FaultyStore cutting(memory_, {.short_body = 1});
  const auto cut = cutting.Read(Requests(1));
  ASSERT_TRUE(cut.ok());
  EXPECT_GT((*cut)[0]->size(), 0);
  EXPECT_LT((*cut)[0]->size(), 100);
  FaultyStore emptying(memory_, {.empty_body = 1});
  EXPECT_EQ((*emptying.Read(Requests(1)))[0]->size(), 0);
  FaultyStore flipping(memory_, {.wrong_bytes = 1});
  EXPECT_NE((*flipping.Read(Requests(1)))[0]->ToString(), std::string(100, 'x'));
  FaultyStore stale(memory_, {.read_stale = 1});
  EXPECT_TRUE(IsKind(stale.Read(Requests(1)).status(), ErrorKind::kStale));
  stale.Heal();
  EXPECT_TRUE(stale.Read(Requests(1)).ok());
}

TEST_F(DoublesTest, LostRacesAndAnswers) {
  FaultyStore racing(memory_, {.put_race_lost = 1, .rival_bytes = "theirs"});
  EXPECT_TRUE(
      IsKind(racing.Put("m", "ours", PutMode::kIfAbsent).status(), ErrorKind::kConflict));
  const std::vector<std::string> m = {"m"};
  EXPECT_EQ(memory_->ReadWhole(m)[0]->bytes->ToString(), "theirs");

  FaultyStore losing(memory_, {.put_answer_lost = 1, .upload_answer_lost = 1});
  EXPECT_TRUE(
      IsKind(losing.Put("n", "ours", PutMode::kIfAbsent).status(), ErrorKind::kTransient));
  EXPECT_TRUE(memory_->Stat("n").ok());
  auto upload = *losing.StartUpload("u");
  ASSERT_TRUE(upload->Append("abc").ok());
  EXPECT_TRUE(IsKind(upload->Finish().status(), ErrorKind::kTransient));
  EXPECT_TRUE(memory_->Stat("u").ok());

  FaultyStore tearing(memory_, {.upload_torn = 1});
  auto torn = *tearing.StartUpload("t");
  EXPECT_FALSE(torn->Append("abc").ok());
  EXPECT_FALSE(torn->Finish().ok());
  EXPECT_FALSE(memory_->Stat("t").ok());
}

TEST_F(DoublesTest, SameSeedSameFaults) {
  const auto run = [&](uint64_t seed) {
    FaultyStore faulty(memory_, {.seed = seed, .read_error = 0.3});
    std::string outcome;
    faulty.ReadEach(Requests(64), [&](size_t, Result<std::shared_ptr<arrow::Buffer>> answer) {
      outcome += answer.ok() ? '.' : 'x';
    });
    return outcome;
  };
  EXPECT_EQ(run(7), run(7));
  EXPECT_NE(run(7), run(8));
}

}  // namespace
}  // namespace grebe::testing

// The S3 store against SeaweedFS: signatures, conditions and listings of a server we did not write.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <atomic>
#include <thread>

#include "store/s3_store.h"
#include "testing/store_conformance.h"
#include "testing/weed_server.h"

namespace grebe::testing {
namespace {

using store::Location;
using store::OpenLocation;
using store::PutMode;

// One server for all tests of the program; null when SeaweedFS is not there.
WeedServer* Weed() {
  static const Result<std::unique_ptr<WeedServer>> weed =
      WeedServer::Start({.tls = true});
  static const bool ready = weed.ok() && (*weed)->MakeBucket("tests").ok();
  if (!weed.ok()) ::fprintf(stderr, "%s\n", weed.status().ToString().c_str());
  return ready ? weed->get() : nullptr;
}

bool NoWeed() {
  const char* const given = ::getenv("GREBE_WEED");
  return ::access(given != nullptr ? given : GREBE_SOURCE_DIR "/.venv/bin/weed", X_OK) != 0;
}

StoreBackend WeedBackend() {
  static std::atomic<int> next{0};
  return {.name = "SeaweedFS",
          .open = []() -> Result<Location> {
            WeedServer* const weed = Weed();
            if (weed == nullptr) return NotFound("no SeaweedFS");
            return OpenLocation("s3://tests/place" + std::to_string(next++),
                                weed->AdminOptions());
          },
          .racing_writers = 16,
          .large_object_bytes = 20 << 20};
}

INSTANTIATE_TEST_SUITE_P(Weed, StoreConformance,
                         NoWeed() ? ::testing::ValuesIn(std::vector<StoreBackend>())
                                  : ::testing::Values(WeedBackend()),
                         [](const auto& info) { return info.param.name; });

class WeedTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (NoWeed()) GTEST_SKIP() << "SeaweedFS is not installed";
    ASSERT_NE(Weed(), nullptr);
  }
};

TEST_F(WeedTest, KeysAreChecked) {
  store::StoreOptions wrong = Weed()->AdminOptions();
  wrong.s3_secret_access_key = "wrong";
  const auto refused = OpenLocation("s3://tests/k", wrong);
  EXPECT_TRUE(IsKind(refused->store->Put("k", "1", PutMode::kOverwrite).status(),
                     ErrorKind::kPermission));
  const auto reader = OpenLocation("s3://tests/k", Weed()->ReaderOptions());
  EXPECT_TRUE(IsKind(reader->store->Put("k", "1", PutMode::kOverwrite).status(),
                     ErrorKind::kPermission));
  EXPECT_TRUE(reader->store->List("nothing/").ok());
  const auto bucket = OpenLocation("s3://nosuchbucket/k", Weed()->AdminOptions());
  EXPECT_TRUE(IsKind(bucket->store->List("").status(), ErrorKind::kNotFound));
}

TEST_F(WeedTest, OverTls) {
  store::StoreOptions options = Weed()->AdminOptions();
  options.s3_endpoint = Weed()->tls_url();
  {
    const auto untrusted = OpenLocation("s3://tests/k", options);
    const auto stat = untrusted->store->Stat("k");
    EXPECT_TRUE(IsKind(stat.status(), ErrorKind::kPermission)) << stat.status();
  }
  const store::EnvLookup env = [](const char* name) -> std::optional<std::string> {
    if (std::string_view(name) == "AWS_CA_BUNDLE") return Weed()->ca_file();
    return std::nullopt;
  };
  const auto trusted = store::MakeS3Store("tests", options, env);
  ASSERT_TRUE(trusted.ok());
  const auto put = (*trusted)->Put("tls", "over tls", PutMode::kOverwrite);
  ASSERT_TRUE(put.ok()) << put.status();
  const std::vector<std::string> paths = {"tls"};
  EXPECT_EQ((*trusted)->ReadWhole(paths)[0]->bytes->ToString(), "over tls");
}

TEST_F(WeedTest, LongListingsGoOn) {
  const auto place = OpenLocation("s3://tests/many", Weed()->AdminOptions());
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = t; i < 1203; i += 4) {
        const std::string path = "many/" + std::to_string(i % 7) + "/f" + std::to_string(i);
        ASSERT_TRUE(place->store->Put(path, "x", PutMode::kIfAbsent).ok());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const int64_t before = place->store->counters().requests;
  const auto listed = place->store->List("many/");
  ASSERT_TRUE(listed.ok()) << listed.status();
  EXPECT_EQ(listed->size(), 1203u);
  EXPECT_EQ(place->store->counters().requests - before, 2);
  EXPECT_TRUE(std::is_sorted(listed->begin(), listed->end(),
                             [](const auto& a, const auto& b) { return a.path < b.path; }));
}

TEST_F(WeedTest, RacingWavesOfManyConnections) {
  const auto place = OpenLocation("s3://tests/waves", Weed()->AdminOptions());
  const std::string bytes = PatternBytes(3 << 20, 4);
  const auto put = place->store->Put("waves", bytes, PutMode::kOverwrite);
  ASSERT_TRUE(put.ok());
  const auto object = std::make_shared<store::Object>(store::Object{"waves", *put});
  Rng rng(1);
  for (int round = 0; round < 10; ++round) {
    std::vector<store::ReadRequest> requests;
    for (int i = 0; i < 200; ++i) {
      const auto begin = static_cast<int64_t>(rng.Below(bytes.size() - 70000));
      requests.push_back({object, {begin, begin + 1 + static_cast<int64_t>(rng.Below(70000))}});
    }
    const auto got = place->store->Read(requests);
    ASSERT_TRUE(got.ok()) << got.status();
    for (size_t i = 0; i < requests.size(); ++i) {
      const ByteRange range = requests[i].range;
      ASSERT_TRUE((*got)[i]->ToString() == bytes.substr(range.begin, range.size_bytes()));
    }
  }
}

}  // namespace
}  // namespace grebe::testing

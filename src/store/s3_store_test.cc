// The S3 store against a fake S3 within the process: the conformance battery, then the faults
// that a real server shows only on bad days.
#include "store/s3_store.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <thread>

#include "testing/fake_s3.h"
#include "testing/store_conformance.h"

namespace grebe::store {
namespace {

using testing::FakeReply;
using testing::FakeRequest;
using testing::FakeS3;

EnvLookup NoEnv() {
  return [](const char* name) -> std::optional<std::string> {
    const std::string_view n = name;
    if (n == "AWS_EC2_METADATA_DISABLED") return "true";
    if (n == "AWS_CONFIG_FILE" || n == "AWS_SHARED_CREDENTIALS_FILE") return "/nonexistent";
    return std::nullopt;
  };
}

// Short pauses and time-outs, so that the tests are quick.
std::shared_ptr<Store> QuickStore(const std::string& url, S3ClientOptions options = {},
                                  int connections_max = 16) {
  options.backoff_first_ms = 2;
  options.backoff_max_ms = 10;
  auto transport = MakeCurlTransport({.connections_max = connections_max});
  if (!transport.ok()) return nullptr;
  auto keys = std::make_unique<CredentialProvider>([]() -> Result<AwsCredentials> {
    return AwsCredentials{.access_key_id = "key", .secret_access_key = "secret"};
  });
  return MakeS3Store(std::make_shared<S3Client>("bucket",
                                                S3Settings{.region = "us-east-1",
                                                           .endpoint = url,
                                                           .path_style = true,
                                                           .ca_file = ""},
                                                options, *transport, std::move(keys)));
}

std::shared_ptr<FakeS3> KeptFake() {
  static std::shared_ptr<FakeS3> fake = FakeS3::Start();
  return fake;
}

testing::StoreBackend FakeBackend() {
  static std::atomic<int> next{0};
  return {.name = "FakeS3",
          .open = []() -> Result<Location> {
            return Location{QuickStore(KeptFake()->url()), "place" + std::to_string(next++)};
          },
          .racing_writers = 8,
          .large_object_bytes = 9 << 20};
}

}  // namespace
}  // namespace grebe::store

namespace grebe::testing {
INSTANTIATE_TEST_SUITE_P(S3, StoreConformance, ::testing::Values(store::FakeBackend()),
                         [](const auto& info) { return info.param.name; });
}  // namespace grebe::testing

namespace grebe::store {
namespace {

class S3FaultTest : public ::testing::Test {
 protected:
  void SetUp() override {
    fake_ = FakeS3::Start();
    ASSERT_NE(fake_, nullptr);
    fake_->Put("x", bytes_);
    object_ = std::make_shared<Object>(
        Object{"x", {static_cast<int64_t>(bytes_.size()), Md5Hex(bytes_)}});
    store_ = QuickStore(fake_->url(), {.retries_max = 3, .request_timeout_ms = 300});
  }

  // The fault for the first `count` GETs, then the truth.
  void FaultFirst(int count, FakeReply reply) {
    auto left = std::make_shared<std::atomic<int>>(count);
    fake_->set_fault([left, reply](const FakeRequest& r) -> std::optional<FakeS3::Fault> {
      if (r.method != "GET" || left->fetch_sub(1) <= 0) return std::nullopt;
      return FakeS3::Fault{reply, false};
    });
  }
  Result<std::string> ReadPart() {
    const ReadRequest request{object_, {100, 5100}};
    ARROW_ASSIGN_OR_RAISE(const auto got, store_->Read(std::span(&request, 1)));
    return got[0]->ToString();
  }
  std::string Part() const { return bytes_.substr(100, 5000); }
  FakeReply Partial(const std::string& range, const std::string& body) const {
    FakeReply reply;
    reply.status = 206;
    reply.headers = {{"Content-Range", range}, {"ETag", "\"" + Md5Hex(bytes_) + "\""}};
    reply.body = body;
    return reply;
  }

  std::string bytes_ = testing::PatternBytes(20000, 77);
  std::unique_ptr<FakeS3> fake_;
  std::shared_ptr<const Object> object_;
  std::shared_ptr<Store> store_;
};

FakeReply Status503() {
  FakeReply reply;
  reply.status = 503;
  reply.body = "<Error><Code>SlowDown</Code><Message>less</Message></Error>";
  return reply;
}

// Every fault that may pass: seen twice, then the truth; seen always, an error of the kind.
TEST_F(S3FaultTest, PassingFaultsAreRetriedAndLastingOnesAreTyped) {
  const std::string total = "/" + std::to_string(bytes_.size());
  FakeReply status_500;
  status_500.status = 500;
  FakeReply status_429;
  status_429.status = 429;
  FakeReply reset;
  reset.reset = true;
  FakeReply closed;
  closed.close_without_answer = true;
  FakeReply slow;
  slow.delay_ms = 1500;
  FakeReply cut = Partial("bytes 100-5099" + total, Part());
  cut.body_sent_max = 1234;
  FakeReply empty_cut = cut;
  empty_cut.body_sent_max = 0;
  FakeReply whole;
  whole.body = bytes_;
  FakeReply not_http;
  not_http.status = 206;
  struct Case {
    const char* name;
    FakeReply reply;
    ErrorKind lasting;
  };
  const std::vector<Case> cases = {
      {"503", Status503(), ErrorKind::kTransient},
      {"500", status_500, ErrorKind::kTransient},
      {"429", status_429, ErrorKind::kTransient},
      {"reset", reset, ErrorKind::kTransient},
      {"closed", closed, ErrorKind::kTransient},
      {"time-out", slow, ErrorKind::kTransient},
      {"cut body", cut, ErrorKind::kTransient},
      {"no body of a long one", empty_cut, ErrorKind::kTransient},
      {"short body", Partial("bytes 100-5099" + total, Part().substr(1)), ErrorKind::kTransient},
      {"empty body", Partial("bytes 100-5099" + total, ""), ErrorKind::kTransient},
      {"long body", Partial("bytes 100-5099" + total, Part() + "!"), ErrorKind::kTransient},
      {"200 for a range", whole, ErrorKind::kTransient},
      {"wrong range", Partial("bytes 101-5100" + total, Part()), ErrorKind::kCorrupt},
      {"malformed range", Partial("bytes 100-", Part()), ErrorKind::kCorrupt},
      {"no range", not_http, ErrorKind::kCorrupt},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    const StoreCounters before = store_->counters();
    const int64_t asked_before = fake_->server().request_count();
    FaultFirst(2, c.reply);
    const auto got = ReadPart();
    ASSERT_TRUE(got.ok()) << got.status();
    EXPECT_TRUE(*got == Part());
    EXPECT_EQ(fake_->server().request_count() - asked_before, 3);
    // A kept connection that turns out closed is opened again below the store, uncounted.
    EXPECT_GE(store_->counters().retries - before.retries, 1);
    FaultFirst(1000, c.reply);
    const StoreCounters again = store_->counters();
    const auto failed = ReadPart();
    ASSERT_FALSE(failed.ok());
    EXPECT_EQ(KindOf(failed.status()), c.lasting) << failed.status();
    EXPECT_EQ(store_->counters().requests - again.requests, 4);  // 1 + retries_max
  }
}

TEST_F(S3FaultTest, AnswersThatWillNotChangeAreNotRetried) {
  struct Case {
    int status;
    const char* code;
    ErrorKind kind;
  };
  const std::vector<Case> cases = {{403, "AccessDenied", ErrorKind::kPermission},
                                   {401, "Unauthorized", ErrorKind::kPermission},
                                   {404, "NoSuchKey", ErrorKind::kNotFound},
                                   {404, "NoSuchBucket", ErrorKind::kNotFound},
                                   {412, "PreconditionFailed", ErrorKind::kStale},
                                   {416, "InvalidRange", ErrorKind::kCorrupt},
                                   {501, "NotImplemented", ErrorKind::kUnsupported},
                                   {400, "InvalidRequest", ErrorKind::kInvalidArgument}};
  for (const Case& c : cases) {
    FakeReply reply;
    reply.status = c.status;
    reply.body = std::string("<Error><Code>") + c.code + "</Code></Error>";
    FaultFirst(1000, reply);
    const int64_t before = store_->counters().requests;
    const auto failed = ReadPart();
    ASSERT_FALSE(failed.ok());
    EXPECT_EQ(KindOf(failed.status()), c.kind) << failed.status();
    EXPECT_NE(failed.status().message().find(c.code), std::string::npos) << failed.status();
    EXPECT_EQ(store_->counters().requests - before, 1) << c.code;
  }
}

TEST_F(S3FaultTest, RepliesOfAnotherObjectAreStaleAlsoWhenIfMatchIsIgnored) {
  FakeReply other = Partial("bytes 100-5099/20000", Part());
  other.headers[1].second = "\"another\"";
  FaultFirst(1000, other);
  EXPECT_TRUE(IsKind(ReadPart().status(), ErrorKind::kStale));
  FaultFirst(1000, Partial("bytes 100-5099/20001", Part()));
  EXPECT_TRUE(IsKind(ReadPart().status(), ErrorKind::kStale));
  FakeReply unsatisfied;
  unsatisfied.status = 416;
  unsatisfied.headers = {{"Content-Range", "bytes */50"}};
  FaultFirst(1000, unsatisfied);
  EXPECT_TRUE(IsKind(ReadPart().status(), ErrorKind::kStale));
}

TEST_F(S3FaultTest, EachRequestOfAWaveIsRetriedOnItsOwn) {
  // By seed, half of all GETs fail in one of several ways.
  const uint64_t seed = 5;
  SCOPED_TRACE("seed " + std::to_string(seed));
  auto rng = std::make_shared<Rng>(seed);
  auto mutex = std::make_shared<std::mutex>();
  fake_->set_fault([rng, mutex](const FakeRequest& r) -> std::optional<FakeS3::Fault> {
    std::lock_guard lock(*mutex);
    if (!rng->Chance(0.4)) return std::nullopt;
    FakeReply reply = Status503();
    reply.reset = rng->Chance(0.3);
    reply.close_without_answer = rng->Chance(0.3);
    if (rng->Chance(0.2)) reply.status = 200;
    return FakeS3::Fault{reply, false};
  });
  store_ = QuickStore(fake_->url(), {.retries_max = 30});
  Rng own(seed);
  for (int round = 0; round < 5; ++round) {
    std::vector<ReadRequest> requests;
    for (int i = 0; i < 40; ++i) {
      const auto begin = static_cast<int64_t>(own.Below(15000));
      requests.push_back({object_, {begin, begin + 1 + static_cast<int64_t>(own.Below(5000))}});
    }
    const auto got = store_->Read(requests);
    ASSERT_TRUE(got.ok()) << got.status();
    for (size_t i = 0; i < requests.size(); ++i) {
      const ByteRange range = requests[i].range;
      EXPECT_TRUE((*got)[i]->ToString() == bytes_.substr(range.begin, range.size_bytes()));
    }
  }
  EXPECT_GT(store_->counters().retries, 50);
}

TEST_F(S3FaultTest, ConnectionsAreKeptAndBounded) {
  store_ = QuickStore(fake_->url(), {}, /*connections_max=*/4);
  for (int round = 0; round < 10; ++round) {
    const std::vector<ReadRequest> requests(30, ReadRequest{object_, {0, 100}});
    ASSERT_TRUE(store_->Read(requests).ok());
  }
  EXPECT_LE(fake_->server().connection_count(), 4);
  EXPECT_EQ(fake_->server().request_count(), 300);
  for (const FakeRequest& r : fake_->server().requests()) EXPECT_EQ(r.method, "GET");
}

// Answers that pile up are handled by other threads too; the one that waits, and does the network's
// work, must notice when the last of them is done. (It would otherwise wait for a time-out.)
TEST_F(S3FaultTest, WavesOfAnySizeEndWhenTheirSlowCallbacksDo) {
  store_ = QuickStore(fake_->url(), {.request_timeout_ms = 60000});
  for (int round = 0; round < 40; ++round) {
    const std::vector<ReadRequest> requests(static_cast<size_t>(1 + round % 10),
                                            ReadRequest{object_, {100, 5100}});
    std::atomic<size_t> calls{0};
    store_->ReadEach(requests, [&](size_t, Result<std::shared_ptr<arrow::Buffer>> answer) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      if (answer.ok()) ++calls;
    });
    EXPECT_EQ(calls.load(), requests.size());
  }
}

TEST_F(S3FaultTest, ServersThatCloseIdleConnectionsDoNotHurt) {
  fake_->set_fault([](const FakeRequest& r) -> std::optional<FakeS3::Fault> {
    return std::nullopt;
  });
  FakeReply closing = Partial("bytes 100-5099/20000", Part());
  closing.close_after = true;
  for (int i = 0; i < 10; ++i) {
    FaultFirst(1, closing);
    ASSERT_TRUE(ReadPart().ok());
    ASSERT_TRUE(ReadPart().ok());
  }
}

TEST_F(S3FaultTest, ALostAnswerOfAConditionalPutIsOurs) {
  // The first PUT is done but its answer lost; the second finds the object.
  auto left = std::make_shared<std::atomic<int>>(1);
  fake_->set_fault([left](const FakeRequest& r) -> std::optional<FakeS3::Fault> {
    if (r.method != "PUT" || left->fetch_sub(1) <= 0) return std::nullopt;
    return FakeS3::Fault{Status503(), true};
  });
  const auto put = store_->Put("m", "ours", PutMode::kIfAbsent);
  ASSERT_TRUE(put.ok()) << put.status();
  EXPECT_EQ(put->tag, Md5Hex("ours"));
  EXPECT_EQ(fake_->Get("m"), "ours");
}

TEST_F(S3FaultTest, ARivalsObjectAfterALostAnswerIsAConflict) {
  fake_->set_fault([this](const FakeRequest& r) -> std::optional<FakeS3::Fault> {
    if (r.method != "PUT" || fake_->Get("m")) return std::nullopt;
    fake_->Put("m", "theirs");
    return FakeS3::Fault{Status503(), false};
  });
  const auto put = store_->Put("m", "ours", PutMode::kIfAbsent);
  EXPECT_TRUE(IsKind(put.status(), ErrorKind::kConflict)) << put.status();
  EXPECT_EQ(fake_->Get("m"), "theirs");
  // The same bytes, but never an attempt of ours that might have written them.
  fake_->set_fault({});
  fake_->Put("n", "ours");
  EXPECT_TRUE(IsKind(store_->Put("n", "ours", PutMode::kIfAbsent).status(),
                     ErrorKind::kConflict));
}

TEST_F(S3FaultTest, AConflictingOperationIsAskedAgain) {
  auto left = std::make_shared<std::atomic<int>>(2);
  const auto fault = [left](const FakeRequest& r) -> std::optional<FakeS3::Fault> {
    if (r.method != "PUT" || left->fetch_sub(1) <= 0) return std::nullopt;
    FakeReply reply;
    reply.status = 409;
    reply.body = "<Error><Code>ConditionalRequestConflict</Code></Error>";
    return FakeS3::Fault{reply, false};
  };
  fake_->set_fault(fault);
  EXPECT_TRUE(store_->Put("m", "1", PutMode::kIfAbsent).ok());
  *left = 1000;
  EXPECT_TRUE(IsKind(store_->Put("o", "1", PutMode::kIfAbsent).status(), ErrorKind::kConflict));
}

TEST_F(S3FaultTest, UploadsSurviveFaultsAndLostAnswers) {
  const std::string large = testing::PatternBytes(17 << 20, 6);
  auto seen = std::make_shared<std::atomic<int>>(0);
  fake_->set_fault([seen](const FakeRequest& r) -> std::optional<FakeS3::Fault> {
    // Each second PUT or POST: carried out, but the answer is lost.
    if ((r.method != "PUT" && r.method != "POST") || seen->fetch_add(1) % 2 == 0) {
      return std::nullopt;
    }
    return FakeS3::Fault{Status503(), r.query != "uploads="};
  });
  store_ = QuickStore(fake_->url(), {.retries_max = 6});
  for (int i = 0; i < 2; ++i) {
    auto upload = store_->StartUpload("big");
    ASSERT_TRUE(upload.ok());
    ASSERT_TRUE((*upload)->Append(large).ok());
    const auto finished = (*upload)->Finish();
    ASSERT_TRUE(finished.ok()) << finished.status();
    EXPECT_EQ(finished->size_bytes, 17 << 20);
    EXPECT_TRUE(fake_->Get("big") == large);
  }
  EXPECT_EQ(fake_->open_upload_count(), 0u);
}

TEST_F(S3FaultTest, FailedAndDroppedUploadsLeaveNothing) {
  const std::string large = testing::PatternBytes(10 << 20, 6);
  fake_->set_fault([](const FakeRequest& r) -> std::optional<FakeS3::Fault> {
    if (r.method != "POST" || r.query == "uploads=") return std::nullopt;
    FakeReply late;  // 200, and an error as the body
    late.body = "<?xml version=\"1.0\"?><Error><Code>InternalError</Code></Error>";
    return FakeS3::Fault{late, false};
  });
  {
    auto upload = *store_->StartUpload("big");
    ASSERT_TRUE(upload->Append(large).ok());
    EXPECT_TRUE(IsKind(upload->Finish().status(), ErrorKind::kTransient));
  }
  { ASSERT_TRUE((*store_->StartUpload("big"))->Append(large).ok()); }
  EXPECT_FALSE(fake_->Get("big").has_value());
  EXPECT_EQ(fake_->open_upload_count(), 0u);
}

TEST_F(S3FaultTest, SlowReadsAreHedgedWhenAsked) {
  store_ = QuickStore(fake_->url(), {.hedge_after_us = 20000});
  auto first = std::make_shared<std::atomic<bool>>(true);
  fake_->set_fault([first](const FakeRequest& r) -> std::optional<FakeS3::Fault> {
    if (!first->exchange(false)) return std::nullopt;
    FakeReply slow = Status503();
    slow.delay_ms = 25000;
    return FakeS3::Fault{slow, false};
  });
  // Two, so that the budget of hedges reaches the slow one also on a slow machine.
  const std::vector<ReadRequest> requests(2, ReadRequest{object_, {100, 5100}});
  const auto got = store_->Read(requests);
  ASSERT_TRUE(got.ok()) << got.status();
  for (const auto& buffer : *got) EXPECT_TRUE(buffer->ToString() == Part());
  EXPECT_GE(store_->counters().hedges, 1);
  EXPECT_EQ(store_->counters().retries, 0);
}

TEST_F(S3FaultTest, TheBucketsRegionAndTheServersClockAreLearned) {
  auto seen = std::make_shared<std::vector<std::string>>();
  auto mutex = std::make_shared<std::mutex>();
  fake_->set_fault([=](const FakeRequest& r) -> std::optional<FakeS3::Fault> {
    std::lock_guard lock(*mutex);
    seen->push_back(r.Header("authorization") + " " + r.Header("x-amz-date"));
    FakeReply reply;
    if (seen->size() == 1) {
      reply.status = 301;
      reply.headers = {{"x-amz-bucket-region", "eu-north-1"}};
    } else if (seen->size() == 2) {
      reply.status = 403;
      reply.headers = {{"Date", "Fri, 24 May 2013 00:00:00 GMT"}};
      reply.body = "<Error><Code>RequestTimeTooSkewed</Code></Error>";
    } else {
      return std::nullopt;
    }
    return FakeS3::Fault{reply, false};
  });
  ASSERT_TRUE(ReadPart().ok());
  ASSERT_TRUE(ReadPart().ok());
  ASSERT_EQ(seen->size(), 4u);
  EXPECT_NE((*seen)[0].find("/us-east-1/"), std::string::npos);
  EXPECT_NE((*seen)[1].find("/eu-north-1/"), std::string::npos);
  EXPECT_NE((*seen)[3].find("/20130524/eu-north-1/"), std::string::npos) << (*seen)[3];
}

TEST_F(S3FaultTest, KeysThatRanOutAreFetchedAgain) {
  auto fetches = std::make_shared<std::atomic<int>>(0);
  auto transport = MakeCurlTransport({.connections_max = 4});
  ASSERT_TRUE(transport.ok());
  auto keys = std::make_unique<CredentialProvider>([fetches]() -> Result<AwsCredentials> {
    const int n = ++*fetches;
    return AwsCredentials{.access_key_id = "key" + std::to_string(n),
                          .secret_access_key = "secret",
                          .session_token = "token",
                          .expires_at_s = int64_t{1} << 40};
  });
  store_ = MakeS3Store(std::make_shared<S3Client>(
      "bucket", S3Settings{.region = "r", .endpoint = fake_->url(), .path_style = true,
                           .ca_file = ""},
      S3ClientOptions{}, *transport, std::move(keys)));
  fake_->set_fault([](const FakeRequest& r) -> std::optional<FakeS3::Fault> {
    if (r.Header("authorization").find("Credential=key1/") == std::string::npos) {
      return std::nullopt;
    }
    FakeReply reply;
    reply.status = 400;
    reply.body = "<Error><Code>ExpiredToken</Code></Error>";
    return FakeS3::Fault{reply, false};
  });
  const auto got = ReadPart();
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ(fetches->load(), 2);
  EXPECT_EQ(fake_->server().requests().back().Header("x-amz-security-token"), "token");
}

TEST_F(S3FaultTest, NothingListensIsTransient) {
  const std::string url = fake_->url();
  fake_.reset();
  store_ = QuickStore(url, {.retries_max = 1});
  EXPECT_TRUE(IsKind(ReadPart().status(), ErrorKind::kTransient));
}

TEST_F(S3FaultTest, MalformedListingsAreCorrupt) {
  for (const char* body : {"", "<html></html>", "<ListBucketResult><Contents><Key>x</Key>",
                           "<ListBucketResult><Contents><Key>x</Key><Size>-1</Size></Contents>"
                           "</ListBucketResult>",
                           "<ListBucketResult><IsTruncated>true</IsTruncated>"
                           "</ListBucketResult>"}) {
    FakeReply reply;
    reply.body = body;
    FaultFirst(1000, reply);
    EXPECT_TRUE(IsKind(store_->List("", {}).status(), ErrorKind::kCorrupt)) << body;
  }
}

TEST(S3StoreTest, LocationsOfABucket) {
  const StoreOptions options{.s3_endpoint = "http://127.0.0.1:1",
                             .s3_region = "",
                             .s3_access_key_id = "a",
                             .s3_secret_access_key = "b"};
  const auto a = OpenLocation("s3://bucket/x/", options);
  ASSERT_TRUE(a.ok()) << a.status();
  EXPECT_EQ(DisplayUri(*a), "s3://bucket/x");
  EXPECT_EQ(OpenLocation("s3a://bucket/y", options)->store, a->store);
  EXPECT_NE(OpenLocation("s3://bucket2/y", options)->store, a->store);
  for (const char* endpoint : {"127.0.0.1:1", "ftp://x", "http://", "http://x/path"}) {
    StoreOptions bad = options;
    bad.s3_endpoint = endpoint;
    EXPECT_TRUE(IsKind(OpenLocation("s3://bucket/y", bad).status(), ErrorKind::kInvalidArgument))
        << endpoint;
  }
  EXPECT_FALSE(MakeS3Store("a b", options, NoEnv()).ok());
}

}  // namespace
}  // namespace grebe::store

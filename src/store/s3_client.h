// The S3 client: signs, sends, retries, hedges. What an answer means is judged in s3_call.h.
//
// A wave's calls are all under way together. Answers are judged, and their callbacks run, on the
// thread that waits for the wave and, when answers pile up, on a few threads of the process; never
// on the thread that does the network.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "base/rng.h"
#include "store/aws_config.h"
#include "store/http_transport.h"
#include "store/s3_call.h"
#include "store/s3_sign.h"
#include "store/store.h"

namespace grebe::store {

struct S3ClientOptions {
  int retries_max = 5;  // attempts beyond the first, per call
  int64_t request_timeout_ms = 30000;
  int64_t hedge_after_us = 0;
  int64_t backoff_first_ms = 50;  // doubled each time, half of it jitter
  int64_t backoff_max_ms = 5000;
};

// One bucket. Threads: safe.
class S3Client {
 public:
  S3Client(std::string bucket, S3Settings settings, S3ClientOptions options,
           std::shared_ptr<HttpTransport> transport,
           std::unique_ptr<CredentialProvider> credentials);

  // "s3://bucket/key".
  std::string UriOf(std::string_view key) const;
  const std::string& bucket() const { return bucket_; }
  StoreCounters counters() const;

  // One call, retried within bounds. *call comes back with `unsure` as it turned out.
  Result<HttpResponse> Run(S3Call* call);

 private:
  friend class S3Wave;

  // Where requests go and how they are signed; replaced when the bucket is found elsewhere.
  struct Target {
    std::shared_ptr<const Signer> signer;
    std::string base_url;     // "https://host[:port]"
    std::string host;         // as the Host header has it
    std::string path_prefix;  // "" or "/bucket"
  };
  struct Counters {
    std::atomic<int64_t> requests{0};
    std::atomic<int64_t> retries{0};
    std::atomic<int64_t> hedges{0};
    std::atomic<int64_t> bytes_read{0};
    std::atomic<int64_t> bytes_written{0};
  };

  std::shared_ptr<const Target> MakeTarget(const std::string& region) const;
  std::shared_ptr<const Target> target() const;
  void MoveTo(const std::string& region);
  void SetClockBy(const std::string& server_date);
  Result<std::shared_ptr<HttpExchange>> MakeExchange(
      const S3Call& call, std::shared_ptr<const AwsCredentials>* credentials);
  int64_t BackoffMs(int attempt, const HttpResponse& response);

  const std::string bucket_;
  const S3Settings settings_;
  const S3ClientOptions options_;
  const std::shared_ptr<HttpTransport> transport_;
  const std::unique_ptr<CredentialProvider> credentials_;
  std::atomic<int64_t> clock_offset_s_{0};
  Counters counters_;
  mutable std::mutex mutex_;
  std::shared_ptr<const Target> target_;
  Rng jitter_;
};

// Calls that are under way together. Add and Wait: one thread.
class S3Wave : public std::enable_shared_from_this<S3Wave> {
 public:
  // on_answer: exactly once per call, from the waiting thread or, if parallel, others too; never
  // after the Wait that saw it through has returned. May change the call it is given.
  using OnAnswer = std::function<void(size_t id, S3Call& call, Result<HttpResponse> answer)>;

  // small: the waiting thread does the network's work too, when no other does; calls may begin
  // only with Wait.
  S3Wave(S3Client* client, OnAnswer on_answer, bool parallel, bool small)
      : client_(client),
        on_answer_(std::move(on_answer)),
        parallel_(parallel),
        small_(small),
        transport_(client->transport_) {}

  // Sends the call, at once unless the wave is small. id: for on_answer.
  void Add(S3Call call, size_t id);
  // Returns when at most `unfinished_max` calls are unfinished.
  void Wait(size_t unfinished_max = 0);

 private:
  struct State {
    S3Call call;
    size_t id = 0;
    size_t index = 0;
    int attempts = 0;
    int running = 0;      // exchanges under way: 2 while hedged
    bool hedged = false;
    bool done = false;
    int moves = 0;        // to another region, clock or key
    Clock::time_point sent_at;
    std::shared_ptr<const AwsCredentials> credentials;
    std::shared_ptr<HttpExchange> exchanges[2];
  };

  void Send(State* state, int64_t delay_ms, bool hedge, bool caller_drives);
  void Handle(const std::shared_ptr<HttpExchange>& exchange, bool caller_drives);
  bool Again(State* state, const Verdict& verdict, const HttpResponse& response,
             int64_t* delay_ms);
  void Finish(State* state, Result<HttpResponse> answer);
  void CallHelper();
  Clock::time_point HedgeDue();
  void SendHedges();

  S3Client* const client_;  // outlives the wave's last call
  const OnAnswer on_answer_;
  const bool parallel_;
  const bool small_;
  // The client may be gone when the last helper leaves.
  const std::shared_ptr<HttpTransport> transport_;
  const std::shared_ptr<HttpInbox> inbox_ = std::make_shared<HttpInbox>();
  std::mutex mutex_;
  std::deque<State> states_;  // addresses stay
  size_t unfinished_ = 0;
  int64_t hedges_ = 0;
  std::atomic<int> helpers_{0};
};

}  // namespace grebe::store

// One HTTP exchange after another over kept-alive connections: the small interface below the S3
// client, so that what speaks HTTP can be replaced.
//
// A transport sends what it is given once and says what came back. It neither retries (but for
// a kept-alive connection that turns out closed before any answer) nor judges answers.
#pragma once

#include <arrow/buffer.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"

namespace grebe::store {

using Clock = std::chrono::steady_clock;

struct HttpRequest {
  std::string method;
  std::string url;
  // "Name: value" lines, each ended by a zero byte.
  std::string headers;
  std::shared_ptr<const std::string> body;  // null: none
  // The whole exchange, from the moment it gets a connection. 0: no such limit, only that the
  // answer may not stand still for stall_ms.
  int64_t timeout_ms = 30000;
  int64_t stall_ms = 30000;
  // Only an answer of this status has its body received (0: any 2xx); another 2xx is cut off.
  int body_status = 0;
  // Of that body: the exact size, when known (more bytes end the exchange), else a limit.
  int64_t body_bytes = -1;
  int64_t body_bytes_max = int64_t{1} << 40;

  // Control characters in the value become spaces: a value can never start another header.
  void AddHeader(std::string_view name, std::string_view value);
};

struct HttpResponse {
  // OK: an answer came, with a status_code, and its body whole or cut off as asked.
  // Transient: no or a broken answer. Others: it will not get better by trying again.
  Status outcome;
  int status_code = 0;
  std::shared_ptr<arrow::Buffer> body;  // never null when the status was as asked
  bool body_too_long = false;
  std::string error_body;               // of other statuses; at most 64 KiB
  int64_t content_length = -1;
  std::string etag;                     // without quotes
  std::string content_range;
  std::string bucket_region;            // x-amz-bucket-region
  std::string request_id;               // x-amz-request-id
  std::string date;
  int64_t retry_after_s = -1;
  int64_t bytes_received = 0;
};

class HttpInbox;

struct HttpExchange {
  HttpRequest request;
  HttpResponse response;
  std::shared_ptr<HttpInbox> inbox;  // where the exchange goes when it is done
  size_t call_index = 0;             // for the owner
  Clock::time_point start_at;        // not before
  std::atomic<bool> abandoned{false};  // nobody waits for it any more: it may be cut off
};

// Where finished exchanges wait for the thread that asked for them.
// Threads: safe.
class HttpInbox {
 public:
  void Push(std::span<const std::shared_ptr<HttpExchange>> done);
  // The next one, or null when there is none. more: whether others wait behind it.
  std::shared_ptr<HttpExchange> TryPop(bool* more);
  // The next one; waits for it until deadline, or until a Nudge. Null then.
  std::shared_ptr<HttpExchange> Pop(Clock::time_point deadline, bool* more);
  // Whether Pop would return at once.
  bool Ready();
  // Wakes the waiting thread, or the next one to wait, to look at its own condition again.
  void Nudge();

 private:
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::shared_ptr<HttpExchange>> done_;
  bool nudged_ = false;
};

class HttpTransport {
 public:
  virtual ~HttpTransport() = default;
  // Sends the request as soon as a connection is free, not before start_at. The exchange belongs
  // to the transport until it lies in its inbox. caller_drives: the caller goes on to WaitFor at
  // once, so that no other thread need be woken for it. Threads: safe.
  virtual void Start(std::shared_ptr<HttpExchange> exchange, bool caller_drives) = 0;

  // Does the network's work on this thread, until the inbox is Ready or the deadline has passed.
  // False, at once, when another thread does it now: then wait for the inbox itself.
  virtual bool Drive(HttpInbox* inbox, Clock::time_point deadline) = 0;

  // Makes a thread that drives look at its inbox again, after a Nudge.
  virtual void Wake() = 0;
};

// The next exchange for the inbox, as HttpInbox::Pop; drives the network meanwhile if nobody does.
// Null also where another thread took the exchange first: call again.
std::shared_ptr<HttpExchange> PopDriving(HttpTransport* transport, HttpInbox* inbox,
                                         Clock::time_point deadline, bool* more);

// Sends one request and waits for it.
HttpResponse RunHttp(HttpTransport* transport, HttpRequest request);

struct CurlTransportOptions {
  int connections_max = 64;
  int64_t connect_timeout_ms = 5000;
  std::string ca_file = {};  // empty: the system's
};

// Over libcurl's multi interface, driven by epoll: by the thread that waits, when it is alone
// with few requests (two changes of thread a request cost more than the request), else by one
// thread of its own.
Result<std::shared_ptr<HttpTransport>> MakeCurlTransport(const CurlTransportOptions& options);

}  // namespace grebe::store

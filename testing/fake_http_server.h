// A small HTTP/1.1 server within the test process, for answers that no decent server would give.
// One thread per connection; keep-alive; on 127.0.0.1 and a free port.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/status.h"

namespace grebe::testing {

struct FakeRequest {
  std::string method;
  std::string path;   // as sent, without the query
  std::string query;  // as sent
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;
  int64_t ordinal = 0;  // from 1, over all connections

  std::string Header(const std::string& name) const;
  // A query parameter, decoded; "" when absent.
  std::string Parameter(const std::string& name) const;
};

struct FakeReply {
  int status = 200;
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
  int64_t content_length = -1;      // claim this length instead of the body's
  size_t body_sent_max = SIZE_MAX;  // close the connection after so many bytes of the body
  bool close_without_answer = false;
  bool reset = false;               // close with a TCP reset, without an answer
  bool close_after = false;         // close the connection after the answer, unannounced
  int delay_ms = 0;                 // before the answer
};

class FakeHttpServer {
 public:
  using Handler = std::function<FakeReply(const FakeRequest&)>;

  // handler: called from several threads at once.
  static Result<std::unique_ptr<FakeHttpServer>> Start(Handler handler);
  ~FakeHttpServer();

  std::string url() const;  // "http://127.0.0.1:port"
  int64_t request_count() const { return request_count_.load(); }
  int64_t connection_count() const { return connection_count_.load(); }
  std::vector<FakeRequest> requests() const;

 private:
  explicit FakeHttpServer(Handler handler) : handler_(std::move(handler)) {}
  void Accept();
  void Serve(int fd);
  bool ReadRequest(int fd, std::string* pending, FakeRequest* request);
  bool WaitDelay(int delay_ms);
  bool Reply(int fd, const FakeRequest& request, const FakeReply& reply);

  const Handler handler_;
  int listen_fd_ = -1;
  int port_ = 0;
  std::atomic<bool> stopping_{false};
  std::atomic<int64_t> request_count_{0};
  std::atomic<int64_t> connection_count_{0};
  mutable std::mutex mutex_;
  std::vector<FakeRequest> requests_;
  std::set<int> open_;
  std::vector<std::thread> threads_;
  std::thread acceptor_;
};

}  // namespace grebe::testing

// As much of S3 as Grebe uses, in memory, behind FakeHttpServer: conditional reads and writes,
// listings in small pages, multipart uploads. Signatures are not checked. Faults by a hook.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "testing/fake_http_server.h"

namespace grebe::testing {

class FakeS3 {
 public:
  // A fault instead of the answer. done: whether the request is carried out all the same.
  struct Fault {
    FakeReply reply;
    bool done = false;
  };
  using FaultHook = std::function<std::optional<Fault>(const FakeRequest&)>;

  static std::unique_ptr<FakeS3> Start(FaultHook fault = {});

  FakeHttpServer& server() { return *server_; }
  std::string url() const { return server_->url(); }
  void set_fault(FaultHook fault);
  // Past the protocol: what is there, and what a rival puts there.
  std::optional<std::string> Get(const std::string& key) const;
  void Put(const std::string& key, const std::string& bytes);
  size_t open_upload_count() const;

 private:
  struct Upload {
    std::string key;
    std::map<int, std::string> parts;
  };
  struct Stored {
    std::string bytes;
    std::string etag;
  };

  FakeReply Answer(const FakeRequest& request);
  FakeReply Dispatch(const FakeRequest& request, const std::string& key);
  FakeReply GetObject(const FakeRequest& request, const std::string& key);
  FakeReply PutObject(const FakeRequest& request, const std::string& key);
  FakeReply List(const FakeRequest& request);
  FakeReply Complete(const FakeRequest& request, const std::string& key);

  mutable std::mutex mutex_;
  FaultHook fault_;
  std::map<std::string, Stored> objects_;
  std::map<std::string, Upload> uploads_;
  int next_upload_ = 1;
  std::unique_ptr<FakeHttpServer> server_;  // last: stops before what it uses goes
};

}  // namespace grebe::testing

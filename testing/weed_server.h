// A real S3 server for slow tests and benchmarks: SeaweedFS, started on free ports of 127.0.0.1
// in a temporary folder, ended by its process id.
#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "store/store.h"
#include "testing/child_process.h"

namespace grebe::testing {

class WeedServer {
 public:
  struct Options {
    bool tls = false;  // serves https too, with a certificate of its own (ca_file)
  };

  // The program: $GREBE_WEED, else .venv/bin/weed of the source folder. Errors: NotFound when
  // there is none (then a test skips with a notice), Transient when it does not come up in 60 s.
  static Result<std::unique_ptr<WeedServer>> Start(const Options& options);
  static Result<std::unique_ptr<WeedServer>> Start() { return Start(Options{}); }
  ~WeedServer();

  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  std::string tls_url() const { return "https://127.0.0.1:" + std::to_string(tls_port_); }
  const std::string& ca_file() const { return ca_file_; }
  // An admin's keys, and those of one who may only read.
  store::StoreOptions AdminOptions() const;
  store::StoreOptions ReaderOptions() const;
  Status MakeBucket(const std::string& bucket);

 private:
  WeedServer() = default;
  Status Launch(const std::string& program, const Options& options);
  Status WaitUntilUp();
  Status MakeCertificate();

  std::string folder_;
  std::unique_ptr<ChildProcess> process_;
  int port_ = 0;
  int tls_port_ = 0;
  std::string ca_file_;
};

}  // namespace grebe::testing

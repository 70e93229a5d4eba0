// A program that a test starts and ends: killed by its process id with its owner, and by the
// kernel when the test itself dies.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"

namespace grebe::testing {

class ChildProcess {
 public:
  // words: the program's path and its arguments. Its output goes to log_path.
  static Result<std::unique_ptr<ChildProcess>> Start(std::vector<std::string> words,
                                                     const std::string& log_path);
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  bool running();

 private:
  explicit ChildProcess(pid_t pid) : pid_(pid) {}
  pid_t pid_;
};

// Ports of 127.0.0.1 that nobody listens on now, each with the one 10,000 above it free too
// (SeaweedFS takes that for gRPC). Below 32768, where the kernel takes the ports of outgoing
// connections from.
std::vector<int> FreePorts(size_t count);

}  // namespace grebe::testing

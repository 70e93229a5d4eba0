// A nameless temporary file for what memory cannot hold.
//
// The file has no name from the moment it can hold data, so that a killed process leaves nothing.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

#include "base/status.h"

namespace grebe {

// A temporary file that only grows. Threads: safe. Errors: LimitExceeded (no space), NotFound,
// InvalidArgument and Permission (of the folder), Transient.
class SpillFile {
 public:
  // folder: empty means $TMPDIR, else /tmp. The file is made on the first Append.
  explicit SpillFile(std::string folder) : folder_(std::move(folder)) {}
  ~SpillFile();
  SpillFile(const SpillFile&) = delete;
  SpillFile& operator=(const SpillFile&) = delete;

  Result<int64_t> Append(std::string_view bytes);   // where they begin
  Status Read(int64_t offset_bytes, size_t size_bytes, char* out) const;
  int64_t size_bytes() const { return end_.load(std::memory_order_relaxed); }

 private:
  Status Open();

  std::string folder_;
  std::once_flag once_;
  Status opened_;
  int fd_ = -1;
  std::atomic<int64_t> end_{0};
};

}  // namespace grebe

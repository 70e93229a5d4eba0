// Bytes that wait: in memory up to a limit, beyond it in a nameless temporary file.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/spill_file.h"
#include "base/status.h"
#include "store/store.h"

namespace grebe::index {

// Bytes written once in order and then copied to an upload in that order. Threads: one at a time.
class SpillBuffer {
 public:
  SpillBuffer(std::string folder, int64_t memory_bytes_max)
      : file_(std::move(folder)), memory_bytes_max_(memory_bytes_max) {}
  Status Append(std::string_view bytes);
  Status CopyTo(store::Upload& upload);
  int64_t size_bytes() const {
    return file_.size_bytes() + static_cast<int64_t>(memory_.size());
  }

 private:
  SpillFile file_;
  int64_t memory_bytes_max_;
  std::string memory_;
};

// Pieces of bytes, each to be read back whole. Threads: Put and Get are safe.
class BlobStore {
 public:
  struct Ref {
    int64_t memory_index = -1;   // -1: in the file
    int64_t offset_bytes = 0;
    int64_t size_bytes = 0;
  };
  BlobStore(std::string folder, int64_t memory_bytes_max)
      : file_(std::move(folder)), memory_bytes_max_(memory_bytes_max) {}
  Result<Ref> Put(std::string_view bytes);
  // The bytes; a piece in memory is given away (it can be had once).
  Result<std::string> Take(const Ref& ref);
  int64_t size_bytes() const { return total_bytes_.load(std::memory_order_relaxed); }

 private:
  SpillFile file_;
  int64_t memory_bytes_max_;
  std::mutex mutex_;
  int64_t memory_bytes_ = 0;
  std::vector<std::string> pieces_;
  std::atomic<int64_t> total_bytes_{0};
};

}  // namespace grebe::index

// A store whose ranges were read ahead, many files' in one wave; what was not is read from the
// store behind it. So code that reads one file after another costs one wave for all of them.
// Counts what is read. Threads: reads are safe; Prefetch and Clear not beside them.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "store/store.h"

namespace grebe::scan {

// What was read; the scan's own reads are added to it too.
struct ReadCounters {
  int64_t waves = 0;
  int64_t requests = 0;
  int64_t bytes = 0;
  int64_t gap_bytes = 0;
};

class AheadStore final : public store::Store {
 public:
  AheadStore(store::Store& behind, bool coalesce) : behind_(behind), coalesce_(coalesce) {}

  // One wave. A range that cannot be read is left out: whoever wants it gets the error.
  void Prefetch(std::vector<store::ReadRequest> requests);
  // What was read ahead is held until it is let go: all of it, or what came after a mark.
  int64_t mark() const { return prefetches_; }
  void Clear(int64_t mark = 0);

  // What was read since the last call. Reads behind the ahead ones wait for each other within a
  // file only, so the file with the most of them tells how many waves they were.
  ReadCounters TakeCounters();

  std::string_view kind() const override { return behind_.kind(); }
  store::ReadCosts read_costs() const override { return behind_.read_costs(); }
  void ReadEach(std::span<const store::ReadRequest> requests,
                const store::ReadCallback& on_read) override;
  std::vector<Result<store::WholeObject>> ReadWhole(std::span<const std::string> paths) override {
    return behind_.ReadWhole(paths);
  }
  Result<std::vector<store::Object>> List(std::string_view prefix,
                                          std::string_view start_after) override {
    return behind_.List(prefix, start_after);
  }
  Result<store::Object> Stat(std::string_view path) override { return behind_.Stat(path); }
  Result<store::Identity> Put(std::string_view path, std::string_view bytes,
                              store::PutMode mode) override {
    return behind_.Put(path, bytes, mode);
  }
  Result<std::unique_ptr<store::Upload>> StartUpload(std::string_view path) override {
    return behind_.StartUpload(path);
  }
  Status Delete(std::string_view path) override { return behind_.Delete(path); }

 private:
  struct Held {
    ByteRange range;
    std::shared_ptr<arrow::Buffer> bytes;
    int64_t prefetch = 0;   // counted from 1
  };
  std::shared_ptr<arrow::Buffer> Find(const store::ReadRequest& request) const;

  store::Store& behind_;
  const bool coalesce_;
  std::map<std::string, std::vector<Held>, std::less<>> held_;   // by path
  int64_t prefetches_ = 0;
  std::mutex mutex_;
  ReadCounters counters_;
  std::map<std::string, int64_t, std::less<>> late_waves_;       // by path
};

}  // namespace grebe::scan

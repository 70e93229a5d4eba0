// A store that counts what is asked of another one.
// Threads: safe.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "store/store.h"

namespace grebe::testing {

struct StoreCounts {
  int64_t waves = 0;     // calls of ReadEach or ReadWhole with at least one request
  int64_t requests = 0;  // ranges and whole objects asked for, the failed ones too
  int64_t bytes = 0;     // body bytes handed out
  int64_t lists = 0;
  int64_t stats = 0;
  int64_t puts = 0;     // Put and finished uploads
  int64_t deletes = 0;
  int64_t maps = 0;
};

struct ReadLogEntry {
  int64_t wave = 0;  // counted from 1 since the last Reset
  std::string path;
  ByteRange range;   // {0, -1}: the whole object
  bool operator==(const ReadLogEntry&) const = default;
};

class CountingStore final : public store::Store {
 public:
  // mappable: false makes Map answer Unsupported, as a remote store does; kind: what kind() says
  // (empty: what the wrapped store says).
  explicit CountingStore(std::shared_ptr<store::Store> wrapped, bool mappable = true,
                         std::string kind = {})
      : wrapped_(std::move(wrapped)), mappable_(mappable), kind_(std::move(kind)) {}

  StoreCounts counts() const;
  std::vector<ReadLogEntry> log() const;  // in the order asked
  void Reset();

  std::string_view kind() const override { return kind_.empty() ? wrapped_->kind() : kind_; }
  store::ReadCosts read_costs() const override { return wrapped_->read_costs(); }
  std::string Uri(std::string_view path) const override { return wrapped_->Uri(path); }
  store::StoreCounters counters() const override { return wrapped_->counters(); }

  void ReadEach(std::span<const store::ReadRequest> requests,
                const store::ReadCallback& on_read) override;
  std::vector<Result<store::WholeObject>> ReadWhole(std::span<const std::string> paths) override;
  Result<std::vector<store::Object>> List(std::string_view prefix,
                                          std::string_view start_after) override;
  Result<store::Object> Stat(std::string_view path) override;
  Result<store::Identity> Put(std::string_view path, std::string_view bytes,
                              store::PutMode mode) override;
  Result<std::unique_ptr<store::Upload>> StartUpload(std::string_view path) override;
  Status Delete(std::string_view path) override;
  Result<std::shared_ptr<arrow::Buffer>> Map(const store::Object& object) override;

 private:
  class CountingUpload;
  void Add(int64_t StoreCounts::*field, int64_t amount = 1);

  const std::shared_ptr<store::Store> wrapped_;
  const bool mappable_;
  const std::string kind_;
  mutable std::mutex mutex_;
  StoreCounts counts_;
  std::vector<ReadLogEntry> log_;
};

}  // namespace grebe::testing

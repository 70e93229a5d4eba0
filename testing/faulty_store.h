// A store that fails as declared, by a seed, in front of another one.
//
// Two kinds of fault. Legal: what a real store may do to its callers (an error of a documented
// kind, a lost race, an answer lost after the work was done). Illegal: what a store must never do
// (short or wrong bytes with OK), to show that a reader checks what it gets.
// Threads: safe. With several threads the faults drawn depend on their order.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <tuple>

#include "base/rng.h"
#include "store/store.h"

namespace grebe::testing {

// Chances are per read request, put or upload, 0 to 1.
struct FaultOptions {
  uint64_t seed = 1;

  // Legal.
  int64_t error_on_read = 0;      // the n-th read request fails with Transient, once; 0: none
  int64_t error_from_read = 0;    // every read request from the n-th on fails; 0: none
  double read_error = 0;          // Transient
  double read_stale = 0;          // Stale, although nothing changed
  double read_transient_once = 0; // the first read of a range fails with Transient, later ones not
  double list_error = 0;
  double put_error = 0;           // Transient, and nothing was written
  double put_answer_lost = 0;     // Transient, but the object was written
  double put_race_lost = 0;       // kIfAbsent: a rival writes its own bytes first; then Conflict
  std::string rival_bytes = "rival";
  double upload_torn = 0;         // Append fails with Transient after half its bytes; nothing shows
  double upload_answer_lost = 0;  // Finish says Transient, but the object is there

  // Illegal.
  double short_body = 0;   // fewer bytes than asked for, at least one
  double empty_body = 0;
  double wrong_bytes = 0;  // one bit flipped

  // Called before a read request is passed on, with its ordinal from 1: to change files meanwhile.
  std::function<void(int64_t read_ordinal, const std::string& path)> before_read = {};
};

class FaultyStore final : public store::Store {
 public:
  FaultyStore(std::shared_ptr<store::Store> wrapped, FaultOptions options)
      : wrapped_(std::move(wrapped)), options_(std::move(options)), rng_(options_.seed) {}

  // Faults so far: a test that saw none has shown nothing.
  int64_t fault_count() const;
  // From now on passes everything through.
  void Heal();

  std::string_view kind() const override { return wrapped_->kind(); }
  store::ReadCosts read_costs() const override { return wrapped_->read_costs(); }
  std::string Uri(std::string_view path) const override { return wrapped_->Uri(path); }
  store::StoreCounters counters() const override { return wrapped_->counters(); }

  void ReadEach(std::span<const store::ReadRequest> requests,
                const store::ReadCallback& on_read) override;
  std::vector<Result<store::WholeObject>> ReadWhole(std::span<const std::string> paths) override;
  Result<std::vector<store::Object>> List(std::string_view prefix,
                                          std::string_view start_after) override;
  Result<store::Object> Stat(std::string_view path) override { return wrapped_->Stat(path); }
  Result<store::Identity> Put(std::string_view path, std::string_view bytes,
                              store::PutMode mode) override;
  Result<std::unique_ptr<store::Upload>> StartUpload(std::string_view path) override;
  Status Delete(std::string_view path) override { return wrapped_->Delete(path); }

 private:
  class FaultyUpload;
  enum class Fault { kNone, kTransient, kStale, kShort, kEmpty, kWrong };

  Fault DrawRead(const std::string& path, ByteRange range);
  bool Draw(double chance);
  uint64_t DrawBelow(uint64_t bound);
  Result<std::shared_ptr<arrow::Buffer>> Spoil(Fault fault, std::shared_ptr<arrow::Buffer> bytes);

  const std::shared_ptr<store::Store> wrapped_;
  const FaultOptions options_;
  mutable std::mutex mutex_;
  Rng rng_;
  bool healed_ = false;
  int64_t read_count_ = 0;
  int64_t fault_count_ = 0;
  std::set<std::tuple<std::string, int64_t, int64_t>> seen_;
};

}  // namespace grebe::testing

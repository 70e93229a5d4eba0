#include "testing/faulty_store.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

namespace grebe::testing {

using store::Identity;
using store::Object;
using store::PutMode;
using store::WholeObject;

class FaultyStore::FaultyUpload final : public store::Upload {
 public:
  FaultyUpload(FaultyStore* store, std::unique_ptr<store::Upload> wrapped)
      : store_(store), wrapped_(std::move(wrapped)) {}

  Status Append(std::string_view bytes) override {
    if (torn_) return Transient("injected: the upload is torn");
    if (store_->Draw(store_->options_.upload_torn)) {
      torn_ = true;
      ARROW_RETURN_NOT_OK(wrapped_->Append(bytes.substr(0, bytes.size() / 2)));
      return Transient("injected: the upload is torn");
    }
    return wrapped_->Append(bytes);
  }
  Result<Identity> Finish() override {
    if (torn_) return Transient("injected: the upload is torn");
    const bool lost = store_->Draw(store_->options_.upload_answer_lost);
    ARROW_ASSIGN_OR_RAISE(Identity identity, wrapped_->Finish());
    if (lost) return Transient("injected: the answer was lost");
    return identity;
  }

 private:
  FaultyStore* store_;
  std::unique_ptr<store::Upload> wrapped_;
  bool torn_ = false;
};

int64_t FaultyStore::fault_count() const {
  std::lock_guard lock(mutex_);
  return fault_count_;
}

void FaultyStore::Heal() {
  std::lock_guard lock(mutex_);
  healed_ = true;
}

bool FaultyStore::Draw(double chance) {
  std::lock_guard lock(mutex_);
  if (healed_ || chance <= 0 || !rng_.Chance(chance)) return false;
  ++fault_count_;
  return true;
}

uint64_t FaultyStore::DrawBelow(uint64_t bound) {
  std::lock_guard lock(mutex_);
  return rng_.Below(bound);
}

FaultyStore::Fault FaultyStore::DrawRead(const std::string& path, ByteRange range) {
  int64_t ordinal;
  {
    std::lock_guard lock(mutex_);
    ordinal = ++read_count_;
  }
  if (options_.before_read) options_.before_read(ordinal, path);
  std::lock_guard lock(mutex_);
  if (healed_) return Fault::kNone;
  const auto chosen = [&]() -> Fault {
    if (ordinal == options_.error_on_read) return Fault::kTransient;
    if (options_.error_from_read > 0 && ordinal >= options_.error_from_read) {
      return Fault::kTransient;
    }
    const auto chance = [&](double p) { return p > 0 && rng_.Chance(p); };
    if (chance(options_.read_error)) return Fault::kTransient;
    if (chance(options_.read_transient_once) &&
        seen_.emplace(path, range.begin, range.end).second) {
      return Fault::kTransient;
    }
    if (chance(options_.read_stale)) return Fault::kStale;
    if (chance(options_.short_body)) return Fault::kShort;
    if (chance(options_.empty_body)) return Fault::kEmpty;
    if (chance(options_.wrong_bytes)) return Fault::kWrong;
    return Fault::kNone;
  }();
  if (chosen != Fault::kNone) ++fault_count_;
  return chosen;
}

Result<std::shared_ptr<arrow::Buffer>> FaultyStore::Spoil(Fault fault,
                                                          std::shared_ptr<arrow::Buffer> bytes) {
  if (bytes->size() == 0) return bytes;
  if (fault == Fault::kEmpty) return std::make_shared<arrow::Buffer>(nullptr, 0);
  if (fault == Fault::kShort) {
    const auto size = static_cast<uint64_t>(bytes->size());
    if (size == 1) return std::make_shared<arrow::Buffer>(nullptr, 0);
    // A copy, so that reading past its end is caught.
    return bytes->CopySlice(0, static_cast<int64_t>(1 + DrawBelow(size - 1)));
  }
  ARROW_ASSIGN_OR_RAISE(std::shared_ptr<arrow::Buffer> copy, bytes->CopySlice(0, bytes->size()));
  const uint64_t bit = DrawBelow(static_cast<uint64_t>(copy->size()) * 8);
  copy->mutable_data()[bit / 8] ^= static_cast<uint8_t>(1 << (bit % 8));
  return copy;
}

void FaultyStore::ReadEach(std::span<const store::ReadRequest> requests,
                           const store::ReadCallback& on_read) {
  std::vector<Fault> faults(requests.size());
  std::vector<store::ReadRequest> passed;
  std::vector<size_t> passed_index;
  for (size_t i = 0; i < requests.size(); ++i) {
    faults[i] = DrawRead(requests[i].object->path, requests[i].range);
    if (faults[i] == Fault::kTransient || faults[i] == Fault::kStale) continue;
    passed.push_back(requests[i]);
    passed_index.push_back(i);
  }
  for (size_t i = 0; i < requests.size(); ++i) {
    const std::string& path = requests[i].object->path;
    if (faults[i] == Fault::kTransient) on_read(i, Transient("injected", "path", path));
    if (faults[i] == Fault::kStale) on_read(i, Stale("injected", "path", path));
  }
  wrapped_->ReadEach(passed, [&](size_t p, Result<std::shared_ptr<arrow::Buffer>> answer) {
    const size_t i = passed_index[p];
    if (answer.ok() && faults[i] != Fault::kNone) answer = Spoil(faults[i], *answer);
    on_read(i, std::move(answer));
  });
}

std::vector<Result<WholeObject>> FaultyStore::ReadWhole(std::span<const std::string> paths) {
  std::vector<Fault> faults;
  for (const std::string& path : paths) faults.push_back(DrawRead(path, {0, -1}));
  std::vector<Result<WholeObject>> answers = wrapped_->ReadWhole(paths);
  for (size_t i = 0; i < paths.size(); ++i) {
    if (faults[i] == Fault::kTransient) {
      answers[i] = Transient("injected", "path", paths[i]);
    } else if (faults[i] == Fault::kStale) {
      answers[i] = Stale("injected", "path", paths[i]);
    } else if (faults[i] != Fault::kNone && answers[i].ok()) {
      Result<std::shared_ptr<arrow::Buffer>> spoiled = Spoil(faults[i], answers[i]->bytes);
      if (spoiled.ok()) answers[i]->bytes = *spoiled;
    }
  }
  return answers;
}

Result<std::vector<Object>> FaultyStore::List(std::string_view prefix,
                                              std::string_view start_after) {
  if (Draw(options_.list_error)) return Transient("injected", "prefix", prefix);
  return wrapped_->List(prefix, start_after);
}

Result<Identity> FaultyStore::Put(std::string_view path, std::string_view bytes, PutMode mode) {
  if (Draw(options_.put_error)) return Transient("injected", "path", path);
  if (mode == PutMode::kIfAbsent && Draw(options_.put_race_lost)) {
    ARROW_RETURN_NOT_OK(wrapped_->Put(path, options_.rival_bytes, mode));
  }
  const bool lost = Draw(options_.put_answer_lost);
  ARROW_ASSIGN_OR_RAISE(Identity identity, wrapped_->Put(path, bytes, mode));
  if (lost) return Transient("injected: the answer was lost", "path", path);
  return identity;
}

Result<std::unique_ptr<store::Upload>> FaultyStore::StartUpload(std::string_view path) {
  ARROW_ASSIGN_OR_RAISE(std::unique_ptr<store::Upload> upload, wrapped_->StartUpload(path));
  return std::make_unique<FaultyUpload>(this, std::move(upload));
}

}  // namespace grebe::testing

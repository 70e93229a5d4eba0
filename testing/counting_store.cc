#include "testing/counting_store.h"

#include <utility>

namespace grebe::testing {

using store::Identity;
using store::Object;
using store::WholeObject;

class CountingStore::CountingUpload final : public store::Upload {
 public:
  CountingUpload(CountingStore* store, std::unique_ptr<store::Upload> wrapped)
      : store_(store), wrapped_(std::move(wrapped)) {}
  Status Append(std::string_view bytes) override { return wrapped_->Append(bytes); }
  Result<Identity> Finish() override {
    store_->Add(&StoreCounts::puts);
    return wrapped_->Finish();
  }

 private:
  CountingStore* store_;
  std::unique_ptr<store::Upload> wrapped_;
};

void CountingStore::Add(int64_t StoreCounts::*field, int64_t amount) {
  std::lock_guard lock(mutex_);
  counts_.*field += amount;
}

StoreCounts CountingStore::counts() const {
  std::lock_guard lock(mutex_);
  return counts_;
}

std::vector<ReadLogEntry> CountingStore::log() const {
  std::lock_guard lock(mutex_);
  return log_;
}

void CountingStore::Reset() {
  std::lock_guard lock(mutex_);
  counts_ = {};
  log_.clear();
}

void CountingStore::ReadEach(std::span<const store::ReadRequest> requests,
                             const store::ReadCallback& on_read) {
  if (!requests.empty()) {
    std::lock_guard lock(mutex_);
    ++counts_.waves;
    counts_.requests += static_cast<int64_t>(requests.size());
    for (const store::ReadRequest& request : requests) {
      log_.push_back({counts_.waves, request.object->path, request.range});
    }
  }
  wrapped_->ReadEach(requests, [&](size_t i, Result<std::shared_ptr<arrow::Buffer>> answer) {
    if (answer.ok()) Add(&StoreCounts::bytes, (*answer)->size());
    on_read(i, std::move(answer));
  });
}

std::vector<Result<WholeObject>> CountingStore::ReadWhole(std::span<const std::string> paths) {
  if (!paths.empty()) {
    std::lock_guard lock(mutex_);
    ++counts_.waves;
    counts_.requests += static_cast<int64_t>(paths.size());
    for (const std::string& path : paths) log_.push_back({counts_.waves, path, {0, -1}});
  }
  std::vector<Result<WholeObject>> answers = wrapped_->ReadWhole(paths);
  for (const Result<WholeObject>& answer : answers) {
    if (answer.ok()) Add(&StoreCounts::bytes, answer->bytes->size());
  }
  return answers;
}

Result<std::vector<Object>> CountingStore::List(std::string_view prefix,
                                                std::string_view start_after) {
  Add(&StoreCounts::lists);
  return wrapped_->List(prefix, start_after);
}

Result<Object> CountingStore::Stat(std::string_view path) {
  Add(&StoreCounts::stats);
  return wrapped_->Stat(path);
}

Result<Identity> CountingStore::Put(std::string_view path, std::string_view bytes,
                                    store::PutMode mode) {
  Add(&StoreCounts::puts);
  return wrapped_->Put(path, bytes, mode);
}

Result<std::unique_ptr<store::Upload>> CountingStore::StartUpload(std::string_view path) {
  ARROW_ASSIGN_OR_RAISE(std::unique_ptr<store::Upload> upload, wrapped_->StartUpload(path));
  return std::make_unique<CountingUpload>(this, std::move(upload));
}

Status CountingStore::Delete(std::string_view path) {
  Add(&StoreCounts::deletes);
  return wrapped_->Delete(path);
}

Result<std::shared_ptr<arrow::Buffer>> CountingStore::Map(const Object& object) {
  if (!mappable_) return store::Store::Map(object);
  Add(&StoreCounts::maps);
  return wrapped_->Map(object);
}

}  // namespace grebe::testing

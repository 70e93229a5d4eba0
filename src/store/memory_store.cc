#include "store/memory_store.h"

#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>

namespace grebe::store {
namespace {

struct Blob {
  std::string bytes;
  std::string tag;
};

Result<std::shared_ptr<arrow::Buffer>> CopyOf(std::string_view bytes) {
  ARROW_ASSIGN_OR_RAISE(std::unique_ptr<arrow::Buffer> buffer,
                        arrow::AllocateBuffer(static_cast<int64_t>(bytes.size())));
  if (!bytes.empty()) std::memcpy(buffer->mutable_data(), bytes.data(), bytes.size());
  return std::shared_ptr<arrow::Buffer>(std::move(buffer));
}

class MemoryStore final : public Store {
 public:
  explicit MemoryStore(std::string_view name) : name_(name) {}

  std::string_view kind() const override { return "memory"; }
  ReadCosts read_costs() const override { return {.gap_bytes_max = 0}; }
  std::string Uri(std::string_view path) const override {
    return "memory://" + name_ + "/" + std::string(path);
  }

  void ReadEach(std::span<const ReadRequest> requests, const ReadCallback& on_read) override {
    for (size_t i = 0; i < requests.size(); ++i) on_read(i, ReadOne(requests[i]));
  }

  std::vector<Result<WholeObject>> ReadWhole(std::span<const std::string> paths) override {
    std::vector<Result<WholeObject>> answers;
    for (const std::string& path : paths) answers.push_back(ReadAll(path));
    return answers;
  }

  Result<std::vector<Object>> List(std::string_view prefix,
                                   std::string_view start_after) override {
    std::vector<Object> found;
    std::lock_guard lock(mutex_);
    for (auto it = blobs_.lower_bound(prefix); it != blobs_.end(); ++it) {
      if (!it->first.starts_with(prefix)) break;
      if (!start_after.empty() && it->first <= start_after) continue;
      found.push_back({it->first, IdentityOf(*it->second)});
    }
    return found;
  }

  Result<Object> Stat(std::string_view path) override {
    ARROW_ASSIGN_OR_RAISE(const std::shared_ptr<const Blob> blob, Find(path));
    return Object{std::string(path), IdentityOf(*blob)};
  }

  Result<Identity> Put(std::string_view path, std::string_view bytes, PutMode mode) override {
    static std::atomic<int64_t> next_version{1};
    if (path.empty()) return InvalidArgument("an empty path");
    auto blob = std::make_shared<Blob>();
    blob->bytes = bytes;
    blob->tag = "m" + std::to_string(next_version.fetch_add(1));
    std::lock_guard lock(mutex_);
    std::shared_ptr<const Blob>& slot = blobs_[std::string(path)];
    if (mode == PutMode::kIfAbsent && slot != nullptr) {
      return Conflict("the object exists", "path", Uri(path));
    }
    slot = blob;
    return IdentityOf(*blob);
  }

  Result<std::unique_ptr<Upload>> StartUpload(std::string_view path) override;

  Status Delete(std::string_view path) override {
    std::lock_guard lock(mutex_);
    const auto it = blobs_.find(path);
    if (it != blobs_.end()) blobs_.erase(it);
    return Status::OK();
  }

 private:
  static Identity IdentityOf(const Blob& blob) {
    return {.size_bytes = static_cast<int64_t>(blob.bytes.size()), .tag = blob.tag};
  }

  Result<std::shared_ptr<const Blob>> Find(std::string_view path) {
    std::lock_guard lock(mutex_);
    const auto it = blobs_.find(path);
    if (it == blobs_.end()) return NotFound("no such object", "path", Uri(path));
    return it->second;
  }

  Result<std::shared_ptr<arrow::Buffer>> ReadOne(const ReadRequest& request) {
    const Object& object = *request.object;
    ByteRange range = request.range;
    if (range.begin < 0 || range.end < range.begin) {
      return InvalidArgument("a malformed range", "begin", range.begin, "end", range.end);
    }
    if (range.empty()) return CopyOf({});
    ARROW_ASSIGN_OR_RAISE(const std::shared_ptr<const Blob> blob, Find(object.path));
    const Identity now = IdentityOf(*blob);
    if ((!object.identity.tag.empty() && object.identity.tag != now.tag) ||
        (object.identity.size_bytes >= 0 && object.identity.size_bytes != now.size_bytes)) {
      return Stale("the object was replaced", "path", Uri(object.path), "expected",
                   object.identity.tag, "got", now.tag);
    }
    if (range.end > now.size_bytes) {
      return Corrupt("a range past the end of the object", "path", Uri(object.path), "end",
                     range.end, "size_bytes", now.size_bytes);
    }
    return CopyOf(std::string_view(blob->bytes).substr(range.begin, range.size_bytes()));
  }

  Result<WholeObject> ReadAll(std::string_view path) {
    ARROW_ASSIGN_OR_RAISE(const std::shared_ptr<const Blob> blob, Find(path));
    WholeObject whole{.identity = IdentityOf(*blob), .bytes = nullptr};
    ARROW_ASSIGN_OR_RAISE(whole.bytes, CopyOf(blob->bytes));
    return whole;
  }

  const std::string name_;
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<const Blob>, std::less<>> blobs_;
};

class MemoryUpload final : public Upload {
 public:
  MemoryUpload(MemoryStore* store, std::string_view path) : store_(store), path_(path) {}

  Status Append(std::string_view bytes) override {
    if (finished_) return InvalidArgument("the upload is finished");
    bytes_.append(bytes);
    return Status::OK();
  }
  Result<Identity> Finish() override {
    if (finished_) return InvalidArgument("the upload is finished");
    finished_ = true;
    return store_->Put(path_, bytes_, PutMode::kOverwrite);
  }

 private:
  MemoryStore* store_;
  std::string path_;
  std::string bytes_;
  bool finished_ = false;
};

Result<std::unique_ptr<Upload>> MemoryStore::StartUpload(std::string_view path) {
  if (path.empty()) return InvalidArgument("an empty path");
  return std::make_unique<MemoryUpload>(this, path);
}

}  // namespace

std::shared_ptr<Store> MakeMemoryStore(std::string_view name) {
  return std::make_shared<MemoryStore>(name);
}

std::shared_ptr<Store> SharedMemoryStore(std::string_view name) {
  struct Registry {
    std::mutex mutex;
    std::map<std::string, std::shared_ptr<Store>, std::less<>> stores;
  };
  // Never destroyed: threads may still use a store while the process ends.
  static Registry* const registry = new Registry;
  std::lock_guard lock(registry->mutex);
  std::shared_ptr<Store>& store = registry->stores[std::string(name)];
  if (store == nullptr) store = MakeMemoryStore(name);
  return store;
}

}  // namespace grebe::store

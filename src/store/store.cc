#include "store/store.h"

#include <map>
#include <mutex>
#include <utility>

#include "store/arrow_store.h"
#include "store/local_store.h"
#include "store/memory_store.h"
#include "store/s3_store.h"
#include "store/uri.h"

namespace grebe::store {
namespace {

// Stores that are open now, so that Locations share their connections, threads and open files.
class OpenStores {
 public:
  template <class Make>
  Result<std::shared_ptr<Store>> Get(const std::string& name, const Make& make) {
    std::lock_guard lock(mutex_);
    std::weak_ptr<Store>& slot = stores_[name];
    std::shared_ptr<Store> store = slot.lock();
    if (store == nullptr) {
      ARROW_ASSIGN_OR_RAISE(store, make());
      slot = store;
    }
    return store;
  }

  static OpenStores& Instance() {
    static OpenStores* const stores = new OpenStores;
    return *stores;
  }

 private:
  std::mutex mutex_;
  std::map<std::string, std::weak_ptr<Store>> stores_;
};

// Everything that decides how a bucket is reached. Hashed, so that no secret lies about.
std::string S3Name(const std::string& bucket, const StoreOptions& options) {
  std::string text;
  const auto add = [&text](std::string_view part) {
    text += part;
    text.push_back('\0');
  };
  for (const std::string* part :
       {&options.s3_endpoint, &options.s3_region, &options.s3_access_key_id,
        &options.s3_secret_access_key, &options.s3_session_token}) {
    add(*part);
  }
  add(options.s3_path_style ? (*options.s3_path_style ? "path" : "host") : "auto");
  for (const int64_t number :
       {static_cast<int64_t>(options.s3_connections_max),
        static_cast<int64_t>(options.retries_max), options.request_timeout_ms,
        options.hedge_after_us}) {
    add(std::to_string(number));
  }
  const EnvLookup env = ProcessEnv();
  for (const char* name :
       {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_REGION",
        "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_PROFILE",
        "AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE", "AWS_CA_BUNDLE", "AWS_ROLE_ARN",
        "AWS_WEB_IDENTITY_TOKEN_FILE", "HOME"}) {
    add(env(name).value_or(""));
  }
  return "s3 " + bucket + " " + Sha256Hex(text);
}

Result<std::shared_ptr<Store>> OpenStore(const ParsedUri& uri, const StoreOptions& options) {
  switch (uri.scheme) {
    case Scheme::kMemory: return SharedMemoryStore(uri.authority);
    case Scheme::kFile:
      return OpenStores::Instance().Get(
          "file " + std::to_string(options.local_threads), [&]() -> Result<std::shared_ptr<Store>> {
            return MakeLocalStore({.threads = options.local_threads});
          });
    case Scheme::kS3:
      return OpenStores::Instance().Get(S3Name(uri.authority, options), [&] {
        return MakeS3Store(uri.authority, options, ProcessEnv());
      });
    case Scheme::kGcs:
      return OpenStores::Instance().Get("gs " + uri.authority, [&] {
        return MakeGcsStore(uri.authority, options, ProcessEnv());
      });
    case Scheme::kAzure:
      return OpenStores::Instance().Get("abfs " + uri.authority, [&] {
        return MakeAzureStore(uri.authority, options, ProcessEnv());
      });
  }
  return Internal("a scheme without a store");
}

}  // namespace

Status Store::Rename(std::string_view from, std::string_view to) {
  return Unsupported("this store cannot rename", "store", kind(), "from", from, "to", to);
}

Status Store::DeleteFolder(std::string_view path) {
  ARROW_ASSIGN_OR_RAISE(const auto objects, List(std::string(path) + "/"));
  for (const Object& object : objects) ARROW_RETURN_NOT_OK(Delete(object.path));
  return Status::OK();
}

Result<std::shared_ptr<arrow::Buffer>> Store::Map(const Object& object) {
  return Unsupported("this store cannot map objects", "kind", kind(), "path", object.path);
}

std::string Store::Uri(std::string_view path) const {
  return std::string(kind()) + "://" + std::string(path);
}

Result<std::vector<std::shared_ptr<arrow::Buffer>>> Store::Read(
    std::span<const ReadRequest> requests) {
  std::vector<std::shared_ptr<arrow::Buffer>> buffers(requests.size());
  std::mutex mutex;
  Status first = Status::OK();
  size_t first_index = requests.size();
  ReadEach(requests, [&](size_t i, Result<std::shared_ptr<arrow::Buffer>> answer) {
    if (answer.ok()) {
      buffers[i] = std::move(*answer);
      return;
    }
    std::lock_guard lock(mutex);
    if (i < first_index) {
      first_index = i;
      first = answer.status();
    }
  });
  ARROW_RETURN_NOT_OK(first);
  return buffers;
}

Result<Location> OpenLocation(std::string_view uri, const StoreOptions& options) {
  ARROW_ASSIGN_OR_RAISE(ParsedUri parsed, ParseUri(uri));
  Location location;
  ARROW_ASSIGN_OR_RAISE(location.store, OpenStore(parsed, options));
  location.path = std::move(parsed.path);
  return location;
}

std::string DisplayUri(const Location& location) { return location.store->Uri(location.path); }

}  // namespace grebe::store

#include "store/arrow_store.h"

#include <arrow/filesystem/filesystem.h>
#include <arrow/io/interfaces.h>
#include <arrow/util/config.h>
#include <arrow/util/io_util.h>
#ifdef ARROW_AZURE
#include <arrow/filesystem/azurefs.h>
#endif
#ifdef ARROW_GCS
#include <arrow/filesystem/gcsfs.h>
#endif

#include <algorithm>
#include <cerrno>
#include <map>
#include <utility>

#include "store/work_pool.h"

namespace grebe::store {
namespace {

namespace afs = arrow::fs;

using Answer = Result<std::shared_ptr<arrow::Buffer>>;

// Their reads block a thread each.
constexpr int kThreads = 32;

Status FromArrow(const Status& status, const std::string& uri) {
  if (status.ok()) return status;
  const std::string& text = status.message();
  const auto says = [&](const char* word) { return text.find(word) != std::string::npos; };
  ErrorKind kind = KindOf(status);
  if (arrow::internal::ErrnoFromStatus(status) == ENOENT || says("NOT_FOUND") ||
      says("does not exist") || says("BlobNotFound") || says("404 ")) {
    kind = ErrorKind::kNotFound;
  } else if (says("PERMISSION_DENIED") || says("UNAUTHENTICATED") || says("AuthenticationFailed") ||
             says("AuthorizationFailure") || says("403 ") || says("401 ")) {
    kind = ErrorKind::kPermission;
  }
  return AddContext(MakeError(kind, text), "path", uri);
}

class ArrowStore final : public Store {
 public:
  ArrowStore(std::string kind, std::string bucket, std::string uri_prefix,
             std::shared_ptr<afs::FileSystem> filesystem)
      : kind_(std::move(kind)),
        bucket_(std::move(bucket)),
        uri_prefix_(std::move(uri_prefix)),
        filesystem_(std::move(filesystem)),
        pool_(kThreads) {}

  std::string_view kind() const override { return kind_; }
  ReadCosts read_costs() const override {
    return {.gap_bytes_max = 256 << 10, .range_bytes_max = 8 << 20};
  }
  std::string Uri(std::string_view path) const override {
    return uri_prefix_ + std::string(path);
  }

  void ReadEach(std::span<const ReadRequest> requests, const ReadCallback& on_read) override;
  std::vector<Result<WholeObject>> ReadWhole(std::span<const std::string> paths) override;
  Result<std::vector<Object>> List(std::string_view prefix,
                                   std::string_view start_after) override;
  Result<Object> Stat(std::string_view path) override;

  Result<Identity> Put(std::string_view path, std::string_view, PutMode) override {
    return ReadOnly(path);
  }
  Result<std::unique_ptr<Upload>> StartUpload(std::string_view path) override {
    return ReadOnly(path);
  }
  Status Delete(std::string_view path) override { return ReadOnly(path); }

 private:
  Status ReadOnly(std::string_view path) const {
    return Unsupported("this kind of store is read only: keep the index elsewhere (--index-root)",
                       "path", Uri(path));
  }
  std::string FullPath(std::string_view path) const { return bucket_ + "/" + std::string(path); }
  Answer ReadOne(const ReadRequest& request);
  Result<WholeObject> ReadAll(const std::string& path);

  const std::string kind_;
  const std::string bucket_;
  const std::string uri_prefix_;
  const std::shared_ptr<afs::FileSystem> filesystem_;
  WorkPool pool_;
};

Identity IdentityOf(const afs::FileInfo& info) {
  return {info.size(), std::to_string(info.mtime().time_since_epoch().count())};
}

Result<Object> ArrowStore::Stat(std::string_view path) {
  const Result<afs::FileInfo> info = filesystem_->GetFileInfo(FullPath(path));
  if (!info.ok()) return FromArrow(info.status(), Uri(path));
  if (info->type() != afs::FileType::File) {
    return NotFound("no such object", "path", Uri(path));
  }
  return Object{std::string(path), IdentityOf(*info)};
}

Answer ArrowStore::ReadOne(const ReadRequest& request) {
  const Object& object = *request.object;
  const ByteRange range = request.range;
  if (range.begin < 0 || range.end < range.begin) {
    return InvalidArgument("a malformed range", "begin", range.begin, "end", range.end);
  }
  if (range.empty()) return std::make_shared<arrow::Buffer>(nullptr, 0);
  if (object.identity.size_bytes >= 0 && range.end > object.identity.size_bytes) {
    return Corrupt("a range past the end of the object", "path", Uri(object.path), "end",
                   range.end, "size_bytes", object.identity.size_bytes);
  }
  afs::FileInfo info(FullPath(object.path), afs::FileType::File);
  if (object.identity.size_bytes >= 0) info.set_size(object.identity.size_bytes);
  const auto file = filesystem_->OpenInputFile(info);
  if (!file.ok()) return FromArrow(file.status(), Uri(object.path));
  Answer bytes = (*file)->ReadAt(range.begin, range.size_bytes());
  if (!bytes.ok()) return FromArrow(bytes.status(), Uri(object.path));
  if ((*bytes)->size() == range.size_bytes()) return bytes;
  const Result<int64_t> size = (*file)->GetSize();
  if (size.ok() && range.end > *size) {
    return Corrupt("a range past the end of the object", "path", Uri(object.path), "end",
                   range.end, "size_bytes", *size);
  }
  return Transient("a body of the wrong length", "path", Uri(object.path), "expected_bytes",
                   range.size_bytes(), "got_bytes", (*bytes)->size());
}

void ArrowStore::ReadEach(std::span<const ReadRequest> requests, const ReadCallback& on_read) {
  std::vector<Answer> answers(requests.size(), Status::UnknownError("unread"));
  pool_.ParallelFor(requests.size(), [&](size_t i) { answers[i] = ReadOne(requests[i]); });
  std::map<std::tuple<std::string_view, std::string_view, int64_t>, std::vector<size_t>> objects;
  for (size_t i = 0; i < requests.size(); ++i) {
    const Object& object = *requests[i].object;
    objects[{object.path, object.identity.tag, object.identity.size_bytes}].push_back(i);
  }
  std::vector<const std::vector<size_t>*> groups;
  for (const auto& [object, indexes] : objects) groups.push_back(&indexes);
  pool_.ParallelFor(groups.size(), [&](size_t g) {
    const Object& object = *requests[groups[g]->front()].object;
    Status same;
    if (!object.identity.tag.empty() || object.identity.size_bytes >= 0) {
      const Result<Object> now = Stat(object.path);
      if (!now.ok()) {
        same = now.status();
      } else if ((!object.identity.tag.empty() && object.identity.tag != now->identity.tag) ||
                 (object.identity.size_bytes >= 0 &&
                  object.identity.size_bytes != now->identity.size_bytes)) {
        same = Stale("the object was replaced", "path", Uri(object.path), "expected",
                     object.identity.tag, "got", now->identity.tag);
      }
    }
    for (const size_t i : *groups[g]) {
      if (!same.ok() && !requests[i].range.empty()) {
        // A malformed request stays what it is.
        const bool malformed = !answers[i].ok() &&
                               IsKind(answers[i].status(), ErrorKind::kInvalidArgument);
        if (!malformed) answers[i] = same;
      }
      on_read(i, std::move(answers[i]));
    }
  });
}

Result<WholeObject> ArrowStore::ReadAll(const std::string& path) {
  constexpr int kAttemptsMax = 3;
  for (int attempt = 0; attempt < kAttemptsMax; ++attempt) {
    ARROW_ASSIGN_OR_RAISE(const Object before, Stat(path));
    WholeObject whole{before.identity, std::make_shared<arrow::Buffer>(nullptr, 0)};
    if (before.identity.size_bytes > 0) {
      const auto object = std::make_shared<Object>(before);
      ARROW_ASSIGN_OR_RAISE(whole.bytes, ReadOne({object, {0, before.identity.size_bytes}}));
    }
    ARROW_ASSIGN_OR_RAISE(const Object after, Stat(path));
    if (after.identity == before.identity) return whole;
  }
  return Transient("the object keeps changing while it is read", "path", Uri(path));
}

std::vector<Result<WholeObject>> ArrowStore::ReadWhole(std::span<const std::string> paths) {
  std::vector<Result<WholeObject>> answers(paths.size(), Status::UnknownError("unread"));
  pool_.ParallelFor(paths.size(), [&](size_t i) { answers[i] = ReadAll(paths[i]); });
  return answers;
}

Result<std::vector<Object>> ArrowStore::List(std::string_view prefix,
                                             std::string_view start_after) {
  afs::FileSelector selector;
  const size_t slash = prefix.rfind('/');
  selector.base_dir =
      slash == std::string_view::npos ? bucket_ : FullPath(prefix.substr(0, slash));
  selector.recursive = true;
  selector.allow_not_found = true;
  const auto infos = filesystem_->GetFileInfo(selector);
  if (!infos.ok()) return FromArrow(infos.status(), Uri(prefix));
  std::vector<Object> found;
  for (const afs::FileInfo& info : *infos) {
    if (info.type() != afs::FileType::File || info.path().size() <= bucket_.size()) continue;
    std::string path = info.path().substr(bucket_.size() + 1);
    if (!path.starts_with(prefix) || (!start_after.empty() && path <= start_after)) continue;
    found.push_back({std::move(path), IdentityOf(info)});
  }
  std::sort(found.begin(), found.end(),
            [](const Object& a, const Object& b) { return a.path < b.path; });
  return found;
}

#ifdef ARROW_AZURE
// "Name=value;Name=value".
std::map<std::string, std::string> ParseConnectionString(const std::string& text) {
  std::map<std::string, std::string> fields;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(';', at), text.size());
    const std::string field = text.substr(at, end - at);
    const size_t equals = field.find('=');
    if (equals != std::string::npos) fields[field.substr(0, equals)] = field.substr(equals + 1);
    at = end + 1;
  }
  return fields;
}

// Endpoint "http://host:port/account": the scheme and the authority that Arrow wants.
Status SetEndpoint(const std::string& endpoint, afs::AzureOptions* azure) {
  const size_t scheme = endpoint.find("://");
  if (scheme == std::string::npos) {
    return InvalidArgument("a malformed BlobEndpoint", "endpoint", endpoint);
  }
  std::string authority = endpoint.substr(scheme + 3);
  authority = authority.substr(0, authority.find('/'));
  azure->blob_storage_scheme = azure->dfs_storage_scheme = endpoint.substr(0, scheme);
  azure->blob_storage_authority = azure->dfs_storage_authority = authority;
  return Status::OK();
}

Status ConfigureAzure(const std::string& account, const EnvLookup& env, afs::AzureOptions* azure) {
  azure->account_name = account;
  std::string key = env("AZURE_STORAGE_KEY").value_or("");
  std::string sas = env("AZURE_STORAGE_SAS_TOKEN").value_or("");
  if (const auto text = env("AZURE_STORAGE_CONNECTION_STRING")) {
    auto fields = ParseConnectionString(*text);
    if (azure->account_name.empty()) azure->account_name = fields["AccountName"];
    key = fields["AccountKey"];
    sas = fields["SharedAccessSignature"];
    if (!fields["BlobEndpoint"].empty()) {
      ARROW_RETURN_NOT_OK(SetEndpoint(fields["BlobEndpoint"], azure));
    }
  }
  if (azure->account_name.empty()) {
    azure->account_name = env("AZURE_STORAGE_ACCOUNT").value_or("");
  }
  if (azure->account_name.empty()) {
    return InvalidArgument("no Azure account: abfs://container@account.dfs.core.windows.net/..., "
                           "or AZURE_STORAGE_ACCOUNT");
  }
  if (!key.empty()) return azure->ConfigureAccountKeyCredential(key);
  if (!sas.empty()) {
    return azure->ConfigureSASCredential(sas.starts_with('?') ? sas : "?" + sas);
  }
  return azure->ConfigureDefaultCredential();
}
#endif

}  // namespace

Result<std::shared_ptr<Store>> MakeGcsStore(const std::string& bucket, const StoreOptions& options,
                                            const EnvLookup& env) {
#ifdef ARROW_GCS
  const std::optional<std::string> emulator = env("STORAGE_EMULATOR_HOST");
  afs::GcsOptions gcs =
      emulator ? afs::GcsOptions::Anonymous() : afs::GcsOptions::Defaults();
  if (emulator) {
    const size_t scheme = emulator->find("://");
    gcs.scheme = scheme == std::string::npos ? "http" : emulator->substr(0, scheme);
    gcs.endpoint_override = scheme == std::string::npos ? *emulator : emulator->substr(scheme + 3);
    while (gcs.endpoint_override.ends_with('/')) gcs.endpoint_override.pop_back();
  }
  // Google's own default is 15 minutes.
  gcs.retry_limit_seconds =
      static_cast<double>(options.request_timeout_ms * (options.retries_max + 1)) / 1000;
  const auto filesystem = afs::GcsFileSystem::Make(gcs);
  if (!filesystem.ok()) return FromArrow(filesystem.status(), "gs://" + bucket);
  return std::make_shared<ArrowStore>("gs", bucket, "gs://" + bucket + "/", *filesystem);
#else
  return Unsupported("this Arrow was built without GCS", "bucket", bucket);
#endif
}

Result<std::shared_ptr<Store>> MakeAzureStore(const std::string& authority,
                                              const StoreOptions& options, const EnvLookup& env) {
#ifdef ARROW_AZURE
  const size_t at = authority.find('@');
  const std::string container = authority.substr(0, at);
  std::string account;
  afs::AzureOptions azure;
  if (at != std::string::npos) {
    const std::string host = authority.substr(at + 1);
    account = host.substr(0, host.find('.'));
    constexpr std::string_view kDfs = ".dfs.";
    const size_t dfs = host.find(kDfs);
    const size_t blob = host.find(".blob.");
    if (dfs == std::string::npos && blob == std::string::npos) {
      return InvalidArgument("not an Azure storage host", "authority", authority);
    }
    // National clouds have other endings: ".dfs.core.chinacloudapi.cn".
    const std::string ending = host.substr(dfs != std::string::npos ? dfs + kDfs.size()
                                                                    : blob + 6);
    azure.dfs_storage_authority = ".dfs." + ending;
    azure.blob_storage_authority = ".blob." + ending;
  }
  if (Status configured = ConfigureAzure(account, env, &azure); !configured.ok()) {
    return FromArrow(configured, "abfs://" + authority);
  }
  const auto filesystem = afs::AzureFileSystem::Make(azure);
  if (!filesystem.ok()) return FromArrow(filesystem.status(), "abfs://" + authority);
  return std::make_shared<ArrowStore>("abfs", container, "abfs://" + authority + "/",
                                      *filesystem);
#else
  return Unsupported("this Arrow was built without Azure", "authority", authority);
#endif
}

}  // namespace grebe::store

#include "store/s3_store.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "store/s3_upload.h"
#include "store/s3_xml.h"
#include "store/uri.h"

namespace grebe::store {
namespace {

// A wave of so few is driven by the thread that waits for it: changing threads for each answer
// would cost as much as the answer.
constexpr size_t kSmallWave = 8;

class S3Store final : public Store {
 public:
  explicit S3Store(std::shared_ptr<S3Client> client) : client_(std::move(client)) {}

  std::string_view kind() const override { return "s3"; }
  // A ranged GET takes the same time from 8 KiB to about 1 MiB.
  ReadCosts read_costs() const override {
    return {.gap_bytes_max = 256 << 10, .range_bytes_max = 8 << 20};
  }
  std::string Uri(std::string_view path) const override { return client_->UriOf(path); }
  StoreCounters counters() const override { return client_->counters(); }

  void ReadEach(std::span<const ReadRequest> requests, const ReadCallback& on_read) override;
  std::vector<Result<WholeObject>> ReadWhole(std::span<const std::string> paths) override;
  Result<std::vector<Object>> List(std::string_view prefix,
                                   std::string_view start_after) override;
  Result<Object> Stat(std::string_view path) override {
    if (path.empty()) return InvalidArgument("an empty path");
    return S3HeadObject(client_.get(), path);
  }
  Result<Identity> Put(std::string_view path, std::string_view bytes, PutMode mode) override {
    return S3PutObject(client_.get(), std::string(path), bytes, mode);
  }
  Result<std::unique_ptr<Upload>> StartUpload(std::string_view path) override {
    if (path.empty()) return InvalidArgument("an empty path");
    return std::make_unique<S3Upload>(client_, std::string(path));
  }
  Status Delete(std::string_view path) override {
    if (path.empty()) return InvalidArgument("an empty path");
    S3Call call;
    call.kind = S3Kind::kDelete;
    call.method = "DELETE";
    call.key = path;
    return client_->Run(&call).status();
  }

 private:
  const std::shared_ptr<S3Client> client_;
};

Status CheckRequest(const ReadRequest& request, const std::string& uri) {
  const ByteRange range = request.range;
  if (range.begin < 0 || range.end < range.begin) {
    return InvalidArgument("a malformed range", "begin", range.begin, "end", range.end);
  }
  const int64_t size_bytes = request.object->identity.size_bytes;
  if (size_bytes >= 0 && range.end > size_bytes) {
    return Corrupt("a range past the end of the object", "path", uri, "end", range.end,
                   "size_bytes", size_bytes);
  }
  return Status::OK();
}

void S3Store::ReadEach(std::span<const ReadRequest> requests, const ReadCallback& on_read) {
  auto wave = std::make_shared<S3Wave>(
      client_.get(),
      [&](size_t i, S3Call&, Result<HttpResponse> answer) {
        if (answer.ok()) {
          on_read(i, std::move(answer->body));
        } else {
          on_read(i, answer.status());
        }
      },
      /*parallel=*/true, /*small=*/requests.size() <= kSmallWave);
  std::vector<std::pair<size_t, Status>> answered;  // without a request
  for (size_t i = 0; i < requests.size(); ++i) {
    const ReadRequest& request = requests[i];
    const Status valid = CheckRequest(request, client_->UriOf(request.object->path));
    if (!valid.ok() || request.range.empty()) {
      answered.emplace_back(i, valid);
      continue;
    }
    S3Call call;
    call.key = request.object->path;
    call.range = request.range;
    call.pinned = request.object->identity;
    wave->Add(std::move(call), i);
  }
  for (auto& [i, status] : answered) {
    if (status.ok()) {
      on_read(i, std::make_shared<arrow::Buffer>(nullptr, 0));
    } else {
      on_read(i, std::move(status));
    }
  }
  wave->Wait();
}

std::vector<Result<WholeObject>> S3Store::ReadWhole(std::span<const std::string> paths) {
  std::vector<Result<WholeObject>> answers(paths.size(), Status::UnknownError("unread"));
  auto wave = std::make_shared<S3Wave>(
      client_.get(),
      [&](size_t i, S3Call&, Result<HttpResponse> answer) {
        if (answer.ok()) {
          answers[i] = WholeObject{{answer->body->size(), answer->etag}, std::move(answer->body)};
        } else {
          answers[i] = answer.status();
        }
      },
      /*parallel=*/false, /*small=*/paths.size() <= kSmallWave);
  for (size_t i = 0; i < paths.size(); ++i) {
    if (paths[i].empty()) {
      answers[i] = InvalidArgument("an empty path");
      continue;
    }
    S3Call call;
    call.kind = S3Kind::kWhole;
    call.key = paths[i];
    wave->Add(std::move(call), i);
  }
  wave->Wait();
  return answers;
}

Result<std::vector<Object>> S3Store::List(std::string_view prefix, std::string_view start_after) {
  std::vector<Object> found;
  std::string token;
  do {
    S3Call call;
    call.kind = S3Kind::kText;
    if (!token.empty()) call.query = "continuation-token=" + PercentEncode(token, false) + "&";
    call.query += "encoding-type=url&list-type=2&prefix=" + PercentEncode(prefix, false);
    if (!start_after.empty() && token.empty()) {
      call.query += "&start-after=" + PercentEncode(start_after, false);
    }
    ARROW_ASSIGN_OR_RAISE(const HttpResponse response, client_->Run(&call));
    Result<ListPage> page = ParseListPage(std::string_view(*response.body));
    if (!page.ok()) return AddContext(page.status(), "path", client_->UriOf(prefix));
    for (Object& object : page->objects) {
      if (!object.path.starts_with(prefix)) continue;
      if (!start_after.empty() && object.path <= start_after) continue;
      found.push_back(std::move(object));
    }
    if (page->continuation_token == token && !token.empty()) {
      return Corrupt("a listing that does not go on", "path", client_->UriOf(prefix));
    }
    token = std::move(page->continuation_token);
  } while (!token.empty());
  // S3 lists in the order of bytes; not every server that speaks its protocol does.
  const auto by_path = [](const Object& a, const Object& b) { return a.path < b.path; };
  if (!std::is_sorted(found.begin(), found.end(), by_path)) {
    std::sort(found.begin(), found.end(), by_path);
  }
  return found;
}

// One transport for all buckets reached alike: connections and their thread are shared.
Result<std::shared_ptr<HttpTransport>> SharedTransport(const CurlTransportOptions& options) {
  struct Registry {
    std::mutex mutex;
    std::map<std::string, std::weak_ptr<HttpTransport>> transports;
  };
  static auto* const registry = new Registry;
  const std::string name = std::to_string(options.connections_max) + " " + options.ca_file;
  std::lock_guard lock(registry->mutex);
  std::weak_ptr<HttpTransport>& slot = registry->transports[name];
  std::shared_ptr<HttpTransport> transport = slot.lock();
  if (transport == nullptr) {
    ARROW_ASSIGN_OR_RAISE(transport, MakeCurlTransport(options));
    slot = transport;
  }
  return transport;
}

}  // namespace

Result<std::shared_ptr<Store>> MakeS3Store(const std::string& bucket, const StoreOptions& options,
                                           const EnvLookup& env) {
  if (bucket.empty() || bucket.find_first_of("/?#@: \r\n") != bucket.npos) {
    return InvalidArgument("a malformed bucket name", "bucket", bucket);
  }
  if (options.s3_connections_max < 1 || options.retries_max < 0 ||
      options.request_timeout_ms < 1) {
    return InvalidArgument("s3_connections_max and request_timeout_ms are at least 1, "
                           "retries_max at least 0");
  }
  ARROW_ASSIGN_OR_RAISE(S3Settings settings, ResolveS3Settings(options, env));
  const CurlTransportOptions curl{
      .connections_max = options.s3_connections_max,
      .connect_timeout_ms = std::min<int64_t>(5000, options.request_timeout_ms),
      .ca_file = settings.ca_file};
  ARROW_ASSIGN_OR_RAISE(std::shared_ptr<HttpTransport> transport, SharedTransport(curl));
  std::unique_ptr<CredentialProvider> credentials =
      MakeCredentialChain(options, env, settings.region, transport);
  const S3ClientOptions client_options{.retries_max = options.retries_max,
                                       .request_timeout_ms = options.request_timeout_ms,
                                       .hedge_after_us = options.hedge_after_us};
  return MakeS3Store(std::make_shared<S3Client>(bucket, std::move(settings), client_options,
                                                std::move(transport), std::move(credentials)));
}

std::shared_ptr<Store> MakeS3Store(std::shared_ptr<S3Client> client) {
  return std::make_shared<S3Store>(std::move(client));
}

}  // namespace grebe::store

#include "testing/fake_s3.h"

#include <cstdio>
#include <utility>

#include "store/s3_sign.h"
#include "store/s3_xml.h"
#include "store/uri.h"

namespace grebe::testing {
namespace {

constexpr size_t kPageKeys = 3;

FakeReply Error(int status, const std::string& code) {
  FakeReply reply;
  reply.status = status;
  reply.body = "<?xml version=\"1.0\"?><Error><Code>" + code +
               "</Code><Message>as the test wants</Message></Error>";
  return reply;
}

std::string Quoted(const std::string& etag) { return "\"" + etag + "\""; }

FakeReply Written(const std::string& etag) {
  FakeReply reply;
  reply.headers = {{"ETag", Quoted(etag)}};
  return reply;
}

}  // namespace

std::unique_ptr<FakeS3> FakeS3::Start(FaultHook fault) {
  std::unique_ptr<FakeS3> s3(new FakeS3);
  s3->fault_ = std::move(fault);
  Result<std::unique_ptr<FakeHttpServer>> server =
      FakeHttpServer::Start([raw = s3.get()](const FakeRequest& r) { return raw->Answer(r); });
  if (!server.ok()) return nullptr;
  s3->server_ = std::move(*server);
  return s3;
}

void FakeS3::set_fault(FaultHook fault) {
  std::lock_guard lock(mutex_);
  fault_ = std::move(fault);
}

std::optional<std::string> FakeS3::Get(const std::string& key) const {
  std::lock_guard lock(mutex_);
  const auto found = objects_.find(key);
  if (found == objects_.end()) return std::nullopt;
  return found->second.bytes;
}

void FakeS3::Put(const std::string& key, const std::string& bytes) {
  std::lock_guard lock(mutex_);
  objects_[key] = {bytes, store::Md5Hex(bytes)};
}

size_t FakeS3::open_upload_count() const {
  std::lock_guard lock(mutex_);
  return uploads_.size();
}

FakeReply FakeS3::Answer(const FakeRequest& request) {
  FaultHook hook;
  {
    std::lock_guard lock(mutex_);
    hook = fault_;
  }
  std::optional<Fault> fault;
  if (hook) fault = hook(request);
  if (fault && !fault->done) return fault->reply;
  // "/bucket/key"
  const size_t slash = request.path.find('/', 1);
  const std::string key = slash == std::string::npos
                              ? ""
                              : store::PercentDecode(request.path.substr(slash + 1));
  FakeReply reply;
  {
    std::lock_guard lock(mutex_);
    reply = Dispatch(request, key);
  }
  return fault ? fault->reply : reply;
}

FakeReply FakeS3::Dispatch(const FakeRequest& request, const std::string& key) {
  if (request.method == "GET" && key.empty()) return List(request);
  if (request.method == "GET" || request.method == "HEAD") return GetObject(request, key);
  if (request.method == "PUT") return PutObject(request, key);
  const std::string upload_id = request.Parameter("uploadId");
  if (request.method == "DELETE") {
    FakeReply reply;
    reply.status = 204;
    if (upload_id.empty()) {
      objects_.erase(key);
    } else if (uploads_.erase(upload_id) == 0) {
      return Error(404, "NoSuchUpload");
    }
    return reply;
  }
  if (request.method != "POST") return Error(405, "MethodNotAllowed");
  if (!upload_id.empty()) return Complete(request, key);
  const std::string id = "upload " + std::to_string(next_upload_++) + "+/=";
  uploads_[id].key = key;
  FakeReply reply;
  reply.body = "<InitiateMultipartUploadResult><UploadId>" + id +
               "</UploadId></InitiateMultipartUploadResult>";
  return reply;
}

FakeReply FakeS3::GetObject(const FakeRequest& request, const std::string& key) {
  const auto found = objects_.find(key);
  if (found == objects_.end()) return Error(404, "NoSuchKey");
  const Stored& object = found->second;
  const std::string if_match = request.Header("if-match");
  if (!if_match.empty() && if_match != Quoted(object.etag)) return Error(412, "PreconditionFailed");
  FakeReply reply = Written(object.etag);
  const std::string range = request.Header("range");
  unsigned long long first = 0;
  unsigned long long last = 0;
  if (std::sscanf(range.c_str(), "bytes=%llu-%llu", &first, &last) != 2) {
    reply.body = object.bytes;
    return reply;
  }
  const std::string total = std::to_string(object.bytes.size());
  if (first >= object.bytes.size()) {
    reply = Error(416, "InvalidRange");
    reply.headers.emplace_back("Content-Range", "bytes */" + total);
    return reply;
  }
  last = std::min<unsigned long long>(last, object.bytes.size() - 1);
  reply.status = 206;
  reply.headers.emplace_back("Content-Range", "bytes " + std::to_string(first) + "-" +
                                                  std::to_string(last) + "/" + total);
  reply.body = object.bytes.substr(first, last - first + 1);
  return reply;
}

FakeReply FakeS3::PutObject(const FakeRequest& request, const std::string& key) {
  const std::string sha = request.Header("x-amz-content-sha256");
  if (!sha.empty() && sha != store::Sha256Hex(request.body)) {
    return Error(400, "XAmzContentSHA256Mismatch");
  }
  const std::string upload_id = request.Parameter("uploadId");
  if (!upload_id.empty()) {
    const auto upload = uploads_.find(upload_id);
    if (upload == uploads_.end()) return Error(404, "NoSuchUpload");
    upload->second.parts[std::atoi(request.Parameter("partNumber").c_str())] = request.body;
    return Written(store::Md5Hex(request.body));
  }
  if (request.Header("if-none-match") == "*" && objects_.contains(key)) {
    return Error(412, "PreconditionFailed");
  }
  objects_[key] = {request.body, store::Md5Hex(request.body)};
  return Written(objects_[key].etag);
}

FakeReply FakeS3::List(const FakeRequest& request) {
  const std::string prefix = request.Parameter("prefix");
  std::string after = request.Parameter("start-after");
  const std::string token = request.Parameter("continuation-token");
  if (!token.empty()) after = token.substr(2);
  std::string entries;
  std::string last;
  size_t count = 0;
  bool cut = false;
  for (auto it = objects_.upper_bound(after); it != objects_.end(); ++it) {
    if (!it->first.starts_with(prefix)) continue;
    if (count == kPageKeys) {
      cut = true;
      break;
    }
    std::string key = store::PercentEncode(it->first, true);
    for (size_t at = key.find("%20"); at != key.npos; at = key.find("%20")) key.replace(at, 3, "+");
    entries += "<Contents><Key>" + key + "</Key><Size>" +
               std::to_string(it->second.bytes.size()) + "</Size><ETag>&quot;" +
               it->second.etag + "&quot;</ETag></Contents>";
    last = it->first;
    ++count;
  }
  FakeReply reply;
  reply.body =
      "<?xml version=\"1.0\"?>\n"
      "<ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">"
      "<EncodingType>url</EncodingType><IsTruncated>" +
      std::string(cut ? "true" : "false") + "</IsTruncated>" + entries;
  if (cut) {
    reply.body += "<NextContinuationToken>t+" + store::XmlEscape(last) + "</NextContinuationToken>";
  }
  reply.body += "</ListBucketResult>";
  return reply;
}

FakeReply FakeS3::Complete(const FakeRequest& request, const std::string& key) {
  const auto upload = uploads_.find(request.Parameter("uploadId"));
  if (upload == uploads_.end() || upload->second.key != key) return Error(404, "NoSuchUpload");
  std::string bytes;
  std::string digests;
  for (const auto& [number, part] : upload->second.parts) {
    const std::string hex = store::Md5Hex(part);
    if (request.body.find(hex) == std::string::npos) return Error(400, "InvalidPart");
    for (size_t i = 0; i < hex.size(); i += 2) {
      digests.push_back(static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16)));
    }
    bytes += part;
  }
  const std::string etag =
      store::Md5Hex(digests) + "-" + std::to_string(upload->second.parts.size());
  objects_[key] = {bytes, etag};
  uploads_.erase(upload);
  FakeReply reply;
  reply.body = "<CompleteMultipartUploadResult><ETag>&quot;" + etag +
               "&quot;</ETag></CompleteMultipartUploadResult>";
  return reply;
}

}  // namespace grebe::testing

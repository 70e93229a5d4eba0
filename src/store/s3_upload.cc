#include "store/s3_upload.h"

#include <algorithm>
#include <utility>

#include "store/s3_xml.h"
#include "store/uri.h"

namespace grebe::store {
namespace {

constexpr size_t kPartBytes = 8 << 20;
constexpr size_t kPartsInFlight = 4;
constexpr size_t kPartsMax = 10000;

// S3 takes 10,000 parts: later ones are larger, so that objects of up to 500 GB fit.
size_t PartBytes(size_t part_index) { return kPartBytes << std::min<size_t>(part_index / 2000, 4); }

bool IsMd5Hex(std::string_view text) {
  return text.size() == 32 && text.find_first_not_of("0123456789abcdef") == text.npos;
}

// The ETag S3 gives an object of these parts, where the parts' ETags are MD5s.
std::string ExpectedEtag(const std::vector<std::string>& etags) {
  std::string digests;
  for (const std::string& etag : etags) {
    if (!IsMd5Hex(etag)) return "";
    for (size_t i = 0; i < etag.size(); i += 2) {
      digests.push_back(static_cast<char>(std::stoi(etag.substr(i, 2), nullptr, 16)));
    }
  }
  return Md5Hex(digests) + "-" + std::to_string(etags.size());
}

S3Call MakePut(const std::string& key, std::string bytes) {
  S3Call call;
  call.kind = S3Kind::kPut;
  call.method = "PUT";
  call.key = key;
  call.body_sha256_hex = Sha256Hex(bytes);
  call.body = std::make_shared<const std::string>(std::move(bytes));
  return call;
}

}  // namespace

Result<Object> S3HeadObject(S3Client* client, std::string_view key) {
  S3Call call;
  call.kind = S3Kind::kHead;
  call.method = "HEAD";
  call.key = key;
  ARROW_ASSIGN_OR_RAISE(const HttpResponse response, client->Run(&call));
  return Object{std::string(key), {response.content_length, response.etag}};
}

Result<Identity> S3PutObject(S3Client* client, const std::string& key, std::string_view bytes,
                             PutMode mode) {
  if (key.empty()) return InvalidArgument("an empty path");
  S3Call call = MakePut(key, std::string(bytes));
  call.if_absent = mode == PutMode::kIfAbsent;
  const auto size_bytes = static_cast<int64_t>(bytes.size());
  Result<HttpResponse> put = client->Run(&call);
  if (put.ok() && !put->etag.empty()) return Identity{size_bytes, put->etag};
  const bool own_or_rival = !put.ok() && IsKind(put.status(), ErrorKind::kConflict) && call.unsure;
  if (!put.ok() && !own_or_rival) return put.status();
  if (put.ok()) {
    ARROW_ASSIGN_OR_RAISE(const Object written, S3HeadObject(client, key));
    return written.identity;
  }
  // An earlier attempt's answer was lost, and now the object exists: ours, or a rival's?
  S3Call look;
  look.kind = S3Kind::kWhole;
  look.key = key;
  ARROW_ASSIGN_OR_RAISE(const HttpResponse there, client->Run(&look));
  if (std::string_view(*there.body) != bytes) return put.status();
  return Identity{size_bytes, there.etag};
}

S3Upload::S3Upload(std::shared_ptr<S3Client> client, std::string key)
    : client_(std::move(client)), key_(std::move(key)) {
  wave_ = std::make_shared<S3Wave>(
      client_.get(),
      [this](size_t part, S3Call&, Result<HttpResponse> answer) {
        if (!answer.ok()) {
          if (failure_.ok()) failure_ = answer.status();
        } else if (answer->etag.empty()) {
          failure_ = Corrupt("a part without an ETag", "path", client_->UriOf(key_));
        } else {
          etags_[part] = answer->etag;
        }
      },
      /*parallel=*/false, /*small=*/false);
}

S3Upload::~S3Upload() {
  wave_->Wait();
  if (!finished_) Abort();
}

void S3Upload::Abort() {
  if (upload_id_.empty()) return;
  S3Call call;
  call.kind = S3Kind::kDelete;
  call.method = "DELETE";
  call.key = key_;
  call.query = "uploadId=" + PercentEncode(upload_id_, false);
  (void)client_->Run(&call);  // nothing more can be done; buckets have a rule for such parts
  upload_id_.clear();
}

Status S3Upload::Begin() {
  S3Call call;
  call.kind = S3Kind::kText;
  call.method = "POST";
  call.key = key_;
  call.query = "uploads=";
  call.body = std::make_shared<const std::string>();
  ARROW_ASSIGN_OR_RAISE(const HttpResponse response, client_->Run(&call));
  upload_id_ = XmlText(std::string_view(*response.body), "UploadId").value_or("");
  if (upload_id_.empty()) {
    return Corrupt("an upload without an id", "path", client_->UriOf(key_));
  }
  return Status::OK();
}

Status S3Upload::SendPart(std::string bytes) {
  if (etags_.size() == kPartsMax) {
    return LimitExceeded("an upload of more than 10,000 parts", "path", client_->UriOf(key_));
  }
  if (upload_id_.empty()) ARROW_RETURN_NOT_OK(Begin());
  wave_->Wait(kPartsInFlight - 1);
  ARROW_RETURN_NOT_OK(failure_);
  S3Call call = MakePut(key_, std::move(bytes));
  etags_.emplace_back();
  call.query = "partNumber=" + std::to_string(etags_.size()) +
               "&uploadId=" + PercentEncode(upload_id_, false);
  wave_->Add(std::move(call), etags_.size() - 1);
  return Status::OK();
}

Status S3Upload::Append(std::string_view bytes) {
  if (finished_) return InvalidArgument("the upload is finished");
  ARROW_RETURN_NOT_OK(failure_);
  size_bytes_ += static_cast<int64_t>(bytes.size());
  while (!bytes.empty()) {
    const size_t part_bytes = PartBytes(etags_.size());
    const size_t taken = std::min(bytes.size(), part_bytes - pending_.size());
    pending_.append(bytes.substr(0, taken));
    bytes.remove_prefix(taken);
    if (pending_.size() < part_bytes) break;
    if (Status sent = SendPart(std::exchange(pending_, {})); !sent.ok()) {
      failure_ = sent;
      return sent;
    }
  }
  return Status::OK();
}

Result<Identity> S3Upload::Complete() {
  if (!pending_.empty()) ARROW_RETURN_NOT_OK(SendPart(std::exchange(pending_, {})));
  wave_->Wait();
  ARROW_RETURN_NOT_OK(failure_);
  S3Call call;
  call.kind = S3Kind::kText;
  call.method = "POST";
  call.key = key_;
  call.query = "uploadId=" + PercentEncode(upload_id_, false);
  call.body = std::make_shared<const std::string>(CompleteUploadXml(etags_));
  call.body_sha256_hex = Sha256Hex(*call.body);
  const Result<HttpResponse> response = client_->Run(&call);
  if (response.ok()) {
    std::string etag = XmlText(std::string_view(*response->body), "ETag").value_or("");
    if (etag.size() >= 2 && etag.front() == '"') etag = etag.substr(1, etag.size() - 2);
    if (!etag.empty()) return Identity{size_bytes_, etag};
    ARROW_ASSIGN_OR_RAISE(const Object object, S3HeadObject(client_.get(), key_));
    return object.identity;
  }
  // The answer to an earlier attempt was lost, and the upload is gone: because it was completed?
  if (!call.unsure || !IsKind(response.status(), ErrorKind::kNotFound)) return response.status();
  const Result<Object> object = S3HeadObject(client_.get(), key_);
  if (object.ok() && object->identity.size_bytes == size_bytes_ &&
      object->identity.tag == ExpectedEtag(etags_)) {
    return object->identity;
  }
  return response.status();
}

Result<Identity> S3Upload::Finish() {
  if (finished_) return InvalidArgument("the upload is finished");
  ARROW_RETURN_NOT_OK(failure_);
  Result<Identity> identity = upload_id_.empty()
                                  ? S3PutObject(client_.get(), key_, pending_, PutMode::kOverwrite)
                                  : Complete();
  if (identity.ok()) {
    finished_ = true;
  } else {
    failure_ = identity.status();
  }
  return identity;
}

}  // namespace grebe::store

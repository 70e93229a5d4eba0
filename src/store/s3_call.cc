#include "store/s3_call.h"

#include <charconv>
#include <utility>

#include "store/s3_xml.h"

namespace grebe::store {
namespace {

std::string Describe(std::string_view what, const HttpResponse& response, std::string_view uri,
                     std::string_view code, std::string_view message) {
  std::string text(what);
  text += " path=" + std::string(uri) + " status=" + std::to_string(response.status_code);
  if (!code.empty()) text += " code=" + std::string(code);
  if (!message.empty()) text += " message=\"" + std::string(message.substr(0, 300)) + "\"";
  if (!response.request_id.empty()) text += " request_id=" + response.request_id.substr(0, 64);
  return text;
}

bool ParseNumber(std::string_view text, int64_t* value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  return error == std::errc() && end == text.data() + text.size() && *value >= 0;
}

Verdict Retry(Status status) { return {.next = Verdict::kRetry, .status = std::move(status)}; }
Verdict Fail(Status status) { return {.next = Verdict::kFail, .status = std::move(status)}; }

Verdict JudgeRange(const S3Call& call, const HttpResponse& response, const std::string& uri) {
  if (response.status_code == 200) {
    return Retry(Transient("the server ignores ranges: the whole object instead of a part", "path",
                           uri));
  }
  const std::optional<ContentRange> got = ParseContentRange(response.content_range);
  if (!got || got->begin != call.range.begin || got->end > call.range.end) {
    return Retry(Corrupt("a wrong Content-Range", "path", uri, "expected_begin", call.range.begin,
                         "expected_end", call.range.end, "got", response.content_range));
  }
  if (!call.pinned.tag.empty() && !response.etag.empty() && response.etag != call.pinned.tag) {
    return Fail(Stale("the object was replaced", "path", uri, "expected", call.pinned.tag, "got",
                      response.etag));
  }
  if (call.pinned.size_bytes >= 0 && got->total >= 0 && got->total != call.pinned.size_bytes) {
    return Fail(Stale("the object's size changed", "path", uri, "expected_bytes",
                      call.pinned.size_bytes, "got_bytes", got->total));
  }
  if (got->end < call.range.end) {
    return Fail(Corrupt("a range past the end of the object", "path", uri, "end", call.range.end,
                        "size_bytes", got->total));
  }
  const int64_t size_bytes = response.body == nullptr ? 0 : response.body->size();
  if (response.body_too_long || size_bytes != call.range.size_bytes()) {
    return Retry(Transient("a body of the wrong length", "path", uri, "expected_bytes",
                           call.range.size_bytes(), "got_bytes", size_bytes));
  }
  return {};
}

Verdict JudgeSuccess(const S3Call& call, const HttpResponse& response, const std::string& uri) {
  switch (call.kind) {
    case S3Kind::kRange: return JudgeRange(call, response, uri);
    case S3Kind::kHead:
    case S3Kind::kDelete: return {};
    case S3Kind::kPut:
      // Some servers answer 204 or 201; the ETag is what counts, and the store asks where it
      // is missing.
      return {};
    case S3Kind::kWhole:
    case S3Kind::kText: break;
  }
  if (response.status_code != 200 || response.body == nullptr || response.body_too_long) {
    return Retry(Transient(Describe("an unexpected answer", response, uri, "", "")));
  }
  if (call.kind == S3Kind::kText) {
    // CompleteMultipartUpload reports failures late: 200, and an error as the body.
    const std::string_view xml(*response.body);
    if (xml.substr(0, 256).find("<Error>") != std::string_view::npos) {
      const std::string code = XmlText(xml, "Code").value_or("");
      Status status = Transient(Describe("storage failed", response, uri, code,
                                         XmlText(xml, "Message").value_or("")));
      return code == "InternalError" || code == "SlowDown" || code == "ServiceUnavailable"
                 ? Retry(std::move(status))
                 : Fail(std::move(status));
    }
  }
  return {};
}

Verdict JudgeForbidden(const HttpResponse& response, const std::string& code,
                       const std::string& text) {
  Status status = MakeError(ErrorKind::kPermission, text);
  if (code == "RequestTimeTooSkewed" && !response.date.empty()) {
    return {.next = Verdict::kOtherClock, .status = std::move(status)};
  }
  if (code == "ExpiredToken" || code == "ExpiredTokenException" ||
      code == "TokenRefreshRequired" || code == "InvalidToken") {
    return {.next = Verdict::kNewKeys, .status = std::move(status)};
  }
  return Fail(std::move(status));
}

Verdict JudgeUnsatisfied(const S3Call& call, const HttpResponse& response, const std::string& uri,
                         const std::string& text) {
  const std::optional<ContentRange> got = ParseContentRange(response.content_range);
  if (got && got->total >= 0 && call.pinned.size_bytes >= 0 &&
      got->total != call.pinned.size_bytes) {
    return Fail(Stale("the object's size changed", "path", uri, "expected_bytes",
                      call.pinned.size_bytes, "got_bytes", got->total));
  }
  return Fail(MakeError(ErrorKind::kCorrupt, text));
}

Verdict JudgeFailure(const S3Call& call, const HttpResponse& response, const std::string& uri) {
  const std::string code = XmlText(response.error_body, "Code").value_or("");
  const std::string message = XmlText(response.error_body, "Message").value_or("");
  const auto text = [&](std::string_view what) {
    return Describe(what, response, uri, code, message);
  };
  const int status = response.status_code;
  std::string region = response.bucket_region;
  if (region.empty() && code == "AuthorizationHeaderMalformed") {
    region = XmlText(response.error_body, "Region").value_or("");
  }
  if (!region.empty() && (status == 301 || status == 307 || status == 400)) {
    return {.next = Verdict::kOtherRegion,
            .status = MakeError(ErrorKind::kInvalidArgument, text("the bucket is elsewhere")),
            .region = std::move(region)};
  }
  switch (status) {
    case 401: return Fail(MakeError(ErrorKind::kPermission, text("storage wants credentials")));
    case 403: return JudgeForbidden(response, code, text("storage refused"));
    case 404:
      if (call.kind == S3Kind::kDelete && code != "NoSuchBucket") return {};
      return Fail(MakeError(ErrorKind::kNotFound, text("no such object")));
    case 405: return Fail(MakeError(ErrorKind::kUnsupported, text("storage does not do this")));
    case 408: return Retry(MakeError(ErrorKind::kTransient, text("storage timed out")));
    case 409:
      // "A conflicting operation is under way": not yet decided; asked again it will be.
      return Retry(MakeError(call.if_absent ? ErrorKind::kConflict : ErrorKind::kTransient,
                             text("a conflicting operation")));
    case 412:
      return Fail(call.if_absent
                      ? MakeError(ErrorKind::kConflict, text("the object exists"))
                      : MakeError(ErrorKind::kStale, text("the object was replaced")));
    case 416: return JudgeUnsatisfied(call, response, uri, text("a range outside the object"));
    case 429: return Retry(MakeError(ErrorKind::kTransient, text("storage asks to slow down")));
    case 501: return Fail(MakeError(ErrorKind::kUnsupported, text("storage does not do this")));
    default: break;
  }
  if (status == 400 && (code == "ExpiredToken" || code == "TokenRefreshRequired")) {
    return JudgeForbidden(response, code, text("storage refused"));
  }
  if (status >= 500 || code == "RequestTimeout" || code == "BadDigest" ||
      code == "IncompleteBody") {
    return Retry(MakeError(ErrorKind::kTransient, text("storage failed")));
  }
  if (status >= 300 && status < 400) {
    return Fail(MakeError(ErrorKind::kInvalidArgument, text("storage sends us elsewhere")));
  }
  if (status >= 400) return Fail(MakeError(ErrorKind::kInvalidArgument, text("storage refused")));
  return Retry(MakeError(ErrorKind::kTransient, text("not an HTTP answer")));
}

}  // namespace

std::optional<ContentRange> ParseContentRange(std::string_view text) {
  if (!text.starts_with("bytes ")) return std::nullopt;
  text.remove_prefix(6);
  const size_t slash = text.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  ContentRange range;
  const std::string_view total = text.substr(slash + 1);
  if (total != "*" && !ParseNumber(total, &range.total)) return std::nullopt;
  const std::string_view span = text.substr(0, slash);
  if (span == "*") return range;
  const size_t dash = span.find('-');
  if (dash == std::string_view::npos) return std::nullopt;
  int64_t last = -1;
  if (!ParseNumber(span.substr(0, dash), &range.begin) ||
      !ParseNumber(span.substr(dash + 1), &last) || last < range.begin ||
      last == INT64_MAX) {
    return std::nullopt;
  }
  range.end = last + 1;
  return range;
}

Verdict JudgeAnswer(const S3Call& call, const HttpResponse& response, const std::string& uri) {
  if (!response.outcome.ok()) {
    Status status = AddContext(response.outcome, "path", uri);
    return IsKind(status, ErrorKind::kTransient) ? Retry(std::move(status))
                                                 : Fail(std::move(status));
  }
  if (response.status_code >= 200 && response.status_code < 300) {
    return JudgeSuccess(call, response, uri);
  }
  return JudgeFailure(call, response, uri);
}

}  // namespace grebe::store

// One S3 operation as data, and the verdict over an answer to it. Pure functions.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "store/http_transport.h"
#include "store/store.h"

namespace grebe::store {

enum class S3Kind {
  kRange,   // 206 with exactly the range
  kWhole,   // 200 with the whole object
  kText,    // 200 with an XML answer: listing, starting and completing an upload
  kPut,     // 200, no body: an object or a part of one
  kHead,
  kDelete,  // a missing object is fine
};

struct S3Call {
  S3Kind kind = S3Kind::kRange;
  std::string method = "GET";
  std::string key;            // empty: the bucket itself
  std::string query;          // percent-encoded, sorted by name; empty: none
  ByteRange range;            // kRange
  Identity pinned;            // kRange: its tag is sent as If-Match
  bool if_absent = false;     // kPut: If-None-Match: *
  std::shared_ptr<const std::string> body;
  std::string body_sha256_hex;

  // Set while the call runs: an attempt may have done its work although no answer said so.
  bool unsure = false;
};

struct Verdict {
  enum Next {
    kDone,
    kFail,
    kRetry,         // after a pause
    kNewKeys,       // credentials ran out: fetch them again
    kOtherRegion,   // the bucket lives in `region`
    kOtherClock,    // the server's clock differs: its date is in the answer
  };
  Next next = kDone;
  Status status;  // of all but kDone: what to report when it stays so
  std::string region = {};
};

// uri: of the object, for messages.
Verdict JudgeAnswer(const S3Call& call, const HttpResponse& response, const std::string& uri);

struct ContentRange {
  int64_t begin = -1;  // -1: unsatisfied ("bytes */total")
  int64_t end = -1;    // exclusive
  int64_t total = -1;  // -1: "*"
};
std::optional<ContentRange> ParseContentRange(std::string_view text);

}  // namespace grebe::store

// Taking URIs apart. Pure functions.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace grebe::store {

enum class Scheme { kFile, kS3, kGcs, kAzure, kMemory };

struct ParsedUri {
  Scheme scheme = Scheme::kFile;
  // The bucket (s3, gs), "container@account.host" or "container" (abfs), the name (memory);
  // empty for files.
  std::string authority;
  // No trailing '/'. File: absolute, with "." and ".." resolved; a file: URI's %XX are decoded.
  // S3 and GCS keys are taken as they stand, as the AWS tools take them: nothing is decoded.
  std::string path;
};

// Accepts a plain path, file:, s3: (s3a:, s3n:), gs: (gcs:), abfs: (abfss:), memory:.
// Errors: InvalidArgument for an empty text, an unknown scheme, a missing bucket.
Result<ParsedUri> ParseUri(std::string_view uri);

// "%41" -> "A". Malformed escapes stay as they are. plus_is_space: '+' -> ' '.
std::string PercentDecode(std::string_view text, bool plus_is_space = false);

// Everything but A-Z a-z 0-9 - . _ ~ becomes %XX; '/' stays when keep_slash.
std::string PercentEncode(std::string_view text, bool keep_slash);

}  // namespace grebe::store

#include "store/uri.h"

#include <filesystem>
#include <system_error>

namespace grebe::store {
namespace {

int HexValue(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

bool IsAlphaNumeric(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// The scheme's length in "scheme:..."; 0 when the text is a plain path. A scheme has at least two
// letters and is followed by "//", but for "file:/path", which Hadoop writes.
size_t SchemeLength(std::string_view uri) {
  if (uri.starts_with("file:/")) return 4;
  const size_t colon = uri.find("://");
  if (colon == std::string_view::npos || colon < 2) return 0;
  for (const char c : uri.substr(0, colon)) {
    if (!IsAlphaNumeric(c) && c != '+' && c != '-' && c != '.') return 0;
  }
  return colon;
}

void StripTrailingSlashes(std::string* path, size_t keep) {
  while (path->size() > keep && path->back() == '/') path->pop_back();
}

Result<ParsedUri> ParseFile(std::string path) {
  if (path.empty()) return InvalidArgument("an empty path");
  if (path.find('\0') != std::string::npos) return InvalidArgument("a path with a zero byte");
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(path, error);
  if (error) return InvalidArgument("cannot make the path absolute", "path", path);
  ParsedUri parsed;
  parsed.path = absolute.lexically_normal().string();
  StripTrailingSlashes(&parsed.path, 1);
  return parsed;
}

}  // namespace

std::string PercentDecode(std::string_view text, bool plus_is_space) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size()) {
      const int high = HexValue(text[i + 1]);
      const int low = HexValue(text[i + 2]);
      if (high >= 0 && low >= 0) {
        out.push_back(static_cast<char>(high * 16 + low));
        i += 2;
        continue;
      }
    }
    out.push_back(plus_is_space && text[i] == '+' ? ' ' : text[i]);
  }
  return out;
}

std::string PercentEncode(std::string_view text, bool keep_slash) {
  constexpr char kHex[] = "0123456789ABCDEF";
  std::string out;
  out.reserve(text.size() + 16);
  for (const char c : text) {
    if (IsAlphaNumeric(c) || c == '-' || c == '.' || c == '_' || c == '~' ||
        (c == '/' && keep_slash)) {
      out.push_back(c);
    } else {
      const auto byte = static_cast<unsigned char>(c);
      out.push_back('%');
      out.push_back(kHex[byte >> 4]);
      out.push_back(kHex[byte & 15]);
    }
  }
  return out;
}

Result<ParsedUri> ParseUri(std::string_view uri) {
  if (uri.empty()) return InvalidArgument("an empty path");
  const size_t length = SchemeLength(uri);
  if (length == 0) return ParseFile(std::string(uri));
  const std::string_view scheme = uri.substr(0, length);
  std::string_view rest = uri.substr(length + 1);
  if (scheme == "file") {
    if (rest.starts_with("//")) rest.remove_prefix(2);
    if (rest.starts_with("localhost/")) rest.remove_prefix(9);
    if (!rest.starts_with('/')) {
      return InvalidArgument("a file: URI needs an absolute path", "uri", uri);
    }
    return ParseFile(PercentDecode(rest));
  }
  ParsedUri parsed;
  if (scheme == "s3" || scheme == "s3a" || scheme == "s3n") {
    parsed.scheme = Scheme::kS3;
  } else if (scheme == "gs" || scheme == "gcs") {
    parsed.scheme = Scheme::kGcs;
  } else if (scheme == "abfs" || scheme == "abfss") {
    parsed.scheme = Scheme::kAzure;
  } else if (scheme == "memory") {
    parsed.scheme = Scheme::kMemory;
  } else {
    return InvalidArgument("unknown scheme (known: file, s3, gs, abfs, memory)", "uri", uri);
  }
  rest.remove_prefix(2);
  const size_t slash = rest.find('/');
  parsed.authority = std::string(rest.substr(0, slash));
  if (slash != std::string_view::npos) parsed.path = std::string(rest.substr(slash + 1));
  StripTrailingSlashes(&parsed.path, 0);
  if (parsed.authority.empty() && parsed.scheme != Scheme::kMemory) {
    return InvalidArgument("a URI without a bucket", "uri", uri);
  }
  return parsed;
}

}  // namespace grebe::store

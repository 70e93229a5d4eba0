// Fuzzes the reading of manifests: any bytes as they are, and the same bytes with a valid checksum
// tail, so that the fuzzer gets past it. What parses must survive being written and read again.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/hash.h"
#include "index/manifest.h"

namespace {

using grebe::index::Manifest;
using grebe::index::ParseManifest;
using grebe::index::SerializeManifest;

void CheckRoundTrip(const Manifest& manifest) {
  const std::string text = SerializeManifest(manifest);
  const auto again = ParseManifest(text);
  if (!again.ok() || !(*again == manifest) || SerializeManifest(*again) != text) std::abort();
}

// docs/format/manifest.md: the last 33 bytes.
std::string Seal(std::string_view body) {
  char digits[17];
  std::snprintf(digits, sizeof(digits), "%016llx",
                static_cast<unsigned long long>(grebe::Checksum(body)));
  return std::string(body) + ",\n\"checksum\":\"" + digits + "\"}\n";
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size_bytes) {
  const std::string_view input(reinterpret_cast<const char*>(data), size_bytes);
  for (const std::string& text : {std::string(input), Seal(input)}) {
    const auto manifest = ParseManifest(text);
    if (manifest.ok()) CheckRoundTrip(*manifest);
  }
  return 0;
}

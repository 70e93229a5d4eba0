// docs/format/stats.md tells these bytes.
#include "scan/stats_object.h"

#include "base/coding.h"
#include "base/hash.h"

namespace grebe::scan {
namespace {

constexpr uint32_t kMagic = 0x54534247;   // "GBST"
constexpr uint32_t kFormatVersion = 1;
constexpr size_t kChecksumBytes = 8;

Status Damaged() { return Corrupt("a statistics object is damaged"); }

bool ReadText(ByteReader* in, std::string* out) {
  std::string_view bytes;
  if (!in->ReadBytes(&bytes)) return false;
  *out = bytes;
  return true;
}

}  // namespace

std::string PackStatsObject(const std::vector<StatsEntry>& entries) {
  std::string out;
  PutFixed<uint32_t>(&out, kMagic);
  PutFixed<uint32_t>(&out, kFormatVersion);
  PutVarint(&out, entries.size());
  for (const StatsEntry& entry : entries) {
    PutBytes(&out, entry.path);
    PutVarint(&out, ZigZag(entry.identity.size_bytes));
    PutBytes(&out, entry.identity.tag);
    PutBytes(&out, entry.packed);
  }
  PutFixed<uint64_t>(&out, Checksum(out));
  return out;
}

Result<std::vector<StatsEntry>> UnpackStatsObject(std::string_view bytes) {
  ByteReader in(bytes);
  uint32_t magic = 0, version = 0;
  if (bytes.size() < kChecksumBytes || !in.ReadFixed(&magic) || magic != kMagic ||
      !in.ReadFixed(&version)) {
    return Damaged();
  }
  if (version != kFormatVersion) {
    return Unsupported("statistics of another format version", "version", version);
  }
  const std::string_view body = bytes.substr(0, bytes.size() - kChecksumBytes);
  if (LoadLe<uint64_t>(bytes.data() + body.size()) != Checksum(body)) return Damaged();
  uint64_t count = 0;
  if (!in.ReadVarint(&count) || count > in.remaining_bytes()) return Damaged();
  std::vector<StatsEntry> entries;
  for (uint64_t i = 0; i < count; ++i) {
    StatsEntry& entry = entries.emplace_back();
    uint64_t size = 0;
    if (!ReadText(&in, &entry.path) || !in.ReadVarint(&size) ||
        !ReadText(&in, &entry.identity.tag) || !ReadText(&in, &entry.packed)) {
      return Damaged();
    }
    entry.identity.size_bytes = UnZigZag(size);
  }
  if (in.remaining_bytes() != kChecksumBytes) return Damaged();
  return entries;
}

}  // namespace grebe::scan

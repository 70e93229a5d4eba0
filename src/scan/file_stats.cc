#include "scan/file_stats.h"

#include <algorithm>

#include "base/coding.h"

namespace grebe::scan {
namespace {

// Bits of a packed chunk's flags.
enum : uint8_t {
  kHasMin = 1, kHasMax = 2, kMinExact = 4, kMaxExact = 8, kHasNullCount = 16,
};

void PutChunk(int64_t bytes, const pq::RawBounds& bounds, std::string* out) {
  const int flags = (bounds.min ? kHasMin : 0) | (bounds.max ? kHasMax : 0) |
                    (bounds.min_exact ? kMinExact : 0) | (bounds.max_exact ? kMaxExact : 0) |
                    (bounds.null_count ? kHasNullCount : 0);
  PutFixed<uint8_t>(out, static_cast<uint8_t>(flags));
  PutFixed<uint8_t>(out, static_cast<uint8_t>(bounds.note));
  PutVarint(out, static_cast<uint64_t>(bytes));
  PutVarint(out, static_cast<uint64_t>(bounds.value_count));
  if (bounds.null_count) PutVarint(out, static_cast<uint64_t>(*bounds.null_count));
  if (bounds.min) PutBytes(out, *bounds.min);
  if (bounds.max) PutBytes(out, *bounds.max);
}

bool ReadCount(ByteReader* in, int64_t* out) {
  uint64_t value = 0;
  if (!in->ReadVarint(&value) || value > static_cast<uint64_t>(INT64_MAX)) return false;
  *out = static_cast<int64_t>(value);
  return true;
}

bool ReadBound(ByteReader* in, std::optional<std::string>* out) {
  std::string_view bytes;
  if (!in->ReadBytes(&bytes)) return false;
  *out = std::string(bytes);
  return true;
}

bool ReadChunk(ByteReader* in, int64_t* bytes, pq::RawBounds* out) {
  uint8_t flags = 0, note = 0;
  if (!in->ReadFixed(&flags) || !in->ReadFixed(&note) || !ReadCount(in, bytes) ||
      !ReadCount(in, &out->value_count) ||
      note > static_cast<uint8_t>(pq::BoundsNote::kUnreadable)) {
    return false;
  }
  out->note = static_cast<pq::BoundsNote>(note);
  out->min_exact = (flags & kMinExact) != 0;
  out->max_exact = (flags & kMaxExact) != 0;
  if ((flags & kHasNullCount) != 0) {
    out->null_count = 0;
    if (!ReadCount(in, &*out->null_count) || *out->null_count > out->value_count) return false;
  }
  if ((flags & kHasMin) != 0 && !ReadBound(in, &out->min)) return false;
  return (flags & kHasMax) == 0 || ReadBound(in, &out->max);
}

void JoinRowGroups(FileStats* stats) {
  const size_t leaves = static_cast<size_t>(stats->schema->leaf_count());
  for (size_t leaf = 0; leaf < leaves; ++leaf) {
    std::vector<pq::Bounds> parts;
    for (const RowGroupStats& group : stats->row_groups) {
      parts.push_back(group.leaves[leaf].bounds);
    }
    stats->leaves.push_back(JoinBounds(parts));
  }
  for (const RowGroupStats& group : stats->row_groups) stats->rows += group.rows;
}

Status Damaged() { return Corrupt("file statistics are damaged"); }

}  // namespace

int64_t RowGroupStats::bytes() const {
  int64_t sum = 0;
  for (const ChunkStats& leaf : leaves) sum += leaf.bytes;
  return sum;
}

FileStats StatsOf(const pq::Footer& footer) {
  FileStats stats;
  stats.bytes = footer.object().identity.size_bytes;
  stats.schema = footer.schema();
  stats.layout = footer.key_value(kLayoutKey).value_or("");
  for (int group = 0; group < footer.row_group_count(); ++group) {
    RowGroupStats& out = stats.row_groups.emplace_back();
    out.rows = footer.row_group_row_count(group);
    for (int leaf = 0; leaf < footer.schema()->leaf_count(); ++leaf) {
      out.leaves.push_back(
          {footer.chunk_range(group, leaf).size_bytes(), pq::ChunkBounds(footer, group, leaf)});
    }
  }
  JoinRowGroups(&stats);
  return stats;
}

pq::Bounds JoinBounds(std::span<const pq::Bounds> parts) {
  pq::Bounds out;
  out.null_count = 0;
  bool first = true;
  bool min_known = true, max_known = true;
  for (const pq::Bounds& part : parts) {
    out.value_count += part.value_count;
    if (part.null_count && out.null_count) {
      *out.null_count += *part.null_count;
    } else {
      out.null_count.reset();
    }
    if (part.value_count == 0 || part.only_nulls()) continue;
    if (out.note == pq::BoundsNote::kNone) out.note = part.note;
    min_known = min_known && part.min != nullptr;
    max_known = max_known && part.max != nullptr;
    if (min_known && (first || pq::CompareScalars(*part.min, *out.min) < 0)) {
      out.min = part.min;
      out.min_exact = part.min_exact;
    }
    if (max_known && (first || pq::CompareScalars(*part.max, *out.max) > 0)) {
      out.max = part.max;
      out.max_exact = part.max_exact;
    }
    first = false;
  }
  if (!min_known) out.min = nullptr;
  if (!max_known) out.max = nullptr;
  out.min_exact = out.min_exact && out.min != nullptr;
  out.max_exact = out.max_exact && out.max != nullptr;
  return out;
}

Result<PageStats> ReadPageStats(store::Store& store, const pq::Footer& footer,
                                std::span<const int> leaves) {
  std::vector<pq::ChunkId> chunks;
  for (int group = 0; group < footer.row_group_count(); ++group) {
    for (const int leaf : leaves) chunks.push_back({group, leaf});
  }
  ARROW_ASSIGN_OR_RAISE(auto bounds, pq::ReadPageBounds(store, footer, chunks));
  PageStats out(static_cast<size_t>(footer.row_group_count()));
  size_t next = 0;
  for (auto& group : out) {
    for (size_t leaf = 0; leaf < leaves.size(); ++leaf) group.push_back(std::move(bounds[next++]));
  }
  return out;
}

std::string PackStats(const pq::Footer& footer) {
  std::string out;
  PutVarint(&out, static_cast<uint64_t>(footer.object().identity.size_bytes));
  PutBytes(&out, footer.key_value(kLayoutKey).value_or(""));
  PutVarint(&out, static_cast<uint64_t>(footer.row_group_count()));
  for (int group = 0; group < footer.row_group_count(); ++group) {
    PutVarint(&out, static_cast<uint64_t>(footer.row_group_row_count(group)));
    for (int leaf = 0; leaf < footer.schema()->leaf_count(); ++leaf) {
      PutChunk(footer.chunk_range(group, leaf).size_bytes(),
               pq::ReadChunkBounds(footer, group, leaf), &out);
    }
  }
  return out;
}

Result<FileStats> UnpackStats(std::shared_ptr<const pq::Schema> schema, std::string_view packed) {
  FileStats stats;
  ByteReader in(packed);
  std::string_view layout;
  int64_t groups = 0;
  if (!ReadCount(&in, &stats.bytes) || !in.ReadBytes(&layout) || !ReadCount(&in, &groups) ||
      static_cast<uint64_t>(groups) > in.remaining_bytes()) {
    return Damaged();
  }
  stats.layout = layout;
  stats.schema = std::move(schema);
  for (int64_t group = 0; group < groups; ++group) {
    RowGroupStats& out = stats.row_groups.emplace_back();
    if (!ReadCount(&in, &out.rows)) return Damaged();
    for (int leaf = 0; leaf < stats.schema->leaf_count(); ++leaf) {
      ChunkStats& chunk = out.leaves.emplace_back();
      pq::RawBounds raw;
      if (!ReadChunk(&in, &chunk.bytes, &raw)) return Damaged();
      chunk.bounds = pq::DecodeBounds(*stats.schema, leaf, raw);
    }
  }
  if (in.remaining_bytes() != 0) return Damaged();
  JoinRowGroups(&stats);
  return stats;
}

}  // namespace grebe::scan

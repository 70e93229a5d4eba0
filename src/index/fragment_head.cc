#include "index/fragment_head.h"

#include <algorithm>

#include "base/coding.h"
#include "index/fragment_format.h"

namespace grebe::index {
namespace {

void PutFile(const FragmentFile& file, std::string_view path_before, std::string* out) {
  const size_t limit = std::min(file.path.size(), path_before.size());
  size_t shared = 0;
  while (shared < limit && file.path[shared] == path_before[shared]) ++shared;
  PutVarint(out, shared);
  PutBytes(out, std::string_view(file.path).substr(shared));
  PutVarint(out, static_cast<uint64_t>(file.identity.size_bytes + 1));
  PutBytes(out, file.identity.tag);
  PutVarint(out, static_cast<uint64_t>(file.row_count));
  PutVarint(out, file.schema);
  PutVarint(out, static_cast<uint64_t>(file.page_map.size_bytes()));
  PutFixed(out, file.page_map_checksum);
}

Status Bad(std::string_view what, const ByteReader& reader) {
  return Corrupt("bad fragment head", "part", what, "bytes_left", reader.remaining_bytes());
}

// A count of things that take at least one byte each.
bool ReadCount(ByteReader* reader, uint64_t* count) {
  return reader->ReadVarint(count) && *count <= reader->remaining_bytes();
}

bool ReadFile(ByteReader* reader, std::string_view path_before, FragmentFile* file) {
  uint64_t shared = 0, size = 0, rows = 0, schema = 0, map_size = 0;
  std::string_view rest, tag;
  if (!reader->ReadVarint(&shared) || shared > path_before.size() || !reader->ReadBytes(&rest) ||
      !reader->ReadVarint(&size) || !reader->ReadBytes(&tag) || !reader->ReadVarint(&rows) ||
      !reader->ReadVarint(&schema) || !reader->ReadVarint(&map_size) ||
      !reader->ReadFixed(&file->page_map_checksum)) {
    return false;
  }
  if (size > uint64_t{1} << 62 || rows > kRowsMax || schema > UINT32_MAX ||
      map_size > uint64_t{1} << 60) {
    return false;
  }
  file->path = std::string(path_before.substr(0, shared)) + std::string(rest);
  file->identity.size_bytes = static_cast<int64_t>(size) - 1;
  file->identity.tag = std::string(tag);
  file->row_count = static_cast<int64_t>(rows);
  file->schema = static_cast<uint32_t>(schema);
  file->page_map = {0, static_cast<int64_t>(map_size)};
  return true;
}

Status ReadFixedPart(ByteReader* reader, FragmentHead* head) {
  uint32_t magic = 0;
  uint16_t version = 0;
  uint8_t form = 0, bits = 0, flags = 0;
  if (!reader->ReadFixed(&magic) || magic != kHeadMagic) return Bad("magic", *reader);
  if (!reader->ReadFixed(&version)) return Bad("version", *reader);
  if (version != kFragmentVersion && version != kFragmentVersionSorted) {
    return Unsupported("unknown fragment version", "version", version);
  }
  HashSpace& space = head->space;
  if (!reader->ReadFixed(&form) || form > 1 || !reader->ReadFixed(&bits) || bits > 64 ||
      !reader->ReadFixed(&space.base) || !reader->ReadFixed(&space.span) ||
      !reader->ReadFixed(&flags) || flags > 7) {
    return Bad("fixed part", *reader);
  }
  head->has_sorted = (flags & kFlagSorted) != 0;
  if (head->has_sorted != (version == kFragmentVersionSorted)) return Bad("sorted flag", *reader);
  space.word_keys = form == 0;
  space.bits = bits;
  head->has_lengths = (flags & kFlagLengths) != 0;
  head->has_covering = (flags & kFlagCovering) != 0;
  const bool valid = space.word_keys ? bits == BitWidth(space.span)
                                     : bits > 0 && space.base == 0 && space.span == 0;
  if (!valid || !reader->ReadVarint(&head->indexed_rows) || !reader->ReadVarint(&head->key_count) ||
      !reader->ReadVarint(&head->run_count)) {
    return Bad("counts", *reader);
  }
  return Status::OK();
}

Status ReadFiles(ByteReader* reader, FragmentHead* head) {
  uint64_t count = 0;
  if (!ReadCount(reader, &count)) return Bad("schema count", *reader);
  for (uint64_t i = 0; i < count; ++i) {
    std::string_view schema;
    if (!reader->ReadBytes(&schema)) return Bad("schema", *reader);
    head->schemas.emplace_back(schema);
  }
  if (!ReadCount(reader, &count) || count > UINT32_MAX) return Bad("file count", *reader);
  for (uint64_t i = 0; i < count; ++i) {
    FragmentFile file;
    const std::string_view before =
        head->files.empty() ? std::string_view() : std::string_view(head->files.back().path);
    if (!ReadFile(reader, before, &file) || file.schema >= head->schemas.size()) {
      return Bad("file", *reader);
    }
    head->files.push_back(std::move(file));
  }
  return Status::OK();
}

Status ReadDirectory(ByteReader* reader, FragmentHead* head) {
  uint64_t count = 0;
  if (!ReadCount(reader, &count) || count == 0) return Bad("block count", *reader);
  if (head->space.bits < 63 && count > uint64_t{1} << head->space.bits) {
    return Bad("block count", *reader);
  }
  head->block_sizes.resize(count);
  for (uint64_t& size : head->block_sizes) {
    if (!reader->ReadVarint(&size)) return Bad("block size", *reader);
  }
  if (!ReadCount(reader, &count)) return Bad("list count", *reader);
  uint64_t hash = 0;
  for (uint64_t i = 0; i < count; ++i) {
    ListEntry list;
    uint8_t kind = 0;
    uint64_t delta = 0;
    if (!reader->ReadFixed(&kind) || kind > 1 || !reader->ReadVarint(&delta) ||
        !reader->ReadVarint(&list.size_bytes) || !reader->ReadVarint(&list.run_count) ||
        !reader->ReadFixed(&list.checksum)) {
      return Bad("list", *reader);
    }
    list.null_keys = kind == 0;
    const bool has_before = !head->lists.empty() && !head->lists.back().null_keys;
    if (list.null_keys ? (i != 0 || delta != 0 || !head->space.word_keys)
                       : (has_before && delta == 0) ||
                             delta > head->space.last_hash() - hash) {
      return Bad("list order", *reader);
    }
    hash += delta;
    list.hash = hash;
    head->lists.push_back(list);
  }
  return Status::OK();
}

Status ReadCovering(ByteReader* reader, FragmentHead* head) {
  std::string_view schema;
  if (!reader->ReadBytes(&schema)) return Bad("covering schema", *reader);
  head->covering_schema = std::string(schema);
  for (size_t i = 0; i < head->block_sizes.size() + head->lists.size(); ++i) {
    uint64_t size = 0;
    if (!reader->ReadVarint(&size)) return Bad("covering size", *reader);
    head->covering_sizes.push_back(size);
  }
  return Status::OK();
}

// Sizes only: Place() makes ranges of them.
Status ReadSorted(ByteReader* reader, FragmentHead* head) {
  SortedDirectory& sorted = head->sorted;
  std::string_view begin, end;
  uint64_t count = 0;
  if (!reader->ReadBytes(&begin) || !reader->ReadBytes(&end) || !ReadCount(reader, &count) ||
      (count > 0 && begin >= end)) {
    return Bad("sorted part", *reader);
  }
  sorted.begin = begin;
  sorted.end = end;
  std::string key;
  for (uint64_t i = 0; i < count; ++i) {
    Fence fence;
    uint64_t shared = 0, size = 0, data_size = 0;
    std::string_view rest;
    if (!reader->ReadVarint(&shared) || shared > key.size() || !reader->ReadBytes(&rest) ||
        !reader->ReadVarint(&size) || size > uint64_t{1} << 60 ||
        !reader->ReadVarint(&data_size) || data_size > uint64_t{1} << 60 ||
        !reader->ReadVarint(&fence.row_count)) {
      return Bad("fence", *reader);
    }
    if (i > 0 && rest < std::string_view(key).substr(shared)) return Bad("fence order", *reader);
    key.replace(shared, std::string::npos, rest);
    fence.key = key;
    fence.bytes.end = static_cast<int64_t>(size);
    fence.data.end = static_cast<int64_t>(data_size);
    sorted.fences.push_back(std::move(fence));
  }
  return Status::OK();
}

void PutSorted(const SortedDirectory& sorted, std::string* out) {
  PutBytes(out, sorted.begin);
  PutBytes(out, sorted.end);
  PutVarint(out, sorted.fences.size());
  std::string_view before;
  for (const Fence& fence : sorted.fences) {
    const size_t shared = SharedBytes(before, fence.key);
    PutVarint(out, shared);
    PutBytes(out, std::string_view(fence.key).substr(shared));
    PutVarint(out, static_cast<uint64_t>(fence.bytes.size_bytes()));
    PutVarint(out, static_cast<uint64_t>(fence.data.size_bytes()));
    PutVarint(out, fence.row_count);
    before = fence.key;
  }
}

// Extends *end by size; false beyond limit.
bool Extend(uint64_t size, int64_t limit, int64_t* end) {
  if (size > static_cast<uint64_t>(limit - *end)) return false;
  *end += static_cast<int64_t>(size);
  return true;
}

}  // namespace

bool FragmentHead::Place(int64_t head_begin) {
  int64_t at = sizeof(kFragmentMagic);
  if (at > head_begin) return false;
  page_maps.begin = at;
  file_rows = 0;
  for (FragmentFile& file : files) {
    const uint64_t size = static_cast<uint64_t>(file.page_map.size_bytes());
    file.page_map.begin = at;
    if (!Extend(size, head_begin, &at)) return false;
    file.page_map.end = at;
    file_rows += static_cast<uint64_t>(file.row_count);
    if (file_rows > kRowsMax) return false;
  }
  page_maps.end = blocks.begin = at;
  for (const uint64_t size : block_sizes) {
    if (!Extend(size, head_begin, &at)) return false;
  }
  blocks.end = list_section.begin = at;
  for (const ListEntry& list : lists) {
    if (!Extend(list.size_bytes, head_begin, &at)) return false;
  }
  list_section.end = covering.begin = at;
  for (const uint64_t size : covering_sizes) {
    if (!Extend(size, head_begin, &at)) return false;
  }
  covering.end = sorted_blocks.begin = at;
  const auto place = [&](ByteRange* range) {
    const auto size = static_cast<uint64_t>(range->size_bytes());
    range->begin = at;
    if (!Extend(size, head_begin, &at)) return false;
    range->end = at;
    return true;
  };
  for (Fence& fence : sorted.fences) {
    if (!place(&fence.data)) return false;
  }
  sorted_blocks.end = fence_blocks.begin = at;
  for (Fence& fence : sorted.fences) {
    if (!place(&fence.bytes)) return false;
  }
  fence_blocks.end = at;
  return at == head_begin;
}

std::string SerializeHead(const FragmentHead& head) {
  std::string out;
  PutFixed(&out, kHeadMagic);
  const uint16_t version = head.has_sorted ? kFragmentVersionSorted : kFragmentVersion;
  PutFixed(&out, version);
  PutFixed(&out, static_cast<uint8_t>(head.space.word_keys ? 0 : 1));
  PutFixed(&out, static_cast<uint8_t>(head.space.bits));
  PutFixed(&out, head.space.base);
  PutFixed(&out, head.space.span);
  PutFixed(&out, static_cast<uint8_t>((head.has_lengths ? kFlagLengths : 0) |
                                      (head.has_covering ? kFlagCovering : 0) |
                                      (head.has_sorted ? kFlagSorted : 0)));
  PutVarint(&out, head.indexed_rows);
  PutVarint(&out, head.key_count);
  PutVarint(&out, head.run_count);
  PutVarint(&out, head.schemas.size());
  for (const std::string& schema : head.schemas) PutBytes(&out, schema);
  PutVarint(&out, head.files.size());
  std::string_view before;
  for (const FragmentFile& file : head.files) {
    PutFile(file, before, &out);
    before = file.path;
  }
  PutVarint(&out, head.block_sizes.size());
  for (const uint64_t size : head.block_sizes) PutVarint(&out, size);
  PutVarint(&out, head.lists.size());
  uint64_t hash = 0;
  for (const ListEntry& list : head.lists) {
    PutFixed(&out, static_cast<uint8_t>(list.null_keys ? 0 : 1));
    PutVarint(&out, list.hash - hash);
    PutVarint(&out, list.size_bytes);
    PutVarint(&out, list.run_count);
    PutFixed(&out, list.checksum);
    hash = list.hash;
  }
  if (head.has_covering) {
    PutBytes(&out, head.covering_schema);
    for (const uint64_t size : head.covering_sizes) PutVarint(&out, size);
  }
  if (head.has_sorted) PutSorted(head.sorted, &out);
  const Root root{out.size() + sizeof(Root), Checksum(out), version, kRootMagic};
  PutFixed(&out, root);
  return out;
}

Result<FragmentHead> ParseHead(std::string_view bytes, int64_t head_begin) {
  if (bytes.size() < sizeof(Root)) return Corrupt("fragment head is too short");
  const std::string_view body = bytes.substr(0, bytes.size() - sizeof(Root));
  const auto root = LoadLe<Root>(bytes.data() + body.size());
  if (root.magic != kRootMagic) return Corrupt("not a fragment", "magic", root.magic);
  if (root.version != kFragmentVersion && root.version != kFragmentVersionSorted) {
    return Unsupported("unknown fragment version", "version", root.version);
  }
  if (root.head_size_bytes != bytes.size() || root.checksum != Checksum(body)) {
    return Corrupt("fragment head checksum", "offset_bytes", head_begin);
  }
  FragmentHead head;
  ByteReader reader(body);
  ARROW_RETURN_NOT_OK(ReadFixedPart(&reader, &head));
  ARROW_RETURN_NOT_OK(ReadFiles(&reader, &head));
  ARROW_RETURN_NOT_OK(ReadDirectory(&reader, &head));
  if (head.has_covering) ARROW_RETURN_NOT_OK(ReadCovering(&reader, &head));
  if (head.has_sorted) ARROW_RETURN_NOT_OK(ReadSorted(&reader, &head));
  if (reader.remaining_bytes() != 0) return Bad("end", reader);
  if (!head.Place(head_begin)) return Corrupt("fragment sections do not add up");
  return head;
}

}  // namespace grebe::index

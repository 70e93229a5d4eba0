#include "parquet/offset_index.h"

#include <algorithm>

#include "parquet/thrift.h"

namespace grebe::pq {
namespace {

bool ReadEntry(ThriftReader* in, OffsetIndexEntry* entry) {
  int previous_id = 0;
  int seen = 0;
  ThriftReader::Field field;
  while (in->ReadField(&previous_id, &field)) {
    if (field.type == ThriftReader::kStop) return seen == 7;
    bool ok = true;
    if (field.id >= 1 && field.id <= 3 && ThriftReader::IsInt(field.type)) {
      seen |= 1 << (field.id - 1);
      switch (field.id) {
        case 1: ok = in->ReadI64(&entry->offset_bytes); break;
        case 2: ok = in->ReadI32(&entry->page_bytes); break;
        default: ok = in->ReadI64(&entry->first_row); break;
      }
    } else if (!ThriftReader::IsBool(field.type)) {
      ok = in->Skip(field.type);
    }
    if (!ok) return false;
  }
  return false;
}

}  // namespace

std::optional<std::vector<OffsetIndexEntry>> ParseOffsetIndex(std::span<const uint8_t> bytes) {
  ThriftReader in(bytes);
  std::vector<OffsetIndexEntry> entries;
  int previous_id = 0;
  ThriftReader::Field field;
  while (in.ReadField(&previous_id, &field)) {
    if (field.type == ThriftReader::kStop) return entries;
    if (field.id != 1 || field.type != ThriftReader::kList) {
      if (!ThriftReader::IsBool(field.type) && !in.Skip(field.type)) return std::nullopt;
      continue;
    }
    ThriftReader::Type element = ThriftReader::kStop;
    int64_t count = 0;
    if (!in.ReadListHead(&element, &count) || (count > 0 && element != ThriftReader::kStruct)) {
      return std::nullopt;
    }
    // An entry has three fields of two bytes at least, and its end.
    entries.clear();
    entries.reserve(std::min(static_cast<size_t>(count), bytes.size() / 7 + 1));
    for (int64_t i = 0; i < count; ++i) {
      entries.emplace_back();
      if (!ReadEntry(&in, &entries.back())) return std::nullopt;
    }
  }
  return std::nullopt;
}

std::optional<std::vector<PageLocation>> PagesOfIndex(std::span<const OffsetIndexEntry> entries,
                                                      const ChunkMeta& chunk, bool repeated,
                                                      int64_t row_count) {
  if (entries.empty() || entries[0].first_row != 0) return std::nullopt;
  if (chunk.data_pages >= 0 && chunk.data_pages != static_cast<int64_t>(entries.size())) {
    return std::nullopt;
  }
  std::vector<PageLocation> pages;
  pages.reserve(entries.size());
  int64_t previous_end = chunk.bytes.begin;
  for (size_t i = 0; i < entries.size(); ++i) {
    const OffsetIndexEntry& entry = entries[i];
    if (entry.page_bytes <= 0 || entry.offset_bytes < previous_end ||
        entry.offset_bytes > chunk.bytes.end ||
        entry.page_bytes > chunk.bytes.end - entry.offset_bytes) {
      return std::nullopt;
    }
    previous_end = entry.offset_bytes + entry.page_bytes;
    const int64_t next_row = i + 1 < entries.size() ? entries[i + 1].first_row : row_count;
    if (next_row < entry.first_row || next_row > row_count) return std::nullopt;
    if (next_row == entry.first_row) {
      // In a flat column the page is empty. In a repeated one it may continue a row, which an
      // index cannot say: the levels must.
      if (repeated) return std::nullopt;
      continue;
    }
    pages.push_back({{entry.offset_bytes, previous_end}, {entry.first_row, next_row}, false});
  }
  // An index that gives the dictionary page as the first data page is wrong.
  if (chunk.dictionary_first && entries[0].offset_bytes == chunk.bytes.begin) return std::nullopt;
  return pages;
}

}  // namespace grebe::pq

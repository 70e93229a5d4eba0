// Bounds of pages, from the ColumnIndex, believed only where it agrees with everything else that
// the file says.
#include <algorithm>
#include <mutex>

#include "parquet/bounds_internal.h"
#include "parquet/footer_internal.h"
#include "parquet/guard.h"
#include "parquet/offset_index.h"
#include "parquet/schema_internal.h"
#include "parquet/thrift.h"
#include "store/coalesce.h"

namespace grebe::pq {
namespace {

// Indexes nearer than this are read with one request. One larger than the other limit is not read.
constexpr int64_t kIndexGapBytes = 64 << 10;
constexpr int64_t kIndexBytesMax = 64 << 20;

enum class BoundaryOrder : int32_t { kUnordered = 0, kAscending = 1, kDescending = 2 };

struct ColumnIndexParts {
  std::vector<bool> null_pages;
  std::vector<std::string> mins, maxes;
  int32_t order = 0;
  std::optional<std::vector<int64_t>> null_counts;
};

template <class Read>
bool ReadList(ThriftReader* in, bool (*is_element)(ThriftReader::Type), const Read& read) {
  ThriftReader::Type element = ThriftReader::kStop;
  int64_t count = 0;
  if (!in->ReadListHead(&element, &count)) return false;
  if (count > 0 && !is_element(element)) return false;
  for (int64_t i = 0; i < count; ++i) {
    if (!read()) return false;
  }
  return true;
}

bool IsBinary(ThriftReader::Type type) { return type == ThriftReader::kBinary; }

bool ReadStrings(ThriftReader* in, std::vector<std::string>* out) {
  return ReadList(in, IsBinary, [&] {
    std::span<const uint8_t> bytes;
    if (!in->ReadBinary(&bytes)) return false;
    out->emplace_back(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return true;
  });
}

bool ReadPart(ThriftReader* in, const ThriftReader::Field& field, ColumnIndexParts* out) {
  const bool is_list = field.type == ThriftReader::kList;
  if (field.id == 1 && is_list) {
    return ReadList(in, ThriftReader::IsBool, [&] {
      bool value = false;
      if (!in->ReadBoolElement(&value)) return false;
      out->null_pages.push_back(value);
      return true;
    });
  }
  if (field.id == 2 && is_list) return ReadStrings(in, &out->mins);
  if (field.id == 3 && is_list) return ReadStrings(in, &out->maxes);
  if (field.id == 4 && ThriftReader::IsInt(field.type)) return in->ReadI32(&out->order);
  if (field.id == 5 && is_list) {
    auto& counts = out->null_counts.emplace();
    return ReadList(in, ThriftReader::IsInt, [&] {
      counts.push_back(0);
      return in->ReadI64(&counts.back());
    });
  }
  return ThriftReader::IsBool(field.type) || in->Skip(field.type);
}

// nullopt: damaged.
std::optional<ColumnIndexParts> ParseColumnIndex(std::span<const uint8_t> bytes) {
  ThriftReader in(bytes);
  ColumnIndexParts parts;
  int previous_id = 0;
  ThriftReader::Field field;
  while (in.ReadField(&previous_id, &field)) {
    if (field.type == ThriftReader::kStop) return parts;
    if (!ReadPart(&in, field, &parts)) return std::nullopt;
  }
  return std::nullopt;
}

// The pages' rows as the OffsetIndex tells them, one range a page, empty ones too; nullopt: it
// contradicts itself.
std::optional<std::vector<RowRange>> RowsOfPages(std::span<const OffsetIndexEntry> entries,
                                                 int64_t row_count) {
  std::vector<RowRange> rows;
  for (size_t i = 0; i < entries.size(); ++i) {
    const int64_t end = i + 1 < entries.size() ? entries[i + 1].first_row : row_count;
    if (entries[i].first_row < 0 || end < entries[i].first_row || end > row_count) {
      return std::nullopt;
    }
    rows.push_back({entries[i].first_row, end});
  }
  if (rows.empty() || rows.front().begin != 0) return std::nullopt;
  return rows;
}

// One chunk's index being judged.
class PageJudge {
 public:
  PageJudge(const Footer& footer, ChunkId chunk, const ColumnIndexParts& index,
            std::vector<RowRange> rows)
      : footer_(footer), chunk_(chunk), index_(index), rows_(std::move(rows)),
        repeated_(footer.schema()->leaf_is_repeated(chunk.leaf)) {}

  // Empty: not to be believed.
  std::vector<PageBounds> Run() {
    const size_t count = rows_.size();
    if (index_.null_pages.size() != count || index_.mins.size() != count ||
        index_.maxes.size() != count ||
        (index_.null_counts && index_.null_counts->size() != count)) {
      return {};
    }
    for (size_t page = 0; page < count; ++page) {
      if (!AddPage(page)) return {};
    }
    if (!OrderHolds() || !AgreesWithChunk()) return {};
    std::erase_if(pages_, [](const PageBounds& page) { return page.rows.empty(); });
    return std::move(pages_);
  }

 private:
  bool AddPage(size_t page) {
    RawBounds raw;
    // Of a repeated column the number of values is not known.
    raw.value_count = repeated_ ? -1 : rows_[page].row_count();
    if (index_.null_counts) {
      const int64_t nulls = (*index_.null_counts)[page];
      if (nulls < 0 || (!repeated_ && nulls > raw.value_count)) return false;
      raw.null_count = nulls;
    }
    const std::string& min = index_.mins[page];
    const std::string& max = index_.maxes[page];
    const bool only_nulls = raw.null_count == raw.value_count;
    if (index_.null_pages[page]) {
      if (!min.empty() || !max.empty()) return false;
      if (raw.null_count && !repeated_ && !only_nulls) return false;
      // A page of nulls alone, whether or not it says how many.
      if (!repeated_) raw.null_count = raw.value_count;
    } else if (only_nulls) {
      if (!min.empty() || !max.empty()) return false;
    } else {
      if (!NullCountsAreWhole(*footer_.schema(), chunk_.leaf)) raw.null_count.reset();
      // No bytes are no value of a fixed width; a shortened byte array may have lost all of them.
      const bool fixed = HasFixedWidth(*footer_.schema(), chunk_.leaf);
      if (!fixed || !min.empty()) raw.min = min;
      if (!fixed || !max.empty()) raw.max = max;
      raw.min_exact = raw.max_exact = fixed;
      if (!raw.min || !raw.max) raw.note = BoundsNote::kMissing;
    }
    Bounds bounds = DecodeBounds(*footer_.schema(), chunk_.leaf, raw);
    if (bounds.note == BoundsNote::kContradictory) return false;
    pages_.push_back({rows_[page], std::move(bounds)});
    return true;
  }

  // The order that the index claims must be there, for least and greatest values alike.
  bool OrderHolds() const {
    if (index_.order == static_cast<int32_t>(BoundaryOrder::kUnordered)) return true;
    if (index_.order != static_cast<int32_t>(BoundaryOrder::kAscending) &&
        index_.order != static_cast<int32_t>(BoundaryOrder::kDescending)) {
      return false;
    }
    const int sign = index_.order == static_cast<int32_t>(BoundaryOrder::kAscending) ? 1 : -1;
    const Bounds* previous = nullptr;
    for (const PageBounds& page : pages_) {
      if (!page.bounds.has_both()) continue;
      if (previous != nullptr &&
          (sign * CompareScalars(*previous->min, *page.bounds.min) > 0 ||
           sign * CompareScalars(*previous->max, *page.bounds.max) > 0)) {
        return false;
      }
      previous = &page.bounds;
    }
    return true;
  }

  // The pages together must have the chunk's bounds and nulls, where neither can be shortened; and
  // shortened ones must meet the chunk's.
  bool AgreesWithChunk() const {
    const Bounds chunk = ChunkBounds(footer_, chunk_.row_group, chunk_.leaf);
    int64_t nulls = 0;
    const Bounds* least = nullptr;
    const Bounds* greatest = nullptr;
    bool all_known = true, counted = true;
    for (const PageBounds& page : pages_) {
      counted = counted && page.bounds.null_count.has_value();
      nulls += page.bounds.null_count.value_or(0);
      if (page.bounds.only_nulls()) continue;
      all_known = all_known && page.bounds.has_both();
      if (!page.bounds.has_both()) continue;
      if (!least || CompareScalars(*page.bounds.min, *least->min) < 0) least = &page.bounds;
      if (!greatest || CompareScalars(*page.bounds.max, *greatest->max) > 0) {
        greatest = &page.bounds;
      }
      if ((chunk.max && CompareScalars(*page.bounds.min, *chunk.max) > 0) ||
          (chunk.min && CompareScalars(*page.bounds.max, *chunk.min) < 0)) {
        return false;
      }
    }
    if (chunk.null_count && (counted ? nulls != *chunk.null_count : nulls > *chunk.null_count)) {
      return false;
    }
    if (!all_known || !chunk.has_both() || !chunk.min_exact || !chunk.max_exact ||
        !HasFixedWidth(*footer_.schema(), chunk_.leaf)) {
      return true;
    }
    return least != nullptr && CompareScalars(*least->min, *chunk.min) == 0 &&
           CompareScalars(*greatest->max, *chunk.max) == 0;
  }

  const Footer& footer_;
  const ChunkId chunk_;
  const ColumnIndexParts& index_;
  const std::vector<RowRange> rows_;
  const bool repeated_;
  std::vector<PageBounds> pages_;
};

std::span<const uint8_t> SpanOf(const arrow::Buffer& buffer) {
  return {buffer.data(), static_cast<size_t>(buffer.size())};
}

std::vector<PageBounds> JudgePages(const Footer& footer, ChunkId chunk,
                                   const arrow::Buffer& column_index,
                                   const arrow::Buffer& offset_index) {
  const auto entries = ParseOffsetIndex(SpanOf(offset_index));
  const auto parts = ParseColumnIndex(SpanOf(column_index));
  if (!entries || !parts) return {};
  const bool repeated = footer.schema()->leaf_is_repeated(chunk.leaf);
  const int64_t row_count = footer.row_group_row_count(chunk.row_group);
  // The same trust as the page map's: else rows and pages may not be those of the bounds.
  if (!PagesOfIndex(*entries, footer.impl().chunk(chunk.row_group, chunk.leaf), repeated,
                    row_count)) {
    return {};
  }
  auto rows = RowsOfPages(*entries, row_count);
  if (!rows) return {};
  return PageJudge(footer, chunk, *parts, *std::move(rows)).Run();
}

std::optional<ByteRange> ColumnIndexRange(const Footer& footer, ChunkId chunk) {
  const auto& impl = footer.impl();
  auto location = Guarded("reading chunk metadata", [&] {
    return impl.metadata->RowGroup(chunk.row_group)
        ->ColumnChunk(chunk.leaf)
        ->GetColumnIndexLocation();
  });
  if (!location.ok() || !*location) return std::nullopt;
  const auto& [offset, length] = **location;
  if (offset < 4 || length <= 0 || length > kIndexBytesMax || offset > impl.footer_begin ||
      length > impl.footer_begin - offset) {
    return std::nullopt;
  }
  return ByteRange{offset, offset + length};
}

}  // namespace

std::vector<ByteRange> PageIndexRanges(const Footer& footer, ChunkId chunk) {
  const auto& offset_index = footer.impl().chunk(chunk.row_group, chunk.leaf).offset_index;
  if (!offset_index || offset_index->size_bytes() > kIndexBytesMax ||
      !PageOrderIsKnown(footer, chunk.leaf)) {
    return {};
  }
  const auto column_index = ColumnIndexRange(footer, chunk);
  if (!column_index) return {};
  return {*column_index, *offset_index};
}

Result<std::vector<std::vector<PageBounds>>> ReadPageBounds(store::Store& store,
                                                            const Footer& footer,
                                                            std::span<const ChunkId> chunks) {
  std::vector<std::vector<PageBounds>> out(chunks.size());
  std::vector<store::ReadRequest> requests;
  std::vector<size_t> wanted;   // the chunk of each pair of requests
  std::vector<std::shared_ptr<arrow::Buffer>> bytes;
  const auto& impl = footer.impl();
  for (size_t i = 0; i < chunks.size(); ++i) {
    const auto ranges = PageIndexRanges(footer, chunks[i]);
    if (ranges.empty()) continue;
    wanted.push_back(i);
    for (const ByteRange& range : ranges) {
      bytes.push_back(impl.FromTail(range));
      if (bytes.back() == nullptr) requests.push_back({impl.object, range});
    }
  }
  std::vector<std::shared_ptr<arrow::Buffer>> read(requests.size());
  Status status;
  std::mutex mutex;
  store::ReadEachCoalesced(&store, requests, {.gap_bytes_max = kIndexGapBytes},
                           [&](size_t i, Result<std::shared_ptr<arrow::Buffer>> answer) {
                             if (answer.ok()) {
                               read[i] = *std::move(answer);
                             } else {
                               std::lock_guard lock(mutex);
                               status = answer.status();
                             }
                           });
  if (!status.ok()) return AddContext(status, "path", footer.object().path);
  size_t next = 0;
  for (auto& buffer : bytes) {
    if (buffer == nullptr) buffer = read[next++];
  }
  for (size_t i = 0; i < wanted.size(); ++i) {
    out[wanted[i]] = JudgePages(footer, chunks[wanted[i]], *bytes[2 * i], *bytes[2 * i + 1]);
  }
  return out;
}

}  // namespace grebe::pq

// One page header, parsed and validated. Decoders and page walks only ever act on a header that
// came through ParsePageHeader: the sizes in it bound what they read and allocate.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "base/status.h"
#include "parquet/footer.h"

namespace grebe::pq {

// Numbers as in the format's Thrift file. Other numbers occur in files to come: a reader steps
// over pages of a type it does not know (kOther).
enum class PageType : int32_t { kData = 0, kIndex = 1, kDictionary = 2, kDataV2 = 3, kOther = -1 };

struct PageHeader {
  PageType type = PageType::kOther;
  int64_t header_bytes = 0;        // the header itself; the payload follows it
  int64_t compressed_bytes = 0;    // of the payload as stored
  int64_t uncompressed_bytes = 0;  // of the payload decompressed (v2: levels included)
  // Data pages: levels in the page. Dictionary pages: entries. Else 0.
  int32_t value_count = 0;
  std::optional<uint32_t> crc;     // of the payload as stored

  // Data and dictionary pages: parquet::Encoding as its Thrift number.
  int32_t encoding = -1;
  // v1 data pages only.
  int32_t definition_level_encoding = -1;
  int32_t repetition_level_encoding = -1;
  // v2 data pages only. The levels lie uncompressed before the values: repetition levels first.
  int32_t null_count = 0;
  int32_t row_count = 0;
  int64_t definition_level_bytes = 0;
  int64_t repetition_level_bytes = 0;
  bool is_compressed = true;       // v1 pages: always as the chunk's codec says

  bool is_data() const { return type == PageType::kData || type == PageType::kDataV2; }
  int64_t page_bytes() const { return header_bytes + compressed_bytes; }
};

// What is known about the place a page header stands in.
struct PagePlace {
  // Bytes from the header's first to the end of what the page may occupy (the chunk's end, or the
  // page's range in a page map). The page must fit.
  int64_t bytes_left = 0;
  // Levels that are left in the chunk: a data page must not hold more. Negative: not known.
  int64_t values_left = -1;
};

// No header is longer than this, statistics included.
inline constexpr int64_t kPageHeaderBytesMax = 16 << 20;

// Parses the header at bytes[0]. nullopt: the header is longer than `bytes` (call again with more
// of them, up to place.bytes_left). Errors: Corrupt (not a header; a negative size; a page that
// does not fit its place; more values than are left; levels longer than the page; a header of
// more than kPageHeaderBytesMax), LimitExceeded (a size above limits.page_bytes_max or
// limits.decompress_ratio_max). Messages lack path and offset: the caller adds them.
// Cost: about 50 ns, no allocation.
Result<std::optional<PageHeader>> ParsePageHeader(std::span<const uint8_t> bytes,
                                                  const PagePlace& place,
                                                  const ReadLimits& limits);

}  // namespace grebe::pq

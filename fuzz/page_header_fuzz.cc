// Page headers and offset indexes from any bytes: never a crash; a header that is accepted fits its
// place and its limits.
#include <cstdint>
#include <cstdlib>

#include "parquet/offset_index.h"
#include "parquet/page_header.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using grebe::pq::PagePlace;
  using grebe::pq::ReadLimits;
  if (size < 2) return 0;
  // The first two bytes choose the place.
  const PagePlace place{int64_t{data[0]} << (data[1] & 31), data[1] & 32 ? int64_t{data[0]} : -1};
  ReadLimits limits;
  limits.page_bytes_max = 1 << 20;
  const std::span<const uint8_t> bytes(data + 2, size - 2);
  const auto header = grebe::pq::ParsePageHeader(bytes, place, limits);
  if (header.ok() && header->has_value()) {
    const auto& h = **header;
    const bool sound =
        h.header_bytes > 0 && h.header_bytes <= static_cast<int64_t>(bytes.size()) &&
        h.compressed_bytes >= 0 && h.page_bytes() <= place.bytes_left &&
        h.compressed_bytes <= limits.page_bytes_max && h.uncompressed_bytes >= 0 &&
        h.uncompressed_bytes <= limits.page_bytes_max && h.value_count >= 0 &&
        (!h.is_data() || place.values_left < 0 || h.value_count <= place.values_left) &&
        h.definition_level_bytes >= 0 && h.repetition_level_bytes >= 0 &&
        h.definition_level_bytes + h.repetition_level_bytes <= h.compressed_bytes;
    if (!sound) std::abort();
  }
  const auto entries = grebe::pq::ParseOffsetIndex(bytes);
  if (entries) {
    grebe::pq::ChunkMeta chunk;
    chunk.bytes = {4, place.bytes_left};
    chunk.value_count = 1000;
    const auto pages = grebe::pq::PagesOfIndex(*entries, chunk, data[1] & 64, 1000);
    int64_t row = 0;
    int64_t at = chunk.bytes.begin;
    if (pages) {
      for (const auto& page : *pages) {
        if (page.bytes.begin < at || page.bytes.end > chunk.bytes.end || page.bytes.empty() ||
            page.rows.begin != row || page.rows.empty()) {
          std::abort();
        }
        at = page.bytes.end;
        row = page.rows.end;
      }
      if (row != 1000) std::abort();
    }
  }
  return 0;
}

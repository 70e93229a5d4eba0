// A chunk's OffsetIndex: parsed, and believed only where it agrees with the footer.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "parquet/footer_internal.h"
#include "parquet/page_map.h"

namespace grebe::pq {

struct OffsetIndexEntry {
  int64_t offset_bytes = 0;
  int32_t page_bytes = 0;      // header and payload
  int64_t first_row = 0;       // of the row group
};

// Parses the Thrift struct. nullopt: damaged. Cost: about 10 ns a page.
std::optional<std::vector<OffsetIndexEntry>> ParseOffsetIndex(std::span<const uint8_t> bytes);

// The chunk's data pages by its index. nullopt: the index contradicts itself, the footer or the
// format (then the page headers must be walked). Pages without rows are left out.
std::optional<std::vector<PageLocation>> PagesOfIndex(std::span<const OffsetIndexEntry> entries,
                                                      const ChunkMeta& chunk, bool repeated,
                                                      int64_t row_count);

}  // namespace grebe::pq

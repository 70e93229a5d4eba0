// What a Parquet file looks like inside, for people: `grebe inspect` prints it. Plain values, no
// types of libparquet.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "base/types.h"
#include "parquet/footer.h"

namespace grebe::pq {

struct PageDescription {
  std::string type;                 // "data", "data v2", "dictionary", "index", "other"
  ByteRange bytes;                  // header and payload
  int64_t header_bytes = 0;
  int64_t uncompressed_bytes = 0;   // of the payload
  int64_t value_count = 0;          // levels, or dictionary entries
  std::string encoding;             // of the values; empty for index and other pages
  // Data pages: rows of the row group that begin in the page.
  std::optional<RowRange> rows;
  bool begins_mid_row = false;
  bool has_crc = false;
};

struct ChunkDescription {
  std::string codec;                      // "ZSTD", ...
  std::vector<std::string> encodings;     // as the footer lists them
  int64_t value_count = 0;
  int64_t compressed_bytes = 0;
  int64_t uncompressed_bytes = 0;
  int64_t data_page_count = 0;
  int64_t dictionary_bytes = 0;           // header and payload; 0: none
  bool has_offset_index = false;
  bool has_column_index = false;
  bool has_bloom_filter = false;
  bool has_statistics = false;
  std::vector<PageDescription> pages;     // only when asked for
};

struct RowGroupDescription {
  int64_t row_count = 0;
  int64_t claimed_row_count = 0;          // by the footer
  std::vector<ChunkDescription> chunks;   // one per leaf
};

struct LeafDescription {
  std::string path;                       // dotted
  std::string physical_type;              // "INT64", "FIXED_LEN_BYTE_ARRAY(16)", ...
  std::string logical_type;               // "String", "Decimal(precision=9, scale=2)", "None"
  std::string arrow_type;                 // of the leaf
  int definition_level_max = 0;
  int repetition_level_max = 0;
  bool can_be_key = false;                // not inside a list or map
};

struct FileDescription {
  std::string path;
  int64_t size_bytes = 0;
  int64_t footer_bytes = 0;
  std::string created_by;
  int64_t row_count = 0;
  int64_t page_map_bytes = 0;             // packed, as an index would hold it
  std::vector<LeafDescription> leaves;
  std::vector<RowGroupDescription> row_groups;
  std::vector<std::pair<std::string, std::string>> metadata;
};

// Cost: that of FindPages; with_pages adds a walk over every page header. Errors: as FindPages.
Result<FileDescription> DescribeFile(store::Store& store, const Footer& footer, bool with_pages,
                                     const ReadLimits& limits = {});

}  // namespace grebe::pq

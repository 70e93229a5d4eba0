// Encodes one column chunk: levels and values in, bytes and what the footer says of them out.
// For this room only.
//
// The values go through libparquet's ColumnWriter as a flat required column, so that every
// conversion from Arrow and every encoder is its own; each call of it gives one page (its size
// limit is 0). Levels, compression and page boundaries are ours. A ColumnWriter that sees the
// repetition levels would never end a page at the last row it was given.
#pragma once

#include <arrow/array.h>
#include <arrow/buffer.h>
#include <parquet/metadata.h>
#include <parquet/properties.h>
#include <parquet/schema.h>
#include <parquet/size_statistics.h>
#include <parquet/statistics.h>

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/types.h"
#include "parquet/page_compressor.h"
#include "parquet/write_file.h"

namespace grebe::pq {

// Offsets count from the chunk's first byte.
struct EncodedChunk {
  std::shared_ptr<arrow::Buffer> bytes;
  int64_t uncompressed_bytes = 0;            // of pages and their headers
  int64_t value_count = 0;                   // levels
  std::optional<ByteRange> dictionary;
  bool dictionary_fallback = false;          // some pages are not encoded by it
  bool bounded = true;                       // the bounds are there, and hold for every reader
  struct Page {
    ByteRange bytes;
    RowRange rows;
  };
  std::vector<Page> pages;
  std::map<::parquet::Encoding::type, int32_t> dictionary_encodings;
  std::map<::parquet::Encoding::type, int32_t> data_encodings;
  ::parquet::EncodedStatistics statistics;
  ::parquet::SizeStatistics sizes;
  std::string column_index;                  // serialized; empty: none
  std::string bloom_filter;                  // serialized; empty: none
};

// What libparquet's level builder gives for a leaf.
struct LeafLevels {
  const int16_t* definition = nullptr;       // null: no level is above 0
  const int16_t* repetition = nullptr;
  int64_t count = 0;
};

struct ChunkSettings {
  const WriteOptions* options = nullptr;
  DictionaryPolicy dictionary = DictionaryPolicy::kAuto;
  bool bloom = false;
  std::span<const int64_t> page_ends;        // rows; empty: by size
  PageCompressor* compressor = nullptr;
  arrow::MemoryPool* pool = nullptr;
};

// leaf: one slot a level that has one, as libparquet's level builder gives it; at least one row.
// Errors: LimitExceeded (a page of 2 GiB), Unsupported. May throw what libparquet throws.
Result<EncodedChunk> EncodeChunk(const ::parquet::ColumnDescriptor& column,
                                 const LeafLevels& levels,
                                 const std::shared_ptr<arrow::Array>& leaf,
                                 const ChunkSettings& settings,
                                 ::parquet::ArrowWriteContext* context);

}  // namespace grebe::pq

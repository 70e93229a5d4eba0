// What Footer holds, for this room only.
#pragma once

#include <parquet/metadata.h>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "parquet/footer.h"

namespace grebe::pq {

// What the footer says of one column chunk, checked against the file's size.
struct ChunkMeta {
  int32_t codec = 0;                         // as its Thrift number
  int64_t value_count = 0;
  // Where the chunk's pages lie: dictionary first. Nothing of it reaches into the footer.
  ByteRange bytes;
  // Begins with the dictionary page, as the footer says (it need not say so where there is one).
  bool dictionary_first = false;
  std::optional<ByteRange> offset_index;     // within the file
  // Data pages as the encoding statistics count them; negative: not said.
  int64_t data_pages = -1;
};

struct Footer::Impl {
  std::shared_ptr<const store::Object> object;
  std::shared_ptr<::parquet::FileMetaData> metadata;
  std::shared_ptr<const Schema> schema;
  std::string created_by;
  bool always_compressed = false;            // see ChunkInfo
  std::vector<int64_t> row_counts;           // per row group
  std::vector<ChunkMeta> chunks;             // row group * leaf count + leaf
  int64_t row_count = 0;
  // The file's last bytes, as they were read to find the footer.
  std::shared_ptr<arrow::Buffer> tail;
  int64_t tail_begin = 0;
  int64_t footer_begin = 0;                  // no page reaches beyond

  int leaf_count() const { return schema->leaf_count(); }
  const ChunkMeta& chunk(int row_group, int leaf) const {
    return chunks[static_cast<size_t>(row_group) * static_cast<size_t>(leaf_count()) +
                  static_cast<size_t>(leaf)];
  }
  // The bytes, when the tail holds all of them.
  std::shared_ptr<arrow::Buffer> FromTail(ByteRange range) const {
    if (range.begin < tail_begin || range.end > tail_begin + tail->size()) return nullptr;
    return arrow::SliceBuffer(tail, range.begin - tail_begin, range.size_bytes());
  }
};

// The Thrift number of a codec that libparquet knows.
int32_t ThriftCodec(::parquet::Compression::type codec);

}  // namespace grebe::pq

// libparquet's decoder of one page's values, for the encodings that Grebe does not walk itself.
#pragma once

#include <arrow/memory_pool.h>
#include <parquet/schema.h>

#include <cstdint>
#include <memory>
#include <span>

#include "base/status.h"
#include "parquet/leaf_slice.h"

namespace grebe::pq {

class LibraryDecoder {
 public:
  virtual ~LibraryDecoder() = default;
  // Errors: Corrupt when there are fewer values, or damaged ones; LimitExceeded.
  virtual Status Skip(int64_t count) = 0;
  virtual Status Take(int64_t count, LeafSlice* out) = 0;
};

// `values` must outlive the decoder, which allocates at most bytes_max. Errors: Corrupt,
// Unsupported (no such encoding, or not for the column's type).
Result<std::unique_ptr<LibraryDecoder>> MakeLibraryDecoder(
    int32_t encoding, const ::parquet::ColumnDescriptor* descriptor,
    std::span<const uint8_t> values, int64_t value_count_max, int64_t bytes_max,
    arrow::MemoryPool* pool);

}  // namespace grebe::pq

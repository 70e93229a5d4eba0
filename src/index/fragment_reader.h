// What merging and verifying need of an opened fragment beyond its public face: whole blocks.
// Private to this room. Threads: immutable, safe.
#pragma once

#include <arrow/record_batch.h>

#include <cstdint>
#include <memory>
#include <string_view>

#include "base/status.h"
#include "base/types.h"
#include "index/file_finder.h"
#include "index/fragment_head.h"
#include "index/hash_block.h"

namespace grebe::index {

class FragmentReader {
 public:
  virtual ~FragmentReader() = default;
  virtual const FragmentHead& head() const = 0;
  virtual BlockScope scope(uint64_t block) const = 0;
  virtual ByteRange block_range(uint64_t block) const = 0;
  virtual ByteRange list_range(uint64_t list) const = 0;
  // item: a block, or the block count plus a list. REQUIRES: head().has_covering.
  virtual ByteRange covering_range(uint64_t item) const = 0;
  virtual const FileFinder& finder() const = 0;
};

// The rows of an Arrow IPC stream, as one batch. Errors: Corrupt.
Result<std::shared_ptr<arrow::RecordBatch>> ReadCoveringStream(std::string_view bytes);

}  // namespace grebe::index

// Compresses pages one after another, with what a codec needs set up once. For this room only.
#pragma once

#include <arrow/buffer.h>
#include <parquet/types.h>

#include <memory>
#include <span>

#include "base/status.h"
#include "parquet/write_file.h"

namespace grebe::pq {

// The codec by libparquet's name.
::parquet::Compression::type LibraryCodec(Codec codec);
// The level as Arrow's codecs want it: their word for none where the codec has no levels.
int LibraryLevel(Codec codec, int level);

// Equal input gives equal output, whatever was compressed before.
// Threads: one at a time.
class PageCompressor {
 public:
  // Errors: InvalidArgument (a level that the codec does not have), Unsupported.
  static Result<std::unique_ptr<PageCompressor>> Make(Codec codec, int level);
  virtual ~PageCompressor() = default;

  // The compressed bytes; valid until the next call.
  virtual Result<std::shared_ptr<arrow::Buffer>> Compress(std::span<const uint8_t> in) = 0;
};

}  // namespace grebe::pq

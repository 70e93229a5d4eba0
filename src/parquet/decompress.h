// Page payloads out of their codecs, with contexts kept per thread.
//
// ZSTD, the usual codec, is decoded by libzstd itself: a reused context makes a page of a few KiB
// three times cheaper, and decoding can stop at a block boundary once enough bytes are out. The
// other codecs go through Arrow (with its handling of Hadoop's LZ4 framing and of concatenated
// gzip members).
#pragma once

#include <arrow/buffer.h>
#include <arrow/memory_pool.h>

#include <cstdint>
#include <memory>
#include <span>

#include "base/status.h"

struct ZSTD_DCtx_s;

namespace grebe::pq {

// parquet::Compression as the format's Thrift numbers it.
inline constexpr int32_t kCodecUncompressed = 0;
inline constexpr int32_t kCodecZstd = 6;

// Decompresses all of `in` into exactly `out`. Errors: Corrupt (damaged, or not of exactly this
// size), Unsupported (a codec that this build lacks, or that does not exist). Threads: safe.
Status Decompress(int32_t codec, std::span<const uint8_t> in, std::span<uint8_t> out);

// Decodes ZSTD bytes front to back, as far as asked. Uses a context of the thread, one for pages
// and one for dictionaries: of each, at most one ZstdPrefix may be in use in a thread, and it must
// stay there.
class ZstdPrefix {
 public:
  ZstdPrefix() = default;
  ZstdPrefix(std::span<const uint8_t> in, std::span<uint8_t> out, bool dictionary)
      : in_(in), out_(out), dictionary_(dictionary) {}
  int64_t available_bytes() const { return static_cast<int64_t>(out_bytes_); }
  // Every byte of `in` was decoded and `out` is full.
  bool complete() const { return complete_; }
  // Makes available_bytes() >= min(bytes, out.size()). Errors: Corrupt.
  Status Ensure(int64_t bytes);

 private:
  Status Step(ZSTD_DCtx_s* context);

  std::span<const uint8_t> in_;
  std::span<uint8_t> out_;
  size_t in_bytes_ = 0;
  size_t out_bytes_ = 0;
  size_t next_bytes_ = 0;  // how much the decoder wants to be fed next
  bool dictionary_ = false;
  bool started_ = false;
  bool complete_ = false;
};

// A buffer of the thread for one page at a time, kept between pages up to 1 MiB. Larger ones are
// allocated from the pool, so that its cap holds.
class PageScratch {
 public:
  // The bytes are valid until the thread's next call. Errors: LimitExceeded.
  static Result<std::span<uint8_t>> Get(int64_t bytes, arrow::MemoryPool* pool,
                                        std::unique_ptr<arrow::Buffer>* owner);
};

}  // namespace grebe::pq

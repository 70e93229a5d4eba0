// One page, from its bytes in the file to its levels and values: the header is validated, the
// checksum verified, the payload decompressed as far as it is needed.
#pragma once

#include <arrow/buffer.h>

#include <cstdint>
#include <memory>
#include <span>

#include "base/status.h"
#include "parquet/decompress.h"
#include "parquet/page_header.h"
#include "parquet/row_decode.h"

namespace grebe::pq {

// A page's decompressed payload; for v2 pages the levels come first, as in v1 pages. Decompressed
// front to back as far as Ensure asks. Valid until the thread opens another page; not to be moved
// to another thread.
class PageBytes {
 public:
  // A ZSTD block holds at most 128 KiB: smaller pages are one block, and decode whole or not.
  static constexpr int64_t kZstdBlockBytes = 128 << 10;

  struct Options {
    int32_t codec = 0;
    bool always_compressed = false;  // as ChunkInfo has it
    int64_t values_max = -1;
    bool dictionary = false;         // the page must be one; else a data page of either version
    bool verify_crc = true;
    const ReadLimits* limits = nullptr;
    arrow::MemoryPool* pool = nullptr;       // for what this object alone uses
    arrow::MemoryPool* kept_pool = nullptr;  // for the buffer that take_buffer() gives
  };
  // Parses and checks `page` (header and payload), which must outlive this. Errors: Corrupt,
  // LimitExceeded.
  Status Parse(std::span<const uint8_t> page, const Options& options);
  // Prepares the payload; Ensure and data() work from here on. own_buffer: it goes to a buffer of
  // its own, which take_buffer() gives; else to the thread's scratch, or stays where it is.
  Status Start(bool own_buffer);
  // Takes a page that was decompressed before; `payload` must outlive this.
  void OpenDecoded(const PageHeader& header, const arrow::Buffer& payload);

  const PageHeader& header() const { return header_; }
  const uint8_t* data() const { return data_; }
  int64_t size_bytes() const { return header_.uncompressed_bytes; }
  int64_t available_bytes() const { return available_; }

  // Makes [0, min(bytes, size_bytes())) available. Errors: Corrupt.
  Status Ensure(int64_t bytes) {
    if (bytes <= available_) return Status::OK();
    return Decode(bytes);
  }
  // The payload, as far as it is available. REQUIRES: started with own_buffer.
  std::shared_ptr<arrow::Buffer> take_buffer() { return std::move(own_); }

 private:
  Status Place(bool own_buffer);
  Status Decode(int64_t bytes);

  Options options_;
  PageHeader header_;
  std::span<const uint8_t> payload_;       // as stored
  const uint8_t* data_ = nullptr;
  int64_t available_ = 0;
  int64_t levels_bytes_ = 0;               // v2: stored uncompressed before the values
  int32_t codec_ = 0;
  std::span<uint8_t> out_;                 // where the payload is decompressed to
  ZstdPrefix prefix_;
  std::shared_ptr<arrow::Buffer> own_;
  std::unique_ptr<arrow::Buffer> large_scratch_;
};

}  // namespace grebe::pq

#include "parquet/decompress.h"

#include <arrow/util/compression.h>
#include <parquet/types.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <vector>

#include "parquet/guard.h"

namespace grebe::pq {
namespace {

constexpr int64_t kScratchBytesKept = 1 << 20;

struct ZstdFree {
  void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
};
using ZstdContext = std::unique_ptr<ZSTD_DCtx, ZstdFree>;

// What a thread keeps. Each kind of use has a context of its own: a dictionary may be decompressed
// while a page is being read in steps.
struct ThreadCodecs {
  ZstdContext whole;
  ZstdContext page_prefix;
  ZstdContext dictionary_prefix;
  std::array<std::unique_ptr<arrow::util::Codec>, 8> arrow_codecs;
  std::vector<uint8_t> scratch;
};

ThreadCodecs& OfThread() {
  thread_local ThreadCodecs codecs;
  return codecs;
}

Result<ZSTD_DCtx*> Get(ZstdContext* context) {
  if (*context == nullptr) {
    context->reset(ZSTD_createDCtx());
    if (*context == nullptr) return LimitExceeded("not enough memory for a ZSTD context");
  }
  return context->get();
}

Status DecompressZstd(std::span<const uint8_t> in, std::span<uint8_t> out) {
  ARROW_ASSIGN_OR_RAISE(ZSTD_DCtx* context, Get(&OfThread().whole));
  const size_t size =
      ZSTD_decompressDCtx(context, out.data(), out.size(), in.data(), in.size());
  if (ZSTD_isError(size)) {
    return Corrupt("page does not decompress", "codec", "zstd", "cause",
                   ZSTD_getErrorName(size));
  }
  if (size != out.size()) {
    return Corrupt("page decompresses to another size", "expected", out.size(), "got", size);
  }
  return Status::OK();
}

// The format's Thrift numbers to Arrow's.
Result<arrow::Compression::type> ArrowCodec(int32_t codec) {
  switch (codec) {
    case 1: return arrow::Compression::SNAPPY;
    case 2: return arrow::Compression::GZIP;
    case 3: return arrow::Compression::LZO;
    case 4: return arrow::Compression::BROTLI;
    case 5: return arrow::Compression::LZ4_HADOOP;
    case 7: return arrow::Compression::LZ4;
    default: return Unsupported("unknown compression codec", "codec", codec);
  }
}

Result<arrow::util::Codec*> CodecOfThread(int32_t codec) {
  ARROW_ASSIGN_OR_RAISE(const arrow::Compression::type type, ArrowCodec(codec));
  std::unique_ptr<arrow::util::Codec>& slot = OfThread().arrow_codecs[static_cast<size_t>(codec)];
  if (slot == nullptr) {
    auto made = Guarded("making a codec", [&] { return ::parquet::GetCodec(type); });
    if (!made.ok() || *made == nullptr) {
      return Unsupported("compression codec is not available", "codec", codec);
    }
    slot = std::move(*made);
  }
  return slot.get();
}

}  // namespace

Status Decompress(int32_t codec, std::span<const uint8_t> in, std::span<uint8_t> out) {
  if (codec == kCodecZstd) return DecompressZstd(in, out);
  if (codec == kCodecUncompressed) {
    if (in.size() != out.size()) {
      return Corrupt("uncompressed page has two sizes", "stored", in.size(), "claimed",
                     out.size());
    }
    std::copy(in.begin(), in.end(), out.begin());
    return Status::OK();
  }
  ARROW_ASSIGN_OR_RAISE(arrow::util::Codec * arrow_codec, CodecOfThread(codec));
  ARROW_ASSIGN_OR_RAISE(const int64_t size, Guarded("decompressing a page", [&] {
    return arrow_codec->Decompress(static_cast<int64_t>(in.size()), in.data(),
                                   static_cast<int64_t>(out.size()), out.data());
  }));
  if (size != static_cast<int64_t>(out.size())) {
    return Corrupt("page decompresses to another size", "expected", out.size(), "got", size);
  }
  return Status::OK();
}

Status ZstdPrefix::Ensure(int64_t bytes) {
  const size_t wanted = std::min(static_cast<size_t>(std::max<int64_t>(bytes, 0)), out_.size());
  if (complete_ || (started_ && wanted <= out_bytes_ && wanted < out_.size())) {
    return Status::OK();
  }
  ThreadCodecs& codecs = OfThread();
  ARROW_ASSIGN_OR_RAISE(ZSTD_DCtx * context, Get(dictionary_ ? &codecs.dictionary_prefix
                                                             : &codecs.page_prefix));
  if (!started_) {
    ZSTD_DCtx_reset(context, ZSTD_reset_session_only);
    // The output is one buffer that stays: blocks are decoded in place, not copied out.
    ZSTD_DCtx_setParameter(context, ZSTD_d_experimentalParam2, 1);
    ZSTD_DCtx_setParameter(context, ZSTD_d_windowLogMax, sizeof(size_t) == 8 ? 31 : 30);
    next_bytes_ = 5;
    started_ = true;
  }
  // The last byte asked for: go on to the end of the input, so that damage there shows.
  while (out_bytes_ < wanted || (wanted == out_.size() && in_bytes_ < in_.size())) {
    ARROW_RETURN_NOT_OK(Step(context));
  }
  if (wanted == out_.size()) {
    if (next_bytes_ != 0) return Corrupt("page ends inside a ZSTD frame");
    complete_ = true;
  }
  return Status::OK();
}

Status ZstdPrefix::Step(ZSTD_DCtx* context) {
  if (in_bytes_ == in_.size()) {
    return Corrupt("page decompresses to another size", "expected", out_.size(), "got",
                   out_bytes_);
  }
  // 0: a frame ended; another one may follow.
  const size_t feed = std::min(next_bytes_ == 0 ? 5 : next_bytes_, in_.size() - in_bytes_);
  ZSTD_inBuffer in{in_.data() + in_bytes_, feed, 0};
  ZSTD_outBuffer out{out_.data(), out_.size(), out_bytes_};
  const size_t next = ZSTD_decompressStream(context, &out, &in);
  if (ZSTD_isError(next)) {
    return Corrupt("page does not decompress", "codec", "zstd", "cause",
                   ZSTD_getErrorName(next));
  }
  if (in.pos == 0 && out.pos == out_bytes_) return Corrupt("ZSTD page makes no progress");
  in_bytes_ += in.pos;
  out_bytes_ = out.pos;
  next_bytes_ = next;
  return Status::OK();
}

Result<std::span<uint8_t>> PageScratch::Get(int64_t bytes, arrow::MemoryPool* pool,
                                            std::unique_ptr<arrow::Buffer>* owner) {
  const auto size = static_cast<size_t>(bytes);
  if (bytes <= kScratchBytesKept) {
    std::vector<uint8_t>& scratch = OfThread().scratch;
    if (scratch.size() < size) scratch.resize(std::max(size, size_t{64} << 10));
    return std::span<uint8_t>(scratch.data(), size);
  }
  ARROW_ASSIGN_OR_RAISE(*owner, arrow::AllocateBuffer(bytes, pool));
  return std::span<uint8_t>((*owner)->mutable_data(), size);
}

}  // namespace grebe::pq

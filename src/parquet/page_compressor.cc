#include "parquet/page_compressor.h"

#include <arrow/util/compression.h>
#include <zstd.h>

namespace grebe::pq {
namespace {

// Grown, never shrunk: the pages of a file are much of a size.
class Scratch {
 public:
  Result<uint8_t*> Reserve(size_t size_bytes) {
    if (buffer_ == nullptr) {
      ARROW_ASSIGN_OR_RAISE(buffer_, arrow::AllocateResizableBuffer(0));
    }
    if (buffer_->capacity() < static_cast<int64_t>(size_bytes)) {
      ARROW_RETURN_NOT_OK(buffer_->Reserve(static_cast<int64_t>(size_bytes)));
    }
    return buffer_->mutable_data();
  }
  std::shared_ptr<arrow::Buffer> Take(int64_t size_bytes) const {
    return std::make_shared<arrow::Buffer>(buffer_->data(), size_bytes);
  }

 private:
  std::unique_ptr<arrow::ResizableBuffer> buffer_;
};

// ZSTD with a context that is kept: setting one up costs more than compressing a small page.
class ZstdCompressor final : public PageCompressor {
 public:
  ZstdCompressor(ZSTD_CCtx* context, int level) : context_(context), level_(level) {}
  ~ZstdCompressor() override { ZSTD_freeCCtx(context_); }

  Result<std::shared_ptr<arrow::Buffer>> Compress(std::span<const uint8_t> in) override {
    const size_t bound = ZSTD_compressBound(in.size());
    ARROW_ASSIGN_OR_RAISE(uint8_t* out, scratch_.Reserve(bound));
    const size_t size =
        ZSTD_compressCCtx(context_, out, bound, in.data(), in.size(), level_);
    if (ZSTD_isError(size)) {
      return Internal("page does not compress", "codec", "zstd", "cause",
                      ZSTD_getErrorName(size));
    }
    return scratch_.Take(static_cast<int64_t>(size));
  }

 private:
  ZSTD_CCtx* context_;
  const int level_;
  Scratch scratch_;
};

class ArrowCompressor final : public PageCompressor {
 public:
  explicit ArrowCompressor(std::unique_ptr<arrow::util::Codec> codec) : codec_(std::move(codec)) {}

  Result<std::shared_ptr<arrow::Buffer>> Compress(std::span<const uint8_t> in) override {
    const auto size = static_cast<int64_t>(in.size());
    const int64_t bound = codec_->MaxCompressedLen(size, in.data());
    ARROW_ASSIGN_OR_RAISE(uint8_t* out, scratch_.Reserve(static_cast<size_t>(bound)));
    ARROW_ASSIGN_OR_RAISE(const int64_t out_bytes, codec_->Compress(size, in.data(), bound, out));
    return scratch_.Take(out_bytes);
  }

 private:
  std::unique_ptr<arrow::util::Codec> codec_;
  Scratch scratch_;
};

class NoCompressor final : public PageCompressor {
 public:
  Result<std::shared_ptr<arrow::Buffer>> Compress(std::span<const uint8_t> in) override {
    return std::make_shared<arrow::Buffer>(in.data(), static_cast<int64_t>(in.size()));
  }
};

Result<std::unique_ptr<arrow::util::Codec>> MakeArrowCodec(Codec codec, int level) {
  using arrow::util::Codec;
  const auto type = LibraryCodec(codec);
  const std::string name = Codec::GetCodecAsString(type);
  if (!Codec::IsAvailable(type)) {
    return Unsupported("this build of Arrow lacks the codec", "codec", name);
  }
  const int used = LibraryLevel(codec, level);
  if (Codec::SupportsCompressionLevel(type)) {
    ARROW_ASSIGN_OR_RAISE(const int least, Codec::MinimumCompressionLevel(type));
    ARROW_ASSIGN_OR_RAISE(const int most, Codec::MaximumCompressionLevel(type));
    if (used < least || used > most) {
      return InvalidArgument("no such compression level", "codec", name, "level", level);
    }
  }
  return Codec::Create(type, used);
}

}  // namespace

int LibraryLevel(Codec codec, int level) {
  return arrow::util::Codec::SupportsCompressionLevel(LibraryCodec(codec))
             ? level
             : arrow::util::kUseDefaultCompressionLevel;
}

::parquet::Compression::type LibraryCodec(Codec codec) {
  switch (codec) {
    case Codec::kNone: return ::parquet::Compression::UNCOMPRESSED;
    case Codec::kSnappy: return ::parquet::Compression::SNAPPY;
    case Codec::kGzip: return ::parquet::Compression::GZIP;
    case Codec::kBrotli: return ::parquet::Compression::BROTLI;
    case Codec::kZstd: return ::parquet::Compression::ZSTD;
    case Codec::kLz4: return ::parquet::Compression::LZ4;
  }
  return ::parquet::Compression::UNCOMPRESSED;
}

Result<std::unique_ptr<PageCompressor>> PageCompressor::Make(Codec codec, int level) {
  if (codec == Codec::kNone) return std::make_unique<NoCompressor>();
  if (codec == Codec::kZstd) {
    if (level < ZSTD_minCLevel() || level > ZSTD_maxCLevel()) {
      return InvalidArgument("no such compression level", "codec", "zstd", "level", level);
    }
    ZSTD_CCtx* context = ZSTD_createCCtx();
    if (context == nullptr) return LimitExceeded("not enough memory for a ZSTD context");
    return std::make_unique<ZstdCompressor>(context, level);
  }
  ARROW_ASSIGN_OR_RAISE(auto made, MakeArrowCodec(codec, level));
  return std::make_unique<ArrowCompressor>(std::move(made));
}

}  // namespace grebe::pq

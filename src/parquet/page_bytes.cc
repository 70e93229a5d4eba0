#include "parquet/page_bytes.h"

#include <arrow/util/crc32.h>

#include <cstring>

#include "parquet/guard.h"

namespace grebe::pq {
Status PageBytes::Parse(std::span<const uint8_t> page, const Options& options) {
  options_ = options;
  const PagePlace place{static_cast<int64_t>(page.size()), options.values_max};
  ARROW_ASSIGN_OR_RAISE(const auto header, ParsePageHeader(page, place, *options.limits));
  if (!header.has_value()) return Corrupt("page header is cut off");
  header_ = *header;
  const bool right_type =
      options.dictionary ? header_.type == PageType::kDictionary : header_.is_data();
  if (!right_type) {
    return Corrupt("page is of another type", "expected",
                   options.dictionary ? "dictionary" : "data", "got",
                   static_cast<int>(header_.type));
  }
  payload_ = page.subspan(static_cast<size_t>(header_.header_bytes),
                          static_cast<size_t>(header_.compressed_bytes));
  if (options.verify_crc && header_.crc.has_value()) {
    const uint32_t crc = arrow::internal::crc32(0, payload_.data(), payload_.size());
    if (crc != *header_.crc) {
      return Corrupt("page checksum does not match", "expected", *header_.crc, "got", crc);
    }
  }
  return Status::OK();
}

Status PageBytes::Start(bool own_buffer) {
  codec_ = options_.codec;
  const bool v2 = header_.type == PageType::kDataV2;
  levels_bytes_ =
      v2 ? header_.definition_level_bytes + header_.repetition_level_bytes : 0;
  if (v2 && !header_.is_compressed && !options_.always_compressed) codec_ = kCodecUncompressed;
  if (header_.uncompressed_bytes == levels_bytes_) {
    // Nothing is compressed: no codec needs to look at it.
    codec_ = kCodecUncompressed;
    payload_ = payload_.first(static_cast<size_t>(levels_bytes_));
  }
  return Place(own_buffer);
}

// Decides where the decompressed payload goes, and puts a v2 page's levels there.
Status PageBytes::Place(bool own_buffer) {
  const int64_t size = header_.uncompressed_bytes;
  if (codec_ == kCodecUncompressed) {
    if (static_cast<int64_t>(payload_.size()) != size) {
      return Corrupt("uncompressed page has two sizes", "stored", payload_.size(), "claimed",
                     size);
    }
    data_ = payload_.data();
    available_ = size;
    if (!own_buffer) return Status::OK();
    ARROW_ASSIGN_OR_RAISE(own_, arrow::AllocateBuffer(size, options_.kept_pool));
    if (size > 0) std::memcpy(own_->mutable_data(), payload_.data(), payload_.size());
    data_ = own_->data();
    return Status::OK();
  }
  if (own_buffer) {
    ARROW_ASSIGN_OR_RAISE(own_, arrow::AllocateBuffer(size, options_.kept_pool));
    out_ = {own_->mutable_data(), static_cast<size_t>(size)};
  } else {
    ARROW_ASSIGN_OR_RAISE(out_, PageScratch::Get(size, options_.pool, &large_scratch_));
  }
  data_ = out_.data();
  const auto levels = static_cast<size_t>(levels_bytes_);
  if (levels > 0) std::memcpy(out_.data(), payload_.data(), levels);
  available_ = levels_bytes_;
  if (codec_ == kCodecZstd) {
    prefix_ = ZstdPrefix(payload_.subspan(levels), out_.subspan(levels), options_.dictionary);
  }
  return Status::OK();
}

Status PageBytes::Decode(int64_t bytes) {
  const int64_t size = size_bytes();
  if (available_ >= size) return Status::OK();
  const auto levels = static_cast<size_t>(levels_bytes_);
  const bool untouched = prefix_.available_bytes() == 0;
  if (codec_ != kCodecZstd ||
      (untouched && (size <= kZstdBlockBytes || bytes > size - kZstdBlockBytes / 2))) {
    ARROW_RETURN_NOT_OK(Decompress(codec_, payload_.subspan(levels), out_.subspan(levels)));
    available_ = size;
    return Status::OK();
  }
  ARROW_RETURN_NOT_OK(prefix_.Ensure(bytes - levels_bytes_));
  available_ = levels_bytes_ + prefix_.available_bytes();
  return Status::OK();
}

void PageBytes::OpenDecoded(const PageHeader& header, const arrow::Buffer& payload) {
  header_ = header;
  data_ = payload.data();
  available_ = payload.size();
}

}  // namespace grebe::pq

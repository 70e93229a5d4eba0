#include "parquet/dictionary.h"

#include <algorithm>

#include "base/coding.h"

namespace grebe::pq {
namespace {

// How far to decompress ahead when walking byte arrays.
constexpr int64_t kAheadBytes = 16 << 10;

}  // namespace

Status DictionaryReader::OpenCached(std::shared_ptr<const Dictionary> dictionary,
                                    const LeafShape& shape, const PageBytes::Options& options) {
  if (dictionary->width != shape.width) return Internal("cached dictionary of another type");
  dictionary_ = std::move(dictionary);
  shape_ = shape;
  options_ = options;
  options_.verify_crc = false;  // it was, when it came
  return Status::OK();
}

Status DictionaryReader::OpenPage(std::shared_ptr<arrow::Buffer> page, const LeafShape& shape,
                                  const PageBytes::Options& options) {
  PageBytes opened;
  ARROW_RETURN_NOT_OK(opened.Parse({page->data(), static_cast<size_t>(page->size())}, options));
  const PageHeader& header = opened.header();
  if (header.encoding != 0 && header.encoding != 2) {
    return Unsupported("dictionary page is not PLAIN", "encoding", header.encoding);
  }
  if (shape.type == ::parquet::Type::BOOLEAN) return Corrupt("a boolean column has a dictionary");
  const int64_t bytes_min = header.value_count * int64_t{shape.width == 0 ? 4 : shape.width};
  if (bytes_min > header.uncompressed_bytes) {
    return Corrupt("dictionary has fewer entries than its header says", "entries",
                   header.value_count, "bytes", header.uncompressed_bytes);
  }
  auto dictionary = std::make_shared<Dictionary>();
  dictionary->count = header.value_count;
  dictionary->width = shape.width;
  dictionary->page = std::move(page);
  dictionary_ = std::move(dictionary);
  shape_ = shape;
  options_ = options;
  options_.verify_crc = false;
  changed_ = true;
  return Status::OK();
}

Status DictionaryReader::Decode(uint32_t index) {
  const Dictionary& old = *dictionary_;
  PageBytes page;
  ARROW_RETURN_NOT_OK(
      page.Parse({old.page->data(), static_cast<size_t>(old.page->size())}, options_));
  ARROW_RETURN_NOT_OK(page.Start(true));
  // More than once, or nearly all at once: then all.
  const bool whole = old.ready > 0 || index >= old.count - old.count / 8;
  auto made = std::make_shared<Dictionary>();
  made->count = old.count;
  made->width = old.width;
  if (old.width > 0) {
    const int64_t wanted = (whole ? old.count : int64_t{index} + 1) * old.width;
    ARROW_RETURN_NOT_OK(page.Ensure(whole ? page.size_bytes() : wanted));
    if (wanted > page.available_bytes()) return Corrupt("dictionary is cut off");
    made->ready = std::min(page.available_bytes() / old.width, old.count);
  } else {
    if (whole) ARROW_RETURN_NOT_OK(page.Ensure(page.size_bytes()));
    ARROW_RETURN_NOT_OK(IndexByteArrays(&page, whole ? old.count - 1 : index, made.get()));
  }
  made->bytes = page.take_buffer();
  if (made->ready < made->count) made->page = old.page;
  dictionary_ = std::move(made);
  changed_ = true;
  return Status::OK();
}

// Finds where each byte array stands: all up to `index`, and what else is decompressed by then.
Status DictionaryReader::IndexByteArrays(PageBytes* page, int64_t index, Dictionary* out) const {
  const int64_t size = page->size_bytes();
  int64_t at = 0;
  out->offsets.reserve(static_cast<size_t>(index + 1));
  while (out->ready < out->count) {
    if (out->ready <= index) {
      if (at + 4 > page->available_bytes()) {
        ARROW_RETURN_NOT_OK(page->Ensure(at + kAheadBytes));
      }
      if (at + 4 > page->available_bytes()) {
        return Corrupt("dictionary has fewer entries than its header says");
      }
    } else if (at + 4 > page->available_bytes()) {
      break;
    }
    const int64_t end = at + 4 + static_cast<int64_t>(LoadLe<uint32_t>(page->data() + at));
    if (end > size) return Corrupt("dictionary entry runs past its page");
    if (end > page->available_bytes()) {
      if (out->ready > index) break;
      ARROW_RETURN_NOT_OK(page->Ensure(end));
    }
    out->offsets.push_back(static_cast<uint32_t>(at));
    ++out->ready;
    at = end;
  }
  return Status::OK();
}

Result<std::shared_ptr<const Dictionary>> DictionaryReader::TakeForCache() {
  if (!changed_ || dictionary_ == nullptr) return nullptr;
  if (dictionary_->page == nullptr || dictionary_->page->parent() == nullptr) return dictionary_;
  // A part of a larger buffer must not keep all of that alive.
  auto owned = std::make_shared<Dictionary>(*dictionary_);
  ARROW_ASSIGN_OR_RAISE(owned->page, dictionary_->page->CopySlice(0, dictionary_->page->size()));
  return owned;
}

}  // namespace grebe::pq

// A chunk's dictionary, decoded only as far as its entries are asked for. For this room only.
//
// One row needs one entry, and decompressing a dictionary of 1 MiB is most of what a lookup with
// cold caches costs. So the first time, only the front up to the highest index wanted is decoded;
// the page as it is stored is kept (also in the cache), and a second need for more decodes all.
#pragma once

#include <arrow/buffer.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "base/status.h"
#include "parquet/leaf_slice.h"
#include "parquet/page_bytes.h"

namespace grebe::pq {

// Immutable.
struct Dictionary {
  int64_t count = 0;                     // entries, as the header says
  int64_t ready = 0;                     // entries [0, ready) are decoded
  int32_t width = 0;                     // bytes a value; 0: byte arrays
  std::shared_ptr<arrow::Buffer> bytes;  // PLAIN values; null while ready is 0
  std::vector<uint32_t> offsets;         // byte arrays: where each one's length prefix stands
  std::shared_ptr<arrow::Buffer> page;   // the page as stored; null once all are ready

  int64_t memory_bytes() const {
    return 256 + (bytes != nullptr ? bytes->size() : 0) + (page != nullptr ? page->size() : 0) +
           static_cast<int64_t>(offsets.capacity() * sizeof(uint32_t));
  }
};

// Threads: one at a time; several readers may share a Dictionary.
class DictionaryReader {
 public:
  DictionaryReader() = default;

  // The chunk's dictionary, from the cache or as it was read from the file. Errors: Corrupt,
  // Unsupported, LimitExceeded.
  Status OpenCached(std::shared_ptr<const Dictionary> dictionary, const LeafShape& shape,
                    const PageBytes::Options& options);
  Status OpenPage(std::shared_ptr<arrow::Buffer> page, const LeafShape& shape,
                  const PageBytes::Options& options);

  bool present() const { return dictionary_ != nullptr; }
  int64_t count() const { return dictionary_->count; }

  // The dictionary with entry `index` ready. REQUIRES: present() and index < count(). Errors:
  // Corrupt (the page is damaged or has fewer entries than it says).
  Result<const Dictionary*> Get(uint32_t index) {
    if (index < dictionary_->ready) return dictionary_.get();
    ARROW_RETURN_NOT_OK(Decode(index));
    return dictionary_.get();
  }

  // What the cache should hold now: null when it has it already. Owns all its bytes.
  Result<std::shared_ptr<const Dictionary>> TakeForCache();

 private:
  Status Decode(uint32_t index);
  Status IndexByteArrays(PageBytes* page, int64_t index, Dictionary* out) const;

  std::shared_ptr<const Dictionary> dictionary_;
  LeafShape shape_;
  PageBytes::Options options_;
  bool changed_ = false;
};

}  // namespace grebe::pq

// The values of one data page, front to back: some are skipped, some are taken into a slice.
//
// PLAIN, dictionary, BYTE_STREAM_SPLIT and RLE boolean pages are walked here, touching only what
// a position costs; the DELTA encodings go through libparquet's decoders, which decode what they
// skip. Nothing is believed: positions, lengths and indexes are checked before they are used.
#pragma once

#include <parquet/schema.h>

#include <cstdint>
#include <memory>

#include "base/status.h"
#include "parquet/decode_cache.h"
#include "parquet/dictionary.h"
#include "parquet/leaf_slice.h"
#include "parquet/library_decoder.h"
#include "parquet/page_bytes.h"
#include "parquet/run_reader.h"

namespace grebe::pq {

class ValueReader {
 public:
  struct Source {
    PageBytes* page = nullptr;
    int64_t begin_bytes = 0;                 // where the values begin in the page
    int64_t value_count_max = 0;             // the page's levels: it has no more values
    const CachedPage* cached = nullptr;      // where the page comes from the cache
    DictionaryReader* dictionary = nullptr;  // not present(): the chunk has none
    const ::parquet::ColumnDescriptor* descriptor = nullptr;
    LeafShape shape;
    const ReadLimits* limits = nullptr;
    arrow::MemoryPool* pool = nullptr;
  };

  // The page must outlive the reader. Errors: Corrupt, Unsupported (an encoding that does not
  // exist, or not for this type).
  Status Open(const Source& source);

  // Errors: Corrupt when the page has fewer values, or damaged ones. The reader must not be used
  // after an error.
  Status Skip(int64_t count);
  Status Take(int64_t count, LeafSlice* out);

 private:
  enum class Kind { kFixed, kBits, kByteArrays, kDictionary, kSplit, kRuns, kLibrary };

  Status OpenDictionary();
  Status OpenRuns();
  Status OpenSplit();
  Status OpenLibrary();
  Status TakeFixed(int64_t count, LeafSlice* out);
  Status TakeBits(int64_t count, LeafSlice* out);
  Status SkipByteArrays(int64_t count);
  Status TakeByteArrays(int64_t count, LeafSlice* out);
  Status TakeDictionary(int64_t count, LeafSlice* out);
  Status TakeEntries(std::span<const uint32_t> indexes, LeafSlice* out);
  Status TakeSplit(int64_t count, LeafSlice* out);
  Status TakeRuns(int64_t count, LeafSlice* out);
  int64_t size_bytes() const { return source_.page->size_bytes() - source_.begin_bytes; }

  Kind kind_ = Kind::kFixed;
  Source source_;
  int64_t position_ = 0;   // values before the cursor (not kDictionary, kRuns, kLibrary)
  int64_t at_bytes_ = 0;   // the cursor in the page (kByteArrays)
  int64_t count_ = 0;      // values in the page (kFixed, kBits, kSplit)
  RunReader runs_;         // kDictionary, kRuns
  std::unique_ptr<LibraryDecoder> library_;
};

}  // namespace grebe::pq

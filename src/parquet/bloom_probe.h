// A column chunk's Bloom filter (split blocks, XXH64): whether the chunk may hold a value.
// A filter that does not fit the file (its bytes reach into something else, its header and the
// footer disagree on its size) is not used. Threads: immutable, safe.
#pragma once

#include <arrow/scalar.h>

#include <memory>
#include <optional>
#include <vector>

#include "base/status.h"
#include "base/types.h"
#include "parquet/footer.h"
#include "parquet/leaf_bounds.h"
#include "store/store.h"

namespace grebe::pq {

class BloomProbe {
 public:
  // Where the filter lies; as far as the footer says, so perhaps only its begin. nullopt: the chunk
  // has none that could be used.
  static std::optional<ByteRange> RangeOf(const Footer& footer, ChunkId chunk);

  // null: no filter that can be used. Cost: one range read, and a second one for a filter whose
  // size the footer does not say. Errors: the store's.
  static Result<std::shared_ptr<const BloomProbe>> Read(store::Store& store, const Footer& footer,
                                                        ChunkId chunk);
  ~BloomProbe();

  // False: surely not in the chunk. value: of the leaf's ComparableType; a value whose stored form
  // is not known may always be there.
  bool MayHold(const arrow::Scalar& value) const;

 private:
  BloomProbe();
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace grebe::pq

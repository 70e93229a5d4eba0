// The page maps of a view's files: their bytes (by fragment, or by file where a fragment's are too
// large to load whole) within a budget, and the opened maps. Private to this room. Threads: safe.
#pragma once

#include <arrow/buffer.h>

#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "base/status.h"
#include "index/opened_fragment.h"
#include "parquet/page_map.h"

namespace grebe::index {

class PageMapShelf {
 public:
  // A live file of the view: where it is among the fragments.
  struct Origin {
    uint32_t fragment = 0;
    uint32_t file = 0;
  };

  // The fragments must outlive the shelf. origins: one per view file.
  PageMapShelf(const std::vector<OpenedFragment>& fragments, std::vector<Origin> origins,
               const ViewOptions& options);

  // What is loaded together: all maps of a fragment, or the map of one file.
  using Unit = uint32_t;
  bool loads_whole(uint32_t fragment) const { return by_fragment_[fragment]; }
  Unit unit_of_fragment(uint32_t fragment) const { return fragment; }
  Unit unit_of_file(uint32_t view_file) const;
  // The range to read for a unit: in its fragment's object.
  store::ReadRequest request(Unit unit) const;

  // True when the unit's bytes are there (or it has none); it then counts as just used.
  bool Touch(Unit unit);
  void Put(Unit unit, std::shared_ptr<arrow::Buffer> bytes);

  // The opened map; null when its bytes are not there. Errors: Corrupt.
  Result<std::shared_ptr<const pq::PageMap>> Get(uint32_t view_file);
  // The same from the bytes of its unit, whether they are still kept or not.
  Result<std::shared_ptr<const pq::PageMap>> Open(uint32_t view_file,
                                                  const std::shared_ptr<arrow::Buffer>& bytes);

 private:
  struct Slot {
    std::shared_ptr<arrow::Buffer> bytes;
    bool pinned = false;                    // in memory anyway: never makes room
    std::list<Unit>::iterator use;          // valid when bytes are there and not pinned
    std::vector<uint32_t> opened;           // view files whose maps were opened from it
  };
  ByteRange range(Unit unit) const;
  void Drop(Unit unit);

  const std::vector<OpenedFragment>& fragments_;
  const std::vector<Origin> origins_;
  std::vector<bool> by_fragment_;
  const int64_t bytes_max_;
  std::mutex mutex_;
  int64_t bytes_ = 0;
  std::list<Unit> by_use_;                  // most recent first
  std::vector<Slot> slots_;                 // fragments, then view files
  std::vector<std::shared_ptr<const pq::PageMap>> maps_;   // per view file
};

}  // namespace grebe::index

// A data file while it is scanned: what is known of it, and where its pages lie.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "parquet/footer.h"
#include "parquet/leaf_bounds.h"
#include "parquet/page_map.h"
#include "parquet/row_decode.h"
#include "scan/file_stats.h"
#include "store/store.h"

namespace grebe::scan {

// What an index keeps of a data file, so that neither its footer nor its page index is read.
struct KnownFile {
  FileStats stats;
  std::function<Result<std::shared_ptr<const pq::PageMap>>()> page_map;
};

struct ScanFile {
  std::string path;                                // relative to the table
  std::shared_ptr<const store::Object> object;
  uint64_t file_key = 0;
  const KnownFile* known = nullptr;
  std::shared_ptr<const pq::Schema> schema;        // null: not needed, or the file is bad
  std::shared_ptr<const pq::Footer> footer;        // null: not read, or let go again
  std::shared_ptr<const pq::PageMap> map;          // of a known file
  struct Group {
    int64_t rows = 0;
    std::vector<pq::Bounds> bounds;                // per column of the predicate
  };
  std::vector<Group> groups;
  std::vector<int> leaves;                         // per column of the predicate; -1: not a leaf
  std::map<pq::ChunkId, pq::ChunkPages> pages;     // found ones
  std::string layout;                              // FileStats::layout
  bool bad = false;                                // and skipped

  // The scan is through with the file.
  void LetGo() {
    footer.reset();
    map.reset();
    pages.clear();
    groups.clear();
  }

  int64_t ChunkBytes(int group, int leaf) const {
    if (footer != nullptr) return footer->chunk_range(group, leaf).size_bytes();
    if (known == nullptr) return 0;
    return known->stats.row_groups[static_cast<size_t>(group)]
        .leaves[static_cast<size_t>(leaf)].bytes;
  }
  // Data pages of the chunk; -1: not known yet.
  int64_t PageCount(pq::ChunkId chunk) const {
    if (map != nullptr) return map->chunk(chunk.row_group, chunk.leaf).page_count;
    const auto found = pages.find(chunk);
    return found == pages.end() ? -1 : static_cast<int64_t>(found->second.pages.size());
  }
};

}  // namespace grebe::scan

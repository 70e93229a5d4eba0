// One version of an index, opened for reading: probes all fragments in one wave.
// Threads: safe.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "index/fragment.h"
#include "index/manifest.h"
#include "parquet/page_map.h"
#include "parquet/file_schema.h"
#include "store/store.h"

namespace grebe::index {

struct ViewOptions {
  // Fragment blocks and page maps kept in memory (remote stores; local fragments are mapped).
  int64_t block_cache_bytes_max = 256 << 20;
  // Page maps of a fragment are loaded whole, in the probe's wave, up to this size; beyond it only
  // the maps of the files found, in a wave of their own.
  int64_t page_maps_eager_bytes_max = 64 << 20;
};

// A data file as the view knows it, over all fragments.
struct ViewFile {
  std::shared_ptr<const store::Object> object;     // path within the table's store, pinned
  std::string path;                                // relative to the table
  uint64_t file_key = 0;                           // unique per (path, identity): DecodeCache's key
  int64_t row_count = 0;
  std::shared_ptr<const pq::Schema> schema;        // one object per distinct schema of the view
};

struct FoundRun {
  uint32_t file = 0;          // ordinal among IndexView::files
  RowIndex first_row;
  int64_t row_count = 0;
};

struct ProbeCounters {
  int64_t waves = 0, requests = 0, bytes_read = 0;
  int64_t fragments_probed = 0, postings = 0, block_cache_hits = 0;
};

struct FoundRows {
  std::vector<FoundRun> runs;        // sorted by (file path, row); whole answer of one key
  bool exact = true;                 // false: compare the rows' keys
  // Covering values, when asked for: one row per row of the runs, in their order (so run 0's rows
  // first). Null when not asked for, or when there are no rows.
  std::shared_ptr<arrow::RecordBatch> covering;
};

class IndexView {
 public:
  // table: where data files are; index_folder: where the index is. Cost: one wave (the heads of
  // all fragments). Local fragments are mapped, no wave.
  static Result<std::shared_ptr<IndexView>> Open(const store::Location& table,
                                                 const store::Location& index_folder,
                                                 Manifest manifest, const ViewOptions& options);
  virtual ~IndexView() = default;

  virtual const Manifest& manifest() const = 0;
  virtual const std::vector<ViewFile>& files() const = 0;   // live files only, sorted by path

  // Finds many keys. found[i] answers key i. Cost: no wave when blocks and page maps are cached or
  // mapped, else exactly one; at most one range read per (fragment, key) plus one per fragment
  // for page maps.
  struct FindOptions {
    bool covering = false;
    bool page_maps = true;   // false (count): do not load page maps
  };
  virtual Result<std::vector<FoundRows>> Find(const key::EncodedKeys& keys,
                                              const FindOptions& options,
                                              ProbeCounters* counters) = 0;

  // The page map of a file (loaded by Find). Errors: Corrupt.
  virtual Result<std::shared_ptr<const pq::PageMap>> page_map(uint32_t file) = 0;
};

}  // namespace grebe::index

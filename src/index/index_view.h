// One version of an index, opened for reading: probes all fragments in one wave.
// docs/format/index.md tells the waves of a lookup. Threads: safe.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "index/fragment.h"
#include "index/manifest.h"
#include "key/ordered.h"
#include "parquet/file_schema.h"
#include "parquet/page_map.h"
#include "store/store.h"

namespace grebe::index {

class BlockCache;

struct ViewOptions {
  // Fragment blocks kept in memory (remote stores; local fragments are mapped). Raise it when
  // lookups that come back to the same keys' blocks read them again.
  int64_t block_cache_bytes_max = 256 << 20;
  // Page maps of a fragment are loaded whole, in the probe's wave, up to this size; beyond it only
  // the maps of the files found, in a wave of their own.
  int64_t page_maps_eager_bytes_max = 64 << 20;
  // Page maps kept in memory. Raise it when one lookup's files need more.
  int64_t page_map_bytes_max = 256 << 20;
  // A remote fragment of at most this size is read whole when the view opens, in the same request
  // as its head: probing it then needs no wave. 0: never.
  int64_t whole_fragment_bytes_max = 64 << 10;
  // Filters over many fragments in memory (built by the lookups themselves, little by little),
  // so that one with 1,000 fragments probes few. 0: none.
  int64_t filter_bytes_max = 64 << 20;
  // Shared by several views (versions of one index, several indexes); null: one of its own.
  std::shared_ptr<BlockCache> block_cache;
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

// What a Find did; it adds to them. All zero but fragments_probed and postings when everything was
// in memory.
struct ProbeCounters {
  int64_t waves = 0, requests = 0, bytes_read = 0;
  int64_t fragments_probed = 0;    // looked into; not those that surely lack the keys
  int64_t postings = 0;            // runs found, of live files
  int64_t block_cache_hits = 0;    // ranges that a request would otherwise have been needed for
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
  // all fragments). Local fragments are mapped, no wave. Errors: Corrupt (a fragment that is not
  // the one the manifest means, a file in two fragments), NotFound (a fragment that a newer
  // version no longer needs was removed: read the manifest again), the store's.
  static Result<std::shared_ptr<IndexView>> Open(const store::Location& table,
                                                 const store::Location& index_folder,
                                                 Manifest manifest, const ViewOptions& options);
  virtual ~IndexView() = default;

  virtual const Manifest& manifest() const = 0;
  virtual const std::vector<ViewFile>& files() const = 0;   // live files only, sorted by path

  // Finds many keys. found[i] answers key i; equal keys get equal answers. Cost: no wave when
  // blocks and page maps are cached or mapped, else exactly one; at most one range read per
  // (fragment, key) plus one per fragment for page maps (two with covering), equal ranges once.
  // One wave more when a fragment's page maps exceed page_maps_eager_bytes_max: one range read
  // per found file. counters may be null. Errors: Corrupt, InvalidArgument (keys of the wrong
  // form), NotFound (as Open), the store's; never part of an answer.
  struct FindOptions {
    bool covering = false;
    bool page_maps = true;   // false (count): do not load page maps
  };
  virtual Result<std::vector<FoundRows>> Find(const key::EncodedKeys& keys,
                                              const FindOptions& options,
                                              ProbeCounters* counters) = 0;

  // Finds the rows of a range of keys, in key order, then by (file path, row); skips `offset` of
  // them and stops after `limit` (negative: none). Cost in memory: none. Remote: one wave for the
  // fences of the range (and the page maps, as Find), then waves of the blocks that hold the rows
  // up to the limit, each of at most kRangeWaveBytes; adjacent blocks are one request. Errors: as
  // Find; InvalidArgument when the index is not sorted.
  struct RangeOptions {
    int64_t offset = 0;
    int64_t limit = -1;
    bool page_maps = true;
  };
  static constexpr int64_t kRangeWaveBytes = 16 << 20;
  virtual Result<std::vector<FoundRun>> FindRange(const key::OrderedRange& range,
                                                  const RangeOptions& options,
                                                  ProbeCounters* counters) = 0;
  // How many rows a range has. Reads only the blocks at its two ends where no file of a fragment
  // has vanished.
  virtual Result<int64_t> CountRange(const key::OrderedRange& range, ProbeCounters* counters) = 0;

  // The page map of a file, loaded by the Find that found it. Costs a range read when it was not,
  // or when it had to make room meanwhile. Errors: Corrupt, as Find.
  virtual Result<std::shared_ptr<const pq::PageMap>> page_map(uint32_t file) = 0;
};

}  // namespace grebe::index

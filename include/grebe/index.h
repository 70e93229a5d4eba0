// Building and keeping indexes: an index maps the keys of a table's rows to files and rows.
//
// A table is a folder of Parquet files (plain, or Hive partitions such as day=2026-01-01/).
// Nothing in the table's data files is ever changed. An index lives in <table>/_index/<name>/, or
// <index_root>/<name>/. Every call that writes publishes one new version atomically: readers of
// the old one go on, a killed writer leaves at most orphans, of two writers one gets Conflict
// after bounded retries.
//
// Errors of all calls: InvalidArgument, NotFound, Corrupt, Unsupported (a Delta or Iceberg table,
// an encrypted file), Transient, Permission, LimitExceeded, Cancelled. Threads: safe.
#pragma once

#include <arrow/result.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "grebe/connect.h"
#include "grebe/stop.h"

namespace grebe {

// Which index of which table.
struct IndexRef {
  std::string table_uri;
  // Default: the key columns joined by '+', or the only index there is.
  std::string name;
  std::string index_root;        // default: <table>/_index
  ConnectOptions connect;
};

struct BuildProgress {
  int64_t files_done = 0, files_total = 0;
  int64_t rows = 0;
  int64_t bytes_done = 0, bytes_total = 0;   // of data files
};
// Called from any thread, one call at a time.
using ProgressCallback = std::function<void(const BuildProgress&)>;

struct BuildOptions {
  int64_t memory_bytes_max = 256 << 20;   // of the builder's buffers; beyond it spills to disk
  std::string spill_folder;               // default: the system's temporary folder
  int threads = 0;                        // 0: one per core
  // Leave out files that cannot be read instead of failing; they are listed in the summary.
  bool skip_bad_files = false;
  const StopToken* stop = nullptr;
  ProgressCallback progress;
};

struct CreateOptions {
  std::vector<std::string> key;           // dotted paths of primitive columns, or partition columns
  std::vector<std::string> covering;      // columns whose values the index keeps
  bool sorted = false;                    // also keep the keys in order: Index::GetRange
  BuildOptions build;
};

struct SkippedFile {
  std::string path;
  std::string reason;
};

// What a call that writes did.
struct BuildSummary {
  std::string name;
  int64_t version = 0;               // the version published (or found, when nothing changed)
  bool changed = false;
  int64_t files_added = 0, files_removed = 0;
  int64_t rows_added = 0;
  int64_t index_bytes_written = 0;
  int64_t fragments_merged = 0;
  std::vector<SkippedFile> skipped;
};

// Builds a new index of the table's present files. One pass over the key columns (and covering
// ones). Errors: InvalidArgument when an index of that name exists.
arrow::Result<BuildSummary> CreateIndex(const IndexRef& ref, const CreateOptions& options);

// Brings an index up to date: new and replaced files are indexed, vanished ones dropped. Without
// changes nothing is written.
arrow::Result<BuildSummary> RefreshIndex(const IndexRef& ref, const BuildOptions& options = {});

// Merges fragments in size tiers (four or more of a tier become one), dropping vanished files'
// entries. Reads fragments only. `all`: merge everything into one fragment.
arrow::Result<BuildSummary> CompactIndex(const IndexRef& ref, const BuildOptions& options = {},
                                         bool all = false);

// Removes the index. Errors: NotFound.
arrow::Status DropIndex(const IndexRef& ref);

struct IndexFragmentDescription {
  std::string path;
  int64_t size_bytes = 0;
  int64_t rows = 0, keys = 0, files = 0;
};

struct IndexDescription {
  std::string name;
  int64_t version = 0;
  std::vector<std::string> key;           // "user_id int"
  std::vector<std::string> covering;
  bool sorted = false;
  std::string table_uri, table_kind, created_at, writer;
  int64_t files = 0;                      // live data files
  int64_t rows = 0;                       // of live data files
  int64_t keys = 0;                       // the sum over fragments, vanished files' keys too
  int64_t index_bytes = 0;
  double bytes_per_row = 0;
  std::vector<IndexFragmentDescription> fragments;
  std::vector<SkippedFile> skipped;
  std::string ToJson() const;
};

// The indexes of a table (ref.name is ignored), by name.
arrow::Result<std::vector<IndexDescription>> ListIndexes(const IndexRef& ref);
arrow::Result<IndexDescription> ShowIndex(const IndexRef& ref);

struct VerifyReport {
  int64_t files_checked = 0, fragments_checked = 0;
  std::vector<std::string> stale_files;       // changed since they were indexed
  std::vector<std::string> missing_files;     // indexed, but gone
  std::vector<std::string> unindexed_files;   // there, but not indexed
  std::vector<std::string> corrupt;           // fragment: what is wrong
  std::vector<std::string> orphans;           // index objects that no version refers to
  int64_t orphans_removed = 0;
  bool ok() const { return stale_files.empty() && missing_files.empty() && corrupt.empty(); }
  std::string ToJson() const;
};

struct VerifyOptions {
  bool clean = false;                   // remove orphans
  int64_t orphan_age_seconds = 3600;    // younger ones may belong to a build under way: kept
};

// Checks the identity of every data file and the checksums of every fragment, and looks for
// orphans. Costs one listing of the table and a read of the whole index, none of the data.
arrow::Result<VerifyReport> VerifyIndex(const IndexRef& ref, const VerifyOptions& options = {});

}  // namespace grebe

// Indexing data files into one fragment: the one place where data is read to build an index.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "grebe/index.h"
#include "index/fragment.h"
#include "index/manifest.h"
#include "key/key.h"
#include "scan/stats_object.h"
#include "store/store.h"
#include "table/snapshot.h"

namespace grebe::engine {

// What every build of one index has in common.
struct IndexSpec {
  std::vector<std::string> key;
  std::vector<key::KeyType> key_types;               // empty: taken from the files
  std::vector<std::string> covering;
  bool sorted = false;
  std::shared_ptr<arrow::Schema> covering_schema;    // null: taken from the files, if any
};

// The spec of an index that exists. Errors: Corrupt.
Result<IndexSpec> SpecOf(const index::Manifest& manifest);

// How fragments of an index are built and merged.
index::FragmentOptions FragmentOptionsOf(const IndexSpec& spec, const BuildOptions& options);

struct BuiltFile {
  std::string path;
  int64_t row_count = 0;   // rows of it that the fragment holds
  bool bad = false;        // begun, then found bad and skipped
};

// Removes a fragment that no version names, and the statistics beside it.
Status DeleteFragment(const store::Location& index_folder, const std::string& path);

struct BuiltFragment {
  std::optional<index::FragmentInfo> info;   // nullopt: no file could be indexed
  std::vector<BuiltFile> files;              // by file ordinal
  std::vector<scan::StatsEntry> stats;       // of its files
  std::vector<index::Manifest::SkippedFile> skipped;
  int64_t row_count = 0;
};

// Indexes the files (paths relative to root) into a new fragment object under index_folder. One
// pass over key and covering columns, files in parallel. Sets the spec's unset types. The fragment
// is an orphan until a manifest names it. Errors: as CreateIndex; names the file.
Result<BuiltFragment> BuildFragment(const store::Location& root,
                                    const std::vector<store::Object>& files,
                                    const table::PartitionScheme& partitions,
                                    const store::Location& index_folder,
                                    const BuildOptions& options, IndexSpec* spec);

}  // namespace grebe::engine

// Where a table and its indexes are: URIs resolved to places in stores.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "grebe/connect.h"
#include "grebe/index.h"
#include "index/fragment.h"
#include "index/manifest.h"
#include "store/store.h"

namespace grebe::engine {

struct TableContext {
  store::Location table;         // as the caller named it
  store::Location index_root;    // holds one folder per index
};

store::StoreOptions ToStoreOptions(const ConnectOptions& options);

// Resolves a table and its index root. A table that is one file has its indexes in
// <folder>/_index/<file name>/. Makes no request, but for a local path that ends like a file.
Result<TableContext> ResolveTable(const IndexRef& ref);

// The name an index has by default: the key columns joined by '+', as one path component.
std::string DefaultIndexName(const std::vector<std::string>& key);

// Errors: InvalidArgument for names that are no single path component ('/', leading '.', empty).
Status CheckIndexName(const std::string& name);

store::Location IndexFolder(const TableContext& context, const std::string& name);

// The names of the index folders there are. Cost: one listing.
Result<std::vector<std::string>> ListIndexNames(const TableContext& context);

// The folder that the paths of data files are relative to.
store::Location DataRoot(const TableContext& context, const index::Manifest& manifest);

// A fragment's head. Cost: one range read.
Result<std::shared_ptr<const index::Fragment>> OpenFragment(const store::Location& index_folder,
                                                            const index::FragmentInfo& info);

// An index found: its name and newest manifest.
struct FoundIndex {
  std::string name;
  index::Manifest manifest;
};

// Finds the index: by name; else the one of exactly these key columns (in any order); else, for
// ranges, the sorted one whose first key columns these are; else, without columns, the only one.
// Errors: NotFound, naming the indexes there are.
Result<FoundIndex> FindIndex(const TableContext& context, const std::string& name,
                             const std::vector<std::string>& key, bool ranges = false);

}  // namespace grebe::engine

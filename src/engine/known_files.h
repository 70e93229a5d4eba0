// What a table's indexes keep of its files: statistics beside each fragment, for scans.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "engine/table_context.h"
#include "index/index_view.h"
#include "scan/scan_file.h"
#include "scan/stats_object.h"
#include "table/snapshot.h"

namespace grebe::engine {

// The statistics of a fragment's files: one object beside it. Errors: the store's.
Status WriteStats(const store::Location& index_folder, const std::string& fragment_path,
                  const std::vector<scan::StatsEntry>& entries);

// Those of some fragments, as far as there are any. One wave. A damaged object is left out, and
// added to *damaged (its path) when that is not null. Errors: the store's.
Result<std::vector<scan::StatsEntry>> ReadStats(const store::Location& index_folder,
                                                const std::vector<std::string>& fragment_paths,
                                                std::vector<std::string>* damaged);

class KnownFiles {
 public:
  // Looks through the table's indexes until every file of the snapshot is known or none is left.
  // An index that cannot be read is no error: its files are just not known.
  static std::shared_ptr<KnownFiles> Load(const TableContext& context,
                                          const table::Snapshot& snapshot);
  // null: not known.
  const scan::KnownFile* Find(const store::Object& file) const;

 private:
  using FileId = std::pair<std::string, std::string>;   // path, tag and size
  static FileId IdOf(const std::string& path, const store::Identity& identity);
  Status LoadIndex(const TableContext& context, const std::string& name,
                   const std::set<FileId>& wanted);

  std::map<FileId, scan::KnownFile> files_;
};

}  // namespace grebe::engine

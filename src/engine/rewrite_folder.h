// The folder that a rewrite fills: what makes it resumable, and whole or not there.
//
//   <to>/_grebe_rewrite/plan.json           what is being made; created first, removed last
//   <to>/_grebe_rewrite/done/<name>.json    one per finished file: its final path, size, rows
//   <to>/_grebe_rewrite/data/<name>         finished files, until they get their final names
//
// On a store that cannot rename, finished files have their final names from the start, and engines
// must look for _grebe_rewrite to know that more will come.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/status.h"
#include "store/store.h"

namespace grebe::engine {

// A finished file. name: unique among the rewrite's files, the same in every run of it.
struct RewrittenFile {
  std::string name;
  std::string path;          // final, relative to the folder
  int64_t row_count = 0;
  store::Identity identity;
  // Of the source files that could not be read and were left out: a checksum of their paths.
  std::string left_out;
};

class RewriteFolder {
 public:
  // Takes up the folder: empty, or with an unfinished rewrite of the same plan (a text that says
  // what is read and how it is laid out). What a killed run left half-written is removed.
  // Errors: InvalidArgument when it holds anything else.
  static Result<std::unique_ptr<RewriteFolder>> Open(const store::Location& to,
                                                     const std::string& plan);

  bool IsFinished(const std::string& name) const;
  // Of earlier runs and this one.
  std::vector<RewrittenFile> files() const;

  // Begins the file where it lies until all are finished. Threads: safe.
  Result<std::unique_ptr<store::Upload>> Begin(const RewrittenFile& file);
  // Notes a file whose upload is finished. Threads: safe.
  Status Finished(const RewrittenFile& file);
  // Gives all files their final names. Run again after a kill it does the rest.
  Status NameFiles();
  // The rewrite is over: the marks that it is not are removed.
  Status Close();
  // If nothing was finished: as if it had never begun.
  Status RemoveIfEmpty();

 private:
  RewriteFolder(const store::Location& to) : to_(to) {}
  std::string Inside(const std::string& path) const;
  std::string DataPath(const RewrittenFile& file) const;
  Status ReadFinished(const std::vector<store::Object>& listed);

  const store::Location to_;
  std::atomic<bool> file_begun_{false};
  mutable std::mutex mutex_;
  std::map<std::string, RewrittenFile> files_;
};

// Fails with InvalidArgument when the folder written to is the table's, lies in it, or holds it.
Status CheckApart(const store::Location& table, const store::Location& to);

}  // namespace grebe::engine

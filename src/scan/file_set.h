// The files of a scan: which may match, their footers and the bounds of their row groups.
// For src/scan only.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "scan/ahead_store.h"
#include "scan/scan_file.h"
#include "scan/scanner.h"
#include "table/row_shape.h"
#include "table/snapshot.h"

namespace grebe::scan {

// Whether the error is of one file, so that skip_bad_files may go on without it.
bool IsBadFile(const Status& status);

class FileSet {
 public:
  FileSet(const table::Snapshot& snapshot, const ScannerOptions& options, AheadStore* store,
          ScanCost* cost)
      : snapshot_(snapshot), options_(options), store_(store), cost_(cost) {}

  // Opens the files that partition values do not rule out, resolves the columns of all, and binds
  // the predicate.
  Status Open();

  std::vector<ScanFile>& files() { return files_; }   // those that were opened
  const std::shared_ptr<const table::RowShape>& shape() const { return shape_; }
  const std::shared_ptr<const table::RowShape>& filter_shape() const { return filter_shape_; }
  const std::shared_ptr<const BoundPredicate>& predicate() const { return predicate_; }

  // Of the files' row groups, in order: which may hold wanted rows, and which only such.
  struct Candidate {
    size_t file = 0;
    int group = 0;
    bool all_rows = false;
  };
  Result<std::vector<Candidate>> JudgeRowGroups();

  // Reads the footers again that were let go, of those files that need one. One wave.
  Status EnsureFooters(const std::vector<size_t>& files);

  // The error, or OK where bad files are skipped: then the file is marked.
  Status OnBadFile(const ScanFile& file, const Status& status);
  const std::vector<Scanner::BadFile>& bad_files() const { return bad_files_; }

 private:
  Status ChooseFiles();
  Status OpenFiles(size_t begin, size_t end);
  Status OpenFile(ScanFile* file);
  Status ReadFooters(const std::vector<ScanFile*>& files);
  Status ResolveColumns();
  void ResolveBounds(ScanFile* file);
  Result<std::vector<PredicateColumn>> PartitionColumns() const;
  std::shared_ptr<const pq::Schema> Shared(std::shared_ptr<const pq::Schema> schema);
  table::RowShape::Schemas Schemas() const;

  const table::Snapshot& snapshot_;
  const ScannerOptions& options_;
  AheadStore* store_;
  ScanCost* cost_;
  std::vector<ScanFile> files_;
  std::vector<size_t> left_out_;       // of the snapshot, by partition values
  std::unordered_map<std::string, std::shared_ptr<const pq::Schema>> schemas_;
  std::shared_ptr<const table::RowShape> shape_, filter_shape_;
  std::shared_ptr<const BoundPredicate> predicate_;
  std::vector<Scanner::BadFile> bad_files_;
};

}  // namespace grebe::scan

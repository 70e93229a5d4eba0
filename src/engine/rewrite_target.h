// The files that a rewrite of one group makes: cogrouped, encoded, uploaded, noted as finished, and
// indexed on the way.
#pragma once

#include <arrow/type.h>
#include <arrow/util/key_value_metadata.h>

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/status.h"
#include "engine/build.h"
#include "engine/rewrite_folder.h"
#include "index/fragment.h"
#include "key/key.h"
#include "layout/rewrite_job.h"
#include "parquet/write_file.h"

namespace grebe::engine {

// Collects the keys of new files and adds them to one fragment. Threads: safe.
class RewriteIndex {
 public:
  static Result<std::unique_ptr<RewriteIndex>> Make(const std::vector<std::string>& key,
                                                    const arrow::Schema& schema,
                                                    const index::FragmentOptions& options);

  // The keys of some rows, in the form the index wants them.
  Result<key::EncodedKeys> Encode(const arrow::Table& rows) const;
  // A finished file with the keys of all its rows, in order.
  Status AddFile(const RewrittenFile& file, const pq::WrittenFile& written,
                 const std::vector<key::EncodedKeys>& keys);

  const IndexSpec& spec() const { return spec_; }
  // Writes the fragment, and its files' statistics, under index_folder.
  Result<BuiltFragment> Finish(const store::Location& index_folder);

 private:
  IndexSpec spec_;
  std::unique_ptr<key::KeyCodec> codec_;
  std::unique_ptr<index::FragmentBuilder> builder_;
  std::mutex mutex_;
  BuiltFragment built_;
};

// What all files of a rewrite have in common.
struct RewriteFileOptions {
  std::shared_ptr<arrow::Schema> rows_schema;     // as rows come: plain, not cogrouped
  std::shared_ptr<arrow::Schema> file_schema;     // as the file gets it, with dictionaries
  std::shared_ptr<const arrow::KeyValueMetadata> key_values;
  std::string cogroup;                            // key column, or empty
  bool pages_aligned = false;
  bool page_per_key = false;
  layout::RowOrder::Request order;
  pq::WriteOptions write;
};

class GroupTarget final : public layout::RewriteTarget {
 public:
  // group: its number among the rewrite's. path_prefix: "" or "day=2026-01-01/"; name_mark: part of
  // every file's name. left_out: as RewrittenFile has it, once all files are read. index may be
  // null.
  GroupTarget(RewriteFolder* folder, int group, std::string path_prefix, std::string name_mark,
              const RewriteFileOptions& options, std::function<std::string()> left_out,
              RewriteIndex* index)
      : folder_(folder), group_(group), path_prefix_(std::move(path_prefix)),
        name_mark_(std::move(name_mark)), options_(options), find_left_out_(std::move(left_out)),
        index_(index) {}

  bool IsFinished(int file) const override { return folder_->IsFinished(NameOf(file)); }
  // Errors: InvalidArgument when an earlier run left out other source files: its files and those
  // to come would not be one table.
  Status BeginWriting() override;
  Result<std::unique_ptr<layout::TargetFile>> Create(int file, uint32_t section) override;

 private:
  std::string NameOf(int file) const;
  std::string PathOf(int file, uint32_t section) const;

  RewriteFolder* folder_;
  const int group_;
  const std::string path_prefix_;
  const std::string name_mark_;
  const RewriteFileOptions& options_;
  const std::function<std::string()> find_left_out_;
  std::string left_out_;
  RewriteIndex* index_;
};

// The value of the key-value pair `grebe.layout` of a file: what its rows are laid out by, and for
// a bucket which one (null for the rows whose value is null). docs/format/layout.md.
std::string LayoutMetadata(const layout::RowOrder::Request& order, uint32_t section);
constexpr const char* kLayoutKey = "grebe.layout";

}  // namespace grebe::engine

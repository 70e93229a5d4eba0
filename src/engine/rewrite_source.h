// The rows of some data files of a table as a rewrite reads them: one schema, partition values as
// columns where asked for, lists taken apart.
#pragma once

#include <arrow/util/key_value_metadata.h>

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "base/stop.h"
#include "layout/rewrite_job.h"
#include "parquet/footer.h"
#include "store/store.h"
#include "table/row_shape.h"
#include "table/snapshot.h"

namespace grebe::engine {

struct RewriteSourceOptions {
  std::string ungroup;          // a list-of-structs column to take apart; empty: none
  int threads = 1;
  int64_t held_bytes_max = 64 << 20;   // of column chunks, per file being read
  const StopToken* stop = nullptr;
  size_t footers_kept_max = 1024;   // more files than this have their footers read again
  std::function<bool(const std::string& path, const Status&)> skip_file;   // unset: never
};

class RewriteSource final : public layout::RowSource {
 public:
  // partitions: the partition columns that are to be columns of the rows. Reads all footers.
  // Errors: InvalidArgument (types that cannot be reconciled), those of reading.
  static Result<std::unique_ptr<RewriteSource>> Make(const store::Location& root,
                                                     std::vector<store::Object> files,
                                                     table::PartitionScheme partitions,
                                                     const RewriteSourceOptions& options);

  // Of the rows as they are read: without dictionaries.
  const std::shared_ptr<arrow::Schema>& schema() const override { return plain_schema_; }
  // The same with the dictionaries that the files' Arrow schema names.
  const std::shared_ptr<arrow::Schema>& full_schema() const { return full_schema_; }
  // Of the files, the first file's value where they differ.
  const std::shared_ptr<const arrow::KeyValueMetadata>& key_values() const { return key_values_; }

  int file_count() const override { return static_cast<int>(files_.size()); }
  int64_t row_count(int file) const override {
    return files_[static_cast<size_t>(file)].row_count;
  }
  const std::string& path(int file) const { return files_[static_cast<size_t>(file)].path; }
  int64_t size_bytes() const { return size_bytes_; }
  Status Read(int file, const std::vector<std::string>& columns, int64_t batch_rows,
              const layout::RowsCallback& on_rows) override;

 private:
  struct File {
    std::string path;   // relative to root
    std::shared_ptr<const store::Object> object;
    std::shared_ptr<const pq::Footer> footer;   // null: read again when it is needed
    std::shared_ptr<const pq::Schema> schema;   // shared by files of equal schemas
    std::shared_ptr<const arrow::KeyValueMetadata> key_values;   // while footers are read
    int64_t row_count = 0;
  };

  Status ReadFooters(std::vector<store::Object> files);
  Status MakeSchemas();
  Result<std::shared_ptr<const pq::Footer>> FooterOf(const File& file);
  Result<std::shared_ptr<const table::RowShape>> ShapeOf(const std::vector<std::string>& columns);

  store::Location root_;
  table::PartitionScheme partitions_;
  RewriteSourceOptions options_;
  std::vector<File> files_;
  int64_t size_bytes_ = 0;
  table::RowShape::Schemas schemas_;
  std::shared_ptr<arrow::Schema> read_schema_;    // before lists are taken apart
  std::shared_ptr<arrow::Schema> full_schema_;
  std::shared_ptr<arrow::Schema> plain_schema_;
  std::shared_ptr<const arrow::KeyValueMetadata> key_values_;
  std::mutex mutex_;
  std::map<std::vector<std::string>, std::shared_ptr<const table::RowShape>> shapes_;
};

}  // namespace grebe::engine

#include "engine/build.h"

#include <arrow/array/util.h>
#include <arrow/scalar.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>

#include "base/column_by_path.h"
#include "base/failpoint.h"
#include "base/spill_file.h"
#include "base/take_rows.h"
#include "engine/covering_types.h"
#include "engine/known_files.h"
#include "index/covering.h"
#include "index/fragment.h"
#include "lookup/key_check.h"
#include "table/row_shape.h"
#include "parquet/footer.h"
#include "scan/file_stats.h"

namespace grebe::engine {
namespace {

constexpr int64_t kBatchRows = 64 << 10;

int ThreadCount(const BuildOptions& options, size_t files) {
  const int cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  const int wanted = options.threads > 0 ? options.threads : cores;
  return static_cast<int>(std::min<size_t>(wanted, std::max<size_t>(files, 1)));
}

// A file of the snapshot, with its path in the store.
std::shared_ptr<const store::Object> ObjectIn(const store::Location& root,
                                              const store::Object& file) {
  auto object = std::make_shared<store::Object>(file);
  if (!root.path.empty()) object->path = root.path + "/" + file.path;
  return object;
}

// How one file offers the key and covering columns.
struct FileColumns {
  std::vector<int> leaves;                                    // to scan, ascending, distinct
  std::vector<std::shared_ptr<arrow::Scalar>> constants;      // per key column: set when constant
  std::vector<key::KeyType> types;                            // per key column
};

// One attempt at a build with fixed key types.
class Build {
 public:
  Build(const store::Location& root, const std::vector<store::Object>& files,
        const table::PartitionScheme& partitions, const BuildOptions& options,
        const IndexSpec& spec, index::FragmentBuilder* builder)
      : root_(root), files_(files), partitions_(partitions), options_(options), spec_(spec),
        codec_(spec.key_types), builder_(builder) {
    progress_.files_total = static_cast<int64_t>(files.size());
    for (const store::Object& file : files) progress_.bytes_total += file.identity.size_bytes;
  }

  // Runs all files. When a file needs wider key types, *widened is set and the rest is given up.
  Status Run(std::optional<std::vector<key::KeyType>>* widened) {
    std::vector<std::thread> threads;
    for (int i = ThreadCount(options_, files_.size()); i > 1; --i) {
      threads.emplace_back([this] { Work(); });
    }
    Work();
    for (std::thread& thread : threads) thread.join();
    *widened = widened_;
    return first_error_;
  }

  BuiltFragment TakeResult() { return std::move(result_); }

 private:
  void Work() {
    while (true) {
      const size_t next = next_file_.fetch_add(1);
      if (next >= files_.size() || give_up_.load()) return;
      std::optional<FileId> begun;
      const Status status = IndexFile(files_[next], &begun);
      if (!status.ok()) OnBadFile(files_[next], begun, status);
    }
  }

  void OnBadFile(const store::Object& file, std::optional<FileId> begun, const Status& status) {
    std::lock_guard lock(mutex_);
    const ErrorKind kind = KindOf(status);
    const bool file_is_bad = kind == ErrorKind::kCorrupt || kind == ErrorKind::kUnsupported ||
                             kind == ErrorKind::kNotFound || kind == ErrorKind::kInvalidArgument ||
                             kind == ErrorKind::kLimitExceeded;
    if (options_.skip_bad_files && file_is_bad) {
      result_.skipped.push_back({file.path, file.identity, status.message()});
      if (begun) result_.files[begun->value].bad = true;
      return;
    }
    if (first_error_.ok()) first_error_ = AddContext(status, "file", file.path);
    give_up_.store(true);
  }

  Status IndexFile(const store::Object& file, std::optional<FileId>* begun) {
    if (options_.stop != nullptr) ARROW_RETURN_NOT_OK(options_.stop->Check());
    const auto object = ObjectIn(root_, file);
    ARROW_ASSIGN_OR_RAISE(auto footer, pq::Footer::Read(*root_.store, object));
    ARROW_ASSIGN_OR_RAISE(FileColumns columns, ResolveColumns(*footer->schema(), file.path));
    ARROW_ASSIGN_OR_RAISE(const bool fits, TypesFit(columns.types));
    if (!fits) return Status::OK();

    ARROW_ASSIGN_OR_RAISE(auto pages, pq::FindPages(*root_.store, *footer));
    ARROW_ASSIGN_OR_RAISE(std::string packed, pq::PackPageMap(pages));
    int64_t row_count = 0;
    for (const auto& row_group : pages.row_groups) row_count += row_group.row_count;
    index::FragmentFile entry;
    entry.path = file.path;
    entry.identity = file.identity;
    entry.row_count = row_count;
    ARROW_ASSIGN_OR_RAISE(entry.schema, builder_->AddSchema(footer->schema()->Serialize()));
    ARROW_ASSIGN_OR_RAISE(const FileId id, AddFile(entry, packed, begun));
    ARROW_RETURN_NOT_OK(AddFileRows(*footer, columns, id, file.path, row_count));
    AddStats(file, *footer);
    Report(file, row_count);
    return Status::OK();
  }

  Result<FileId> AddFile(const index::FragmentFile& entry, const std::string& packed,
                         std::optional<FileId>* begun) {
    std::lock_guard lock(mutex_);
    ARROW_ASSIGN_OR_RAISE(const FileId id, builder_->AddFile(entry, packed));
    *begun = id;
    if (result_.files.size() <= id.value) result_.files.resize(id.value + 1);
    result_.files[id.value].path = entry.path;
    return id;
  }

  void AddStats(const store::Object& file, const pq::Footer& footer) {
    std::string packed = scan::PackStats(footer);
    std::lock_guard lock(mutex_);
    result_.stats.push_back({file.path, file.identity, std::move(packed)});
  }

  void Report(const store::Object& file, int64_t row_count) {
    std::lock_guard lock(mutex_);
    result_.row_count += row_count;
    progress_.files_done += 1;
    progress_.rows += row_count;
    progress_.bytes_done += file.identity.size_bytes;
    if (options_.progress) options_.progress(progress_);
  }

  Result<FileColumns> ResolveColumns(const pq::Schema& schema, const std::string& path) {
    FileColumns columns;
    for (const std::string& name : spec_.key) {
      std::shared_ptr<arrow::DataType> type;
      std::shared_ptr<arrow::Scalar> constant;
      if (auto field = partitions_.schema->GetFieldByName(name)) {
        ARROW_ASSIGN_OR_RAISE(constant, table::PartitionScalar(*field, path));
        type = field->type();
      } else {
        ARROW_ASSIGN_OR_RAISE(const int leaf, schema.KeyLeaf(name));
        columns.leaves.push_back(leaf);
        ARROW_ASSIGN_OR_RAISE(type, LeafType(schema, name));
      }
      ARROW_ASSIGN_OR_RAISE(key::KeyType key_type, key::KeyType::FromArrow(*type));
      columns.types.push_back(key_type);
      columns.constants.push_back(std::move(constant));
    }
    if (spec_.covering_schema != nullptr) {
      std::vector<std::string> own;
      for (const std::string& name : spec_.covering) {
        if (partitions_.schema->GetFieldIndex(name) < 0) own.push_back(name);
      }
      if (!own.empty()) {
        ARROW_ASSIGN_OR_RAISE(auto projection, schema.Project(own));
        columns.leaves.insert(columns.leaves.end(), projection.leaves.begin(),
                              projection.leaves.end());
      }
    }
    std::sort(columns.leaves.begin(), columns.leaves.end());
    columns.leaves.erase(std::unique(columns.leaves.begin(), columns.leaves.end()),
                         columns.leaves.end());
    return columns;
  }

  static Result<std::shared_ptr<arrow::DataType>> LeafType(const pq::Schema& schema,
                                                           const std::string& name) {
    ARROW_ASSIGN_OR_RAISE(auto projection, schema.Project(std::span(&name, 1)));
    ARROW_ASSIGN_OR_RAISE(auto empty, EmptyRows(projection.arrow_schema));
    ARROW_ASSIGN_OR_RAISE(auto column, ColumnByPath(*empty, name));
    return column->type();
  }

  // False when wider key types are needed (noted, and the build given up).
  Result<bool> TypesFit(const std::vector<key::KeyType>& types) {
    std::vector<key::KeyType> unified;
    bool fits = true;
    for (size_t i = 0; i < types.size(); ++i) {
      ARROW_ASSIGN_OR_RAISE(auto wide, key::KeyType::Unify(spec_.key_types[i], types[i]));
      fits = fits && wide == spec_.key_types[i];
      unified.push_back(wide);
    }
    if (fits) return true;
    std::lock_guard lock(mutex_);
    if (widened_) {
      for (size_t i = 0; i < unified.size(); ++i) {
        ARROW_ASSIGN_OR_RAISE(unified[i], key::KeyType::Unify((*widened_)[i], unified[i]));
      }
    }
    widened_ = std::move(unified);
    give_up_.store(true);
    return false;
  }

  Status AddFileRows(const pq::Footer& footer, const FileColumns& columns, FileId id,
                     const std::string& path, int64_t row_count) {
    int64_t rows_seen = 0;
    key::EncodedKeys keys;
    const auto add = [&](const std::shared_ptr<arrow::RecordBatch>& batch, RowIndex first_row) {
      if (options_.stop != nullptr) ARROW_RETURN_NOT_OK(options_.stop->Check());
      arrow::ArrayVector key_arrays;
      for (size_t i = 0; i < spec_.key.size(); ++i) {
        std::shared_ptr<arrow::Array> array;
        if (columns.constants[i] != nullptr) {
          ARROW_ASSIGN_OR_RAISE(
              array, arrow::MakeArrayFromScalar(*columns.constants[i], batch->num_rows()));
        } else {
          ARROW_ASSIGN_OR_RAISE(array, ColumnByPath(*batch, spec_.key[i]));
        }
        key_arrays.push_back(std::move(array));
      }
      ARROW_RETURN_NOT_OK(codec_.Encode(key_arrays, &keys));
      std::shared_ptr<arrow::RecordBatch> covering;
      if (spec_.covering_schema != nullptr) {
        ARROW_ASSIGN_OR_RAISE(covering, CoveringRows(*batch, path));
      }
      rows_seen += batch->num_rows();
      GREBE_FAILPOINT("build.mid_file");
      const Status added = builder_->AddRows(id, first_row, keys, covering.get());
      std::lock_guard lock(mutex_);
      if (IsKind(added, ErrorKind::kLimitExceeded)) {   // as a full disk: no fault of the file
        if (first_error_.ok()) first_error_ = added;
        give_up_.store(true);
      }
      ARROW_RETURN_NOT_OK(added);
      result_.files[id.value].row_count = rows_seen;
      return Status::OK();
    };
    if (columns.leaves.empty()) {
      for (int64_t row = 0; row < row_count; row += kBatchRows) {
        const int64_t count = std::min(kBatchRows, row_count - row);
        ARROW_RETURN_NOT_OK(add(
            arrow::RecordBatch::Make(arrow::schema({}), count, arrow::ArrayVector{}), {row}));
      }
    } else {
      pq::ScanOptions scan;
      scan.batch_rows = kBatchRows;
      scan.stop = options_.stop;
      ARROW_RETURN_NOT_OK(pq::ScanColumns(*root_.store, footer, columns.leaves, scan, add));
    }
    if (rows_seen != row_count) {
      return Corrupt("the key column has other rows than the pages say", "expected", row_count,
                     "got", rows_seen);
    }
    return Status::OK();
  }

  // The covering columns (key columns among them) of a scanned batch, in the index's types.
  Result<std::shared_ptr<arrow::RecordBatch>> CoveringRows(const arrow::RecordBatch& batch,
                                                           const std::string& path) {
    arrow::ArrayVector arrays;
    for (const auto& field : spec_.covering_schema->fields()) {
      std::shared_ptr<arrow::Array> array;
      if (partitions_.schema->GetFieldIndex(field->name()) >= 0) {
        ARROW_ASSIGN_OR_RAISE(auto scalar, table::PartitionScalar(*field, path));
        ARROW_ASSIGN_OR_RAISE(array, arrow::MakeArrayFromScalar(*scalar, batch.num_rows()));
      } else {
        ARROW_ASSIGN_OR_RAISE(array, ColumnByPath(batch, field->name()));
      }
      ARROW_ASSIGN_OR_RAISE(array, ToStored(std::move(array), field->type()));
      arrays.push_back(std::move(array));
    }
    return arrow::RecordBatch::Make(spec_.covering_schema, batch.num_rows(), std::move(arrays));
  }

  const store::Location& root_;
  const std::vector<store::Object>& files_;
  const table::PartitionScheme& partitions_;
  const BuildOptions& options_;
  const IndexSpec& spec_;
  const key::KeyCodec codec_;
  index::FragmentBuilder* builder_;

  std::atomic<size_t> next_file_{0};
  std::atomic<bool> give_up_{false};
  std::mutex mutex_;
  Status first_error_;
  std::optional<std::vector<key::KeyType>> widened_;
  BuildProgress progress_;
  BuiltFragment result_;
};

// Key types and covering types of a new index: those of the first file that can be read.
Status TypesFromFiles(const store::Location& root, const std::vector<store::Object>& files,
                      const table::PartitionScheme& partitions, const BuildOptions& options,
                      IndexSpec* spec) {
  Status first_error;
  for (const store::Object& file : files) {
    const auto object = ObjectIn(root, file);
    const auto try_file = [&]() -> Status {
      ARROW_ASSIGN_OR_RAISE(auto footer, pq::Footer::Read(*root.store, object));
      std::vector<std::string> names = spec->key;
      names.insert(names.end(), spec->covering.begin(), spec->covering.end());
      for (const std::string& name : spec->key) {
        if (partitions.schema->GetFieldIndex(name) < 0) {
          ARROW_RETURN_NOT_OK(footer->schema()->KeyLeaf(name).status());
        }
      }
      for (const std::string& name : spec->covering) {
        if (partitions.schema->GetFieldIndex(name) < 0 &&
            footer->schema()->arrow_schema()->GetFieldIndex(name) < 0) {
          return InvalidArgument("a covering column must be a whole column of the files", "column",
                                 name);
        }
      }
      ARROW_ASSIGN_OR_RAISE(auto shape,
                            table::RowShape::Make({footer->schema()}, partitions, names));
      ARROW_ASSIGN_OR_RAISE(auto empty, EmptyRows(shape->schema()));
      std::vector<key::KeyType> types;
      arrow::FieldVector covering;
      for (size_t i = 0; i < names.size(); ++i) {
        ARROW_ASSIGN_OR_RAISE(auto column, ColumnByPath(*empty, names[i]));
        if (i < spec->key.size()) {
          ARROW_ASSIGN_OR_RAISE(auto type, key::KeyType::FromArrow(*column->type()));
          types.push_back(type);
        }
        const bool seen = std::find(names.begin(), names.begin() + i, names[i]) !=
                          names.begin() + static_cast<int64_t>(i);
        if (!seen) covering.push_back(arrow::field(names[i], StoredType(column->type())));
      }
      spec->key_types = std::move(types);
      if (!spec->covering.empty()) spec->covering_schema = arrow::schema(std::move(covering));
      return Status::OK();
    };
    const Status status = try_file();
    if (status.ok()) return status;
    if (first_error.ok()) first_error = AddContext(status, "file", file.path);
    if (!options.skip_bad_files) break;
  }
  return first_error.ok() ? NotFound("the table has no Parquet files") : first_error;
}

}  // namespace

Result<IndexSpec> SpecOf(const index::Manifest& manifest) {
  IndexSpec spec;
  for (const auto& column : manifest.key) {
    spec.key.push_back(column.name);
    ARROW_ASSIGN_OR_RAISE(auto type, key::KeyType::Parse(column.type));
    spec.key_types.push_back(type);
  }
  spec.covering = manifest.covering;
  spec.sorted = manifest.sorted;
  if (!manifest.covering_schema.empty()) {
    ARROW_ASSIGN_OR_RAISE(spec.covering_schema, index::ParseSchema(manifest.covering_schema));
  }
  return spec;
}

index::FragmentOptions FragmentOptionsOf(const IndexSpec& spec, const BuildOptions& options) {
  index::FragmentOptions out;
  out.word_keys = key::KeyCodec(spec.key_types).is_word();
  out.covering = spec.covering_schema;
  if (spec.sorted) out.sorted = spec.key_types;
  out.memory_bytes_max = options.memory_bytes_max;
  out.spill_folder = options.spill_folder;
  out.threads = options.threads;
  out.stop = options.stop;
  return out;
}

Status DeleteFragment(const store::Location& index_folder, const std::string& path) {
  ARROW_RETURN_NOT_OK(index_folder.store->Delete(index_folder.path + "/" + path));
  return index_folder.store->Delete(index_folder.path + "/" + index::StatsPath(path));
}

Result<BuiltFragment> BuildFragment(const store::Location& root,
                                    const std::vector<store::Object>& files,
                                    const table::PartitionScheme& partitions,
                                    const store::Location& index_folder,
                                    const BuildOptions& options, IndexSpec* spec) {
  // Tried first, so that a spill folder at fault is not taken for files at fault.
  if (options.skip_bad_files || !options.spill_folder.empty()) {
    ARROW_RETURN_NOT_OK(SpillFile(options.spill_folder).Append("tried").status());
  }
  const bool types_open = spec->key_types.empty();
  if (types_open) {
    ARROW_RETURN_NOT_OK(TypesFromFiles(root, files, partitions, options, spec));
  }
  // A file with wider key types starts the build again; types only ever widen, so this ends.
  while (true) {
    ARROW_ASSIGN_OR_RAISE(auto builder,
                          index::FragmentBuilder::Make(FragmentOptionsOf(*spec, options)));
    Build build(root, files, partitions, options, *spec, builder.get());
    std::optional<std::vector<key::KeyType>> widened;
    ARROW_RETURN_NOT_OK(build.Run(&widened));
    if (widened) {
      if (!types_open) {
        return Unsupported(
            "a new file's key column has a wider type than the index: drop the index and create "
            "it again", "index_type", spec->key_types[0].ToString(), "file_type",
            (*widened)[0].ToString());
      }
      spec->key_types = *std::move(widened);
      continue;
    }
    BuiltFragment result = build.TakeResult();
    if (result.files.empty()) return result;
    const std::string path = index::NewFragmentPath();
    ARROW_ASSIGN_OR_RAISE(auto upload,
                          index_folder.store->StartUpload(index_folder.path + "/" + path));
    ARROW_ASSIGN_OR_RAISE(index::FragmentInfo info, builder->Write(*upload));
    info.path = path;
    ARROW_RETURN_NOT_OK(upload->Finish().status());
    ARROW_RETURN_NOT_OK(WriteStats(index_folder, path, result.stats));
    GREBE_FAILPOINT("build.after_fragment");
    result.info = std::move(info);
    return result;
  }
}

}  // namespace grebe::engine

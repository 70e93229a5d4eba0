#include "engine/rewrite_source.h"

#include <algorithm>

#include "layout/cogroup.h"
#include "layout/dictionaries.h"
#include "layout/memory_share.h"
#include "layout/parallel.h"
#include "scan/file_set.h"

namespace grebe::engine {
namespace {

// The schema's metadata stays out of batches: it is compared with every one.
std::shared_ptr<arrow::Schema> Bare(const arrow::Schema& schema) {
  return arrow::schema(schema.fields());
}

}  // namespace

Result<std::unique_ptr<RewriteSource>> RewriteSource::Make(const store::Location& root,
                                                           std::vector<store::Object> files,
                                                           table::PartitionScheme partitions,
                                                           const RewriteSourceOptions& options) {
  auto source = std::make_unique<RewriteSource>();
  source->root_ = root;
  source->partitions_ = std::move(partitions);
  source->options_ = options;
  ARROW_RETURN_NOT_OK(source->ReadFooters(std::move(files)));
  if (source->files_.empty()) return NotFound("the table has no Parquet file that can be read");
  ARROW_RETURN_NOT_OK(source->MakeSchemas());
  return source;
}

Status RewriteSource::ReadFooters(std::vector<store::Object> objects) {
  std::vector<File> files(objects.size());
  const auto read = [&](size_t i) -> Status {
    if (options_.stop != nullptr) ARROW_RETURN_NOT_OK(options_.stop->Check());
    auto object = std::make_shared<store::Object>(objects[i]);
    files[i].path = object->path;
    if (!root_.path.empty()) object->path = root_.path + "/" + object->path;
    auto footer = pq::Footer::Read(*root_.store, object);
    if (!footer.ok()) {
      if (scan::IsBadFile(footer.status()) && options_.skip_file &&
          options_.skip_file(files[i].path, footer.status())) {
        return Status::OK();
      }
      return AddContext(footer.status(), "file", files[i].path);
    }
    files[i].object = object;
    files[i].row_count = (*footer)->row_count();
    files[i].schema = (*footer)->schema();
    files[i].key_values = (*footer)->key_values();
    if (objects.size() <= options_.footers_kept_max) files[i].footer = *std::move(footer);
    return Status::OK();
  };
  ARROW_RETURN_NOT_OK(layout::RunAll(options_.threads, objects.size(), read));
  std::map<std::string, std::shared_ptr<const pq::Schema>> distinct;
  auto key_values = std::make_shared<arrow::KeyValueMetadata>();
  for (size_t i = 0; i < files.size(); ++i) {
    if (files[i].object == nullptr) continue;
    const auto schema = files[i].schema;
    const auto [at, fresh] = distinct.emplace(schema->Serialize(), schema);
    if (fresh) schemas_.push_back(schema);
    files[i].schema = at->second;
    size_bytes_ += objects[i].identity.size_bytes;
    const auto own = std::move(files[i].key_values);
    for (int64_t pair = 0; own != nullptr && pair < own->size(); ++pair) {
      if (!key_values->Contains(own->key(pair))) {
        key_values->Append(own->key(pair), own->value(pair));
      }
    }
    files_.push_back(std::move(files[i]));
  }
  key_values_ = std::move(key_values);
  return Status::OK();
}

Status RewriteSource::MakeSchemas() {
  ARROW_ASSIGN_OR_RAISE(auto shape, ShapeOf({}));
  read_schema_ = Bare(*shape->schema());
  full_schema_ = read_schema_;
  if (!options_.ungroup.empty()) {
    ARROW_ASSIGN_OR_RAISE(full_schema_, layout::UngroupedSchema(read_schema_, options_.ungroup,
                                                                key_values_.get()));
    for (File& file : files_) {
      // One level for each item (and for each empty list, which reading refuses).
      ARROW_ASSIGN_OR_RAISE(auto projection,
                            file.schema->Project(std::span(&options_.ungroup, 1)));
      ARROW_ASSIGN_OR_RAISE(const auto footer, FooterOf(file));
      file.row_count = footer->leaf_value_count(projection.leaves.front());
    }
  }
  plain_schema_ = layout::PlainSchema(full_schema_);
  return Status::OK();
}

Result<std::shared_ptr<const pq::Footer>> RewriteSource::FooterOf(const File& file) {
  if (file.footer != nullptr) return file.footer;
  return pq::Footer::Read(*root_.store, file.object);
}

Result<std::shared_ptr<const table::RowShape>> RewriteSource::ShapeOf(
    const std::vector<std::string>& columns) {
  std::lock_guard lock(mutex_);
  auto& shape = shapes_[columns];
  if (shape == nullptr) {
    ARROW_ASSIGN_OR_RAISE(shape, table::RowShape::Make(schemas_, partitions_, columns));
  }
  return shape;
}

Status RewriteSource::Read(int ordinal, const std::vector<std::string>& columns,
                           int64_t batch_rows, const layout::RowsCallback& on_rows) {
  const File& file = files_[static_cast<size_t>(ordinal)];
  // What a list holds is named only once it is taken apart: then all is read.
  const bool whole = columns.empty() || !options_.ungroup.empty();
  ARROW_ASSIGN_OR_RAISE(auto shape, ShapeOf(whole ? std::vector<std::string>() : columns));
  int64_t rows_read = 0, rows_given = 0;
  const auto give = [&](const std::shared_ptr<arrow::RecordBatch>& read) -> Status {
    const std::vector<std::pair<std::string_view, int64_t>> paths = {{file.path,
                                                                      read->num_rows()}};
    ARROW_ASSIGN_OR_RAISE(auto rows, shape->Conform(file.schema.get(), read, paths));
    if (!options_.ungroup.empty()) {
      ARROW_ASSIGN_OR_RAISE(
          rows, layout::Ungroup(*rows, rows_read, options_.ungroup, full_schema_));
    }
    rows_read += read->num_rows();
    const auto schema = whole ? plain_schema_ : layout::PlainSchema(Bare(*rows->schema()));
    ARROW_ASSIGN_OR_RAISE(rows, layout::WithDictionariesOf(rows, schema));
    const int64_t first = rows_given;
    rows_given += rows->num_rows();
    return on_rows(rows, first);
  };
  ARROW_ASSIGN_OR_RAISE(const auto footer, FooterOf(file));
  const std::vector<int>& leaves = shape->projection(file.schema.get()).leaves;
  Status status;
  if (leaves.empty()) {
    const int64_t total = footer->row_count();
    for (int64_t row = 0; status.ok() && row < total; row += batch_rows) {
      status = give(arrow::RecordBatch::Make(arrow::schema({}), std::min(batch_rows, total - row),
                                             arrow::ArrayVector{}));
    }
  } else {
    pq::ScanOptions scan;
    scan.batch_rows = batch_rows;
    scan.held_bytes_max = options_.held_bytes_max;
    scan.stop = options_.stop;
    scan.pool = layout::RowPool();
    status = pq::ScanColumns(*root_.store, *footer, leaves, scan,
                             [&](const auto& rows, RowIndex) { return give(rows); });
  }
  return AddContext(status, "file", file.path);
}

}  // namespace grebe::engine

#include "scan/file_set.h"

#include <arrow/util/parallel.h>

#include <algorithm>

#include "base/coding.h"
#include "base/column_by_path.h"
#include "base/hash.h"
#include "base/take_rows.h"

namespace grebe::scan {
namespace {

// The last bytes of a file, where its footer is.
constexpr int64_t kTailBytes = 64 << 10;
// Files opened with one wave, and footers kept for later reads.
constexpr size_t kFilesPerWave = 512;
constexpr size_t kFootersKeptMax = 1024;

uint64_t FileKeyOf(const store::Object& object) {
  std::string bytes;
  PutBytes(&bytes, object.path);
  PutBytes(&bytes, object.identity.tag);
  PutFixed(&bytes, object.identity.size_bytes);
  return Checksum(bytes);
}

std::shared_ptr<const store::Object> ObjectIn(const store::Location& root,
                                              const store::Object& file) {
  auto object = std::make_shared<store::Object>(file);
  if (!root.path.empty()) object->path = root.path + "/" + file.path;
  return object;
}

// A column that the file does not have: nulls.
pq::Bounds AbsentBounds(int64_t rows) {
  pq::Bounds out;
  out.value_count = rows;
  out.null_count = rows;
  return out;
}

pq::Bounds UnknownBounds(int64_t rows) {
  pq::Bounds out;
  out.value_count = rows;
  return out;
}

}  // namespace

bool IsBadFile(const Status& status) {
  switch (KindOf(status)) {
    case ErrorKind::kCorrupt:
    case ErrorKind::kUnsupported:
    case ErrorKind::kNotFound:
    case ErrorKind::kStale:
    case ErrorKind::kLimitExceeded: return true;
    default: return false;
  }
}

Status FileSet::OnBadFile(const ScanFile& file, const Status& status) {
  if (!options_.skip_bad_files || !IsBadFile(status)) return status;
  if (!file.bad) bad_files_.push_back({file.path, status.message()});
  files_[static_cast<size_t>(&file - files_.data())].bad = true;
  return Status::OK();
}

Status FileSet::Open() {
  cost_->files_total = static_cast<int64_t>(snapshot_.files.size());
  ARROW_RETURN_NOT_OK(ChooseFiles());
  for (size_t begin = 0; begin < files_.size(); begin += kFilesPerWave) {
    ARROW_RETURN_NOT_OK(OpenFiles(begin, std::min(begin + kFilesPerWave, files_.size())));
  }
  Status status = schemas_.empty() ? InvalidArgument("no file was opened") : ResolveColumns();
  if (!status.ok() && !left_out_.empty() && IsKind(status, ErrorKind::kInvalidArgument)) {
    // Nothing is left, or a column is only in files that the partition values rule out: those say
    // what it is. They hold no wanted row.
    const size_t first = files_.size();
    for (const size_t i : left_out_) {
      ScanFile& file = files_.emplace_back();
      file.path = snapshot_.files[i].path;
      file.object = ObjectIn(snapshot_.root, snapshot_.files[i]);
      if (options_.known) file.known = options_.known(snapshot_.files[i]);
    }
    for (size_t begin = first; begin < files_.size(); begin += kFilesPerWave) {
      ARROW_RETURN_NOT_OK(OpenFiles(begin, std::min(begin + kFilesPerWave, files_.size())));
      status = schemas_.empty() ? status : ResolveColumns();
      if (status.ok()) break;
    }
    files_.resize(first);
  }
  if (!status.ok() && schemas_.empty() && snapshot_.files.empty()) {
    return NotFound("the table has no Parquet files");
  }
  if (!status.ok() && schemas_.empty()) {
    return Corrupt("no file of the table can be read", "files", snapshot_.files.size(), "first",
                   bad_files_.empty() ? "" : bad_files_[0].reason);
  }
  ARROW_RETURN_NOT_OK(status);
  std::erase_if(files_, [](const ScanFile& file) { return file.schema == nullptr; });
  for (ScanFile& file : files_) ResolveBounds(&file);
  if (files_.size() > kFootersKeptMax) {
    for (size_t i = kFootersKeptMax; i < files_.size(); ++i) files_[i].footer.reset();
  }
  return Status::OK();
}

// The predicate's columns with the types that are known from paths alone.
Result<std::vector<PredicateColumn>> FileSet::PartitionColumns() const {
  std::vector<PredicateColumn> columns;
  for (const std::string& name : options_.filter->columns) {
    const auto field = snapshot_.partitions.schema->GetFieldByName(name);
    columns.push_back({name, field == nullptr ? nullptr : field->type()});
  }
  return columns;
}

Status FileSet::ChooseFiles() {
  const size_t count = snapshot_.files.size();
  std::vector<bool> may(count, true);
  if (options_.filter && !snapshot_.partitions.empty() && options_.use_statistics) {
    ARROW_ASSIGN_OR_RAISE(auto columns, PartitionColumns());
    ARROW_ASSIGN_OR_RAISE(auto predicate, options_.filter->bind(columns));
    std::vector<ColumnBounds> bounds(columns.size());
    for (size_t c = 0; c < columns.size(); ++c) {
      const auto field = snapshot_.partitions.schema->GetFieldByName(columns[c].path);
      for (const store::Object& file : snapshot_.files) {
        if (field == nullptr) {
          bounds[c].bounds.push_back(UnknownBounds(1));
          continue;
        }
        ARROW_ASSIGN_OR_RAISE(auto value, table::PartitionScalar(*field, file.path));
        bounds[c].bounds.push_back(ConstantBounds(value, 1));
      }
    }
    ARROW_ASSIGN_OR_RAISE(auto verdicts, predicate->Judge(bounds, count));
    may = std::move(verdicts.may_match);
  }
  for (size_t i = 0; i < count; ++i) {
    if (!may[i]) {
      left_out_.push_back(i);
      continue;
    }
    ScanFile& file = files_.emplace_back();
    file.path = snapshot_.files[i].path;
    file.object = ObjectIn(snapshot_.root, snapshot_.files[i]);
    file.file_key = FileKeyOf(*file.object);
    if (options_.known) file.known = options_.known(snapshot_.files[i]);
  }
  return Status::OK();
}

Status FileSet::ReadFooters(const std::vector<ScanFile*>& files) {
  std::vector<store::ReadRequest> tails;
  for (const ScanFile* file : files) {
    const int64_t size = file->object->identity.size_bytes;
    if (size > 0) tails.push_back({file->object, {std::max<int64_t>(size - kTailBytes, 0), size}});
  }
  const int64_t mark = store_->mark();
  store_->Prefetch(std::move(tails));
  std::vector<Status> failed(files.size());
  ARROW_RETURN_NOT_OK(arrow::internal::OptionalParallelFor(
      files.size() > 1, static_cast<int>(files.size()), [&](int i) {
        auto footer = pq::Footer::Read(*store_, files[static_cast<size_t>(i)]->object);
        failed[static_cast<size_t>(i)] = footer.status();
        if (footer.ok()) files[static_cast<size_t>(i)]->footer = *std::move(footer);
        return Status::OK();
      }));
  store_->Clear(mark);
  cost_->footers_read += static_cast<int64_t>(files.size());
  for (size_t i = 0; i < files.size(); ++i) {
    if (!failed[i].ok()) ARROW_RETURN_NOT_OK(OnBadFile(*files[i], failed[i]));
  }
  return Status::OK();
}

Status FileSet::OpenFiles(size_t begin, size_t end) {
  if (options_.stop != nullptr) ARROW_RETURN_NOT_OK(options_.stop->Check());
  std::vector<ScanFile*> unknown;
  for (size_t i = begin; i < end; ++i) {
    if (files_[i].known == nullptr) unknown.push_back(&files_[i]);
  }
  ARROW_RETURN_NOT_OK(ReadFooters(unknown));
  for (size_t i = begin; i < end; ++i) {
    ScanFile& file = files_[i];
    if (file.known != nullptr) {
      file.schema = Shared(file.known->stats.schema);
      file.layout = file.known->stats.layout;
      for (const RowGroupStats& group : file.known->stats.row_groups) {
        file.groups.push_back({group.rows, {}});
      }
    } else if (file.footer != nullptr) {
      file.schema = Shared(file.footer->schema());
      file.layout = file.footer->key_value(kLayoutKey).value_or("");
      for (int group = 0; group < file.footer->row_group_count(); ++group) {
        file.groups.push_back({file.footer->row_group_row_count(group), {}});
      }
    }
    cost_->row_groups_total += static_cast<int64_t>(file.groups.size());
  }
  return Status::OK();
}

// Many files share a schema: one object stands for all.
std::shared_ptr<const pq::Schema> FileSet::Shared(std::shared_ptr<const pq::Schema> schema) {
  return schemas_.try_emplace(schema->Serialize(), schema).first->second;
}

table::RowShape::Schemas FileSet::Schemas() const {
  table::RowShape::Schemas out;
  for (const ScanFile& file : files_) {
    const bool seen = std::ranges::any_of(out, [&](const auto& s) { return s == file.schema; });
    if (file.schema != nullptr && !seen) out.push_back(file.schema);
  }
  return out;
}

Status FileSet::ResolveColumns() {
  const auto schemas = Schemas();
  ARROW_ASSIGN_OR_RAISE(shape_, table::RowShape::Make(schemas, snapshot_.partitions,
                                                      options_.columns));
  if (!options_.filter) return Status::OK();
  const auto& names = options_.filter->columns;
  if (names.empty()) return Internal("a filter without columns");
  ARROW_ASSIGN_OR_RAISE(filter_shape_,
                        table::RowShape::Make(schemas, snapshot_.partitions, names));
  ARROW_ASSIGN_OR_RAISE(auto empty, EmptyRows(filter_shape_->schema()));
  std::vector<PredicateColumn> columns;
  for (const std::string& name : names) {
    ARROW_ASSIGN_OR_RAISE(auto column, ColumnByPath(*empty, name));
    if (arrow::is_nested(column->type_id())) {
      return InvalidArgument("a predicate is over columns of plain values", "column", name, "type",
                             column->type()->ToString());
    }
    columns.push_back({name, column->type()});
  }
  ARROW_ASSIGN_OR_RAISE(predicate_, options_.filter->bind(std::move(columns)));
  return Status::OK();
}

void FileSet::ResolveBounds(ScanFile* file) {
  if (predicate_ == nullptr) return;
  for (const PredicateColumn& column : predicate_->columns()) {
    const auto partition = snapshot_.partitions.schema->GetFieldByName(column.path);
    std::shared_ptr<arrow::Scalar> constant;
    if (partition != nullptr) {
      auto value = table::PartitionScalar(*partition, file->path);
      if (value.ok()) constant = *std::move(value);
    }
    const auto leaf = file->schema->KeyLeaf(column.path);
    // Not there at all, or not a column by itself: then nothing is known.
    const std::vector<std::string> path = {column.path};
    const bool absent = partition == nullptr && !leaf.ok() && !file->schema->Project(path).ok();
    file->leaves.push_back(partition == nullptr && leaf.ok() ? *leaf : -1);
    for (size_t i = 0; i < file->groups.size(); ++i) {
      ScanFile::Group& group = file->groups[i];
      pq::Bounds bounds = UnknownBounds(group.rows);
      if (constant != nullptr) {
        bounds = ConstantBounds(constant, group.rows);
      } else if (absent) {
        bounds = AbsentBounds(group.rows);
      } else if (file->leaves.back() >= 0 && options_.use_statistics) {
        bounds = file->known != nullptr
                     ? file->known->stats.row_groups[i]
                           .leaves[static_cast<size_t>(file->leaves.back())].bounds
                     : pq::ChunkBounds(*file->footer, static_cast<int>(i), file->leaves.back());
      }
      group.bounds.push_back(std::move(bounds));
    }
  }
}

Result<std::vector<FileSet::Candidate>> FileSet::JudgeRowGroups() {
  std::vector<Candidate> all;
  for (size_t i = 0; i < files_.size(); ++i) {
    if (predicate_ != nullptr && options_.may_match_layout && !files_[i].layout.empty() &&
        !options_.may_match_layout(files_[i].layout, *predicate_)) {
      continue;
    }
    for (size_t group = 0; group < files_[i].groups.size(); ++group) {
      if (files_[i].groups[group].rows == 0) continue;
      all.push_back({i, static_cast<int>(group), predicate_ == nullptr});
    }
  }
  if (predicate_ == nullptr) return all;
  std::vector<ColumnBounds> bounds(predicate_->columns().size());
  for (const Candidate& candidate : all) {
    const auto& group = files_[candidate.file].groups[static_cast<size_t>(candidate.group)];
    for (size_t c = 0; c < bounds.size(); ++c) bounds[c].bounds.push_back(group.bounds[c]);
  }
  ARROW_ASSIGN_OR_RAISE(auto verdicts, predicate_->Judge(bounds, all.size()));
  std::vector<Candidate> out;
  for (size_t i = 0; i < all.size(); ++i) {
    if (!verdicts.may_match[i]) continue;
    all[i].all_rows = verdicts.must_match[i] && !options_.filter->judge;
    out.push_back(all[i]);
  }
  return out;
}

Status FileSet::EnsureFooters(const std::vector<size_t>& files) {
  std::vector<ScanFile*> missing;
  for (const size_t i : files) {
    if (files_[i].footer == nullptr) missing.push_back(&files_[i]);
  }
  return missing.empty() ? Status::OK() : ReadFooters(missing);
}

}  // namespace grebe::scan

#include "engine/rewrite_target.h"

#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/column_by_path.h"
#include "base/failpoint.h"
#include "base/take_rows.h"
#include "engine/known_files.h"
#include "index/manifest.h"
#include "layout/cogroup.h"
#include "layout/dictionaries.h"
#include "parquet/footer.h"
#include "scan/file_stats.h"
#include "store/upload_stream.h"

namespace grebe::engine {
namespace {

using Json = nlohmann::ordered_json;

class GroupFile final : public layout::TargetFile {
 public:
  GroupFile(RewriteFolder* folder, RewrittenFile file, const RewriteFileOptions& options,
            RewriteIndex* index)
      : folder_(folder), file_(std::move(file)), options_(options), index_(index) {}

  Status Open(std::shared_ptr<const arrow::KeyValueMetadata> key_values) {
    ARROW_ASSIGN_OR_RAISE(upload_, folder_->Begin(file_));
    sink_ = std::make_shared<store::UploadStream>(upload_.get());
    ARROW_ASSIGN_OR_RAISE(writer_, pq::FileWriter::Open(sink_, options_.file_schema,
                                                        std::move(key_values), options_.write));
    return Status::OK();
  }

  Status WriteRowGroup(const std::shared_ptr<arrow::Table>& rows,
                       std::span<const int64_t> key_ends) override {
    return AddContext(Write(rows, key_ends), "file", file_.path);
  }

  Status Finish() override {
    ARROW_ASSIGN_OR_RAISE(const pq::WrittenFile written, writer_->Finish());
    GREBE_FAILPOINT("rewrite.before_finish");
    ARROW_ASSIGN_OR_RAISE(file_.identity, upload_->Finish());
    file_.row_count = written.row_count;
    if (index_ != nullptr) ARROW_RETURN_NOT_OK(index_->AddFile(file_, written, keys_));
    return folder_->Finished(file_);
  }

 private:
  Status Write(std::shared_ptr<arrow::Table> rows, std::span<const int64_t> key_ends) {
    std::vector<int64_t> own_ends(key_ends.begin(), key_ends.end());
    if (!options_.cogroup.empty()) {
      ARROW_ASSIGN_OR_RAISE(
          auto schema, layout::CogroupedSchema(options_.rows_schema, options_.cogroup));
      ARROW_ASSIGN_OR_RAISE(rows, layout::Cogroup(rows, options_.cogroup, key_ends, schema));
      for (size_t i = 0; i < own_ends.size(); ++i) own_ends[i] = static_cast<int64_t>(i) + 1;
    }
    if (index_ != nullptr) {
      ARROW_ASSIGN_OR_RAISE(auto keys, index_->Encode(*rows));
      keys_.push_back(std::move(keys));
    }
    ARROW_ASSIGN_OR_RAISE(rows, Final(rows));
    std::vector<int64_t> page_ends;
    if (options_.page_per_key) {
      page_ends = std::move(own_ends);
    } else if (options_.pages_aligned) {
      ARROW_ASSIGN_OR_RAISE(page_ends, pq::SharedPageEnds(*rows, own_ends, options_.write));
    }
    return writer_->WriteRowGroup(*rows, page_ends);
  }

  // The rows with the file's schema.
  Result<std::shared_ptr<arrow::Table>> Final(const std::shared_ptr<arrow::Table>& rows) const {
    arrow::ChunkedArrayVector columns;
    for (int i = 0; i < rows->num_columns(); ++i) {
      const auto& type = options_.file_schema->field(i)->type();
      arrow::ArrayVector chunks;
      for (const auto& chunk : rows->column(i)->chunks()) {
        ARROW_ASSIGN_OR_RAISE(auto array, layout::WithDictionariesOf(chunk, type));
        chunks.push_back(std::move(array));
      }
      columns.push_back(std::make_shared<arrow::ChunkedArray>(std::move(chunks), type));
    }
    return arrow::Table::Make(options_.file_schema, std::move(columns), rows->num_rows());
  }

  RewriteFolder* folder_;
  RewrittenFile file_;
  const RewriteFileOptions& options_;
  RewriteIndex* index_;
  std::unique_ptr<store::Upload> upload_;
  std::shared_ptr<store::UploadStream> sink_;
  std::unique_ptr<pq::FileWriter> writer_;
  std::vector<key::EncodedKeys> keys_;    // per row group
};

}  // namespace

Result<std::unique_ptr<RewriteIndex>> RewriteIndex::Make(const std::vector<std::string>& key,
                                                         const arrow::Schema& schema,
                                                         const index::FragmentOptions& options) {
  auto out = std::make_unique<RewriteIndex>();
  out->spec_.key = key;
  ARROW_ASSIGN_OR_RAISE(auto empty, EmptyRows(arrow::schema(schema.fields())));
  for (const std::string& column : key) {
    ARROW_ASSIGN_OR_RAISE(auto array, ColumnByPath(*empty, column));
    ARROW_ASSIGN_OR_RAISE(auto type, key::KeyType::FromArrow(*array->type()));
    out->spec_.key_types.push_back(type);
  }
  out->codec_ = std::make_unique<key::KeyCodec>(out->spec_.key_types);
  index::FragmentOptions fragment = options;
  fragment.word_keys = out->codec_->is_word();
  ARROW_ASSIGN_OR_RAISE(out->builder_, index::FragmentBuilder::Make(fragment));
  return out;
}

Result<key::EncodedKeys> RewriteIndex::Encode(const arrow::Table& rows) const {
  ARROW_ASSIGN_OR_RAISE(auto batch, rows.CombineChunksToBatch());
  arrow::ArrayVector columns;
  for (const std::string& column : spec_.key) {
    ARROW_ASSIGN_OR_RAISE(auto array, ColumnByPath(*batch, column));
    columns.push_back(std::move(array));
  }
  key::EncodedKeys keys;
  ARROW_RETURN_NOT_OK(codec_->Encode(columns, &keys));
  return keys;
}

Status RewriteIndex::AddFile(const RewrittenFile& file, const pq::WrittenFile& written,
                             const std::vector<key::EncodedKeys>& keys) {
  ARROW_ASSIGN_OR_RAISE(const std::string packed, pq::PackPageMap(written.pages));
  index::FragmentFile entry;
  entry.path = file.path;
  entry.identity = file.identity;
  entry.row_count = file.row_count;
  ARROW_ASSIGN_OR_RAISE(entry.schema, builder_->AddSchema(written.schema->Serialize()));
  FileId id;
  {
    std::lock_guard lock(mutex_);
    ARROW_ASSIGN_OR_RAISE(id, builder_->AddFile(entry, packed));
    if (built_.files.size() <= id.value) built_.files.resize(id.value + 1);
    built_.files[id.value] = {file.path, file.row_count, false};
    built_.row_count += file.row_count;
  }
  auto object = std::make_shared<store::Object>();
  object->path = file.path;
  object->identity = file.identity;
  ARROW_ASSIGN_OR_RAISE(const auto footer,
                        pq::Footer::Parse(std::move(object), written.footer_bytes));
  std::string stats = scan::PackStats(*footer);
  {
    std::lock_guard lock(mutex_);
    built_.stats.push_back({file.path, file.identity, std::move(stats)});
  }
  RowIndex row{0};
  for (const key::EncodedKeys& some : keys) {
    ARROW_RETURN_NOT_OK(builder_->AddRows(id, row, some, nullptr));
    row.value += some.count();
  }
  return Status::OK();
}

Result<BuiltFragment> RewriteIndex::Finish(const store::Location& index_folder) {
  const std::string path = index::NewFragmentPath();
  ARROW_ASSIGN_OR_RAISE(auto upload,
                        index_folder.store->StartUpload(index_folder.path + "/" + path));
  ARROW_ASSIGN_OR_RAISE(index::FragmentInfo info, builder_->Write(*upload));
  info.path = path;
  ARROW_RETURN_NOT_OK(upload->Finish().status());
  ARROW_RETURN_NOT_OK(WriteStats(index_folder, path, built_.stats));
  built_.info = std::move(info);
  return std::move(built_);
}

Status GroupTarget::BeginWriting() {
  left_out_ = find_left_out_();
  char prefix[16];
  std::snprintf(prefix, sizeof(prefix), "%05d-", group_);
  for (const RewrittenFile& file : folder_->files()) {
    if (!file.name.starts_with(prefix) || file.left_out == left_out_) continue;
    return InvalidArgument(
        "the folder holds an unfinished rewrite that left out other files than cannot be read now: "
        "remove the folder, or choose another", "file", file.path);
  }
  return Status::OK();
}

std::string GroupTarget::NameOf(int file) const {
  char name[32];
  std::snprintf(name, sizeof(name), "%05d-%05d", group_, file);
  return name;
}

std::string GroupTarget::PathOf(int file, uint32_t section) const {
  std::string kind = "part-";
  if (options_.order.by.kind == layout::LayoutKind::kBucket) {
    char bucket[24];
    std::snprintf(bucket, sizeof(bucket), "bucket-%05u-", section);
    const bool of_nulls = section == static_cast<uint32_t>(options_.order.by.bucket_count);
    kind = of_nulls ? "bucket-null-" : bucket;
  } else if (options_.order.tree != nullptr) {
    char leaf[24];
    std::snprintf(leaf, sizeof(leaf), "leaf-%05u-", section);
    kind = leaf;
  }
  char name[24];
  std::snprintf(name, sizeof(name), "%05d.parquet", file);
  return path_prefix_ + kind + name_mark_ + name;
}

Result<std::unique_ptr<layout::TargetFile>> GroupTarget::Create(int file, uint32_t section) {
  RewrittenFile record;
  record.name = NameOf(file);
  record.path = PathOf(file, section);
  record.left_out = left_out_;
  auto key_values = options_.key_values->Copy();
  key_values->Append(kLayoutKey, LayoutMetadata(options_.order, section));
  auto out = std::make_unique<GroupFile>(folder_, std::move(record), options_, index_);
  ARROW_RETURN_NOT_OK(out->Open(std::move(key_values)));
  return out;
}

std::string LayoutMetadata(const layout::RowOrder::Request& order, uint32_t section) {
  Json json = {{"by", order.by.ToString()}};
  if (order.by.kind == layout::LayoutKind::kBucket) {
    if (section < static_cast<uint32_t>(order.by.bucket_count)) {
      json["bucket"] = section;
    } else {
      json["bucket"] = nullptr;
    }
  }
  if (order.tree != nullptr) json["leaf"] = section;
  json["columns"] = order.tree != nullptr ? order.tree->columns() : order.by.columns;
  if (order.then) json["then"] = order.then->ToString();
  if (order.by.is_curve()) {
    json["mode"] = order.by.mode == layout::CurveMode::kRaw ? "raw" : "rank";
  }
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace grebe::engine

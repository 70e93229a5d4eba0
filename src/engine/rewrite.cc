// grebe::RewriteTable: checks what is asked for, lays out one group of files after another, gives
// the new files their names and publishes their index.
#include <arrow/util/key_value_metadata.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "base/hash.h"
#include "engine/engine.h"
#include "engine/rewrite_estimate.h"
#include "engine/rewrite_files.h"
#include "engine/rewrite_folder.h"
#include "engine/rewrite_partitions.h"
#include "engine/rewrite_source.h"
#include "engine/rewrite_target.h"
#include "engine/rewrite_tree.h"
#include "engine/table_context.h"
#include "grebe/rewrite.h"
#include "grebe/version.h"
#include "layout/cogroup.h"
#include "layout/dictionaries.h"
#include "layout/layout_spec.h"
#include "layout/memory_share.h"
#include "layout/rewrite_job.h"
#include "parquet/write_preset.h"

namespace grebe {
namespace {

using Json = nlohmann::ordered_json;
using engine::RewriteGroup;
using layout::LayoutKind;
using layout::LayoutSpec;

constexpr int64_t kDefaultFileBytes = 128 << 20;
// The part of the memory limit that an index of the new files may take.
constexpr int64_t kIndexMemoryShare = 8;
// The part that the source's footers may take, and about what one takes with the file's last bytes.
constexpr int64_t kFooterMemoryShare = 16;
constexpr int64_t kFooterBytes = 128 << 10;

class Rewriter {
 public:
  explicit Rewriter(const RewriteRequest& request) : request_(request) {}

  Result<RewriteSummary> Run() {
    ARROW_RETURN_NOT_OK(Check());
    ARROW_RETURN_NOT_OK(OpenPlaces());
    ARROW_ASSIGN_OR_RAISE(snapshot_, table::ReadSnapshot(from_));
    if (snapshot_.files.empty()) {
      return NotFound("no Parquet files in the table", "path", store::DisplayUri(from_));
    }
    std::vector<size_t> apart;
    if (!request_.file_groups.empty()) {
      ARROW_ASSIGN_OR_RAISE(apart, engine::KeepFiles(request_.file_groups, &snapshot_));
    }
    ARROW_ASSIGN_OR_RAISE(groups_,
                          engine::GroupFiles(snapshot_, request_.layout.partitions, apart));
    ARROW_RETURN_NOT_OK(FindTree());
    ARROW_RETURN_NOT_OK(CheckColumns());
    CountInput();
    if (!request_.run.dry_run) {
      ARROW_ASSIGN_OR_RAISE(folder_, engine::RewriteFolder::Open(to_, PlanText()));
    }
    const Status status = RunGroups();
    if (!status.ok()) {
      if (folder_ != nullptr) ARROW_UNUSED(folder_->RemoveIfEmpty());
      return status;
    }
    if (folder_ != nullptr) ARROW_RETURN_NOT_OK(Publish());
    return std::move(summary_);
  }

 private:
  Status Check();
  Status CheckSizes();
  Status OpenPlaces();
  LayoutSpec Settled(LayoutSpec spec) const;
  Status FindTree();
  Status CheckColumns() const;
  void CountInput();
  std::string PlanText() const;
  std::string NameMark(size_t group) const;
  std::string LeftOut(size_t group);
  Status RunGroups();
  Status RunGroup(size_t group);
  Status WriteNoRows();
  Result<std::unique_ptr<engine::RewriteSource>> OpenGroup(const RewriteGroup& group);
  layout::RewriteOptions JobOptions(const engine::RewriteSource& source);
  Result<engine::RewriteFileOptions> FileOptions(const engine::RewriteSource& source) const;
  Status MakeIndex(const engine::RewriteFileOptions& file);
  Status Estimate(engine::RewriteSource& source, const layout::PreparedRewrite& prepared,
                  const layout::RewriteOptions& options, const engine::RewriteFileOptions& file);
  bool SkipFile(const std::string& path, const Status& error);
  Status Publish();
  Status PublishIndex();

  int threads() const {
    if (request_.run.threads > 0) return request_.run.threads;
    return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  }
  // Without what an index of the new files takes.
  int64_t job_memory_bytes() const {
    const int64_t all = request_.run.memory_bytes_max;
    return request_.index_key.empty() ? all : all - all / kIndexMemoryShare;
  }
  bool page_per_key() const { return pages_ == "per-key"; }

  const RewriteRequest& request_;
  layout::RowOrder::Request order_;
  std::string pages_;
  int64_t row_group_rows_ = 0;
  pq::WriteOptions write_;
  store::Location from_, to_;
  table::Snapshot snapshot_;
  engine::RewriteGroups groups_;
  std::unique_ptr<engine::RewriteFolder> folder_;
  std::unique_ptr<engine::RewriteIndex> index_;
  RewriteSummary summary_;
  std::mutex mutex_;
  double bytes_per_row_ = 0;       // of the source's files
  BuildProgress progress_;
  int64_t rows_before_ = 0;        // of groups that are done, counted twice
};

Status Rewriter::Check() {
  ARROW_ASSIGN_OR_RAISE(order_.by, layout::ParseLayout(request_.layout.by));
  if (!request_.layout.then.empty()) {
    ARROW_ASSIGN_OR_RAISE(order_.then, layout::ParseLayout(request_.layout.then));
    if (order_.then->has_sections() || !order_.by.has_sections()) {
      return InvalidArgument(
          "only buckets and a tree's leaves are laid out a second time, by a sort or a curve",
          "by", request_.layout.by, "then", request_.layout.then);
    }
    order_.then = Settled(*order_.then);
  }
  if (request_.layout.mode != "rank" && request_.layout.mode != "raw") {
    return InvalidArgument("a curve's mode is rank or raw", "mode", request_.layout.mode);
  }
  order_.by = Settled(order_.by);
  if (request_.run.memory_bytes_max < layout::kRewriteMemoryMin) {
    return InvalidArgument("a rewrite does not keep to so little memory", "memory_bytes_max",
                           request_.run.memory_bytes_max, "smallest",
                           layout::kRewriteMemoryMin);
  }
  return CheckSizes();
}

LayoutSpec Rewriter::Settled(LayoutSpec spec) const {
  spec.mode = request_.layout.mode == "raw" ? layout::CurveMode::kRaw : layout::CurveMode::kRank;
  // A curve through one column is its order.
  if (spec.is_curve() && spec.columns.size() == 1) spec.kind = LayoutKind::kSort;
  return spec;
}

Status Rewriter::CheckSizes() {
  const RewriteSizes& sizes = request_.sizes;
  const auto preset = pq::PresetOf(sizes.preset);
  if (!preset) return InvalidArgument("a preset is analytics or serving", "preset", sizes.preset);
  write_ = preset->options;
  write_.pool = layout::RowPool();
  if (sizes.target_file_bytes < 0 || sizes.target_file_rows < 0 || sizes.row_group_rows < 0 ||
      sizes.page_bytes < 0) {
    return InvalidArgument("sizes are not negative");
  }
  if (sizes.target_file_bytes > 0 && sizes.target_file_rows > 0) {
    return InvalidArgument("a file's target is given in bytes or in rows, not both");
  }
  pages_ = !sizes.pages.empty() ? sizes.pages : preset->aligned_pages ? "aligned" : "free";
  if (pages_ != "aligned" && pages_ != "per-key" && pages_ != "free") {
    return InvalidArgument("pages are aligned, per-key or free", "pages", pages_);
  }
  row_group_rows_ = sizes.row_group_rows > 0 ? sizes.row_group_rows : preset->row_group_rows;
  if (sizes.page_bytes > 0) {
    write_.page_bytes_max = sizes.page_bytes;
    write_.page_rows_max = std::max(write_.page_rows_max, sizes.page_bytes);
  }
  write_.bloom_columns = sizes.bloom;
  // A sort, or buckets that are sorted: rows of one key lie together.
  const LayoutSpec& inner = order_.then ? *order_.then : order_.by;
  const bool keys_together = !inner.is_curve() && inner.kind != LayoutKind::kTree;
  if (page_per_key() && !keys_together) {
    return InvalidArgument("one page a key needs rows that are sorted by the key", "by",
                           request_.layout.by);
  }
  if (!request_.layout.cogroup.empty()) {
    const bool in_leaves = order_.by.kind == LayoutKind::kTree;   // a key's rows lie in several
    if (!keys_together || in_leaves || inner.columns.front() != request_.layout.cogroup) {
      return InvalidArgument("a cogroup needs rows that are sorted by its key first", "cogroup",
                             request_.layout.cogroup, "by", request_.layout.by);
    }
    if (!request_.layout.cogroup_order.empty()) {
      // The rest of the order within a key.
      LayoutSpec sorted = inner;
      sorted.kind = LayoutKind::kSort;
      sorted.columns = {request_.layout.cogroup, request_.layout.cogroup_order};
      (order_.by.kind == LayoutKind::kBucket ? order_.then.emplace() : order_.by) = sorted;
    }
  }
  return Status::OK();
}

Status Rewriter::OpenPlaces() {
  if (request_.table_uri.empty() || request_.to_uri.empty()) {
    return InvalidArgument("a table and a folder to write to are needed");
  }
  const auto options = engine::ToStoreOptions(request_.connect);
  ARROW_ASSIGN_OR_RAISE(from_, store::OpenLocation(request_.table_uri, options));
  ARROW_ASSIGN_OR_RAISE(to_, store::OpenLocation(request_.to_uri, options));
  return engine::CheckApart(from_, to_);
}

Status Rewriter::FindTree() {
  if (order_.by.kind != LayoutKind::kTree) return Status::OK();
  ARROW_ASSIGN_OR_RAISE(
      engine::TreeLog log,
      engine::ReadTreeLog(order_.by.log, engine::ToStoreOptions(request_.connect)));
  if (log.saved) {
    order_.tree = log.saved->tree;
  } else {
    ARROW_ASSIGN_OR_RAISE(const auto source, OpenGroup({"", snapshot_.files}));
    ARROW_ASSIGN_OR_RAISE(order_.tree, engine::LearnTree(log.queries, groups_, *source,
                                                         JobOptions(*source)));
    if (order_.tree == nullptr) return Status::OK();   // no rows
  }
  if (!order_.then) {
    order_.then = Settled(log.saved ? log.saved->then : engine::OrderWithin(*order_.tree));
  }
  return Status::OK();
}

Status Rewriter::CheckColumns() const {
  for (const std::string& column : layout::RowOrder::ColumnsUsed(order_)) {
    if (std::find(groups_.kept.begin(), groups_.kept.end(), column) != groups_.kept.end()) {
      return InvalidArgument(
          "a partition column that keeps its folders orders nothing within them: leave it out, or "
          "lay partitions out together (partitions=none)", "column", column);
    }
  }
  return Status::OK();
}

void Rewriter::CountInput() {
  summary_.dry_run = request_.run.dry_run;
  summary_.files_in = static_cast<int64_t>(snapshot_.files.size());
  for (const auto& file : snapshot_.files) summary_.bytes_in += file.identity.size_bytes;
  progress_.bytes_total = 2 * summary_.bytes_in;
}

// Everything that decides what is written: a rewrite is taken up again only if this is the same.
std::string Rewriter::PlanText() const {
  const RewriteLayout& layout = request_.layout;
  const RewriteSizes& sizes = request_.sizes;
  Json json = {{"format", 1},
               {"writer", std::string("grebe ") + Version()},
               {"table", store::DisplayUri(from_)},
               {"snapshot", snapshot_.id},
               {"by", order_.by.ToString()},
               {"then", order_.then ? order_.then->ToString() : ""},
               {"mode", layout.mode},
               {"partitions", layout.partitions},
               {"cogroup", layout.cogroup},
               {"ungroup", layout.ungroup},
               {"preset", sizes.preset},
               {"target_file_bytes", sizes.target_file_bytes},
               {"target_file_rows", sizes.target_file_rows},
               {"row_group_rows", row_group_rows_},
               {"page_bytes", sizes.page_bytes},
               {"pages", pages_},
               {"bloom", sizes.bloom},
               {"skip_bad_files", request_.run.skip_bad_files}};
  if (!request_.file_groups.empty()) json["files"] = request_.file_groups;
  if (order_.tree) json["tree"] = Checksum(engine::TreeText({order_.tree, *order_.then}));
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

// A checksum of the group's files that were skipped; "" when none was.
std::string Rewriter::LeftOut(size_t group) {
  std::set<std::string> skipped;
  {
    std::lock_guard lock(mutex_);
    for (const SkippedFile& file : summary_.skipped) skipped.insert(file.path);
  }
  std::string paths;
  for (const store::Object& file : groups_.groups[group].files) {
    if (skipped.contains(file.path)) paths += file.path + '\n';
  }
  return paths.empty() ? "" : std::to_string(Checksum(paths));
}

// What sets the names of a part's new files apart from those of every other rewrite of the table.
std::string Rewriter::NameMark(size_t group) const {
  if (request_.file_groups.empty()) return "";
  char mark[48];
  std::snprintf(mark, sizeof(mark), "%016llx-%05zu-",
                static_cast<unsigned long long>(Checksum(PlanText())), group);
  return mark;
}

bool Rewriter::SkipFile(const std::string& path, const Status& error) {
  if (!request_.run.skip_bad_files) return false;
  std::lock_guard lock(mutex_);
  for (const SkippedFile& file : summary_.skipped) {
    if (file.path == path) return true;
  }
  summary_.skipped.push_back({path, error.message()});
  return true;
}

Result<std::unique_ptr<engine::RewriteSource>> Rewriter::OpenGroup(const RewriteGroup& group) {
  engine::RewriteSourceOptions options;
  options.ungroup = request_.layout.ungroup;
  options.footers_kept_max =
      static_cast<size_t>(request_.run.memory_bytes_max / kFooterMemoryShare / kFooterBytes);
  options.threads = threads();
  options.held_bytes_max = layout::MemoryShare::Of(job_memory_bytes(), threads()).reading_bytes;
  options.stop = request_.run.stop;
  options.skip_file = [this](const std::string& path, const Status& error) {
    return SkipFile(path, error);
  };
  return engine::RewriteSource::Make(snapshot_.root, group.files, groups_.columns, options);
}

layout::RewriteOptions Rewriter::JobOptions(const engine::RewriteSource& source) {
  layout::RewriteOptions options;
  options.order = order_;
  int64_t rows = 0;
  for (int file = 0; file < source.file_count(); ++file) rows += source.row_count(file);
  const RewriteSizes& sizes = request_.sizes;
  if (sizes.target_file_rows > 0) {
    options.target_file_rows = sizes.target_file_rows;
  } else {
    const int64_t bytes = sizes.target_file_bytes > 0 ? sizes.target_file_bytes : kDefaultFileBytes;
    const double row_bytes =
        std::max(1.0, static_cast<double>(source.size_bytes()) /
                          static_cast<double>(std::max<int64_t>(rows, 1)));
    options.target_file_rows =
        std::max<int64_t>(1, std::llround(static_cast<double>(bytes) / row_bytes));
  }
  options.target_row_group_rows = row_group_rows_;
  options.unparted_columns = request_.layout.cogroup.empty() ? 0 : 1;
  options.key_ends = page_per_key() || !request_.layout.cogroup.empty() || pages_ == "aligned";
  options.memory_bytes_max = job_memory_bytes();
  options.spill_folder = request_.run.spill_folder;
  options.threads = threads();
  options.stop = request_.run.stop;
  options.skip_file = [this, &source](int file, const Status& error) {
    return SkipFile(source.path(file), error);
  };
  if (request_.run.progress) {
    options.progress = [this](int64_t rows_done) {
      progress_.rows = (rows_before_ + rows_done) / 2;
      progress_.bytes_done = std::min(
          progress_.bytes_total,
          static_cast<int64_t>(static_cast<double>(rows_before_ + rows_done) * bytes_per_row_));
      request_.run.progress(progress_);
    };
  }
  return options;
}

Result<engine::RewriteFileOptions> Rewriter::FileOptions(
    const engine::RewriteSource& source) const {
  engine::RewriteFileOptions options;
  options.rows_schema = source.schema();
  options.file_schema = source.full_schema();
  options.order = order_;
  options.cogroup = request_.layout.cogroup;
  options.pages_aligned = pages_ == "aligned";
  options.page_per_key = page_per_key();
  auto key_values = std::make_shared<arrow::KeyValueMetadata>();
  for (int64_t i = 0; i < source.key_values()->size(); ++i) {
    const std::string& key = source.key_values()->key(i);
    if (key != engine::kLayoutKey && key != layout::kCogroupKey) {
      key_values->Append(key, source.key_values()->value(i));
    }
  }
  if (!options.cogroup.empty()) {
    ARROW_ASSIGN_OR_RAISE(options.file_schema,
                          layout::CogroupedSchema(source.full_schema(), options.cogroup));
    key_values->Append(layout::kCogroupKey,
                       layout::CogroupMetadata(*source.full_schema(), options.cogroup));
  }
  options.key_values = std::move(key_values);
  options.write = write_;
  const LayoutSpec& inner = order_.then ? *order_.then : order_.by;
  if (!inner.is_curve()) {
    for (const std::string& column : inner.columns) {
      if (!options.cogroup.empty() && column != options.cogroup) break;
      options.write.sorting_columns.push_back({column, false, /*nulls_first=*/true});
    }
  }
  return options;
}

Status Rewriter::RunGroups() {
  for (size_t group = 0; group < groups_.groups.size(); ++group) {
    ARROW_RETURN_NOT_OK(RunGroup(group));
  }
  return summary_.rows_in == 0 ? WriteNoRows() : Status::OK();
}

// A table without rows has a schema: one file keeps it, in the first group's folder.
Status Rewriter::WriteNoRows() {
  const std::string& folder = groups_.groups.front().folder;
  ARROW_ASSIGN_OR_RAISE(const auto source, OpenGroup({folder, snapshot_.files}));
  ARROW_ASSIGN_OR_RAISE(const engine::RewriteFileOptions file, FileOptions(*source));
  if (request_.run.dry_run) {
    summary_.files_out = 1;
    return Status::OK();
  }
  engine::GroupTarget target(folder_.get(), 0, folder, NameMark(0), file,
                             [&] { return LeftOut(0); }, index_.get());
  ARROW_RETURN_NOT_OK(target.BeginWriting());
  if (target.IsFinished(0)) {
    summary_.files_resumed = 1;
    return Status::OK();
  }
  ARROW_ASSIGN_OR_RAISE(const auto written, target.Create(0, 0));
  return written->Finish();
}

Status Rewriter::Estimate(engine::RewriteSource& source, const layout::PreparedRewrite& prepared,
                          const layout::RewriteOptions& options,
                          const engine::RewriteFileOptions& file) {
  ARROW_ASSIGN_OR_RAISE(const auto estimate,
                        engine::EstimateRewrite(source, prepared, options, file));
  summary_.rows_in += prepared.row_count;
  summary_.rows_out += estimate.rows;
  summary_.files_out += estimate.files;
  summary_.bytes_out += estimate.bytes;
  summary_.partitions += static_cast<int64_t>(prepared.plan.partitions.size());
  summary_.spilled_bytes += estimate.spilled_bytes;
  summary_.memory_bytes = std::max(summary_.memory_bytes, estimate.memory_bytes);
  return Status::OK();
}

Status Rewriter::MakeIndex(const engine::RewriteFileOptions& file) {
  if (request_.index_key.empty() || index_ != nullptr) return Status::OK();
  for (const std::string& column : request_.index_key) {
    const bool kept = std::ranges::find(groups_.kept, column) != groups_.kept.end();
    if (!kept || file.file_schema->GetFieldIndex(column) >= 0) continue;
    return InvalidArgument(
        "an index written in the same pass has the files' columns only, and this is a partition "
        "column that keeps its folders: make one with 'grebe index create' afterwards", "column",
        column);
  }
  index::FragmentOptions options;
  options.memory_bytes_max = request_.run.memory_bytes_max / kIndexMemoryShare;
  options.spill_folder = request_.run.spill_folder;
  options.threads = threads();
  options.stop = request_.run.stop;
  ARROW_ASSIGN_OR_RAISE(index_, engine::RewriteIndex::Make(request_.index_key, *file.file_schema,
                                                           options));
  return Status::OK();
}

Status Rewriter::RunGroup(size_t group) {
  ARROW_ASSIGN_OR_RAISE(auto source, OpenGroup(groups_.groups[group]));
  const layout::RewriteOptions options = JobOptions(*source);
  ARROW_ASSIGN_OR_RAISE(const engine::RewriteFileOptions file, FileOptions(*source));
  if (!request_.run.dry_run) ARROW_RETURN_NOT_OK(MakeIndex(file));
  bytes_per_row_ = static_cast<double>(source->size_bytes());
  int64_t rows = 0;
  for (int i = 0; i < source->file_count(); ++i) rows += source->row_count(i);
  bytes_per_row_ /= static_cast<double>(std::max<int64_t>(rows, 1));
  if (rows == 0) return Status::OK();
  ARROW_ASSIGN_OR_RAISE(const auto prepared, layout::PrepareRewrite(*source, options));
  summary_.row_bytes_memory = std::llround(prepared.row_bytes);
  if (request_.run.dry_run) return Estimate(*source, prepared, options, file);
  engine::GroupTarget target(folder_.get(), static_cast<int>(group), groups_.groups[group].folder,
                             NameMark(group), file, [&] { return LeftOut(group); },
                             index_.get());
  ARROW_ASSIGN_OR_RAISE(const auto result,
                        layout::RunRewrite(*source, target, prepared, options));
  summary_.rows_in += result.row_count;
  summary_.files_resumed += result.files_kept;
  summary_.partitions += result.partitions;
  summary_.spilled_bytes += result.spilled_bytes;
  summary_.memory_bytes = layout::RowPool()->max_memory();
  rows_before_ += 2 * result.row_count;
  return Status::OK();
}

Status Rewriter::Publish() {
  if (order_.tree) {
    ARROW_RETURN_NOT_OK(engine::KeepTree({order_.tree, *order_.then}, folder_.get()));
  }
  for (const auto& file : folder_->files()) {
    if (file.path == engine::kTreeFile) continue;
    summary_.files_out += 1;
    summary_.rows_out += file.row_count;
    summary_.bytes_out += file.identity.size_bytes;
  }
  ARROW_RETURN_NOT_OK(folder_->NameFiles());
  if (!request_.index_key.empty()) ARROW_RETURN_NOT_OK(PublishIndex());
  return folder_->Close();
}

Status Rewriter::PublishIndex() {
  IndexRef ref;
  ref.table_uri = request_.to_uri;
  ref.connect = request_.connect;
  ARROW_ASSIGN_OR_RAISE(const auto context, engine::ResolveTable(ref));
  const std::string name = request_.index_name.empty()
                               ? engine::DefaultIndexName(request_.index_key)
                               : request_.index_name;
  ARROW_RETURN_NOT_OK(engine::CheckIndexName(name));
  summary_.index = name;
  ARROW_ASSIGN_OR_RAISE(const auto names, engine::ListIndexNames(context));
  if (std::find(names.begin(), names.end(), name) != names.end()) return Status::OK();
  if (summary_.files_resumed > 0) {
    // Keys of files that an earlier run wrote went with it: the new files are read.
    CreateOptions options;
    options.key = request_.index_key;
    options.build.memory_bytes_max = request_.run.memory_bytes_max;
    options.build.spill_folder = request_.run.spill_folder;
    options.build.threads = request_.run.threads;
    options.build.stop = request_.run.stop;
    return engine::CreateIndexAt(context, name, options).status();
  }
  ARROW_ASSIGN_OR_RAISE(auto snapshot, table::ReadSnapshot(context.table));
  ARROW_ASSIGN_OR_RAISE(const auto built, index_->Finish(engine::IndexFolder(context, name)));
  return engine::PublishIndexAt(context, name, snapshot, index_->spec(), built).status();
}

}  // namespace

arrow::Result<RewriteSummary> RewriteTable(const RewriteRequest& request) {
  return Rewriter(request).Run();
}

std::string RewriteSummary::ToJson() const {
  Json json = {{"dry_run", dry_run},
               {"files_in", files_in},
               {"files_out", files_out},
               {"files_resumed", files_resumed},
               {"rows_in", rows_in},
               {"rows_out", rows_out},
               {"bytes_in", bytes_in},
               {"bytes_out", bytes_out},
               {"row_bytes_memory", row_bytes_memory},
               {"partitions", partitions},
               {"spilled_bytes", spilled_bytes},
               {"memory_bytes", memory_bytes}};
  if (!index.empty()) json["index"] = index;
  Json skipped_json = Json::array();
  for (const auto& file : skipped) {
    skipped_json.push_back({{"path", file.path}, {"reason", file.reason}});
  }
  json["skipped"] = std::move(skipped_json);
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace grebe

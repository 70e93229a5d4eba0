// Listing, describing and verifying indexes: nothing here changes one, but for removing orphans.
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "engine/index_report.h"
#include "engine/known_files.h"
#include "engine/table_context.h"
#include "grebe/index.h"
#include "index/fragment.h"
#include "index/manifest.h"
#include "table/snapshot.h"

namespace grebe {
namespace {

using engine::TableContext;
using index::Manifest;
using Json = nlohmann::ordered_json;

std::string Dump(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace);
}

Json SkippedJson(const std::vector<SkippedFile>& skipped) {
  Json out = Json::array();
  for (const auto& file : skipped) out.push_back({{"path", file.path}, {"reason", file.reason}});
  return out;
}

Status VerifyFragments(const TableContext& context, const engine::FoundIndex& found,
                       VerifyReport* report, std::map<std::string, store::Identity>* indexed) {
  const store::Location folder = engine::IndexFolder(context, found.name);
  std::set<std::pair<std::string, uint32_t>> dead;
  for (const auto& file : found.manifest.dead_files) dead.emplace(file.fragment, file.file);
  for (const auto& info : found.manifest.fragments) {
    ++report->fragments_checked;
    auto object = std::make_shared<store::Object>();
    object->path = folder.path + "/" + info.path;
    const auto check = [&]() -> Status {
      ARROW_ASSIGN_OR_RAISE(auto fragment, engine::OpenFragment(folder, info));
      for (uint32_t i = 0; i < fragment->files().size(); ++i) {
        if (dead.contains({info.path, i})) continue;
        const auto& file = fragment->files()[i];
        indexed->emplace(file.path, file.identity);
      }
      return index::VerifyFragment(*folder.store, info, {object, {0, info.size_bytes}});
    };
    const Status status = check();
    if (status.ok()) continue;
    const ErrorKind kind = KindOf(status);
    if (kind != ErrorKind::kCorrupt && kind != ErrorKind::kNotFound &&
        kind != ErrorKind::kUnsupported) {
      return status;
    }
    report->corrupt.push_back(info.path + ": " + status.message());
  }
  return Status::OK();
}

}  // namespace

namespace engine {

IndexDescription Describe(const std::string& name, const Manifest& manifest) {
  IndexDescription out;
  out.name = name;
  out.version = manifest.version;
  for (const auto& column : manifest.key) out.key.push_back(column.name + " " + column.type);
  out.covering = manifest.covering;
  out.sorted = manifest.sorted;
  out.table_uri = manifest.table_uri;
  out.table_kind = manifest.table_kind;
  out.created_at = manifest.created_at;
  out.writer = manifest.writer;
  for (const auto& info : manifest.fragments) {
    out.fragments.push_back(
        {info.path, info.size_bytes, info.row_count, info.key_count, info.file_count});
    out.files += info.file_count;
    out.rows += info.row_count;
    out.keys += info.key_count;
    out.index_bytes += info.size_bytes;
  }
  out.files -= static_cast<int64_t>(manifest.dead_files.size());
  for (const auto& file : manifest.dead_files) out.rows -= file.row_count;
  if (out.rows > 0) out.bytes_per_row = static_cast<double>(out.index_bytes) / out.rows;
  for (const auto& file : manifest.skipped_files) out.skipped.push_back({file.path, file.reason});
  return out;
}

}  // namespace engine

std::string IndexDescription::ToJson() const {
  Json fragments_json = Json::array();
  for (const auto& fragment : fragments) {
    fragments_json.push_back({{"path", fragment.path},
                              {"size_bytes", fragment.size_bytes},
                              {"rows", fragment.rows},
                              {"keys", fragment.keys},
                              {"files", fragment.files}});
  }
  return Dump({{"name", name},
               {"version", version},
               {"key", key},
               {"covering", covering},
               {"sorted", sorted},
               {"table", table_uri},
               {"kind", table_kind},
               {"created_at", created_at},
               {"writer", writer},
               {"files", files},
               {"rows", rows},
               {"keys", keys},
               {"index_bytes", index_bytes},
               {"bytes_per_row", bytes_per_row},
               {"fragments", fragments_json},
               {"skipped", SkippedJson(skipped)}});
}

std::string VerifyReport::ToJson() const {
  return Dump({{"ok", ok()},
               {"files_checked", files_checked},
               {"fragments_checked", fragments_checked},
               {"stale_files", stale_files},
               {"missing_files", missing_files},
               {"unindexed_files", unindexed_files},
               {"corrupt", corrupt},
               {"orphans", orphans},
               {"orphans_removed", orphans_removed}});
}

Result<IndexDescription> ShowIndex(const IndexRef& ref) {
  ARROW_ASSIGN_OR_RAISE(TableContext context, engine::ResolveTable(ref));
  ARROW_ASSIGN_OR_RAISE(auto found, engine::FindIndex(context, ref.name, {}));
  return engine::Describe(found.name, found.manifest);
}

Result<std::vector<IndexDescription>> ListIndexes(const IndexRef& ref) {
  ARROW_ASSIGN_OR_RAISE(TableContext context, engine::ResolveTable(ref));
  ARROW_ASSIGN_OR_RAISE(auto names, engine::ListIndexNames(context));
  std::vector<IndexDescription> out;
  for (const std::string& name : names) {
    index::ManifestLog log(engine::IndexFolder(context, name));
    ARROW_ASSIGN_OR_RAISE(auto manifest, log.ReadNewest());
    if (manifest) out.push_back(engine::Describe(name, *manifest));
  }
  return out;
}

Result<VerifyReport> VerifyIndex(const IndexRef& ref, const VerifyOptions& options) {
  ARROW_ASSIGN_OR_RAISE(TableContext context, engine::ResolveTable(ref));
  ARROW_ASSIGN_OR_RAISE(auto found, engine::FindIndex(context, ref.name, {}));
  VerifyReport report;
  std::map<std::string, store::Identity> indexed;
  ARROW_RETURN_NOT_OK(VerifyFragments(context, found, &report, &indexed));

  ARROW_ASSIGN_OR_RAISE(auto snapshot, table::ReadSnapshot(context.table));
  std::set<std::string> skipped;
  for (const auto& file : found.manifest.skipped_files) skipped.insert(file.path);
  for (const store::Object& file : snapshot.files) {
    const auto entry = indexed.find(file.path);
    if (entry == indexed.end()) {
      if (!skipped.contains(file.path)) report.unindexed_files.push_back(file.path);
      continue;
    }
    ++report.files_checked;
    if (entry->second != file.identity) report.stale_files.push_back(file.path);
    indexed.erase(entry);
  }
  for (const auto& [path, identity] : indexed) report.missing_files.push_back(path);

  const store::Location folder = engine::IndexFolder(context, found.name);
  std::vector<std::string> fragments;
  for (const auto& info : found.manifest.fragments) fragments.push_back(info.path);
  std::vector<std::string> damaged;
  ARROW_RETURN_NOT_OK(engine::ReadStats(folder, fragments, &damaged).status());
  for (const std::string& path : damaged) {
    report.corrupt.push_back(path + ": a statistics object is damaged");
  }
  index::ManifestLog log(folder);
  ARROW_ASSIGN_OR_RAISE(auto orphans, log.FindOrphans(options.orphan_age_seconds));
  for (const store::Object& orphan : orphans) {
    report.orphans.push_back(orphan.path);
    if (!options.clean) continue;
    ARROW_RETURN_NOT_OK(folder.store->Delete(orphan.path));
    ++report.orphans_removed;
  }
  return report;
}

}  // namespace grebe

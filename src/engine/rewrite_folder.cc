#include "engine/rewrite_folder.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "base/failpoint.h"

namespace grebe::engine {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kStateFolder = "_grebe_rewrite";

std::string Dump(const Json& json) {
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

// Local paths by what they lead to: a link to the table is the table.
std::string RealPath(const store::Location& location) {
  if (location.store->kind() != "file") return location.path + "/";
  std::error_code ignored;
  const auto real = std::filesystem::weakly_canonical(location.path, ignored);
  return (real.empty() ? location.path : real.string()) + "/";
}

}  // namespace

Status CheckApart(const store::Location& table, const store::Location& to) {
  // Two buckets of one store kind have different stores, or different display URIs.
  const bool one_place = table.store->kind() == to.store->kind() &&
                         table.store->Uri("") == to.store->Uri("");
  if (!one_place) return Status::OK();
  const std::string from_path = RealPath(table), to_path = RealPath(to);
  if (from_path.starts_with(to_path) || to_path.starts_with(from_path)) {
    return InvalidArgument("the folder to write to must lie apart from the table", "table",
                           store::DisplayUri(table), "to", store::DisplayUri(to));
  }
  return Status::OK();
}

std::string RewriteFolder::Inside(const std::string& path) const {
  return to_.path.empty() ? path : to_.path + "/" + path;
}

std::string RewriteFolder::DataPath(const RewrittenFile& file) const {
  if (!to_.store->can_rename()) return Inside(file.path);
  return Inside(std::string(kStateFolder) + "/data/" + file.name);
}

Result<std::unique_ptr<store::Upload>> RewriteFolder::Begin(const RewrittenFile& file) {
  file_begun_.store(true);
  return to_.store->StartUpload(DataPath(file));
}

Result<std::unique_ptr<RewriteFolder>> RewriteFolder::Open(const store::Location& to,
                                                           const std::string& plan) {
  std::unique_ptr<RewriteFolder> folder(new RewriteFolder(to));
  const std::string plan_path = folder->Inside(std::string(kStateFolder) + "/plan.json");
  ARROW_ASSIGN_OR_RAISE(const auto listed,
                        to.store->List(to.path.empty() ? "" : to.path + "/"));
  const bool begun = std::any_of(listed.begin(), listed.end(),
                                 [&](const auto& object) { return object.path == plan_path; });
  if (!begun) {
    // A run that was killed before its plan was there, or after it was gone, left only traces.
    const std::string state = folder->Inside(std::string(kStateFolder) + "/");
    if (std::any_of(listed.begin(), listed.end(),
                    [&](const auto& object) { return object.path.starts_with(state); })) {
      ARROW_RETURN_NOT_OK(to.store->DeleteFolder(folder->Inside(kStateFolder)));
    }
    for (const store::Object& object : listed) {
      if (object.path.starts_with(state)) continue;
      return InvalidArgument("the folder to write to is not empty", "folder",
                             store::DisplayUri(to), "holds", object.path);
    }
    ARROW_RETURN_NOT_OK(to.store->Put(plan_path, plan, store::PutMode::kIfAbsent).status());
    GREBE_FAILPOINT("rewrite.after_plan");
    return folder;
  }
  const std::string paths[] = {plan_path};
  auto found = std::move(to.store->ReadWhole(paths)[0]);
  ARROW_RETURN_NOT_OK(found.status());
  if (found->bytes->ToString() != plan) {
    return InvalidArgument(
        "the folder holds an unfinished rewrite of something else (the table, or an option, has "
        "changed): remove the folder, or choose another", "folder", store::DisplayUri(to));
  }
  ARROW_RETURN_NOT_OK(folder->ReadFinished(listed));
  return folder;
}

Status RewriteFolder::ReadFinished(const std::vector<store::Object>& listed) {
  const std::string done = Inside(std::string(kStateFolder) + "/done/");
  const std::string data = Inside(std::string(kStateFolder) + "/data/");
  std::vector<std::string> paths;
  for (const store::Object& object : listed) {
    if (object.path.starts_with(done) && object.path.ends_with(".json")) {
      paths.push_back(object.path);
    }
  }
  std::set<std::string> kept;
  for (auto& record : to_.store->ReadWhole(paths)) {
    ARROW_RETURN_NOT_OK(record.status());
    const Json json = Json::parse(record->bytes->ToString(), nullptr, false);
    if (!json.is_object() || !json.contains("name") || !json.contains("tag")) {
      return Corrupt("a record of an unfinished rewrite cannot be read", "folder", done);
    }
    RewrittenFile file;
    file.name = json["name"].get<std::string>();
    file.path = json["path"].get<std::string>();
    file.row_count = json["rows"].get<int64_t>();
    file.identity.size_bytes = json["size_bytes"].get<int64_t>();
    file.identity.tag = json["tag"].get<std::string>();
    file.left_out = json.value("left_out", "");
    kept.insert(DataPath(file));
    files_[file.name] = std::move(file);
  }
  for (const store::Object& object : listed) {
    const bool half = object.path.starts_with(data) && !kept.contains(object.path);
    if (half || object.path.ends_with(".tmp")) {
      ARROW_RETURN_NOT_OK(to_.store->Delete(object.path));
    }
  }
  return Status::OK();
}

bool RewriteFolder::IsFinished(const std::string& name) const {
  std::lock_guard lock(mutex_);
  return files_.contains(name);
}

std::vector<RewrittenFile> RewriteFolder::files() const {
  std::lock_guard lock(mutex_);
  std::vector<RewrittenFile> out;
  for (const auto& [name, file] : files_) out.push_back(file);
  return out;
}

Status RewriteFolder::Finished(const RewrittenFile& file) {
  GREBE_FAILPOINT("rewrite.before_done");
  const Json json = {{"name", file.name},
                     {"path", file.path},
                     {"rows", file.row_count},
                     {"size_bytes", file.identity.size_bytes},
                     {"tag", file.identity.tag},
                     {"left_out", file.left_out}};
  ARROW_RETURN_NOT_OK(to_.store->Put(Inside(std::string(kStateFolder) + "/done/" + file.name +
                                            ".json"),
                                     Dump(json), store::PutMode::kOverwrite)
                          .status());
  GREBE_FAILPOINT("rewrite.after_done");
  std::lock_guard lock(mutex_);
  files_[file.name] = file;
  return Status::OK();
}

Status RewriteFolder::NameFiles() {
  if (!to_.store->can_rename()) return Status::OK();
  for (const RewrittenFile& file : files()) {
    const Status status = to_.store->Rename(DataPath(file), Inside(file.path));
    GREBE_FAILPOINT("rewrite.mid_name");
    if (status.ok()) continue;
    // Renamed by a run that was killed afterwards?
    auto named = to_.store->Stat(Inside(file.path));
    if (!named.ok() || named->identity != file.identity) return status;
  }
  return Status::OK();
}

Status RewriteFolder::Close() {
  GREBE_FAILPOINT("rewrite.before_close");
  const std::string state = Inside(kStateFolder);
  ARROW_RETURN_NOT_OK(to_.store->DeleteFolder(state + "/data"));
  // Without its plan the folder is what the files in it are: finished.
  ARROW_RETURN_NOT_OK(to_.store->Delete(state + "/plan.json"));
  GREBE_FAILPOINT("rewrite.mid_close");
  return to_.store->DeleteFolder(state);
}

Status RewriteFolder::RemoveIfEmpty() {
  if (!files().empty()) return Status::OK();
  // Where files have their final names at once, one may be there although it was never noted, or
  // may still come, from a request whose answer was lost: then the plan must stay beside it.
  if (!to_.store->can_rename()) {
    if (file_begun_.load()) return Status::OK();
    ARROW_ASSIGN_OR_RAISE(const auto listed,
                          to_.store->List(to_.path.empty() ? "" : to_.path + "/"));
    const std::string state = Inside(std::string(kStateFolder) + "/");
    for (const store::Object& object : listed) {
      if (!object.path.starts_with(state)) return Status::OK();
    }
  }
  return Close();
}

}  // namespace grebe::engine

#include "engine/rewrite_files.h"

#include <map>
#include <nlohmann/json.hpp>
#include <string_view>

#include "grebe/rewrite.h"

namespace grebe {
namespace {

using Json = nlohmann::json;

Status NotAPlan(std::string_view what) {
  return InvalidArgument("neither a plan of 'grebe layout plan --format json' nor a list of files",
                         "because", what);
}

Result<std::vector<std::vector<std::string>>> GroupsOfPlan(const std::string& text) {
  const Json plan = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (plan.is_discarded()) return NotAPlan("it is not valid JSON");
  const auto groups = plan.find("groups");
  if (groups == plan.end() || !groups->is_array()) return NotAPlan("it has no array 'groups'");
  std::vector<std::vector<std::string>> out;
  for (const Json& group : *groups) {
    const Json files = group.is_object() ? group.value("files", Json()) : Json();
    if (!files.is_array()) return NotAPlan("a group has no array 'files'");
    out.emplace_back();
    for (const Json& file : files) {
      if (!file.is_string()) return NotAPlan("a file's name is not a string");
      out.back().push_back(file.get<std::string>());
    }
  }
  return out;
}

std::vector<std::vector<std::string>> OneGroupOfLines(std::string_view text) {
  std::vector<std::string> files;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!line.empty()) files.emplace_back(line);
  }
  if (files.empty()) return {};
  return {std::move(files)};
}

}  // namespace

arrow::Result<std::vector<std::vector<std::string>>> ParsePlanFiles(const std::string& text) {
  const size_t first = text.find_first_not_of(" \t\r\n");
  std::vector<std::vector<std::string>> groups;
  if (first != std::string::npos && (text[first] == '{' || text[first] == '[')) {
    ARROW_ASSIGN_OR_RAISE(groups, GroupsOfPlan(text));
  } else {
    groups = OneGroupOfLines(text);
  }
  if (groups.empty()) return InvalidArgument("no files are named: there is nothing to rewrite");
  return groups;
}

namespace engine {

Result<std::vector<size_t>> KeepFiles(const std::vector<std::vector<std::string>>& groups,
                                      table::Snapshot* snapshot) {
  std::map<std::string_view, size_t> group_of;
  for (size_t group = 0; group < groups.size(); ++group) {
    if (groups[group].empty()) return InvalidArgument("a group of files to rewrite is empty");
    for (const std::string& path : groups[group]) {
      if (!group_of.emplace(path, group).second) {
        return InvalidArgument("a file to rewrite is named twice", "file", path);
      }
    }
  }
  std::vector<store::Object> kept;
  std::vector<size_t> kept_groups;
  for (store::Object& file : snapshot->files) {
    const auto found = group_of.find(file.path);
    if (found == group_of.end()) continue;
    kept_groups.push_back(found->second);
    group_of.erase(found);
    kept.push_back(std::move(file));
  }
  if (!group_of.empty()) {
    return NotFound("a file to rewrite is not in the table (was the plan made before files came "
                    "or went?)", "file", group_of.begin()->first, "missing", group_of.size());
  }
  snapshot->files = std::move(kept);
  snapshot->id = table::SnapshotId(snapshot->files);
  return kept_groups;
}

}  // namespace engine
}  // namespace grebe

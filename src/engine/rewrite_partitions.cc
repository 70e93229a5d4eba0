#include "engine/rewrite_partitions.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "store/uri.h"

namespace grebe::engine {
namespace {

constexpr std::string_view kHiveNull = "__HIVE_DEFAULT_PARTITION__";

// A new folder level: a partition column as it is, or the head of its date.
struct Level {
  std::string column;
  std::string suffix;        // "", "_year", "_month", "_day"
  size_t date_chars = 0;     // of YYYY-MM-DD; 0: the value as it is
};

Result<Level> ParseLevel(std::string_view text, const arrow::Schema& schema) {
  Level level;
  const size_t open = text.find('(');
  if (open == std::string_view::npos) {
    level.column = text;
  } else {
    const std::string_view name = text.substr(0, open);
    if (text.back() == ')') level.column = text.substr(open + 1, text.size() - open - 2);
    if (name == "year") level.date_chars = 4;
    if (name == "month") level.date_chars = 7;
    if (name == "day") level.date_chars = 10;
    if (level.date_chars == 0 || level.column.empty()) {
      return InvalidArgument("not a partition: COLUMN, year(COLUMN), month(COLUMN), day(COLUMN)",
                             "text", text);
    }
    level.suffix = "_" + std::string(name);
  }
  if (schema.GetFieldIndex(level.column) < 0) {
    return InvalidArgument("the table has no such partition column", "column", level.column);
  }
  return level;
}

bool IsDate(std::string_view text) {
  if (text.size() < 10) return false;
  for (size_t i = 0; i < 10; ++i) {
    const bool dash = i == 4 || i == 7;
    if (dash ? text[i] != '-' : text[i] < '0' || text[i] > '9') return false;
  }
  return true;
}

// "day_month=2026-01/" for one file.
Result<std::string> FolderOf(const Level& level, const std::vector<table::PartitionValue>& values,
                             const std::string& path) {
  std::optional<std::string> value;
  for (const auto& own : values) {
    if (own.name == level.column) value = own.value;
  }
  std::string folder = store::PercentEncode(level.column + level.suffix, false) + "=";
  if (!value) return folder + std::string(kHiveNull) + "/";
  if (level.date_chars > 0 && !IsDate(*value)) {
    return InvalidArgument("only dates (YYYY-MM-DD...) have a year, month or day", "column",
                           level.column, "value", *value, "file", path);
  }
  if (level.date_chars > 0) value->resize(level.date_chars);
  return folder + store::PercentEncode(*value, false) + "/";
}

// The Hive components of a path as they are written.
std::string HiveFolder(std::string_view path) {
  std::string folder;
  while (true) {
    const size_t slash = path.find('/');
    if (slash == std::string_view::npos) return folder;
    const std::string_view part = path.substr(0, slash);
    if (part.find('=') != std::string_view::npos) folder += std::string(part) + "/";
    path.remove_prefix(slash + 1);
  }
}

std::vector<std::string_view> SplitLevels(std::string_view text) {
  std::vector<std::string_view> out;
  while (true) {
    const size_t comma = text.find(',');
    out.push_back(text.substr(0, comma));
    if (comma == std::string_view::npos) return out;
    text.remove_prefix(comma + 1);
  }
}

}  // namespace

Result<RewriteGroups> GroupFiles(const table::Snapshot& snapshot, std::string_view partitions,
                                 const std::vector<size_t>& apart) {
  const bool keep = partitions == "keep" || snapshot.partitions.empty();
  std::vector<Level> levels;
  if (partitions != "keep" && partitions != "none") {
    for (const std::string_view text : SplitLevels(partitions)) {
      ARROW_ASSIGN_OR_RAISE(Level level, ParseLevel(text, *snapshot.partitions.schema));
      levels.push_back(std::move(level));
    }
  }
  RewriteGroups out;
  std::set<std::string> in_folders;
  for (const Level& level : levels) {
    if (level.date_chars == 0) in_folders.insert(level.column);
  }
  arrow::FieldVector columns;
  for (const auto& field : snapshot.partitions.schema->fields()) {
    if (keep || in_folders.contains(field->name())) {
      out.kept.push_back(field->name());
    } else {
      columns.push_back(field);
    }
  }
  out.columns.schema = arrow::schema(std::move(columns));
  std::map<std::pair<std::string, size_t>, std::vector<store::Object>> groups;
  for (size_t i = 0; i < snapshot.files.size(); ++i) {
    const store::Object& file = snapshot.files[i];
    std::string folder = keep ? HiveFolder(file.path) : "";
    if (!levels.empty()) {
      ARROW_ASSIGN_OR_RAISE(const auto values, table::ParsePartitions(file.path));
      for (const Level& level : levels) {
        ARROW_ASSIGN_OR_RAISE(const std::string part, FolderOf(level, values, file.path));
        folder += part;
      }
    }
    groups[{folder, apart.empty() ? 0 : apart[i]}].push_back(file);
  }
  for (auto& [key, files] : groups) out.groups.push_back({key.first, std::move(files)});
  return out;
}

}  // namespace grebe::engine

#include "engine/rewrite_tree.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "grebe/version.h"

namespace grebe::engine {
namespace {

using Json = nlohmann::ordered_json;
using layout::LayoutKind;
using layout::LayoutSpec;
using layout::TableTree;

constexpr int kFormat = 1;
// More columns than this serve none of them (docs/concepts/curves.md).
constexpr size_t kCurveColumnsMax = 4;

Status Unreadable(std::string_view why) {
  return Corrupt("the tree of a layout cannot be read", "why", why);
}

// A member that is a whole number from 0 to an int's largest; nullopt: it is none.
std::optional<int> IntAt(const Json& json, const char* name) {
  const auto found = json.find(name);
  if (found == json.end() || !found->is_number_unsigned()) return std::nullopt;
  const auto value = found->get<uint64_t>();
  if (value > static_cast<uint64_t>(INT32_MAX)) return std::nullopt;
  return static_cast<int>(value);
}

std::optional<std::string> TextAt(const Json& json, const char* name) {
  const auto found = json.find(name);
  if (found == json.end() || !found->is_string()) return std::nullopt;
  return found->get<std::string>();
}

Result<TableTree::Node> ParseNode(const Json& json) {
  if (!json.is_object()) return Unreadable("a node is no object");
  TableTree::Node node;
  if (const auto leaf = IntAt(json, "leaf")) {
    node.leaf = *leaf;
    return node;
  }
  const auto column = TextAt(json, "column"), value = TextAt(json, "value");
  const auto below = IntAt(json, "below"), above = IntAt(json, "above");
  if (!column || !value || !below || !above) return Unreadable("a node is neither leaf nor cut");
  return TableTree::Node{*column, *value, *below, *above, -1};
}

// The group of each file, by path.
std::map<std::string, size_t> GroupsOf(const RewriteGroups& groups) {
  std::map<std::string, size_t> out;
  for (size_t group = 0; group < groups.groups.size(); ++group) {
    for (const store::Object& file : groups.groups[group].files) out[file.path] = group;
  }
  return out;
}

// The rows of the group that a row drawn at random is in, on average, as a share of all. 0: there
// are none.
double GroupShare(const RewriteGroups& groups, const RewriteSource& source) {
  const auto group_of = GroupsOf(groups);
  std::vector<double> rows(groups.groups.size());
  double all = 0, squares = 0;
  for (int file = 0; file < source.file_count(); ++file) {
    const auto group = group_of.find(source.path(file));   // every file has one
    if (group == group_of.end()) continue;
    rows[group->second] += static_cast<double>(source.row_count(file));
  }
  for (const double count : rows) {
    all += count;
    squares += count * count;
  }
  return all > 0 ? squares / (all * all) : 0;
}

}  // namespace

Result<TreeLog> ReadTreeLog(const std::string& uri, const store::StoreOptions& options) {
  ARROW_ASSIGN_OR_RAISE(const store::Location location, store::OpenLocation(uri, options));
  const std::string paths[] = {location.path};
  auto read = std::move(location.store->ReadWhole(paths)[0]);
  if (!read.ok()) return AddContext(read.status(), "log", uri);
  const std::string text = read->bytes->ToString();
  TreeLog out;
  if (text.starts_with('{')) {
    auto saved = ParseTree(text);
    if (!saved.ok()) return AddContext(saved.status(), "file", uri);
    out.saved = *std::move(saved);
    return out;
  }
  auto queries = layout::ParseQueryLog(text);
  if (!queries.ok()) return AddContext(queries.status(), "log", uri);
  if (queries->empty()) return InvalidArgument("the query log has no predicate", "log", uri);
  out.queries = *std::move(queries);
  return out;
}

Result<std::shared_ptr<const TableTree>> LearnTree(const std::vector<layout::LoggedQuery>& queries,
                                                   const RewriteGroups& groups,
                                                   RewriteSource& source,
                                                   const layout::RewriteOptions& options) {
  std::vector<std::string> columns = layout::ColumnsOf(queries);
  std::erase_if(columns, [&](const std::string& column) {
    return std::ranges::find(groups.kept, column) != groups.kept.end();
  });
  if (columns.empty()) {
    return InvalidArgument("the queries of the log ask for nothing but partition columns, which "
                           "keep their folders: a tree could cut nothing");
  }
  const double share = GroupShare(groups, source);
  if (share == 0) return nullptr;
  ARROW_ASSIGN_OR_RAISE(const auto sample, layout::SampleRows(source, columns, options));
  const double target_rows =
      static_cast<double>(options.target_file_rows) / share / sample.weight;
  return TableTree::Learn(queries, columns, *sample.rows, target_rows);
}

LayoutSpec OrderWithin(const TableTree& tree) {
  LayoutSpec spec;
  spec.columns = tree.columns();
  spec.columns.resize(std::min(spec.columns.size(), kCurveColumnsMax));
  spec.kind = spec.columns.size() > 1 ? LayoutKind::kZOrder : LayoutKind::kSort;
  return spec;
}

std::string TreeText(const SavedTree& saved) {
  Json nodes = Json::array();
  for (const TableTree::Node& node : saved.tree->nodes()) {
    if (node.is_leaf()) {
      nodes.push_back({{"leaf", node.leaf}});
    } else {
      nodes.push_back({{"column", node.column},
                       {"value", node.value},
                       {"below", node.below},
                       {"above", node.above}});
    }
  }
  const Json json = {{"format", kFormat},
                     {"writer", std::string("grebe ") + Version()},
                     {"by", "tree"},
                     {"then", saved.then.ToString()},
                     {"columns", saved.tree->columns()},
                     {"nodes", std::move(nodes)}};
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<SavedTree> ParseTree(std::string_view text) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return Unreadable("it is no JSON object");
  if (TextAt(json, "by") != "tree") return Unreadable("it is of no tree");
  if (IntAt(json, "format") != kFormat) return Unreadable("its format is not known");
  const auto then = TextAt(json, "then");
  if (!then) return Unreadable("it has no order within leaves");
  SavedTree out;
  auto spec = layout::ParseLayout(*then);
  if (!spec.ok() || spec->has_sections()) return Unreadable("its order within leaves is none");
  out.then = *std::move(spec);
  const auto columns = json.find("columns"), nodes = json.find("nodes");
  if (columns == json.end() || !columns->is_array() || nodes == json.end() ||
      !nodes->is_array()) {
    return Unreadable("columns and nodes are needed");
  }
  std::vector<std::string> names;
  for (const Json& column : *columns) {
    if (!column.is_string()) return Unreadable("a column has no name");
    names.push_back(column.get<std::string>());
  }
  std::vector<TableTree::Node> parsed;
  for (const Json& node : *nodes) {
    ARROW_ASSIGN_OR_RAISE(TableTree::Node own, ParseNode(node));
    parsed.push_back(std::move(own));
  }
  auto tree = TableTree::Make(std::move(names), std::move(parsed));
  if (!tree.ok()) return Unreadable(tree.status().message());
  out.tree = *std::move(tree);
  return out;
}

Status KeepTree(const SavedTree& tree, RewriteFolder* folder) {
  RewrittenFile file;
  file.name = "tree";
  file.path = kTreeFile;
  if (folder->IsFinished(file.name)) return Status::OK();
  ARROW_ASSIGN_OR_RAISE(auto upload, folder->Begin(file));
  ARROW_RETURN_NOT_OK(upload->Append(TreeText(tree)));
  ARROW_ASSIGN_OR_RAISE(file.identity, upload->Finish());
  return folder->Finished(file);
}

}  // namespace grebe::engine

#include "engine/table_context.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "store/uri.h"
#include "table/snapshot.h"

namespace grebe::engine {
namespace {

bool IsLocalFolder(const store::Location& location) {
  std::error_code ignored;
  return location.store->kind() == "file" && std::filesystem::is_directory(location.path, ignored);
}

std::string JoinNames(const std::vector<std::string>& names) {
  std::string joined;
  for (const std::string& name : names) joined += (joined.empty() ? "" : ", ") + name;
  return joined.empty() ? "none" : joined;
}

// Whether the key's first columns are these, in any order.
bool BeginsWith(const index::Manifest& manifest, std::vector<std::string> key) {
  if (key.size() > manifest.key.size()) return false;
  std::vector<std::string> own;
  for (size_t i = 0; i < key.size(); ++i) own.push_back(manifest.key[i].name);
  std::sort(own.begin(), own.end());
  std::sort(key.begin(), key.end());
  return own == key;
}

bool SameKeyColumns(const index::Manifest& manifest, const std::vector<std::string>& key) {
  return key.size() == manifest.key.size() && BeginsWith(manifest, key);
}

}  // namespace

store::StoreOptions ToStoreOptions(const ConnectOptions& options) {
  store::StoreOptions out;
  out.s3_endpoint = options.s3_endpoint;
  out.s3_region = options.s3_region;
  out.s3_path_style = options.s3_path_style;
  out.s3_connections_max = options.s3_connections_max;
  out.retries_max = options.retries_max;
  out.request_timeout_ms = options.request_timeout_ms;
  out.hedge_after_us = options.hedge_after_us;
  out.local_threads = options.local_threads;
  return out;
}

Result<TableContext> ResolveTable(const IndexRef& ref) {
  if (ref.table_uri.empty()) return InvalidArgument("no table given");
  const store::StoreOptions options = ToStoreOptions(ref.connect);
  TableContext context;
  ARROW_ASSIGN_OR_RAISE(context.table, store::OpenLocation(ref.table_uri, options));
  if (!ref.index_root.empty()) {
    ARROW_ASSIGN_OR_RAISE(context.index_root, store::OpenLocation(ref.index_root, options));
    return context;
  }
  context.index_root = context.table;
  if (table::LooksLikeFile(context.table.path) && !IsLocalFolder(context.table) &&
      context.table.store->kind() == "file") {
    const size_t slash = context.table.path.rfind('/');
    context.index_root.path = context.table.path.substr(0, slash) + "/_index/" +
                              context.table.path.substr(slash + 1);
  } else {
    context.index_root.path += context.table.path.empty() ? "_index" : "/_index";
  }
  return context;
}

std::string DefaultIndexName(const std::vector<std::string>& key) {
  std::string name;
  for (const std::string& column : key) {
    name += (name.empty() ? "" : "+") + store::PercentEncode(column, /*keep_slash=*/false);
  }
  return name;
}

Status CheckIndexName(const std::string& name) {
  if (name.empty() || name.front() == '.' || name.find('/') != std::string::npos ||
      name.find('\0') != std::string::npos || name.size() > 200) {
    return InvalidArgument("not a name for an index", "name", name);
  }
  return Status::OK();
}

store::Location IndexFolder(const TableContext& context, const std::string& name) {
  store::Location folder = context.index_root;
  folder.path += (folder.path.empty() ? "" : "/") + name;
  return folder;
}

Result<std::vector<std::string>> ListIndexNames(const TableContext& context) {
  const std::string prefix =
      context.index_root.path.empty() ? "" : context.index_root.path + "/";
  ARROW_ASSIGN_OR_RAISE(auto objects, context.index_root.store->List(prefix));
  std::set<std::string> names;
  for (const store::Object& object : objects) {
    const std::string_view rest = std::string_view(object.path).substr(prefix.size());
    const size_t slash = rest.find('/');
    if (slash != std::string_view::npos && rest.substr(slash).starts_with("/manifest/")) {
      names.emplace(rest.substr(0, slash));
    }
  }
  return std::vector<std::string>(names.begin(), names.end());
}

store::Location DataRoot(const TableContext& context, const index::Manifest& manifest) {
  store::Location root = context.table;
  if (manifest.table_kind == "file") {
    const size_t slash = root.path.rfind('/');
    root.path = slash == std::string::npos ? "" : root.path.substr(0, slash);
  }
  return root;
}

Result<std::shared_ptr<const index::Fragment>> OpenFragment(const store::Location& index_folder,
                                                            const index::FragmentInfo& info) {
  auto object = std::make_shared<store::Object>();
  object->path = index_folder.path + "/" + info.path;
  const store::ReadRequest request{object, info.head};
  ARROW_ASSIGN_OR_RAISE(auto heads, index_folder.store->Read(std::span(&request, 1)));
  return index::Fragment::Open(info, heads[0]);
}

Result<FoundIndex> FindIndex(const TableContext& context, const std::string& name,
                             const std::vector<std::string>& key, bool ranges) {
  const auto read = [&](const std::string& candidate) -> Result<std::optional<index::Manifest>> {
    ARROW_RETURN_NOT_OK(CheckIndexName(candidate));
    return index::ManifestLog(IndexFolder(context, candidate)).ReadNewest();
  };
  if (!name.empty()) {
    ARROW_ASSIGN_OR_RAISE(auto manifest, read(name));
    if (manifest) return FoundIndex{name, *std::move(manifest)};
    return NotFound("no such index: 'grebe index create' makes one", "name", name, "table",
                    store::DisplayUri(context.table));
  }
  if (!key.empty()) {
    const std::string guess = DefaultIndexName(key);
    ARROW_ASSIGN_OR_RAISE(auto manifest, read(guess));
    if (manifest && SameKeyColumns(*manifest, key) && (!ranges || manifest->sorted)) {
      return FoundIndex{guess, *std::move(manifest)};
    }
  }
  ARROW_ASSIGN_OR_RAISE(auto names, ListIndexNames(context));
  std::vector<FoundIndex> matches, sorted;
  std::vector<std::string> live;
  for (const std::string& candidate : names) {
    ARROW_ASSIGN_OR_RAISE(auto manifest, read(candidate));
    if (!manifest) continue;
    live.push_back(candidate);
    if (ranges && manifest->sorted && BeginsWith(*manifest, key)) {
      sorted.push_back({candidate, *manifest});
    }
    if (key.empty() || SameKeyColumns(*manifest, key)) {
      matches.push_back({candidate, *std::move(manifest)});
    }
  }
  if (!sorted.empty()) matches = std::move(sorted);
  if (matches.size() == 1) return std::move(matches[0]);
  const std::string columns = JoinNames(key);
  if (matches.empty() && ranges) {
    return NotFound("no sorted index begins with these columns: 'grebe index create --sorted' "
                    "makes one", "columns", columns, "table",
                    store::DisplayUri(context.table), "indexes", JoinNames(live));
  }
  if (matches.empty()) {
    return NotFound("no index of these key columns: 'grebe index create' makes one", "key", columns,
                    "table", store::DisplayUri(context.table), "indexes", JoinNames(live));
  }
  return InvalidArgument("several indexes would do: choose one by its name", "key", columns,
                         "indexes", JoinNames(live));
}

}  // namespace grebe::engine

// Opening a view: the files of all fragments as one list. Finding keys: index_view_find.cc.
#include "index/index_view.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include "base/coding.h"
#include "base/hash.h"
#include "index/index_view_impl.h"

namespace grebe::index {
namespace {

// A data file's path must stay within the table, whoever wrote the fragment.
bool StaysInside(std::string_view path) {
  if (path.starts_with('/') || path.find('\0') != std::string_view::npos) return false;
  while (!path.empty()) {
    const size_t slash = path.find('/');
    if (path.substr(0, slash) == "..") return false;
    if (slash == std::string_view::npos) break;
    path.remove_prefix(slash + 1);
  }
  return true;
}

uint64_t FileKey(std::string_view table, const FragmentFile& file) {
  std::string bytes;
  PutBytes(&bytes, table);
  PutBytes(&bytes, file.path);
  PutBytes(&bytes, file.identity.tag);
  PutFixed(&bytes, file.identity.size_bytes);
  return Checksum(bytes);
}

std::string ObjectPath(const store::Location& table, const std::string& path) {
  if (table.path.empty()) return path;
  return path.empty() ? table.path : table.path + "/" + path;
}

// Opens each distinct schema once, whatever the number of fragments that have it.
class SchemaOpener {
 public:
  Result<std::shared_ptr<const pq::Schema>> Open(const std::string& bytes) {
    std::shared_ptr<const pq::Schema>& schema = opened_[bytes];
    if (schema == nullptr) {
      ARROW_ASSIGN_OR_RAISE(schema, pq::Schema::Open(bytes));
    }
    return schema;
  }

 private:
  std::unordered_map<std::string_view, std::shared_ptr<const pq::Schema>> opened_;
};

struct FileList {
  std::vector<ViewFile> files;
  std::vector<PageMapShelf::Origin> origins;
};

// The live files of all fragments, sorted by path; sets every fragment's view_files.
Result<FileList> ListFiles(const store::Location& table, const Manifest& manifest,
                           std::vector<OpenedFragment>* fragments) {
  std::set<std::pair<std::string_view, uint32_t>> dead;
  for (const auto& file : manifest.dead_files) dead.emplace(file.fragment, file.file);
  std::vector<PageMapShelf::Origin> origins;
  for (uint32_t f = 0; f < fragments->size(); ++f) {
    OpenedFragment& opened = (*fragments)[f];
    const uint32_t count = static_cast<uint32_t>(opened.fragment->files().size());
    opened.view_files.assign(count, OpenedFragment::kDead);
    for (uint32_t i = 0; i < count; ++i) {
      if (dead.empty() || !dead.contains({opened.info.path, i})) origins.push_back({f, i});
    }
  }
  const auto file_of = [&](const PageMapShelf::Origin& origin) -> const FragmentFile& {
    return (*fragments)[origin.fragment].fragment->files()[origin.file];
  };
  std::sort(origins.begin(), origins.end(), [&](const auto& a, const auto& b) {
    return file_of(a).path < file_of(b).path;
  });

  FileList list;
  list.files.reserve(origins.size());
  const std::string table_uri = store::DisplayUri(table);
  SchemaOpener schemas;
  for (const PageMapShelf::Origin& origin : origins) {
    OpenedFragment& opened = (*fragments)[origin.fragment];
    const FragmentFile& file = file_of(origin);
    if (!StaysInside(file.path)) {
      return Corrupt("data file is outside the table", "fragment", opened.info.path, "path",
                     file.path);
    }
    if (!list.files.empty() && list.files.back().path == file.path) {
      return Corrupt("data file is live in two places", "fragment", opened.info.path, "path",
                     file.path);
    }
    auto schema = schemas.Open(opened.fragment->schemas()[file.schema]);
    if (!schema.ok()) return AddContext(schema.status(), "path", file.path);
    opened.view_files[origin.file] = static_cast<uint32_t>(list.files.size());
    auto object = std::make_shared<store::Object>();
    object->path = ObjectPath(table, file.path);
    object->identity = file.identity;
    list.files.push_back({std::move(object), file.path, FileKey(table_uri, file), file.row_count,
                          std::move(*schema)});
  }
  list.origins = std::move(origins);
  return list;
}

}  // namespace

Result<std::shared_ptr<IndexView>> IndexView::Open(const store::Location& table,
                                                   const store::Location& index_folder,
                                                   Manifest manifest, const ViewOptions& options) {
  ARROW_ASSIGN_OR_RAISE(std::vector<OpenedFragment> fragments,
                        OpenFragments(index_folder, manifest, options));
  ARROW_ASSIGN_OR_RAISE(FileList list, ListFiles(table, manifest, &fragments));
  std::shared_ptr<BlockCache> cache = options.block_cache;
  if (cache == nullptr) cache = std::make_shared<BlockCache>(options.block_cache_bytes_max);
  for (OpenedFragment& opened : fragments) {
    if (opened.in_memory()) continue;
    opened.cache_object = cache->ObjectId(
        store::DisplayUri({index_folder.store, opened.object->path}));
  }
  return std::make_shared<IndexViewImpl>(std::move(manifest), index_folder.store,
                                         std::move(fragments), std::move(list.files),
                                         std::move(list.origins), std::move(cache), options);
}

}  // namespace grebe::index

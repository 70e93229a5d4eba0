#include "engine/known_files.h"

#include "index/manifest.h"

namespace grebe::engine {
namespace {

constexpr int64_t kBlockCacheBytes = 16 << 20;

std::string PathIn(const store::Location& folder, const std::string& name) {
  return folder.path.empty() ? name : folder.path + "/" + name;
}

}  // namespace

Status WriteStats(const store::Location& index_folder, const std::string& fragment_path,
                  const std::vector<scan::StatsEntry>& entries) {
  return index_folder.store
      ->Put(PathIn(index_folder, index::StatsPath(fragment_path)), scan::PackStatsObject(entries),
            store::PutMode::kOverwrite)
      .status();
}

Result<std::vector<scan::StatsEntry>> ReadStats(const store::Location& index_folder,
                                                const std::vector<std::string>& fragment_paths,
                                                std::vector<std::string>* damaged) {
  std::vector<std::string> paths;
  for (const std::string& path : fragment_paths) {
    paths.push_back(PathIn(index_folder, index::StatsPath(path)));
  }
  const auto objects = index_folder.store->ReadWhole(paths);
  std::vector<scan::StatsEntry> all;
  for (size_t i = 0; i < objects.size(); ++i) {
    if (IsKind(objects[i].status(), ErrorKind::kNotFound)) continue;   // an older index
    ARROW_RETURN_NOT_OK(objects[i].status());
    const arrow::Buffer& bytes = *objects[i]->bytes;
    auto entries = scan::UnpackStatsObject({reinterpret_cast<const char*>(bytes.data()),
                                            static_cast<size_t>(bytes.size())});
    if (!entries.ok()) {
      if (damaged != nullptr) damaged->push_back(paths[i]);
      continue;
    }
    for (scan::StatsEntry& entry : *entries) all.push_back(std::move(entry));
  }
  return all;
}

KnownFiles::FileId KnownFiles::IdOf(const std::string& path, const store::Identity& identity) {
  return {path, identity.tag + "/" + std::to_string(identity.size_bytes)};
}

std::shared_ptr<KnownFiles> KnownFiles::Load(const TableContext& context,
                                             const table::Snapshot& snapshot) {
  auto known = std::make_shared<KnownFiles>();
  const auto names = ListIndexNames(context);
  if (!names.ok()) return known;
  std::set<FileId> wanted;
  for (const store::Object& file : snapshot.files) wanted.insert(IdOf(file.path, file.identity));
  for (const std::string& name : *names) {
    if (!known->LoadIndex(context, name, wanted).ok()) continue;
    if (known->files_.size() == wanted.size()) break;
  }
  return known;
}

Status KnownFiles::LoadIndex(const TableContext& context, const std::string& name,
                             const std::set<FileId>& wanted) {
  const store::Location folder = IndexFolder(context, name);
  ARROW_ASSIGN_OR_RAISE(auto manifest, index::ManifestLog(folder).ReadNewest());
  if (!manifest) return Status::OK();
  std::vector<std::string> fragments;
  for (const auto& info : manifest->fragments) fragments.push_back(info.path);
  ARROW_ASSIGN_OR_RAISE(auto entries, ReadStats(folder, fragments, nullptr));
  std::map<FileId, const scan::StatsEntry*> by_file;
  for (const scan::StatsEntry& entry : entries) {
    const FileId id = IdOf(entry.path, entry.identity);
    if (wanted.contains(id) && !files_.contains(id)) by_file[id] = &entry;
  }
  if (by_file.empty()) return Status::OK();
  index::ViewOptions options;
  options.block_cache_bytes_max = kBlockCacheBytes;
  options.filter_bytes_max = 0;
  const store::Location root = DataRoot(context, *manifest);
  ARROW_ASSIGN_OR_RAISE(std::shared_ptr<index::IndexView> view,
                        index::IndexView::Open(root, folder, *std::move(manifest), options));
  for (uint32_t i = 0; i < view->files().size(); ++i) {
    const index::ViewFile& file = view->files()[i];
    const auto entry = by_file.find(IdOf(file.path, file.object->identity));
    if (entry == by_file.end()) continue;
    auto stats = scan::UnpackStats(file.schema, entry->second->packed);
    if (!stats.ok() || stats->rows != file.row_count) continue;
    files_[entry->first] = {*std::move(stats), [view, i] { return view->page_map(i); }};
  }
  return Status::OK();
}

const scan::KnownFile* KnownFiles::Find(const store::Object& file) const {
  const auto found = files_.find(IdOf(file.path, file.identity));
  return found == files_.end() ? nullptr : &found->second;
}

}  // namespace grebe::engine

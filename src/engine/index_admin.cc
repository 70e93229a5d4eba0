// Creating, refreshing, compacting, listing and dropping indexes.
#include <algorithm>
#include <map>
#include <set>

#include "base/failpoint.h"
#include "engine/build.h"
#include "engine/engine.h"
#include "engine/known_files.h"
#include "engine/table_context.h"
#include "grebe/index.h"
#include "grebe/version.h"
#include "index/covering.h"
#include "index/fragment.h"
#include "index/index_view.h"
#include "index/manifest.h"
#include "table/snapshot.h"

namespace grebe {
namespace {

using engine::TableContext;
using index::Manifest;
using index::ManifestLog;

// A commit that loses against other writers is tried again on their result this many times.
constexpr int kCommitAttempts = 50;

BuildSummary SummaryOf(const std::string& name, int64_t version, bool changed,
                       const engine::BuiltFragment& built) {
  BuildSummary summary;
  summary.name = name;
  summary.version = version;
  summary.changed = changed;
  summary.files_added = std::count_if(built.files.begin(), built.files.end(),
                                      [](const auto& file) { return !file.bad; });
  summary.rows_added = built.row_count;
  if (built.info) summary.index_bytes_written = built.info->size_bytes;
  for (const auto& skipped : built.skipped) {
    summary.skipped.push_back({skipped.path, skipped.reason});
  }
  return summary;
}

void AddFragment(const engine::BuiltFragment& built, Manifest* manifest) {
  if (!built.info) return;
  manifest->fragments.push_back(*built.info);
  for (uint32_t i = 0; i < built.files.size(); ++i) {
    if (built.files[i].bad) {
      manifest->dead_files.push_back({built.info->path, i, built.files[i].row_count});
    }
  }
}

using FileKey = std::pair<std::string, std::string>;   // path, identity

FileKey KeyOf(const std::string& path, const store::Identity& identity) {
  return {path, identity.tag + "/" + std::to_string(identity.size_bytes)};
}

// What a refresh has to do: the snapshot against the files of the index.
struct Difference {
  std::vector<store::Object> added;
  std::set<FileKey> live;   // files of the snapshot
};

// Every (fragment, file ordinal) the manifest calls live, with its path and identity.
struct IndexedFile {
  std::string fragment;
  uint32_t file = 0;
  int64_t row_count = 0;
  FileKey key;
};

Result<std::vector<IndexedFile>> IndexedFiles(const store::Location& folder,
                                              const Manifest& manifest) {
  std::set<std::pair<std::string, uint32_t>> dead;
  for (const auto& file : manifest.dead_files) dead.emplace(file.fragment, file.file);
  std::vector<IndexedFile> out;
  for (const auto& info : manifest.fragments) {
    ARROW_ASSIGN_OR_RAISE(auto fragment, engine::OpenFragment(folder, info));
    for (uint32_t i = 0; i < fragment->files().size(); ++i) {
      if (dead.contains({info.path, i})) continue;
      const auto& file = fragment->files()[i];
      out.push_back({info.path, i, file.row_count, KeyOf(file.path, file.identity)});
    }
  }
  return out;
}

Difference Compare(const table::Snapshot& snapshot, const std::vector<IndexedFile>& indexed,
                   const Manifest& manifest) {
  std::set<FileKey> known;
  for (const auto& file : indexed) known.insert(file.key);
  for (const auto& file : manifest.skipped_files) known.insert(KeyOf(file.path, file.identity));
  Difference difference;
  for (const store::Object& file : snapshot.files) {
    const FileKey key = KeyOf(file.path, file.identity);
    difference.live.insert(key);
    if (!known.contains(key)) difference.added.push_back(file);
  }
  return difference;
}

Result<BuildSummary> RefreshOnce(const TableContext& context, const engine::FoundIndex& found,
                                 const BuildOptions& options, engine::BuiltFragment* built,
                                 std::vector<FileKey>* built_files);

// Folds the files built for an older version into the newest manifest: entries that another
// writer indexed meanwhile, and files that vanished, are marked dead.
Result<int64_t> ApplyRefresh(const table::Snapshot& snapshot,
                             const std::vector<IndexedFile>& indexed, const Difference& difference,
                             const engine::BuiltFragment& built,
                             const std::vector<FileKey>& built_files, Manifest* manifest) {
  int64_t removed = 0;
  std::set<FileKey> present;
  for (const auto& file : indexed) {
    present.insert(file.key);
    if (difference.live.contains(file.key)) continue;
    manifest->dead_files.push_back({file.fragment, file.file, file.row_count});
    ++removed;
  }
  auto& skipped = manifest->skipped_files;
  skipped.erase(std::remove_if(skipped.begin(), skipped.end(),
                               [&](const auto& file) {
                                 return !difference.live.contains(KeyOf(file.path, file.identity));
                               }),
                skipped.end());
  if (built.info) {
    std::set<uint32_t> dead;
    for (uint32_t i = 0; i < built_files.size(); ++i) {
      if (built.files[i].bad || present.contains(built_files[i]) ||
          !difference.live.contains(built_files[i])) {
        dead.insert(i);
      }
    }
    if (dead.size() < built_files.size()) {
      manifest->fragments.push_back(*built.info);
      for (uint32_t file : dead) {
        manifest->dead_files.push_back({built.info->path, file, built.files[file].row_count});
      }
    }
  }
  for (const auto& file : built.skipped) {
    const bool known = std::any_of(skipped.begin(), skipped.end(), [&](const auto& other) {
      return other.path == file.path && other.identity == file.identity;
    });
    if (!known) skipped.push_back(file);
  }
  // A fragment none of whose files is live any more is dropped whole.
  std::map<std::string, std::set<uint32_t>> dead_by_fragment;
  for (const auto& file : manifest->dead_files) dead_by_fragment[file.fragment].insert(file.file);
  std::erase_if(manifest->fragments, [&](const auto& info) {
    return static_cast<int64_t>(dead_by_fragment[info.path].size()) == info.file_count;
  });
  std::erase_if(manifest->dead_files, [&](const auto& file) {
    return std::none_of(manifest->fragments.begin(), manifest->fragments.end(),
                        [&](const auto& info) { return info.path == file.fragment; });
  });
  manifest->snapshot_id = snapshot.id;
  return removed;
}

Result<table::Snapshot> ReadTable(const TableContext& context) {
  ARROW_ASSIGN_OR_RAISE(auto snapshot, table::ReadSnapshot(context.table));
  if (!snapshot.single_file.empty()) snapshot.kind = "file";
  return snapshot;
}

}  // namespace

namespace engine {

Result<BuildSummary> CreateIndexAt(const TableContext& context, const std::string& given_name,
                                   const CreateOptions& options) {
  if (options.key.empty()) return InvalidArgument("no key columns given");
  const std::set<std::string> distinct(options.key.begin(), options.key.end());
  if (distinct.size() != options.key.size()) {
    return InvalidArgument("a key column is named twice");
  }
  const std::string name = given_name.empty() ? DefaultIndexName(options.key) : given_name;
  ARROW_RETURN_NOT_OK(CheckIndexName(name));
  const store::Location folder = engine::IndexFolder(context, name);
  ManifestLog log(folder);
  ARROW_ASSIGN_OR_RAISE(auto existing, log.ReadNewest());
  if (existing) {
    return InvalidArgument("this index exists: refresh it, or drop it first", "name", name);
  }
  ARROW_ASSIGN_OR_RAISE(auto snapshot, ReadTable(context));
  if (snapshot.files.empty()) {
    return NotFound("no Parquet files in the table", "path", store::DisplayUri(context.table));
  }

  engine::IndexSpec spec;
  spec.key = options.key;
  spec.covering = options.covering;
  spec.sorted = options.sorted;
  ARROW_ASSIGN_OR_RAISE(auto built,
                        engine::BuildFragment(snapshot.root, snapshot.files, snapshot.partitions,
                                              folder, options.build, &spec));
  return PublishIndexAt(context, name, snapshot, spec, built);
}

Result<BuildSummary> PublishIndexAt(const TableContext& context, const std::string& name,
                                    const table::Snapshot& snapshot, const IndexSpec& spec,
                                    const BuiltFragment& built) {
  ManifestLog log(engine::IndexFolder(context, name));
  Manifest manifest;
  manifest.index_id = index::NewIndexId();
  for (size_t i = 0; i < spec.key.size(); ++i) {
    manifest.key.push_back({spec.key[i], spec.key_types[i].ToString()});
  }
  manifest.covering = spec.covering;
  manifest.sorted = spec.sorted;
  if (spec.covering_schema != nullptr) {
    ARROW_ASSIGN_OR_RAISE(manifest.covering_schema, index::SerializeSchema(*spec.covering_schema));
  }
  manifest.table_uri = store::DisplayUri(context.table);
  manifest.table_kind = snapshot.kind;
  manifest.snapshot_id = snapshot.id;
  manifest.writer = std::string("grebe ") + Version();
  manifest.skipped_files = built.skipped;
  AddFragment(built, &manifest);
  ARROW_RETURN_NOT_OK(log.Commit(0, manifest));
  ARROW_ASSIGN_OR_RAISE(auto committed, log.ReadNewest());
  return SummaryOf(name, committed ? committed->version : 0, true, built);
}

Result<BuildSummary> RefreshIndexAt(const TableContext& context, const std::string& name,
                                    const BuildOptions& options) {
  ARROW_ASSIGN_OR_RAISE(auto found, FindIndex(context, name, {}));
  const store::Location folder = engine::IndexFolder(context, found.name);
  ManifestLog log(folder);
  engine::BuiltFragment built;
  std::vector<FileKey> built_files;
  for (int attempt = 0; attempt < kCommitAttempts; ++attempt) {
    if (attempt > 0) {
      ARROW_ASSIGN_OR_RAISE(auto newest, log.ReadNewest());
      if (!newest || newest->index_id != found.manifest.index_id) {
        return Conflict("the index was dropped meanwhile", "name", found.name);
      }
      // So far behind, a lost commit may have been a won one (ManifestLog::Commit): the fragment
      // built for it must then not be taken for an orphan. A refresh from the start is safe.
      if (newest->version - found.manifest.version > ManifestLog::kVersionsKept) {
        return Conflict("too many other writers committed meanwhile: refresh again", "name",
                        found.name);
      }
      found.manifest = *std::move(newest);
    }
    auto summary = RefreshOnce(context, found, options, &built, &built_files);
    if (summary.ok() || !IsKind(summary.status(), ErrorKind::kConflict)) return summary;
  }
  return Conflict("other writers were always first", "attempts", kCommitAttempts);
}

}  // namespace engine

namespace {

Result<BuildSummary> RefreshOnce(const TableContext& context, const engine::FoundIndex& found,
                                 const BuildOptions& options, engine::BuiltFragment* built,
                                 std::vector<FileKey>* built_files) {
  const store::Location folder = engine::IndexFolder(context, found.name);
  ARROW_ASSIGN_OR_RAISE(auto snapshot, ReadTable(context));
  ARROW_ASSIGN_OR_RAISE(auto indexed, IndexedFiles(folder, found.manifest));
  Difference difference = Compare(snapshot, indexed, found.manifest);

  // On a second attempt only what the first one did not build is missing.
  std::vector<store::Object> missing;
  for (const store::Object& file : difference.added) {
    const FileKey key = KeyOf(file.path, file.identity);
    if (std::find(built_files->begin(), built_files->end(), key) == built_files->end()) {
      missing.push_back(file);
    }
  }
  if (!missing.empty()) {
    if (built->info) {   // built for an older snapshot: now an orphan
      ARROW_RETURN_NOT_OK(engine::DeleteFragment(folder, built->info->path));
    }
    ARROW_ASSIGN_OR_RAISE(engine::IndexSpec spec, engine::SpecOf(found.manifest));
    ARROW_ASSIGN_OR_RAISE(*built, engine::BuildFragment(snapshot.root, difference.added,
                                                        snapshot.partitions, folder, options,
                                                        &spec));
    std::map<std::string, FileKey> keys;
    for (const store::Object& file : difference.added) {
      keys[file.path] = KeyOf(file.path, file.identity);
    }
    built_files->clear();
    for (const auto& file : built->files) built_files->push_back(keys[file.path]);
  }

  Manifest manifest = found.manifest;
  manifest.created_at.clear();
  ARROW_ASSIGN_OR_RAISE(
      const int64_t removed,
      ApplyRefresh(snapshot, indexed, difference, *built, *built_files, &manifest));
  const bool changed = manifest.fragments != found.manifest.fragments ||
                       manifest.dead_files != found.manifest.dead_files ||
                       manifest.skipped_files != found.manifest.skipped_files;
  if (changed) {
    ARROW_RETURN_NOT_OK(ManifestLog(folder).Commit(found.manifest.version, manifest));
  }
  const bool used = built->info && std::any_of(manifest.fragments.begin(), manifest.fragments.end(),
                                               [&](const auto& info) {
                                                 return info.path == built->info->path;
                                               });
  if (built->info && !used) {   // other writers indexed all of its files first
    ARROW_RETURN_NOT_OK(engine::DeleteFragment(folder, built->info->path));
    *built = {};
  }
  BuildSummary summary = SummaryOf(found.name, found.manifest.version + (changed ? 1 : 0), changed,
                                   *built);
  summary.files_removed = removed;
  return summary;
}

// Fragments to merge: the smallest size tier (sizes within a factor of 4) that has four or more,
// or everything.
std::vector<index::FragmentInfo> ChooseMerge(const Manifest& manifest, bool all) {
  if (all) {
    const bool worth = manifest.fragments.size() > 1 || !manifest.dead_files.empty();
    return worth ? manifest.fragments : std::vector<index::FragmentInfo>{};
  }
  std::map<int, std::vector<index::FragmentInfo>> tiers;
  for (const auto& info : manifest.fragments) {
    int tier = 0;
    for (int64_t size = info.size_bytes >> 16; size > 0; size >>= 2) ++tier;
    tiers[tier].push_back(info);
  }
  for (const auto& [tier, infos] : tiers) {
    if (infos.size() >= 4) return infos;
  }
  return {};
}

// The statistics of the merged fragments' live files, beside the new fragment.
Status MergeStats(const store::Location& folder, const std::vector<index::MergeInput>& inputs,
                  const std::set<std::string>& merged, const std::string& path) {
  std::set<std::pair<std::string, std::string>> live;   // path and tag
  for (const index::MergeInput& input : inputs) {
    for (size_t i = 0; i < input.live.size(); ++i) {
      const auto& file = input.fragment->files()[i];
      if (input.live[i]) live.emplace(file.path, file.identity.tag);
    }
  }
  ARROW_ASSIGN_OR_RAISE(auto entries,
                        engine::ReadStats(folder, {merged.begin(), merged.end()}, nullptr));
  std::erase_if(entries, [&](const scan::StatsEntry& entry) {
    return !live.contains({entry.path, entry.identity.tag});
  });
  return engine::WriteStats(folder, path, entries);
}

// Merges some fragments of a version into one and commits. nullopt: nothing to merge.
Result<std::optional<BuildSummary>> CompactOnce(const TableContext& context,
                                                const engine::FoundIndex& found,
                                                const BuildOptions& options, bool all) {
  const std::vector<index::FragmentInfo> chosen = ChooseMerge(found.manifest, all);
  if (chosen.empty()) return std::nullopt;
  const store::Location folder = engine::IndexFolder(context, found.name);
  std::vector<index::MergeInput> inputs;
  std::set<std::string> merged;
  int64_t live_files = 0;
  for (const auto& info : chosen) {
    ARROW_ASSIGN_OR_RAISE(auto fragment, engine::OpenFragment(folder, info));
    index::MergeInput input;
    input.live.assign(fragment->files().size(), true);
    for (const auto& dead : found.manifest.dead_files) {
      if (dead.fragment == info.path) input.live[dead.file] = false;
    }
    live_files += std::count(input.live.begin(), input.live.end(), true);
    input.fragment = std::move(fragment);
    auto object = std::make_shared<store::Object>();
    object->path = folder.path + "/" + info.path;
    input.whole = {object, {0, info.size_bytes}};
    inputs.push_back(std::move(input));
    merged.insert(info.path);
  }
  ARROW_ASSIGN_OR_RAISE(engine::IndexSpec spec, engine::SpecOf(found.manifest));
  Manifest manifest = found.manifest;
  manifest.created_at.clear();
  BuildSummary summary;
  std::erase_if(manifest.fragments, [&](const auto& info) { return merged.contains(info.path); });
  std::erase_if(manifest.dead_files,
                [&](const auto& dead) { return merged.contains(dead.fragment); });
  if (live_files > 0) {
    const std::string path = index::NewFragmentPath();
    ARROW_ASSIGN_OR_RAISE(auto upload, folder.store->StartUpload(folder.path + "/" + path));
    ARROW_ASSIGN_OR_RAISE(auto info, index::MergeFragments(*folder.store, inputs,
                                                           engine::FragmentOptionsOf(spec, options),
                                                           *upload));
    info.path = path;
    ARROW_RETURN_NOT_OK(upload->Finish().status());
    ARROW_RETURN_NOT_OK(MergeStats(folder, inputs, merged, path));
    GREBE_FAILPOINT("compact.after_fragment");
    manifest.fragments.push_back(info);
    summary.index_bytes_written = info.size_bytes;
  }
  ARROW_RETURN_NOT_OK(ManifestLog(folder).Commit(found.manifest.version, std::move(manifest)));
  summary.name = found.name;
  summary.version = found.manifest.version + 1;
  summary.changed = true;
  summary.fragments_merged = static_cast<int64_t>(chosen.size());
  return summary;
}

}  // namespace

namespace engine {

Result<BuildSummary> CompactIndexAt(const TableContext& context, const std::string& name,
                                    const BuildOptions& options, bool all) {
  ARROW_ASSIGN_OR_RAISE(auto found, FindIndex(context, name, {}));
  ManifestLog log(engine::IndexFolder(context, found.name));
  BuildSummary total;
  total.name = found.name;
  int conflicts = 0;
  while (true) {
    total.version = found.manifest.version;
    auto step = CompactOnce(context, found, options, all);
    if (step.ok() && !*step) return total;
    if (step.ok()) {
      total.changed = true;
      total.version = (*step)->version;
      total.fragments_merged += (*step)->fragments_merged;
      total.index_bytes_written += (*step)->index_bytes_written;
      if (all) return total;
    } else if (!IsKind(step.status(), ErrorKind::kConflict) || ++conflicts >= kCommitAttempts) {
      return step.status();
    }
    ARROW_ASSIGN_OR_RAISE(auto newest, log.ReadNewest());
    if (!newest || newest->index_id != found.manifest.index_id) {
      return Conflict("the index was dropped meanwhile", "name", found.name);
    }
    found.manifest = *std::move(newest);
  }
}

}  // namespace engine

Result<BuildSummary> CreateIndex(const IndexRef& ref, const CreateOptions& options) {
  ARROW_ASSIGN_OR_RAISE(TableContext context, engine::ResolveTable(ref));
  return engine::CreateIndexAt(context, ref.name, options);
}

Result<BuildSummary> RefreshIndex(const IndexRef& ref, const BuildOptions& options) {
  ARROW_ASSIGN_OR_RAISE(TableContext context, engine::ResolveTable(ref));
  return engine::RefreshIndexAt(context, ref.name, options);
}

Result<BuildSummary> CompactIndex(const IndexRef& ref, const BuildOptions& options, bool all) {
  ARROW_ASSIGN_OR_RAISE(TableContext context, engine::ResolveTable(ref));
  return engine::CompactIndexAt(context, ref.name, options, all);
}

Status DropIndex(const IndexRef& ref) {
  ARROW_ASSIGN_OR_RAISE(TableContext context, engine::ResolveTable(ref));
  std::string name = ref.name;
  if (name.empty()) {
    ARROW_ASSIGN_OR_RAISE(auto found, engine::FindIndex(context, name, {}));
    name = found.name;
  }
  ARROW_RETURN_NOT_OK(engine::CheckIndexName(name));
  return ManifestLog(engine::IndexFolder(context, name)).Drop();
}

}  // namespace grebe

// The versions of an index: reading the newest, publishing the next, dropping, finding orphans.
//
// What keeps versions in one line, although old manifests are deleted (docs/format/manifest.md):
//   - A version is created with put-if-absent, so of several writers one wins.
//   - A tombstone stays, so the numbers of a re-made index go on from it.
//   - A writer so slow that its number was used and deleted meanwhile would win its put: after
//     every put the versions are listed, and ConfirmVersion undoes such a one.
#include <sys/time.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <future>
#include <limits>
#include <set>
#include <span>
#include <system_error>
#include <tuple>
#include <utility>

#include "base/failpoint.h"
#include "index/manifest.h"

namespace grebe::index {
namespace {

constexpr std::string_view kManifestFolder = "manifest/";
constexpr std::string_view kFragmentFolder = "fragment/";
constexpr std::string_view kHint = "manifest/hint.json";
constexpr std::string_view kEnding = ".json";
constexpr size_t kVersionDigits = 20;
// A manifest that was listed may be gone when it is read (dropped, or 100 commits later).
constexpr int kReadAttempts = 8;

std::string Join(const std::string& folder, std::string_view name) {
  return folder.empty() ? std::string(name) : folder + "/" + std::string(name);
}

std::string VersionName(int64_t version) {
  std::string digits = std::to_string(version);
  digits.insert(0, kVersionDigits - std::min(kVersionDigits, digits.size()), '0');
  return std::string(kManifestFolder) + digits + std::string(kEnding);
}

// The version a name stands for; 0 when it is not a manifest's name.
int64_t VersionOf(std::string_view name) {
  if (!name.starts_with(kManifestFolder) || !name.ends_with(kEnding)) return 0;
  name.remove_prefix(kManifestFolder.size());
  name.remove_suffix(kEnding.size());
  if (name.size() != kVersionDigits) return 0;
  int64_t version = 0;
  const auto parsed = std::from_chars(name.data(), name.data() + name.size(), version);
  const bool whole = parsed.ec == std::errc() && parsed.ptr == name.data() + name.size();
  return whole && version > 0 ? version : 0;
}

std::vector<int64_t> VersionsOf(const store::Location& folder,
                                const std::vector<store::Object>& objects) {
  const size_t prefix_bytes = Join(folder.path, "").size();
  std::vector<int64_t> versions;
  for (const store::Object& object : objects) {
    if (object.path.size() <= prefix_bytes) continue;
    const int64_t version = VersionOf(std::string_view(object.path).substr(prefix_bytes));
    if (version > 0) versions.push_back(version);
  }
  std::sort(versions.begin(), versions.end());
  return versions;
}

Result<std::vector<store::Object>> ListFolder(const store::Location& folder,
                                              std::string_view name) {
  return folder.store->List(Join(folder.path, name));
}

Result<std::vector<int64_t>> ListVersionsOf(const store::Location& folder) {
  ARROW_ASSIGN_OR_RAISE(const auto objects, ListFolder(folder, kManifestFolder));
  return VersionsOf(folder, objects);
}

Result<store::WholeObject> ReadObject(const store::Location& folder, std::string_view name) {
  const std::string path = Join(folder.path, name);
  std::vector<Result<store::WholeObject>> read = folder.store->ReadWhole(std::span(&path, 1));
  if (read.size() != 1) return Internal("store answered the wrong number of objects");
  return std::move(read[0]);
}

Result<Manifest> ParseVersion(const Result<store::WholeObject>& read, int64_t version) {
  ARROW_RETURN_NOT_OK(read.status());
  const arrow::Buffer& bytes = *read->bytes;
  auto parsed = ParseManifest(
      {reinterpret_cast<const char*>(bytes.data()), static_cast<size_t>(bytes.size())});
  if (!parsed.ok()) return AddContext(parsed.status(), "version", std::to_string(version));
  if (parsed->version != version) {
    return Corrupt("manifest of another version", "member", "version", "expected", version, "got",
                   parsed->version);
  }
  return parsed;
}

// The listing and the hint, asked for together: one wave.
struct FirstWave {
  Result<std::vector<store::Object>> objects;
  Result<store::WholeObject> hint;
};
FirstWave ReadFirstWave(const store::Location& folder) {
  const auto read_hint = [&]() -> Result<store::WholeObject> { return ReadObject(folder, kHint); };
  std::future<Result<store::WholeObject>> hint;
  try {
    hint = std::async(std::launch::async, read_hint);
  } catch (const std::system_error&) {
    // No thread to be had: the two requests follow each other.
    return {ListFolder(folder, kManifestFolder), read_hint()};
  }
  auto objects = ListFolder(folder, kManifestFolder);
  return {std::move(objects), hint.get()};
}

std::string Now() {
  timeval now{};
  gettimeofday(&now, nullptr);
  tm utc{};
  gmtime_r(&now.tv_sec, &utc);
  char text[40];
  const size_t size = std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &utc);
  std::snprintf(text + size, sizeof(text) - size, ".%06ldZ", static_cast<long>(now.tv_usec));
  return text;
}

int64_t NowMs() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

// When the object was made, in ms since 1970; -1 when it cannot be told. A local identity begins
// with the mtime in ns; a fragment's name (a UUID of version 7) with the ms.
int64_t MadeAtMs(const store::Location& folder, const store::Object& object) {
  if (folder.store->kind() == "file") {
    int64_t mtime_ns = 0;
    const std::string& tag = object.identity.tag;
    const auto parsed = std::from_chars(tag.data(), tag.data() + tag.size(), mtime_ns);
    return parsed.ec == std::errc() ? mtime_ns / 1000000 : -1;
  }
  const size_t at = object.path.rfind(kFragmentFolder);
  if (at == std::string::npos) return -1;
  const std::string_view name = std::string_view(object.path).substr(at + kFragmentFolder.size());
  if (name.size() < 36 || name[8] != '-' || name[14] != '7') return -1;
  const std::string digits = std::string(name.substr(0, 8)) + std::string(name.substr(9, 4));
  int64_t made_ms = 0;
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), made_ms, 16);
  return parsed.ec == std::errc() && parsed.ptr == digits.data() + digits.size() ? made_ms : -1;
}

// An object that Grebe made: what else someone keeps beside the manifests is no orphan.
bool IsOurs(std::string_view name) {
  return name.starts_with(kFragmentFolder) || name == kHint || VersionOf(name) > 0 ||
         name.ends_with(".tmp");
}

// True when the object at the version's path is exactly these bytes.
Result<bool> Holds(const store::Location& folder, int64_t version, std::string_view bytes) {
  auto read = ReadObject(folder, VersionName(version));
  if (IsKind(read.status(), ErrorKind::kNotFound)) return false;
  ARROW_RETURN_NOT_OK(read.status());
  const arrow::Buffer& got = *read->bytes;
  return std::string_view(reinterpret_cast<const char*>(got.data()),
                          static_cast<size_t>(got.size())) == bytes;
}

}  // namespace

std::string StatsPath(std::string_view fragment_path) {
  return std::string(fragment_path.substr(0, fragment_path.rfind('.'))) + ".gst";
}

ManifestLog::ManifestLog(store::Location index_folder) : folder_(std::move(index_folder)) {}

// The newest version, a tombstone included.
Result<std::optional<Manifest>> ManifestLog::ReadLatest() const {
  Status last;
  for (int attempt = 0; attempt < kReadAttempts; ++attempt) {
    FirstWave first = ReadFirstWave(folder_);
    ARROW_RETURN_NOT_OK(first.objects.status());
    const std::vector<int64_t> versions = VersionsOf(folder_, *first.objects);
    if (versions.empty()) return std::nullopt;
    const int64_t newest = versions.back();
    // The hint only saves a wave: unless it is the newest version's very content it is ignored.
    auto hint = ParseVersion(first.hint, newest);
    if (hint.ok()) return std::optional<Manifest>(std::move(*hint));
    auto manifest = ParseVersion(ReadObject(folder_, VersionName(newest)), newest);
    if (manifest.ok()) return std::optional<Manifest>(std::move(*manifest));
    last = manifest.status();
    if (!IsKind(last, ErrorKind::kNotFound)) return last;
  }
  return last;
}

Result<std::optional<Manifest>> ManifestLog::ReadNewest() const {
  ARROW_ASSIGN_OR_RAISE(std::optional<Manifest> latest, ReadLatest());
  if (latest.has_value() && latest->dropped) return std::nullopt;
  return latest;
}

Result<std::vector<int64_t>> ManifestLog::ListVersions() const { return ListVersionsOf(folder_); }

Result<Manifest> ManifestLog::Read(int64_t version) const {
  if (version < 1) return InvalidArgument("no such version", "version", version);
  return ParseVersion(ReadObject(folder_, VersionName(version)), version);
}

// The manifests of several versions, one wave; those that are gone are left out.
Result<std::vector<Manifest>> ManifestLog::ReadAll(const std::vector<int64_t>& versions) const {
  std::vector<std::string> paths;
  for (const int64_t version : versions) paths.push_back(Join(folder_.path, VersionName(version)));
  std::vector<Manifest> manifests;
  if (paths.empty()) return manifests;
  const std::vector<Result<store::WholeObject>> reads = folder_.store->ReadWhole(paths);
  for (size_t i = 0; i < reads.size(); ++i) {
    auto manifest = ParseVersion(reads[i], versions[i]);
    if (IsKind(manifest.status(), ErrorKind::kNotFound)) continue;
    ARROW_RETURN_NOT_OK(manifest.status());
    manifests.push_back(std::move(*manifest));
  }
  return manifests;
}

// Creates the version's object. A put whose answer was lost is recognised by its bytes, which
// commit_id makes this writer's own.
Status ManifestLog::PutVersion(const Manifest& manifest) const {
  const std::string bytes = SerializeManifest(manifest);
  // Never publish what a reader would refuse.
  auto parsed = ParseManifest(bytes);
  if (!parsed.ok()) return InvalidArgument(parsed.status().message());
  if (!(*parsed == manifest)) return Internal("manifest does not survive its own format");
  const std::string path = Join(folder_.path, VersionName(manifest.version));
  const auto put = folder_.store->Put(path, bytes, store::PutMode::kIfAbsent);
  if (put.ok()) return Status::OK();
  const bool conflict = IsKind(put.status(), ErrorKind::kConflict);
  if (!conflict && !IsKind(put.status(), ErrorKind::kTransient)) return put.status();
  const auto ours = Holds(folder_, manifest.version, bytes);
  if (ours.ok() && *ours) return Status::OK();
  if (!conflict) return put.status();
  return Conflict("another writer committed first", "version", manifest.version);
}

// After a put that won: is the version part of the line, or was its number used before? Numbers
// are freed only by pruning (then the newest is at least kVersionsKept further) and by a drop
// (then the newest has another index_id, or is the tombstone). In both cases the version counts
// for no reader, so removing it is safe even when it did once belong to the line.
Status ManifestLog::ConfirmVersion(const Manifest& manifest,
                                   const std::vector<int64_t>& versions) const {
  const int64_t version = manifest.version;
  const int64_t newest = versions.empty() ? 0 : versions.back();
  const std::string path = Join(folder_.path, VersionName(version));
  if (newest < version) {
    return Transient("a committed version is not listed", "version", version);
  }
  if (newest == version) {
    if (version == 1 || std::binary_search(versions.begin(), versions.end(), version - 1)) {
      return Status::OK();
    }
    ARROW_RETURN_NOT_OK(folder_.store->Delete(path));
    return InvalidArgument("base version does not exist", "base_version", version - 1);
  }
  bool in_line = newest < version + kVersionsKept;
  if (in_line) {
    ARROW_ASSIGN_OR_RAISE(const std::optional<Manifest> latest, ReadLatest());
    in_line = latest.has_value() && !latest->dropped && latest->index_id == manifest.index_id &&
              latest->version < version + kVersionsKept;
  }
  if (in_line) return Status::OK();
  ARROW_RETURN_NOT_OK(folder_.store->Delete(path));
  return Conflict("others committed many versions meanwhile, or dropped the index", "version",
                  version, "newest", newest);
}

Status ManifestLog::Commit(int64_t base_version, Manifest manifest) {
  if (base_version < 0) return InvalidArgument("no such version", "base_version", base_version);
  if (manifest.dropped) return InvalidArgument("a tombstone is Drop's to commit");
  if (base_version == 0) {
    ARROW_ASSIGN_OR_RAISE(const std::optional<Manifest> latest, ReadLatest());
    if (latest.has_value() && !latest->dropped) {
      return Conflict("the index exists", "version", latest->version);
    }
    if (latest.has_value()) base_version = latest->version;
  }
  manifest.version = base_version + 1;
  manifest.commit_id = NewIndexId();
  if (manifest.created_at.empty()) manifest.created_at = Now();
  GREBE_FAILPOINT("commit.before_put");
  ARROW_RETURN_NOT_OK(PutVersion(manifest));
  GREBE_FAILPOINT("commit.after_put");
  ARROW_ASSIGN_OR_RAISE(const std::vector<int64_t> versions, ListVersions());
  ARROW_RETURN_NOT_OK(ConfirmVersion(manifest, versions));
  // From here on the version is committed: what fails below costs a later reader a wave, or
  // leaves an old manifest for the next commit to drop.
  if (versions.back() == manifest.version) {
    (void)folder_.store->Put(Join(folder_.path, kHint), SerializeManifest(manifest),
                             store::PutMode::kOverwrite);
  }
  GREBE_FAILPOINT("commit.after_hint");
  for (const int64_t version : versions) {
    if (version > manifest.version - kVersionsKept) break;
    (void)folder_.store->Delete(Join(folder_.path, VersionName(version)));
  }
  return Status::OK();
}

// Makes the tombstone unless there is one; returns its version.
Result<int64_t> ManifestLog::PutTombstone(bool* found) const {
  while (true) {
    ARROW_ASSIGN_OR_RAISE(const std::optional<Manifest> latest, ReadLatest());
    if (!latest.has_value()) return NotFound("no such index");
    *found = latest->dropped;
    if (latest->dropped) return latest->version;
    Manifest tombstone = *latest;
    tombstone.version = latest->version + 1;
    tombstone.commit_id = NewIndexId();
    tombstone.created_at = Now();
    tombstone.dropped = true;
    tombstone.snapshot_id.clear();
    tombstone.fragments.clear();
    tombstone.dead_files.clear();
    tombstone.skipped_files.clear();
    Status put = PutVersion(tombstone);
    if (put.ok()) {
      ARROW_ASSIGN_OR_RAISE(const std::vector<int64_t> versions, ListVersions());
      put = ConfirmVersion(tombstone, versions);
    }
    if (put.ok()) return tombstone.version;
    // A commit that came first is dropped as well; another's tombstone serves.
    if (!IsKind(put, ErrorKind::kConflict)) return put;
  }
}

Status ManifestLog::Drop() {
  bool found = false;
  ARROW_ASSIGN_OR_RAISE(const int64_t tombstone, PutTombstone(&found));
  GREBE_FAILPOINT("drop.after_tombstone");
  ARROW_ASSIGN_OR_RAISE(std::vector<int64_t> versions, ListVersions());
  versions.erase(std::lower_bound(versions.begin(), versions.end(), tombstone), versions.end());
  if (versions.empty()) return found ? NotFound("no such index") : Status::OK();
  // Only fragments that a version names: another may be that of an index being made just now.
  // A manifest that cannot be read names none; FindOrphans finds what it had.
  std::set<std::string> names;
  for (const int64_t version : versions) {
    const auto manifest = Read(version);
    if (!manifest.ok()) continue;
    for (const FragmentInfo& fragment : manifest->fragments) {
      names.insert(fragment.path);
      names.insert(StatsPath(fragment.path));
    }
  }
  // Manifests last: a drop that is killed finds here again what is left to do.
  for (const std::string& name : names) {
    ARROW_RETURN_NOT_OK(folder_.store->Delete(Join(folder_.path, name)));
    GREBE_FAILPOINT("drop.mid_delete");
  }
  ARROW_RETURN_NOT_OK(folder_.store->Delete(Join(folder_.path, kHint)));
  for (const int64_t version : versions) {
    ARROW_RETURN_NOT_OK(folder_.store->Delete(Join(folder_.path, VersionName(version))));
  }
  return Status::OK();
}

Result<std::vector<store::Object>> ManifestLog::FindOrphans(int64_t min_age_seconds) const {
  // Fragments first: what is committed after this listing is not among them.
  ARROW_ASSIGN_OR_RAISE(std::vector<store::Object> objects, ListFolder(folder_, kFragmentFolder));
  ARROW_ASSIGN_OR_RAISE(const auto manifest_objects, ListFolder(folder_, kManifestFolder));
  objects.insert(objects.end(), manifest_objects.begin(), manifest_objects.end());
  const std::vector<int64_t> versions = VersionsOf(folder_, manifest_objects);
  ARROW_ASSIGN_OR_RAISE(const std::vector<Manifest> manifests, ReadAll(versions));

  // Kept: the newest kVersionsKept of the index as it is now (not of one dropped before).
  const int64_t newest = versions.empty() ? 0 : versions.back();
  int64_t kept_from = std::max<int64_t>(1, newest - kVersionsKept + 1);
  for (const Manifest& manifest : manifests) {
    if (manifest.dropped) kept_from = std::max(kept_from, manifest.version);
  }
  std::set<std::string, std::less<>> referenced;
  for (const Manifest& manifest : manifests) {
    if (manifest.version < kept_from) continue;
    referenced.insert(VersionName(manifest.version));
    for (const FragmentInfo& fragment : manifest.fragments) {
      referenced.insert(fragment.path);
      referenced.insert(StatsPath(fragment.path));
    }
  }
  const bool live = !manifests.empty() && !manifests.back().dropped;
  if (live) referenced.insert(std::string(kHint));

  const size_t prefix_bytes = Join(folder_.path, "").size();
  const int64_t made_before_ms = NowMs() - min_age_seconds * 1000;
  std::vector<std::pair<int64_t, store::Object>> orphans;
  for (store::Object& object : objects) {
    const std::string_view name = std::string_view(object.path).substr(prefix_bytes);
    if (referenced.contains(name) || !IsOurs(name)) continue;
    int64_t made_ms = MadeAtMs(folder_, object);
    if (made_ms >= 0 && min_age_seconds > 0 && made_ms > made_before_ms) continue;
    if (made_ms < 0) made_ms = std::numeric_limits<int64_t>::max();
    orphans.emplace_back(made_ms, std::move(object));
  }
  std::sort(orphans.begin(), orphans.end(), [](const auto& a, const auto& b) {
    return std::tie(a.first, a.second.path) < std::tie(b.first, b.second.path);
  });
  std::vector<store::Object> result;
  for (auto& [made_ms, object] : orphans) result.push_back(std::move(object));
  return result;
}

}  // namespace grebe::index

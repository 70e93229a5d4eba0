// The manifest: which fragments one version of an index holds. docs/format/manifest.md.
//
// Versions are objects manifest/<20 digits>.json created with put-if-absent: a version appears
// whole or not at all, and of two writers one gets Conflict. `manifest/hint.json` is a copy of the
// newest, read in the same wave as the listing so that a cold open is one wave; it may lag, never
// lead, and the listing alone decides which version is the newest.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "index/fragment.h"
#include "store/store.h"

namespace grebe::index {

struct KeyColumnSpec {
  std::string name;   // dotted path, or a Hive partition column
  std::string type;   // key::KeyType text
  bool operator==(const KeyColumnSpec&) const = default;
};

struct Manifest {
  static constexpr int kFormatVersion = 1;
  int64_t version = 0;
  std::string index_id;                     // uuid of the index: a dropped and re-made one differs
  std::vector<KeyColumnSpec> key;
  std::vector<std::string> covering;        // dotted paths
  std::string covering_schema;              // Arrow IPC schema bytes (base64 in JSON); empty: none
  bool sorted = false;
  std::string table_uri;
  std::string table_kind;                   // "plain", "hive"
  std::string snapshot_id;
  std::string created_at;                   // RFC 3339, UTC
  std::string writer;                       // "grebe 0.1.0"
  std::vector<FragmentInfo> fragments;
  // Files of fragments that are no longer live: fragment path, file ordinal, and how many of the
  // fragment's rows are the file's.
  struct DeadFile {
    std::string fragment;
    uint32_t file = 0;
    int64_t row_count = 0;
    bool operator==(const DeadFile&) const = default;
  };
  std::vector<DeadFile> dead_files;
  // Files that were left out by --skip-bad-files, with the reason.
  struct SkippedFile {
    std::string path;
    store::Identity identity;
    std::string reason;
    bool operator==(const SkippedFile&) const = default;
  };
  std::vector<SkippedFile> skipped_files;
  // A tombstone: the version that says the index was dropped. It keeps the version numbers going.
  bool dropped = false;
  // Random, filled in by Commit: tells a writer its own version from another's.
  std::string commit_id;
  bool operator==(const Manifest&) const = default;
};

// JSON, keys sorted, with a trailing checksum member over the rest. Lossless for every string.
// Parse errors: Corrupt, naming the member (damage, unknown or missing members, wrong types, values
// that contradict each other); Unsupported for an unknown format version.
std::string SerializeManifest(const Manifest& manifest);
Result<Manifest> ParseManifest(std::string_view json);

// Checks what ParseManifest checks beyond the JSON itself: unique, safe fragment paths, ranges
// inside their objects, dead files that exist. Errors: Corrupt, naming the member.
Status CheckManifest(const Manifest& manifest);

// A random UUID (version 4), and a new fragment's path "fragment/<uuid>.gfx" (version 7: it holds
// the time, so that FindOrphans knows the age of a fragment on every store).
std::string NewIndexId();
std::string NewFragmentPath();
// The object that holds the statistics of a fragment's files, for scans: "fragment/<uuid>.gst". It
// lives and goes with the fragment; an index of an older version has none.
std::string StatsPath(std::string_view fragment_path);

// One index folder. Threads: safe; so are several processes on one folder.
class ManifestLog {
 public:
  // Commit drops manifests older than this many versions.
  static constexpr int64_t kVersionsKept = 100;

  explicit ManifestLog(store::Location index_folder);

  // The newest version; nullopt when the folder has none (no such index, or dropped).
  // Cost: one wave (list and hint together) when the hint is current, else two.
  // Errors: Corrupt, Unsupported, the store's. A damaged hint is not an error.
  Result<std::optional<Manifest>> ReadNewest() const;
  // Every version whose manifest is there, ascending; a tombstone counts as one.
  Result<std::vector<int64_t>> ListVersions() const;
  // One version (a tombstone has `dropped` set). Errors: NotFound, as ReadNewest.
  Result<Manifest> Read(int64_t version) const;

  // Publishes manifest as version base_version + 1; sets its version, commit_id, and created_at
  // when that is empty. base_version 0 creates the index: Conflict when there is one; after a
  // drop the version numbers go on from the tombstone's. Conflict when another writer was first.
  // Then updates the hint (best effort) and drops manifests older than the last kVersionsKept.
  // Cost: one put and one list, then the hint's put and the deletes. Errors: Conflict: not
  // committed. InvalidArgument: not committed. Others: unknown; read again, and leave the
  // fragments (FindOrphans names them if they turn out to be in no version).
  Status Commit(int64_t base_version, Manifest manifest);

  // Drops the index: a tombstone version first (so readers and writers agree), then the objects
  // of its versions. Goes on where a killed drop stopped. Errors: NotFound when there is nothing
  // to drop; the store's.
  Status Drop();

  // Objects of the folder that no kept version refers to (fragments and temporary objects of
  // killed builds, manifests of a dropped index), oldest first where the age is known, not
  // counting ones younger than min_age_seconds where it is (local files: mtime; else the time in
  // the fragment's name). Reads every kept manifest; Corrupt when one cannot be read.
  Result<std::vector<store::Object>> FindOrphans(int64_t min_age_seconds = 0) const;

 private:
  Result<std::vector<Manifest>> ReadAll(const std::vector<int64_t>& versions) const;
  Result<std::optional<Manifest>> ReadLatest() const;
  Result<int64_t> PutTombstone(bool* found) const;
  Status PutVersion(const Manifest& manifest) const;
  Status ConfirmVersion(const Manifest& manifest, const std::vector<int64_t>& versions) const;

  store::Location folder_;
};

}  // namespace grebe::index

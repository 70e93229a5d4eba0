// The manifest: which fragments and data files one version of an index holds. docs/format/manifest.md.
//
// Versions are objects manifest/<20 digits>.json created with put-if-absent: a version appears
// whole or not at all, and of two writers one gets Conflict. `manifest/hint.json` is a copy of the
// newest, read in the same wave as the listing so that a cold open is one wave; it may lag, never lead.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
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
  // Files of fragments that are no longer live: (fragment path, file ordinal).
  struct DeadFile {
    std::string fragment;
    uint32_t file = 0;
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
  bool operator==(const Manifest&) const = default;
};

// JSON, keys sorted, with a trailing checksum member over the rest. Parse errors: Corrupt;
// Unsupported for an unknown format version. Unknown members are refused.
std::string SerializeManifest(const Manifest& manifest);
Result<Manifest> ParseManifest(std::string_view json);

// One index folder.
class ManifestLog {
 public:
  explicit ManifestLog(store::Location index_folder);

  // The newest version; nullopt when the folder has none (no such index, or dropped).
  // Cost: one wave (list and hint together) when the hint is current, else two.
  Result<std::optional<Manifest>> ReadNewest() const;
  Result<std::vector<int64_t>> ListVersions() const;
  Result<Manifest> Read(int64_t version) const;

  // Publishes manifest as version base_version + 1. Conflict when another writer was first.
  // Then updates the hint (best effort) and drops manifests older than the last 100 versions.
  Status Commit(int64_t base_version, Manifest manifest);

  // Drops the index: a tombstone version first (so readers and writers agree), then its objects.
  Status Drop();

  // Objects of the folder that no kept version refers to (fragments of killed builds), oldest
  // first, not counting ones younger than min_age_seconds where the store tells ages.
  Result<std::vector<store::Object>> FindOrphans() const;

 private:
  store::Location folder_;
};

}  // namespace grebe::index

// How files are cut and encoded for a use; the values are measured in docs/bench/presets.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "parquet/write_file.h"

namespace grebe::pq {

struct WritePreset {
  WriteOptions options;
  int64_t row_group_rows = 0;      // at most; a file's last one may have fewer
  bool aligned_pages = false;      // all columns cut at the same rows: see SharedPageEnds
};

// For scans: large row groups and pages, dictionaries wherever they help.
WritePreset AnalyticsPreset();

// For lookups: small aligned pages, row groups that one request can bring whole, no dictionary
// where values hardly repeat.
WritePreset ServingPreset();

// By name: "analytics", "serving". nullopt: no such preset.
std::optional<WritePreset> PresetOf(std::string_view name);

}  // namespace grebe::pq

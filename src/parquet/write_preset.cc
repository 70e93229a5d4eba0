#include "parquet/write_preset.h"

namespace grebe::pq {

WritePreset AnalyticsPreset() {
  WritePreset preset;
  preset.row_group_rows = 1 << 17;
  return preset;
}

WritePreset ServingPreset() {
  WritePreset preset;
  preset.row_group_rows = 6144;
  preset.aligned_pages = true;
  preset.options.page_rows_max = 512;
  preset.options.page_bytes_max = 32 << 10;
  preset.options.dictionary_bytes_max = 4 << 10;
  preset.options.dictionary_distinct_share_max = 0.05;
  return preset;
}

std::optional<WritePreset> PresetOf(std::string_view name) {
  if (name == "analytics") return AnalyticsPreset();
  if (name == "serving") return ServingPreset();
  return std::nullopt;
}

}  // namespace grebe::pq

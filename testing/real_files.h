// The Parquet files that others made: $GREBE_REAL_FILES names their folder, ../shared/real-files is
// tried without it. Tests skip where there is none.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

namespace grebe::testing {

inline std::filesystem::path RealFiles() {
  const char* const folder = std::getenv("GREBE_REAL_FILES");
  return folder != nullptr ? folder : "../shared/real-files";
}

// Files of the folder that are Parquet by name, in order; larger ones than bytes_max left out, and
// where $GREBE_REAL_FILES_ONLY is set those whose path does not contain it.
inline std::vector<std::filesystem::path> ParquetFiles(
    const std::filesystem::path& root,
    uintmax_t bytes_max = std::numeric_limits<uintmax_t>::max()) {
  const char* const only = std::getenv("GREBE_REAL_FILES_ONLY");
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
    const std::string name = entry.path().filename().string();
    if (!entry.is_regular_file() || name.ends_with(".crc") ||
        name.find(".parq") == std::string::npos || entry.file_size() > bytes_max) {
      continue;
    }
    if (only != nullptr && entry.path().string().find(only) == std::string::npos) continue;
    paths.push_back(entry.path());
  }
  std::ranges::sort(paths);
  return paths;
}

inline std::string ReadWholeFile(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream bytes;
  bytes << in.rdbuf();
  return bytes.str();
}

}  // namespace grebe::testing

// A folder on disk for one test, removed at its end.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <string>

namespace grebe::testing {

class TempFolder {
 public:
  TempFolder() {
    std::string text = (std::filesystem::temp_directory_path() / "grebe-test-XXXXXX").string();
    path_ = ::mkdtemp(text.data());
  }
  ~TempFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace grebe::testing

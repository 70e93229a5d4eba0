// Where the sources are: tests hold pages of docs/ against the code.
#pragma once

#include <cstdlib>
#include <string>

namespace grebe::testing {

// $GREBE_SOURCE_DIR, which ctest sets, else the current folder. A macro with the path would keep
// clones in different folders from sharing compilations.
inline std::string SourceFolder() {
  const char* const folder = std::getenv("GREBE_SOURCE_DIR");
  return folder != nullptr ? folder : ".";
}

}  // namespace grebe::testing

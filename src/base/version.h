// The version of this library, for the rooms that write it into files.
#pragma once

namespace grebe {

inline constexpr const char* kVersion = "0.1.0";

}  // namespace grebe

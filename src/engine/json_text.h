// JSON strings.
#pragma once

#include <string>
#include <string_view>

namespace grebe::engine {

// Appends text as a JSON string; bytes that are not UTF-8 become U+FFFD.
void AppendJsonString(std::string_view text, std::string* out);

}  // namespace grebe::engine

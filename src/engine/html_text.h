// Text for a page: nothing in it can become markup.
#pragma once

#include <string>
#include <string_view>

namespace grebe::engine {

// Text between tags or within a quoted attribute: markup characters as entities; control
// characters, those that turn the direction of writing, and bytes that are not UTF-8 as U+FFFD.
std::string HtmlText(std::string_view text);

}  // namespace grebe::engine

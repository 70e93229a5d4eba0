#include "engine/html_text.h"

#include <cstdint>

namespace grebe::engine {
namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd";

// The length of the well-formed character that the text begins with, and its number; 0: none.
size_t ReadCharacter(std::string_view text, uint32_t* character) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  const size_t length = lead < 0x80 ? 1 : lead < 0xc2 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3
                        : lead < 0xf5 ? 4 : 0;
  if (length == 0 || length > text.size()) return 0;
  *character = length == 1 ? lead : lead & (0x7f >> length);
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
    *character = *character << 6 | (byte(i) & 0x3f);
  }
  const bool overlong = (length == 3 && *character < 0x800) ||
                        (length == 4 && *character < 0x10000);
  const bool surrogate = *character >= 0xd800 && *character < 0xe000;
  return overlong || surrogate || *character > 0x10ffff ? 0 : length;
}

bool IsHostile(uint32_t c) {
  const bool control = c < 0x20 || (c >= 0x7f && c < 0xa0);
  const bool direction = c == 0x200e || c == 0x200f || (c >= 0x202a && c <= 0x202e) ||
                         (c >= 0x2066 && c <= 0x2069) || c == 0x61c;
  const bool line = c == 0x2028 || c == 0x2029;
  const bool none = (c & 0xfffe) == 0xfffe || (c >= 0xfdd0 && c <= 0xfdef);
  return control || direction || line || none;
}

}  // namespace

std::string HtmlText(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    uint32_t character = 0;
    const size_t length = ReadCharacter(text, &character);
    switch (length == 0 ? 0 : character) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      case '\'': out += "&#39;"; break;
      default:
        if (length == 0 || IsHostile(character)) {
          out += kReplacement;
        } else {
          out += text.substr(0, length);
        }
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return out;
}

}  // namespace grebe::engine

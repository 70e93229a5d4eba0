#include "cli/number_option.h"

#include <charconv>
#include <cmath>
#include <string>

namespace grebe::cli {
namespace {

std::string NoNumber(const std::string& text) { return "'" + text + "' is not a number"; }

std::string TooSmall(const std::string& text, int64_t least) {
  return text + " is too small: it must be at least " + std::to_string(least);
}

}  // namespace

CLI::Validator AtLeast(int64_t least) {
  return CLI::Validator(
      [least](std::string& text) -> std::string {
        double number = 0;
        if (!CLI::detail::lexical_cast(text, number) || !std::isfinite(number)) {
          return NoNumber(text);
        }
        return number < static_cast<double>(least) ? TooSmall(text, least) : "";
      },
      least == 0 ? "NONNEGATIVE" : "POSITIVE");
}

CLI::Validator MoreThanZero() {
  return CLI::Validator(
      [](std::string& text) -> std::string {
        double number = 0;
        if (!CLI::detail::lexical_cast(text, number) || !std::isfinite(number)) {
          return NoNumber(text);
        }
        return number > 0 ? "" : text + " is too small: it must be more than 0";
      },
      "POSITIVE");
}

CLI::Validator Size(int64_t least, int64_t most) {
  const CLI::AsSizeValue with_unit(/*kb_is_1000=*/false);
  return CLI::Validator(
      [=](std::string& text) -> std::string {
        const std::string given = text;
        if (!text.starts_with('-')) {   // -1 has a meaning in some options; no unit goes with it
          if (std::string error = with_unit(text); !error.empty()) return error;
        }
        int64_t bytes = 0;
        const char* end = text.data() + text.size();
        const auto [stopped, error] = std::from_chars(text.data(), end, bytes);
        if (stopped != end) return "'" + given + "' is not a size";
        if (error == std::errc() && bytes < least) return TooSmall(given, least);
        if (error != std::errc() || bytes > most) {
          return given + " is too large: it must be at most " + std::to_string(most);
        }
        return "";
      },
      with_unit.get_description());
}

}  // namespace grebe::cli

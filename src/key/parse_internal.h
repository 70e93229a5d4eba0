// Parsing of dates and times. Private to src/key.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace grebe::key::internal {

// "YYYY-MM-DD" (a sign and up to 9 digits of year are allowed) to days since 1970-01-01, in the
// proleptic Gregorian calendar. nullopt: not a date, or no such day.
std::optional<int64_t> ParseDate(std::string_view text);

struct TimeOfDay {
  int64_t seconds = 0;
  int32_t nanoseconds = 0;
  int fraction_digits = 0;   // without trailing zeros: 0..9
};
// "hh:mm", "hh:mm:ss" or "hh:mm:ss.fraction" (at most nanoseconds); 24:00 and :60 are refused.
std::optional<TimeOfDay> ParseTime(std::string_view text);

struct Instant {
  int64_t seconds = 0;       // since 1970-01-01T00:00:00, floor
  int32_t nanoseconds = 0;
  int fraction_digits = 0;
  bool has_zone = false;
  int32_t zone_seconds = 0;  // already subtracted from seconds
};
// A date, or a date and a time apart by 'T', 't' or a space, and then perhaps a zone: "Z",
// "+hh", "+hh:mm" or "+hhmm".
std::optional<Instant> ParseInstant(std::string_view text);

}  // namespace grebe::key::internal

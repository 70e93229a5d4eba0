#include "key/parse_internal.h"

namespace grebe::key::internal {

namespace {

// Takes digits from the front: at least min, at most max of them.
std::optional<int64_t> TakeDigits(std::string_view* text, size_t min, size_t max) {
  int64_t value = 0;
  size_t count = 0;
  while (count < max && count < text->size() && (*text)[count] >= '0' && (*text)[count] <= '9') {
    value = value * 10 + ((*text)[count++] - '0');
  }
  if (count < min) return std::nullopt;
  text->remove_prefix(count);
  return value;
}

bool TakeChar(std::string_view* text, char c) {
  if (text->empty() || text->front() != c) return false;
  text->remove_prefix(1);
  return true;
}

bool IsLeap(int64_t year) { return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0); }

// Days since 1970-01-01 of a day of the proleptic Gregorian calendar: years are counted from
// March, in eras of 400 years.
int64_t DaysOf(int64_t year, int64_t month, int64_t day) {
  year -= month <= 2;
  const int64_t era = (year >= 0 ? year : year - 399) / 400;
  const int64_t year_of_era = year - era * 400;
  const int64_t day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
  const int64_t day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
  return era * 146097 + day_of_era - 719468;
}

std::optional<int64_t> TakeDate(std::string_view* text) {
  const bool negative = TakeChar(text, '-');
  if (!negative) TakeChar(text, '+');
  const auto year = TakeDigits(text, 4, 12);
  if (!year || !TakeChar(text, '-')) return std::nullopt;
  const auto month = TakeDigits(text, 2, 2);
  if (!month || !TakeChar(text, '-')) return std::nullopt;
  const auto day = TakeDigits(text, 2, 2);
  if (!day || *month < 1 || *month > 12) return std::nullopt;
  const int64_t signed_year = negative ? -*year : *year;
  static constexpr int kDays[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  const int64_t last = kDays[*month - 1] + (*month == 2 && IsLeap(signed_year) ? 1 : 0);
  if (*day < 1 || *day > last) return std::nullopt;
  return DaysOf(signed_year, *month, *day);
}

std::optional<TimeOfDay> TakeTime(std::string_view* text) {
  const auto hour = TakeDigits(text, 2, 2);
  if (!hour || *hour > 23 || !TakeChar(text, ':')) return std::nullopt;
  const auto minute = TakeDigits(text, 2, 2);
  if (!minute || *minute > 59) return std::nullopt;
  TimeOfDay time;
  time.seconds = *hour * 3600 + *minute * 60;
  if (!TakeChar(text, ':')) return time;
  const auto second = TakeDigits(text, 2, 2);
  if (!second || *second > 59) return std::nullopt;
  time.seconds += *second;
  if (!TakeChar(text, '.')) return time;
  int digits = 0;
  int64_t nanoseconds = 0;
  for (; !text->empty() && text->front() >= '0' && text->front() <= '9'; ++digits) {
    const int digit = text->front() - '0';
    text->remove_prefix(1);
    if (digits >= 9) {
      if (digit != 0) return std::nullopt;
      continue;
    }
    nanoseconds = nanoseconds * 10 + digit;
    if (digit != 0) time.fraction_digits = digits + 1;
  }
  if (digits == 0) return std::nullopt;
  for (; digits < 9; ++digits) nanoseconds *= 10;
  time.nanoseconds = static_cast<int32_t>(nanoseconds);
  return time;
}

// The zone at the end of an instant; false when there is text that is none.
bool TakeZone(std::string_view* text, Instant* instant) {
  if (text->empty()) return true;
  instant->has_zone = true;
  if (TakeChar(text, 'Z') || TakeChar(text, 'z')) return text->empty();
  const bool west = TakeChar(text, '-');
  if (!west && !TakeChar(text, '+')) return false;
  const auto hours = TakeDigits(text, 2, 2);
  if (!hours || *hours > 23) return false;
  int64_t minutes = 0;
  if (!text->empty()) {
    TakeChar(text, ':');
    const auto written = TakeDigits(text, 2, 2);
    if (!written || *written > 59) return false;
    minutes = *written;
  }
  instant->zone_seconds = static_cast<int32_t>((*hours * 3600 + minutes * 60) * (west ? -1 : 1));
  instant->seconds -= instant->zone_seconds;
  return text->empty();
}

}  // namespace

std::optional<int64_t> ParseDate(std::string_view text) {
  const auto days = TakeDate(&text);
  return text.empty() ? days : std::nullopt;
}

std::optional<TimeOfDay> ParseTime(std::string_view text) {
  const auto time = TakeTime(&text);
  return text.empty() ? time : std::nullopt;
}

std::optional<Instant> ParseInstant(std::string_view text) {
  const auto days = TakeDate(&text);
  if (!days) return std::nullopt;
  Instant instant;
  // Farther than any unit reaches; the margin keeps the sums below from overflowing.
  constexpr int64_t kDaysMax = (INT64_MAX - 200000) / 86400;
  if (*days > kDaysMax || *days < -kDaysMax) return std::nullopt;
  instant.seconds = *days * 86400;
  if (TakeChar(&text, 'T') || TakeChar(&text, 't') || TakeChar(&text, ' ')) {
    const auto time = TakeTime(&text);
    if (!time) return std::nullopt;
    instant.seconds += time->seconds;
    instant.nanoseconds = time->nanoseconds;
    instant.fraction_digits = time->fraction_digits;
    TakeChar(&text, ' ');
  }
  if (!TakeZone(&text, &instant)) return std::nullopt;
  return instant;
}

}  // namespace grebe::key::internal

#include "cli/progress.h"

#include <unistd.h>

#include <cstdio>
#include <string>

namespace grebe::cli {
namespace {

constexpr int kBarWidth = 24;

std::string Amount(double value, const char* unit) {
  const char* prefixes[] = {"", "k", "M", "G", "T"};
  int prefix = 0;
  while (value >= 1000 && prefix < 4) {
    value /= 1000;
    ++prefix;
  }
  char text[32];
  std::snprintf(text, sizeof(text), prefix == 0 ? "%.0f %s%s" : "%.1f %s%s", value,
                prefixes[prefix], unit);
  return text;
}

}  // namespace

ProgressBar::ProgressBar() : enabled_(isatty(STDERR_FILENO) != 0) {}

ProgressBar::~ProgressBar() {
  if (drawn_) std::fputs("\r\033[K", stderr);
}

ProgressCallback ProgressBar::Callback() {
  if (!enabled_) return {};
  return [this](const BuildProgress& progress) { Draw(progress); };
}

void ProgressBar::Draw(const BuildProgress& progress) {
  const auto now = std::chrono::steady_clock::now();
  if (drawn_ && now - last_draw_ < std::chrono::milliseconds(100)) return;
  last_draw_ = now;
  drawn_ = true;
  const double seconds = std::chrono::duration<double>(now - start_).count();
  const double share = progress.bytes_total > 0 ? static_cast<double>(progress.bytes_done) /
                                                      static_cast<double>(progress.bytes_total)
                                                : 1.0;
  std::string bar;
  for (int i = 0; i < kBarWidth; ++i) bar += i < share * kBarWidth ? '#' : '.';
  const double left = share > 0 ? seconds / share - seconds : 0;
  const double rows_per_second = seconds > 0 ? static_cast<double>(progress.rows) / seconds : 0;
  std::fprintf(stderr, "\r[%s] %lld/%lld files  %s  %s/s  %s  %.0f s left\033[K", bar.c_str(),
               static_cast<long long>(progress.files_done),
               static_cast<long long>(progress.files_total),
               Amount(static_cast<double>(progress.rows), "rows").c_str(),
               Amount(rows_per_second, "rows").c_str(),
               Amount(static_cast<double>(progress.bytes_done), "B").c_str(), left);
}

}  // namespace grebe::cli

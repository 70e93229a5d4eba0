// A progress bar on stderr, when stderr is a terminal: rows a second, bytes, time left.
#pragma once

#include <chrono>

#include "grebe/index.h"

namespace grebe::cli {

class ProgressBar {
 public:
  ProgressBar();
  ~ProgressBar();   // clears the line
  ProgressBar(const ProgressBar&) = delete;

  // For BuildOptions::progress.
  ProgressCallback Callback();

 private:
  void Draw(const BuildProgress& progress);

  const bool enabled_;
  bool drawn_ = false;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point last_draw_{};
};

}  // namespace grebe::cli

// Elapsed time for cost records. Never used to decide an answer.
#pragma once

#include <chrono>
#include <cstdint>

namespace grebe {

class Stopwatch {
 public:
  // Microseconds since construction or the last LapUs.
  int64_t LapUs() {
    const auto now = std::chrono::steady_clock::now();
    const auto lap = std::chrono::duration_cast<std::chrono::microseconds>(now - lap_start_);
    lap_start_ = now;
    return lap.count();
  }

  // Microseconds since construction.
  int64_t TotalUs() const {
    const auto now = std::chrono::steady_clock::now();
    return std::chrono::duration_cast<std::chrono::microseconds>(now - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point lap_start_ = start_;
};

}  // namespace grebe

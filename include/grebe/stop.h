// Asking long work to stop: Ctrl-C in the command line, a deadline in a service.
//
// Work polls Check() at least every few milliseconds and unwinds with Cancelled, leaving nothing
// half-published. Threads: safe; RequestStop may be called from a signal handler.
#pragma once

#include <arrow/status.h>

#include <atomic>

namespace grebe {

class StopToken {
 public:
  void RequestStop() { stopped_.store(true, std::memory_order_relaxed); }
  bool stopped() const { return stopped_.load(std::memory_order_relaxed); }
  // Cancelled once RequestStop was called, else OK.
  arrow::Status Check() const;

 private:
  std::atomic<bool> stopped_{false};
};

}  // namespace grebe

#include "layout/parallel.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>
#include <vector>

namespace grebe::layout {

Status RunAll(int threads, size_t count, const std::function<Status(size_t)>& unit) {
  std::atomic<size_t> next{0};
  std::atomic<bool> failed{false};
  std::mutex mutex;
  size_t failed_unit = count;
  Status error;
  const auto work = [&] {
    while (!failed.load()) {
      const size_t i = next.fetch_add(1);
      if (i >= count) return;
      Status status = unit(i);
      if (status.ok()) continue;
      failed.store(true);
      std::lock_guard lock(mutex);
      if (i < failed_unit) {
        failed_unit = i;
        error = std::move(status);
      }
    }
  };
  std::vector<std::thread> helpers;
  const size_t wanted = std::min(count, static_cast<size_t>(std::max(threads, 1)));
  for (size_t i = 1; i < wanted; ++i) helpers.emplace_back(work);
  work();
  for (std::thread& helper : helpers) helper.join();
  return error;
}

}  // namespace grebe::layout

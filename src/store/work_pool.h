// A few threads that lend a hand to callers who could do all the work alone.
//
// Nothing ever waits for the pool: ParallelFor runs units on the calling thread too, so a busy
// pool slows a caller down to its own speed and cannot deadlock it.
// Threads: safe.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace grebe::store {

class WorkPool {
 public:
  // threads: how many at most; 0 is allowed (then callers work alone). Threads start when the
  // first work arrives.
  explicit WorkPool(int threads) : threads_max_(threads) {}
  ~WorkPool();  // runs what was submitted, then joins

  WorkPool(const WorkPool&) = delete;
  WorkPool& operator=(const WorkPool&) = delete;

  int threads_max() const { return threads_max_; }

  // Runs work once, on a pool thread, some time. Dropped when the pool has no threads.
  void Submit(std::function<void()> work);

  // Runs unit(0) .. unit(count - 1), each once, on this thread and up to threads_max pool threads;
  // returns when all have returned. unit must not throw.
  void ParallelFor(size_t count, const std::function<void(size_t)>& unit);

 private:
  void RunThread();

  const int threads_max_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> queue_;
  std::vector<std::thread> threads_;
  int idle_count_ = 0;
  bool stopping_ = false;
};

}  // namespace grebe::store

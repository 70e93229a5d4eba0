#include "store/work_pool.h"

#include <atomic>
#include <memory>
#include <utility>

namespace grebe::store {
namespace {

// One ParallelFor. Helpers that arrive late find no unit left and never touch `unit`, which lives
// on the caller's stack; the caller leaves only when every claimed unit is done.
struct Job {
  const std::function<void(size_t)>* unit = nullptr;
  size_t count = 0;
  std::atomic<size_t> next{0};
  std::mutex mutex;
  std::condition_variable finished;
  size_t done_count = 0;

  void Work() {
    size_t done = 0;
    for (size_t i = next.fetch_add(1); i < count; i = next.fetch_add(1)) {
      (*unit)(i);
      ++done;
    }
    if (done == 0) return;
    std::lock_guard lock(mutex);
    done_count += done;
    if (done_count == count) finished.notify_all();
  }
};

}  // namespace

WorkPool::~WorkPool() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void WorkPool::Submit(std::function<void()> work) {
  {
    std::lock_guard lock(mutex_);
    if (threads_max_ <= 0 || stopping_) return;
    queue_.push_back(std::move(work));
    if (static_cast<size_t>(idle_count_) < queue_.size() &&
        threads_.size() < static_cast<size_t>(threads_max_)) {
      threads_.emplace_back([this] { RunThread(); });
    }
  }
  wake_.notify_one();
}

void WorkPool::RunThread() {
  std::unique_lock lock(mutex_);
  while (true) {
    ++idle_count_;
    wake_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
    --idle_count_;
    if (queue_.empty()) return;
    std::function<void()> work = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    work();
    work = nullptr;
    lock.lock();
  }
}

void WorkPool::ParallelFor(size_t count, const std::function<void(size_t)>& unit) {
  if (count <= 1 || threads_max_ <= 0) {
    for (size_t i = 0; i < count; ++i) unit(i);
    return;
  }
  auto job = std::make_shared<Job>();
  job->unit = &unit;
  job->count = count;
  const size_t helpers = std::min(count - 1, static_cast<size_t>(threads_max_));
  for (size_t i = 0; i < helpers; ++i) Submit([job] { job->Work(); });
  job->Work();
  std::unique_lock lock(job->mutex);
  job->finished.wait(lock, [&] { return job->done_count == count; });
}

}  // namespace grebe::store

#include "scan/ahead_store.h"

#include <algorithm>
#include <utility>

#include "store/coalesce.h"

namespace grebe::scan {

void AheadStore::Prefetch(std::vector<store::ReadRequest> requests) {
  ++prefetches_;
  if (requests.empty()) return;
  const store::ReadCosts costs = behind_.read_costs();
  const store::CoalescedWave wave = store::Coalesce(
      requests, {.gap_bytes_max = coalesce_ ? costs.gap_bytes_max : -1,
                 .range_bytes_max = costs.range_bytes_max});
  std::vector<std::shared_ptr<arrow::Buffer>> buffers(wave.requests.size());
  behind_.ReadEach(wave.requests, [&](size_t i, Result<std::shared_ptr<arrow::Buffer>> bytes) {
    if (bytes.ok()) buffers[i] = *std::move(bytes);
  });
  for (size_t i = 0; i < wave.requests.size(); ++i) {
    const store::ReadRequest& request = wave.requests[i];
    counters_.bytes += request.range.size_bytes();
    if (buffers[i] != nullptr && buffers[i]->size() == request.range.size_bytes()) {
      held_[request.object->path].push_back({request.range, buffers[i], prefetches_});
    }
  }
  ++counters_.waves;
  counters_.requests += static_cast<int64_t>(wave.requests.size());
  counters_.gap_bytes += wave.bridged_bytes;
}

void AheadStore::Clear(int64_t mark) {
  for (auto& [path, held] : held_) {
    std::erase_if(held, [&](const Held& one) { return one.prefetch > mark; });
  }
  std::erase_if(held_, [](const auto& of_path) { return of_path.second.empty(); });
}

ReadCounters AheadStore::TakeCounters() {
  std::lock_guard lock(mutex_);
  int64_t late = 0;
  for (const auto& [path, waves] : late_waves_) late = std::max(late, waves);
  late_waves_.clear();
  ReadCounters out = std::exchange(counters_, {});
  out.waves += late;
  return out;
}

std::shared_ptr<arrow::Buffer> AheadStore::Find(const store::ReadRequest& request) const {
  const auto found = held_.find(request.object->path);
  if (found == held_.end()) return nullptr;
  for (const Held& held : found->second) {
    if (held.range.begin <= request.range.begin && request.range.end <= held.range.end) {
      return arrow::SliceBuffer(held.bytes, request.range.begin - held.range.begin,
                                request.range.size_bytes());
    }
  }
  return nullptr;
}

void AheadStore::ReadEach(std::span<const store::ReadRequest> requests,
                          const store::ReadCallback& on_read) {
  std::vector<store::ReadRequest> late;
  std::vector<size_t> places;
  for (size_t i = 0; i < requests.size(); ++i) {
    if (auto bytes = Find(requests[i])) {
      on_read(i, std::move(bytes));
    } else {
      late.push_back(requests[i]);
      places.push_back(i);
    }
  }
  if (late.empty()) return;
  {
    std::lock_guard lock(mutex_);
    ++late_waves_[late[0].object->path];
    counters_.requests += static_cast<int64_t>(late.size());
    for (const store::ReadRequest& request : late) counters_.bytes += request.range.size_bytes();
  }
  behind_.ReadEach(late, [&](size_t i, Result<std::shared_ptr<arrow::Buffer>> bytes) {
    on_read(places[i], std::move(bytes));
  });
}

}  // namespace grebe::scan

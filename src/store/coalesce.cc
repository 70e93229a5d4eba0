#include "store/coalesce.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace grebe::store {
namespace {

bool SameObject(const ReadRequest& a, const ReadRequest& b) {
  return a.object == b.object ||
         (a.object->path == b.object->path && a.object->identity == b.object->identity);
}

// By object, then by range.
bool Before(const ReadRequest& a, const ReadRequest& b) {
  if (a.object != b.object) {
    const Object& x = *a.object;
    const Object& y = *b.object;
    if (const int order = x.path.compare(y.path); order != 0) return order < 0;
    if (const int order = x.identity.tag.compare(y.identity.tag); order != 0) return order < 0;
    if (x.identity.size_bytes != y.identity.size_bytes) {
      return x.identity.size_bytes < y.identity.size_bytes;
    }
  }
  return a.range < b.range;
}

}  // namespace

CoalescedWave Coalesce(std::span<const ReadRequest> requests, const CoalesceOptions& options) {
  CoalescedWave wave;
  std::vector<uint32_t> order(requests.size());
  std::iota(order.begin(), order.end(), 0);
  if (options.gap_bytes_max >= 0) {
    std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
      if (Before(requests[a], requests[b])) return true;
      return !Before(requests[b], requests[a]) && a < b;
    });
  }
  wave.parts.reserve(requests.size());
  for (const uint32_t index : order) {
    const ReadRequest& request = requests[index];
    ReadRequest* last = wave.requests.empty() ? nullptr : &wave.requests.back();
    const bool joins = options.gap_bytes_max >= 0 && last != nullptr && !request.range.empty() &&
                       !last->range.empty() && SameObject(*last, request) &&
                       request.range.begin - last->range.end <= options.gap_bytes_max &&
                       std::max(last->range.end, request.range.end) - last->range.begin <=
                           options.range_bytes_max;
    // Within a request that is larger than range_bytes_max by itself, overlaps still join.
    const bool inside = options.gap_bytes_max >= 0 && last != nullptr && !request.range.empty() &&
                        SameObject(*last, request) && request.range.begin >= last->range.begin &&
                        request.range.end <= last->range.end;
    if (joins || inside) {
      wave.bridged_bytes += std::max<int64_t>(0, request.range.begin - last->range.end);
      last->range.end = std::max(last->range.end, request.range.end);
    } else {
      wave.part_begin.push_back(static_cast<uint32_t>(wave.parts.size()));
      wave.requests.push_back(request);
      last = &wave.requests.back();
    }
    wave.parts.push_back({.request = index,
                          .offset_bytes = request.range.begin - last->range.begin,
                          .size_bytes = request.range.size_bytes()});
  }
  wave.part_begin.push_back(static_cast<uint32_t>(wave.parts.size()));
  return wave;
}

void ReadEachCoalesced(Store* store, std::span<const ReadRequest> requests,
                       const CoalesceOptions& options, const ReadCallback& on_read,
                       int64_t* bridged_bytes) {
  if (requests.size() < 2 || options.gap_bytes_max < 0) {
    if (bridged_bytes != nullptr) *bridged_bytes = 0;
    store->ReadEach(requests, on_read);
    return;
  }
  const CoalescedWave wave = Coalesce(requests, options);
  if (bridged_bytes != nullptr) *bridged_bytes = wave.bridged_bytes;
  store->ReadEach(wave.requests, [&](size_t i, Result<std::shared_ptr<arrow::Buffer>> answer) {
    const uint32_t begin = wave.part_begin[i];
    const uint32_t end = wave.part_begin[i + 1];
    for (uint32_t p = begin; p < end; ++p) {
      const CoalescedWave::Part& part = wave.parts[p];
      if (!answer.ok()) {
        on_read(part.request, answer.status());
      } else if (part.offset_bytes + part.size_bytes > (*answer)->size()) {
        on_read(part.request, Corrupt("the store's answer is too short", "path",
                                      requests[part.request].object->path));
      } else if (end - begin == 1) {
        on_read(part.request, std::move(answer));
        return;
      } else {
        on_read(part.request, arrow::SliceBuffer(*answer, part.offset_bytes, part.size_bytes));
      }
    }
  });
}

}  // namespace grebe::store

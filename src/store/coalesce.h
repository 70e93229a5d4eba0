// Joining the ranges of one wave into fewer requests, and cutting the answers apart again.
//
// Ranges of one object that overlap, touch, or lie at most gap_bytes_max apart become one request
// of at most range_bytes_max bytes. The bytes of the gaps are read for nothing; they cost less
// than a second request (ReadCosts says what a gap may cost on a store).
// Pure but for ReadEachCoalesced.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "store/store.h"

namespace grebe::store {

struct CoalesceOptions {
  int64_t gap_bytes_max = 0;  // 0: only ranges that overlap or touch are joined. -1: off
  int64_t range_bytes_max = 8 << 20;
};

struct CoalescedWave {
  // One request of the caller's, as a slice of the joined request that holds it.
  struct Part {
    uint32_t request = 0;  // index of the caller's request
    int64_t offset_bytes = 0;
    int64_t size_bytes = 0;
  };
  std::vector<ReadRequest> requests;  // the joined requests
  std::vector<Part> parts;            // by joined request
  std::vector<uint32_t> part_begin;   // parts of request i: [part_begin[i], part_begin[i + 1])
  int64_t bridged_bytes = 0;          // read, but part of no range asked for
};

// Objects are the same when they are one object or have equal path and identity. Empty ranges are
// never joined. Cost: a sort.
CoalescedWave Coalesce(std::span<const ReadRequest> requests, const CoalesceOptions& options);

// ReadEach over the coalesced requests: on_read gets the caller's own request indexes, once each.
// An error of a joined request is the error of every range in it. bridged_bytes may be null.
void ReadEachCoalesced(Store* store, std::span<const ReadRequest> requests,
                       const CoalesceOptions& options, const ReadCallback& on_read,
                       int64_t* bridged_bytes = nullptr);

}  // namespace grebe::store

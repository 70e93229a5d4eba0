// Which of many fragments in memory may have a key: one Bloom filter a fragment, laid out so that
// a key asks all of them at once.
//
// Fragments of about one size share a group: a matrix of bits, one row per filter position, one
// column per fragment. A key's four rows, and-ed, are the fragments that may have it: 1,000
// fragments cost four reads of 125 bytes, instead of 1,000 probes of several cache misses each.
// The rows are filled from the fragments' own blocks by the lookups, little by little (Build), and
// a fragment whose column is not finished, or whose blocks are damaged, may have every key.
// Private to this room. Threads: safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "index/fragment_reader.h"
#include "index/opened_fragment.h"
#include "key/key.h"

namespace grebe::index {

class FragmentFilter {
 public:
  // The fragments must outlive it. Those not in memory are not its business. Groups that would
  // exceed bytes_max in all are left out: their fragments may have every key.
  FragmentFilter(const std::vector<OpenedFragment>& fragments, int64_t bytes_max);

  // False: asking would rule out nothing.
  bool useful() const { return useful_.load(std::memory_order_acquire); }
  // True when Build has nothing left to do.
  bool done() const { return done_.load(std::memory_order_relaxed); }

  // Appends every fragment in memory that may have key i, ascending. REQUIRES: the keys are of the
  // fragments' form.
  void Candidates(const key::EncodedKeys& keys, int64_t i, std::vector<uint32_t>* fragments) const;

  // Works on for about budget_ns, unless another thread does.
  void Build(int64_t budget_ns);

 private:
  struct Group {
    uint64_t row_mask = 0;                  // rows - 1; rows is a power of two
    size_t words = 0;                       // 64-bit words a row
    std::vector<uint32_t> fragments;        // per column
    std::vector<const FragmentReader*> readers;
    // Allocated by Build before the first bit of `ready` is set.
    std::unique_ptr<std::atomic<uint64_t>[]> bits;
    std::unique_ptr<std::atomic<uint64_t>[]> ready;   // bits per column
  };

  // The state of Build, under the mutex.
  struct Cursor {
    size_t group = 0, column = 0;
    uint64_t block = 0;
  };

  bool AddBlock(const Group& group, size_t column, uint64_t block);
  bool AddLists(const Group& group, size_t column);
  void AddHash(const Group& group, size_t column, uint64_t hash);
  void NextColumn(bool ready);

  const std::vector<OpenedFragment>& fragments_;
  std::vector<uint32_t> always_;            // in memory, in no group
  std::vector<Group> groups_;
  std::atomic<bool> useful_{false};
  std::atomic<bool> done_{false};
  std::mutex mutex_;
  Cursor cursor_;
};

}  // namespace grebe::index

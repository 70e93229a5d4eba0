// From a fragment's global rows to (file, row within it). Threads: immutable, safe.
#pragma once

#include <cstdint>
#include <vector>

#include "index/bit_pack.h"
#include "index/fragment.h"

namespace grebe::index {

class FileFinder {
 public:
  FileFinder() = default;
  explicit FileFinder(const std::vector<FragmentFile>& files) {
    bases_.clear();
    bases_.reserve(files.size() + 1);
    uint64_t rows = 0;
    for (const FragmentFile& file : files) {
      bases_.push_back(rows);
      rows += static_cast<uint64_t>(file.row_count);
    }
    bases_.push_back(rows);
    // About four slots a file: a slot's first file is at most a step or two away from the row's.
    const uint64_t per_slot = rows / (4 * files.size() + 1);
    shift_ = per_slot == 0 ? 0 : BitWidth(per_slot) - 1;
    slots_.resize(static_cast<size_t>(rows >> shift_) + 1);
    uint32_t file = 0;
    for (size_t slot = 0; slot < slots_.size(); ++slot) {
      while (file + 1 < files.size() && bases_[file + 1] <= static_cast<uint64_t>(slot) << shift_) {
        ++file;
      }
      slots_[slot] = file;
    }
  }

  uint64_t row_count() const { return bases_.back(); }
  uint64_t base(uint32_t file) const { return bases_[file]; }

  // REQUIRES: row < row_count().
  uint32_t FileOf(uint64_t row) const {
    uint32_t file = slots_[row >> shift_];
    while (bases_[file + 1] <= row) ++file;
    return file;
  }

  // The posting of a run of global rows; false when it is not within one file.
  bool Fill(uint64_t row, uint64_t count, Posting* posting) const {
    if (row >= row_count()) return false;
    const uint32_t file = FileOf(row);
    if (count > bases_[file + 1] - row) return false;
    *posting = {FileId{file}, RowIndex{static_cast<int64_t>(row - bases_[file])},
                static_cast<int64_t>(count)};
    return true;
  }

  // Appends it.
  bool ToPosting(uint64_t row, uint64_t count, std::vector<Posting>* postings) const {
    Posting posting;
    if (!Fill(row, count, &posting)) return false;
    postings->push_back(posting);
    return true;
  }

  int64_t memory_bytes() const {
    return static_cast<int64_t>(bases_.size() * 8 + slots_.size() * 4);
  }

 private:
  std::vector<uint64_t> bases_ = {0};   // one more than files
  std::vector<uint32_t> slots_ = {0};   // per slot of 2^shift_ rows: the file of its first row
  int shift_ = 0;
};

}  // namespace grebe::index

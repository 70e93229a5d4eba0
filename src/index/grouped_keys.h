// Sorted postings joined into keys; keys with very many runs into lists of their own.
// Private to posting_sorter.cc.
#pragma once

#include <xxhash.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "index/fragment_format.h"
#include "index/fragment_head.h"
#include "index/hash_block.h"
#include "index/spill.h"

namespace grebe::index {

struct GroupedKeys {
  KeyRuns keys;                    // those that go into blocks
  std::vector<ListEntry> lists;
  std::string list_bytes;          // of the lists, unless given to the sink
  uint64_t list_runs = 0;
  bool has_lengths = false;

  void Clear() {
    keys.Clear();
    lists.clear();
    list_bytes.clear();
    list_runs = 0;
    has_lengths = false;
  }
};

class Grouper {
 public:
  // sink (may be null): takes the bytes of lists once they are many.
  Grouper(const std::vector<uint64_t>& file_bases, bool null_keys, SpillBuffer* sink,
          GroupedKeys* out)
      : file_bases_(file_bases), null_keys_(null_keys), sink_(sink), out_(out) {}

  // False when the rows of a key overlap. REQUIRES: (hash, row) ascend.
  [[nodiscard]] bool Add(uint64_t hash, uint64_t row, uint64_t length) {
    if (!open_ || hash != hash_) {
      if (open_) CloseKey();
      open_ = true;
      hash_ = hash;
      key_begin_ = out_->keys.runs.size();
      run_ = {row, length};
      if (null_keys_) StartList();
      return true;
    }
    const uint64_t end = run_.row + run_.count;
    if (row < end) return false;
    if (row == end && !std::binary_search(file_bases_.begin(), file_bases_.end(), row)) {
      run_.count += length;
      return true;
    }
    PutRun();
    run_ = {row, length};
    return true;
  }

  Status Finish() {
    if (open_) CloseKey();
    open_ = false;
    return sink_status_;
  }

 private:
  void StartList() {
    hot_ = true;
    list_ = ListWriter();
    list_run_count_ = 0;
    list_size_ = 0;
    hashed_ = out_->list_bytes.size();
    XXH3_64bits_reset(checksum_.get());
  }

  void PutRun() {
    if (run_.count > 1) out_->has_lengths = true;
    if (!hot_) {
      std::vector<RowRun>& runs = out_->keys.runs;
      runs.push_back(run_);
      if (runs.size() - key_begin_ <= kHotRuns) return;
      StartList();
      for (size_t i = key_begin_; i < runs.size(); ++i) PutListRun(runs[i]);
      runs.resize(key_begin_);
      return;
    }
    PutListRun(run_);
    if (sink_ != nullptr && out_->list_bytes.size() > (1u << 20)) {
      HashNew();
      if (sink_status_.ok()) sink_status_ = sink_->Append(out_->list_bytes);
      out_->list_bytes.clear();
      hashed_ = 0;
    }
  }

  void PutListRun(const RowRun& run) {
    list_.Add(run, &out_->list_bytes);
    ++list_run_count_;
  }

  void HashNew() {
    const size_t fresh = out_->list_bytes.size() - hashed_;
    XXH3_64bits_update(checksum_.get(), out_->list_bytes.data() + hashed_, fresh);
    hashed_ += fresh;
    list_size_ += fresh;
  }

  void CloseKey() {
    PutRun();
    if (!hot_) {
      out_->keys.hashes.push_back(hash_);
      out_->keys.ends.push_back(out_->keys.runs.size());
      return;
    }
    list_.Finish(&out_->list_bytes);
    HashNew();
    out_->lists.push_back({null_keys_, null_keys_ ? 0 : hash_, list_size_, list_run_count_,
                           XXH3_64bits_digest(checksum_.get())});
    out_->list_runs += list_run_count_;
    hot_ = false;
  }

  const std::vector<uint64_t>& file_bases_;
  const bool null_keys_;
  SpillBuffer* const sink_;
  GroupedKeys* const out_;
  bool open_ = false, hot_ = false;
  uint64_t hash_ = 0;
  size_t key_begin_ = 0;
  RowRun run_;
  ListWriter list_;
  uint64_t list_run_count_ = 0, list_size_ = 0;
  size_t hashed_ = 0;
  std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> checksum_{XXH3_createState(),
                                                                     &XXH3_freeState};
  Status sink_status_;
};

}  // namespace grebe::index

// Checking a fragment whole: every checksum, the order of every block and list, and that the head's
// counts are what is there.
#include <algorithm>
#include <new>

#include "base/hash.h"
#include "index/fragment.h"
#include "index/fragment_format.h"
#include "index/fragment_reader.h"
#include "store/store.h"

namespace grebe::index {
namespace {

constexpr int64_t kReadBytes = 4 << 20;

class Verifier {
 public:
  Verifier(store::Store& store, const FragmentInfo& info, const store::ReadRequest& whole)
      : store_(store), info_(info), whole_(whole) {}

  Status Run();

 private:
  Result<std::shared_ptr<arrow::Buffer>> Read(ByteRange range);
  Status CheckPageMaps();
  Status CheckBlocks();
  Status CheckOneBlock(uint64_t block, std::string_view bytes);
  Status CheckLists();
  Status CheckSorted();
  Status CheckSortedBlock(const Fence& fence, const Fence* next, std::string* key);
  // item: of the covering block; row_count: rows it must have.
  Status CheckCovering(uint64_t item, uint64_t row_count);
  Status CheckRuns(const KeyRuns& keys, uint64_t* row_count);

  store::Store& store_;
  const FragmentInfo& info_;
  const store::ReadRequest& whole_;
  std::shared_ptr<const Fragment> fragment_;
  const FragmentReader* reader_ = nullptr;
  uint64_t keys_ = 0, runs_ = 0, rows_ = 0;
  uint64_t sorted_keys_ = 0;
};

std::string_view ViewOf(const arrow::Buffer& buffer) {
  return {reinterpret_cast<const char*>(buffer.data()), static_cast<size_t>(buffer.size())};
}

Result<std::shared_ptr<arrow::Buffer>> Verifier::Read(ByteRange range) {
  const store::ReadRequest request{
      whole_.object, {whole_.range.begin + range.begin, whole_.range.begin + range.end}};
  ARROW_ASSIGN_OR_RAISE(auto buffers, store_.Read({&request, 1}));
  if (buffers[0]->size() != range.size_bytes()) return Corrupt("fragment is cut short");
  return buffers[0];
}

Status Verifier::CheckPageMaps() {
  for (const FragmentFile& file : reader_->head().files) {
    std::string_view bytes;
    std::shared_ptr<arrow::Buffer> buffer;
    if (!file.page_map.empty()) {
      ARROW_ASSIGN_OR_RAISE(buffer, Read(file.page_map));
      bytes = ViewOf(*buffer);
    }
    if (Checksum(bytes) != file.page_map_checksum) {
      return Corrupt("page map checksum", "file", file.path, "offset_bytes", file.page_map.begin);
    }
  }
  return Status::OK();
}

Status Verifier::CheckRuns(const KeyRuns& keys, uint64_t* row_count) {
  std::vector<Posting> scratch;
  *row_count = 0;
  for (const RowRun& run : keys.runs) {
    scratch.clear();
    if (!reader_->finder().ToPosting(run.row, run.count, &scratch)) {
      return Corrupt("a run leaves its file", "row", run.row);
    }
    *row_count += run.count;
  }
  keys_ += keys.ends.size();
  runs_ += keys.runs.size();
  rows_ += *row_count;
  return Status::OK();
}

Status Verifier::CheckCovering(uint64_t item, uint64_t row_count) {
  if (!reader_->head().has_covering) return Status::OK();
  const ByteRange range = reader_->covering_range(item);
  if (range.empty()) {
    return row_count == 0 ? Status::OK() : Corrupt("covering block is missing", "item", item);
  }
  ARROW_ASSIGN_OR_RAISE(auto buffer, Read(range));
  ARROW_ASSIGN_OR_RAISE(auto batch, fragment_->OpenCovering(ViewOf(*buffer)));
  if (static_cast<uint64_t>(batch->num_rows()) != row_count) {
    return Corrupt("covering block has the wrong rows", "offset_bytes", range.begin, "expected",
                   row_count, "got", batch->num_rows());
  }
  return Status::OK();
}

Status Verifier::CheckOneBlock(uint64_t block, std::string_view bytes) {
  KeyRuns keys;
  if (!bytes.empty()) {
    if (!CheckBlock(bytes)) return Corrupt("hash block checksum");
    ARROW_RETURN_NOT_OK(DecodeBlock(bytes, reader_->scope(block), &keys));
  }
  uint64_t row_count = 0;
  ARROW_RETURN_NOT_OK(CheckRuns(keys, &row_count));
  return CheckCovering(block, row_count);
}

Status Verifier::CheckBlocks() {
  const uint64_t block_count = reader_->head().block_sizes.size();
  for (uint64_t begin = 0; begin < block_count;) {
    ByteRange range = reader_->block_range(begin);
    uint64_t end = begin + 1;
    for (; end < block_count && range.size_bytes() < kReadBytes; ++end) {
      range.end = reader_->block_range(end).end;
    }
    std::shared_ptr<arrow::Buffer> buffer;
    if (!range.empty()) {
      ARROW_ASSIGN_OR_RAISE(buffer, Read(range));
    }
    for (uint64_t block = begin; block < end; ++block) {
      const ByteRange at = reader_->block_range(block);
      std::string_view bytes;
      if (!at.empty()) {
        bytes = ViewOf(*buffer).substr(static_cast<size_t>(at.begin - range.begin),
                                       static_cast<size_t>(at.size_bytes()));
      }
      const Status checked = CheckOneBlock(block, bytes);
      if (!checked.ok()) return AddContext(checked, "block_offset_bytes", std::to_string(at.begin));
    }
    begin = end;
  }
  return Status::OK();
}

Status Verifier::CheckLists() {
  const FragmentHead& head = reader_->head();
  for (uint64_t i = 0; i < head.lists.size(); ++i) {
    const ListEntry& list = head.lists[i];
    const ByteRange range = reader_->list_range(i);
    if (range.empty()) return Corrupt("posting list is empty", "list", i);
    ARROW_ASSIGN_OR_RAISE(auto buffer, Read(range));
    if (Checksum(ViewOf(*buffer)) != list.checksum) {
      return Corrupt("posting list checksum", "list", i, "offset_bytes", range.begin);
    }
    KeyRuns keys;
    ARROW_RETURN_NOT_OK(DecodeList(ViewOf(*buffer), list.run_count, head.file_rows, &keys.runs));
    keys.hashes.push_back(list.hash);
    keys.ends.push_back(keys.runs.size());
    uint64_t row_count = 0;
    ARROW_RETURN_NOT_OK(CheckRuns(keys, &row_count));
    ARROW_RETURN_NOT_OK(CheckCovering(head.block_sizes.size() + i, row_count));
  }
  return Status::OK();
}

// key: the last of the block before; of this one afterwards.
Status Verifier::CheckSortedBlock(const Fence& fence, const Fence* next, std::string* key) {
  ARROW_ASSIGN_OR_RAISE(auto buffer, Read(fence.bytes));
  ARROW_ASSIGN_OR_RAISE(const std::string_view bytes, OpenSortedBlock(ViewOf(*buffer)));
  EntryReader entries(bytes, reader_->head().file_rows);
  uint64_t rows = 0;
  std::vector<Posting> scratch;
  while (entries.Next()) {
    if (entries.fresh()) {
      if (rows == 0 ? entries.key() < *key || entries.key() < fence.key : entries.key() <= *key) {
        return Corrupt("keys of a sorted block are out of order");
      }
      if (entries.key() != *key) ++sorted_keys_;
      *key = entries.key();
    }
    scratch.clear();
    if (!reader_->finder().ToPosting(entries.row(), entries.count(), &scratch)) {
      return Corrupt("a run leaves its file", "row", entries.row());
    }
    rows += entries.count();
  }
  if (entries.damaged() || rows == 0 || rows != fence.row_count ||
      (next != nullptr && *key > next->key)) {
    return Corrupt("a sorted block is not what its fence says");
  }
  return Status::OK();
}

Status Verifier::CheckSorted() {
  const FragmentHead& head = reader_->head();
  if (!head.has_sorted) return Status::OK();
  uint64_t rows = 0;
  std::string key;
  for (const Fence& top : head.sorted.fences) {
    ARROW_ASSIGN_OR_RAISE(auto buffer, Read(top.bytes));
    auto fences = ReadFenceBlock(ViewOf(*buffer), top);
    if (!fences.ok()) {
      return AddContext(fences.status(), "offset_bytes", std::to_string(top.bytes.begin));
    }
    for (size_t i = 0; i < fences->size(); ++i) {
      const Fence& fence = (*fences)[i];
      const Fence* next = i + 1 < fences->size() ? &(*fences)[i + 1] : nullptr;
      const Status checked = CheckSortedBlock(fence, next, &key);
      if (!checked.ok()) {
        return AddContext(checked, "block_offset_bytes", std::to_string(fence.bytes.begin));
      }
    }
    rows += top.row_count;
  }
  // Two long keys of one fingerprint are one key of the hash part.
  const bool keys_match = head.space.word_keys ? sorted_keys_ == head.key_count
                                               : sorted_keys_ >= head.key_count;
  if (rows != head.indexed_rows || !keys_match || (rows > 0 && key >= head.sorted.end)) {
    return Corrupt("the sorted part does not match the hash part", "rows", rows, "expected",
                   head.indexed_rows, "keys", sorted_keys_, "expected_keys", head.key_count);
  }
  return Status::OK();
}

Status Verifier::Run() {
  if (info_.head.begin < static_cast<int64_t>(sizeof(kFragmentMagic)) ||
      info_.head.empty() || info_.head.end != info_.size_bytes) {
    return Corrupt("bad place of the fragment's head");
  }
  ARROW_ASSIGN_OR_RAISE(auto head, Read(info_.head));
  ARROW_ASSIGN_OR_RAISE(fragment_, Fragment::Open(info_, head));
  reader_ = dynamic_cast<const FragmentReader*>(fragment_.get());
  ARROW_ASSIGN_OR_RAISE(auto magic, Read({0, sizeof(kFragmentMagic)}));
  if (ViewOf(*magic) != std::string_view(kFragmentMagic, sizeof(kFragmentMagic))) {
    return Corrupt("not a fragment");
  }
  ARROW_RETURN_NOT_OK(CheckPageMaps());
  ARROW_RETURN_NOT_OK(CheckBlocks());
  ARROW_RETURN_NOT_OK(CheckLists());
  ARROW_RETURN_NOT_OK(CheckSorted());
  const FragmentHead& counted = reader_->head();
  if (keys_ != counted.key_count || runs_ != counted.run_count ||
      rows_ != counted.indexed_rows ||
      info_.key_count != static_cast<int64_t>(keys_) ||
      info_.row_count != static_cast<int64_t>(rows_) ||
      info_.file_count != static_cast<int64_t>(counted.files.size())) {
    return Corrupt("fragment counts do not add up", "keys", keys_, "runs", runs_, "rows", rows_);
  }
  return Status::OK();
}

}  // namespace

Status VerifyFragment(store::Store& store, const FragmentInfo& info,
                      const store::ReadRequest& whole) {
  try {
    return AddContext(Verifier(store, info, whole).Run(), "fragment", info.path);
  } catch (const std::bad_alloc&) {
    return LimitExceeded("out of memory while verifying a fragment", "fragment", info.path);
  }
}

}  // namespace grebe::index

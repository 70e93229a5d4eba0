// Reading a fragment. The bytes: fragment_format.h. The writer: posting_sorter.cc.
#include "index/fragment.h"

#include <arrow/io/memory.h>
#include <arrow/ipc/reader.h>
#include <arrow/table.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>

#include "base/coding.h"
#include "base/hash.h"
#include "index/file_finder.h"
#include "index/fragment_format.h"
#include "index/fragment_head.h"
#include "index/fragment_reader.h"
#include "index/hash_block.h"
#include "index/key_hash.h"

namespace grebe::index {
namespace {

#define GREBE_PREFETCH(address) __builtin_prefetch((address), 0, 3)

// Where a key can be: in a block, in a list, or nowhere.
struct Spot {
  enum Kind : uint8_t { kNowhere, kBlock, kList } kind = kNowhere;
  uint64_t hash = 0;
  uint64_t index = 0;   // of the block or the list
};

// One key on its way through the stages of FindMany.
struct Probe {
  Spot spot;
  const uint8_t* bytes = nullptr;
  BlockLayout layout;
  uint64_t remainder = 0;
  uint64_t bucket = 0;
  uint64_t first = 0, last = 0;
};
constexpr int64_t kGroupKeys = 32;

class FragmentImpl final : public Fragment, public FragmentReader {
 public:
  FragmentImpl(FragmentHead head, int64_t head_size_bytes);

  const std::vector<FragmentFile>& files() const override { return head_.files; }
  const std::vector<std::string>& schemas() const override { return head_.schemas; }
  bool word_keys() const override { return head_.space.word_keys; }
  ByteRange page_maps() const override { return head_.page_maps; }
  int64_t memory_bytes() const override { return memory_bytes_; }
  const FragmentHead& head() const override { return head_; }
  const SortedDirectory* sorted() const override {
    return head_.has_sorted ? &head_.sorted : nullptr;
  }

  BlockScope scope(uint64_t block) const override {
    const uint64_t first = directory_[block].first_hash;
    const uint64_t last = block + 1 < block_count_ ? directory_[block + 1].first_hash - 1
                                                   : head_.space.last_hash();
    return {first, last - first, head_.file_rows, row_bits_};
  }
  ByteRange block_range(uint64_t block) const override {
    return {directory_[block].offset_bytes, directory_[block + 1].offset_bytes};
  }
  ByteRange list_range(uint64_t list) const override {
    return {list_offsets_[list], list_offsets_[list + 1]};
  }
  ByteRange covering_range(uint64_t item) const override {
    return {covering_offsets_[item], covering_offsets_[item + 1]};
  }
  const FileFinder& finder() const override { return finder_; }

  Place Locate(const key::EncodedKeys& keys, int64_t i) const override;
  Status Find(const key::EncodedKeys& keys, int64_t i, const Place& place, std::string_view block,
              bool verify, std::vector<Posting>* postings, bool* exact,
              std::vector<int64_t>* covering_rows) const override;
  Status FindMany(const key::EncodedKeys& keys, std::string_view object,
                  std::vector<Posting>* postings, std::vector<uint64_t>* ends,
                  bool* exact) const override;
  Result<std::shared_ptr<arrow::RecordBatch>> OpenCovering(std::string_view block) const override;

 private:
  struct Entry {
    int64_t offset_bytes = 0;
    uint64_t first_hash = 0;
  };

  GREBE_INLINE Spot SpotOf(const key::EncodedKeys& keys, int64_t i) const;
  GREBE_INLINE Status FindGroup(const key::EncodedKeys& keys, int64_t begin, int64_t end,
                                std::string_view object, std::vector<Posting>* postings,
                                std::vector<uint64_t>* ends) const;
  Status FindGroupPlain(const key::EncodedKeys& keys, int64_t begin, int64_t end,
                        std::string_view object, std::vector<Posting>* postings,
                        std::vector<uint64_t>* ends) const;
  Status FindGroupFast(const key::EncodedKeys& keys, int64_t begin, int64_t end,
                       std::string_view object, std::vector<Posting>* postings,
                       std::vector<uint64_t>* ends) const;
  GREBE_INLINE bool OpenProbe(Probe* probe) const;
  // Checks an item's checksum the first time it is used through FindMany.
  bool CheckOnce(const Spot& spot, std::string_view bytes) const;
  bool CheckItem(const Spot& spot, std::string_view bytes) const;
  Status FindInBlock(const Spot& spot, std::string_view block, std::vector<Posting>* postings,
                     std::vector<int64_t>* covering_rows) const;
  Status FindInList(const Spot& spot, std::string_view list, std::vector<Posting>* postings,
                    std::vector<int64_t>* covering_rows) const;
  GREBE_INLINE bool Emit(const RowRun& run, std::vector<Posting>* postings) const {
    return finder_.ToPosting(run.row, run.count, postings);
  }
  GREBE_INLINE bool EmitAll(const BlockLayout& layout, uint64_t first, uint64_t last,
                            std::vector<Posting>* postings) const {
    const size_t before = postings->size();
    postings->resize(before + (last - first));
    Posting* out = postings->data() + before;
    for (; first < last; ++first, ++out) {
      const RowRun run = layout.run(first);
      if (!finder_.Fill(run.row, run.count, out)) return false;
    }
    return true;
  }
  Status Damaged(const Spot& spot, std::string_view what) const {
    const bool is_list = spot.kind == Spot::kList;
    return Corrupt(what, is_list ? "list" : "block", spot.index, "offset_bytes",
                   (is_list ? list_range(spot.index) : block_range(spot.index)).begin);
  }

  FragmentHead head_;
  uint64_t block_count_ = 0;
  int row_bits_ = 0;
  int head_lines_ = 1;                    // cache lines of a block's header and upper part
  std::vector<Entry> directory_;          // one more than blocks
  std::vector<int64_t> list_offsets_;     // one more than lists
  std::vector<int64_t> covering_offsets_; // blocks, then lists, and the end; empty: none
  std::vector<uint64_t> hot_hashes_;      // of the lists after the null list
  uint64_t null_lists_ = 0;               // 0 or 1
  FileFinder finder_;
  std::shared_ptr<arrow::Schema> covering_schema_;
  std::unique_ptr<std::atomic<uint64_t>[]> checked_;   // bits: blocks, then lists
  int64_t memory_bytes_ = 0;
};

std::vector<int64_t> OffsetsFrom(int64_t begin, const std::vector<uint64_t>& sizes) {
  std::vector<int64_t> offsets{begin};
  offsets.reserve(sizes.size() + 1);
  for (const uint64_t size : sizes) offsets.push_back(offsets.back() + static_cast<int64_t>(size));
  return offsets;
}

FragmentImpl::FragmentImpl(FragmentHead head, int64_t head_size_bytes) : head_(std::move(head)) {
  block_count_ = head_.block_sizes.size();
  row_bits_ = BitsOfRows(head_.file_rows);
  directory_.resize(block_count_ + 1);
  int64_t at = head_.blocks.begin;
  for (uint64_t b = 0; b < block_count_; ++b) {
    directory_[b] = {at, BlockStart(b, block_count_, head_.space.bits)};
    at += static_cast<int64_t>(head_.block_sizes[b]);
  }
  directory_[block_count_] = {at, head_.space.last_hash()};
  std::vector<uint64_t> sizes;
  for (const ListEntry& list : head_.lists) {
    sizes.push_back(list.size_bytes);
    if (list.null_keys) {
      null_lists_ = 1;
    } else {
      hot_hashes_.push_back(list.hash);
    }
  }
  list_offsets_ = OffsetsFrom(head_.list_section.begin, sizes);
  if (head_.has_covering) {
    covering_offsets_ = OffsetsFrom(head_.covering.begin, head_.covering_sizes);
  }
  finder_ = FileFinder(head_.files);
  const uint64_t upper_bytes = head_.key_count / block_count_ * 2 / 8;
  head_lines_ = static_cast<int>(1 + std::min<uint64_t>(upper_bytes / 64, 7));
  const size_t words = (block_count_ + head_.lists.size() + 63) / 64;
  checked_ = std::make_unique<std::atomic<uint64_t>[]>(words);
  memory_bytes_ = 2 * head_size_bytes + static_cast<int64_t>(sizeof(*this)) +
                  static_cast<int64_t>(directory_.size() * sizeof(Entry) + words * 8) +
                  finder_.memory_bytes();
}

GREBE_INLINE Spot FragmentImpl::SpotOf(const key::EncodedKeys& keys, int64_t i) const {
  Spot spot;
  const HashSpace& space = head_.space;
  if (space.word_keys) {
    if (keys.is_null(i)) {
      spot.kind = null_lists_ > 0 ? Spot::kList : Spot::kNowhere;
      return spot;
    }
    if (!space.HashWord(keys.words[static_cast<size_t>(i)], &spot.hash)) return spot;
  } else {
    spot.hash = space.Truncate(HashBytes(keys.view(i)));
  }
  if (!hot_hashes_.empty()) {
    const auto at = std::lower_bound(hot_hashes_.begin(), hot_hashes_.end(), spot.hash);
    if (at != hot_hashes_.end() && *at == spot.hash) {
      spot.kind = Spot::kList;
      spot.index = null_lists_ + static_cast<uint64_t>(at - hot_hashes_.begin());
      return spot;
    }
  }
  spot.kind = Spot::kBlock;
  spot.index = BlockOf(spot.hash, block_count_, space.bits);
  return spot;
}

Fragment::Place FragmentImpl::Locate(const key::EncodedKeys& keys, int64_t i) const {
  Place place;
  if (keys.is_word != head_.space.word_keys) return place;
  const Spot spot = SpotOf(keys, i);
  if (spot.kind == Spot::kNowhere) return place;
  place.hot = spot.kind == Spot::kList;
  place.block = place.hot ? list_range(spot.index) : block_range(spot.index);
  if (head_.has_covering && !place.block.empty()) {
    place.covering = covering_range(place.hot ? block_count_ + spot.index : spot.index);
  }
  return place;
}

bool FragmentImpl::CheckItem(const Spot& spot, std::string_view bytes) const {
  if (spot.kind == Spot::kBlock) return CheckBlock(bytes);
  return Checksum(bytes) == head_.lists[spot.index].checksum;
}

bool FragmentImpl::CheckOnce(const Spot& spot, std::string_view bytes) const {
  const uint64_t item = spot.kind == Spot::kList ? block_count_ + spot.index : spot.index;
  std::atomic<uint64_t>& word = checked_[item / 64];
  const uint64_t bit = uint64_t{1} << (item % 64);
  if ((word.load(std::memory_order_relaxed) & bit) != 0) [[likely]] return true;
  if (!CheckItem(spot, bytes)) return false;
  word.fetch_or(bit, std::memory_order_relaxed);
  return true;
}

// Appends the positions of `count` rows that begin at `first` among the item's rows.
void AppendPositions(uint64_t first, uint64_t count, std::vector<int64_t>* covering_rows) {
  for (uint64_t i = 0; i < count; ++i) covering_rows->push_back(static_cast<int64_t>(first + i));
}

Status FragmentImpl::FindInBlock(const Spot& spot, std::string_view block,
                                 std::vector<Posting>* postings,
                                 std::vector<int64_t>* covering_rows) const {
  BlockLayout layout;
  const BlockScope block_scope = scope(spot.index);
  if (!layout.Parse(block, block_scope)) return Damaged(spot, "bad hash block layout");
  const uint64_t remainder = spot.hash - block_scope.first_hash;
  const int64_t key = layout.KeyAt(layout.BucketStart(remainder), remainder);
  if (key == -1) return Status::OK();
  uint64_t first = 0, last = 0;
  if (key < 0 || !layout.RunsOf(static_cast<uint64_t>(key), &first, &last) ||
      last > layout.run_count) {
    return Damaged(spot, "bad hash block");
  }
  uint64_t position = first;
  if (covering_rows != nullptr && layout.length_bits > 0) {
    position = 0;
    for (uint64_t i = 0; i < first; ++i) position += layout.run(i).count;
  }
  uint64_t row_end = 0;
  for (; first < last; ++first) {
    const RowRun run = layout.run(first);
    if (run.row < row_end || !Emit(run, postings)) return Damaged(spot, "bad rows in hash block");
    row_end = run.row + run.count;
    if (covering_rows != nullptr) AppendPositions(position, run.count, covering_rows);
    position += run.count;
  }
  return Status::OK();
}

Status FragmentImpl::FindInList(const Spot& spot, std::string_view list,
                                std::vector<Posting>* postings,
                                std::vector<int64_t>* covering_rows) const {
  std::vector<RowRun> runs;
  const uint64_t run_count = head_.lists[spot.index].run_count;
  const Status decoded = DecodeList(list, run_count, head_.file_rows, &runs);
  if (!decoded.ok()) return Damaged(spot, decoded.message());
  uint64_t rows = 0;
  postings->reserve(postings->size() + runs.size());
  for (const RowRun& run : runs) {
    if (!Emit(run, postings)) return Damaged(spot, "bad rows in posting list");
    rows += run.count;
  }
  if (covering_rows != nullptr) AppendPositions(0, rows, covering_rows);
  return Status::OK();
}

Status FragmentImpl::Find(const key::EncodedKeys& keys, int64_t i, const Place& place,
                          std::string_view block, bool verify, std::vector<Posting>* postings,
                          bool* exact, std::vector<int64_t>* covering_rows) const {
  *exact = head_.space.word_keys;
  if (keys.is_word != head_.space.word_keys) {
    return InvalidArgument("keys are not of the fragment's form", "word", head_.space.word_keys);
  }
  const Spot spot = SpotOf(keys, i);
  if (spot.kind == Spot::kNowhere || place.block.empty()) return Status::OK();
  const ByteRange range =
      spot.kind == Spot::kList ? list_range(spot.index) : block_range(spot.index);
  if (range != place.block || static_cast<int64_t>(block.size()) != range.size_bytes()) {
    return InvalidArgument("bytes are not of the key's place", "offset_bytes", range.begin, "size",
                           block.size());
  }
  if (verify && !CheckItem(spot, block)) return Damaged(spot, "fragment checksum");
  const size_t postings_before = postings->size();
  const size_t rows_before = covering_rows == nullptr ? 0 : covering_rows->size();
  const Status found = spot.kind == Spot::kList
                           ? FindInList(spot, block, postings, covering_rows)
                           : FindInBlock(spot, block, postings, covering_rows);
  if (!found.ok()) {
    postings->resize(postings_before);
    if (covering_rows != nullptr) covering_rows->resize(rows_before);
  }
  return found;
}

// The second stage of a probe: parse the block, find the bucket, ask for what comes next.
GREBE_INLINE bool FragmentImpl::OpenProbe(Probe* probe) const {
  const Spot& spot = probe->spot;
  const ByteRange range = block_range(spot.index);
  const std::string_view block(reinterpret_cast<const char*>(probe->bytes),
                               static_cast<size_t>(range.size_bytes()));
  if (!CheckOnce(spot, block)) return false;
  const BlockScope block_scope = scope(spot.index);
  BlockLayout& layout = probe->layout;
  if (!layout.Parse(block, block_scope)) return false;
  probe->remainder = spot.hash - block_scope.first_hash;
  probe->bucket = layout.BucketStart(probe->remainder);
  if (probe->bucket >= layout.upper_bits) return false;
  const uint64_t key = probe->bucket - (probe->remainder >> layout.low_bits);
  if (key >= layout.key_count) return true;
  GREBE_PREFETCH(probe->bytes + layout.low_at + key * layout.low_bits / 8);
  if (layout.single) {
    GREBE_PREFETCH(probe->bytes + layout.rows_at + key * layout.row_bits / 8);
  } else {
    GREBE_PREFETCH(probe->bytes + layout.extra_upper_at);
    GREBE_PREFETCH(probe->bytes + layout.extra_low_at + key * layout.extra_low_bits / 8);
  }
  return true;
}

GREBE_INLINE Status FragmentImpl::FindGroup(const key::EncodedKeys& keys, int64_t begin,
                                            int64_t end, std::string_view object,
                                            std::vector<Posting>* postings,
                                            std::vector<uint64_t>* ends) const {
  std::array<Probe, kGroupKeys> probes;
  const int64_t count = end - begin;
  const auto* base = reinterpret_cast<const uint8_t*>(object.data());
  for (int64_t i = 0; i < count; ++i) {
    probes[i].spot = SpotOf(keys, begin + i);
    if (probes[i].spot.kind == Spot::kBlock) GREBE_PREFETCH(&directory_[probes[i].spot.index]);
  }
  for (int64_t i = 0; i < count; ++i) {
    Probe& probe = probes[i];
    if (probe.spot.kind != Spot::kBlock) continue;
    const ByteRange range = block_range(probe.spot.index);
    if (range.empty()) {
      probe.spot.kind = Spot::kNowhere;
      continue;
    }
    probe.bytes = base + range.begin;
    for (int line = 0; line < head_lines_; ++line) GREBE_PREFETCH(probe.bytes + 64 * line);
  }
  for (int64_t i = 0; i < count; ++i) {
    if (probes[i].spot.kind == Spot::kBlock && !OpenProbe(&probes[i])) {
      return Damaged(probes[i].spot, "bad hash block");
    }
  }
  for (int64_t i = 0; i < count; ++i) {
    Probe& probe = probes[i];
    if (probe.spot.kind != Spot::kBlock) continue;
    const int64_t key = probe.layout.KeyAt(probe.bucket, probe.remainder);
    if (key == -1) {
      probe.spot.kind = Spot::kNowhere;
      continue;
    }
    if (key < 0 || !probe.layout.RunsOf(static_cast<uint64_t>(key), &probe.first, &probe.last)) {
      return Damaged(probe.spot, "bad hash block");
    }
    const uint8_t* rows = probe.bytes + probe.layout.rows_at;
    GREBE_PREFETCH(rows + probe.first * probe.layout.row_bits / 8);
    GREBE_PREFETCH(rows + probe.last * probe.layout.row_bits / 8);
  }
  for (int64_t i = 0; i < count; ++i) {
    const Probe& probe = probes[i];
    if (probe.spot.kind == Spot::kBlock) {
      if (!EmitAll(probe.layout, probe.first, probe.last, postings)) {
        return Damaged(probe.spot, "bad rows in hash block");
      }
    } else if (probe.spot.kind == Spot::kList) {
      const ByteRange range = list_range(probe.spot.index);
      const std::string_view list = object.substr(static_cast<size_t>(range.begin),
                                                  static_cast<size_t>(range.size_bytes()));
      if (!CheckOnce(probe.spot, list)) return Damaged(probe.spot, "fragment checksum");
      ARROW_RETURN_NOT_OK(FindInList(probe.spot, list, postings, nullptr));
    }
    (*ends)[static_cast<size_t>(begin + i)] = postings->size();
  }
  return Status::OK();
}

Status FragmentImpl::FindGroupPlain(const key::EncodedKeys& keys, int64_t begin, int64_t end,
                                    std::string_view object, std::vector<Posting>* postings,
                                    std::vector<uint64_t>* ends) const {
  return FindGroup(keys, begin, end, object, postings, ends);
}

#if defined(__x86_64__)
__attribute__((target("popcnt,bmi,bmi2,lzcnt")))
#endif
Status FragmentImpl::FindGroupFast(const key::EncodedKeys& keys, int64_t begin, int64_t end,
                                   std::string_view object, std::vector<Posting>* postings,
                                   std::vector<uint64_t>* ends) const {
  return FindGroup(keys, begin, end, object, postings, ends);
}

bool HasFastBits() {
#if defined(__x86_64__)
  static const bool fast = __builtin_cpu_supports("popcnt") && __builtin_cpu_supports("bmi") &&
                           __builtin_cpu_supports("bmi2");
  return fast;
#else
  return false;
#endif
}

Status FragmentImpl::FindMany(const key::EncodedKeys& keys, std::string_view object,
                              std::vector<Posting>* postings, std::vector<uint64_t>* ends,
                              bool* exact) const {
  *exact = head_.space.word_keys;
  if (keys.is_word != head_.space.word_keys) {
    return InvalidArgument("keys are not of the fragment's form", "word", head_.space.word_keys);
  }
  if (object.size() < static_cast<size_t>(head_.covering.end)) {
    return Corrupt("fragment is cut short", "expected", head_.covering.end, "got", object.size());
  }
  postings->clear();
  ends->assign(static_cast<size_t>(keys.count()), 0);
  const bool fast = HasFastBits();
  for (int64_t begin = 0; begin < keys.count(); begin += kGroupKeys) {
    const int64_t end = std::min(begin + kGroupKeys, keys.count());
    const Status found = fast ? FindGroupFast(keys, begin, end, object, postings, ends)
                              : FindGroupPlain(keys, begin, end, object, postings, ends);
    if (!found.ok()) {
      postings->clear();
      ends->clear();
      return found;
    }
  }
  return Status::OK();
}

Result<std::shared_ptr<arrow::RecordBatch>> FragmentImpl::OpenCovering(
    std::string_view block) const {
  if (!head_.has_covering) return InvalidArgument("fragment has no covering columns");
  if (block.size() < 8 || LoadLe<uint64_t>(block.data()) != Checksum(block.substr(8))) {
    return Corrupt("covering block checksum", "size", block.size());
  }
  return ReadCoveringStream(block.substr(8));
}

}  // namespace

Result<std::shared_ptr<arrow::RecordBatch>> ReadCoveringStream(std::string_view bytes) {
  // A copy: the batch outlives the caller's bytes.
  ARROW_ASSIGN_OR_RAISE(auto buffer, arrow::AllocateBuffer(static_cast<int64_t>(bytes.size())));
  std::memcpy(buffer->mutable_data(), bytes.data(), bytes.size());
  auto input = std::make_shared<arrow::io::BufferReader>(std::shared_ptr(std::move(buffer)));
  const auto bad = [](const Status& status) {
    return Corrupt("bad covering block", "error", status.message());
  };
  auto reader = arrow::ipc::RecordBatchStreamReader::Open(input);
  if (!reader.ok()) return bad(reader.status());
  auto table = (*reader)->ToTable();
  if (!table.ok()) return bad(table.status());
  auto batch = (*table)->CombineChunksToBatch();
  if (!batch.ok()) return bad(batch.status());
  const Status valid = (*batch)->ValidateFull();
  if (!valid.ok()) return bad(valid);
  return *batch;
}

Result<std::shared_ptr<const Fragment>> Fragment::Open(const FragmentInfo& info,
                                                       std::shared_ptr<arrow::Buffer> head) {
  const std::string_view bytes(reinterpret_cast<const char*>(head->data()),
                               static_cast<size_t>(head->size()));
  if (head->size() != info.head.size_bytes() || info.head.begin < 0 ||
      info.head.end != info.size_bytes) {
    return Corrupt("fragment head has the wrong size", "path", info.path, "expected",
                   info.head.size_bytes(), "got", head->size());
  }
  if (Checksum(bytes) != info.head_checksum) {
    return Corrupt("fragment head checksum", "path", info.path);
  }
  auto parsed = ParseHead(bytes, info.head.begin);
  if (!parsed.ok()) return AddContext(parsed.status(), "path", info.path);
  return std::make_shared<const FragmentImpl>(*std::move(parsed), head->size());
}

}  // namespace grebe::index

#include "index/posting_sorter.h"

#include <algorithm>
#include <new>
#include <queue>
#include <thread>

#include "base/coding.h"
#include "index/covering.h"
#include "index/grouped_keys.h"

namespace grebe::index {
namespace {

// Entries of a partition: few enough to be sorted within the cache.
constexpr uint64_t kPartitionEntriesTarget = 96 << 10;
constexpr int kPartitionBitsMax = 13;
constexpr size_t kTupleSlackBytes = 16;   // tuples are stored with whole words

// Sorts by (hash, row): one counting pass on the hash's top bits, then small sorts.
// REQUIRES: every hash < 2^hash_bits.
void SortEntries(int hash_bits, std::vector<SortEntry>* entries, std::vector<SortEntry>* scratch) {
  const size_t count = entries->size();
  if (count < 2) return;
  const int bits = std::min({hash_bits, std::max(1, BitWidth(count) - 3), 20});
  if (bits == 0) {
    std::sort(entries->begin(), entries->end());
    return;
  }
  const int shift = hash_bits - bits;
  const uint64_t mask = LowMask(bits);
  std::vector<uint32_t> ends(size_t{1} << bits);
  for (const SortEntry& entry : *entries) ++ends[(entry.hash >> shift) & mask];
  uint32_t total = 0;
  for (uint32_t& end : ends) {
    const uint32_t size = end;
    end = total;
    total += size;
  }
  scratch->resize(count);
  for (const SortEntry& entry : *entries) (*scratch)[ends[(entry.hash >> shift) & mask]++] = entry;
  size_t begin = 0;
  for (const uint32_t end : ends) {
    SortEntry* const data = scratch->data();
    if (end - begin > 48) {
      std::sort(data + begin, data + end);
    } else {
      for (size_t i = begin + 1; i < end; ++i) {
        const SortEntry entry = data[i];
        size_t j = i;
        for (; j > begin && entry < data[j - 1]; --j) data[j] = data[j - 1];
        data[j] = entry;
      }
    }
    begin = end;
  }
  entries->swap(*scratch);
}

// Reads a sorted run of entries piece by piece.
struct RunReader {
  const SpillFile* file = nullptr;
  int64_t at = 0, end = 0;
  std::vector<SortEntry> piece;
  size_t next = 0;

  Status Fill(size_t entries) {
    const auto left = static_cast<size_t>(end - at) / sizeof(SortEntry);
    piece.resize(std::min(left, entries));
    next = 0;
    const size_t size = piece.size() * sizeof(SortEntry);
    ARROW_RETURN_NOT_OK(file->Read(at, size, reinterpret_cast<char*>(piece.data())));
    at += static_cast<int64_t>(size);
    return Status::OK();
  }
};

}  // namespace

struct PostingSorter::PartitionOutput {
  std::string blocks;
  std::vector<uint64_t> block_sizes;
  const GroupedKeys* grouped = nullptr;
  std::string block_covering, list_covering;
  std::vector<uint64_t> block_covering_sizes, list_covering_sizes;
};

PostingSorter::PostingSorter(Options options)
    : options_(std::move(options)),
      spill_(options_.spill_folder),
      covering_rows_(options_.spill_folder, options_.memory_bytes_max / 4),
      lists_(options_.spill_folder, options_.memory_bytes_max / 16),
      block_covering_(options_.spill_folder, options_.memory_bytes_max / 16),
      list_covering_(options_.spill_folder, options_.memory_bytes_max / 16) {
  options_.threads = std::max(1, options_.threads);
  const auto memory = static_cast<uint64_t>(std::max<int64_t>(options_.memory_bytes_max, 64 << 10));
  const auto threads = static_cast<uint64_t>(options_.threads);
  // An entry takes 64 bytes while its partition is sorted and grouped.
  entries_max_ = std::max<uint64_t>(memory / (4 * threads * 64), 256);
  const uint64_t target = std::min(kPartitionEntriesTarget, entries_max_ / 2);
  const uint64_t covering_share = memory / (8 * threads);
  const uint64_t wanted =
      std::max(options_.entry_count / target,
               static_cast<uint64_t>(options_.covering_bytes) / covering_share);
  partition_bits_ = std::min({BitWidth(wanted), kPartitionBitsMax,
                              options_.space.bits});
  remainder_bits_ = options_.space.bits - partition_bits_;
  remainder_mask_ = LowMask(remainder_bits_);
  partition_shift_ = std::min(remainder_bits_, 63);
  partition_mask_ = LowMask(partition_bits_);
  partitions_.resize((size_t{1} << partition_bits_) + 1);
  hash_bytes_ = BytesOfBits(static_cast<uint64_t>(remainder_bits_));
  row_bytes_ = BytesOfBits(static_cast<uint64_t>(BitsOfRows(options_.row_count)));
  tuple_bytes_ = std::max<size_t>(1, hash_bytes_ + row_bytes_ + (options_.has_lengths ? 3 : 0));
  const uint64_t chunk_bytes =
      std::clamp<uint64_t>(memory / (8 * threads * partitions_.size()), 256, 16 << 10);
  chunk_tuples_ = std::max<size_t>(chunk_bytes / tuple_bytes_, 4);
}

PostingSorter::~PostingSorter() = default;

PostingSorter::Feeder::Feeder(PostingSorter* sorter)
    : sorter_(sorter), slots_(sorter->partitions_.size()) {}

std::unique_ptr<PostingSorter::Feeder> PostingSorter::NewFeeder() {
  return std::unique_ptr<Feeder>(new Feeder(this));
}

void PostingSorter::Feeder::NewChunk(size_t partition) {
  Slot& slot = slots_[partition];
  const size_t size = sorter_->chunk_tuples_ * sorter_->tuple_bytes_;
  if (slot.chunk != nullptr) {
    const Status pushed = sorter_->Push(partition, std::move(slot.chunk), size);
    if (!pushed.ok() && status_.ok()) status_ = pushed;
  }
  slot.chunk.reset(new char[size + kTupleSlackBytes]);
  slot.at = slot.chunk.get();
  slot.end = slot.at + size;
}

Status PostingSorter::Feeder::Finish() {
  for (size_t p = 0; p < slots_.size(); ++p) {
    Slot& slot = slots_[p];
    if (slot.chunk == nullptr) continue;
    const size_t size = static_cast<size_t>(slot.at - slot.chunk.get());
    const Status pushed = sorter_->Push(p, std::move(slot.chunk), size);
    if (!pushed.ok() && status_.ok()) status_ = pushed;
    slot = Slot();
  }
  return status_;
}

Status PostingSorter::Push(size_t partition, std::unique_ptr<char[]> chunk, size_t size_bytes) {
  if (size_bytes == 0) return Status::OK();
  std::lock_guard lock(mutex_);
  Partition& into = partitions_[partition];
  into.entry_count += size_bytes / tuple_bytes_;
  into.chunks.push_back({std::move(chunk), size_bytes});
  chunk_bytes_ += static_cast<int64_t>(chunk_tuples_ * tuple_bytes_ + kTupleSlackBytes);
  if (chunk_bytes_ + reserved_bytes_.load(std::memory_order_relaxed) <=
      options_.memory_bytes_max / 4 * 3) {
    return Status::OK();
  }
  if (options_.stop != nullptr) ARROW_RETURN_NOT_OK(options_.stop->Check());
  // Small spills make small extents: when others hold the memory, wait until a share is full.
  if (chunk_bytes_ < options_.memory_bytes_max / 4) return Status::OK();
  return SpillChunks();
}

Status PostingSorter::SpillChunks() {
  std::string bytes;
  for (Partition& partition : partitions_) {
    if (partition.chunks.empty()) continue;
    bytes.clear();
    for (const Chunk& chunk : partition.chunks) bytes.append(chunk.bytes.get(), chunk.size_bytes);
    ARROW_ASSIGN_OR_RAISE(const int64_t offset, spill_.Append(bytes));
    partition.extents.push_back({offset, bytes.size()});
    partition.chunks.clear();
    partition.chunks.shrink_to_fit();
  }
  chunk_bytes_ = 0;
  return Status::OK();
}

void PostingSorter::Decode(size_t partition, std::string_view tuples,
                           std::vector<SortEntry>* entries) const {
  // The null partition's hash is 0.
  const uint64_t high = partition + 1 == partitions_.size() || partition_bits_ == 0
                            ? 0
                            : static_cast<uint64_t>(partition) << partition_shift_;
  const auto* data = reinterpret_cast<const uint8_t*>(tuples.data());
  const size_t size = tuples.size();
  const uint64_t row_mask = LowMask(static_cast<int>(row_bytes_ * 8));
  const size_t row_at = hash_bytes_, length_at = hash_bytes_ + row_bytes_;
  for (size_t at = 0; at < size; at += tuple_bytes_) {
    const uint64_t remainder = LoadWord(data, size, at) & remainder_mask_;
    const uint64_t row = LoadWord(data, size, at + row_at) & row_mask;
    const uint64_t length =
        options_.has_lengths ? LoadWord(data, size, at + length_at) & kSortLengthMax : 1;
    entries->push_back({high | remainder, row << kSortLengthBits | length});
  }
}

Status PostingSorter::Load(size_t p, std::vector<SortEntry>* entries) {
  Partition& partition = partitions_[p];
  entries->clear();
  entries->reserve(partition.entry_count);
  std::string bytes;
  for (const Extent& extent : partition.extents) {
    bytes.resize(extent.size_bytes);
    ARROW_RETURN_NOT_OK(spill_.Read(extent.offset_bytes, bytes.size(), bytes.data()));
    Decode(p, bytes, entries);
  }
  for (Chunk& chunk : partition.chunks) {
    Decode(p, {chunk.bytes.get(), chunk.size_bytes}, entries);
    chunk.bytes.reset();
  }
  partition.chunks.clear();
  return Status::OK();
}

Status PostingSorter::Group(size_t p, SpillBuffer* list_sink, GroupedKeys* grouped) {
  grouped->Clear();
  if (IsOversize(p)) return GroupOversize(p, list_sink, grouped);
  std::vector<SortEntry> entries, scratch;
  ARROW_RETURN_NOT_OK(Load(p, &entries));
  const bool null_keys = p + 1 == partitions_.size();
  SortEntries(null_keys ? 0 : remainder_bits_, &entries, &scratch);
  std::vector<SortEntry>().swap(scratch);
  grouped->keys.runs.reserve(entries.size());
  Grouper grouper(options_.file_bases, null_keys, list_sink, grouped);
  for (const SortEntry& entry : entries) {
    if (!grouper.Add(entry.hash, entry.row_length >> kSortLengthBits,
                     entry.row_length & kSortLengthMax)) {
      return Corrupt("rows of one key overlap", "row", entry.row_length >> kSortLengthBits);
    }
  }
  return grouper.Finish();
}

// Sorts as much as fits at a time, to runs in a file of their own.
Status PostingSorter::SpillRuns(size_t p, SpillFile* file, std::vector<Extent>* runs) {
  Partition& partition = partitions_[p];
  const int bits = p + 1 == partitions_.size() ? 0 : remainder_bits_;
  const size_t piece_bytes = std::max<size_t>(1, (64 << 10) / tuple_bytes_) * tuple_bytes_;
  std::vector<SortEntry> entries, scratch;
  std::string bytes;
  const auto flush = [&]() -> Status {
    SortEntries(bits, &entries, &scratch);
    const std::string_view view(reinterpret_cast<const char*>(entries.data()),
                                entries.size() * sizeof(SortEntry));
    ARROW_ASSIGN_OR_RAISE(const int64_t offset, file->Append(view));
    runs->push_back({offset, view.size()});
    entries.clear();
    return options_.stop == nullptr ? Status::OK() : options_.stop->Check();
  };
  for (const Extent& extent : partition.extents) {
    for (size_t at = 0; at < extent.size_bytes; at += piece_bytes) {
      bytes.resize(std::min(piece_bytes, extent.size_bytes - at));
      ARROW_RETURN_NOT_OK(spill_.Read(extent.offset_bytes + static_cast<int64_t>(at),
                                      bytes.size(), bytes.data()));
      Decode(p, bytes, &entries);
      if (entries.size() >= entries_max_) ARROW_RETURN_NOT_OK(flush());
    }
  }
  for (Chunk& chunk : partition.chunks) {
    Decode(p, {chunk.bytes.get(), chunk.size_bytes}, &entries);
    chunk.bytes.reset();
    if (entries.size() >= entries_max_) ARROW_RETURN_NOT_OK(flush());
  }
  partition.chunks.clear();
  return entries.empty() ? Status::OK() : flush();
}

Status PostingSorter::GroupOversize(size_t p, SpillBuffer* list_sink, GroupedKeys* grouped) {
  SpillFile file(options_.spill_folder);
  std::vector<Extent> runs;
  ARROW_RETURN_NOT_OK(SpillRuns(p, &file, &runs));
  std::vector<RunReader> readers(runs.size());
  const size_t piece = std::clamp<size_t>(entries_max_ / runs.size(), 64, 64 << 10);
  using Head = std::pair<SortEntry, size_t>;
  std::priority_queue<Head, std::vector<Head>, std::greater<>> heads;
  for (size_t i = 0; i < runs.size(); ++i) {
    readers[i].file = &file;
    readers[i].at = runs[i].offset_bytes;
    readers[i].end = runs[i].offset_bytes + static_cast<int64_t>(runs[i].size_bytes);
    ARROW_RETURN_NOT_OK(readers[i].Fill(piece));
    heads.push({readers[i].piece[readers[i].next++], i});
  }
  Grouper grouper(options_.file_bases, p + 1 == partitions_.size(), list_sink, grouped);
  uint64_t seen = 0;
  while (!heads.empty()) {
    const auto [entry, i] = heads.top();
    heads.pop();
    if (!grouper.Add(entry.hash, entry.row_length >> kSortLengthBits,
                     entry.row_length & kSortLengthMax)) {
      return Corrupt("rows of one key overlap", "row", entry.row_length >> kSortLengthBits);
    }
    RunReader& reader = readers[i];
    if (reader.next == reader.piece.size()) ARROW_RETURN_NOT_OK(reader.Fill(piece));
    if (reader.next < reader.piece.size()) heads.push({reader.piece[reader.next++], i});
    if ((++seen & 0xffff) == 0 && options_.stop != nullptr) {
      ARROW_RETURN_NOT_OK(options_.stop->Check());
    }
  }
  return grouper.Finish();
}

// All partitions hold about as many keys, so the first one tells how many blocks each needs.
void PostingSorter::ChooseBlocks(const GroupedKeys& first) {
  std::string whole;
  const BlockScope scope{0, remainder_mask_, options_.row_count, BitsOfRows(options_.row_count)};
  AppendBlock(first.keys, 0, first.keys.hashes.size(), scope, &whole);
  const uint64_t wanted = (whole.size() + kBlockTargetBytes / 2) / kBlockTargetBytes;
  const uint64_t limit = remainder_bits_ >= 32 ? uint64_t{1} << 32 : remainder_mask_ + 1;
  blocks_per_partition_ = std::clamp<uint64_t>(wanted, 1, limit);
}

Status PostingSorter::Pack(size_t p, const GroupedKeys& grouped, PartitionOutput* out) {
  out->grouped = &grouped;
  const uint64_t block_count = blocks_per_partition_ << partition_bits_;
  const std::vector<uint64_t>& hashes = grouped.keys.hashes;
  size_t key = 0;
  for (uint64_t i = 0; i < blocks_per_partition_; ++i) {
    const uint64_t block = p * blocks_per_partition_ + i;
    const uint64_t first = BlockStart(block, block_count, options_.space.bits);
    const uint64_t last = block + 1 < block_count
                              ? BlockStart(block + 1, block_count, options_.space.bits) - 1
                              : options_.space.last_hash();
    const size_t begin = key;
    while (key < hashes.size() && hashes[key] <= last) ++key;
    const size_t before = out->blocks.size();
    AppendBlock(grouped.keys, begin, key,
                {first, last - first, options_.row_count, BitsOfRows(options_.row_count)},
                &out->blocks);
    out->block_sizes.push_back(out->blocks.size() - before);
  }
  return options_.covering == nullptr ? Status::OK() : PackCovering(p, grouped, out);
}

Status PostingSorter::PackCovering(size_t p, const GroupedKeys& grouped, PartitionOutput* out) {
  CoveringRows rows;
  ARROW_RETURN_NOT_OK(rows.Load(options_.covering, partitions_[p].covering, &covering_rows_));
  size_t key = 0, run = 0;
  const bool null_keys = p + 1 == partitions_.size();
  const uint64_t block_count = blocks_per_partition_ << partition_bits_;
  for (uint64_t i = 0; !null_keys && i < blocks_per_partition_; ++i) {
    const uint64_t block = p * blocks_per_partition_ + i;
    const uint64_t last = block + 1 < block_count
                              ? BlockStart(block + 1, block_count, options_.space.bits) - 1
                              : options_.space.last_hash();
    while (key < grouped.keys.hashes.size() && grouped.keys.hashes[key] <= last) ++key;
    const size_t run_end = key == 0 ? 0 : grouped.keys.ends[key - 1];
    const size_t before = out->block_covering.size();
    if (run_end > run) {
      ARROW_RETURN_NOT_OK(rows.AppendBlock(
          std::span(grouped.keys.runs).subspan(run, run_end - run), &out->block_covering));
    }
    run = run_end;
    out->block_covering_sizes.push_back(out->block_covering.size() - before);
  }
  std::string_view bytes = grouped.list_bytes;
  for (const ListEntry& list : grouped.lists) {
    std::vector<RowRun> runs;
    ARROW_RETURN_NOT_OK(DecodeList(bytes.substr(0, list.size_bytes), list.run_count,
                                   options_.row_count, &runs));
    bytes.remove_prefix(list.size_bytes);
    const size_t before = out->list_covering.size();
    ARROW_RETURN_NOT_OK(rows.AppendBlock(runs, &out->list_covering));
    out->list_covering_sizes.push_back(out->list_covering.size() - before);
  }
  return Status::OK();
}

Status PostingSorter::Append(const PartitionOutput& out, store::Upload& upload,
                             FragmentHead* head) {
  const GroupedKeys& grouped = *out.grouped;
  if (!out.blocks.empty()) ARROW_RETURN_NOT_OK(upload.Append(out.blocks));
  head->block_sizes.insert(head->block_sizes.end(), out.block_sizes.begin(),
                           out.block_sizes.end());
  head->lists.insert(head->lists.end(), grouped.lists.begin(), grouped.lists.end());
  head->key_count += grouped.keys.hashes.size() + grouped.lists.size();
  head->run_count += grouped.keys.runs.size() + grouped.list_runs;
  head->has_lengths |= grouped.has_lengths;
  ARROW_RETURN_NOT_OK(lists_.Append(grouped.list_bytes));
  ARROW_RETURN_NOT_OK(block_covering_.Append(out.block_covering));
  ARROW_RETURN_NOT_OK(list_covering_.Append(out.list_covering));
  block_covering_sizes_.insert(block_covering_sizes_.end(), out.block_covering_sizes.begin(),
                               out.block_covering_sizes.end());
  list_covering_sizes_.insert(list_covering_sizes_.end(), out.list_covering_sizes.begin(),
                              out.list_covering_sizes.end());
  return Status::OK();
}

Status PostingSorter::WaitForTurn(size_t partition) {
  std::unique_lock lock(turn_mutex_);
  turn_changed_.wait(lock, [&] { return failed_ || turn_ == partition; });
  return failed_ ? Cancelled("another thread failed") : Status::OK();
}

Status PostingSorter::Process(size_t p, store::Upload& upload, FragmentHead* head) {
  if (options_.stop != nullptr) ARROW_RETURN_NOT_OK(options_.stop->Check());
  // An oversize partition goes alone, and may hand its list over as it grows; with covering
  // columns the list is needed once more, whole.
  const bool oversize = IsOversize(p);
  if (oversize) ARROW_RETURN_NOT_OK(WaitForTurn(p));
  GroupedKeys grouped;
  ARROW_RETURN_NOT_OK(
      Group(p, oversize && options_.covering == nullptr ? &lists_ : nullptr, &grouped));
  PartitionOutput out;
  ARROW_RETURN_NOT_OK(Pack(p, grouped, &out));
  ARROW_RETURN_NOT_OK(WaitForTurn(p));
  ARROW_RETURN_NOT_OK(Append(out, upload, head));
  std::lock_guard lock(turn_mutex_);
  ++turn_;
  turn_changed_.notify_all();
  return Status::OK();
}

Status PostingSorter::RunWorkers(store::Upload& upload, FragmentHead* head) {
  std::atomic<size_t> next{1};
  Status first_error;
  const size_t end = partitions_.size() - 1;
  const auto work = [&] {
    for (size_t p = next.fetch_add(1); p < end; p = next.fetch_add(1)) {
      Status status;
      try {
        status = Process(p, upload, head);
      } catch (const std::bad_alloc&) {
        status = LimitExceeded("out of memory while sorting a fragment");
      }
      if (status.ok()) continue;
      std::lock_guard lock(turn_mutex_);
      if (!failed_) first_error = status;
      failed_ = true;
      turn_changed_.notify_all();
      return;
    }
  };
  std::vector<std::thread> threads;
  const size_t wanted = std::min<size_t>(static_cast<size_t>(options_.threads), end);
  for (size_t i = 1; i < wanted; ++i) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
  return first_error;
}

Status PostingSorter::Write(store::Upload& upload, FragmentHead* head) {
  head->space = options_.space;
  const bool covers = options_.covering != nullptr;
  SpillBuffer* const sink = covers ? nullptr : &lists_;
  GroupedKeys grouped;
  PartitionOutput nulls;
  // The null keys: a list, no block.
  const size_t null_partition = partitions_.size() - 1;
  ARROW_RETURN_NOT_OK(Group(null_partition, IsOversize(null_partition) ? sink : nullptr, &grouped));
  nulls.grouped = &grouped;
  if (covers) ARROW_RETURN_NOT_OK(PackCovering(null_partition, grouped, &nulls));
  ARROW_RETURN_NOT_OK(Append(nulls, upload, head));

  ARROW_RETURN_NOT_OK(Group(0, IsOversize(0) ? sink : nullptr, &grouped));
  ChooseBlocks(grouped);
  PartitionOutput out;
  ARROW_RETURN_NOT_OK(Pack(0, grouped, &out));
  ARROW_RETURN_NOT_OK(Append(out, upload, head));
  grouped = GroupedKeys();
  turn_ = 1;
  ARROW_RETURN_NOT_OK(RunWorkers(upload, head));

  ARROW_RETURN_NOT_OK(lists_.CopyTo(upload));
  if (!covers) return Status::OK();
  head->has_covering = true;
  head->covering_sizes = std::move(block_covering_sizes_);
  head->covering_sizes.insert(head->covering_sizes.end(), list_covering_sizes_.begin(),
                              list_covering_sizes_.end());
  ARROW_RETURN_NOT_OK(block_covering_.CopyTo(upload));
  return list_covering_.CopyTo(upload);
}

}  // namespace grebe::index

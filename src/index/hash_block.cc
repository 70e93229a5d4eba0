#include "index/hash_block.h"

#include <algorithm>

#include "base/hash.h"
#include "index/fragment_format.h"

namespace grebe::index {
namespace {

uint32_t BlockChecksum(std::string_view block) {
  return static_cast<uint32_t>(Checksum(block.substr(offsetof(BlockHeader, key_count))));
}

}  // namespace

void AppendBlock(const KeyRuns& keys, size_t key_begin, size_t key_end, const BlockScope& scope,
                 std::string* out) {
  if (key_begin == key_end) return;
  const size_t key_count = key_end - key_begin;
  const uint64_t run_begin = key_begin == 0 ? 0 : keys.ends[key_begin - 1];
  const uint64_t run_end = keys.ends[key_end - 1];
  const uint64_t run_count = run_end - run_begin;
  const uint64_t extra_last = run_count - key_count;
  uint64_t length_max = 0;
  for (uint64_t i = run_begin; i < run_end; ++i) {
    length_max = std::max(length_max, keys.runs[i].count - 1);
  }
  BlockHeader header{};
  header.key_count = static_cast<uint32_t>(key_count);
  header.run_count = static_cast<uint32_t>(run_count);
  header.low_bits = static_cast<uint8_t>(EliasFanoLowBits(scope.last_remainder, key_count));
  header.extra_low_bits = static_cast<uint8_t>(
      extra_last == 0 ? kNoExtraCounts : EliasFanoLowBits(extra_last, key_count));
  header.length_bits = static_cast<uint8_t>(BitWidth(length_max));

  const size_t block_at = out->size();
  out->append(sizeof(BlockHeader), '\0');
  std::vector<uint64_t> values(key_count);
  for (size_t k = 0; k < key_count; ++k) values[k] = keys.hashes[key_begin + k] - scope.first_hash;
  AppendEliasFano(values, scope.last_remainder, header.low_bits, out);
  if (extra_last != 0) {
    for (size_t k = 0; k < key_count; ++k) values[k] = keys.ends[key_begin + k] - run_begin - k - 1;
    AppendEliasFano(values, extra_last, header.extra_low_bits, out);
  }
  BitWriter rows(out);
  for (uint64_t i = run_begin; i < run_end; ++i) rows.Put(keys.runs[i].row, scope.row_bits);
  rows.Align();
  BitWriter lengths(out);
  for (uint64_t i = run_begin; i < run_end; ++i) {
    lengths.Put(keys.runs[i].count - 1, header.length_bits);
  }
  lengths.Align();
  std::memcpy(out->data() + block_at, &header, sizeof(header));
  header.checksum = BlockChecksum(std::string_view(*out).substr(block_at));
  std::memcpy(out->data() + block_at, &header, sizeof(header));
}

bool BlockLayout::Parse(std::string_view bytes, const BlockScope& scope) {
  if (bytes.size() < sizeof(BlockHeader)) return false;
  const auto header = LoadLe<BlockHeader>(bytes.data());
  data = reinterpret_cast<const uint8_t*>(bytes.data());
  size_bytes = bytes.size();
  key_count = header.key_count;
  run_count = header.run_count;
  low_bits = header.low_bits;
  single = header.extra_low_bits == kNoExtraCounts;
  extra_low_bits = single ? 0 : header.extra_low_bits;
  length_bits = header.length_bits;
  row_bits = scope.row_bits;
  if (key_count == 0 || run_count < key_count || single != (run_count == key_count) ||
      low_bits > 63 || extra_low_bits > 31 || length_bits > 48 || header.reserved != 0) {
    return false;
  }
  const uint64_t bits_max = static_cast<uint64_t>(bytes.size()) * 8;
  if ((scope.last_remainder >> low_bits) > bits_max) return false;
  upper_bits = EliasFanoUpperBits(scope.last_remainder, key_count, low_bits);
  upper_at = sizeof(BlockHeader);
  low_at = upper_at + BytesOfBits(upper_bits);
  extra_upper_at = low_at + BytesOfBits(uint64_t{key_count} * static_cast<uint64_t>(low_bits));
  extra_upper_bits = 0;
  if (!single) {
    extra_upper_bits = EliasFanoUpperBits(run_count - key_count, key_count, extra_low_bits);
  }
  extra_low_at = extra_upper_at + BytesOfBits(extra_upper_bits);
  rows_at = extra_low_at + BytesOfBits(uint64_t{key_count} * static_cast<uint64_t>(extra_low_bits));
  lengths_at = rows_at + BytesOfBits(uint64_t{run_count} * static_cast<uint64_t>(row_bits));
  return lengths_at + BytesOfBits(uint64_t{run_count} * static_cast<uint64_t>(length_bits)) ==
         bytes.size();
}

bool CheckBlock(std::string_view block) {
  return block.size() >= sizeof(BlockHeader) &&
         LoadLe<uint32_t>(block.data()) == BlockChecksum(block);
}

Status DecodeBlock(std::string_view block, const BlockScope& scope, KeyRuns* keys) {
  if (block.empty()) return Status::OK();
  BlockLayout layout;
  if (!layout.Parse(block, scope)) return Corrupt("bad hash block layout", "size", block.size());
  uint64_t bit = 0, bucket = 0, extra_bit = 0, run = 0;
  const auto is_set = [&](uint64_t at, uint64_t index) {
    return (layout.data[at + (index >> 3)] >> (index & 7) & 1) != 0;
  };
  for (uint64_t key = 0; key < layout.key_count; ++key, ++bit) {
    for (; bit < layout.upper_bits && !is_set(layout.upper_at, bit); ++bit) ++bucket;
    if (bit >= layout.upper_bits) return Corrupt("hash block has too few keys", "key", key);
    const uint64_t remainder = (bucket << layout.low_bits) | layout.low(key);
    const uint64_t hash = scope.first_hash + remainder;
    if (remainder > scope.last_remainder ||
        (key > 0 && hash <= keys->hashes.back())) {
      return Corrupt("hash block is out of order", "key", key);
    }
    uint64_t run_end = key + 1;
    if (!layout.single) {
      while (extra_bit < layout.extra_upper_bits && !is_set(layout.extra_upper_at, extra_bit)) {
        ++extra_bit;
      }
      if (extra_bit >= layout.extra_upper_bits) return Corrupt("bad run counts", "key", key);
      run_end += ((extra_bit - key) << layout.extra_low_bits) +
                 GetBits(layout.data + layout.extra_low_at, block.size() - layout.extra_low_at,
                         key * static_cast<uint64_t>(layout.extra_low_bits),
                         layout.extra_low_bits);
      ++extra_bit;
    }
    if (run_end <= run || run_end > layout.run_count) return Corrupt("bad run counts", "key", key);
    for (uint64_t row_end = 0; run < run_end; ++run) {
      const RowRun got = layout.run(run);
      if (got.row < row_end || got.row >= scope.row_count ||
          got.count > scope.row_count - got.row) {
        return Corrupt("hash block has bad rows", "key", key);
      }
      row_end = got.row + got.count;
      keys->runs.push_back(got);
    }
    keys->hashes.push_back(hash);
    keys->ends.push_back(keys->runs.size());
  }
  if (run != layout.run_count) return Corrupt("bad run counts", "runs", run);
  return Status::OK();
}

void ListWriter::Add(RowRun run, std::string* out) {
  group_.push_back(run);
  if (group_.size() == kGroupRuns) Flush(out);
}

void ListWriter::Finish(std::string* out) { Flush(out); }

void ListWriter::Flush(std::string* out) {
  if (group_.empty()) return;
  uint64_t gap_max = 0, length_max = 0, end = end_;
  for (const RowRun& run : group_) {
    gap_max = std::max(gap_max, run.row - end);
    length_max = std::max(length_max, run.count - 1);
    end = run.row + run.count;
  }
  const int gap_bits = BitWidth(gap_max), length_bits = BitWidth(length_max);
  out->push_back(static_cast<char>(gap_bits));
  out->push_back(static_cast<char>(length_bits));
  BitWriter writer(out);
  for (const RowRun& run : group_) {
    writer.Put(run.row - end_, gap_bits);
    end_ = run.row + run.count;
  }
  writer.Align();
  for (const RowRun& run : group_) writer.Put(run.count - 1, length_bits);
  writer.Align();
  group_.clear();
}

Status DecodeList(std::string_view bytes, uint64_t run_count, uint64_t row_count,
                  std::vector<RowRun>* runs) {
  const auto* data = reinterpret_cast<const uint8_t*>(bytes.data());
  size_t at = 0;
  uint64_t end = 0;
  while (run_count > 0) {
    if (bytes.size() - at < 2) return Corrupt("posting list is cut short");
    const uint64_t gap_bits = data[at], length_bits = data[at + 1];
    at += 2;
    const uint64_t count = std::min<uint64_t>(run_count, ListWriter::kGroupRuns);
    if (gap_bits > 48 || length_bits > 48) return Corrupt("bad posting list widths");
    const size_t lengths_at = at + BytesOfBits(count * gap_bits);
    const size_t group_end = lengths_at + BytesOfBits(count * length_bits);
    if (group_end > bytes.size()) return Corrupt("posting list is cut short");
    for (uint64_t i = 0; i < count; ++i) {
      const uint64_t gap = GetBits(data + at, bytes.size() - at, i * gap_bits,
                                   static_cast<int>(gap_bits));
      const uint64_t length = 1 + GetBits(data + lengths_at, bytes.size() - lengths_at,
                                          i * length_bits, static_cast<int>(length_bits));
      if (gap > row_count - end || length > row_count - end - gap) {
        return Corrupt("posting list has bad rows");
      }
      runs->push_back({end + gap, length});
      end += gap + length;
    }
    at = group_end;
    run_count -= count;
  }
  if (at != bytes.size()) return Corrupt("posting list has bytes left over");
  return Status::OK();
}

}  // namespace grebe::index

#include "index/sorted_section.h"

#include <algorithm>
#include <numeric>
#include <queue>

#include "base/hash.h"

namespace grebe::index {
namespace {

constexpr size_t kChunkBytes = 64 << 10;
constexpr uint64_t kRowsOpen = kRowsMax + 1;   // the sorter's own pieces need no tighter bound

// A number that orders as the beginnings of keys do: the bytes after the first, which is 01 of
// all but nulls.
uint64_t WordOf(std::string_view key) {
  char bytes[8] = {};
  if (key.size() > 1 && key[0] != '\0') {
    std::copy_n(key.data() + 1, std::min<size_t>(key.size() - 1, 8), bytes);
  }
  return __builtin_bswap64(LoadLe<uint64_t>(bytes));
}

// The shortest bytes that are above `before` and not above `key`. REQUIRES: before < key.
std::string_view Separator(std::string_view before, std::string_view key) {
  return key.substr(0, std::min(SharedBytes(before, key) + 1, key.size()));
}

// Short bytes above a key.
std::string EndAfter(const std::string& key) {
  constexpr size_t kBytesMax = 64;
  if (key.size() < kBytesMax) return key + '\0';
  std::string end = key.substr(0, kBytesMax);
  while (end.back() == '\xff') end.pop_back();   // keys begin with 00 or 01
  end.back() = static_cast<char>(end.back() + 1);
  return end;
}

std::string WithChecksum(std::string_view body) {
  std::string out;
  PutFixed(&out, static_cast<uint32_t>(Checksum(body)));
  out.append(body);
  return out;
}

Result<std::string_view> CheckedBody(std::string_view bytes, std::string_view what) {
  if (bytes.size() < 4 || LoadLe<uint32_t>(bytes.data()) !=
                              static_cast<uint32_t>(Checksum(bytes.substr(4)))) {
    return Corrupt("checksum of a sorted index part", "part", what);
  }
  return bytes.substr(4);
}

}  // namespace

FenceSpan FencesOf(std::span<const Fence> fences, const key::OrderedRange& range) {
  const auto below = [](const Fence& fence, const std::string& key) { return fence.key < key; };
  const auto first = std::lower_bound(fences.begin(), fences.end(), range.begin, below);
  const auto last = range.has_end ? std::lower_bound(first, fences.end(), range.end, below)
                                  : fences.end();
  FenceSpan span{static_cast<size_t>(first - fences.begin()),
                 static_cast<size_t>(last - fences.begin())};
  // The stretch before may reach into the range.
  if (span.first > 0) --span.first;
  if (range.empty()) span.last = span.first;
  return span;
}

Result<std::string_view> OpenSortedBlock(std::string_view bytes) {
  return CheckedBody(bytes, "block");
}

Result<std::vector<Fence>> ReadFenceBlock(std::string_view bytes, const Fence& top) {
  ARROW_ASSIGN_OR_RAISE(const std::string_view body, CheckedBody(bytes, "fence block"));
  const auto bad = [] { return Corrupt("bad fence block"); };
  ByteReader reader(body);
  uint64_t count = 0, rows = 0;
  if (!reader.ReadVarint(&count) || count == 0 || count > reader.remaining_bytes()) return bad();
  std::vector<Fence> fences(count);
  std::string key;
  int64_t at = top.data.begin;
  for (Fence& fence : fences) {
    uint64_t shared = 0, size = 0;
    std::string_view rest;
    if (!reader.ReadVarint(&shared) || shared > key.size() || !reader.ReadBytes(&rest) ||
        !reader.ReadVarint(&size) || !reader.ReadVarint(&fence.row_count) ||
        size > static_cast<uint64_t>(top.data.end - at) || fence.row_count > kRowsMax) {
      return bad();
    }
    // The keys ascend; one that goes on in the next block stands there again.
    if (&fence != &fences[0] && rest < std::string_view(key).substr(shared)) return bad();
    key.replace(shared, std::string::npos, rest);
    fence.key = key;
    fence.bytes = {at, at + static_cast<int64_t>(size)};
    at = fence.bytes.end;
    rows += fence.row_count;
  }
  if (reader.remaining_bytes() != 0 || at != top.data.end || rows != top.row_count ||
      fences[0].key != top.key) {
    return bad();
  }
  return fences;
}

Status MergeStreams(std::vector<std::unique_ptr<EntryStream>> streams, const StopToken* stop,
                    const EntrySink& sink) {
  struct Head {
    uint64_t word;
    EntryStream* stream;
  };
  const auto after = [](const Head& a, const Head& b) {
    if (a.word != b.word) return a.word > b.word;
    const int order = a.stream->key().compare(b.stream->key());
    return order != 0 ? order > 0 : a.stream->row() > b.stream->row();
  };
  std::priority_queue<Head, std::vector<Head>, decltype(after)> heads(after);
  for (const auto& stream : streams) {
    ARROW_ASSIGN_OR_RAISE(const bool more, stream->Next());
    if (more) heads.push({WordOf(stream->key()), stream.get()});
  }
  uint64_t seen = 0;
  while (!heads.empty()) {
    EntryStream* const stream = heads.top().stream;
    heads.pop();
    ARROW_RETURN_NOT_OK(sink(stream->key(), stream->row(), stream->count()));
    ARROW_ASSIGN_OR_RAISE(const bool more, stream->Next());
    if (more) heads.push({WordOf(stream->key()), stream});
    if ((++seen & 0xffff) == 0 && stop != nullptr) ARROW_RETURN_NOT_OK(stop->Check());
  }
  return Status::OK();
}

SortedWriter::SortedWriter(store::Upload& upload, int64_t offset_bytes,
                           std::vector<uint64_t> file_bases, std::string spill_folder)
    : upload_(upload),
      offset_bytes_(offset_bytes),
      file_bases_(std::move(file_bases)),
      fence_blocks_(std::move(spill_folder), 1 << 20) {}

Status SortedWriter::Add(std::string_view key, uint64_t row, uint64_t count) {
  row_count_ += count;
  if (open_ && key == key_) {
    if (row < row_ + count_) return Corrupt("rows of one key overlap", "row", row);
    if (row == row_ + count_ && !std::binary_search(file_bases_.begin(), file_bases_.end(), row)) {
      count_ += count;
      return Status::OK();
    }
  }
  if (open_) {
    if (key < key_) return Corrupt("keys of a sorted part are out of order", "row", row);
    ARROW_RETURN_NOT_OK(Put());
  }
  open_ = true;
  key_ = key;
  row_ = row;
  count_ = count;
  return Status::OK();
}

Status SortedWriter::Put() {
  if (block_runs_ == 0) {
    block_.clear();
    entries_.Restart();
    const bool first = directory_.fences.empty() && fence_count_ == 0;
    // Of a key that goes on here, the fence is the whole key.
    block_fence_ = first               ? key_
                   : key_ == last_key_ ? key_
                                       : std::string(Separator(last_key_, key_));
    if (first) directory_.begin = key_.substr(0, 64);
    if (first) block_fence_ = directory_.begin;
  }
  entries_.Add(key_, row_, count_, &block_);
  ++block_runs_;
  block_rows_ += count_;
  last_key_ = key_;
  return block_.size() >= kSortedBlockBytes ? CloseBlock() : Status::OK();
}

Status SortedWriter::CloseBlock() {
  const std::string bytes = WithChecksum(block_);
  ARROW_RETURN_NOT_OK(upload_.Append(bytes));
  if (fence_count_ == 0) {
    fence_key_.clear();
    top_ = {block_fence_, {}, {offset_bytes_, offset_bytes_}, 0};
  }
  const size_t shared = SharedBytes(fence_key_, block_fence_);
  PutVarint(&fences_, shared);
  PutBytes(&fences_, std::string_view(block_fence_).substr(shared));
  PutVarint(&fences_, bytes.size());
  PutVarint(&fences_, block_rows_);
  fence_key_ = block_fence_;
  ++fence_count_;
  top_.row_count += block_rows_;
  offset_bytes_ += static_cast<int64_t>(bytes.size());
  top_.data.end = offset_bytes_;
  block_runs_ = block_rows_ = 0;
  return fences_.size() >= kFenceBlockBytes ? CloseFenceBlock() : Status::OK();
}

Status SortedWriter::CloseFenceBlock() {
  std::string body;
  PutVarint(&body, fence_count_);
  body.append(fences_);
  const std::string bytes = WithChecksum(body);
  ARROW_RETURN_NOT_OK(fence_blocks_.Append(bytes));
  fence_sizes_.push_back(bytes.size());
  directory_.fences.push_back(top_);
  fences_.clear();
  fence_count_ = 0;
  return Status::OK();
}

Status SortedWriter::Finish(SortedDirectory* directory) {
  if (open_) ARROW_RETURN_NOT_OK(Put());
  if (block_runs_ > 0) ARROW_RETURN_NOT_OK(CloseBlock());
  if (fence_count_ > 0) ARROW_RETURN_NOT_OK(CloseFenceBlock());
  if (!last_key_.empty()) directory_.end = EndAfter(last_key_);
  int64_t at = offset_bytes_;
  for (size_t i = 0; i < fence_sizes_.size(); ++i) {
    directory_.fences[i].bytes = {at, at + static_cast<int64_t>(fence_sizes_[i])};
    at = directory_.fences[i].bytes.end;
  }
  *directory = std::move(directory_);
  return fence_blocks_.CopyTo(upload_);
}

KeySorter::KeySorter(int64_t memory_bytes_max, std::string spill_folder, const StopToken* stop)
    : memory_bytes_max_(memory_bytes_max), stop_(stop), file_(std::move(spill_folder)) {}

Status KeySorter::Add(const key::OrderedKeys& keys, uint64_t first_row) {
  struct Item {
    uint64_t word;
    uint32_t index;
  };
  std::vector<Item> items(static_cast<size_t>(keys.count()));
  for (size_t i = 0; i < items.size(); ++i) {
    items[i] = {WordOf(keys.view(static_cast<int64_t>(i))), static_cast<uint32_t>(i)};
  }
  std::sort(items.begin(), items.end(), [&](const Item& a, const Item& b) {
    if (a.word != b.word) return a.word < b.word;
    const int order = keys.view(a.index).compare(keys.view(b.index));
    return order != 0 ? order < 0 : a.index < b.index;
  });
  Piece piece;
  EntryWriter entries;
  for (size_t i = 0; i < items.size();) {
    const std::string_view key = keys.view(items[i].index);
    uint64_t count = 1;
    while (i + count < items.size() && items[i + count].index == items[i].index + count &&
           keys.view(items[i + count].index) == key) {
      ++count;
    }
    if (piece.empty() || piece.back().bytes.size() >= kChunkBytes) {
      piece.emplace_back();
      entries.Restart();
    }
    entries.Add(key, first_row + items[i].index, count, &piece.back().bytes);
    i += count;
  }
  int64_t piece_bytes = 0;
  for (Chunk& chunk : piece) {
    chunk.bytes.shrink_to_fit();
    chunk.size_bytes = chunk.bytes.size();
    piece_bytes += static_cast<int64_t>(chunk.size_bytes + sizeof(Chunk));
  }
  std::lock_guard lock(mutex_);
  if (!piece.empty()) pieces_.push_back(std::move(piece));
  piece_bytes_ += piece_bytes;
  return piece_bytes_ > memory_bytes_max_ ? SpillAll() : Status::OK();
}

class KeySorter::PieceStream final : public EntryStream {
 public:
  PieceStream(const SpillFile& file, Piece* piece) : file_(file), piece_(*piece) {}

  Result<bool> Next() override {
    while (!entries_.Next()) {
      if (entries_.damaged()) return Internal("a sorted piece does not read back");
      if (next_ == piece_.size()) return false;
      Chunk& chunk = piece_[next_++];
      if (chunk.bytes.empty()) {
        bytes_.resize(chunk.size_bytes);
        ARROW_RETURN_NOT_OK(file_.Read(chunk.offset_bytes, bytes_.size(), bytes_.data()));
      } else {
        bytes_ = std::move(chunk.bytes);
      }
      entries_ = EntryReader(bytes_, kRowsOpen);
    }
    return true;
  }
  std::string_view key() const override { return entries_.key(); }
  uint64_t row() const override { return entries_.row(); }
  uint64_t count() const override { return entries_.count(); }

 private:
  const SpillFile& file_;
  Piece& piece_;
  size_t next_ = 0;
  std::string bytes_;
  EntryReader entries_;
};

Status KeySorter::SpillAll() {
  std::vector<std::unique_ptr<EntryStream>> streams;
  for (Piece& piece : pieces_) streams.push_back(std::make_unique<PieceStream>(file_, &piece));
  Piece merged;
  EntryWriter entries;
  std::string bytes;
  const auto flush = [&]() -> Status {
    ARROW_ASSIGN_OR_RAISE(const int64_t offset, file_.Append(bytes));
    merged.push_back({std::string(), offset, bytes.size()});
    bytes.clear();
    entries.Restart();
    return Status::OK();
  };
  ARROW_RETURN_NOT_OK(MergeStreams(std::move(streams), stop_,
                                   [&](std::string_view key, uint64_t row, uint64_t count) {
                                     entries.Add(key, row, count, &bytes);
                                     return bytes.size() >= kChunkBytes ? flush() : Status::OK();
                                   }));
  if (!bytes.empty()) ARROW_RETURN_NOT_OK(flush());
  pieces_.clear();
  piece_bytes_ = 0;
  spilled_.push_back(std::move(merged));
  return Status::OK();
}

Status KeySorter::Drain(const EntrySink& sink) {
  std::vector<std::unique_ptr<EntryStream>> streams;
  for (Piece& piece : spilled_) streams.push_back(std::make_unique<PieceStream>(file_, &piece));
  for (Piece& piece : pieces_) streams.push_back(std::make_unique<PieceStream>(file_, &piece));
  return MergeStreams(std::move(streams), stop_, sink);
}

}  // namespace grebe::index

// Ranges of keys over all fragments of a view: the fences say which blocks may hold the range, the
// blocks are read in waves, and their runs merged by key.
#include <algorithm>
#include <map>
#include <queue>
#include <utility>

#include "index/fragment_reader.h"
#include "index/index_view_impl.h"
#include "index/sorted_section.h"

namespace grebe::index {
namespace {

std::string_view ViewOf(const arrow::Buffer& buffer) {
  return {reinterpret_cast<const char*>(buffer.data()), static_cast<size_t>(buffer.size())};
}

// The rows of the stretches between the first and the last, which lie within the range whole;
// drops those stretches.
int64_t CountInside(std::vector<Fence>* fences) {
  int64_t rows = 0;
  if (fences->size() <= 2) return rows;
  for (size_t i = 1; i + 1 < fences->size(); ++i) {
    rows += static_cast<int64_t>((*fences)[i].row_count);
  }
  fences->erase(fences->begin() + 1, fences->end() - 1);
  return rows;
}

}  // namespace

class IndexViewImpl::RangeFinder {
 public:
  RangeFinder(IndexViewImpl& view, const key::OrderedRange& range, ProbeCounters* counters)
      : view_(view), range_(range), counters_(*counters) {}

  Result<std::vector<FoundRun>> Find(const RangeOptions& options);
  Result<int64_t> Count();

 private:
  // One fragment's part of the range.
  struct Source {
    const OpenedFragment* opened = nullptr;
    const FragmentReader* reader = nullptr;
    bool has_dead = false;
    std::vector<Fence> tops;         // fence blocks to read
    std::vector<Fence> blocks;       // that may hold keys of the range, in order
    std::vector<std::shared_ptr<arrow::Buffer>> bytes;   // of blocks; null: not read, or done
    size_t next = 0;                 // block that the entries do not come from yet
    EntryReader entries;
  };

  Status OpenSources(bool page_maps, bool counting);
  Status ReadFences(bool page_maps);
  // Reads the next blocks of every source: as many as may hold `rows` rows (negative: all), or as
  // a wave may hold.
  Status ReadBlocks(int64_t rows);
  // Goes to the source's next run within the range; false at its end.
  Result<bool> Advance(Source* source, int64_t rows);
  Status OpenBlock(Source* source, int64_t rows);
  Status TakeKey(int64_t rows);
  Status ReadParts(const std::vector<std::pair<Source*, ByteRange>>& parts,
                   const std::vector<PageMapShelf::Unit>& units,
                   std::vector<std::shared_ptr<arrow::Buffer>>* buffers);
  std::shared_ptr<arrow::Buffer> InMemory(const Source& source, ByteRange range);
  Status Failed(const Source& source, const Status& status) const {
    return FragmentError(status, source.opened->info.path);
  }

  struct After {
    bool operator()(const Source* a, const Source* b) const {
      return a->entries.key() > b->entries.key();
    }
  };

  IndexViewImpl& view_;
  const key::OrderedRange& range_;
  ProbeCounters& counters_;
  std::vector<std::unique_ptr<Source>> sources_;
  std::priority_queue<Source*, std::vector<Source*>, After> heads_;
  std::string key_;                  // of the runs taken
  std::vector<FoundRun> key_runs_;   // of one key, over all sources
  int64_t counted_ = 0;              // rows that need no block to be counted
};

Status IndexViewImpl::RangeFinder::OpenSources(bool page_maps, bool counting) {
  for (const OpenedFragment& opened : view_.fragments_) {
    const SortedDirectory* sorted = opened.fragment->sorted();
    if (sorted == nullptr) {
      return InvalidArgument("the index is not sorted: 'grebe index create --sorted' makes one",
                             "fragment", opened.info.path);
    }
    if (range_.empty() || sorted->end <= range_.begin ||
        (range_.has_end && sorted->begin >= range_.end)) {
      continue;
    }
    const FenceSpan span = FencesOf(sorted->fences, range_);
    if (span.first >= span.last) continue;
    auto source = std::make_unique<Source>();
    source->opened = &opened;
    source->reader = dynamic_cast<const FragmentReader*>(opened.fragment.get());
    if (source->reader == nullptr) return Internal("not an opened fragment");
    source->has_dead = std::find(opened.view_files.begin(), opened.view_files.end(),
                                 OpenedFragment::kDead) != opened.view_files.end();
    source->tops.assign(sorted->fences.begin() + static_cast<int64_t>(span.first),
                        sorted->fences.begin() + static_cast<int64_t>(span.last));
    if (counting && !source->has_dead) counted_ += CountInside(&source->tops);
    sources_.push_back(std::move(source));
    ++counters_.fragments_probed;
  }
  return ReadFences(page_maps);
}

// Bytes of a fragment that need no request; null when one is needed.
std::shared_ptr<arrow::Buffer> IndexViewImpl::RangeFinder::InMemory(const Source& source,
                                                                    ByteRange range) {
  if (source.opened->in_memory()) {
    return arrow::SliceBuffer(source.opened->bytes, range.begin, range.size_bytes());
  }
  auto cached = view_.cache_->Find({source.opened->cache_object, range});
  if (cached != nullptr) ++counters_.block_cache_hits;
  return cached;
}

// Parts of fragments, and page maps, as one wave; buffers: of the parts.
Status IndexViewImpl::RangeFinder::ReadParts(
    const std::vector<std::pair<Source*, ByteRange>>& parts,
    const std::vector<PageMapShelf::Unit>& units,
    std::vector<std::shared_ptr<arrow::Buffer>>* buffers) {
  std::vector<store::ReadRequest> requests;
  for (const auto& [source, range] : parts) requests.push_back({source->opened->object, range});
  for (const PageMapShelf::Unit unit : units) requests.push_back(view_.shelf_.request(unit));
  ARROW_RETURN_NOT_OK(view_.ReadCounted(requests, &counters_, buffers));
  for (size_t i = 0; i < units.size(); ++i) {
    view_.shelf_.Put(units[i], std::move((*buffers)[parts.size() + i]));
  }
  return Status::OK();
}

Status IndexViewImpl::RangeFinder::ReadFences(bool page_maps) {
  std::vector<std::pair<Source*, ByteRange>> missing;
  std::map<std::pair<Source*, int64_t>, std::shared_ptr<arrow::Buffer>> bytes;
  std::vector<PageMapShelf::Unit> units;
  for (const auto& source : sources_) {
    for (const Fence& top : source->tops) {
      auto& buffer = bytes[{source.get(), top.bytes.begin}];
      buffer = InMemory(*source, top.bytes);
      if (buffer == nullptr) missing.emplace_back(source.get(), top.bytes);
    }
    const auto f = static_cast<uint32_t>(source->opened - view_.fragments_.data());
    if (!page_maps || source->opened->in_memory() || !view_.shelf_.loads_whole(f)) continue;
    const PageMapShelf::Unit unit = view_.shelf_.unit_of_fragment(f);
    if (!view_.shelf_.Touch(unit)) units.push_back(unit);
  }
  std::vector<std::shared_ptr<arrow::Buffer>> buffers;
  ARROW_RETURN_NOT_OK(ReadParts(missing, units, &buffers));
  for (size_t i = 0; i < missing.size(); ++i) {
    bytes[{missing[i].first, missing[i].second.begin}] = buffers[i];
  }
  for (const auto& source : sources_) {
    for (const Fence& top : source->tops) {
      const auto& buffer = bytes[{source.get(), top.bytes.begin}];
      auto fences = ReadFenceBlock(ViewOf(*buffer), top);
      if (!fences.ok()) return Failed(*source, fences.status());
      std::move(fences->begin(), fences->end(), std::back_inserter(source->blocks));
    }
    for (size_t i = 0; i < missing.size(); ++i) {
      if (missing[i].first != source.get()) continue;
      view_.cache_->Insert({source->opened->cache_object, missing[i].second}, buffers[i]);
    }
    const FenceSpan span = FencesOf(source->blocks, range_);
    source->blocks.erase(source->blocks.begin() + static_cast<int64_t>(span.last),
                         source->blocks.end());
    source->blocks.erase(source->blocks.begin(),
                         source->blocks.begin() + static_cast<int64_t>(span.first));
    source->bytes.resize(source->blocks.size());
  }
  return Status::OK();
}

Status IndexViewImpl::RangeFinder::ReadBlocks(int64_t rows) {
  struct Stretch {
    Source* source;
    size_t first, last;   // blocks
  };
  std::vector<Stretch> stretches;
  const int64_t share = kRangeWaveBytes / static_cast<int64_t>(sources_.size());
  for (const auto& source : sources_) {
    int64_t covered = 0, bytes = 0;
    for (size_t i = source->next; i < source->blocks.size(); ++i) {
      const bool enough = bytes >= share || (rows >= 0 && covered >= rows);
      if (enough && i > source->next) break;
      // The first block may begin before the range, and rows of vanished files do not count.
      if (i > 0 && !source->has_dead) covered += static_cast<int64_t>(source->blocks[i].row_count);
      if (source->bytes[i] != nullptr) continue;
      source->bytes[i] = InMemory(*source, source->blocks[i].bytes);
      if (source->bytes[i] != nullptr) continue;
      bytes += source->blocks[i].bytes.size_bytes();
      // Blocks between may have been counted and left out.
      if (!stretches.empty() && stretches.back().source == source.get() &&
          stretches.back().last == i &&
          source->blocks[i - 1].bytes.end == source->blocks[i].bytes.begin) {
        ++stretches.back().last;
      } else {
        stretches.push_back({source.get(), i, i + 1});
      }
    }
  }
  std::vector<std::pair<Source*, ByteRange>> parts;
  for (const Stretch& stretch : stretches) {
    const auto& blocks = stretch.source->blocks;
    parts.emplace_back(stretch.source, ByteRange{blocks[stretch.first].bytes.begin,
                                                 blocks[stretch.last - 1].bytes.end});
  }
  std::vector<std::shared_ptr<arrow::Buffer>> buffers;
  ARROW_RETURN_NOT_OK(ReadParts(parts, {}, &buffers));
  for (size_t s = 0; s < stretches.size(); ++s) {
    Source& source = *stretches[s].source;
    for (size_t i = stretches[s].first; i < stretches[s].last; ++i) {
      const ByteRange range = source.blocks[i].bytes;
      // A copy: a kept block must not keep the whole wave alive.
      ARROW_ASSIGN_OR_RAISE(source.bytes[i],
                            buffers[s]->CopySlice(range.begin - parts[s].second.begin,
                                                  range.size_bytes()));
      const auto opened = OpenSortedBlock(ViewOf(*source.bytes[i]));
      if (!opened.ok()) return Failed(source, opened.status());
      view_.cache_->Insert({source.opened->cache_object, range}, source.bytes[i]);
    }
  }
  return Status::OK();
}

Status IndexViewImpl::RangeFinder::OpenBlock(Source* source, int64_t rows) {
  if (source->next > 0) source->bytes[source->next - 1] = nullptr;
  if (source->bytes[source->next] == nullptr) ARROW_RETURN_NOT_OK(ReadBlocks(rows));
  auto entries = OpenSortedBlock(ViewOf(*source->bytes[source->next]));
  if (!entries.ok()) return Failed(*source, entries.status());
  source->entries = EntryReader(*entries, source->reader->head().file_rows);
  ++source->next;
  return Status::OK();
}

Result<bool> IndexViewImpl::RangeFinder::Advance(Source* source, int64_t rows) {
  while (true) {
    while (!source->entries.Next()) {
      if (source->entries.damaged()) return Failed(*source, Corrupt("bad sorted block"));
      if (source->next == source->blocks.size()) return false;
      ARROW_RETURN_NOT_OK(OpenBlock(source, rows));
    }
    if (range_.has_end && source->entries.key() >= range_.end) return false;
    if (source->entries.key() >= range_.begin) return true;
  }
}

// All live runs of the least key there is, by (file, row).
Status IndexViewImpl::RangeFinder::TakeKey(int64_t rows) {
  key_.assign(heads_.top()->entries.key());
  key_runs_.clear();
  std::vector<Posting> posting;
  while (!heads_.empty() && heads_.top()->entries.key() == key_) {
    Source* const source = heads_.top();
    heads_.pop();
    bool more = true;
    while (more && source->entries.key() == key_) {
      posting.clear();
      if (!source->reader->finder().ToPosting(source->entries.row(), source->entries.count(),
                                              &posting)) {
        return Failed(*source, Corrupt("a run leaves its file", "row", source->entries.row()));
      }
      const uint32_t file = source->opened->view_files[posting[0].file.value];
      if (file != OpenedFragment::kDead) {
        key_runs_.push_back({file, posting[0].first_row, posting[0].row_count});
        ++counters_.postings;
      }
      ARROW_ASSIGN_OR_RAISE(more, Advance(source, rows));
      if (more && source->entries.key() < key_) {
        return Failed(*source, Corrupt("keys of a sorted part are out of order"));
      }
    }
    if (more) heads_.push(source);
  }
  std::sort(key_runs_.begin(), key_runs_.end(), [](const FoundRun& a, const FoundRun& b) {
    return std::pair(a.file, a.first_row) < std::pair(b.file, b.first_row);
  });
  return Status::OK();
}

Result<std::vector<FoundRun>> IndexViewImpl::RangeFinder::Find(const RangeOptions& options) {
  ARROW_RETURN_NOT_OK(OpenSources(options.page_maps, false));
  int64_t skip = options.offset;
  int64_t left = options.limit < 0 ? INT64_MAX : options.limit;
  const auto wanted = [&] { return options.limit < 0 ? -1 : skip + left; };
  std::vector<FoundRun> found;
  if (left == 0) return found;
  for (const auto& source : sources_) {
    ARROW_ASSIGN_OR_RAISE(const bool more, Advance(source.get(), wanted()));
    if (more) heads_.push(source.get());
  }
  while (!heads_.empty() && left > 0) {
    ARROW_RETURN_NOT_OK(TakeKey(wanted()));
    for (FoundRun run : key_runs_) {
      const int64_t skipped = std::min(skip, run.row_count);
      skip -= skipped;
      run.first_row.value += skipped;
      run.row_count = std::min(run.row_count - skipped, left);
      left -= run.row_count;
      if (run.row_count > 0) found.push_back(run);
    }
  }
  if (!options.page_maps) return found;
  std::vector<PageMapShelf::Unit> units;
  for (const FoundRun& run : found) units.push_back(view_.shelf_.unit_of_file(run.file));
  ARROW_RETURN_NOT_OK(view_.LoadMaps(std::move(units), &counters_));
  return found;
}

Result<int64_t> IndexViewImpl::RangeFinder::Count() {
  ARROW_RETURN_NOT_OK(OpenSources(false, true));
  int64_t count = counted_;
  for (const auto& source : sources_) {
    if (source->has_dead) continue;
    count += CountInside(&source->blocks);
    source->bytes.resize(source->blocks.size());
  }
  for (const auto& source : sources_) {
    std::vector<Posting> posting;
    while (true) {
      ARROW_ASSIGN_OR_RAISE(const bool more, Advance(source.get(), -1));
      if (!more) break;
      posting.clear();
      if (!source->reader->finder().ToPosting(source->entries.row(), source->entries.count(),
                                              &posting)) {
        return Failed(*source, Corrupt("a run leaves its file", "row", source->entries.row()));
      }
      if (source->opened->view_files[posting[0].file.value] == OpenedFragment::kDead) continue;
      count += posting[0].row_count;
      ++counters_.postings;
    }
  }
  return count;
}

Result<std::vector<FoundRun>> IndexViewImpl::FindRange(const key::OrderedRange& range,
                                                       const RangeOptions& options,
                                                       ProbeCounters* counters) {
  ProbeCounters unused;
  return RangeFinder(*this, range, counters == nullptr ? &unused : counters).Find(options);
}

Result<int64_t> IndexViewImpl::CountRange(const key::OrderedRange& range,
                                          ProbeCounters* counters) {
  ProbeCounters unused;
  return RangeFinder(*this, range, counters == nullptr ? &unused : counters).Count();
}

Status IndexViewImpl::ReadCounted(std::span<const store::ReadRequest> requests,
                                  ProbeCounters* counters,
                                  std::vector<std::shared_ptr<arrow::Buffer>>* buffers) {
  buffers->clear();
  if (requests.empty()) return Status::OK();
  ++counters->waves;
  counters->requests += static_cast<int64_t>(requests.size());
  ARROW_RETURN_NOT_OK(ReadWave(*store_, requests, buffers));
  for (const auto& buffer : *buffers) counters->bytes_read += buffer->size();
  return Status::OK();
}

Status IndexViewImpl::LoadMaps(std::vector<PageMapShelf::Unit> units, ProbeCounters* counters) {
  std::sort(units.begin(), units.end());
  units.erase(std::unique(units.begin(), units.end()), units.end());
  std::erase_if(units, [&](PageMapShelf::Unit unit) { return shelf_.Touch(unit); });
  std::vector<store::ReadRequest> requests;
  for (const PageMapShelf::Unit unit : units) requests.push_back(shelf_.request(unit));
  std::vector<std::shared_ptr<arrow::Buffer>> buffers;
  ARROW_RETURN_NOT_OK(ReadCounted(requests, counters, &buffers));
  for (size_t i = 0; i < units.size(); ++i) shelf_.Put(units[i], std::move(buffers[i]));
  return Status::OK();
}

}  // namespace grebe::index

// Finding keys in all fragments of a view: locate, one wave of reads for what is not in memory,
// search, gather.
#include <arrow/record_batch.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <span>
#include <unordered_map>
#include <utility>

#include "index/index_view_impl.h"

namespace grebe::index {
namespace {

// Some rows of one key, and where their covering values are.
struct Hit {
  FoundRun run;
  bool exact = true;
  uint32_t batch = 0;            // ordinal among the covering batches
  uint32_t position_begin = 0;   // within the positions
};

// A range of a fragment in a remote store, needed by one or more keys.
struct Need {
  uint32_t fragment = 0;
  ByteRange range;
  std::shared_ptr<arrow::Buffer> bytes;
  bool verified = false;           // its checksum; bytes from the cache are
  uint32_t batch = 0;              // covering blocks, once decoded
  bool decoded = false;

  std::string_view text() const {
    return {reinterpret_cast<const char*>(bytes->data()), static_cast<size_t>(bytes->size())};
  }
};

struct Probe {
  uint32_t fragment = 0;
  int64_t key = 0;
  Fragment::Place place;
  uint32_t block = 0, covering = 0;   // ordinals among the needs
};

// Filters over many fragments pay only for a view that is used again and again.
constexpr int64_t kFindsBeforeFilter = 8;

int64_t NowNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

key::EncodedKeys SelectKeys(const key::EncodedKeys& keys, std::span<const int64_t> selected) {
  key::EncodedKeys some;
  some.is_word = keys.is_word;
  if (!keys.is_word) some.offsets.push_back(0);
  for (const int64_t i : selected) {
    if (keys.is_word) {
      some.words.push_back(keys.words[static_cast<size_t>(i)]);
      if (!keys.null_rows.empty()) some.null_rows.push_back(keys.null_rows[static_cast<size_t>(i)]);
    } else {
      some.bytes.append(keys.view(i));
      some.offsets.push_back(some.bytes.size());
    }
  }
  return some;
}

}  // namespace

class IndexViewImpl::Finder {
 public:
  Finder(IndexViewImpl& view, const key::EncodedKeys& keys, const FindOptions& options)
      : view_(view),
        keys_(keys),
        options_(options),
        hits_(static_cast<size_t>(keys.count())) {}

  Status Run();
  Result<std::vector<FoundRows>> Gather();
  const ProbeCounters& counters() const { return counters_; }

 private:
  using Batch = std::shared_ptr<arrow::RecordBatch>;

  Status FindInMemory();
  Status FindInMemory(uint32_t f, std::span<const int64_t> selected);
  Status FindMany(uint32_t f, std::span<const int64_t> selected);
  Status FindCovered(uint32_t f, std::span<const int64_t> selected);
  void LocateRemote(uint32_t f);
  uint32_t AddNeed(uint32_t f, ByteRange range, std::unordered_map<int64_t, uint32_t>* known);
  Status ReadNeeds();
  Status SearchNeeds();
  Status LoadFoundMaps();
  void AddHits(const OpenedFragment& opened, int64_t key, std::span<const Posting> postings,
               bool exact, uint32_t batch, uint32_t position_begin);
  Result<uint32_t> AddBatch(const OpenedFragment& opened, std::string_view block);
  Status CheckPositions(const OpenedFragment& opened, size_t posting_begin, size_t position_begin,
                        uint32_t batch) const;
  Result<Batch> GatherCovering(const std::vector<Hit>& hits) const;

  IndexViewImpl& view_;
  const key::EncodedKeys& keys_;
  const FindOptions& options_;
  ProbeCounters counters_;
  std::vector<std::vector<Hit>> hits_;      // per key
  std::vector<Need> needs_;
  std::vector<Probe> probes_;
  std::vector<PageMapShelf::Unit> units_;   // page maps that ride in the wave
  std::vector<Batch> batches_;
  std::vector<int64_t> positions_;          // within batches
  std::vector<Posting> postings_;           // scratch
  std::vector<uint64_t> ends_;              // scratch
};

Status IndexViewImpl::Finder::Run() {
  for (const OpenedFragment& opened : view_.fragments_) {
    if (opened.fragment->word_keys() != keys_.is_word) {
      return InvalidArgument("keys are not of the index's form", "fragment", opened.info.path);
    }
  }
  ARROW_RETURN_NOT_OK(FindInMemory());
  for (uint32_t f = 0; f < view_.fragments_.size(); ++f) {
    if (!view_.fragments_[f].in_memory()) LocateRemote(f);
  }
  ARROW_RETURN_NOT_OK(ReadNeeds());
  ARROW_RETURN_NOT_OK(SearchNeeds());
  return options_.page_maps ? LoadFoundMaps() : Status::OK();
}

// Fragments in memory: those that the filter does not rule out, each with the keys it may have.
Status IndexViewImpl::Finder::FindInMemory() {
  FragmentFilter& filter = view_.filter_;
  const bool build = !filter.done() && keys_.count() > 0 &&
                     view_.find_count_.fetch_add(1, std::memory_order_relaxed) >=
                         kFindsBeforeFilter;
  const int64_t begin_ns = build ? NowNs() : 0;
  if (filter.useful()) {
    std::vector<std::pair<uint32_t, int64_t>> probes;
    std::vector<uint32_t> candidates;
    for (int64_t key = 0; key < keys_.count(); ++key) {
      candidates.clear();
      filter.Candidates(keys_, key, &candidates);
      for (const uint32_t f : candidates) probes.emplace_back(f, key);
    }
    if (keys_.count() > 1) std::sort(probes.begin(), probes.end());
    std::vector<int64_t> selected;
    for (size_t i = 0; i < probes.size();) {
      const uint32_t f = probes[i].first;
      selected.clear();
      for (; i < probes.size() && probes[i].first == f; ++i) selected.push_back(probes[i].second);
      ARROW_RETURN_NOT_OK(FindInMemory(f, selected));
    }
  } else {
    std::vector<int64_t> all(static_cast<size_t>(keys_.count()));
    std::iota(all.begin(), all.end(), 0);
    for (uint32_t f = 0; f < view_.fragments_.size(); ++f) {
      if (view_.fragments_[f].in_memory()) ARROW_RETURN_NOT_OK(FindInMemory(f, all));
    }
  }
  // As much work on the filter as on the probes, so that it costs no lookup more than that.
  if (build) filter.Build(NowNs() - begin_ns);
  return Status::OK();
}

Status IndexViewImpl::Finder::FindInMemory(uint32_t f, std::span<const int64_t> selected) {
  if (options_.covering) return FindCovered(f, selected);
  const Fragment& fragment = *view_.fragments_[f].fragment;
  // A key that the fragment certainly lacks is cheap to tell.
  const bool probe = std::any_of(selected.begin(), selected.end(), [&](int64_t key) {
    return !fragment.Locate(keys_, key).block.empty();
  });
  return probe ? FindMany(f, selected) : Status::OK();
}

void IndexViewImpl::Finder::AddHits(const OpenedFragment& opened, int64_t key,
                                    std::span<const Posting> postings, bool exact, uint32_t batch,
                                    uint32_t position_begin) {
  for (const Posting& posting : postings) {
    const uint32_t file = opened.view_files[posting.file.value];
    if (file != OpenedFragment::kDead) {
      hits_[static_cast<size_t>(key)].push_back(
          {{file, posting.first_row, posting.row_count}, exact, batch, position_begin});
      ++counters_.postings;
    }
    position_begin += static_cast<uint32_t>(posting.row_count);
  }
}

// All keys at once: the fragment interleaves them, and checks each block the first time only.
Status IndexViewImpl::Finder::FindMany(uint32_t f, std::span<const int64_t> selected) {
  const OpenedFragment& opened = view_.fragments_[f];
  ++counters_.fragments_probed;
  postings_.clear();
  ends_.clear();
  bool exact = true;
  const bool all = static_cast<int64_t>(selected.size()) == keys_.count();
  const Status found =
      all ? opened.fragment->FindMany(keys_, opened.whole(), &postings_, &ends_, &exact)
          : opened.fragment->FindMany(SelectKeys(keys_, selected), opened.whole(), &postings_,
                                      &ends_, &exact);
  if (!found.ok()) return FragmentError(found, opened.info.path);
  uint64_t begin = 0;
  for (size_t i = 0; i < ends_.size() && !postings_.empty(); ++i) {
    AddHits(opened, selected[i], std::span(postings_).subspan(begin, ends_[i] - begin), exact, 0,
            0);
    begin = ends_[i];
  }
  return Status::OK();
}

Result<uint32_t> IndexViewImpl::Finder::AddBatch(const OpenedFragment& opened,
                                                 std::string_view block) {
  auto batch = opened.fragment->OpenCovering(block);
  if (!batch.ok()) return FragmentError(batch.status(), opened.info.path);
  batches_.push_back(std::move(*batch));
  return static_cast<uint32_t>(batches_.size() - 1);
}

// The postings of one probe have exactly one position per row, within the batch.
Status IndexViewImpl::Finder::CheckPositions(const OpenedFragment& opened, size_t posting_begin,
                                             size_t position_begin, uint32_t batch) const {
  int64_t rows = 0;
  for (size_t i = posting_begin; i < postings_.size(); ++i) rows += postings_[i].row_count;
  bool good = rows == static_cast<int64_t>(positions_.size() - position_begin) &&
              positions_.size() <= UINT32_MAX;
  for (size_t i = position_begin; i < positions_.size(); ++i) {
    good = good && positions_[i] >= 0 && positions_[i] < batches_[batch]->num_rows();
  }
  if (good) return Status::OK();
  return Corrupt("covering rows do not match the postings", "fragment", opened.info.path);
}

Status IndexViewImpl::Finder::FindCovered(uint32_t f, std::span<const int64_t> selected) {
  const OpenedFragment& opened = view_.fragments_[f];
  std::unordered_map<int64_t, uint32_t> decoded;   // covering block -> batch
  bool probed = false;
  for (const int64_t key : selected) {
    const Fragment::Place place = opened.fragment->Locate(keys_, key);
    if (place.block.empty()) continue;
    probed = true;
    postings_.clear();
    const size_t position_begin = positions_.size();
    bool exact = true;
    const auto part = [&](ByteRange range) {
      return opened.whole().substr(static_cast<size_t>(range.begin),
                                   static_cast<size_t>(range.size_bytes()));
    };
    const Status found = opened.fragment->Find(keys_, key, place, part(place.block), true,
                                               &postings_, &exact, &positions_);
    if (!found.ok()) return FragmentError(found, opened.info.path);
    if (postings_.empty()) continue;
    const auto known = decoded.find(place.covering.begin);
    uint32_t batch = 0;
    if (known != decoded.end()) {
      batch = known->second;
    } else {
      ARROW_ASSIGN_OR_RAISE(batch, AddBatch(opened, part(place.covering)));
      decoded.emplace(place.covering.begin, batch);
    }
    ARROW_RETURN_NOT_OK(CheckPositions(opened, 0, position_begin, batch));
    AddHits(opened, key, postings_, exact, batch, static_cast<uint32_t>(position_begin));
  }
  if (probed) ++counters_.fragments_probed;
  return Status::OK();
}

uint32_t IndexViewImpl::Finder::AddNeed(uint32_t f, ByteRange range,
                                        std::unordered_map<int64_t, uint32_t>* known) {
  const auto [at, is_new] = known->emplace(range.begin, static_cast<uint32_t>(needs_.size()));
  if (!is_new) return at->second;
  Need need;
  need.fragment = f;
  need.range = range;
  need.bytes = view_.cache_->Find({view_.fragments_[f].cache_object, range});
  need.verified = need.bytes != nullptr;
  if (need.verified) ++counters_.block_cache_hits;
  needs_.push_back(std::move(need));
  return at->second;
}

void IndexViewImpl::Finder::LocateRemote(uint32_t f) {
  const OpenedFragment& opened = view_.fragments_[f];
  std::unordered_map<int64_t, uint32_t> blocks, covering;
  for (int64_t key = 0; key < keys_.count(); ++key) {
    Probe probe{.fragment = f, .key = key, .place = opened.fragment->Locate(keys_, key)};
    if (probe.place.block.empty()) continue;
    probe.block = AddNeed(f, probe.place.block, &blocks);
    if (options_.covering) probe.covering = AddNeed(f, probe.place.covering, &covering);
    probes_.push_back(probe);
  }
  if (blocks.empty()) return;
  ++counters_.fragments_probed;
  if (!options_.page_maps || !view_.shelf_.loads_whole(f)) return;
  const PageMapShelf::Unit unit = view_.shelf_.unit_of_fragment(f);
  if (!view_.shelf_.Touch(unit)) units_.push_back(unit);
}

// The probe's wave: blocks, covering blocks and page maps together.
Status IndexViewImpl::Finder::ReadNeeds() {
  std::vector<store::ReadRequest> requests;
  std::vector<uint32_t> missing;
  for (uint32_t i = 0; i < needs_.size(); ++i) {
    if (needs_[i].bytes != nullptr) continue;
    missing.push_back(i);
    requests.push_back({view_.fragments_[needs_[i].fragment].object, needs_[i].range});
  }
  for (const PageMapShelf::Unit unit : units_) requests.push_back(view_.shelf_.request(unit));
  std::vector<std::shared_ptr<arrow::Buffer>> buffers;
  ARROW_RETURN_NOT_OK(view_.ReadCounted(requests, &counters_, &buffers));
  for (size_t i = 0; i < missing.size(); ++i) needs_[missing[i]].bytes = std::move(buffers[i]);
  for (size_t i = 0; i < units_.size(); ++i) {
    view_.shelf_.Put(units_[i], std::move(buffers[missing.size() + i]));
  }
  return Status::OK();
}

Status IndexViewImpl::Finder::SearchNeeds() {
  const auto keep = [&](Need& need) {
    need.verified = true;
    view_.cache_->Insert({view_.fragments_[need.fragment].cache_object, need.range}, need.bytes);
  };
  for (const Probe& probe : probes_) {
    const OpenedFragment& opened = view_.fragments_[probe.fragment];
    Need& block = needs_[probe.block];
    postings_.clear();
    const size_t position_begin = positions_.size();
    bool exact = true;
    const Status found = opened.fragment->Find(
        keys_, probe.key, probe.place, block.text(), !block.verified, &postings_, &exact,
        options_.covering ? &positions_ : nullptr);
    if (!found.ok()) return FragmentError(found, opened.info.path);
    if (!block.verified) keep(block);
    if (postings_.empty()) continue;
    if (options_.covering) {
      Need& covering = needs_[probe.covering];
      if (!covering.decoded) {
        ARROW_ASSIGN_OR_RAISE(covering.batch, AddBatch(opened, covering.text()));
        covering.decoded = true;
        if (!covering.verified) keep(covering);
      }
      ARROW_RETURN_NOT_OK(CheckPositions(opened, 0, position_begin, covering.batch));
      AddHits(opened, probe.key, postings_, exact, covering.batch,
              static_cast<uint32_t>(position_begin));
    } else {
      AddHits(opened, probe.key, postings_, exact, 0, 0);
    }
  }
  return Status::OK();
}

// Of fragments whose page maps are too large to load whole: those of the files found.
Status IndexViewImpl::Finder::LoadFoundMaps() {
  if (probes_.empty()) return Status::OK();
  std::vector<PageMapShelf::Unit> units;
  for (const std::vector<Hit>& hits : hits_) {
    for (const Hit& hit : hits) units.push_back(view_.shelf_.unit_of_file(hit.run.file));
  }
  return view_.LoadMaps(std::move(units), &counters_);
}

// One row per row of the hits, in their order.
Result<std::shared_ptr<arrow::RecordBatch>> IndexViewImpl::Finder::GatherCovering(
    const std::vector<Hit>& hits) const {
  struct Slice {
    uint32_t batch;
    int64_t begin, end;
  };
  std::vector<Slice> slices;
  for (const Hit& hit : hits) {
    for (int64_t row = 0; row < hit.run.row_count; ++row) {
      const int64_t position = positions_[hit.position_begin + static_cast<size_t>(row)];
      if (!slices.empty() && slices.back().batch == hit.batch && slices.back().end == position) {
        ++slices.back().end;
      } else {
        slices.push_back({hit.batch, position, position + 1});
      }
    }
  }
  if (slices.empty()) return nullptr;
  std::vector<Batch> parts;
  for (const Slice& slice : slices) {
    parts.push_back(batches_[slice.batch]->Slice(slice.begin, slice.end - slice.begin));
  }
  if (parts.size() == 1) return parts[0];
  auto joined = arrow::ConcatenateRecordBatches(parts);
  if (joined.ok() || joined.status().IsOutOfMemory()) return joined;
  return Corrupt("covering values of fragments differ in type", "reason",
                 joined.status().message());
}

Result<std::vector<FoundRows>> IndexViewImpl::Finder::Gather() {
  std::vector<FoundRows> found(hits_.size());
  for (size_t i = 0; i < hits_.size(); ++i) {
    std::vector<Hit>& hits = hits_[i];
    // Files are sorted by path, so their ordinals are in path order.
    std::sort(hits.begin(), hits.end(), [](const Hit& a, const Hit& b) {
      return std::pair(a.run.file, a.run.first_row) < std::pair(b.run.file, b.run.first_row);
    });
    found[i].runs.reserve(hits.size());
    for (const Hit& hit : hits) {
      found[i].runs.push_back(hit.run);
      found[i].exact = found[i].exact && hit.exact;
    }
    if (options_.covering) {
      ARROW_ASSIGN_OR_RAISE(found[i].covering, GatherCovering(hits));
    }
  }
  return found;
}

Result<std::vector<FoundRows>> IndexViewImpl::Find(const key::EncodedKeys& keys,
                                                   const FindOptions& options,
                                                   ProbeCounters* counters) {
  if (options.covering && manifest_.covering.empty()) {
    return InvalidArgument("the index has no covering columns");
  }
  Finder finder(*this, keys, options);
  const Status run = finder.Run();
  // What was read counts, also when the answer is an error.
  if (counters != nullptr) {
    const ProbeCounters& did = finder.counters();
    counters->waves += did.waves;
    counters->requests += did.requests;
    counters->bytes_read += did.bytes_read;
    counters->fragments_probed += did.fragments_probed;
    counters->postings += did.postings;
    counters->block_cache_hits += did.block_cache_hits;
  }
  ARROW_RETURN_NOT_OK(run);
  return finder.Gather();
}

Result<std::shared_ptr<const pq::PageMap>> IndexViewImpl::page_map(uint32_t file) {
  if (file >= files_.size()) return InvalidArgument("no such file", "file", file);
  ARROW_ASSIGN_OR_RAISE(std::shared_ptr<const pq::PageMap> map, shelf_.Get(file));
  if (map != nullptr) return map;
  // It had to make room since Find loaded it, or no Find found this file.
  const PageMapShelf::Unit unit = shelf_.unit_of_file(file);
  const store::ReadRequest request = shelf_.request(unit);
  std::vector<std::shared_ptr<arrow::Buffer>> buffers;
  ARROW_RETURN_NOT_OK(ReadWave(*store_, std::span(&request, 1), &buffers));
  shelf_.Put(unit, buffers[0]);
  return shelf_.Open(file, buffers[0]);
}

}  // namespace grebe::index

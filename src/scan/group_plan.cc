#include "scan/group_plan.h"

#include <arrow/util/parallel.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <set>

#include "parquet/bloom_probe.h"

namespace grebe::scan {
namespace {

using Op = BoundAtom::Op;

// Chunks without an OffsetIndex of at most this many bytes are read whole, where their pages are
// needed anyway; of larger ones the page headers are walked first.
constexpr int64_t kWholeChunkBytesMax = 4 << 20;
// A file whose footer an index keeps has its page index read when its filter columns' chunks are
// larger than this: it takes two waves, and may save most of the pages.
constexpr int64_t kPageIndexWorthBytes = 1 << 20;

// The row groups of one file in the window.
struct FileGroups {
  size_t file = 0;
  std::vector<const FileSet::Candidate*> groups;
};

bool AsksBloom(const BoundAtom& atom) {
  return (atom.op == Op::kEqual || atom.op == Op::kIn) && !atom.negated;
}

void CollectBloomColumns(const BoundNode& node, std::set<int>* columns) {
  if (node.kind == PredicateNode::Kind::kAtom) {
    if (AsksBloom(node.atom)) columns->insert(node.atom.column);
    return;
  }
  for (const BoundNode& child : node.children) CollectBloomColumns(child, columns);
}

class GroupPlanner {
 public:
  GroupPlanner(std::span<const FileSet::Candidate> candidates, const ScannerOptions& options,
               FileSet* set, AheadStore* store, ScanCost* cost)
      : candidates_(candidates), options_(options), set_(*set), store_(*store), cost_(*cost) {
    for (const FileSet::Candidate& candidate : candidates) {
      if (set_.files()[candidate.file].bad) continue;
      if (files_.empty() || files_.back().file != candidate.file) {
        files_.push_back({candidate.file, {}});
      }
      files_.back().groups.push_back(&candidate);
    }
    if (set_.predicate() != nullptr && options.use_bloom_filters) {
      CollectBloomColumns(set_.predicate()->root(), &bloom_columns_);
    }
  }

  Result<std::vector<GroupPlan>> Run() {
    ARROW_RETURN_NOT_OK(OpenMetadata());
    Prefetch();
    segments_.resize(files_.size());
    std::vector<Status> failed(files_.size());
    ARROW_RETURN_NOT_OK(arrow::internal::OptionalParallelFor(
        files_.size() > 1, static_cast<int>(files_.size()), [&](int i) {
          const auto at = static_cast<size_t>(i);
          failed[at] = PlanFile(files_[at], &segments_[at]);
          return Status::OK();
        }));
    for (size_t i = 0; i < files_.size(); ++i) {
      if (failed[i].ok()) continue;
      segments_[i].clear();
      ARROW_RETURN_NOT_OK(set_.OnBadFile(set_.files()[files_[i].file], failed[i]));
    }
    cost_.bloom_filters_read += bloom_filters_;
    return Judge();
  }

 private:
  // Rows of a row group with one set of bounds.
  struct Segment {
    size_t file = 0;
    int group = 0;
    RowRange rows;
    bool all_rows = false;
    std::vector<pq::Bounds> bounds;   // per column of the predicate; not set where all_rows
  };

  // Footers where they are needed, page maps where an index has them.
  Status OpenMetadata() {
    std::vector<size_t> need_footer;
    for (const FileGroups& group : files_) {
      ScanFile& file = set_.files()[group.file];
      if (file.known == nullptr) {
        need_footer.push_back(group.file);
        continue;
      }
      if (file.map == nullptr) {
        ARROW_ASSIGN_OR_RAISE(file.map, file.known->page_map());
      }
      if (WantsPageIndex(file, group)) need_footer.push_back(group.file);
    }
    return set_.EnsureFooters(need_footer);
  }

  bool WantsPageIndex(const ScanFile& file, const FileGroups& groups) const {
    int64_t bytes = 0;
    for (const FileSet::Candidate* candidate : groups.groups) {
      if (candidate->all_rows) continue;
      for (const int leaf : FilterLeaves(file)) bytes += file.ChunkBytes(candidate->group, leaf);
    }
    return bytes > kPageIndexWorthBytes &&
           (options_.use_page_index || !bloom_columns_.empty());
  }

  const std::vector<int>& FilterLeaves(const ScanFile& file) const {
    static const std::vector<int> none;
    return set_.filter_shape() == nullptr
               ? none
               : set_.filter_shape()->projection(file.schema.get()).leaves;
  }

  // All that PlanFile will ask for, in one wave.
  void Prefetch() {
    std::vector<store::ReadRequest> requests;
    whole_bytes_left_ = options_.window_bytes_max;
    for (const FileGroups& group : files_) {
      const ScanFile& file = set_.files()[group.file];
      if (file.footer == nullptr) continue;
      for (const FileSet::Candidate* candidate : group.groups) {
        AddFilterRanges(file, *candidate, &requests);
        if (file.map != nullptr) continue;
        for (const int leaf : set_.shape()->projection(file.schema.get()).leaves) {
          if (const auto range = file.footer->offset_index_range(candidate->group, leaf)) {
            requests.push_back({file.object, *range});
          }
        }
      }
    }
    store_.Prefetch(std::move(requests));
  }

  void AddFilterRanges(const ScanFile& file, const FileSet::Candidate& candidate,
                       std::vector<store::ReadRequest>* requests) {
    if (candidate.all_rows) return;
    for (const int column : bloom_columns_) {
      const int leaf = file.leaves[static_cast<size_t>(column)];
      if (leaf < 0) continue;
      const auto range = pq::BloomProbe::RangeOf(*file.footer, {candidate.group, leaf});
      if (range) requests->push_back({file.object, *range});
    }
    for (const int leaf : FilterLeaves(file)) {
      if (options_.use_page_index) {
        for (const ByteRange& range :
             pq::PageIndexRanges(*file.footer, {candidate.group, leaf})) {
          requests->push_back({file.object, range});
        }
      }
      if (file.map != nullptr) continue;
      const ByteRange chunk = file.footer->chunk_range(candidate.group, leaf);
      if (const auto range = file.footer->offset_index_range(candidate.group, leaf)) {
        requests->push_back({file.object, *range});
      } else if (!chunk.empty() && chunk.size_bytes() <= kWholeChunkBytesMax &&
                 chunk.size_bytes() <= whole_bytes_left_) {
        whole_bytes_left_ -= chunk.size_bytes();
        requests->push_back({file.object, chunk});
      }
    }
  }

  Status PlanFile(const FileGroups& groups, std::vector<Segment>* segments) {
    ScanFile& file = set_.files()[groups.file];
    if (file.footer == nullptr && file.map == nullptr) return Status::OK();   // bad: told already
    std::vector<const FileSet::Candidate*> kept;
    for (const FileSet::Candidate* candidate : groups.groups) {
      if (candidate->all_rows || file.footer == nullptr) {
        kept.push_back(candidate);
        continue;
      }
      ARROW_ASSIGN_OR_RAISE(const bool may, MayHold(file, candidate->group));
      if (may) kept.push_back(candidate);
    }
    ARROW_RETURN_NOT_OK(FindFilterPages(kept, &file));
    for (const FileSet::Candidate* candidate : kept) {
      ARROW_RETURN_NOT_OK(AddSegments(file, *candidate, segments));
    }
    return Status::OK();
  }

  // Whether the Bloom filters leave a row group possible.
  Result<bool> MayHold(const ScanFile& file, int group) {
    std::map<int, std::shared_ptr<const pq::BloomProbe>> probes;
    for (const int column : bloom_columns_) {
      const int leaf = file.leaves[static_cast<size_t>(column)];
      if (leaf < 0) continue;
      ARROW_ASSIGN_OR_RAISE(auto probe,
                            pq::BloomProbe::Read(store_, *file.footer, {group, leaf}));
      if (probe == nullptr) continue;
      ++bloom_filters_;
      probes[column] = std::move(probe);
    }
    if (probes.empty()) return true;
    return set_.predicate()->MayHold([&](const BoundAtom& atom) {
      const auto probe = probes.find(atom.column);
      if (probe == probes.end() || !AsksBloom(atom)) return true;
      return std::ranges::any_of(
          atom.values, [&](const auto& value) { return probe->second->MayHold(*value); });
    });
  }

  // Pages of the filter's columns, and of the others as far as they have an OffsetIndex.
  Status FindFilterPages(const std::vector<const FileSet::Candidate*>& groups, ScanFile* file) {
    if (file->map != nullptr) return Status::OK();
    std::vector<pq::ChunkId> chunks;
    const auto add = [&](pq::ChunkId chunk) {
      if (!file->pages.contains(chunk) && std::ranges::find(chunks, chunk) == chunks.end()) {
        chunks.push_back(chunk);
      }
    };
    for (const FileSet::Candidate* candidate : groups) {
      for (const int leaf : FilterLeaves(*file)) {
        if (!candidate->all_rows) add({candidate->group, leaf});
      }
      for (const int leaf : set_.shape()->projection(file->schema.get()).leaves) {
        if (file->footer->offset_index_range(candidate->group, leaf)) {
          add({candidate->group, leaf});
        }
      }
    }
    ARROW_ASSIGN_OR_RAISE(auto pages, pq::FindChunkPages(store_, *file->footer, chunks));
    for (size_t i = 0; i < chunks.size(); ++i) file->pages[chunks[i]] = std::move(pages[i]);
    return Status::OK();
  }

  // Cuts the row group where any filter column's page ends.
  Status AddSegments(const ScanFile& file, const FileSet::Candidate& candidate,
                     std::vector<Segment>* segments) {
    const ScanFile::Group& group = file.groups[static_cast<size_t>(candidate.group)];
    Segment whole{candidate.file, candidate.group, {0, group.rows}, candidate.all_rows, {}};
    if (candidate.all_rows) {
      segments->push_back(std::move(whole));
      return Status::OK();
    }
    whole.bounds = group.bounds;
    std::vector<size_t> columns;
    std::vector<pq::ChunkId> chunks;
    for (size_t c = 0; c < file.leaves.size(); ++c) {
      if (file.leaves[c] < 0 || file.footer == nullptr || !options_.use_page_index) continue;
      columns.push_back(c);
      chunks.push_back({candidate.group, file.leaves[c]});
    }
    std::vector<std::vector<pq::PageBounds>> pages;
    if (!chunks.empty()) {
      ARROW_ASSIGN_OR_RAISE(pages, pq::ReadPageBounds(store_, *file.footer, chunks));
    }
    std::vector<int64_t> cuts = {0, group.rows};
    for (const auto& column : pages) {
      for (const pq::PageBounds& page : column) cuts.push_back(page.rows.begin);
    }
    std::ranges::sort(cuts);
    cuts.erase(std::ranges::unique(cuts).begin(), cuts.end());
    std::vector<size_t> at(pages.size());   // the page of each column that holds the segment
    for (size_t i = 0; i + 1 < cuts.size(); ++i) {
      Segment segment = whole;
      segment.rows = {cuts[i], cuts[i + 1]};
      for (size_t c = 0; c < pages.size(); ++c) {
        if (pages[c].empty()) continue;
        while (pages[c][at[c]].rows.end <= cuts[i]) ++at[c];
        segment.bounds[columns[c]] = pages[c][at[c]].bounds;
      }
      segments->push_back(std::move(segment));
    }
    return Status::OK();
  }

  Result<std::vector<GroupPlan>> Judge() {
    std::vector<const Segment*> all;
    std::vector<ColumnBounds> bounds(set_.predicate() ? set_.predicate()->columns().size() : 0);
    for (const auto& of_file : segments_) {
      for (const Segment& segment : of_file) {
        all.push_back(&segment);
        for (size_t c = 0; c < bounds.size(); ++c) {
          bounds[c].bounds.push_back(segment.all_rows ? pq::Bounds{} : segment.bounds[c]);
        }
      }
    }
    BoundPredicate::Verdicts verdicts;
    if (set_.predicate() != nullptr) {
      ARROW_ASSIGN_OR_RAISE(verdicts, set_.predicate()->Judge(bounds, all.size()));
    }
    std::vector<GroupPlan> plans;
    for (size_t i = 0; i < all.size(); ++i) {
      const Segment& segment = *all[i];
      if (!segment.all_rows && !verdicts.may_match[i]) continue;
      if (plans.empty() || plans.back().file != segment.file ||
          plans.back().group != segment.group) {
        plans.push_back({segment.file, segment.group, {}});
      }
      const bool all_rows =
          segment.all_rows || (verdicts.must_match[i] && !options_.filter->judge);
      plans.back().parts.push_back({segment.rows, all_rows});
    }
    for (const auto& of_file : segments_) CountPages(of_file);
    return plans;
  }

  // pages_total: of the row groups that Bloom filters left.
  void CountPages(const std::vector<Segment>& segments) {
    for (size_t i = 0; i < segments.size(); ++i) {
      if (i > 0 && segments[i].group == segments[i - 1].group) continue;
      const ScanFile& file = set_.files()[segments[i].file];
      std::set<int> leaves;
      const auto& output = set_.shape()->projection(file.schema.get()).leaves;
      leaves.insert(output.begin(), output.end());
      for (const int leaf : FilterLeaves(file)) {
        if (!segments[i].all_rows) leaves.insert(leaf);
      }
      for (const int leaf : leaves) {
        cost_.pages_total += std::max<int64_t>(file.PageCount({segments[i].group, leaf}), 0);
      }
    }
  }

  const std::span<const FileSet::Candidate> candidates_;
  const ScannerOptions& options_;
  FileSet& set_;
  AheadStore& store_;
  ScanCost& cost_;
  std::vector<FileGroups> files_;
  std::vector<std::vector<Segment>> segments_;   // per file of files_
  std::set<int> bloom_columns_;
  int64_t whole_bytes_left_ = 0;
  std::atomic<int64_t> bloom_filters_{0};
};

}  // namespace

Result<std::vector<GroupPlan>> PlanGroups(std::span<const FileSet::Candidate> candidates,
                                          const ScannerOptions& options, FileSet* set,
                                          AheadStore* store, ScanCost* cost) {
  return GroupPlanner(candidates, options, set, store, cost).Run();
}

Status FindPages(std::span<const GroupLeaves> groups, const table::RowShape& shape,
                 const ScannerOptions& options, FileSet* set, AheadStore* store, ScanCost* cost) {
  std::map<size_t, std::vector<pq::ChunkId>> missing;   // by file
  for (const GroupLeaves& group : groups) {
    const ScanFile& file = set->files()[group.file];
    if (file.map != nullptr || file.bad) continue;
    for (const int leaf : shape.projection(file.schema.get()).leaves) {
      const pq::ChunkId chunk{group.group, leaf};
      if (!file.pages.contains(chunk)) missing[group.file].push_back(chunk);
    }
  }
  if (missing.empty()) return Status::OK();
  std::vector<size_t> files;
  std::vector<store::ReadRequest> requests;
  for (auto& [at, chunks] : missing) {
    files.push_back(at);
    std::ranges::sort(chunks);
    chunks.erase(std::ranges::unique(chunks).begin(), chunks.end());
  }
  ARROW_RETURN_NOT_OK(set->EnsureFooters(files));
  int64_t bytes_left = options.window_bytes_max;
  for (const auto& [at, chunks] : missing) {
    const ScanFile& file = set->files()[at];
    for (const pq::ChunkId chunk : chunks) {
      if (file.footer == nullptr) break;
      const ByteRange bytes = file.footer->chunk_range(chunk.row_group, chunk.leaf);
      if (!bytes.empty() && bytes.size_bytes() <= std::min(kWholeChunkBytesMax, bytes_left)) {
        bytes_left -= bytes.size_bytes();
        requests.push_back({file.object, bytes});
      }
    }
  }
  store->Prefetch(std::move(requests));
  std::vector<Status> failed(files.size());
  ARROW_RETURN_NOT_OK(arrow::internal::OptionalParallelFor(
      files.size() > 1, static_cast<int>(files.size()), [&](int i) {
        ScanFile& file = set->files()[files[static_cast<size_t>(i)]];
        if (file.footer == nullptr) return Status::OK();   // bad: told already
        const auto& chunks = missing.at(files[static_cast<size_t>(i)]);
        auto pages = pq::FindChunkPages(*store, *file.footer, chunks);
        failed[static_cast<size_t>(i)] = pages.status();
        for (size_t c = 0; pages.ok() && c < chunks.size(); ++c) {
          file.pages[chunks[c]] = std::move((*pages)[c]);
        }
        return Status::OK();
      }));
  for (size_t i = 0; i < files.size(); ++i) {
    const ScanFile& file = set->files()[files[i]];
    if (!failed[i].ok()) ARROW_RETURN_NOT_OK(set->OnBadFile(file, failed[i]));
    for (const pq::ChunkId chunk : missing.at(files[i])) {
      cost->pages_total += std::max<int64_t>(file.PageCount(chunk), 0);
    }
  }
  return Status::OK();
}

}  // namespace grebe::scan

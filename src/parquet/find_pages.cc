// Where every page of a file lies: by the offset indexes, else by the page headers.
#include <parquet/schema.h>

#include <algorithm>

#include "parquet/footer.h"
#include "parquet/footer_internal.h"
#include "parquet/guard.h"
#include "parquet/offset_index.h"
#include "parquet/page_walk.h"
#include "parquet/schema_internal.h"

namespace grebe::pq {
namespace {

// Index ranges nearer than this are read together; a run of them larger than the other limit is
// no honest index, and the headers are walked.
constexpr int64_t kIndexGapBytes = 64 << 10;
constexpr int64_t kIndexRunBytesMax = 256 << 20;

// Where one chunk's answer goes.
struct Slot {
  int row_group = 0;
  int leaf = 0;
  const ChunkMeta* meta = nullptr;
  ChunkPages* out = nullptr;
};

class PageFinder {
 public:
  PageFinder(store::Store& store, const Footer::Impl& footer, const ReadLimits& limits)
      : store_(store), footer_(footer), limits_(limits) {}

  Result<FilePages> Run();
  Result<std::vector<ChunkPages>> Run(std::span<const ChunkId> chunks);

 private:
  struct IndexRun {
    ByteRange range;
    std::vector<Slot> slots;
  };

  void MakeInfo(int row_group, int leaf, ChunkInfo* info) const;
  void MakeSlots(FilePages* pages);
  Status AddSlot(int row_group, int leaf, ChunkPages* out, std::vector<Slot>* indexed);
  Status FindAll(std::vector<Slot> indexed);
  Status ReadIndexes(std::vector<Slot> indexed);
  std::vector<IndexRun> JoinIndexes(std::vector<Slot> indexed);
  void TakeIndex(const Slot& slot, const arrow::Buffer& bytes);
  Status ProbeDictionaries();
  Status WalkChunks();
  PageWalk::Column ColumnOf(const Slot& slot) const;
  Status Where(const Status& status, const Slot& slot) const;

  store::Store& store_;
  const Footer::Impl& footer_;
  const ReadLimits limits_;
  std::vector<Slot> to_walk_;
  std::vector<Slot> to_probe_;      // pages known; a dictionary may lie before them
};

Status PageFinder::Where(const Status& status, const Slot& slot) const {
  return AddContext(AddContext(status, "row_group", std::to_string(slot.row_group)), "column",
                    footer_.schema->leaf_path(slot.leaf));
}

PageWalk::Column PageFinder::ColumnOf(const Slot& slot) const {
  const auto& descriptor = *footer_.schema->impl().descriptor;
  return {descriptor.Column(slot.leaf)->max_repetition_level(),
          footer_.row_counts[static_cast<size_t>(slot.row_group)]};
}

void PageFinder::TakeIndex(const Slot& slot, const arrow::Buffer& bytes) {
  const auto entries =
      ParseOffsetIndex({bytes.data(), static_cast<size_t>(bytes.size())});
  const auto column = ColumnOf(slot);
  if (entries) {
    auto pages = PagesOfIndex(*entries, *slot.meta, column.repetition_level_max > 0,
                              column.row_count);
    if (pages) {
      const ByteRange before{slot.meta->bytes.begin, (*entries)[0].offset_bytes};
      slot.out->pages = *std::move(pages);
      if (!before.empty()) {
        if (slot.meta->dictionary_first) {
          slot.out->info.dictionary = before;
        } else {
          to_probe_.push_back(slot);
        }
      }
      return;
    }
  }
  to_walk_.push_back(slot);
}

std::vector<PageFinder::IndexRun> PageFinder::JoinIndexes(std::vector<Slot> indexed) {
  std::ranges::sort(indexed, {}, [](const Slot& slot) { return slot.meta->offset_index->begin; });
  std::vector<IndexRun> runs;
  for (const Slot& slot : indexed) {
    const ByteRange range = *slot.meta->offset_index;
    if (!runs.empty() && range.begin <= runs.back().range.end + kIndexGapBytes) {
      IndexRun& run = runs.back();
      run.range.end = std::max(run.range.end, range.end);
      run.slots.push_back(slot);
    } else {
      runs.push_back({range, {slot}});
    }
  }
  std::erase_if(runs, [&](const IndexRun& run) {
    if (run.range.size_bytes() <= kIndexRunBytesMax) return false;
    to_walk_.insert(to_walk_.end(), run.slots.begin(), run.slots.end());
    return true;
  });
  return runs;
}

Status PageFinder::ReadIndexes(std::vector<Slot> indexed) {
  const std::vector<IndexRun> runs = JoinIndexes(std::move(indexed));
  std::vector<store::ReadRequest> requests;
  for (const IndexRun& run : runs) requests.push_back({footer_.object, run.range});
  ARROW_ASSIGN_OR_RAISE(auto buffers, store_.Read(requests));
  for (size_t i = 0; i < runs.size(); ++i) {
    for (const Slot& slot : runs[i].slots) {
      const ByteRange range = *slot.meta->offset_index;
      TakeIndex(slot, *arrow::SliceBuffer(buffers[i], range.begin - runs[i].range.begin,
                                          range.size_bytes()));
    }
  }
  return Status::OK();
}

// The footer need not say that there is a dictionary page (some writers leave its offset 0): what
// lies between the chunk's begin and its first data page is looked at.
Status PageFinder::ProbeDictionaries() {
  for (const Slot& slot : to_probe_) {
    const ByteRange place{slot.meta->bytes.begin, slot.out->pages.front().bytes.begin};
    PageWalk walk(*slot.meta, place, limits_);
    size_t failed = 0;
    const Status status = RunWalks(store_, footer_, std::span(&walk, 1), &failed);
    if (status.ok()) {
      slot.out->info.dictionary = walk.dictionary();
    } else if (IsKind(status, ErrorKind::kCorrupt)) {
      // Then the index is not to be trusted either.
      to_walk_.push_back(slot);
    } else {
      return Where(status, slot);
    }
  }
  return Status::OK();
}

Status PageFinder::WalkChunks() {
  std::vector<PageWalk> walks;
  walks.reserve(to_walk_.size());
  for (const Slot& slot : to_walk_) walks.emplace_back(*slot.meta, ColumnOf(slot), limits_);
  size_t failed = 0;
  const Status status = RunWalks(store_, footer_, walks, &failed);
  if (!status.ok()) return Where(status, to_walk_[failed]);
  for (size_t i = 0; i < walks.size(); ++i) {
    to_walk_[i].out->info.value_count = walks[i].value_count();
    to_walk_[i].out->pages = walks[i].take_pages();
    to_walk_[i].out->info.dictionary = walks[i].dictionary();
  }
  return Status::OK();
}

void PageFinder::MakeInfo(int row_group, int leaf, ChunkInfo* info) const {
  const ChunkMeta& meta = footer_.chunk(row_group, leaf);
  info->codec = meta.codec;
  info->always_compressed = footer_.always_compressed;
  info->value_count = meta.value_count;
}

void PageFinder::MakeSlots(FilePages* pages) {
  pages->row_groups.resize(footer_.row_counts.size());
  for (size_t group = 0; group < footer_.row_counts.size(); ++group) {
    RowGroupPages& out = pages->row_groups[group];
    out.row_count = footer_.row_counts[group];
    out.chunks.resize(static_cast<size_t>(footer_.leaf_count()));
  }
}

// Takes the chunk's index where the footer's bytes hold it, or notes what must be read.
Status PageFinder::AddSlot(int row_group, int leaf, ChunkPages* out, std::vector<Slot>* indexed) {
  MakeInfo(row_group, leaf, &out->info);
  const Slot slot{row_group, leaf, &footer_.chunk(row_group, leaf), out};
  const int64_t rows = footer_.row_counts[static_cast<size_t>(row_group)];
  if (slot.meta->value_count == 0) {
    if (rows == 0) return Status::OK();
    return Where(Corrupt("column has no values for its rows", "rows", rows), slot);
  }
  if (!slot.meta->offset_index) {
    to_walk_.push_back(slot);
  } else if (auto bytes = footer_.FromTail(*slot.meta->offset_index)) {
    TakeIndex(slot, *bytes);
  } else {
    indexed->push_back(slot);
  }
  return Status::OK();
}

Status PageFinder::FindAll(std::vector<Slot> indexed) {
  ARROW_RETURN_NOT_OK(ReadIndexes(std::move(indexed)));
  ARROW_RETURN_NOT_OK(ProbeDictionaries());
  return WalkChunks();
}

void CountPages(ChunkPages* chunk) {
  chunk->info.page_count = static_cast<int32_t>(chunk->pages.size());
}

Result<FilePages> PageFinder::Run() {
  FilePages pages;
  MakeSlots(&pages);
  std::vector<Slot> indexed;
  for (size_t group = 0; group < pages.row_groups.size(); ++group) {
    for (int leaf = 0; leaf < footer_.leaf_count(); ++leaf) {
      ARROW_RETURN_NOT_OK(AddSlot(static_cast<int>(group), leaf,
                                  &pages.row_groups[group].chunks[static_cast<size_t>(leaf)],
                                  &indexed));
    }
  }
  ARROW_RETURN_NOT_OK(FindAll(std::move(indexed)));
  for (RowGroupPages& group : pages.row_groups) {
    for (ChunkPages& chunk : group.chunks) CountPages(&chunk);
  }
  return pages;
}

Result<std::vector<ChunkPages>> PageFinder::Run(std::span<const ChunkId> chunks) {
  std::vector<ChunkPages> pages(chunks.size());
  std::vector<Slot> indexed;
  for (size_t i = 0; i < chunks.size(); ++i) {
    ARROW_RETURN_NOT_OK(AddSlot(chunks[i].row_group, chunks[i].leaf, &pages[i], &indexed));
  }
  ARROW_RETURN_NOT_OK(FindAll(std::move(indexed)));
  for (ChunkPages& chunk : pages) CountPages(&chunk);
  return pages;
}

}  // namespace

Result<FilePages> FindPages(store::Store& store, const Footer& footer, const ReadLimits& limits) {
  auto pages = Guarded("finding the pages",
                       [&] { return PageFinder(store, footer.impl(), limits).Run(); });
  if (!pages.ok()) return AddContext(pages.status(), "path", footer.object().path);
  return pages;
}

Result<std::vector<ChunkPages>> FindChunkPages(store::Store& store, const Footer& footer,
                                               std::span<const ChunkId> chunks,
                                               const ReadLimits& limits) {
  auto pages = Guarded("finding the pages",
                       [&] { return PageFinder(store, footer.impl(), limits).Run(chunks); });
  if (!pages.ok()) return AddContext(pages.status(), "path", footer.object().path);
  return pages;
}

}  // namespace grebe::pq

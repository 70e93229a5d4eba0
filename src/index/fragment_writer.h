// The frame of a fragment around what PostingSorter writes: magic, page maps, head. Used by the
// builder and by merging. Private to this room.
#pragma once

#include <functional>
#include <string_view>

#include "base/status.h"
#include "index/fragment.h"
#include "index/fragment_head.h"
#include "index/posting_sorter.h"
#include "index/sorted_section.h"
#include "store/store.h"

namespace grebe::index {

// Gives the runs of a fragment's sorted part, in order.
using SortedSource = std::function<Status(const EntrySink&)>;

// Writes the whole fragment: `page_maps` in file order, then the sorter's sections, then what
// `sorted` gives (null: no sorted part), then the head. head: schemas, files (row counts, page map
// sizes and checksums) and indexed_rows are set.
Result<FragmentInfo> WriteFragment(SpillBuffer* page_maps, PostingSorter* sorter,
                                   const SortedSource& sorted, const FragmentOptions& options,
                                   FragmentHead head, store::Upload& upload);

// The ascending first global rows of the files that have rows.
std::vector<uint64_t> FileBases(const std::vector<FragmentFile>& files);

// Threads to use when options ask for `threads`.
int ThreadCount(int threads);

}  // namespace grebe::index

// Sorting the rows of one partition, in memory.
#pragma once

#include <cstdint>
#include <vector>

#include "layout/gather.h"
#include "layout/piece_store.h"

namespace grebe::layout {

// Every row of the pieces once, but those of excluded files, ordered by source file, then row: the
// order that ties keep.
std::vector<RowRef> SourceOrder(const std::vector<Piece>& pieces,
                                const std::vector<bool>& excluded);

// Sorts rows by words[i] (of rows[i]), keeping the order of equal words; words are sorted along.
void SortByWords(std::vector<uint64_t>* words, std::vector<RowRef>* rows);

}  // namespace grebe::layout

#include "layout/sort_rows.h"

#include <algorithm>
#include <array>

namespace grebe::layout {
namespace {

struct Entry {
  uint64_t word;
  RowRef row;
};

// One pass of a least-significant-digit radix sort, by the byte at `shift`.
void Scatter(const std::vector<Entry>& from, int shift, std::vector<Entry>* to) {
  std::array<size_t, 257> starts{};
  for (const Entry& entry : from) ++starts[((entry.word >> shift) & 255) + 1];
  for (size_t i = 1; i < starts.size(); ++i) starts[i] += starts[i - 1];
  for (const Entry& entry : from) (*to)[starts[(entry.word >> shift) & 255]++] = entry;
}

}  // namespace

std::vector<RowRef> SourceOrder(const std::vector<Piece>& pieces,
                                const std::vector<bool>& excluded) {
  struct Run {
    int file;
    uint32_t piece;
    uint32_t first_row;
    int64_t row_count;
  };
  std::vector<Run> runs;
  size_t row_count = 0;
  for (uint32_t piece = 0; piece < pieces.size(); ++piece) {
    uint32_t row = 0;
    for (const Piece::Run& run : pieces[piece].runs) {
      if (!excluded[static_cast<size_t>(run.file)]) {
        runs.push_back({run.file, piece, row, run.row_count});
        row_count += static_cast<size_t>(run.row_count);
      }
      row += static_cast<uint32_t>(run.row_count);
    }
  }
  std::stable_sort(runs.begin(), runs.end(),
                   [](const Run& a, const Run& b) { return a.file < b.file; });
  std::vector<RowRef> rows;
  rows.reserve(row_count);
  for (const Run& run : runs) {
    for (uint32_t i = 0; i < run.row_count; ++i) rows.push_back({run.piece, run.first_row + i});
  }
  return rows;
}

void SortByWords(std::vector<uint64_t>* words, std::vector<RowRef>* rows) {
  const size_t count = rows->size();
  if (count < 2) return;
  // Bytes that all words share need no pass.
  uint64_t different = 0;
  bool sorted = true;
  for (size_t i = 1; i < count; ++i) {
    different |= (*words)[i] ^ (*words)[0];
    sorted = sorted && (*words)[i - 1] <= (*words)[i];
  }
  if (sorted) return;
  std::vector<Entry> entries(count), other(count);
  for (size_t i = 0; i < count; ++i) entries[i] = {(*words)[i], (*rows)[i]};
  for (int shift = 0; shift < 64; shift += 8) {
    if (((different >> shift) & 255) == 0) continue;
    Scatter(entries, shift, &other);
    std::swap(entries, other);
  }
  for (size_t i = 0; i < count; ++i) {
    (*words)[i] = entries[i].word;
    (*rows)[i] = entries[i].row;
  }
}

}  // namespace grebe::layout

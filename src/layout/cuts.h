// Where a sequence of rows is cut into files, row groups and pages: near a target size, where the
// order itself has a border.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

namespace grebe::layout {

// A piece holds between these shares of the target.
constexpr double kCutLow = 0.7;
constexpr double kCutHigh = 1.4;

// How high the border between two neighbours of a curve is: the highest bit in which their keys
// differ, plus one; 0 when they share a cell.
inline int CellLevel(uint64_t before, uint64_t after) {
  return 64 - std::countl_zero(before ^ after);
}

// The rows that the next piece needs to be seen before its end can be chosen.
inline int64_t CutLookahead(int64_t target) {
  return std::max<int64_t>(1, static_cast<int64_t>(kCutHigh * static_cast<double>(target)));
}

// The end of the piece that begins at `begin`, of a sequence that ends at `end`: where level(i),
// the height of the border before row i, is highest; of several the one nearest the target. When
// what is left fits one piece, `end`. No piece is left shorter than 0.7 of the target.
template <class Level>
int64_t NextCut(int64_t begin, int64_t end, int64_t target, const Level& level) {
  const int64_t left = end - begin;
  if (left <= CutLookahead(target)) return end;
  const auto low =
      std::max<int64_t>(1, static_cast<int64_t>(kCutLow * static_cast<double>(target)));
  const int64_t high = std::max(low, std::min(CutLookahead(target), left - low));
  int64_t best = begin + std::clamp(target, low, high);
  auto best_level = level(best);
  for (int64_t cut = begin + low; cut <= begin + high; ++cut) {
    const auto here = level(cut);
    const auto distance = [&](int64_t at) { return std::abs(at - begin - target); };
    if (here > best_level || (here == best_level && distance(cut) < distance(best))) {
      best = cut;
      best_level = here;
    }
  }
  return best;
}

// All cuts of [0, count): the pieces' ends, the last one `count`.
template <class Level>
std::vector<int64_t> AllCuts(int64_t count, int64_t target, const Level& level) {
  std::vector<int64_t> ends;
  for (int64_t at = 0; at < count; at = ends.back()) {
    ends.push_back(NextCut(at, count, target, level));
  }
  return ends;
}

}  // namespace grebe::layout

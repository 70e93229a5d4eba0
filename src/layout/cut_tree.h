// A partition tree: cuts chosen one after another from a query log, so that the log's queries, and
// others like them, read few rows. Leaves are files.
//
// Everything is in ranks (log_ranks.h). A cut is judged by what queries of the log's widths would
// read in the end, lying anywhere, times how much less the log's own queries read of its two sides,
// where that is no accident. So cuts follow what the log asks for, but not its every line.
// Source: Z. Yang et al., "Qd-tree: Learning Data Layouts for Big Data Analytics", SIGMOD 2020.
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace grebe::layout {

// Ranks [begin, end) of a column; all of them where a query does not ask for the column.
struct RankRange {
  uint32_t begin = 0;
  uint32_t end = UINT32_MAX;
  bool is_all() const { return begin == 0 && end == UINT32_MAX; }
  friend bool operator==(const RankRange&, const RankRange&) = default;
};
using RankBox = std::vector<RankRange>;   // one range a column

// A query wants rows of any of its boxes (one where it has no OR).
struct RankQuery {
  std::vector<RankBox> boxes;
  double weight = 1;
};

struct CutNode {
  int column = -1;        // -1: a leaf
  uint32_t bound = 0;     // ranks below it go to `below`, the others to `above`
  int below = -1, above = -1;
  int leaf = -1;          // its number, from 0 in the order of the nodes
};

// Nodes, parents before children; node 0 is the root. columns: the sample's ranks, one vector a
// column, equal lengths. target_rows: of a leaf, in sample rows; leaves hold 0.7 to 1.4 of it
// where equal values allow.
// Cost: rows * columns * log(rows) * depth, and queries * log(queries) at each node they reach.
std::vector<CutNode> BuildCutTree(std::span<const std::vector<uint32_t>> columns,
                                  const std::vector<RankQuery>& queries, double target_rows);

}  // namespace grebe::layout

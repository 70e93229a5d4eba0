// The pictures of a layout report, as SVG.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "grebe/layout.h"

namespace grebe::engine {

// Where the boxes of one or two reports lie: positions from 0 to 1 in both columns, the same scale
// for both. Numbers and times by value, unless that would crush most boxes against one side; then,
// and for text, by rank among all bounds.
struct PlacedBox {
  double x0 = 0, x1 = 1, y0 = 0, y1 = 1;
  bool known = true;            // false: a bound is missing; the box covers everything there
};
struct Axis {
  std::string column, low, high;
  bool by_rank = false;
};
struct PlacedBoxes {
  Axis x, y;                    // y of one column: the order of the files
  std::vector<std::vector<PlacedBox>> boxes;    // per report
};
PlacedBoxes PlaceBoxes(const std::vector<const LayoutReport*>& reports);

// Files as boxes, and the path through them in file order.
std::string BoxesSvg(const PlacedBoxes& placed, size_t report, const std::string& title);

// Pieces by depth, one row of bars per histogram.
struct NamedHistogram {
  std::string name;
  std::map<int64_t, int64_t> histogram;
};
std::string HistogramSvg(const std::vector<NamedHistogram>& histograms, const std::string& title);

}  // namespace grebe::engine

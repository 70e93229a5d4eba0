#include "layout/cut_tree.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <utility>

#include "layout/cuts.h"

namespace grebe::layout {
namespace {

// Where logged queries lie counts as far as it differs from what queries anywhere would do by more
// than so many standard errors: of many possible cuts one always looks good by accident.
constexpr double kStandardErrors = 2;
// Leaves are made this share of the target, about: small files are skipped more finely, and a leaf
// is still within 0.7 to 1.4 of it. No side of a cut may miss whole leaves by more than the slack.
constexpr double kLeafShare = 0.71;
constexpr double kLeafShareMax = 0.8;
// Cuts tried per column: even ones, and the queries' own ends.
constexpr int kEvenCutsMax = 16;
constexpr size_t kQueryCutsMax = 128;
// Boxes of so many leaves are tried out in every way they could be cut up; of fewer where there are
// more columns, since each multiplies the ways.
constexpr int kTriedLeavesMax = 6;
constexpr int kTriedLeavesAndColumnsMax = 8;
// Queries whose widths differ by less than this factor are expected to read alike; by more where
// there would be too many kinds of them, of which those that weigh most are kept.
constexpr double kWidthStep = 1.25;
constexpr double kWidthStepMax = 100;
constexpr size_t kWidthClassesMax = 48;

// The summed weights of values below a bound.
class WeightBelow {
 public:
  void Add(uint32_t value, double weight) { values_.emplace_back(value, weight); }
  void Finish() {
    std::sort(values_.begin(), values_.end());
    double sum = 0;
    for (auto& [value, weight] : values_) weight = sum += weight;
  }
  double Of(uint32_t bound) const {
    const auto at = std::lower_bound(values_.begin(), values_.end(), std::pair(bound, -1.0));
    return at == values_.begin() ? 0 : std::prev(at)->second;
  }
  double total() const { return values_.empty() ? 0 : values_.back().second; }

 private:
  std::vector<std::pair<uint32_t, double>> values_;
};

// Queries of about the same widths, which may lie anywhere.
struct WidthClass {
  std::vector<double> widths;   // shares of the rows, per column; 1: not asked for
  double weight = 0;
};

// How likely a range of this width, anywhere among all rows, meets one of this length.
double Meets(double width, double length) { return width + (1 - width) * length; }

class TreeBuilder {
 public:
  TreeBuilder(std::span<const std::vector<uint32_t>> columns,
              const std::vector<RankQuery>& queries, double target_rows)
      : columns_(columns), queries_(queries), target_(target_rows) {
    for (const auto& column : columns) {
      total_ = column.size();
      sorted_.push_back(column);
      std::sort(sorted_.back().begin(), sorted_.back().end());
    }
    double step = kWidthStep;
    for (ClassQueries(step); classes_.size() > kWidthClassesMax && step < kWidthStepMax;) {
      ClassQueries(step *= step);
    }
    std::ranges::stable_sort(classes_, std::ranges::greater{}, &WidthClass::weight);
    classes_.resize(std::min(classes_.size(), kWidthClassesMax));
  }

  std::vector<CutNode> Run() {
    Node root;
    root.rows.resize(total_);
    std::iota(root.rows.begin(), root.rows.end(), 0);
    root.box.resize(columns_.size());
    for (uint32_t q = 0; q < queries_.size(); ++q) {
      for (uint32_t b = 0; b < queries_[q].boxes.size(); ++b) root.asked.push_back({q, b});
    }
    Build(std::move(root));
    return std::move(nodes_);
  }

 private:
  struct Asked {
    uint32_t query, box;
  };
  struct Node {
    std::vector<uint32_t> rows;
    RankBox box;
    std::vector<Asked> asked;   // boxes of queries that reach into this one, query by query
  };
  struct Cut {
    int column = -1;
    uint32_t bound = 0;
    double cost = 0;
  };
  // The node's share of each column's rows.
  using Lengths = std::vector<double>;

  void ClassQueries(double step) {
    const double least = 1.0 / static_cast<double>(std::max<size_t>(total_, 1));
    std::map<std::vector<int>, WidthClass> classes;
    for (const RankQuery& query : queries_) {
      for (const RankBox& box : query.boxes) {
        std::vector<double> widths;
        std::vector<int> steps;
        for (size_t c = 0; c < columns_.size(); ++c) {
          widths.push_back(box[c].is_all() ? 1
                                           : std::max(least, Share(c, box[c].begin, box[c].end)));
          steps.push_back(static_cast<int>(std::lround(std::log(widths[c]) / std::log(step))));
        }
        WidthClass& own = classes[steps];
        if (own.widths.empty()) own.widths = widths;
        own.weight += query.weight / static_cast<double>(query.boxes.size());
      }
    }
    classes_.clear();
    for (auto& [steps, some] : classes) classes_.push_back(std::move(some));
  }

  // The share of all rows whose rank is in [begin, end).
  double Share(size_t column, uint32_t begin, uint32_t end) const {
    const auto& all = sorted_[column];
    const auto low = std::lower_bound(all.begin(), all.end(), begin);
    const auto high = std::lower_bound(low, all.end(), end);
    return static_cast<double>(high - low) / static_cast<double>(std::max<size_t>(total_, 1));
  }

  const RankRange& RangeOf(Asked asked, size_t column) const {
    return queries_[asked.query].boxes[asked.box][column];
  }

  int Build(Node node) {
    const auto at = nodes_.size();
    nodes_.emplace_back();
    const double pieces = Pieces(static_cast<double>(node.rows.size()));
    const Cut cut = pieces >= 2 ? BestCut(node, pieces) : Cut{};
    if (cut.column < 0) {
      nodes_[at].leaf = leaves_++;
      return static_cast<int>(at);
    }
    auto [below, above] = Split(std::move(node), cut);
    nodes_[at].column = cut.column;
    nodes_[at].bound = cut.bound;
    const int below_at = Build(std::move(below));
    const int above_at = Build(std::move(above));
    nodes_[at].below = below_at;
    nodes_[at].above = above_at;
    return static_cast<int>(at);
  }

  std::pair<Node, Node> Split(Node node, const Cut& cut) const {
    const auto c = static_cast<size_t>(cut.column);
    Node below, above;
    below.box = above.box = node.box;
    below.box[c].end = above.box[c].begin = cut.bound;
    for (const uint32_t row : node.rows) {
      (columns_[c][row] < cut.bound ? below : above).rows.push_back(row);
    }
    for (const Asked asked : node.asked) {
      if (RangeOf(asked, c).begin < cut.bound) below.asked.push_back(asked);
      if (RangeOf(asked, c).end > cut.bound) above.asked.push_back(asked);
    }
    return {std::move(below), std::move(above)};
  }

  // The cut that leaves the queries least to read; pieces: leaves that the node will have, about.
  Cut BestCut(const Node& node, double pieces) const {
    Cut best;
    Lengths lengths;
    for (size_t c = 0; c < columns_.size(); ++c) {
      lengths.push_back(Share(c, node.box[c].begin, node.box[c].end));
    }
    for (size_t c = 0; c < columns_.size(); ++c) {
      std::vector<uint32_t> ranks;
      ranks.reserve(node.rows.size());
      for (const uint32_t row : node.rows) ranks.push_back(columns_[c][row]);
      std::sort(ranks.begin(), ranks.end());
      if (ranks.front() == ranks.back()) continue;
      const auto [begins, ends] = EndsOf(node, c);
      std::map<int, double> in_the_end;   // by the leaves that lie below the cut
      for (const uint32_t bound : Candidates(node, c, ranks, pieces)) {
        const auto below = std::lower_bound(ranks.begin(), ranks.end(), bound) - ranks.begin();
        const double share = static_cast<double>(below) / static_cast<double>(ranks.size());
        Lengths below_box = lengths, above_box = lengths;
        below_box[c] = Share(c, node.box[c].begin, bound);
        above_box[c] = std::max(0.0, lengths[c] - below_box[c]);
        const double expected =
            (share * Reads(below_box) + (1 - share) * Reads(above_box)) / Reads(lengths);
        const double leaves_below = std::clamp(std::round(share * pieces), 1.0, pieces - 1);
        const auto [end, fresh] = in_the_end.try_emplace(static_cast<int>(leaves_below));
        if (fresh) {
          end->second = (share * ReadsCutUp(below_box, leaves_below) +
                         (1 - share) * ReadsCutUp(above_box, pieces - leaves_below));
        }
        double cost = end->second * Luck(begins, ends, bound, share, expected);
        // Of cuts that save alike the most even one.
        cost *= 1 + 1e-6 * std::abs(share - 0.5);
        if (best.column < 0 || cost < best.cost) best = {static_cast<int>(c), bound, cost};
      }
    }
    return best;
  }

  // What the node's own queries read after a cut over what is expected, where that is no accident.
  static double Luck(const WeightBelow& begins, const WeightBelow& ends, uint32_t bound,
                     double share, double expected) {
    const double all = begins.total();
    if (all <= 0) return 1;
    const double reach_below = begins.Of(bound) / all, reach_above = 1 - ends.Of(bound + 1) / all;
    const double mean = share * reach_below + (1 - share) * reach_above;
    const double both = reach_below + reach_above - 1;
    const double squares = (1 - reach_above) * share * share +
                           (1 - reach_below) * (1 - share) * (1 - share) + both;
    // One query more that is like no other: a few that agree prove little.
    const double variance = std::max(0.0, squares - mean * mean) + 1 / all;
    const double accident = kStandardErrors * std::sqrt(variance / all);
    const double luck = mean < expected ? std::min(expected, mean + accident)
                                        : std::max(expected, mean - accident);
    return luck / expected;
  }

  // Where the node's queries begin and end in a column.
  std::pair<WeightBelow, WeightBelow> EndsOf(const Node& node, size_t c) const {
    std::pair<WeightBelow, WeightBelow> out;
    for (size_t i = 0, next = 0; i < node.asked.size(); i = next) {
      uint32_t begin = UINT32_MAX, end = 0;
      const uint32_t query = node.asked[i].query;
      for (next = i; next < node.asked.size() && node.asked[next].query == query; ++next) {
        begin = std::min(begin, RangeOf(node.asked[next], c).begin);
        end = std::max(end, RangeOf(node.asked[next], c).end);
      }
      out.first.Add(begin, queries_[query].weight);
      out.second.Add(end, queries_[query].weight);
    }
    out.first.Finish();
    out.second.Finish();
    return out;
  }

  // Bounds worth trying: such that both sides can be made of whole leaves.
  std::vector<uint32_t> Candidates(const Node& node, size_t c, const std::vector<uint32_t>& ranks,
                                   double pieces) const {
    const auto count = static_cast<double>(ranks.size());
    std::vector<uint32_t> bounds;
    const auto add = [&](uint32_t bound) {
      const auto below = std::lower_bound(ranks.begin(), ranks.end(), bound) - ranks.begin();
      if (SplitsWell(static_cast<double>(below)) &&
          SplitsWell(count - static_cast<double>(below))) {
        bounds.push_back(bound);
      }
    };
    const auto even = static_cast<int>(std::min<double>(pieces, kEvenCutsMax));
    for (int i = 1; i < even; ++i) {
      const double whole = std::round(pieces * i / even) / pieces;
      add(ranks[static_cast<size_t>(std::min(count - 1, whole * count))]);
    }
    std::vector<uint32_t> ends;
    for (const Asked asked : node.asked) {
      const RankRange range = RangeOf(asked, c);
      if (range.begin > ranks.front() && range.begin <= ranks.back()) ends.push_back(range.begin);
      if (range.end > ranks.front() && range.end <= ranks.back()) ends.push_back(range.end);
    }
    std::sort(ends.begin(), ends.end());
    ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
    const size_t step = ends.size() / kQueryCutsMax + 1;
    for (size_t i = step / 2; i < ends.size(); i += step) add(ends[i]);
    std::sort(bounds.begin(), bounds.end());
    bounds.erase(std::unique(bounds.begin(), bounds.end()), bounds.end());
    if (bounds.empty()) {
      // Many equal values: whatever cut there is nearest the middle.
      const uint32_t middle = ranks[ranks.size() / 2];
      bounds.push_back(middle > ranks.front()
                           ? middle
                           : *std::upper_bound(ranks.begin(), ranks.end(), middle));
    }
    return bounds;
  }

  // Leaves that so many rows make.
  double Pieces(double rows) const {
    double pieces = std::round(rows / (kLeafShare * target_));
    if (pieces > 1 && rows / pieces < kCutLow * target_) --pieces;
    return pieces;
  }
  bool SplitsWell(double rows) const {
    const double pieces = Pieces(rows);
    if (pieces < 1) return false;
    const double share = rows / pieces / target_;
    return share >= kCutLow && share <= kLeafShareMax;
  }

  // The weight of queries, lying anywhere, that meet a box of these lengths.
  double Reads(const Lengths& lengths) const {
    double sum = 0;
    for (const WidthClass& some : classes_) {
      double chance = some.weight;
      for (size_t c = 0; c < lengths.size(); ++c) chance *= Meets(some.widths[c], lengths[c]);
      sum += chance;
    }
    return sum;
  }

  // The same for a box of the many that it is cut into: in halves along the column that saves
  // most, and what is small in whichever way is best.
  double ReadsCutUp(Lengths lengths, double pieces) const {
    const int tried = std::clamp(kTriedLeavesAndColumnsMax - static_cast<int>(lengths.size()), 2,
                                 kTriedLeavesMax);
    while (pieces > tried) {
      pieces /= 2;
      size_t best = 0;
      double least = 0;
      for (size_t c = 0; c < lengths.size(); ++c) {
        Lengths half = lengths;
        half[c] /= 2;
        const double reads = Reads(half);
        if (c == 0 || reads < least) {
          least = reads;
          best = c;
        }
      }
      lengths[best] /= 2;
    }
    return ReadsCutBest(lengths, static_cast<int>(std::lround(pieces)));
  }
  double ReadsCutBest(const Lengths& lengths, int pieces) const {
    double least = Reads(lengths);
    if (pieces <= 1) return least;
    for (size_t c = 0; c < lengths.size(); ++c) {
      for (int below = 1; 2 * below <= pieces; ++below) {
        const double share = static_cast<double>(below) / pieces;
        Lengths some = lengths, rest = lengths;
        some[c] *= share;
        rest[c] *= 1 - share;
        least = std::min(least, share * ReadsCutBest(some, below) +
                                    (1 - share) * ReadsCutBest(rest, pieces - below));
      }
    }
    return least;
  }

  const std::span<const std::vector<uint32_t>> columns_;
  const std::vector<RankQuery>& queries_;
  const double target_;
  size_t total_ = 0;
  std::vector<std::vector<uint32_t>> sorted_;
  std::vector<WidthClass> classes_;
  std::vector<CutNode> nodes_;
  int leaves_ = 0;
};

}  // namespace

std::vector<CutNode> BuildCutTree(std::span<const std::vector<uint32_t>> columns,
                                  const std::vector<RankQuery>& queries, double target_rows) {
  return TreeBuilder(columns, queries, std::max(1.0, target_rows)).Run();
}

}  // namespace grebe::layout

#include "layout/table_tree.h"

#include <algorithm>

#include "layout/cut_tree.h"
#include "layout/log_ranks.h"
#include "layout/value_order.h"
#include "scan/predicate_value.h"

namespace grebe::layout {
namespace {

using Place = scan::PlacedValue::Place;

// Rows placed at once: their places stay in the cache.
constexpr int64_t kStepRows = 4096;
constexpr uint32_t kAllBelow = UINT32_MAX;

Status Malformed(std::string_view why, size_t node) {
  return InvalidArgument("not a tree", "why", why, "node", node);
}

// A cut's value as what orders rows: those at or above it go above.
struct Threshold {
  uint64_t word = 0;
  std::string text;
  friend auto operator<=>(const Threshold&, const Threshold&) = default;
};

struct PlacedCut {
  Place place = Place::kExact;   // kBelowAll, kAboveAll: without a threshold
  Threshold threshold;
  bool has_threshold() const { return place == Place::kExact || place == Place::kAbove; }
};

// The threshold right after the cut's, with no value between.
void StepOver(bool exact_words, PlacedCut* cut) {
  if (!exact_words) {
    cut->threshold.text += '\0';
  } else if (cut->threshold.word == UINT64_MAX) {
    cut->place = Place::kAboveAll;
  } else {
    ++cut->threshold.word;
  }
}

Result<PlacedCut> PlaceCut(const TableTree::Node& node,
                           const std::shared_ptr<arrow::DataType>& type) {
  scan::Literal literal;
  literal.kind = scan::Literal::Kind::kText;
  literal.text = node.value;
  auto placed = scan::PlaceLiteral(literal, type);
  if (!placed.ok()) return AddContext(placed.status(), "column", node.column);
  PlacedCut cut;
  cut.place = placed->place;
  if (!cut.has_threshold()) return cut;
  ARROW_ASSIGN_OR_RAISE(const auto array, arrow::MakeArrayFromScalar(*placed->value, 1));
  const bool exact_words = WordsAreExact(*array->type());
  if (exact_words) {
    ARROW_RETURN_NOT_OK(ValueWords(*array, &cut.threshold.word));
  } else {
    std::vector<std::string_view> views;
    std::string bytes;
    ARROW_RETURN_NOT_OK(OrderedViews(*array, &views, &bytes));
    cut.threshold.text = views[0];
  }
  // kAbove: the value given is still below the cut.
  if (cut.place == Place::kAbove) StepOver(exact_words, &cut);
  return cut;
}

// Sorted, each once.
std::vector<Threshold> ThresholdsOf(const TableTree& tree, const std::string& column,
                                    const std::vector<PlacedCut>& cuts) {
  std::vector<Threshold> out;
  for (size_t i = 0; i < cuts.size(); ++i) {
    const TableTree::Node& node = tree.nodes()[i];
    if (!node.is_leaf() && node.column == column && cuts[i].has_threshold()) {
      out.push_back(cuts[i].threshold);
    }
  }
  std::ranges::sort(out);
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

// Rows of lower places go below: see LeafFinder::Column.
uint32_t PlaceOf(const PlacedCut& cut, const std::vector<Threshold>& thresholds) {
  if (cut.place == Place::kBelowAll) return 1;
  if (cut.place == Place::kAboveAll) return kAllBelow;
  const auto at = std::ranges::lower_bound(thresholds, cut.threshold);
  return 2 + static_cast<uint32_t>(at - thresholds.begin());
}

}  // namespace

Result<std::shared_ptr<const TableTree>> TableTree::Make(std::vector<std::string> columns,
                                                         std::vector<Node> nodes) {
  if (columns.empty()) return InvalidArgument("not a tree", "why", "it has no columns");
  if (nodes.empty() || nodes.size() > kNodesMax) return Malformed("too few or too many nodes", 0);
  auto tree = std::make_shared<TableTree>();
  std::vector<bool> has_parent(nodes.size());
  has_parent[0] = true;
  for (size_t i = 0; i < nodes.size(); ++i) {
    const Node& node = nodes[i];
    if (!has_parent[i]) return Malformed("a node without a parent before it", i);
    if (node.is_leaf()) {
      if (node.leaf != static_cast<int>(tree->leaf_count_)) {
        return Malformed("leaves are not numbered in order", i);
      }
      ++tree->leaf_count_;
      continue;
    }
    if (std::ranges::find(columns, node.column) == columns.end()) {
      return Malformed("a cut of no column of the tree", i);
    }
    for (const int child : {node.below, node.above}) {
      const auto at = static_cast<size_t>(child);
      if (child <= static_cast<int>(i) || at >= nodes.size() || has_parent[at]) {
        return Malformed("a child is not a node of its own behind its parent", i);
      }
      has_parent[at] = true;
    }
  }
  tree->columns_ = std::move(columns);
  tree->nodes_ = std::move(nodes);
  return tree;
}

Result<std::shared_ptr<const TableTree>> TableTree::Learn(const std::vector<LoggedQuery>& log,
                                                          const std::vector<std::string>& columns,
                                                          const arrow::RecordBatch& sample,
                                                          double target_rows) {
  ARROW_ASSIGN_OR_RAISE(const LogRanks ranked, RankLog(log, columns, sample));
  if (ranked.columns.empty()) {
    return InvalidArgument("no query of the log asks for a range or value of a column that rows "
                           "could be laid out by", "queries", log.size());
  }
  std::vector<Node> nodes;
  for (const CutNode& cut : BuildCutTree(ranked.ranks, ranked.queries, target_rows)) {
    Node node;
    node.leaf = cut.leaf;
    if (cut.column >= 0) {
      const auto column = static_cast<size_t>(cut.column);
      node.column = ranked.columns[column];
      ARROW_ASSIGN_OR_RAISE(node.value, ranked.TextAt(column, cut.bound));
      node.below = cut.below;
      node.above = cut.above;
    }
    nodes.push_back(std::move(node));
  }
  return Make(ranked.columns, std::move(nodes));
}

Result<LeafFinder> LeafFinder::Make(const TableTree& tree, const arrow::RecordBatch& rows) {
  LeafFinder finder;
  std::vector<std::shared_ptr<arrow::DataType>> types;
  for (const std::string& path : tree.columns()) {
    ARROW_ASSIGN_OR_RAISE(const auto column, ColumnOf(rows, path));
    ARROW_RETURN_NOT_OK(CheckOrdered(*column->type(), path));
    types.push_back(column->type());
    finder.columns_.push_back({path, {}, {}});
  }
  std::vector<size_t> columns(tree.nodes().size());   // of each cut
  std::vector<PlacedCut> cuts(tree.nodes().size());
  for (size_t i = 0; i < cuts.size(); ++i) {
    const TableTree::Node& node = tree.nodes()[i];
    if (node.is_leaf()) continue;
    columns[i] = static_cast<size_t>(std::ranges::find(tree.columns(), node.column) -
                                     tree.columns().begin());
    ARROW_ASSIGN_OR_RAISE(cuts[i], PlaceCut(node, types[columns[i]]));
  }
  std::vector<std::vector<Threshold>> thresholds;
  for (Column& column : finder.columns_) {
    thresholds.push_back(ThresholdsOf(tree, column.path, cuts));
    for (const Threshold& threshold : thresholds.back()) {
      column.words.push_back(threshold.word);
      column.texts.push_back(threshold.text);
    }
  }
  const auto child = [&](int node) {
    const TableTree::Node& own = tree.nodes()[static_cast<size_t>(node)];
    return own.is_leaf() ? -(own.leaf + 1) : node;
  };
  if (tree.leaf_count() == 1) return finder;
  for (size_t i = 0; i < cuts.size(); ++i) {
    const TableTree::Node& node = tree.nodes()[i];
    Step step;
    if (!node.is_leaf()) {
      step = {static_cast<int>(columns[i]), PlaceOf(cuts[i], thresholds[columns[i]]),
              child(node.below), child(node.above)};
    }
    finder.steps_.push_back(step);
  }
  return finder;
}

Status LeafFinder::Places(const Column& column, const arrow::RecordBatch& rows,
                          uint32_t* places) {
  ARROW_ASSIGN_OR_RAISE(auto values, ColumnOf(rows, column.path));
  const auto type = pq::ComparableType(values->type());
  ARROW_ASSIGN_OR_RAISE(values, scan::ToComparable(std::move(values), type));
  const auto count = static_cast<size_t>(values->length());
  const auto place = [&](const auto& cuts, const auto& keys) {
    for (size_t i = 0; i < count; ++i) {
      const auto after = std::upper_bound(cuts.begin(), cuts.end(), keys[i]);
      places[i] = values->IsNull(static_cast<int64_t>(i))
                      ? 0 : 1 + static_cast<uint32_t>(after - cuts.begin());
    }
  };
  if (WordsAreExact(*type)) {
    std::vector<uint64_t> words(count);
    ARROW_RETURN_NOT_OK(ValueWords(*values, words.data()));
    place(column.words, words);
    return Status::OK();
  }
  std::vector<std::string_view> views;
  std::string bytes;
  ARROW_RETURN_NOT_OK(OrderedViews(*values, &views, &bytes));
  place(column.texts, views);
  return Status::OK();
}

Status LeafFinder::Leaves(const arrow::RecordBatch& rows, uint32_t* leaves) const {
  std::fill(leaves, leaves + rows.num_rows(), 0);
  if (steps_.empty()) return Status::OK();
  std::vector<std::vector<uint32_t>> places(columns_.size());
  for (int64_t begin = 0; begin < rows.num_rows(); begin += kStepRows) {
    const auto some = rows.Slice(begin, std::min(kStepRows, rows.num_rows() - begin));
    const auto count = static_cast<size_t>(some->num_rows());
    for (size_t c = 0; c < columns_.size(); ++c) {
      places[c].resize(count);
      ARROW_RETURN_NOT_OK(Places(columns_[c], *some, places[c].data()));
    }
    for (size_t row = 0; row < count; ++row) {
      int at = 0;
      do {
        const Step& step = steps_[static_cast<size_t>(at)];
        const bool is_below = places[static_cast<size_t>(step.column)][row] < step.place;
        at = is_below ? step.below : step.above;
      } while (at >= 0);
      leaves[static_cast<size_t>(begin) + row] = static_cast<uint32_t>(-(at + 1));
    }
  }
  return Status::OK();
}

}  // namespace grebe::layout

#include "layout/log_ranks.h"

#include <arrow/array/concatenate.h>
#include <arrow/builder.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>

#include "layout/bound_text.h"
#include "layout/value_order.h"
#include "scan/predicate_value.h"

namespace grebe::layout {
namespace {

using Op = scan::BoundAtom::Op;
using ScalarPtr = std::shared_ptr<arrow::Scalar>;

constexpr size_t kTextBytesMax = 128;   // of a cut value
constexpr size_t kBoxesMax = 64;        // of a query
constexpr uint32_t kNoEnd = std::numeric_limits<uint32_t>::max();

// Text cut short, between characters: in the order still at or below the whole.
std::string_view Shortened(std::string_view text, bool utf8) {
  if (text.size() <= kTextBytesMax) return text;
  size_t end = kTextBytesMax;
  while (utf8 && end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  return text.substr(0, end);
}

template <class ArrayType, class Builder>
Result<std::shared_ptr<arrow::Array>> ShortenEach(const arrow::Array& values, bool utf8) {
  Builder builder;
  const auto& texts = static_cast<const ArrayType&>(values);
  for (int64_t i = 0; i < texts.length(); ++i) {
    ARROW_RETURN_NOT_OK(texts.IsNull(i) ? builder.AppendNull()
                                        : builder.Append(Shortened(texts.GetView(i), utf8)));
  }
  return builder.Finish();
}

Result<std::shared_ptr<arrow::Array>> ShortenTexts(std::shared_ptr<arrow::Array> values) {
  switch (values->type_id()) {
    case arrow::Type::STRING:
      return ShortenEach<arrow::StringArray, arrow::StringBuilder>(*values, true);
    case arrow::Type::LARGE_STRING:
      return ShortenEach<arrow::LargeStringArray, arrow::LargeStringBuilder>(*values, true);
    case arrow::Type::BINARY:
      return ShortenEach<arrow::BinaryArray, arrow::BinaryBuilder>(*values, false);
    case arrow::Type::LARGE_BINARY:
      return ShortenEach<arrow::LargeBinaryArray, arrow::LargeBinaryBuilder>(*values, false);
    default: return values;
  }
}

// Rows that are not null, in the order of their values; ends: of the runs of equal ones.
Status SortRows(const arrow::Array& values, std::vector<int64_t>* rows, std::vector<size_t>* ends) {
  for (int64_t i = 0; i < values.length(); ++i) {
    if (values.IsValid(i)) rows->push_back(i);
  }
  const auto sort_by = [&](const auto& keys) {
    const auto key = [&](int64_t row) { return keys[static_cast<size_t>(row)]; };
    std::sort(rows->begin(), rows->end(), [&](int64_t a, int64_t b) { return key(a) < key(b); });
    for (size_t i = 1; i <= rows->size(); ++i) {
      if (i == rows->size() || key((*rows)[i - 1]) != key((*rows)[i])) ends->push_back(i);
    }
  };
  if (WordsAreExact(*values.type())) {
    std::vector<uint64_t> words(static_cast<size_t>(values.length()));
    ARROW_RETURN_NOT_OK(ValueWords(values, words.data()));
    sort_by(words);
    return Status::OK();
  }
  std::vector<std::string_view> views;
  std::string bytes;
  ARROW_RETURN_NOT_OK(OrderedViews(values, &views, &bytes));
  sort_by(views);
  return Status::OK();
}

// One column: the sample's values, and behind them those that the queries name.
struct ColumnValues {
  std::string path;
  std::shared_ptr<arrow::DataType> own_type, type;   // type: comparable
  std::shared_ptr<arrow::Array> sample;
  std::vector<ScalarPtr> literals;
  size_t next = 0;                                   // literal to be asked for, in the same walk
  std::shared_ptr<arrow::Array> values;              // all
  std::vector<uint32_t> ranks;                       // of all
  std::vector<int64_t> rank_values;

  Status Rank() {
    ARROW_ASSIGN_OR_RAISE(auto builder, arrow::MakeBuilder(type));
    for (const ScalarPtr& literal : literals) ARROW_RETURN_NOT_OK(builder->AppendScalar(*literal));
    ARROW_ASSIGN_OR_RAISE(std::shared_ptr<arrow::Array> asked, builder->Finish());
    ARROW_ASSIGN_OR_RAISE(auto rows, ShortenTexts(sample));
    ARROW_ASSIGN_OR_RAISE(asked, ShortenTexts(std::move(asked)));
    ARROW_ASSIGN_OR_RAISE(values, arrow::Concatenate({rows, asked}));
    std::vector<int64_t> order;
    std::vector<size_t> ends;
    ARROW_RETURN_NOT_OK(SortRows(*values, &order, &ends));
    ranks.assign(static_cast<size_t>(values->length()), 0);
    size_t begin = 0;
    for (const size_t end : ends) {
      if (HasText(*values, order[begin])) rank_values.push_back(order[begin]);
      for (; begin < end; ++begin) {
        ranks[static_cast<size_t>(order[begin])] = static_cast<uint32_t>(rank_values.size());
      }
    }
    return Status::OK();
  }

  // The next literal's rank, and whether the rank begins with it.
  std::pair<uint32_t, bool> Next() {
    const int64_t row = sample->length() + static_cast<int64_t>(next++);
    return {ranks[static_cast<size_t>(row)], HasText(*values, row)};
  }
};

class Ranker {
 public:
  explicit Ranker(const arrow::RecordBatch& sample) : sample_(sample) {}

  Status AddColumn(const std::string& path) {
    ColumnValues column;
    column.path = path;
    ARROW_ASSIGN_OR_RAISE(column.sample, ColumnOf(sample_, path));
    column.own_type = column.sample->type();
    ARROW_RETURN_NOT_OK(CheckOrdered(*column.own_type, path));
    column.type = pq::ComparableType(column.own_type);
    ARROW_ASSIGN_OR_RAISE(column.sample,
                          scan::ToComparable(std::move(column.sample), column.type));
    columns_.push_back(std::move(column));
    return Status::OK();
  }

  Status Bind(const LoggedQuery& query) {
    std::vector<scan::PredicateColumn> columns;
    for (const std::string& path : query.predicate.columns()) {
      const auto found = std::ranges::find(columns_, path, &ColumnValues::path);
      columns.push_back({path, found == columns_.end() ? nullptr : found->own_type});
    }
    auto bound = scan::BoundPredicate::Bind(query.predicate, std::move(columns));
    if (!bound.ok()) return AddContext(bound.status(), "predicate", query.text);
    bound_.push_back(*std::move(bound));
    CollectLiterals(*bound_.back(), bound_.back()->root());
    return Status::OK();
  }

  Result<LogRanks> Run(const std::vector<LoggedQuery>& log) {
    LogRanks out;
    for (ColumnValues& column : columns_) ARROW_RETURN_NOT_OK(column.Rank());
    for (size_t q = 0; q < log.size(); ++q) {
      std::vector<RankBox> boxes = BoxesOf(*bound_[q], bound_[q]->root());
      const auto is_all = [](const RankBox& box) {
        return std::ranges::all_of(box, &RankRange::is_all);
      };
      // Nothing, or all there is: no cut changes it.
      if (boxes.empty() || std::ranges::any_of(boxes, is_all)) continue;
      out.queries.push_back({std::move(boxes), log[q].weight});
    }
    KeepAsked(&out);
    return out;
  }

 private:
  ColumnValues* ColumnOfAtom(const scan::BoundPredicate& predicate, const scan::BoundAtom& atom) {
    const auto& path = predicate.columns()[static_cast<size_t>(atom.column)].path;
    const auto found = std::ranges::find(columns_, path, &ColumnValues::path);
    return found == columns_.end() ? nullptr : &*found;
  }

  // The values that an atom compares with, in the order in which RangesOf asks for their ranks.
  static std::vector<ScalarPtr> ValuesOf(const scan::BoundAtom& atom,
                                         const std::shared_ptr<arrow::DataType>& type) {
    if (atom.op != Op::kLike) return atom.values;
    std::vector<ScalarPtr> out;
    const std::string prefix = scan::LikePrefix(atom.pattern);
    if (prefix.empty()) return out;
    const auto text = [&](const std::string& bytes) -> ScalarPtr {
      if (type->id() == arrow::Type::LARGE_STRING) {
        return std::make_shared<arrow::LargeStringScalar>(bytes);
      }
      return std::make_shared<arrow::StringScalar>(bytes);
    };
    out.push_back(text(prefix));
    if (const auto end = scan::PrefixEnd(prefix)) out.push_back(text(*end));
    return out;
  }

  void CollectLiterals(const scan::BoundPredicate& predicate, const scan::BoundNode& node) {
    for (const auto& child : node.children) CollectLiterals(predicate, child);
    if (node.kind != scan::PredicateNode::Kind::kAtom) return;
    ColumnValues* column = ColumnOfAtom(predicate, node.atom);
    if (column == nullptr) return;
    for (ScalarPtr& value : ValuesOf(node.atom, column->type)) {
      column->literals.push_back(std::move(value));
    }
  }

  // What the boxes of a tree are, in the same walk as CollectLiterals.
  std::vector<RankBox> BoxesOf(const scan::BoundPredicate& predicate, const scan::BoundNode& node) {
    if (node.kind == scan::PredicateNode::Kind::kAtom) return AtomBoxes(predicate, node.atom);
    std::optional<std::vector<RankBox>> boxes;
    for (const auto& child : node.children) {
      std::vector<RankBox> some = BoxesOf(predicate, child);
      if (!boxes) {
        boxes = std::move(some);
      } else if (node.kind == scan::PredicateNode::Kind::kOr) {
        boxes->insert(boxes->end(), some.begin(), some.end());
      } else {
        boxes = Intersect(std::move(*boxes), std::move(some));
      }
      Join(&*boxes);
    }
    return boxes.value_or(std::vector<RankBox>{});
  }

  // Too many boxes become the one around them.
  static void Join(std::vector<RankBox>* boxes) {
    if (boxes->size() <= kBoxesMax) return;
    RankBox around = boxes->front();
    for (const RankBox& box : *boxes) {
      for (size_t c = 0; c < box.size(); ++c) {
        around[c] = {std::min(around[c].begin, box[c].begin), std::max(around[c].end, box[c].end)};
      }
    }
    *boxes = {std::move(around)};
  }

  static std::vector<RankBox> Intersect(const std::vector<RankBox>& a,
                                        const std::vector<RankBox>& b) {
    std::vector<RankBox> out;
    for (const RankBox& left : a) {
      for (const RankBox& right : b) {
        RankBox both = left;
        bool empty = false;
        for (size_t c = 0; c < both.size(); ++c) {
          both[c] = {std::max(left[c].begin, right[c].begin), std::min(left[c].end, right[c].end)};
          empty = empty || both[c].begin >= both[c].end;
        }
        if (!empty) out.push_back(std::move(both));
      }
    }
    return out;
  }

  std::vector<RankBox> AtomBoxes(const scan::BoundPredicate& predicate,
                                 const scan::BoundAtom& atom) {
    const RankBox all(columns_.size());
    ColumnValues* column = ColumnOfAtom(predicate, atom);
    if (column == nullptr) return {all};
    std::vector<RankBox> boxes;
    for (const RankRange& range : RangesOf(atom, column)) {
      if (range.begin >= range.end) continue;
      boxes.push_back(all);
      boxes.back()[static_cast<size_t>(column - columns_.data())] = range;
    }
    Join(&boxes);
    return boxes;
  }

  static std::vector<RankRange> RangesOf(const scan::BoundAtom& atom, ColumnValues* column) {
    struct Place {
      uint32_t at, after;   // ranks from `at` on hold values >= it, from `after` on values > it
    };
    std::vector<Place> places;
    for (size_t i = ValuesOf(atom, column->type).size(); i > 0; --i) {
      const auto [rank, begins] = column->Next();
      places.push_back({begins ? rank : rank + 1, rank + 1});
    }
    const auto top = static_cast<uint32_t>(column->rank_values.size());
    const RankRange values{1, kNoEnd};
    switch (atom.op) {
      case Op::kLess:
        if (atom.negated) return {{places[0].at, kNoEnd}};
        return {{1, places[0].at}};
      case Op::kLessEqual:
        if (atom.negated) return {{places[0].after, kNoEnd}};
        return {{1, places[0].after}};
      case Op::kGreater:   // its opposite holds for NaN, which lies at the top
        if (atom.negated) return {{1, places[0].after}, {top, kNoEnd}};
        return {{places[0].after, kNoEnd}};
      case Op::kGreaterEqual:
        if (atom.negated) return {{1, places[0].at}, {top, kNoEnd}};
        return {{places[0].at, kNoEnd}};
      case Op::kEqual:
      case Op::kIn: {
        if (atom.negated) return {RankRange{}};
        std::vector<RankRange> out;
        for (const Place& place : places) out.push_back({place.at, place.after});
        return out;
      }
      case Op::kLike:
        if (atom.negated || places.empty()) return {RankRange{}};
        return {{places[0].at, places.size() > 1 ? places[1].at : kNoEnd}};
      case Op::kNotEqual: return {RankRange{}};
      case Op::kIsNull: return {atom.negated ? values : RankRange{0, 1}};
      case Op::kIsNaN: return {atom.negated ? RankRange{} : RankRange{top, kNoEnd}};
      case Op::kIsValid: return atom.negated ? std::vector<RankRange>{} : std::vector{values};
      case Op::kUnknown: return {};
      case Op::kUntyped: return {RankRange{}};
    }
    return {RankRange{}};
  }

  // Only columns that a query asks for are cut.
  void KeepAsked(LogRanks* out) {
    std::vector<size_t> kept;
    for (size_t c = 0; c < columns_.size(); ++c) {
      const bool asked = std::ranges::any_of(out->queries, [c](const RankQuery& query) {
        return std::ranges::any_of(query.boxes, [c](const RankBox& b) { return !b[c].is_all(); });
      });
      if (asked) kept.push_back(c);
    }
    for (RankQuery& query : out->queries) {
      for (RankBox& box : query.boxes) {
        RankBox own;
        for (const size_t c : kept) own.push_back(box[c]);
        box = std::move(own);
      }
    }
    for (const size_t c : kept) {
      ColumnValues& column = columns_[c];
      column.ranks.resize(static_cast<size_t>(column.sample->length()));
      out->columns.push_back(column.path);
      out->ranks.push_back(std::move(column.ranks));
      out->values.push_back(std::move(column.values));
      out->rank_values.push_back(std::move(column.rank_values));
    }
  }

  const arrow::RecordBatch& sample_;
  std::vector<ColumnValues> columns_;
  std::vector<std::shared_ptr<const scan::BoundPredicate>> bound_;
};

}  // namespace

Result<std::string> LogRanks::TextAt(size_t column, uint32_t rank) const {
  ARROW_ASSIGN_OR_RAISE(const auto value,
                        values[column]->GetScalar(rank_values[column][rank - 1]));
  return TextOf(*value);
}

Result<LogRanks> RankLog(const std::vector<LoggedQuery>& log,
                         const std::vector<std::string>& columns,
                         const arrow::RecordBatch& sample) {
  ARROW_RETURN_NOT_OK(scan::EnsureCompute());
  Ranker ranker(sample);
  for (const std::string& path : ColumnsOf(log)) {
    if (std::ranges::find(columns, path) == columns.end()) continue;
    ARROW_RETURN_NOT_OK(ranker.AddColumn(path));
  }
  for (const LoggedQuery& query : log) ARROW_RETURN_NOT_OK(ranker.Bind(query));
  return ranker.Run(log);
}

}  // namespace grebe::layout

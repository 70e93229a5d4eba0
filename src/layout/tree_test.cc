// Partition trees: the texts of cut values, logs as boxes of ranks, cuts, and the leaves of rows.
#include <arrow/api.h>
#include <arrow/util/decimal.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <set>

#include "base/rng.h"
#include "curve/curve.h"
#include "key/key.h"
#include "layout/bound_text.h"
#include "layout/cut_tree.h"
#include "layout/cuts.h"
#include "layout/log_ranks.h"
#include "layout/table_tree.h"
#include "layout/value_order.h"
#include "scan/predicate_value.h"
#include "testing/seed.h"

namespace grebe::layout {
namespace {

using ArrayPtr = std::shared_ptr<arrow::Array>;
using TypePtr = std::shared_ptr<arrow::DataType>;

// ---- random columns of every type that has an order ----

const std::vector<TypePtr>& OrderedTypes() {
  static const std::vector<TypePtr> types = {
      arrow::boolean(), arrow::int8(), arrow::int16(), arrow::int32(), arrow::int64(),
      arrow::uint8(), arrow::uint16(), arrow::uint32(), arrow::uint64(), arrow::float16(),
      arrow::float32(), arrow::float64(), arrow::utf8(), arrow::large_utf8(), arrow::utf8_view(),
      arrow::binary(), arrow::large_binary(), arrow::binary_view(), arrow::fixed_size_binary(3),
      arrow::fixed_size_binary(16), arrow::date32(), arrow::date64(),
      arrow::time32(arrow::TimeUnit::SECOND), arrow::time32(arrow::TimeUnit::MILLI),
      arrow::time64(arrow::TimeUnit::MICRO), arrow::time64(arrow::TimeUnit::NANO),
      arrow::timestamp(arrow::TimeUnit::SECOND), arrow::timestamp(arrow::TimeUnit::MILLI, "UTC"),
      arrow::timestamp(arrow::TimeUnit::MICRO),
      arrow::timestamp(arrow::TimeUnit::NANO, "Europe/Berlin"),
      arrow::duration(arrow::TimeUnit::MILLI), arrow::decimal32(9, 2), arrow::decimal64(15, 3),
      arrow::decimal128(38, 7), arrow::decimal256(70, 10)};
  return types;
}

// A random value, few or many different ones by `spread`.
Status AppendRandom(arrow::ArrayBuilder* builder, uint64_t spread, Rng* rng) {
  const TypePtr type = builder->type();
  const auto whole = static_cast<int64_t>(rng->Below(2 * spread)) - static_cast<int64_t>(spread);
  const auto append = [&]<class Builder>(std::type_identity<Builder>, auto value) {
    return static_cast<Builder*>(builder)->Append(value);
  };
  const std::string text = "https://example.org/" + std::string(rng->Below(3), 'x') +
                           std::to_string(whole) + (rng->Chance(0.02) ? std::string(300, 'y') : "");
  const double real = rng->Chance(0.05) ? (rng->Chance(0.5) ? NAN : INFINITY)
                                        : std::ldexp(static_cast<double>(whole), -2);
  const auto time = [&] {
    const auto unit = static_cast<const arrow::TimeType&>(*type).unit();
    return static_cast<int64_t>(rng->Below(std::min<uint64_t>(spread, 86400))) *
           static_cast<int64_t>(std::pow(1000, static_cast<int>(unit))) + std::abs(whole % 2);
  };
  switch (type->id()) {
    case arrow::Type::BOOL:
      return append(std::type_identity<arrow::BooleanBuilder>{}, whole > 0);
    case arrow::Type::HALF_FLOAT:   // bits: halves of all kinds, NaN and the infinities among them
      return append(std::type_identity<arrow::HalfFloatBuilder>{},
                    static_cast<uint16_t>(rng->Next()));
    case arrow::Type::FLOAT:
      return append(std::type_identity<arrow::FloatBuilder>{}, static_cast<float>(real));
    case arrow::Type::DOUBLE: return append(std::type_identity<arrow::DoubleBuilder>{}, real);
    case arrow::Type::STRING: return append(std::type_identity<arrow::StringBuilder>{}, text);
    case arrow::Type::LARGE_STRING:
      return append(std::type_identity<arrow::LargeStringBuilder>{}, text);
    case arrow::Type::STRING_VIEW:
      return append(std::type_identity<arrow::StringViewBuilder>{}, std::string_view(text));
    case arrow::Type::BINARY:
      return append(std::type_identity<arrow::BinaryBuilder>{}, "\xff" + text);
    case arrow::Type::LARGE_BINARY:
      return append(std::type_identity<arrow::LargeBinaryBuilder>{}, "\xff" + text);
    case arrow::Type::BINARY_VIEW:
      return append(std::type_identity<arrow::BinaryViewBuilder>{}, std::string_view(text));
    case arrow::Type::TIME32:
      return append(std::type_identity<arrow::Time32Builder>{}, static_cast<int32_t>(time()));
    case arrow::Type::TIME64: return append(std::type_identity<arrow::Time64Builder>{}, time());
    case arrow::Type::TIMESTAMP:
      return append(std::type_identity<arrow::TimestampBuilder>{}, whole * 86399123456789);
    case arrow::Type::DATE64:
      return append(std::type_identity<arrow::Date64Builder>{}, whole * 86400000);
    case arrow::Type::FIXED_SIZE_BINARY: {
      std::string bytes(static_cast<size_t>(builder->type()->byte_width()), '\0');
      std::memcpy(bytes.data(), &whole, std::min<size_t>(2, bytes.size()));
      return append(std::type_identity<arrow::FixedSizeBinaryBuilder>{}, bytes);
    }
    default: {   // a whole number as text, which every other type's scalar is parsed from
      const auto width = static_cast<unsigned>(
          static_cast<const arrow::FixedWidthType&>(*type).bit_width());
      const int64_t most = width >= 32 ? INT32_MAX : (int64_t{1} << (width - 1)) - 1;
      int64_t value = std::clamp(whole, -most, most);
      if (arrow::is_unsigned_integer(type->id())) value = std::abs(value);
      if (type->id() == arrow::Type::DATE32) {
        return append(std::type_identity<arrow::Date32Builder>{}, static_cast<int32_t>(value));
      }
      std::string digits = std::to_string(value);
      if (type->id() == arrow::Type::DECIMAL256) digits += "123456789012345678901234567890.5";
      ARROW_ASSIGN_OR_RAISE(auto scalar, key::ParseValue(*type, digits));
      return builder->AppendScalar(*scalar);
    }
  }
}

ArrayPtr RandomColumn(const TypePtr& type, int64_t rows, uint64_t spread, Rng* rng) {
  auto builder = arrow::MakeBuilder(type).ValueOrDie();
  const double nulls = rng->Chance(0.5) ? 0 : 0.2;
  for (int64_t i = 0; i < rows; ++i) {
    const Status status =
        rng->Chance(nulls) ? builder->AppendNull() : AppendRandom(builder.get(), spread, rng);
    EXPECT_TRUE(status.ok()) << type->ToString() << status;
  }
  return builder->Finish().ValueOrDie();
}

ArrayPtr Comparable(const ArrayPtr& values) {
  return scan::ToComparable(values, pq::ComparableType(values->type())).ValueOrDie();
}

// What a cut's text means to a column, as an array of one value; null: not exactly a value of it.
ArrayPtr ValueOfText(const std::string& text, const TypePtr& type) {
  scan::Literal literal;
  literal.kind = scan::Literal::Kind::kText;
  literal.text = text;
  const auto placed = scan::PlaceLiteral(literal, type);
  EXPECT_TRUE(placed.ok()) << placed.status();
  if (!placed.ok() || placed->place != scan::PlacedValue::Place::kExact) return nullptr;
  return arrow::MakeArrayFromScalar(*placed->value, 1).ValueOrDie();
}

TEST(BoundText, EveryValueIsReadBackAsItself) {
  const uint64_t seed = testing::Seed("tree");
  SCOPED_TRACE(seed);
  Rng rng(seed);
  for (const TypePtr& type : OrderedTypes()) {
    const ArrayPtr column = RandomColumn(type, 300, rng.Chance(0.5) ? 50 : 1000000, &rng);
    const ArrayPtr values = Comparable(column);
    int texts = 0;
    for (int64_t i = 0; i < values->length(); ++i) {
      if (values->IsNull(i) || !HasText(*values, i)) continue;
      const auto text = TextOf(*values->GetScalar(i).ValueOrDie());
      ASSERT_TRUE(text.ok()) << type->ToString() << text.status();
      const ArrayPtr read = ValueOfText(*text, type);
      ASSERT_NE(read, nullptr) << type->ToString() << " " << *text;
      EXPECT_EQ(CompareValues(*values, i, *read, 0), 0) << type->ToString() << " " << *text;
      ++texts;
    }
    EXPECT_GT(texts, 150) << type->ToString();
  }
}

TEST(BoundText, FarTimesAndOddNumbersToo) {
  const auto check = [](const arrow::Scalar& value, const std::string& text) {
    EXPECT_EQ(TextOf(value).ValueOrDie(), text);
    const ArrayPtr read = ValueOfText(text, value.type);
    ASSERT_NE(read, nullptr) << text;
    EXPECT_TRUE(read->GetScalar(0).ValueOrDie()->Equals(value)) << text;
  };
  const auto seconds = arrow::timestamp(arrow::TimeUnit::SECOND);
  check(arrow::TimestampScalar(-62135596800 - 86400, seconds), "0000-12-31T00:00:00");
  check(arrow::TimestampScalar(-62167219200 - 1, seconds), "-0001-12-31T23:59:59");
  check(arrow::TimestampScalar(951782400, seconds), "2000-02-29T00:00:00");
  check(arrow::TimestampScalar(-1, arrow::timestamp(arrow::TimeUnit::NANO)),
        "1969-12-31T23:59:59.999999999");
  check(arrow::TimestampScalar(INT64_MIN, arrow::timestamp(arrow::TimeUnit::MICRO)),
        "-290308-12-21T19:59:05.224192");
  check(arrow::Date32Scalar(INT32_MAX), "5881580-07-11");
  check(arrow::DoubleScalar(-std::numeric_limits<double>::infinity()), "-inf");
  check(arrow::DoubleScalar(5e-324), "5e-324");
  check(arrow::FloatScalar(16777216.0F), "16777216");
  check(arrow::UInt64Scalar(UINT64_MAX), "18446744073709551615");
  check(arrow::BinaryScalar(std::string("\0\xff", 2)), "0x00ff");
  EXPECT_FALSE(HasText(*arrow::MakeArrayFromScalar(arrow::DoubleScalar(NAN), 1).ValueOrDie(), 0));
  EXPECT_FALSE(HasText(*arrow::MakeArrayFromScalar(arrow::StringScalar("\xff"), 1).ValueOrDie(),
                       0));
}

// ---- cuts ----

using Ranks = std::vector<std::vector<uint32_t>>;

int LeafOf(const std::vector<CutNode>& nodes, const Ranks& ranks, size_t row) {
  size_t at = 0;
  while (nodes[at].leaf < 0) {
    const bool below = ranks[static_cast<size_t>(nodes[at].column)][row] < nodes[at].bound;
    at = static_cast<size_t>(below ? nodes[at].below : nodes[at].above);
  }
  return nodes[at].leaf;
}

Ranks RandomRanks(size_t columns, size_t rows, uint32_t distinct, Rng* rng) {
  Ranks ranks(columns, std::vector<uint32_t>(rows));
  for (auto& column : ranks) {
    for (uint32_t& rank : column) rank = static_cast<uint32_t>(rng->Below(distinct));
  }
  return ranks;
}

RankQuery RandomQuery(size_t columns, uint32_t distinct, Rng* rng) {
  RankQuery query;
  for (uint64_t box = rng->Below(3) + 1; box > 0; --box) {
    query.boxes.emplace_back(columns);
    for (RankRange& range : query.boxes.back()) {
      if (rng->Chance(0.5)) continue;
      const auto begin = static_cast<uint32_t>(rng->Below(distinct));
      range = {begin, begin + 1 + static_cast<uint32_t>(rng->Below(distinct - begin))};
    }
  }
  query.weight = 1 + static_cast<double>(rng->Below(5));
  return query;
}

TEST(CutTree, LeavesAreNearTheTargetAndHoldEachRowOnce) {
  const uint64_t seed = testing::Seed("tree");
  SCOPED_TRACE(seed);
  Rng rng(seed);
  for (int round = 0; round < 60; ++round) {
    const size_t rows = 500 + rng.Below(6000), columns = 1 + rng.Below(3);
    const auto distinct = static_cast<uint32_t>(rng.Chance(0.5) ? 1000000 : 1 + rng.Below(20));
    const Ranks ranks = RandomRanks(columns, rows, distinct, &rng);
    std::vector<RankQuery> queries;
    for (uint64_t i = rng.Below(40); i > 0; --i) {
      queries.push_back(RandomQuery(columns, distinct, &rng));
    }
    const double target = 60 + static_cast<double>(rng.Below(500));
    const auto nodes = BuildCutTree(ranks, queries, target);
    std::map<int, std::vector<size_t>> leaves;
    for (size_t row = 0; row < rows; ++row) leaves[LeafOf(nodes, ranks, row)].push_back(row);
    int leaf_count = 0;
    for (const CutNode& node : nodes) {
      if (node.leaf < 0) continue;
      EXPECT_EQ(node.leaf, leaf_count);
      ++leaf_count;
    }
    EXPECT_EQ(static_cast<int>(leaves.size()), leaf_count) << "a leaf is empty";
    for (const auto& [leaf, own] : leaves) {
      const auto size = static_cast<double>(own.size());
      const bool alike = std::all_of(ranks.begin(), ranks.end(), [&](const auto& column) {
        return std::all_of(own.begin(), own.end(),
                           [&](size_t row) { return column[row] == column[own[0]]; });
      });
      if (!alike) {
        EXPECT_LE(size, kCutHigh * target);
      }
      if (distinct > 1000 && static_cast<double>(rows) > target) {
        EXPECT_GE(size, std::floor(kCutLow * target)) << "rows " << rows;
      }
    }
  }
}

TEST(CutTree, OnlyColumnsThatQueriesAskForAreCut) {
  Rng rng(5);
  const Ranks ranks = RandomRanks(2, 8000, 1000000, &rng);
  std::vector<RankQuery> queries;
  for (int i = 0; i < 50; ++i) {
    RankQuery query;
    const auto begin = static_cast<uint32_t>(rng.Below(900000));
    query.boxes = {{RankRange{}, RankRange{begin, begin + 10000}}};
    queries.push_back(query);
  }
  for (const CutNode& node : BuildCutTree(ranks, queries, 200)) EXPECT_NE(node.column, 0);
}

TEST(CutTree, AQueryAskedAgainAndAgainGetsCutsAtItsEnds) {
  Rng rng(6);
  const Ranks ranks = RandomRanks(2, 8000, 1000000, &rng);
  RankQuery query;
  query.boxes = {{RankRange{300000, 420000}, RankRange{}}};
  query.weight = 1000;
  std::set<uint32_t> bounds;
  for (const CutNode& node : BuildCutTree(ranks, {query}, 200)) {
    if (node.column == 0) bounds.insert(node.bound);
  }
  EXPECT_TRUE(bounds.contains(300000));
  EXPECT_TRUE(bounds.contains(420000));
}

// The workloads that the layouts' goals are set for, small: rows of the leaves that held-out
// queries meet, over those of the cells of a Z-order cut as a rewrite cuts it.
double OverZOrder(size_t columns, const std::vector<double>& weights, Rng* rng) {
  constexpr size_t kRows = 1 << 16, kFiles = 64;
  constexpr int kBits = 12;
  Ranks ranks = RandomRanks(columns, kRows, 1u << kBits, rng);
  std::vector<RankQuery> log, held_out;
  for (int i = 0; i < 900; ++i) {
    const double draw = rng->Fraction() * std::accumulate(weights.begin(), weights.end(), 0.0);
    size_t kind = 0;
    for (double sum = weights[0]; sum < draw; sum += weights[kind]) ++kind;
    const auto width = static_cast<uint32_t>((1u << kBits) * std::pow(10, -1 - i % 3)) + 1;
    RankQuery query;
    query.boxes.emplace_back(columns);
    for (size_t c = 0; c < columns; ++c) {
      const auto begin = static_cast<uint32_t>(rng->Below((1u << kBits) - width));
      if (kind == c || kind == columns) query.boxes[0][c] = {begin, begin + width};
    }
    (i % 2 == 0 ? log : held_out).push_back(std::move(query));
  }
  const auto reads = [&](const std::vector<int>& file_of, int files) {
    std::vector<RankBox> boxes(static_cast<size_t>(files), RankBox(columns, {UINT32_MAX, 0}));
    std::vector<double> sizes(static_cast<size_t>(files));
    for (size_t row = 0; row < kRows; ++row) {
      const auto file = static_cast<size_t>(file_of[row]);
      sizes[file] += 1;
      for (size_t c = 0; c < columns; ++c) {
        boxes[file][c] = {std::min(boxes[file][c].begin, ranks[c][row]),
                          std::max(boxes[file][c].end, ranks[c][row] + 1)};
      }
    }
    double read = 0;
    for (const RankQuery& query : held_out) {
      for (size_t file = 0; file < boxes.size(); ++file) {
        bool meets = true;
        for (size_t c = 0; c < columns; ++c) {
          meets = meets && boxes[file][c].begin < query.boxes[0][c].end &&
                  query.boxes[0][c].begin < boxes[file][c].end;
        }
        read += meets ? sizes[file] : 0;
      }
    }
    return read;
  };
  const auto nodes = BuildCutTree(ranks, log, kRows / kFiles);
  std::vector<int> leaf_of(kRows), cell_of(kRows);
  for (size_t row = 0; row < kRows; ++row) leaf_of[row] = LeafOf(nodes, ranks, row);
  std::vector<const uint32_t*> arrays;
  for (const auto& column : ranks) arrays.push_back(column.data());
  std::vector<uint64_t> keys(kRows);
  curve::Curve(curve::CurveKind::kZOrder, std::vector<int>(columns, kBits))
      .Keys64(arrays, kRows, keys.data());
  std::vector<size_t> order(kRows);
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, {}, [&](size_t row) { return keys[row]; });
  const auto ends = AllCuts(kRows, kRows / kFiles, [&](int64_t i) {
    return CellLevel(keys[order[static_cast<size_t>(i) - 1]], keys[order[static_cast<size_t>(i)]]);
  });
  for (size_t i = 0, file = 0; i < kRows; ++i) {
    if (static_cast<int64_t>(i) == ends[file]) ++file;
    cell_of[order[i]] = static_cast<int>(file);
  }
  return reads(leaf_of, static_cast<int>(nodes.size())) /
         reads(cell_of, static_cast<int>(ends.size()));
}

TEST(CutTree, OnHeldOutQueriesItReadsLessThanACurve) {
  const uint64_t seed = testing::Seed("tree");
  SCOPED_TRACE(seed);
  Rng rng(seed);
  EXPECT_LE(OverZOrder(2, {1, 1, 1}, &rng), 0.95);       // seen: 0.89 to 0.91
  EXPECT_LE(OverZOrder(3, {1, 1, 0, 1}, &rng), 0.62);    // none on the third alone; 0.52 to 0.54
  EXPECT_LE(OverZOrder(2, {8, 1, 1}, &rng), 0.75);       // 0.65 to 0.69
}

// ---- logs ----

std::vector<LoggedQuery> Log(const std::string& text) {
  auto log = ParseQueryLog(text);
  EXPECT_TRUE(log.ok()) << log.status() << text;
  return *log;
}

std::shared_ptr<arrow::RecordBatch> Rows(const std::vector<std::string>& names,
                                         const arrow::ArrayVector& columns) {
  arrow::FieldVector fields;
  for (size_t c = 0; c < columns.size(); ++c) {
    fields.push_back(arrow::field(names[c], columns[c]->type()));
  }
  return arrow::RecordBatch::Make(arrow::schema(fields), columns[0]->length(), columns);
}

TEST(QueryLog, ANumberBeforeAnOperatorIsNoCount) {
  const auto log = Log("12 < a\n12 a < 3\n3 = a # 4\n5\ta = 1\n7 a <> 7\n7 <> a\n");
  std::vector<std::pair<std::string, double>> read;
  for (const LoggedQuery& query : log) read.emplace_back(query.text, query.weight);
  using ::testing::Pair;
  EXPECT_THAT(read, ::testing::ElementsAre(Pair("12 < a", 1), Pair("a < 3", 12), Pair("3 = a", 4),
                                           Pair("a = 1", 5), Pair("a <> 7", 7),
                                           Pair("7 <> a", 1)));
}

// A predicate on a column with a value of it (or one near).
std::string RandomAtom(const std::string& name, const ArrayPtr& values, Rng* rng) {
  const ArrayPtr own = Comparable(values);
  for (int tries = 0; tries < 50; ++tries) {
    const auto row = static_cast<int64_t>(rng->Below(static_cast<uint64_t>(own->length())));
    if (own->IsNull(row) || !HasText(*own, row)) continue;
    const std::string value = "'" + TextOf(*own->GetScalar(row).ValueOrDie()).ValueOrDie() + "'";
    switch (rng->Below(7)) {
      case 0: return name + " = " + value;
      case 1: return name + " IN (" + value + ", " + value + ")";
      case 2: return name + " IS NULL";
      case 3: return "NOT " + name + (rng->Chance(0.5) ? " < " : " >= ") + value;
      default: {
        const char* const ops[] = {" < ", " <= ", " > ", " >= "};
        return name + ops[rng->Below(4)] + value;
      }
    }
  }
  return name + " IS NOT NULL";
}

std::string RandomPredicate(const std::vector<std::string>& names,
                            const arrow::ArrayVector& columns, Rng* rng, int depth = 0) {
  if (depth > 2 || rng->Chance(0.4)) {
    const auto c = rng->Below(columns.size());
    return RandomAtom(names[c], columns[c], rng);
  }
  return "(" + RandomPredicate(names, columns, rng, depth + 1) +
         (rng->Chance(0.6) ? " AND " : " OR ") + RandomPredicate(names, columns, rng, depth + 1) +
         ")";
}

TEST(LogRanks, NoWantedRowIsOutsideOfItsQuerysBoxes) {
  const uint64_t seed = testing::Seed("tree");
  SCOPED_TRACE(seed);
  Rng rng(seed);
  const std::vector<std::string> names = {"a", "b"};
  for (int round = 0; round < 40; ++round) {
    arrow::ArrayVector columns;
    for (int c = 0; c < 2; ++c) {
      columns.push_back(RandomColumn(OrderedTypes()[rng.Below(OrderedTypes().size())], 400,
                                     rng.Chance(0.5) ? 5 : 100000, &rng));
    }
    const auto rows = Rows(names, columns);
    std::string text;
    for (int i = 0; i < 8; ++i) text += RandomPredicate(names, columns, &rng) + "\n";
    const auto log = Log(text);
    for (const LoggedQuery& query : log) {
      const auto ranked = RankLog({query}, names, *rows);
      ASSERT_TRUE(ranked.ok()) << ranked.status();
      std::vector<scan::PredicateColumn> types;
      arrow::FieldVector fields;
      arrow::ArrayVector asked;
      for (const std::string& path : query.predicate.columns()) {
        const auto column = rows->GetColumnByName(path);
        types.push_back({path, column->type()});
        asked.push_back(Comparable(column));
        fields.push_back(arrow::field(path, asked.back()->type()));
      }
      const auto bound = scan::BoundPredicate::Bind(query.predicate, types).ValueOrDie();
      std::vector<RowRange> wanted;
      ASSERT_TRUE(bound->Filter(*arrow::RecordBatch::Make(arrow::schema(fields), 400, asked), 0,
                                &wanted).ok());
      if (ranked->queries.empty()) continue;   // asks for nothing that can be cut, or for nothing
      ASSERT_EQ(ranked->queries.size(), 1);
      for (const RowRange& range : wanted) {
        for (int64_t row = range.begin; row < range.end; ++row) {
          const bool inside = std::ranges::any_of(ranked->queries[0].boxes, [&](const auto& box) {
            for (size_t c = 0; c < box.size(); ++c) {
              const uint32_t rank = ranked->ranks[c][static_cast<size_t>(row)];
              if (rank < box[c].begin || rank >= box[c].end) return false;
            }
            return true;
          });
          ASSERT_TRUE(inside) << query.text << " row " << row;
        }
      }
    }
  }
}

TEST(LogRanks, RangesHoldWhatTheyAskForAndNoMore) {
  arrow::Int32Builder builder;
  ASSERT_TRUE(builder.AppendValues({10, 20, 30, 40, 50}).ok());
  ASSERT_TRUE(builder.AppendNull().ok());
  arrow::StringBuilder texts;
  ASSERT_TRUE(texts.AppendValues({"a", "ab", "abc", "b", "c", "d"}).ok());
  const auto rows = Rows({"n", "t"}, {builder.Finish().ValueOrDie(), texts.Finish().ValueOrDie()});
  struct Case {
    const char* predicate;
    std::vector<int> wanted;   // rows in a box
  };
  for (const Case& c : {Case{"n < 30", {0, 1}}, {"n <= 30", {0, 1, 2}}, {"n > 25.5", {2, 3, 4}},
                        {"n BETWEEN 20 AND 40", {1, 2, 3}}, {"n = 20 OR n = 50", {1, 4}},
                        {"n NOT BETWEEN 20 AND 40", {0, 4}}, {"n IN (10, 11, 40)", {0, 3}},
                        {"n IS NULL", {5}}, {"n IS NOT NULL", {0, 1, 2, 3, 4}},
                        {"t LIKE 'ab%'", {1, 2}}, {"t LIKE 'ab%' AND n > 20", {2}}}) {
    const auto ranked = RankLog(Log(c.predicate), {"n", "t"}, *rows);
    ASSERT_TRUE(ranked.ok()) << ranked.status();
    ASSERT_EQ(ranked->queries.size(), 1) << c.predicate;
    std::vector<int> inside;
    for (size_t row = 0; row < 6; ++row) {
      const bool in = std::ranges::any_of(ranked->queries[0].boxes, [&](const auto& box) {
        for (size_t k = 0; k < box.size(); ++k) {
          const uint32_t rank = ranked->ranks[k][row];
          if (rank < box[k].begin || rank >= box[k].end) return false;
        }
        return true;
      });
      if (in) inside.push_back(static_cast<int>(row));
    }
    EXPECT_EQ(inside, c.wanted) << c.predicate;
  }
  for (const char* predicate : {"n != 20", "t NOT LIKE 'a%'", "n NOT IN (1, 2)", "n = NULL",
                                "n = 1 OR t != 'a'"}) {
    EXPECT_TRUE(RankLog(Log(predicate), {"n", "t"}, *rows)->columns.empty()) << predicate;
  }
}

// ---- trees over tables ----

// By the words of table_tree.h, one comparison of values at each cut.
uint32_t SlowLeaf(const TableTree& tree, const std::vector<ArrayPtr>& comparable,
                  const std::vector<ArrayPtr>& cuts, int64_t row) {
  size_t at = 0;
  while (!tree.nodes()[at].is_leaf()) {
    const auto& node = tree.nodes()[at];
    const auto column = static_cast<size_t>(
        std::ranges::find(tree.columns(), node.column) - tree.columns().begin());
    const bool below = CompareValues(*comparable[column], row, *cuts[at], 0) < 0;
    at = static_cast<size_t>(below ? node.below : node.above);
  }
  return static_cast<uint32_t>(tree.nodes()[at].leaf);
}

TEST(TableTree, FindsTheLeavesThatComparingValuesFindsForEveryType) {
  const uint64_t seed = testing::Seed("tree");
  SCOPED_TRACE(seed);
  Rng rng(seed);
  for (const TypePtr& type : OrderedTypes()) {
    SCOPED_TRACE(type->ToString());
    const std::vector<std::string> names = {"a", "b"};
    const arrow::ArrayVector columns = {
        RandomColumn(type, 5000, 100000, &rng),
        RandomColumn(OrderedTypes()[rng.Below(OrderedTypes().size())], 5000, 1000, &rng)};
    const auto rows = Rows(names, columns);
    std::string text;
    for (int i = 0; i < 30; ++i) {
      text += RandomAtom("a", columns[0], &rng) + "\n" +
              RandomPredicate(names, columns, &rng) + "\n";
    }
    const auto tree = TableTree::Learn(Log(text), names, *rows, 200);
    ASSERT_TRUE(tree.ok()) << tree.status();
    const auto finder = LeafFinder::Make(**tree, *rows);
    ASSERT_TRUE(finder.ok()) << finder.status();
    std::vector<uint32_t> leaves(5000);
    ASSERT_TRUE(finder->Leaves(*rows, leaves.data()).ok());
    std::vector<ArrayPtr> comparable, cuts;
    for (const auto& name : (*tree)->columns()) {
      comparable.push_back(Comparable(rows->GetColumnByName(name)));
    }
    for (const auto& node : (*tree)->nodes()) {
      cuts.push_back(node.is_leaf() ? nullptr
                                    : ValueOfText(node.value,
                                                  rows->GetColumnByName(node.column)->type()));
      ASSERT_TRUE(node.is_leaf() || cuts.back() != nullptr) << node.value;
    }
    std::set<uint32_t> seen;
    for (int64_t row = 0; row < 5000; ++row) {
      const uint32_t leaf = leaves[static_cast<size_t>(row)];
      ASSERT_EQ(leaf, SlowLeaf(**tree, comparable, cuts, row)) << row;
      seen.insert(leaf);
    }
    // Few values make few leaves: most small integers here are the type's largest.
    const bool few = type->id() == arrow::Type::BOOL || type->id() == arrow::Type::INT8 ||
                     type->id() == arrow::Type::UINT8;
    EXPECT_GE(seen.size(), few ? 2u : 8u);
    EXPECT_EQ(seen.size(), (*tree)->leaf_count());
  }
}

TEST(TableTree, CutsThatAreNoValuesOfAnotherTypePlaceItsRowsAllTheSame) {
  // a < 7.5, then a < -300 below and a < 300 above.
  std::vector<TableTree::Node> nodes = {{"a", "7.5", 1, 2, -1},  {"a", "-300", 3, 4, -1},
                                        {"a", "300", 5, 6, -1},  {"", "", -1, -1, 0},
                                        {"", "", -1, -1, 1},     {"", "", -1, -1, 2},
                                        {"", "", -1, -1, 3}};
  const auto tree = TableTree::Make({"a"}, nodes).ValueOrDie();
  const std::vector<double> values = {-1000, -300, -129, -128, 0, 7, 7.5, 8, 127, 300, 1e9};
  for (const TypePtr& type : {arrow::int8(), arrow::uint8(), arrow::int64(), arrow::float32(),
                              arrow::float64(), arrow::decimal128(20, 0),
                              arrow::decimal256(40, 3)}) {
    auto builder = arrow::MakeBuilder(type).ValueOrDie();
    std::vector<uint32_t> expected;
    for (const double value : values) {
      char text[32];
      std::snprintf(text, sizeof text, "%g", value);
      const auto scalar = key::ParseValue(*type, value == 1e9 ? "1000000000" : text);
      if (!scalar.ok() || !(*scalar)->type->Equals(*type)) continue;   // no value of the type
      ASSERT_TRUE(builder->AppendScalar(**scalar).ok());
      expected.push_back(value < 7.5 ? (value < -300 ? 0 : 1) : (value < 300 ? 2 : 3));
    }
    ASSERT_TRUE(builder->AppendNull().ok());
    expected.push_back(0);
    const auto rows = Rows({"a"}, {builder->Finish().ValueOrDie()});
    const auto finder = LeafFinder::Make(*tree, *rows);
    ASSERT_TRUE(finder.ok()) << type->ToString() << finder.status();
    std::vector<uint32_t> leaves(expected.size());
    ASSERT_TRUE(finder->Leaves(*rows, leaves.data()).ok());
    EXPECT_EQ(leaves, expected) << type->ToString();
    EXPECT_GE(expected.size(), 5u);
  }
  const auto other = Rows({"a"}, {arrow::MakeEmptyArray(arrow::date32()).ValueOrDie()});
  EXPECT_TRUE(LeafFinder::Make(*tree, *other).status().message().find("7.5") !=
              std::string::npos);
}

TEST(TableTree, WhatIsNoTreeIsRefused) {
  using Nodes = std::vector<TableTree::Node>;
  const TableTree::Node leaf0{"", "", -1, -1, 0}, leaf1{"", "", -1, -1, 1};
  ASSERT_TRUE(TableTree::Make({"a"}, Nodes{{"a", "1", 1, 2, -1}, leaf0, leaf1}).ok());
  for (const Nodes& nodes :
       {Nodes{}, Nodes{leaf1}, Nodes{leaf0, leaf1}, Nodes{{"a", "1", 1, 1, -1}, leaf0},
        Nodes{{"a", "1", 0, 1, -1}, leaf0}, Nodes{{"a", "1", 1, 3, -1}, leaf0, leaf1},
        Nodes{{"a", "1", 1, 2, -1}, leaf0, leaf0}, Nodes{{"b", "1", 1, 2, -1}, leaf0, leaf1},
        Nodes{{"a", "1", -1, 2, -1}, leaf0, leaf1}}) {
    EXPECT_TRUE(IsKind(TableTree::Make({"a"}, nodes).status(), ErrorKind::kInvalidArgument));
  }
  EXPECT_FALSE(TableTree::Make({}, Nodes{leaf0}).ok());
}

TEST(TableTree, ALogThatNoCutHelpsIsRefused) {
  Rng rng(1);
  const auto rows = Rows({"a"}, {RandomColumn(arrow::int32(), 100, 1000, &rng)});
  for (const char* text : {"a != 3\n", "b = 1\n", "a = NULL\n"}) {
    EXPECT_TRUE(IsKind(TableTree::Learn(Log(text), {"a"}, *rows, 10).status(),
                       ErrorKind::kInvalidArgument)) << text;
  }
  EXPECT_TRUE(IsKind(TableTree::Learn(Log("a = 'x'\n"), {"a"}, *rows, 10).status(),
                     ErrorKind::kInvalidArgument));
  EXPECT_TRUE(TableTree::Learn(Log("a = 3\n"), {"a"}, *rows, 10).ok());
}

}  // namespace
}  // namespace grebe::layout

// The pieces of a rewrite: orders of values, gathering, sorting, cuts, plans, partitions, cogroups.
#include <arrow/api.h>
#include <arrow/array/concatenate.h>
#include <arrow/util/decimal.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "base/rng.h"
#include "layout/bucket_ids.h"
#include "layout/cogroup.h"
#include "layout/cuts.h"
#include "layout/dictionaries.h"
#include "layout/gather.h"
#include "layout/layout_spec.h"
#include "layout/rewrite_plan.h"
#include "layout/row_sample.h"
#include "layout/sort_rows.h"
#include "layout/value_order.h"

namespace grebe::layout {
namespace {

using testing::ElementsAre;

template <class Builder, class Value>
std::shared_ptr<arrow::Array> ArrayOf(const std::vector<std::optional<Value>>& values,
                                      std::shared_ptr<Builder> builder = nullptr) {
  if constexpr (std::is_default_constructible_v<Builder>) {
    if (builder == nullptr) builder = std::make_shared<Builder>();
  }
  for (const auto& value : values) {
    EXPECT_TRUE((value ? builder->Append(*value) : builder->AppendNull()).ok());
  }
  return builder->Finish().ValueOrDie();
}

// values are given in their order: each is below the next.
void ExpectOrdered(const arrow::Array& values) {
  std::vector<uint64_t> words(static_cast<size_t>(values.length()));
  ASSERT_TRUE(ValueWords(values, words.data()).ok());
  std::vector<std::string_view> views;
  std::string bytes;
  ASSERT_TRUE(OrderedViews(values, &views, &bytes).ok());
  for (int64_t i = 0; i < values.length(); ++i) {
    for (int64_t j = 0; j < values.length(); ++j) {
      const int order = CompareValues(values, i, values, j);
      EXPECT_EQ(order < 0, i < j) << values.type()->ToString() << " " << i << " " << j;
      EXPECT_EQ(order > 0, i > j);
      if (i >= j) continue;
      EXPECT_LE(words[i], words[j]) << values.type()->ToString();
      if (values.IsNull(i)) continue;
      EXPECT_LT(views[i], views[j]) << values.type()->ToString();
      if (WordsAreExact(*values.type())) {
        EXPECT_LT(words[i], words[j]);
      }
    }
  }
}

TEST(ValueOrder, NullsFirstThenByValueForEveryKindOfType) {
  ExpectOrdered(*ArrayOf<arrow::Int8Builder, int8_t>({std::nullopt, -128, -1, 0, 127}));
  ExpectOrdered(*ArrayOf<arrow::UInt64Builder, uint64_t>({0, 1, uint64_t{1} << 63, UINT64_MAX}));
  ExpectOrdered(*ArrayOf<arrow::DoubleBuilder, double>(
      {std::nullopt, -INFINITY, -1.5, 0.0, 5e-324, 1.0, INFINITY, NAN}));
  ExpectOrdered(*ArrayOf<arrow::HalfFloatBuilder, uint16_t>(
      {0xfc00, 0xbc00, 0x0000, 0x0001, 0x3c00, 0x7c00, 0x7e00}));
  ExpectOrdered(*ArrayOf<arrow::StringBuilder, std::string>(
      {std::nullopt, "", "a", "aaaaaaaab", "aaaaaaaac", "b", "\xc3\xa9"}));
  ExpectOrdered(*ArrayOf<arrow::Decimal256Builder, arrow::Decimal256>(
      {std::nullopt, arrow::Decimal256("-1e70"), arrow::Decimal256("-3"), arrow::Decimal256("0"),
       arrow::Decimal256("9223372036854775808"), arrow::Decimal256("1e70")},
      std::make_shared<arrow::Decimal256Builder>(arrow::decimal256(76, 0))));
}

TEST(ValueOrder, TwoZerosAreOneValueAndNestedTypesHaveNoOrder) {
  const auto zeros = ArrayOf<arrow::DoubleBuilder, double>({-0.0, 0.0});
  EXPECT_EQ(CompareValues(*zeros, 0, *zeros, 1), 0);
  EXPECT_FALSE(CheckOrdered(*arrow::list(arrow::int8()), "l").ok());
}

TEST(Layout, TextIsReadBackAsItWasWritten) {
  for (const char* text : {"sort(a,b.c)", "zorder(\"odd, name\",b)", "hilbert(a,b,c)",
                           "bucket(16,k)", "zorder(a:3,\"x:y\",b:16)",
                           "sort(\"say \"\"a,b\"\"\",c)"}) {
    const auto spec = ParseLayout(text);
    ASSERT_TRUE(spec.ok()) << spec.status();
    EXPECT_EQ(spec->ToString(), text);
  }
  for (const char* text : {"", "sort", "sort()", "sort(a,)", "sort(a,a)", "bucket(k)",
                           "bucket(0,k)", "bucket(2,k,l)", "shuffle(a)", "sort(\"a)",
                           "zorder(a,b:0)", "zorder(a,b:17)", "zorder(a,b:)", "zorder(a,b:x)",
                           "hilbert(a,b:2)", "sort(a:2)", "bucket(2,k:1)"}) {
    EXPECT_FALSE(ParseLayout(text).ok()) << text;
  }
}

TEST(Cuts, EveryPieceIsNearTheTargetAndEndsAtTheHighestBorder) {
  Rng rng(3);
  for (int round = 0; round < 200; ++round) {
    const auto count = static_cast<int64_t>(1 + rng.Below(5000));
    const auto target = static_cast<int64_t>(1 + rng.Below(400));
    std::vector<int> levels(static_cast<size_t>(count) + 1);
    for (int& level : levels) level = static_cast<int>(rng.Below(20));
    const auto level = [&](int64_t i) { return levels[static_cast<size_t>(i)]; };
    const auto ends = AllCuts(count, target, level);
    ASSERT_EQ(ends.back(), count);
    int64_t begin = 0;
    for (const int64_t end : ends) {
      const auto size = static_cast<double>(end - begin);
      EXPECT_LE(size, std::max(1.0, 1.4 * static_cast<double>(target)));
      if (ends.size() > 1) {
        EXPECT_GE(size, std::floor(0.7 * static_cast<double>(target)));
      }
      begin = end;
    }
    const int64_t first = ends.front();
    if (first == count) continue;
    const auto low = std::max<int64_t>(1, static_cast<int64_t>(0.7 * static_cast<double>(target)));
    const int64_t high = std::max(low, std::min(CutLookahead(target), count - low));
    for (int64_t i = low; i <= high; ++i) EXPECT_GE(level(first), level(i));
  }
}

std::shared_ptr<arrow::RecordBatch> RandomRows(int64_t rows, Rng* rng) {
  arrow::Int64Builder numbers;
  arrow::StringBuilder texts;
  arrow::BooleanBuilder flags;
  arrow::ListBuilder lists(arrow::default_memory_pool(), std::make_shared<arrow::Int32Builder>());
  auto* items = static_cast<arrow::Int32Builder*>(lists.value_builder());
  for (int64_t i = 0; i < rows; ++i) {
    EXPECT_TRUE((rng->Chance(0.1) ? numbers.AppendNull()
                                  : numbers.Append(static_cast<int64_t>(rng->Below(50)))).ok());
    EXPECT_TRUE((rng->Chance(0.1) ? texts.AppendNull()
                                  : texts.Append(std::string(rng->Below(20), 'x'))).ok());
    EXPECT_TRUE(flags.Append(rng->Chance(0.5)).ok());
    EXPECT_TRUE((rng->Chance(0.1) ? lists.AppendNull() : lists.Append()).ok());
    for (uint64_t item = rng->Below(4); item > 0; --item) {
      EXPECT_TRUE(items->Append(static_cast<int32_t>(item)).ok());
    }
  }
  const auto numbers_array = numbers.Finish().ValueOrDie();
  const auto texts_array = texts.Finish().ValueOrDie();
  const auto in_struct = arrow::StructArray::Make({numbers_array, texts_array},
                                                  std::vector<std::string>{"n", "t"}).ValueOrDie();
  return arrow::RecordBatch::Make(
      arrow::schema({arrow::field("n", arrow::int64()), arrow::field("t", arrow::utf8()),
                     arrow::field("f", arrow::boolean()),
                     arrow::field("l", arrow::list(arrow::int32())),
                     arrow::field("s", in_struct->type())}),
      rows, {numbers_array, texts_array, flags.Finish().ValueOrDie(),
             lists.Finish().ValueOrDie(), in_struct});
}

TEST(Gather, EqualsTakingRowByRowOfSlicedBatchesToo) {
  Rng rng(4);
  const Batches batches = {RandomRows(40, &rng), RandomRows(60, &rng)->Slice(7, 30)};
  std::vector<RowRef> rows;
  for (int i = 0; i < 500; ++i) {
    const auto batch = static_cast<uint32_t>(rng.Below(2));
    rows.push_back({batch, static_cast<uint32_t>(rng.Below(batch == 0 ? 40 : 30))});
  }
  const auto gathered = Gather(batches, rows, arrow::default_memory_pool());
  ASSERT_TRUE(gathered.ok()) << gathered.status();
  ASSERT_TRUE((*gathered)->ValidateFull().ok());
  for (size_t i = 0; i < rows.size(); ++i) {
    const auto expected = batches[rows[i].batch]->Slice(rows[i].row, 1);
    EXPECT_TRUE((*gathered)->Slice(static_cast<int64_t>(i), 1)->Equals(*expected)) << i;
  }
}

TEST(SortByWords, IsAStableSort) {
  Rng rng(5);
  for (const uint64_t bound : {uint64_t{1}, uint64_t{7}, uint64_t{1} << 20, UINT64_MAX}) {
    std::vector<uint64_t> words(3000);
    std::vector<RowRef> rows;
    for (uint32_t i = 0; i < words.size(); ++i) {
      words[i] = rng.Below(bound);
      rows.push_back({i % 3, i});
    }
    std::vector<std::pair<uint64_t, uint32_t>> expected;
    for (uint32_t i = 0; i < words.size(); ++i) expected.emplace_back(words[i], i);
    std::sort(expected.begin(), expected.end());
    SortByWords(&words, &rows);
    for (size_t i = 0; i < words.size(); ++i) {
      ASSERT_EQ(std::make_pair(words[i], rows[i].row), expected[i]);
    }
  }
}

// b:2 makes four slices of b of equal rows, each of them sorted by a's slices: 4 x 64 cells.
TEST(RowOrder, AColumnOfTwoBitsPartsTheRowsIntoFourSlices) {
  Rng rng(8);
  std::vector<std::optional<int64_t>> a, b;
  for (int i = 0; i < 1 << 14; ++i) {
    a.push_back(static_cast<int64_t>(rng.Below(1 << 30)));
    b.push_back(static_cast<int64_t>(rng.Below(1 << 30)));
  }
  const auto rows = arrow::RecordBatch::Make(
      arrow::schema({arrow::field("a", arrow::int64()), arrow::field("b", arrow::int64())}),
      1 << 14,
      {ArrayOf<arrow::Int64Builder, int64_t>(a), ArrayOf<arrow::Int64Builder, int64_t>(b)});
  const auto order =
      RowOrder::Make({*ParseLayout("zorder(a,b:2)"), std::nullopt}, *rows, 1 << 14).ValueOrDie();
  RowKeys keys;
  ASSERT_TRUE(order->Keys(*rows, &keys).ok());
  std::vector<size_t> sorted(a.size());
  std::iota(sorted.begin(), sorted.end(), size_t{0});
  std::sort(sorted.begin(), sorted.end(),
            [&](size_t i, size_t j) { return keys.words[i] < keys.words[j]; });
  // 256 equal pieces of 64 rows: a spans about a 64th of its values in each, b about a fourth.
  double a_span = 0, b_span = 0;
  for (size_t begin = 0; begin < sorted.size(); begin += 64) {
    int64_t a_low = INT64_MAX, a_high = 0, b_low = INT64_MAX, b_high = 0;
    for (size_t i = begin; i < begin + 64; ++i) {
      a_low = std::min(a_low, *a[sorted[i]]);
      a_high = std::max(a_high, *a[sorted[i]]);
      b_low = std::min(b_low, *b[sorted[i]]);
      b_high = std::max(b_high, *b[sorted[i]]);
    }
    a_span += static_cast<double>(a_high - a_low) / (1 << 30) / 256;
    b_span += static_cast<double>(b_high - b_low) / (1 << 30) / 256;
  }
  // Pieces of equal rows lie across the cells' borders now and then.
  EXPECT_LT(a_span, 2.0 / 64);
  EXPECT_LT(b_span, 1.6 / 4);
}

TEST(RowOrder, ACurvesBitsAreSharedOutOrRefused) {
  Rng rng(9);
  for (const size_t columns : {17, 64, 65}) {
    arrow::FieldVector fields;
    Columns arrays;
    std::string text = "zorder(";
    for (size_t c = 0; c < columns; ++c) {
      const std::string name = "c" + std::to_string(c);
      std::vector<std::optional<int64_t>> values;
      for (int i = 0; i < 500; ++i) values.push_back(static_cast<int64_t>(rng.Below(1 << 20)));
      fields.push_back(arrow::field(name, arrow::int64()));
      arrays.push_back(ArrayOf<arrow::Int64Builder, int64_t>(values));
      text += (c > 0 ? "," : "") + name;
    }
    const auto rows = arrow::RecordBatch::Make(arrow::schema(fields), 500, arrays);
    const auto order = RowOrder::Make({*ParseLayout(text + ")"), std::nullopt}, *rows, 500);
    EXPECT_EQ(order.ok(), columns <= 64) << columns;
  }
  const auto one = arrow::RecordBatch::Make(
      arrow::schema({arrow::field("a", arrow::int64()), arrow::field("b", arrow::int64())}), 1,
      {ArrayOf<arrow::Int64Builder, int64_t>({1}), ArrayOf<arrow::Int64Builder, int64_t>({2})});
  LayoutSpec raw = *ParseLayout("zorder(a,b:2)");
  raw.mode = CurveMode::kRaw;
  EXPECT_FALSE(RowOrder::Make({raw, std::nullopt}, *one, 1).ok());
}

// A plan over a sample of all rows: every row is in the partition whose borders hold it, and rows
// of different partitions are in order.
TEST(RewritePlan, PartitionsFollowTheOrderAndKeysStayTogether) {
  Rng rng(6);
  const auto rows = RandomRows(4000, &rng);
  for (const char* layout : {"sort(n,t)", "sort(t)", "sort(n)", "zorder(n,t)", "hilbert(n,t)",
                             "zorder(n,t:2)", "bucket(5,n)"}) {
    RowOrder::Request request{*ParseLayout(layout), std::nullopt};
    const auto order = RowOrder::Make(request, *rows, rows->num_rows());
    ASSERT_TRUE(order.ok()) << order.status();
    std::vector<int> files(4000);
    std::vector<int64_t> file_rows(4000);
    for (size_t i = 0; i < files.size(); ++i) {
      files[i] = static_cast<int>(i / 1000);
      file_rows[i] = static_cast<int64_t>(i % 1000);
    }
    const auto sample = RowSample::Make(*order, *rows, files, file_rows, 1).ValueOrDie();
    PlanOptions options;
    options.target_file_rows = 300;
    options.row_bytes = 10;
    options.partition_bytes_max = 1000;   // several partitions a file
    options.section_count = (*order)->section_count();
    const RewritePlan plan = PlanRewrite(*sample, options);
    const PartitionFinder finder(plan, *sample);
    RowKeys keys;
    ASSERT_TRUE((*order)->Keys(*rows, &keys).ok());
    const Columns ties = ColumnsOf(*rows, (*order)->tie_columns()).ValueOrDie();
    std::vector<uint32_t> sorted(4000);
    std::iota(sorted.begin(), sorted.end(), 0);
    std::stable_sort(sorted.begin(), sorted.end(), [&](uint32_t a, uint32_t b) {
      if (keys.section(a) != keys.section(b)) return keys.section(a) < keys.section(b);
      if (keys.words[a] != keys.words[b]) return keys.words[a] < keys.words[b];
      return CompareRows(ties, a, ties, b) < 0;
    });
    size_t last = 0;
    std::vector<int64_t> sizes(plan.partitions.size());
    for (const uint32_t row : sorted) {
      const size_t at = finder.Find({keys.section(row), keys.words[row], &ties, row, files[row],
                                     file_rows[row]});
      ASSERT_GE(at, last) << layout;
      last = at;
      ++sizes[at];
    }
    EXPECT_GT(plan.partitions.size(), plan.files.size()) << layout;
    for (const int64_t size : sizes) EXPECT_LE(size, 250) << layout;
  }
}

TEST(RewritePlan, RowsThatMayNotPartAreInOnePartition) {
  Rng rng(7);
  const auto rows = RandomRows(3000, &rng);
  RowOrder::Request request{*ParseLayout("sort(n,t)"), std::nullopt};
  const auto order = RowOrder::Make(request, *rows, 3000).ValueOrDie();
  std::vector<int64_t> file_rows(3000);
  std::iota(file_rows.begin(), file_rows.end(), 0);
  const auto sample =
      RowSample::Make(order, *rows, std::vector<int>(3000), file_rows, 1).ValueOrDie();
  PlanOptions options;
  options.target_file_rows = 20;
  options.row_bytes = 10;
  options.partition_bytes_max = 100;
  options.unparted_columns = 1;
  const RewritePlan plan = PlanRewrite(*sample, options);
  const PartitionFinder finder(plan, *sample);
  RowKeys keys;
  ASSERT_TRUE(order->Keys(*rows, &keys).ok());
  const Columns ties = ColumnsOf(*rows, order->tie_columns()).ValueOrDie();
  std::map<std::string, std::set<size_t>> partitions;
  for (int64_t row = 0; row < 3000; ++row) {
    const auto at = static_cast<size_t>(row);
    partitions[rows->column(0)->GetScalar(row).ValueOrDie()->ToString()].insert(
        finder.Find({0, keys.words[at], &ties, row, 0, row}));
  }
  EXPECT_GT(plan.partitions.size(), 10u);
  for (const auto& [key, own] : partitions) EXPECT_EQ(own.size(), 1u) << key;
}

TEST(Cogroup, ThereAndBackIsTheSame) {
  Rng rng(8);
  auto rows = RandomRows(300, &rng);
  std::vector<uint64_t> words(300);
  std::vector<RowRef> refs;
  ASSERT_TRUE(ValueWords(*rows->column(0), words.data()).ok());
  for (uint32_t i = 0; i < 300; ++i) refs.push_back({0, i});
  SortByWords(&words, &refs);
  rows = Gather({rows}, refs, arrow::default_memory_pool()).ValueOrDie();
  std::vector<int64_t> ends;
  for (int64_t i = 1; i <= 300; ++i) {
    if (i == 300 || CompareValues(*rows->column(0), i - 1, *rows->column(0), i) != 0) {
      ends.push_back(i);
    }
  }
  const auto schema = CogroupedSchema(rows->schema(), "n").ValueOrDie();
  const auto table = arrow::Table::FromRecordBatches({rows->Slice(0, 100), rows->Slice(100)});
  const auto grouped = Cogroup(*table, "n", ends, schema);
  ASSERT_TRUE(grouped.ok()) << grouped.status();
  ASSERT_TRUE((*grouped)->ValidateFull().ok());
  ASSERT_EQ((*grouped)->num_rows(), static_cast<int64_t>(ends.size()));
  const arrow::KeyValueMetadata noted({kCogroupKey}, {CogroupMetadata(*rows->schema(), "n")});
  const auto back = UngroupedSchema(schema, kCogroupColumn, &noted).ValueOrDie();
  ASSERT_TRUE(back->Equals(*rows->schema()));
  const auto flat =
      Ungroup(*(*grouped)->CombineChunksToBatch().ValueOrDie(), 0, kCogroupColumn, back);
  ASSERT_TRUE(flat.ok()) << flat.status();
  EXPECT_TRUE((*flat)->Equals(*rows));
}

TEST(Dictionaries, ComeBackHoweverDeep) {
  const auto type = arrow::dictionary(arrow::int8(), arrow::utf8());
  const auto texts = ArrayOf<arrow::StringBuilder, std::string>({"a", std::nullopt, "b", "a"});
  const auto schema = arrow::schema({arrow::field("d", type),
                                     arrow::field("s", arrow::struct_({arrow::field("x", type)}))});
  const auto plain = PlainSchema(schema);
  const auto nested =
      arrow::StructArray::Make({texts}, {plain->field(1)->type()->field(0)}).ValueOrDie();
  const auto rows = arrow::RecordBatch::Make(plain, 4, {texts, nested});
  const auto there = WithDictionariesOf(rows, schema);
  ASSERT_TRUE(there.ok()) << there.status();
  ASSERT_TRUE((*there)->ValidateFull().ok());
  const auto back = WithDictionariesOf(*there, plain);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_TRUE((*back)->Equals(*rows));
}

TEST(BucketIds, NullsAreInABucketOfTheirOwn) {
  const auto values = ArrayOf<arrow::Int32Builder, int32_t>({34, std::nullopt});
  uint32_t ids[2];
  ASSERT_TRUE(BucketIds(*values, 16, ids).ok());
  // Iceberg's own example: 34 hashes to 2017239379.
  EXPECT_THAT(ids, ElementsAre(2017239379 % 16, 16));
  EXPECT_FALSE(BucketIds(*ArrayOf<arrow::DoubleBuilder, double>({1.0}), 16, ids).ok());
}

}  // namespace
}  // namespace grebe::layout

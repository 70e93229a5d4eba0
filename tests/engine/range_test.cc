// Ranges of keys through the whole engine: rows in key order, paged; one wave for the data.
#include <arrow/array/array_primitive.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/rng.h"
#include "engine/engine.h"
#include "index/manifest.h"
#include "store/memory_store.h"
#include "testing/counting_store.h"
#include "testing/seed.h"
#include "testing/table_builder.h"

namespace grebe {
namespace {

using Tables = std::vector<std::shared_ptr<arrow::Table>>;
using Conditions = std::vector<KeyCondition>;

KeyCondition Where(const std::string& column, Comparison comparison, int64_t value) {
  return {column, comparison, std::to_string(value)};
}

int64_t Value(const arrow::Table& table, const std::string& column, int64_t row) {
  const auto array = table.GetColumnByName(column)->chunk(0);
  return static_cast<const arrow::Int64Array&>(*array).Value(row);
}

// Rows whose user, and then ts, are within [from, to), in order of (user, ts, file, row).
std::shared_ptr<arrow::Table> Expected(const Tables& tables, int64_t user_from, int64_t user_to,
                                       int64_t ts_from, int64_t ts_to) {
  struct Row {
    int64_t user, ts;
    size_t file;
    int64_t row;
    auto operator<=>(const Row&) const = default;
  };
  std::vector<Row> rows;
  for (size_t f = 0; f < tables.size(); ++f) {
    for (int64_t r = 0; tables[f] != nullptr && r < tables[f]->num_rows(); ++r) {
      const int64_t user = Value(*tables[f], "user_id", r), ts = Value(*tables[f], "ts", r);
      if (user >= user_from && user < user_to && ts >= ts_from && ts < ts_to) {
        rows.push_back({user, ts, f, r});
      }
    }
  }
  std::sort(rows.begin(), rows.end());
  Tables parts = {testing::PlayEvents(1, 1, 1)->Slice(0, 0)};
  for (const Row& row : rows) parts.push_back(tables[row.file]->Slice(row.row, 1));
  return (*arrow::ConcatenateTables(parts))->CombineChunks().ValueOrDie();
}

class RangeTest : public ::testing::Test {
 protected:
  void Build(int file_count, int64_t rows_per_file, bool sorted = true) {
    store_ = std::make_shared<testing::CountingStore>(store::MakeMemoryStore(),
                                                      /*mappable=*/false);
    context_.table = {store_, "t"};
    context_.index_root = {store_, "t/_index"};
    tables_.clear();
    for (int i = 0; i < file_count; ++i) {
      AddFile(rows_per_file);
      if (i == 0) {
        CreateOptions options;
        options.key = {"user_id", "ts"};
        options.sorted = sorted;
        const auto created = engine::CreateIndexAt(context_, "i", options);
        ASSERT_TRUE(created.ok()) << created.status();
      } else if (i % 3 == 0) {
        ASSERT_TRUE(engine::RefreshIndexAt(context_, "i", {}).ok());
      }
    }
    ASSERT_TRUE(engine::RefreshIndexAt(context_, "i", {}).ok());
  }

  static std::string PathOf(size_t file) { return "t/" + std::to_string(1000 + file) + ".parquet"; }

  void AddFile(int64_t rows) {
    tables_.push_back(testing::PlayEvents(rows, 50, 100 + tables_.size()));
    testing::FileOptions options;
    options.page_bytes = 512;
    ASSERT_TRUE(store_->Put(PathOf(tables_.size() - 1),
                            testing::ParquetBytes(*tables_.back(), options).ValueOrDie(),
                            store::PutMode::kOverwrite).ok());
  }

  std::shared_ptr<Index> Open() { return engine::OpenIndexAt(context_, "i", {}).ValueOrDie(); }

  void ExpectRange(Index& index, const Conditions& conditions, const arrow::Table& expected,
                   const GetOptions& options = {}) {
    const auto range = index.ParseRange(conditions);
    ASSERT_TRUE(range.ok()) << range.status();
    const auto got = index.GetRange(*range, options);
    ASSERT_TRUE(got.ok()) << got.status();
    const int64_t begin = std::min(options.offset, expected.num_rows());
    const int64_t count = options.limit < 0 ? expected.num_rows() : options.limit;
    const auto want = expected.Slice(begin, count);
    const auto rows = arrow::Table::FromRecordBatches({got->rows}).ValueOrDie();
    EXPECT_TRUE(rows->Equals(*want)) << rows->ToString() << want->ToString();
    EXPECT_EQ(got->row_counts, std::vector<int64_t>{want->num_rows()});
    const auto counted = index.CountRange(*range);
    ASSERT_TRUE(counted.ok()) << counted.status();
    EXPECT_EQ(counted->counts, std::vector<int64_t>{expected.num_rows()});
  }

  void ExpectRandomRanges(int rounds, Rng* rng) {
    const auto index = Open();
    constexpr int64_t kAll = INT64_MAX;
    for (int i = 0; i < rounds; ++i) {
      const auto user = static_cast<int64_t>(rng->Below(52));
      const auto to = user + static_cast<int64_t>(rng->Below(4));
      const int64_t ts = Value(*tables_.back(), "ts", 0);
      const auto ts_to = ts + static_cast<int64_t>(rng->Below(1000));
      GetOptions page;
      page.offset = static_cast<int64_t>(rng->Below(9));
      page.limit = static_cast<int64_t>(rng->Below(9));
      const Conditions users = {Where("user_id", Comparison::kGreaterOrEqual, user),
                                Where("user_id", Comparison::kLess, to)};
      const auto want = Expected(tables_, user, to, INT64_MIN, kAll);
      ExpectRange(*index, users, *want);
      ExpectRange(*index, users, *want, page);
      ExpectRange(*index, {Where("user_id", Comparison::kEqual, user)},
                  *Expected(tables_, user, user + 1, INT64_MIN, kAll), page);
      const Conditions both = {Where("ts", Comparison::kGreater, ts),
                               Where("user_id", Comparison::kEqual, user),
                               Where("ts", Comparison::kLessOrEqual, ts_to)};
      ExpectRange(*index, both,
                  *Expected(tables_, user, user + 1, ts + 1, ts_to + 1));
    }
  }

  std::shared_ptr<testing::CountingStore> store_;
  engine::TableContext context_;
  Tables tables_;
};

TEST_F(RangeTest, RowsComeInKeyOrderThroughRefreshDeletionAndCompaction) {
  Rng rng(testing::Seed("engine ranges"));
  Build(11, 300);
  ExpectRandomRanges(10, &rng);
  for (const size_t gone : {2u, 7u}) {
    ASSERT_TRUE(store_->Delete(PathOf(gone)).ok());
    tables_[gone] = nullptr;
  }
  ASSERT_TRUE(engine::RefreshIndexAt(context_, "i", {}).ok());
  ExpectRandomRanges(10, &rng);
  const auto compacted = engine::CompactIndexAt(context_, "i", {}, /*all=*/true);
  ASSERT_TRUE(compacted.ok()) << compacted.status();
  EXPECT_GT(compacted->fragments_merged, 1);
  ExpectRandomRanges(10, &rng);
  EXPECT_TRUE(Open()->description().sorted);
}

// Warm, a range is one wave, of the pages of the rows returned only.
TEST_F(RangeTest, OneWaveForTheDataAndNoPagesOfOtherRows) {
  Build(5, 2000);
  OpenOptions no_caches;
  no_caches.cache.page_bytes_max = no_caches.cache.dictionary_bytes_max = 0;
  const auto index = engine::OpenIndexAt(context_, "i", no_caches).ValueOrDie();
  const auto range = index->ParseRange({Where("user_id", Comparison::kGreaterOrEqual, 10),
                                        Where("user_id", Comparison::kLess, 20)}).ValueOrDie();
  GetOptions page;
  page.offset = 500;
  page.limit = 5;
  page.coalesce = false;
  const auto cold = index->GetRange(range, page);
  ASSERT_TRUE(cold.ok()) << cold.status();
  EXPECT_LE(cold->explain.waves, 3);
  store_->Reset();
  const auto warm = index->GetRange(range, page);
  ASSERT_TRUE(warm.ok()) << warm.status();
  EXPECT_EQ(warm->explain.waves, 1);
  EXPECT_EQ(store_->counts().waves, 1);
  EXPECT_LE(warm->explain.files, 5);
  const auto whole = index->GetRange(range, {});
  ASSERT_TRUE(whole.ok()) << whole.status();
  EXPECT_LT(10 * warm->explain.pages, whole->explain.pages);
  store_->Reset();
  const auto counted = index->CountRange(range);
  ASSERT_TRUE(counted.ok());
  EXPECT_EQ(counted->counts[0], whole->rows->num_rows());
  EXPECT_EQ(store_->counts().requests, 0);
}

TEST_F(RangeTest, AnIndexThatIsNotSortedSaysSo) {
  Build(1, 10, /*sorted=*/false);
  const auto index = Open();
  const auto range = index->ParseRange({Where("user_id", Comparison::kLess, 20)}).ValueOrDie();
  const Status statuses[] = {index->GetRange(range).status(), index->CountRange(range).status()};
  for (const Status& status : statuses) {
    EXPECT_EQ(KindOf(status), ErrorKind::kInvalidArgument);
    EXPECT_NE(status.message().find("not sorted"), std::string::npos);
  }
}

TEST_F(RangeTest, ConditionsThatAreNoStretchOfTheKeyOrderAreRefused) {
  Build(1, 10);
  const auto index = Open();
  const Conditions bad[] = {
      {Where("ts", Comparison::kEqual, 1)},
      {Where("user_id", Comparison::kLess, 1), Where("ts", Comparison::kEqual, 1)},
      {Where("user_id", Comparison::kLess, 1), Where("user_id", Comparison::kLess, 2)},
      {Where("user_id", Comparison::kEqual, 1), Where("user_id", Comparison::kLess, 2)},
      {Where("user_id", Comparison::kLess, 1), Where("user_id", Comparison::kEqual, 2)},
      {Where("title", Comparison::kEqual, 1)},
      {{"user_id", Comparison::kLess, "x"}},
  };
  for (const Conditions& conditions : bad) {
    const auto range = index->ParseRange(conditions);
    ASSERT_FALSE(range.ok());
    EXPECT_EQ(KindOf(range.status()), ErrorKind::kInvalidArgument);
  }
  EXPECT_FALSE(index->ParseRange({Where("user_id", Comparison::kLess, 1)}, {"user_id"}).ok());
  KeyRange wrong;
  wrong.equal = index->ParseKey({{"user_id", "1"}, {"ts", "2"}}).ValueOrDie();
  wrong.lower = wrong.equal;
  EXPECT_EQ(KindOf(index->GetRange(wrong).status()), ErrorKind::kInvalidArgument);
}

// The index for a range is picked by its first key columns, sorted ones only.
TEST_F(RangeTest, OpenPicksASortedIndexThatBeginsWithTheColumns) {
  Build(1, 10);
  CreateOptions plain;
  plain.key = {"user_id"};
  ASSERT_TRUE(engine::CreateIndexAt(context_, "user_id", plain).ok());
  OpenOptions options;
  options.key = {"user_id"};
  EXPECT_EQ((*engine::OpenIndexAt(context_, "", options))->description().name, "user_id");
  options.ranges = true;
  EXPECT_EQ((*engine::OpenIndexAt(context_, "", options))->description().name, "i");
  options.key = {"ts"};
  EXPECT_EQ(KindOf(engine::OpenIndexAt(context_, "", options).status()), ErrorKind::kNotFound);
}

// A byte of the sorted part of the stored fragment: Corrupt, for the range and for verify.
TEST_F(RangeTest, DamageOfTheSortedPartIsCorrupt) {
  Build(1, 2000);
  const auto description = Open()->description();
  const std::string path = "t/_index/i/" + description.fragments[0].path;
  const auto manifest = index::ManifestLog({store_, "t/_index/i"}).ReadNewest().ValueOrDie();
  const auto whole = store_->ReadWhole(std::span(&path, 1));
  std::string bytes = whole[0].ValueOrDie().bytes->ToString();
  bytes[static_cast<size_t>(manifest->fragments[0].head.begin) - 300] ^= 1;
  ASSERT_TRUE(store_->Put(path, bytes, store::PutMode::kOverwrite).ok());
  const auto index = Open();
  const auto range = index->ParseRange({Where("user_id", Comparison::kLess, 1000)}).ValueOrDie();
  EXPECT_EQ(KindOf(index->GetRange(range).status()), ErrorKind::kCorrupt);
}

}  // namespace
}  // namespace grebe

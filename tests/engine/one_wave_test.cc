// The promises of a lookup, counted by a store: one wave, exactly the needed bytes.
#include <arrow/array/builder_primitive.h>
#include <gtest/gtest.h>

#include "base/rng.h"
#include "engine/engine.h"
#include "parquet/footer.h"
#include "store/memory_store.h"
#include "testing/counting_store.h"
#include "testing/table_builder.h"

namespace grebe {
namespace {

using testing::CountingStore;

std::shared_ptr<arrow::RecordBatch> Keys(const std::vector<int64_t>& values,
                                         const std::string& name = "user_id") {
  arrow::Int64Builder builder;
  ARROW_UNUSED(builder.AppendValues(values));
  return arrow::RecordBatch::Make(arrow::schema({arrow::field(name, arrow::int64())}),
                                  static_cast<int64_t>(values.size()),
                                  {builder.Finish().ValueOrDie()});
}

OpenOptions WithKey() {
  OpenOptions options;
  options.key = {"user_id"};
  return options;
}

// A table behind a store that counts and cannot be mapped, as on S3.
class OneWaveTest : public ::testing::Test {
 protected:
  void Build(int file_count, int64_t rows_per_file, int64_t users, const CreateOptions& options,
             const testing::FileOptions& files = {}) {
    memory_ = store::MakeMemoryStore();
    auto tables = testing::WritePlayTable(*memory_, "lake/plays", file_count, rows_per_file, users,
                                          7, files);
    ASSERT_TRUE(tables.ok()) << tables.status();
    tables_ = *tables;
    store_ = std::make_shared<CountingStore>(memory_, /*mappable=*/false);
    context_.table = {store_, "lake/plays"};
    context_.index_root = {store_, "lake/plays/_index"};
    auto created = engine::CreateIndexAt(context_, "", options);
    ASSERT_TRUE(created.ok()) << created.status();
    ASSERT_EQ(created->rows_added, file_count * rows_per_file);
  }

  // The bytes of exactly the pages (and dictionary pages) that hold the user's rows, found by a
  // walk over each file's own footer.
  int64_t NeededBytes(int64_t user) {
    int64_t bytes = 0;
    for (size_t i = 0; i < tables_.size(); ++i) {
      char name[48];
      std::snprintf(name, sizeof(name), "lake/plays/part-%05zu.parquet", i);
      auto object = std::make_shared<store::Object>(*memory_->Stat(name));
      const auto footer = *pq::Footer::Read(*memory_, object);
      const auto pages = *pq::FindPages(*memory_, *footer);
      const auto& users = static_cast<const arrow::Int64Array&>(*tables_[i]->column(0)->chunk(0));
      int64_t first_row = 0;
      for (const auto& row_group : pages.row_groups) {
        for (const auto& chunk : row_group.chunks) {
          bool any = false;
          for (const auto& page : chunk.pages) {
            bool needed = false;
            for (int64_t row = page.rows.begin; row < page.rows.end; ++row) {
              needed = needed || users.Value(first_row + row) == user;
            }
            any = any || needed;
            if (needed) bytes += page.bytes.size_bytes();
          }
          if (any && chunk.info.dictionary) bytes += chunk.info.dictionary->size_bytes();
        }
        first_row += row_group.row_count;
      }
    }
    return bytes;
  }

  std::shared_ptr<Index> Open(const CacheOptions& cache = {}) {
    OpenOptions options = WithKey();
    options.cache = cache;
    auto index = engine::OpenIndexAt(context_, "", options);
    EXPECT_TRUE(index.ok()) << index.status();
    return index.ok() ? *index : nullptr;
  }

  void ExpectRows(const GetResult& got, int64_t user) {
    const auto want = testing::RowsWhere(tables_, "user_id", user);
    const auto table = arrow::Table::FromRecordBatches({got.rows}).ValueOrDie();
    EXPECT_TRUE(table->Equals(*want)) << "got " << table->ToString() << "want "
                                      << want->ToString();
  }

  std::shared_ptr<store::Store> memory_;
  std::shared_ptr<CountingStore> store_;
  engine::TableContext context_;
  std::vector<std::shared_ptr<arrow::Table>> tables_;
};

CreateOptions KeyOnly() {
  CreateOptions options;
  options.key = {"user_id"};
  return options;
}

TEST_F(OneWaveTest, WarmLookupIsOneWaveAndAColdProcessFour) {
  for (const bool page_index : {true, false}) {
    testing::FileOptions files;
    files.page_index = page_index;
    files.row_group_rows = 700;
    Build(10, 2000, 500, KeyOnly(), files);
    store_->Reset();
    CacheOptions no_page_caches;
    no_page_caches.dictionary_bytes_max = 0;
    no_page_caches.page_bytes_max = 0;
    auto index = Open(no_page_caches);
    ASSERT_NE(index, nullptr);
    GetOptions options;
    options.coalesce = false;
    auto first = index->Get(*Keys({42}), options);
    ASSERT_TRUE(first.ok()) << first.status();
    ExpectRows(*first, 42);
    // List and hint together are one wave; heads; blocks and page maps; pages.
    EXPECT_EQ(store_->counts().lists, 1);
    EXPECT_EQ(store_->counts().stats, 0);
    EXPECT_LE(store_->counts().waves, 4);
    EXPECT_LE(first->explain.waves, 2);

    for (int64_t user : {42, 7, 8, 499, 0}) {
      ASSERT_TRUE(index->Count(*Keys({user})).ok());   // loads the block
      store_->Reset();
      auto got = index->Get(*Keys({user}), options);
      ASSERT_TRUE(got.ok()) << got.status();
      ExpectRows(*got, user);
      EXPECT_EQ(got->explain.waves, 1);
      EXPECT_EQ(store_->counts().waves, 1);
      EXPECT_EQ(store_->counts().requests, got->explain.requests);
      EXPECT_EQ(store_->counts().bytes, got->explain.bytes_read);
      EXPECT_EQ(got->explain.bytes_read, NeededBytes(user));
      EXPECT_EQ(got->explain.gap_bytes, 0);
      EXPECT_EQ(store_->counts().stats + store_->counts().lists, 0);
    }
  }
}

TEST_F(OneWaveTest, ManyKeysShareOneWave) {
  Build(10, 2000, 500, KeyOnly());
  auto index = Open();
  std::vector<int64_t> users;
  for (int64_t user = 0; user < 520; ++user) users.push_back(user);
  users.push_back(3);   // asked twice
  ASSERT_TRUE(index->Count(*Keys(users)).ok());
  store_->Reset();
  auto got = index->Get(*Keys(users));
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ(store_->counts().waves, 1);
  int64_t at = 0;
  for (size_t i = 0; i < users.size(); ++i) {
    GetResult one;
    one.rows = got->rows->Slice(at, got->row_counts[i]);
    ExpectRows(one, users[i]);
    at += got->row_counts[i];
  }
  EXPECT_EQ(at, got->rows->num_rows());
}

TEST_F(OneWaveTest, CountReadsNoData) {
  Build(10, 2000, 500, KeyOnly());
  auto index = Open();
  ASSERT_TRUE(index->Count(*Keys({42})).ok());
  store_->Reset();
  auto counted = index->Count(*Keys({42, -1}));
  ASSERT_TRUE(counted.ok()) << counted.status();
  EXPECT_EQ(counted->explain.waves, 0);
  EXPECT_EQ(store_->counts().waves, 0);
  EXPECT_EQ(counted->counts[0], testing::RowsWhere(tables_, "user_id", 42)->num_rows());
  EXPECT_EQ(counted->counts[1], 0);
}

TEST_F(OneWaveTest, CoveringColumnsReadNoData) {
  CreateOptions options = KeyOnly();
  options.covering = {"title", "score"};
  Build(10, 2000, 500, options);
  auto index = Open();
  GetOptions get;
  get.columns = {"score", "title", "user_id"};
  ASSERT_TRUE(index->Get(*Keys({42}), get).ok());
  store_->Reset();
  auto got = index->Get(*Keys({42}), get);
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ(got->explain.waves, 0);
  EXPECT_EQ(store_->counts().waves, 0);
  const auto want = testing::RowsWhere(tables_, "user_id", 42)->SelectColumns({4, 2, 0});
  const auto table = arrow::Table::FromRecordBatches({got->rows}).ValueOrDie();
  EXPECT_TRUE(table->Equals(**want)) << table->ToString() << (*want)->ToString();
}

TEST_F(OneWaveTest, CoveringColumnsAreWholeColumns) {
  Build(1, 100, 10, KeyOnly());
  CreateOptions options = KeyOnly();
  options.covering = {"tags.element"};
  const auto created = engine::CreateIndexAt(context_, "other", options);
  EXPECT_TRUE(!created.ok() && KindOf(created.status()) == ErrorKind::kInvalidArgument)
      << created.status();
}

TEST_F(OneWaveTest, LimitAndOffsetPageThroughAKeyAndReadOnlyTheirPages) {
  Build(10, 2000, 20, KeyOnly());
  auto index = Open();
  const auto want = testing::RowsWhere(tables_, "user_id", 5);
  GetOptions all;
  all.coalesce = false;
  ASSERT_TRUE(index->Count(*Keys({5})).ok());
  auto everything = index->Get(*Keys({5}), all);
  ASSERT_TRUE(everything.ok());
  index = Open();   // cold caches again
  ASSERT_TRUE(index->Count(*Keys({5})).ok());
  for (int64_t offset = 0; offset < want->num_rows() + 10; offset += 7) {
    GetOptions page = all;
    page.offset = offset;
    page.limit = 7;
    auto got = index->Get(*Keys({5}), page);
    ASSERT_TRUE(got.ok()) << got.status();
    const auto table = arrow::Table::FromRecordBatches({got->rows}).ValueOrDie();
    EXPECT_TRUE(table->Equals(*want->Slice(std::min(offset, want->num_rows()), 7)));
    EXPECT_LE(got->explain.waves, 1);
    EXPECT_LT(got->explain.pages, everything->explain.pages / 4);
  }
}

TEST_F(OneWaveTest, ManyFragmentsCostNoMoreWaves) {
  Build(1, 1000, 50, KeyOnly());
  for (int i = 1; i < 12; ++i) {
    const auto rows = testing::PlayEvents(1000, 50, 100 + i);
    const std::string bytes = testing::ParquetBytes(*rows).ValueOrDie();
    ASSERT_TRUE(memory_->Put("lake/plays/z" + std::to_string(100 + i) + ".parquet", bytes,
                             store::PutMode::kOverwrite).ok());
    auto refreshed = engine::RefreshIndexAt(context_, "", {});
    ASSERT_TRUE(refreshed.ok()) << refreshed.status();
    EXPECT_EQ(refreshed->files_added, 1);
    tables_.push_back(rows);
  }
  store_->Reset();
  auto index = Open();
  auto got = index->Get(*Keys({7}));
  ASSERT_TRUE(got.ok()) << got.status();
  ExpectRows(*got, 7);
  EXPECT_LE(store_->counts().waves, 4);
  EXPECT_EQ(got->explain.fragments_probed, 12);

  auto compacted = engine::CompactIndexAt(context_, "", {}, /*all=*/true);
  ASSERT_TRUE(compacted.ok()) << compacted.status();
  EXPECT_EQ(compacted->fragments_merged, 12);
  index = Open();
  got = index->Get(*Keys({7}));
  ASSERT_TRUE(got.ok()) << got.status();
  ExpectRows(*got, 7);
  EXPECT_EQ(got->explain.fragments_probed, 1);
}

TEST_F(OneWaveTest, AReplacedFileIsStaleAndARefreshMendsIt) {
  Build(3, 500, 20, KeyOnly());
  auto index = Open();
  ASSERT_TRUE(index->Get(*Keys({5})).ok());
  const auto rows = testing::PlayEvents(500, 20, 99);
  ASSERT_TRUE(memory_->Put("lake/plays/part-00001.parquet",
                           testing::ParquetBytes(*rows).ValueOrDie(),
                           store::PutMode::kOverwrite).ok());
  index = Open();
  auto got = index->Get(*Keys({5}));
  EXPECT_TRUE(!got.ok() && KindOf(got.status()) == ErrorKind::kStale) << got.status();
  auto refreshed = engine::RefreshIndexAt(context_, "", {});
  ASSERT_TRUE(refreshed.ok()) << refreshed.status();
  EXPECT_EQ(refreshed->files_added, 1);
  EXPECT_EQ(refreshed->files_removed, 1);
  tables_[1] = rows;
  index = Open();
  got = index->Get(*Keys({5}));
  ASSERT_TRUE(got.ok()) << got.status();
  ExpectRows(*got, 5);
  auto again = engine::RefreshIndexAt(context_, "", {});
  ASSERT_TRUE(again.ok());
  EXPECT_FALSE(again->changed);
}

TEST_F(OneWaveTest, AVanishedFileIsStaleThenDropped) {
  Build(3, 500, 20, KeyOnly());
  ASSERT_TRUE(memory_->Delete("lake/plays/part-00002.parquet").ok());
  auto index = Open();
  auto got = index->Get(*Keys({5}));
  EXPECT_TRUE(!got.ok() && KindOf(got.status()) == ErrorKind::kStale) << got.status();
  ASSERT_TRUE(engine::RefreshIndexAt(context_, "", {}).ok());
  tables_.pop_back();
  index = Open();
  // The fragment still holds the vanished file's rows; the index no longer counts them.
  EXPECT_EQ(index->description().files, 2);
  EXPECT_EQ(index->description().rows, 1000);
  got = index->Get(*Keys({5}));
  ASSERT_TRUE(got.ok()) << got.status();
  ExpectRows(*got, 5);
}

}  // namespace
}  // namespace grebe

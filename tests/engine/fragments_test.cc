// One, ten and a thousand fragments: the same waves, the same rows.
#include <arrow/array/builder_primitive.h>
#include <gtest/gtest.h>

#include "engine/engine.h"
#include "store/memory_store.h"
#include "testing/counting_store.h"
#include "testing/table_builder.h"

namespace grebe {
namespace {

std::shared_ptr<arrow::RecordBatch> Key(int64_t value) {
  arrow::Int64Builder builder;
  ARROW_UNUSED(builder.Append(value));
  return arrow::RecordBatch::Make(arrow::schema({arrow::field("user_id", arrow::int64())}), 1,
                                  {builder.Finish().ValueOrDie()});
}

TEST(FragmentsTest, WavesDoNotGrowWithFragments) {
  constexpr int kFragments = 1000;
  const auto memory = store::MakeMemoryStore();
  const auto counting =
      std::make_shared<testing::CountingStore>(memory, /*mappable=*/false);
  const engine::TableContext context{{counting, "t"}, {counting, "t/_index"}};
  const auto rows = testing::PlayEvents(40, 30, 1);
  const std::string bytes = testing::ParquetBytes(*rows).ValueOrDie();
  const int64_t rows_per_file = testing::RowsWhere({rows}, "user_id", 7)->num_rows();
  ASSERT_GT(rows_per_file, 0);
  for (int i = 1; i <= kFragments; ++i) {
    ASSERT_TRUE(memory->Put("t/" + std::to_string(10000 + i) + ".parquet", bytes,
                            store::PutMode::kOverwrite).ok());
    if (i == 1) {
      CreateOptions create;
      create.key = {"user_id"};
      ASSERT_TRUE(engine::CreateIndexAt(context, "", create).ok());
    } else {
      const auto refreshed = engine::RefreshIndexAt(context, "user_id", {});
      ASSERT_TRUE(refreshed.ok()) << refreshed.status();
    }
    if (i != 1 && i != 10 && i != kFragments) continue;
    counting->Reset();
    auto index = *engine::OpenIndexAt(context, "user_id", {});
    auto cold = index->Get(*Key(7));
    ASSERT_TRUE(cold.ok()) << cold.status();
    EXPECT_EQ(cold->rows->num_rows(), rows_per_file * i);
    EXPECT_EQ(cold->explain.fragments_probed, i);
    EXPECT_LE(counting->counts().waves, 4) << i << " fragments";
    EXPECT_EQ(counting->counts().stats, 0);
    ::testing::Test::RecordProperty("cold_waves_" + std::to_string(i),
                                    static_cast<int>(counting->counts().waves));
    OpenOptions no_page_caches;
    no_page_caches.cache.dictionary_bytes_max = 0;
    no_page_caches.cache.page_bytes_max = 0;
    index = *engine::OpenIndexAt(context, "user_id", no_page_caches);
    ASSERT_TRUE(index->Count(*Key(7)).ok());
    counting->Reset();
    const auto counted = index->Count(*Key(7));
    EXPECT_EQ(counted->explain.waves, 0);
    const auto warm = index->Get(*Key(7));
    ASSERT_TRUE(warm.ok()) << warm.status();
    EXPECT_EQ(warm->explain.waves, 1) << i << " fragments";
    EXPECT_EQ(counting->counts().waves, 1) << i << " fragments";
  }
  // Compacting in tiers leaves few fragments and every row.
  const auto compacted = engine::CompactIndexAt(context, "user_id", {}, /*all=*/false);
  ASSERT_TRUE(compacted.ok()) << compacted.status();
  auto index = *engine::OpenIndexAt(context, "user_id", {});
  EXPECT_LT(index->description().fragments.size(), 16u);
  EXPECT_EQ(index->Get(*Key(7))->rows->num_rows(), rows_per_file * kFragments);
}

}  // namespace
}  // namespace grebe

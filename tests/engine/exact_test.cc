// Lookups give exactly the rows that hold the key: every answer against brute force.
#include <arrow/array/builder_binary.h>
#include <arrow/array/builder_primitive.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/hash.h"
#include "base/rng.h"
#include "engine/engine.h"
#include "key/key.h"
#include "store/memory_store.h"
#include "testing/table_builder.h"

namespace grebe {
namespace {

using Table = std::shared_ptr<arrow::Table>;

std::shared_ptr<arrow::Array> Strings(const std::vector<std::optional<std::string>>& values) {
  arrow::StringBuilder builder;
  for (const auto& value : values) {
    ARROW_UNUSED(value ? builder.Append(*value) : builder.AppendNull());
  }
  return builder.Finish().ValueOrDie();
}

std::shared_ptr<arrow::Array> Ints(const std::vector<std::optional<int64_t>>& values) {
  arrow::Int64Builder builder;
  for (const auto& value : values) {
    ARROW_UNUSED(value ? builder.Append(*value) : builder.AppendNull());
  }
  return builder.Finish().ValueOrDie();
}

Table MakeTable(const std::vector<std::string>& names,
                const std::vector<std::shared_ptr<arrow::Array>>& columns) {
  arrow::FieldVector fields;
  for (size_t i = 0; i < names.size(); ++i) {
    fields.push_back(arrow::field(names[i], columns[i]->type()));
  }
  return arrow::Table::Make(arrow::schema(fields), columns);
}

class ExactTest : public ::testing::Test {
 protected:
  void Put(const std::string& name, const Table& rows, const testing::FileOptions& options = {}) {
    const auto bytes = testing::ParquetBytes(*rows, options);
    ASSERT_TRUE(bytes.ok()) << bytes.status();
    ASSERT_TRUE(memory_->Put("t/" + name, *bytes, store::PutMode::kOverwrite).ok());
  }

  std::shared_ptr<Index> CreateAndOpen(const std::vector<std::string>& key,
                                       const CacheOptions& cache = {}) {
    CreateOptions create;
    create.key = key;
    auto created = engine::CreateIndexAt(context_, "", create);
    EXPECT_TRUE(created.ok()) << created.status();
    return Open(key, cache);
  }

  std::shared_ptr<Index> Open(const std::vector<std::string>& key, const CacheOptions& cache = {}) {
    OpenOptions open;
    open.key = key;
    open.cache = cache;
    auto index = engine::OpenIndexAt(context_, "", open);
    EXPECT_TRUE(index.ok()) << index.status();
    return index.ok() ? *index : nullptr;
  }

  static GetResult Get(Index& index, const std::vector<std::string>& names,
                       const std::vector<std::shared_ptr<arrow::Array>>& columns,
                       const GetOptions& options = {}) {
    const auto table = MakeTable(names, columns);
    const auto keys = table->CombineChunksToBatch().ValueOrDie();
    auto got = index.Get(*keys, options);
    EXPECT_TRUE(got.ok()) << got.status();
    return got.ok() ? *got : GetResult{};
  }

  std::shared_ptr<store::Store> memory_ = store::MakeMemoryStore();
  engine::TableContext context_{{memory_, "t"}, {memory_, "t/_index"}};
};

std::string TextKey(uint64_t i) { return "key-" + std::to_string(i * 2654435761u) + "-suffix"; }

// Pairs of different keys whose hashes agree in the bits that a small fragment keeps.
std::vector<std::pair<std::string, std::string>> CollidingKeys() {
  constexpr int kBits = 40;
  constexpr uint64_t kKeys = 4000000, kBatch = 100000;
  const key::KeyCodec codec({*key::KeyType::Parse("string")});
  std::vector<std::pair<uint64_t, uint64_t>> hashes;   // the kept bits, and which key
  hashes.reserve(kKeys);
  for (uint64_t first = 0; first < kKeys; first += kBatch) {
    std::vector<std::optional<std::string>> texts;
    for (uint64_t i = 0; i < kBatch; ++i) texts.push_back(TextKey(first + i));
    const std::vector<std::shared_ptr<arrow::Array>> columns = {Strings(texts)};
    key::EncodedKeys encoded;
    EXPECT_TRUE(codec.Encode(columns, &encoded).ok());
    for (uint64_t i = 0; i < kBatch; ++i) {
      hashes.emplace_back(HashBytes(encoded.view(static_cast<int64_t>(i))) >> (64 - kBits),
                          first + i);
    }
  }
  std::sort(hashes.begin(), hashes.end());
  std::vector<std::pair<std::string, std::string>> pairs;
  for (size_t i = 1; i < hashes.size(); ++i) {
    if (hashes[i - 1].first == hashes[i].first) {
      pairs.emplace_back(TextKey(hashes[i - 1].second), TextKey(hashes[i].second));
    }
  }
  return pairs;
}

TEST_F(ExactTest, AFingerprintIsNeverTrusted) {
  const auto pairs = CollidingKeys();
  ASSERT_FALSE(pairs.empty());
  std::vector<std::optional<std::string>> keys, absent;
  std::vector<std::optional<int64_t>> numbers;
  for (const auto& [present, other] : pairs) {
    for (int i = 0; i < 3; ++i) keys.push_back(present);
    absent.push_back(other);
  }
  for (size_t i = 0; i < keys.size(); ++i) numbers.push_back(static_cast<int64_t>(i));
  Put("a.parquet", MakeTable({"k", "n"}, {Strings(keys), Ints(numbers)}));
  auto index = CreateAndOpen({"k"});
  const auto none = Get(*index, {"k"}, {Strings(absent)});
  EXPECT_EQ(none.rows->num_rows(), 0);
  EXPECT_EQ(none.explain.rejected_rows, static_cast<int64_t>(keys.size()))
      << "no fingerprint collided: this test shows nothing";
  const auto asked = MakeTable({"k"}, {Strings(absent)});
  auto counted = index->Count(*asked->CombineChunksToBatch().ValueOrDie());
  ASSERT_TRUE(counted.ok()) << counted.status();
  EXPECT_EQ(counted->counts, std::vector<int64_t>(absent.size(), 0));

  // Both keys of a pair in the table: each gets its own rows, also behind a limit and an offset.
  std::vector<std::optional<std::string>> both;
  for (int i = 0; i < 6; ++i) both.push_back(i % 2 == 0 ? pairs[0].first : pairs[0].second);
  Put("a.parquet", MakeTable({"k", "n"}, {Strings(both), Ints({0, 1, 2, 3, 4, 5})}));
  ASSERT_TRUE(engine::RefreshIndexAt(context_, "", {}).ok());
  index = Open({"k"});
  GetOptions page;
  page.offset = 1;
  page.limit = 1;
  page.columns = {"n"};
  const auto second = Get(*index, {"k"}, {Strings({pairs[0].first, pairs[0].second})}, page);
  EXPECT_EQ(second.row_counts, (std::vector<int64_t>{1, 1}));
  EXPECT_TRUE(second.rows->GetColumnByName("n")->Equals(Ints({2, 3}))) << second.rows->ToString();
  EXPECT_EQ(second.rows->num_columns(), 1);
}

TEST_F(ExactTest, NullIsAKeyOfItsOwn) {
  Put("a.parquet", MakeTable({"k", "n"}, {Ints({0, std::nullopt, 5, std::nullopt, 0}),
                                          Ints({0, 1, 2, 3, 4})}));
  auto index = CreateAndOpen({"k"});
  const auto got = Get(*index, {"k"}, {Ints({0, std::nullopt, 5, 6})});
  EXPECT_EQ(got.row_counts, (std::vector<int64_t>{2, 2, 1, 0}));
  EXPECT_TRUE(got.rows->GetColumnByName("n")->Equals(Ints({0, 4, 1, 3, 2})))
      << got.rows->ToString();
}

TEST_F(ExactTest, CompositeKeysDoNotRunTogether) {
  Put("a.parquet",
      MakeTable({"a", "b", "n"}, {Strings({"x", "xy", "", "xyz", std::nullopt, "x"}),
                                  Strings({"yz", "z", "xyz", "", "x", std::nullopt}),
                                  Ints({0, 1, 2, 3, 4, 5})}));
  auto index = CreateAndOpen({"a", "b"});
  const auto got = Get(*index, {"b", "a"},
                       {Strings({"yz", "z", "xyz", "", "x", std::nullopt, "y"}),
                        Strings({"x", "xy", "", "xyz", std::nullopt, "x", "xz"})});
  EXPECT_EQ(got.row_counts, (std::vector<int64_t>{1, 1, 1, 1, 1, 1, 0}));
  EXPECT_TRUE(got.rows->GetColumnByName("n")->Equals(Ints({0, 1, 2, 3, 4, 5})));
}

TEST_F(ExactTest, FloatsCompareAsNumbers) {
  arrow::DoubleBuilder builder;
  for (double value : {0.0, -0.0, 1.5, std::nan("1"), -std::nan("2"), 1e308}) {
    ARROW_UNUSED(builder.Append(value));
  }
  const auto floats = builder.Finish().ValueOrDie();
  Put("a.parquet", MakeTable({"k", "n"}, {floats, Ints({0, 1, 2, 3, 4, 5})}));
  auto index = CreateAndOpen({"k"});
  arrow::DoubleBuilder asked;
  for (double value : {-0.0, std::nan(""), 1.5, 2.5}) ARROW_UNUSED(asked.Append(value));
  const auto got = Get(*index, {"k"}, {asked.Finish().ValueOrDie()});
  EXPECT_EQ(got.row_counts, (std::vector<int64_t>{2, 2, 1, 0}));
  EXPECT_TRUE(got.rows->GetColumnByName("n")->Equals(Ints({0, 1, 3, 4, 2})));
}

TEST_F(ExactTest, EveryRowOfManySmallRowGroupsIsFoundByItsOwnKey) {
  // Each row group has a dictionary of its own; rows lie at every place of pages and row groups.
  for (const bool dictionary : {true, false}) {
    for (const bool page_v2 : {true, false}) {
      memory_ = store::MakeMemoryStore();
      context_ = {{memory_, "t"}, {memory_, "t/_index"}};
      testing::FileOptions options;
      options.row_group_rows = 101;
      options.page_bytes = 128;
      options.dictionary = dictionary;
      options.page_v2 = page_v2;
      options.checksums = true;
      std::vector<std::optional<int64_t>> ids;
      for (int64_t i = 0; i < 1500; ++i) ids.push_back((i * 7919) % 1500);
      auto rows = testing::PlayEvents(1500, 40, 3);
      rows = rows->AddColumn(0, arrow::field("id", arrow::int64()),
                             std::make_shared<arrow::ChunkedArray>(Ints(ids))).ValueOrDie();
      Put("a.parquet", rows, options);
      auto index = CreateAndOpen({"id"});
      // One at a time in a random order, so that caches are partly warm.
      Rng rng(9);
      for (int i = 0; i < 700; ++i) {
        const int64_t at = static_cast<int64_t>(rng.Below(1500));
        const auto got = Get(*index, {"id"}, {Ints({ids[at]})});
        const auto want = rows->Slice(at, 1)->CombineChunksToBatch().ValueOrDie();
        ASSERT_TRUE(got.rows->Equals(*want)) << got.rows->ToString() << want->ToString();
      }
      // And all at once.
      const auto all = Get(*index, {"id"}, {Ints(ids)});
      ASSERT_TRUE(all.rows->Equals(*rows->CombineChunksToBatch().ValueOrDie()));
    }
  }
}

TEST_F(ExactTest, HivePartitionsAreColumnsAndPartsOfKeys) {
  Put("day=2026-01-01/c=a%2Fb/x.parquet", MakeTable({"k"}, {Ints({1, 2})}));
  Put("day=2026-01-02/c=a%252Fb/x.parquet", MakeTable({"k"}, {Ints({1, 3})}));
  Put("day=__HIVE_DEFAULT_PARTITION__/c=z/x.parquet", MakeTable({"k"}, {Ints({1})}));
  auto index = CreateAndOpen({"k", "c"});
  const auto got = Get(*index, {"k", "c"},
                       {Ints({1, 1, 1, 1}), Strings({"a/b", "a%2Fb", "z", "a%252Fb"})});
  EXPECT_EQ(got.row_counts, (std::vector<int64_t>{1, 1, 1, 0}));
  EXPECT_EQ(got.rows->GetColumnByName("day")->type()->id(), arrow::Type::DATE32);
  EXPECT_EQ(got.rows->GetColumnByName("day")->null_count(), 1);
  EXPECT_TRUE(got.rows->GetColumnByName("c")->Equals(Strings({"a/b", "a%2Fb", "z"})));
}

TEST_F(ExactTest, FilesMayDifferInColumnsAndIntegerWidth) {
  arrow::Int32Builder narrow;
  ARROW_UNUSED(narrow.AppendValues({7, 8}));
  const auto numbers = narrow.Finish().ValueOrDie();
  Put("a.parquet", MakeTable({"k", "x"}, {numbers, Strings({"old7", "old8"})}));
  Put("b.parquet", MakeTable({"y", "k"}, {Strings({"new7"}), Ints({7})}));
  auto index = CreateAndOpen({"k"});
  const auto got = Get(*index, {"k"}, {Ints({7})});
  ASSERT_EQ(got.rows->num_rows(), 2);
  EXPECT_TRUE(got.rows->GetColumnByName("k")->Equals(Ints({7, 7})));
  EXPECT_TRUE(got.rows->GetColumnByName("x")->Equals(Strings({"old7", std::nullopt})));
  EXPECT_TRUE(got.rows->GetColumnByName("y")->Equals(Strings({std::nullopt, "new7"})));
}

TEST_F(ExactTest, ADamagedPageIsCorruptAndNeverARow) {
  testing::FileOptions options;
  options.page_bytes = 256;
  options.checksums = true;
  auto rows = testing::PlayEvents(300, 20, 5);
  Put("a.parquet", rows, options);
  auto index = CreateAndOpen({"user_id"});
  const std::string clean = testing::ParquetBytes(*rows, options).ValueOrDie();
  // The memory store gives every write a new identity, so damage below it: a store of the same
  // identities with one byte changed is what a bad disk looks like. See tests/faults.
  Rng rng(4);
  int64_t corrupt = 0;
  for (int i = 0; i < 200; ++i) {
    std::string damaged = clean;
    damaged[4 + rng.Below(clean.size() * 3 / 4)] ^= static_cast<char>(1 + rng.Below(255));
    memory_ = store::MakeMemoryStore();
    context_ = {{memory_, "t"}, {memory_, "t/_index"}};
    ASSERT_TRUE(memory_->Put("t/a.parquet", damaged, store::PutMode::kOverwrite).ok());
    CreateOptions create;
    create.key = {"user_id"};
    auto created = engine::CreateIndexAt(context_, "", create);
    if (!created.ok()) {
      ++corrupt;
      continue;
    }
    OpenOptions open;
    open.key = {"user_id"};
    auto opened = engine::OpenIndexAt(context_, "", open);
    ASSERT_TRUE(opened.ok()) << opened.status();
    for (int64_t user = 0; user < 20; ++user) {
      const auto keys = MakeTable({"user_id"}, {Ints({user})})->CombineChunksToBatch().ValueOrDie();
      auto got = (*opened)->Get(*keys);
      if (!got.ok()) {
        ++corrupt;
        continue;
      }
      const auto want = testing::RowsWhere({rows}, "user_id", user);
      ASSERT_TRUE(arrow::Table::FromRecordBatches({got->rows}).ValueOrDie()->Equals(*want));
    }
  }
  EXPECT_GT(corrupt, 100);
}

}  // namespace
}  // namespace grebe

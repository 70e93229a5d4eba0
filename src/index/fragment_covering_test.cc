// Covering rows: built, merged, spilled.
#include <arrow/api.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "index/fragment_test_util.h"

namespace grebe::index {
namespace {

std::shared_ptr<arrow::Schema> CoveringSchema() {
  return arrow::schema({arrow::field("row", arrow::int64()),
                        arrow::field("path", arrow::utf8()),
                        arrow::field("maybe", arrow::float64())});
}

// Rows that say which row they are.
std::shared_ptr<arrow::RecordBatch> CoveringOf(const TestFile& file, int64_t at, int64_t count) {
  arrow::Int64Builder rows;
  arrow::StringBuilder paths;
  arrow::DoubleBuilder maybe;
  for (int64_t row = at; row < at + count; ++row) {
    EXPECT_TRUE(rows.Append(row).ok() && paths.Append(file.path).ok());
    EXPECT_TRUE((row % 3 == 0 ? maybe.AppendNull() : maybe.Append(0.5 * row)).ok());
  }
  return arrow::RecordBatch::Make(
      CoveringSchema(), count, {*rows.Finish(), *paths.Finish(), *maybe.Finish()});
}

TestTable MakeTable(bool word_keys, const std::string& prefix, Rng* rng) {
  TestTable table;
  table.word_keys = word_keys;
  for (int f = 0; f < 4; ++f) {
    TestFile file;
    file.path = prefix + std::to_string(f);
    const uint64_t rows = 1 + rng->Below(4000);
    while (file.keys.size() < rows) {
      // Runs, single rows, one hot key, nulls.
      const uint64_t id = rng->Chance(0.4) ? 1 : rng->Below(500);
      const TestKey key = word_keys ? (rng->Chance(0.1) ? NullKey() : WordKey(id * 1000003))
                                    : BytesKey("k" + std::to_string(id));
      const size_t run = rng->Chance(0.1) ? 1 + rng->Below(50) : 1;
      file.keys.insert(file.keys.end(), std::min<size_t>(run, rows - file.keys.size()), key);
    }
    table.files.push_back(std::move(file));
  }
  return table;
}

void CheckCovering(const BuiltFragment& built, const TestTable& table) {
  ASSERT_OK(VerifyFragment(*built.store, built.info, built.whole));
  auto fragment = *built.Open();
  for (const auto& [key, expected] : table.Oracle()) {
    const auto keys = Encode(table.word_keys, std::vector<TestKey>{key});
    const Fragment::Place place = fragment->Locate(keys, 0);
    std::vector<Posting> postings;
    std::vector<int64_t> positions;
    bool exact = false;
    ASSERT_OK(fragment->Find(keys, 0, place, Slice(built.object, place.block), true, &postings,
                             &exact, &positions));
    ASSERT_EQ(RowsOf(*fragment, postings), expected);
    ASSERT_EQ(positions.size(), expected.size());
    auto batch = fragment->OpenCovering(Slice(built.object, place.covering));
    ASSERT_TRUE(batch.ok()) << batch.status().ToString();
    ASSERT_TRUE((*batch)->schema()->Equals(*CoveringSchema()));
    const auto& rows = static_cast<const arrow::Int64Array&>(*(*batch)->column(0));
    const auto& paths = static_cast<const arrow::StringArray&>(*(*batch)->column(1));
    const auto& maybe = static_cast<const arrow::DoubleArray&>(*(*batch)->column(2));
    for (size_t i = 0; i < expected.size(); ++i) {
      ASSERT_LT(positions[i], (*batch)->num_rows());
      ASSERT_EQ(paths.GetString(positions[i]), expected[i].first);
      ASSERT_EQ(rows.Value(positions[i]), expected[i].second);
      ASSERT_EQ(maybe.IsNull(positions[i]), expected[i].second % 3 == 0);
    }
  }
}

FragmentOptions Options(bool word_keys, int64_t memory) {
  FragmentOptions options;
  options.word_keys = word_keys;
  options.memory_bytes_max = memory;
  options.threads = 2;
  options.covering = CoveringSchema();
  return options;
}

TEST(FragmentCoveringTest, RowsFollowTheirPostings) {
  Rng rng(11);
  for (const bool word_keys : {true, false}) {
    for (const int64_t memory : {int64_t{64} << 20, int64_t{60} << 10}) {
      const TestTable table = MakeTable(word_keys, "f", &rng);
      auto built = Build(table, Options(word_keys, memory), &rng, CoveringOf);
      ASSERT_TRUE(built.ok()) << built.status().ToString();
      CheckCovering(*built, table);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(FragmentCoveringTest, MergingKeepsTheRowsOfLiveFiles) {
  Rng rng(12);
  for (const bool word_keys : {true, false}) {
    auto store = store::MakeMemoryStore();
    std::vector<MergeInput> inputs;
    TestTable live{word_keys, {}};
    for (int part = 0; part < 3; ++part) {
      const std::string path = "in" + std::to_string(part);
      const TestTable table = MakeTable(word_keys, path + "/", &rng);
      auto built = Build(table, Options(word_keys, 8 << 20), &rng, CoveringOf);
      ASSERT_TRUE(built.ok()) << built.status().ToString();
      ASSERT_OK(store->Put(path, built->object, store::PutMode::kOverwrite).status());
      MergeInput input{*built->Open(), built->whole, {}};
      input.whole.object = std::make_shared<store::Object>(store::Object{path, {}});
      for (const TestFile& file : table.files) {
        input.live.push_back(rng.Chance(0.7));
        if (input.live.back()) live.files.push_back(file);
      }
      inputs.push_back(std::move(input));
    }
    auto merged = Finish([&](store::Upload& upload) {
      return MergeFragments(*store, inputs, Options(word_keys, 200 << 10), upload);
    });
    ASSERT_TRUE(merged.ok()) << merged.status().ToString();
    CheckCovering(*merged, live);
    if (HasFatalFailure()) return;
  }
}

TEST(FragmentCoveringTest, DamagedCoveringBlockIsCorrupt) {
  Rng rng(13);
  const TestTable table = MakeTable(true, "f", &rng);
  auto built = Build(table, Options(true, 8 << 20), &rng, CoveringOf);
  ASSERT_TRUE(built.ok());
  auto fragment = *built->Open();
  const auto keys = Encode(true, std::vector<TestKey>{table.files[0].keys[0]});
  std::string block(Slice(built->object, fragment->Locate(keys, 0).covering));
  for (size_t at = 0; at < block.size(); at += 1 + rng.Below(9)) {
    std::string damaged = block;
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    EXPECT_KIND(ErrorKind::kCorrupt, fragment->OpenCovering(damaged).status());
  }
  EXPECT_KIND(ErrorKind::kCorrupt, fragment->OpenCovering("").status());
}

TEST(FragmentCoveringTest, RefusesDictionariesAndMismatchedRows) {
  FragmentOptions options = Options(true, 1 << 20);
  options.covering =
      arrow::schema({arrow::field("d", arrow::dictionary(arrow::int32(), arrow::utf8()))});
  EXPECT_KIND(ErrorKind::kUnsupported, FragmentBuilder::Make(options).status());
  auto builder = *FragmentBuilder::Make(Options(true, 1 << 20));
  ASSERT_OK(builder->AddSchema("").status());
  FragmentFile file;
  file.row_count = 10;
  ASSERT_OK(builder->AddFile(file, "").status());
  const auto keys = Encode(true, std::vector<TestKey>(5, WordKey(1)));
  EXPECT_KIND(ErrorKind::kInvalidArgument,
              builder->AddRows(FileId{0}, RowIndex{0}, keys, nullptr));
  const auto batch = CoveringOf(TestFile{"f", {}}, 0, 4);
  EXPECT_KIND(ErrorKind::kInvalidArgument,
              builder->AddRows(FileId{0}, RowIndex{0}, keys, batch.get()));
}

}  // namespace
}  // namespace grebe::index

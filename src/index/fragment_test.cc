#include "index/fragment.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <thread>

#include "index/fragment_test_util.h"

namespace grebe::index {
namespace {

// The seed of this run: GREBE_SEED, else of the clock. Printed when a test fails.
uint64_t Seed() {
  static const uint64_t seed = [] {
    const char* given = std::getenv("GREBE_SEED");
    const uint64_t value = given != nullptr ? std::strtoull(given, nullptr, 10)
                                            : static_cast<uint64_t>(time(nullptr));
    ::testing::Test::RecordProperty("seed", std::to_string(value));
    return value;
  }();
  return seed;
}
#define TRACE_SEED() SCOPED_TRACE("GREBE_SEED=" + std::to_string(Seed()))

enum class Shape {
  kUnique,
  kTenRows,
  kRuns,
  kHotKey,
  kNulls,
  kExtremes,
  kTwoKeys,
  kOneKey,
  kEmpty,
  kWideWords,
};

TestKey MakeKey(bool word_keys, uint64_t id) {
  if (word_keys) return WordKey(id);
  std::string bytes(16, '\0');
  const uint64_t parts[2] = {Mix64(id), Mix64(id ^ 0x5555)};
  std::memcpy(bytes.data(), parts, 16);
  return BytesKey(bytes.substr(0, 1 + id % 16) + std::to_string(id));
}

TestKey KeyOf(Shape shape, bool word_keys, uint64_t row, uint64_t file, Rng* rng) {
  switch (shape) {
    case Shape::kUnique: return MakeKey(word_keys, 1000000 * file + row);
    case Shape::kTenRows: return MakeKey(word_keys, 5000 + rng->Below(2000));
    case Shape::kRuns: return MakeKey(word_keys, 1000 * file + row / 32);
    case Shape::kHotKey: return MakeKey(word_keys, rng->Chance(0.4) ? 7 : rng->Below(100000));
    case Shape::kNulls:
      if (rng->Chance(0.3)) return word_keys ? NullKey() : BytesKey(std::string(1, '\0'));
      return MakeKey(word_keys, rng->Below(3000));
    case Shape::kExtremes: {
      const uint64_t words[] = {0, ~uint64_t{0}, uint64_t{1} << 63, (uint64_t{1} << 63) - 1, 1,
                                row};
      if (word_keys) return WordKey(words[rng->Below(6)]);
      return rng->Chance(0.1) ? BytesKey("") : MakeKey(false, words[rng->Below(6)]);
    }
    case Shape::kTwoKeys: return MakeKey(word_keys, rng->Below(2));
    case Shape::kOneKey: return MakeKey(word_keys, 42);
    case Shape::kEmpty: return NullKey();
    case Shape::kWideWords: return MakeKey(word_keys, Mix64(rng->Below(8000)));
  }
  return NullKey();
}

TestTable MakeTable(Shape shape, bool word_keys, int files, int rows, Rng* rng) {
  TestTable table;
  table.word_keys = word_keys;
  for (int f = 0; f < files; ++f) {
    TestFile file;
    file.path = "day=" + std::to_string(f / 3) + "/part-" + std::to_string(f) + ".parquet";
    const uint64_t count = shape == Shape::kEmpty ? 0 : rng->Below(rows) + (f == 2 ? 0 : 1);
    for (uint64_t r = 0; f != 2 && r < count; ++r) {
      file.keys.push_back(KeyOf(shape, word_keys, r, static_cast<uint64_t>(f), rng));
    }
    table.files.push_back(std::move(file));
  }
  return table;
}

// Compares every key of the oracle, and as many absent ones, through Find and FindMany.
void CheckAnswers(const BuiltFragment& built, const TestTable& table, Rng* rng) {
  auto opened = built.Open();
  ASSERT_TRUE(opened.ok()) << opened.status().ToString();
  const Fragment& fragment = **opened;
  ASSERT_OK(VerifyFragment(*built.store, built.info, built.whole));
  const auto oracle = table.Oracle();
  std::vector<TestKey> asked;
  for (const auto& [key, rows] : oracle) asked.push_back(key);
  const size_t present = asked.size();
  for (size_t i = 0; i < present + 100; ++i) {
    TestKey key = MakeKey(table.word_keys, rng->Chance(0.5) ? rng->Next() : rng->Below(20000));
    asked.push_back(key);
  }
  if (table.word_keys) asked.push_back(NullKey());
  const auto keys = Encode(table.word_keys, asked);
  std::vector<Posting> many;
  std::vector<uint64_t> ends;
  bool exact = false;
  ASSERT_OK(fragment.FindMany(keys, built.object, &many, &ends, &exact));
  EXPECT_EQ(exact, table.word_keys);
  ASSERT_EQ(ends.size(), asked.size());
  for (size_t i = 0; i < asked.size(); ++i) {
    const auto at = static_cast<int64_t>(i);
    const Fragment::Place place = fragment.Locate(keys, at);
    std::vector<Posting> postings;
    ASSERT_OK(fragment.Find(keys, at, place, Slice(built.object, place.block), true, &postings,
                            &exact, nullptr));
    const auto begin = many.begin() + static_cast<int64_t>(i == 0 ? 0 : ends[i - 1]);
    ASSERT_EQ(postings, std::vector<Posting>(begin, many.begin() + static_cast<int64_t>(ends[i])));
    for (size_t p = 1; p < postings.size(); ++p) {
      const Posting& before = postings[p - 1];
      ASSERT_LT(before.file, FileId{postings[p].file.value + 1});
      if (before.file == postings[p].file) {
        ASSERT_LT(before.first_row.value + before.row_count, postings[p].first_row.value)
            << "touching runs are one run";
      }
    }
    const auto found = oracle.find(asked[i]);
    const auto expected = found == oracle.end() ? std::vector<TestRow>() : found->second;
    ASSERT_EQ(RowsOf(fragment, postings), expected) << "key " << i;
  }
}

FragmentOptions Options(bool word_keys, int64_t memory, int threads) {
  FragmentOptions options;
  options.word_keys = word_keys;
  options.memory_bytes_max = memory;
  options.threads = threads;
  return options;
}

struct Case {
  Shape shape;
  const char* name;
  int files, rows;
};
constexpr Case kCases[] = {
    {Shape::kUnique, "Unique", 7, 4000},     {Shape::kTenRows, "TenRows", 9, 5000},
    {Shape::kRuns, "Runs", 4, 20000},        {Shape::kHotKey, "HotKey", 5, 6000},
    {Shape::kNulls, "Nulls", 5, 6000},       {Shape::kExtremes, "Extremes", 6, 500},
    {Shape::kTwoKeys, "TwoKeys", 5, 8000},   {Shape::kOneKey, "OneKey", 5, 2000},
    {Shape::kEmpty, "Empty", 3, 1},          {Shape::kWideWords, "WideWords", 5, 8000},
};

class FragmentShapes : public ::testing::TestWithParam<std::tuple<Case, bool, int64_t>> {};

TEST_P(FragmentShapes, AnswersAsTheOracle) {
  TRACE_SEED();
  const auto& [shape, word_keys, memory] = GetParam();
  Rng rng(Seed() ^ static_cast<uint64_t>(memory));
  const TestTable table = MakeTable(shape.shape, word_keys, shape.files, shape.rows, &rng);
  auto built = Build(table, Options(word_keys, memory, 1 + static_cast<int>(rng.Below(3))), &rng);
  ASSERT_TRUE(built.ok()) << built.status().ToString();
  CheckAnswers(*built, table, &rng);
  int64_t rows = 0;
  for (const TestFile& file : table.files) rows += static_cast<int64_t>(file.keys.size());
  EXPECT_EQ(built->info.row_count, rows);
  EXPECT_EQ(built->info.key_count, static_cast<int64_t>(table.Oracle().size()));
  EXPECT_EQ(built->info.file_count, static_cast<int64_t>(table.files.size()));
}

INSTANTIATE_TEST_SUITE_P(
    All, FragmentShapes,
    ::testing::Combine(::testing::ValuesIn(kCases), ::testing::Bool(),
                       // In memory; spilled at once; partitions that outgrow the memory.
                       ::testing::Values(int64_t{64} << 20, int64_t{512} << 10, int64_t{20000})),
    [](const auto& info) {
      return std::string(std::get<0>(info.param).name) +
             (std::get<1>(info.param) ? "Word" : "Bytes") +
             std::to_string(std::get<2>(info.param) >> 10) + "KiB";
    });

TEST(FragmentTest, CarriesFilesSchemasAndPageMaps) {
  TRACE_SEED();
  Rng rng(Seed());
  const TestTable table = MakeTable(Shape::kTenRows, true, 5, 100, &rng);
  auto built = Build(table, Options(true, 1 << 20, 1), &rng);
  ASSERT_TRUE(built.ok());
  auto fragment = *built->Open();
  ASSERT_EQ(fragment->files().size(), table.files.size());
  EXPECT_EQ(fragment->schemas(), std::vector<std::string>{"a schema"});
  int64_t at = fragment->page_maps().begin;
  for (size_t f = 0; f < table.files.size(); ++f) {
    const FragmentFile& file = fragment->files()[f];
    EXPECT_EQ(file.path, table.files[f].path);
    EXPECT_EQ(file.identity.tag, "tag-" + file.path);
    EXPECT_EQ(file.identity.size_bytes, file.row_count * 10);
    EXPECT_EQ(file.row_count, static_cast<int64_t>(table.files[f].keys.size()));
    EXPECT_EQ(file.page_map.begin, at);
    EXPECT_EQ(Slice(built->object, file.page_map), PageMapOf(file.path));
    EXPECT_EQ(file.page_map_checksum, Checksum(PageMapOf(file.path)));
    at = file.page_map.end;
  }
  EXPECT_EQ(fragment->page_maps().end, at);
}

TEST(FragmentTest, ManyThreadsAddFilesAtOnce) {
  TRACE_SEED();
  Rng rng(Seed());
  const TestTable table = MakeTable(Shape::kTenRows, true, 24, 3000, &rng);
  auto builder = *FragmentBuilder::Make(Options(true, 1 << 20, 2));
  const uint32_t schema = *builder->AddSchema("s");
  std::atomic<size_t> next{0};
  std::vector<std::thread> threads;
  std::mutex mutex;
  Status failed;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (size_t f = next.fetch_add(1); f < table.files.size(); f = next.fetch_add(1)) {
        FragmentFile entry;
        entry.path = table.files[f].path;
        entry.row_count = static_cast<int64_t>(table.files[f].keys.size());
        entry.schema = *builder->AddSchema("s");
        const FileId id = *builder->AddFile(entry, "");
        const Status added =
            builder->AddRows(id, RowIndex{0}, Encode(true, table.files[f].keys), nullptr);
        std::lock_guard lock(mutex);
        if (!added.ok()) failed = added;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_OK(failed);
  EXPECT_EQ(schema, 0u);
  auto built = Finish([&](store::Upload& upload) { return builder->Write(upload); });
  ASSERT_TRUE(built.ok()) << built.status().ToString();
  // Files lie in the order of the AddFile calls: bring the oracle into that order.
  TestTable sorted = table;
  auto fragment = *built->Open();
  for (size_t f = 0; f < table.files.size(); ++f) {
    const std::string& path = fragment->files()[f].path;
    sorted.files[f] = *std::find_if(table.files.begin(), table.files.end(),
                                    [&](const TestFile& file) { return file.path == path; });
  }
  CheckAnswers(*built, sorted, &rng);
}

TEST(FragmentTest, RefusesRowsOutOfOrderAndOutsideTheirFile) {
  auto builder = *FragmentBuilder::Make(Options(true, 1 << 20, 1));
  ASSERT_OK(builder->AddSchema("s").status());
  FragmentFile file;
  file.path = "a";
  file.row_count = 10;
  const FileId id = *builder->AddFile(file, "");
  const auto keys = Encode(true, std::vector<TestKey>(5, WordKey(1)));
  ASSERT_OK(builder->AddRows(id, RowIndex{4}, keys, nullptr));
  EXPECT_KIND(ErrorKind::kInvalidArgument, builder->AddRows(id, RowIndex{0}, keys, nullptr));
  EXPECT_KIND(ErrorKind::kInvalidArgument, builder->AddRows(id, RowIndex{9}, keys, nullptr));
  EXPECT_KIND(ErrorKind::kInvalidArgument, builder->AddRows(id, RowIndex{-1}, keys, nullptr));
  EXPECT_KIND(ErrorKind::kInvalidArgument, builder->AddRows(FileId{3}, RowIndex{0}, keys, nullptr));
  const auto bytes = Encode(false, std::vector<TestKey>(1, BytesKey("x")));
  EXPECT_KIND(ErrorKind::kInvalidArgument, builder->AddRows(id, RowIndex{9}, bytes, nullptr));
  file.schema = 7;
  EXPECT_KIND(ErrorKind::kInvalidArgument, builder->AddFile(file, "").status());
}

TEST(FragmentTest, StopsOnRequest) {
  Rng rng(1);
  StopToken stop;
  FragmentOptions options = Options(true, 1 << 20, 2);
  options.stop = &stop;
  stop.RequestStop();
  const TestTable table = MakeTable(Shape::kUnique, true, 3, 1000, &rng);
  EXPECT_KIND(ErrorKind::kCancelled, Build(table, options, &rng).status());
}

TEST(FragmentTest, LeavesNothingInTheSpillFolder) {
  TRACE_SEED();
  Rng rng(Seed());
  std::string folder = ::testing::TempDir() + "/spill-XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  FragmentOptions options = Options(true, 100 << 10, 2);
  options.spill_folder = folder;
  const TestTable table = MakeTable(Shape::kWideWords, true, 10, 20000, &rng);
  auto built = Build(table, options, &rng);
  ASSERT_TRUE(built.ok()) << built.status().ToString();
  EXPECT_EQ(rmdir(folder.c_str()), 0) << "the folder is not empty";
  options.spill_folder = folder;
  const auto failed = Build(table, options, &rng);
  EXPECT_FALSE(failed.ok()) << "the folder is gone, and the table does not fit the memory";
}

TEST(FragmentTest, OneKeyWithAMillionRowsOutgrowsTheMemory) {
  TRACE_SEED();
  Rng rng(Seed());
  TestTable table;
  for (int f = 0; f < 8; ++f) {
    TestFile file;
    file.path = "f" + std::to_string(f);
    for (int row = 0; row < 200000; ++row) {
      file.keys.push_back(WordKey(rng.Below(8) < 5 ? 77 : 1000 + rng.Below(500)));
    }
    table.files.push_back(std::move(file));
  }
  auto built = Build(table, Options(true, 1 << 20, 2), &rng);
  ASSERT_TRUE(built.ok()) << built.status().ToString();
  CheckAnswers(*built, table, &rng);
}

// ---- merging ----

// Builds `parts` fragments, merges them with some files dead, and compares with the live files.
void CheckMerge(Shape shape, bool word_keys, int64_t memory, Rng* rng) {
  std::vector<BuiltFragment> parts;
  std::vector<TestTable> tables;
  TestTable live;
  live.word_keys = word_keys;
  std::vector<MergeInput> inputs;
  auto store = store::MakeMemoryStore();
  for (int part = 0; part < 4; ++part) {
    TestTable table = MakeTable(shape, word_keys, 4, 3000, rng);
    for (TestFile& file : table.files) {
      file.path = "part" + std::to_string(part) + "/" + file.path;
      if (word_keys && shape == Shape::kUnique) {
        for (TestKey& key : file.keys) key.word += 100000000ull * static_cast<uint64_t>(part);
      }
    }
    auto built = Build(table, Options(word_keys, 8 << 20, 1), rng);
    ASSERT_TRUE(built.ok()) << built.status().ToString();
    const std::string path = "in" + std::to_string(part);
    ASSERT_OK(store->Put(path, built->object, store::PutMode::kIfAbsent).status());
    MergeInput input;
    input.fragment = *built->Open();
    input.whole = built->whole;
    input.whole.object = std::make_shared<store::Object>(store::Object{path, {}});
    for (const TestFile& file : table.files) {
      input.live.push_back(!rng->Chance(0.3));
      if (input.live.back()) live.files.push_back(file);
    }
    inputs.push_back(std::move(input));
  }
  FragmentOptions options = Options(word_keys, memory, 2);
  auto merged = Finish([&](store::Upload& upload) {
    return MergeFragments(*store, inputs, options, upload);
  });
  ASSERT_TRUE(merged.ok()) << merged.status().ToString();
  CheckAnswers(*merged, live, rng);
  auto fragment = *merged->Open();
  ASSERT_EQ(fragment->files().size(), live.files.size());
  for (size_t f = 0; f < live.files.size(); ++f) {
    EXPECT_EQ(Slice(merged->object, fragment->files()[f].page_map), PageMapOf(live.files[f].path));
  }
}

TEST(FragmentTest, MergedFragmentsAnswerAsAFreshBuild) {
  TRACE_SEED();
  Rng rng(Seed());
  for (const Case& shape : kCases) {
    for (const bool word_keys : {true, false}) {
      for (const int64_t memory : {int64_t{64} << 20, int64_t{100} << 10}) {
        SCOPED_TRACE(std::string(shape.name) + (word_keys ? " word" : " bytes"));
        CheckMerge(shape.shape, word_keys, memory, &rng);
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST(FragmentTest, MergingNothingIsAnEmptyFragment) {
  Rng rng(1);
  auto store = store::MakeMemoryStore();
  for (const bool word_keys : {true, false}) {
    auto merged = Finish([&](store::Upload& upload) {
      return MergeFragments(*store, {}, Options(word_keys, 1 << 20, 1), upload);
    });
    ASSERT_TRUE(merged.ok()) << merged.status().ToString();
    CheckAnswers(*merged, TestTable{word_keys, {}}, &rng);
  }
}

}  // namespace
}  // namespace grebe::index

#include "index/index_view.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include "base/rng.h"
#include "index/block_cache.h"
#include "index/manifest.h"
#include "store/local_store.h"
#include "store/memory_store.h"
#include "testing/counting_store.h"
#include "testing/faulty_store.h"
#include "testing/temp_folder.h"
#include "testing/test_index.h"

namespace grebe::index {
namespace {

using ::grebe::testing::CountingStore;
using ::grebe::testing::FaultOptions;
using ::grebe::testing::FaultyStore;
using store::Location;
using testing::kNull;
using testing::RandomFiles;
using testing::TestFile;
using testing::TestIndex;
using testing::TestOptions;

// Remote options: nothing whole, nothing filtered, so that every range read shows.
ViewOptions Ranged() {
  ViewOptions options;
  options.whole_fragment_bytes_max = 0;
  return options;
}

std::vector<int64_t> SomeKeys(Rng* rng, int count, int64_t key_range) {
  std::vector<int64_t> keys;
  for (int i = 0; i < count; ++i) {
    const bool odd = rng->Chance(0.15);
    keys.push_back(odd ? (rng->Chance(0.5) ? kNull : key_range + 5)
                       : static_cast<int64_t>(rng->Below(static_cast<uint64_t>(key_range))));
  }
  return keys;
}

void ExpectRightAnswers(const TestIndex& index, IndexView& view, const std::vector<int64_t>& keys,
                        const IndexView::FindOptions& options = {}) {
  const auto found = view.Find(index.Encode(keys), options, nullptr);
  ASSERT_TRUE(found.ok()) << found.status();
  ASSERT_EQ(found->size(), keys.size());
  for (size_t i = 0; i < keys.size(); ++i) {
    ASSERT_EQ(TestIndex::RowsOf(view, (*found)[i]), index.Expected(keys[i])) << "key " << keys[i];
    if (!options.covering) continue;
    const auto& batch = (*found)[i].covering;
    std::vector<int64_t> values;
    for (int64_t row = 0; batch != nullptr && row < batch->num_rows(); ++row) {
      values.push_back(
          static_cast<const arrow::Int64Array&>(*batch->column(0)).Value(row));
    }
    ASSERT_EQ(values, index.ExpectedCovering(keys[i])) << "key " << keys[i];
  }
}

// ---- One battery over every place an index can be.

enum class Where { kMapped, kRanged, kWhole };
struct BatteryCase {
  const char* name;
  Where where;
  bool word_keys;
  bool covering;
  int fragments;
};

class IndexViewBatteryTest : public ::testing::TestWithParam<BatteryCase> {
 protected:
  Location Folder() {
    if (GetParam().where == Where::kMapped) {
      return {store::MakeLocalStore(), temp_.path() + "/index"};
    }
    return {store::MakeMemoryStore(), "index"};
  }
  ViewOptions Options() const {
    ViewOptions options;
    options.whole_fragment_bytes_max = GetParam().where == Where::kWhole ? 1 << 20 : 0;
    return options;
  }
  grebe::testing::TempFolder temp_;
};

TEST_P(IndexViewBatteryTest, AnswersAsABruteForceScanDoes) {
  const BatteryCase& param = GetParam();
  TestOptions test_options;
  test_options.word_keys = param.word_keys;
  test_options.covering = param.covering;
  TestIndex index(Folder(), test_options);
  constexpr int64_t kKeyRange = 300;
  std::vector<std::string> paths;
  for (int f = 0; f < param.fragments; ++f) {
    // Paths interleave across fragments, so that gathering must really sort.
    std::vector<TestFile> files = RandomFiles(100 + f, f, 1, 400, kKeyRange);
    const auto more = RandomFiles(200 + f, 500 - f, 2, 150, kKeyRange);
    files.insert(files.end(), more.begin(), more.begin() + 1);
    std::sort(files.begin(), files.end(), [](auto& a, auto& b) { return a.path < b.path; });
    ASSERT_TRUE(index.AddFragment(files).ok());
    for (const TestFile& file : files) paths.push_back(file.path);
  }
  for (size_t i = 0; i < paths.size(); i += 4) index.Kill(paths[i]);
  const auto view = index.Open(Options()).ValueOrDie();
  ASSERT_EQ(view->files().size(), paths.size() - (paths.size() + 3) / 4);

  IndexView::FindOptions options;
  options.covering = param.covering;
  constexpr uint64_t kSeed = 9;
  Rng rng(kSeed);
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  for (int round = 0; round < 60; ++round) {
    options.page_maps = round % 2 == 0;
    const int count = round % 3 == 0 ? 1 : static_cast<int>(rng.Below(40));
    ASSERT_NO_FATAL_FAILURE(
        ExpectRightAnswers(index, *view, SomeKeys(&rng, count, kKeyRange), options));
  }
  for (uint32_t file = 0; file < view->files().size(); ++file) {
    const auto map = view->page_map(file);
    ASSERT_TRUE(map.ok()) << map.status();
    EXPECT_EQ((*map)->row_count(), view->files()[file].row_count);
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, IndexViewBatteryTest,
    ::testing::Values(BatteryCase{"MappedEmpty", Where::kMapped, true, false, 0},
                      BatteryCase{"MappedWord1", Where::kMapped, true, false, 1},
                      BatteryCase{"MappedWord40", Where::kMapped, true, false, 40},
                      BatteryCase{"MappedBytes40", Where::kMapped, false, false, 40},
                      BatteryCase{"MappedCovering3", Where::kMapped, true, true, 3},
                      BatteryCase{"RangedEmpty", Where::kRanged, true, false, 0},
                      BatteryCase{"RangedWord1", Where::kRanged, true, false, 1},
                      BatteryCase{"RangedWord20", Where::kRanged, true, false, 20},
                      BatteryCase{"RangedBytes20", Where::kRanged, false, false, 20},
                      BatteryCase{"RangedCovering5", Where::kRanged, true, true, 5},
                      BatteryCase{"RangedBytesCovering5", Where::kRanged, false, true, 5},
                      BatteryCase{"WholeWord40", Where::kWhole, true, false, 40},
                      BatteryCase{"WholeBytesCovering5", Where::kWhole, false, true, 5}),
    [](const auto& info) { return std::string(info.param.name); });

// ---- Files.

TEST(IndexViewTest, FilesAreSortedPinnedAndShareTheirSchema) {
  TestIndex index({store::MakeMemoryStore(), "index"}, {});
  ASSERT_TRUE(index.AddFragment({{"b", {1, 2}}, {"c", {3}}}).ok());
  ASSERT_TRUE(index.AddFragment({{"a/x y\"\xff", {1}}}).ok());
  const auto view = index.Open().ValueOrDie();
  ASSERT_EQ(view->files().size(), 3u);
  EXPECT_EQ(view->files()[0].path, "a/x y\"\xff");
  EXPECT_EQ(view->files()[1].path, "b");
  EXPECT_EQ(view->files()[0].object->path, "/table/a/x y\"\xff");
  EXPECT_EQ(view->files()[1].object->identity, (store::Identity{1002, "tag-b"}));
  EXPECT_EQ(view->files()[1].row_count, 2);
  EXPECT_EQ(view->files()[0].schema, view->files()[2].schema);
  EXPECT_EQ(view->files()[0].schema->leaf_count(), 2);
  std::set<uint64_t> keys;
  for (const ViewFile& file : view->files()) keys.insert(file.file_key);
  EXPECT_EQ(keys.size(), 3u);
  const auto again = index.Open().ValueOrDie();
  EXPECT_EQ(again->files()[1].file_key, view->files()[1].file_key);
}

TEST(IndexViewTest, AFileThatIsLiveTwiceOrOutsideTheTableIsCorrupt) {
  TestIndex twice({store::MakeMemoryStore(), "index"}, {});
  ASSERT_TRUE(twice.AddFragment({{"a", {1}}}).ok());
  ASSERT_TRUE(twice.AddFragment({{"a", {1}}}).ok());
  EXPECT_TRUE(IsKind(twice.Open().status(), ErrorKind::kCorrupt));
  for (const char* path : {"../a", "/etc/passwd", "x/../../y", "x/.."}) {
    TestIndex outside({store::MakeMemoryStore(), "index"}, {});
    ASSERT_TRUE(outside.AddFragment({{path, {1}}}).ok());
    EXPECT_TRUE(IsKind(outside.Open().status(), ErrorKind::kCorrupt)) << path;
  }
}

TEST(IndexViewTest, KeysOfTheWrongFormAndCoveringWithoutAreRefused) {
  TestIndex index({store::MakeMemoryStore(), "index"}, {});
  ASSERT_TRUE(index.AddFragment({{"a", {1}}}).ok());
  const auto view = index.Open().ValueOrDie();
  TestOptions bytes;
  bytes.word_keys = false;
  const TestIndex other({store::MakeMemoryStore(), "index"}, bytes);
  EXPECT_TRUE(
      IsKind(view->Find(other.Encode({1}), {}, nullptr).status(), ErrorKind::kInvalidArgument));
  IndexView::FindOptions covering;
  covering.covering = true;
  EXPECT_TRUE(IsKind(view->Find(index.Encode({1}), covering, nullptr).status(),
                     ErrorKind::kInvalidArgument));
  EXPECT_TRUE(IsKind(view->page_map(7).status(), ErrorKind::kInvalidArgument));
}

// ---- Waves and requests.

class IndexViewWavesTest : public ::testing::Test {
 protected:
  void Build(int fragments, bool covering = false) {
    TestOptions options;
    options.covering = covering;
    index = std::make_unique<TestIndex>(Location{counting, "index"}, options);
    for (int f = 0; f < fragments; ++f) {
      // Each fragment has every key from 0 to 99, so that every fragment is probed.
      TestFile file{"f" + std::to_string(100 + f), {}};
      for (int64_t key = 0; key < 100; ++key) file.keys.push_back(key);
      ASSERT_TRUE(index->AddFragment({file}).ok());
    }
    counting->Reset();
  }
  void ExpectCounts(const ProbeCounters& counters, int64_t waves, int64_t requests) {
    const auto counts = counting->counts();
    EXPECT_EQ(counters.waves, waves);
    EXPECT_EQ(counters.requests, requests);
    EXPECT_EQ(counts.waves, waves);
    EXPECT_EQ(counts.requests, requests);
    EXPECT_EQ(counts.bytes, counters.bytes_read);
    EXPECT_EQ(counts.stats, 0);
    EXPECT_EQ(counts.lists, 0);
    counting->Reset();
  }
  std::shared_ptr<IndexView> Open(const ViewOptions& options = Ranged()) {
    auto view = index->Open(options).ValueOrDie();
    counting->Reset();
    return view;
  }

  std::shared_ptr<CountingStore> counting =
      std::make_shared<CountingStore>(store::MakeMemoryStore());
  std::unique_ptr<TestIndex> index;
};

TEST_F(IndexViewWavesTest, OpeningIsOneWaveOfOneRequestAFragment) {
  for (const int fragments : {1, 10, 200}) {
    Build(fragments);
    ASSERT_TRUE(index->Open(Ranged()).ok());
    EXPECT_EQ(counting->counts().waves, 1);
    EXPECT_EQ(counting->counts().requests, fragments);
    EXPECT_EQ(counting->counts().stats, 0);
    for (const auto& entry : counting->log()) EXPECT_NE(entry.range.begin, 0);
  }
}

TEST_F(IndexViewWavesTest, AColdProbeIsOneWaveAndAWarmOneNone) {
  for (const int fragments : {1, 10, 200}) {
    Build(fragments);
    const auto view = Open();
    ProbeCounters cold;
    ASSERT_TRUE(view->Find(index->Encode({7}), {}, &cold).ok());
    EXPECT_EQ(cold.fragments_probed, fragments);
    EXPECT_EQ(cold.postings, fragments);
    EXPECT_EQ(cold.block_cache_hits, 0);
    ExpectCounts(cold, 1, 2 * fragments);   // a block and the page maps of each

    ProbeCounters warm;
    ASSERT_TRUE(view->Find(index->Encode({7}), {}, &warm).ok());
    EXPECT_EQ(warm.block_cache_hits, fragments);
    EXPECT_EQ(warm.fragments_probed, fragments);
    ExpectCounts(warm, 0, 0);
    for (uint32_t file = 0; file < view->files().size(); ++file) {
      ASSERT_TRUE(view->page_map(file).ok());
    }
    EXPECT_EQ(counting->counts().requests, 0);
  }
}

TEST_F(IndexViewWavesTest, ManyKeysShareOneWaveAndEqualRangesAreReadOnce) {
  Build(10);
  const auto view = Open();
  std::vector<int64_t> keys;
  for (int64_t key = 0; key < 100; ++key) keys.push_back(key);
  keys.insert(keys.end(), {7, 7, 50});
  ProbeCounters counters;
  ASSERT_TRUE(view->Find(index->Encode(keys), {}, &counters).ok());
  EXPECT_EQ(counters.postings, 1030);
  // 100 keys fit in one block.
  ExpectCounts(counters, 1, 20);
}

TEST_F(IndexViewWavesTest, CountingLoadsNoPageMaps) {
  Build(10);
  const auto view = Open();
  ProbeCounters counters;
  IndexView::FindOptions options;
  options.page_maps = false;
  ASSERT_TRUE(view->Find(index->Encode({7}), options, &counters).ok());
  ExpectCounts(counters, 1, 10);
}

TEST_F(IndexViewWavesTest, KeysThatNoFragmentCanHaveCostNothing) {
  Build(10);
  const auto view = Open();
  ProbeCounters counters;
  ASSERT_TRUE(view->Find(index->Encode({-5, 1000000, kNull}), {}, &counters).ok());
  EXPECT_EQ(counters.fragments_probed, 0);
  ExpectCounts(counters, 0, 0);
}

TEST_F(IndexViewWavesTest, LargePageMapsAreLoadedForTheFoundFilesInAWaveOfTheirOwn) {
  Build(10);
  ViewOptions options = Ranged();
  options.page_maps_eager_bytes_max = 0;
  const auto view = Open(options);
  ProbeCounters counters;
  ASSERT_TRUE(view->Find(index->Encode({7}), {}, &counters).ok());
  ExpectCounts(counters, 2, 20);
  ASSERT_TRUE(view->page_map(3).ok());
  EXPECT_EQ(counting->counts().requests, 0);
  ProbeCounters again;
  ASSERT_TRUE(view->Find(index->Encode({8}), {}, &again).ok());
  ExpectCounts(again, 0, 0);
}

TEST_F(IndexViewWavesTest, CoveringBlocksRideInTheSameWave) {
  Build(10, true);
  const auto view = Open();
  IndexView::FindOptions options;
  options.covering = true;
  options.page_maps = false;
  ProbeCounters counters;
  ASSERT_TRUE(view->Find(index->Encode({7, 8}), options, &counters).ok());
  ExpectCounts(counters, 1, 20);
  ProbeCounters warm;
  ASSERT_TRUE(view->Find(index->Encode({8}), options, &warm).ok());
  EXPECT_EQ(warm.block_cache_hits, 20);
  ExpectCounts(warm, 0, 0);
}

TEST_F(IndexViewWavesTest, SmallFragmentsAreReadWholeWithTheirHeads) {
  Build(10);
  ViewOptions options;
  options.whole_fragment_bytes_max = 1 << 20;
  ASSERT_TRUE(index->Open(options).ok());
  EXPECT_EQ(counting->counts().waves, 1);
  EXPECT_EQ(counting->counts().requests, 10);
  const auto view = Open(options);
  ProbeCounters counters;
  ASSERT_TRUE(view->Find(index->Encode({7}), {}, &counters).ok());
  EXPECT_EQ(counters.postings, 10);
  EXPECT_EQ(counters.fragments_probed, 10);
  ExpectCounts(counters, 0, 0);
}

TEST_F(IndexViewWavesTest, AColdProcessNeedsThreeWavesBeforeTheData) {
  Build(10);
  ManifestLog log(index->folder);
  ASSERT_TRUE(log.Commit(0, index->manifest()).ok());
  counting->Reset();
  const Manifest manifest = log.ReadNewest().ValueOrDie().value();
  const auto view =
      IndexView::Open(index->table, index->folder, manifest, Ranged()).ValueOrDie();
  ProbeCounters counters;
  const auto found = view->Find(index->Encode({7}), {}, &counters).ValueOrDie();
  EXPECT_EQ(found[0].runs.size(), 10u);
  for (const FoundRun& run : found[0].runs) ASSERT_TRUE(view->page_map(run.file).ok());
  const auto counts = counting->counts();
  EXPECT_EQ(counts.waves, 3);   // hint (beside the listing), heads, blocks and page maps
  EXPECT_EQ(counts.lists, 1);
  EXPECT_EQ(counts.stats, 0);
  EXPECT_EQ(counts.requests, 1 + 10 + 20);
}

TEST_F(IndexViewWavesTest, ASharedCacheServesTheNextVersion) {
  Build(3);
  ViewOptions options = Ranged();
  options.block_cache = std::make_shared<BlockCache>(1 << 20);
  ProbeCounters first;
  ASSERT_TRUE(Open(options)->Find(index->Encode({7}), {}, &first).ok());
  TestFile file{"g", {7}};
  ASSERT_TRUE(index->AddFragment({file}).ok());
  const auto next = Open(options);
  IndexView::FindOptions no_maps;
  no_maps.page_maps = false;
  ProbeCounters counters;
  ASSERT_TRUE(next->Find(index->Encode({7}), no_maps, &counters).ok());
  EXPECT_EQ(counters.block_cache_hits, 3);
  ExpectCounts(counters, 1, 1);
}

TEST_F(IndexViewWavesTest, BudgetsOfNothingCostReadsButNoRightAnswer) {
  Build(5);
  ViewOptions options = Ranged();
  options.block_cache_bytes_max = 0;
  options.page_map_bytes_max = 0;
  for (const int64_t eager : {int64_t{0}, int64_t{1} << 20}) {
    options.page_maps_eager_bytes_max = eager;
    const auto view = Open(options);
    for (int round = 0; round < 3; ++round) {
      ExpectRightAnswers(*index, *view, {7, 50, 99});
      for (uint32_t file = 0; file < 5; ++file) {
        EXPECT_EQ(view->page_map(file).ValueOrDie()->row_count(), 100);
      }
    }
  }
}

// ---- Damage and faults.

TEST(IndexViewDamageTest, AFragmentThatIsGoneOrOfAnotherSize) {
  grebe::testing::TempFolder temp;
  const Location places[] = {{store::MakeMemoryStore(), "index"},
                             {store::MakeLocalStore(), temp.path() + "/index"}};
  for (const Location& place : places) {
    TestIndex index(place, {});
    ASSERT_TRUE(index.AddFragment(RandomFiles(1, 0, 1, 50, 20)).ok());
    const std::string path = place.path + "/" + index.manifest().fragments[0].path;
    const std::string bytes =
        place.store->ReadWhole(std::span(&path, 1))[0].ValueOrDie().bytes->ToString();
    ASSERT_TRUE(place.store->Put(path, bytes + "x", store::PutMode::kOverwrite).ok());
    for (const ViewOptions& options : {Ranged(), ViewOptions{}}) {
      const Status status = index.Open(options).status();
      EXPECT_TRUE(IsKind(status, ErrorKind::kCorrupt)) << status;
    }
    ASSERT_TRUE(place.store->Delete(path).ok());
    for (const ViewOptions& options : {Ranged(), ViewOptions{}}) {
      const Status status = index.Open(options).status();
      EXPECT_TRUE(IsKind(status, ErrorKind::kNotFound)) << status;
    }
  }
}

// Replaced, never changed in place: an old view may have it mapped. (Without a Put's syncs.)
void Replace(const Location& place, const std::string& path, const std::string& bytes) {
  if (place.store->kind() != "file") {
    ASSERT_TRUE(place.store->Put(path, bytes, store::PutMode::kOverwrite).ok());
    return;
  }
  std::ofstream(path + ".new", std::ios::binary) << bytes;
  std::filesystem::rename(path + ".new", path);
}

void FlipEveryByte(const Location& place, const ViewOptions& options) {
  TestOptions test_options;
  test_options.covering = true;
  TestIndex index(place, test_options);
  ASSERT_TRUE(index.AddFragment(RandomFiles(1, 0, 2, 40, 20)).ok());
  const std::string path = place.path + "/" + index.manifest().fragments[0].path;
  const std::string good =
      place.store->ReadWhole(std::span(&path, 1))[0].ValueOrDie().bytes->ToString();
  std::vector<int64_t> keys = {kNull, 77};
  for (int64_t key = 0; key < 20; ++key) keys.push_back(key);
  int64_t corrupt = 0;
  for (size_t at = 0; at < good.size(); ++at) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ (1 << (at % 8)));
    Replace(place, path, bad);
    const auto view = index.Open(options);
    if (!view.ok()) {
      ASSERT_TRUE(IsKind(view.status(), ErrorKind::kCorrupt)) << at << " " << view.status();
      ++corrupt;
      continue;
    }
    bool failed = false;
    for (const bool covering : {false, true}) {
      IndexView::FindOptions find;
      find.covering = covering;
      const auto found = (*view)->Find(index.Encode(keys), find, nullptr);
      if (!found.ok()) {
        ASSERT_TRUE(IsKind(found.status(), ErrorKind::kCorrupt)) << at << " " << found.status();
        failed = true;
        continue;
      }
      for (size_t i = 0; i < keys.size(); ++i) {
        ASSERT_EQ(TestIndex::RowsOf(**view, (*found)[i]), index.Expected(keys[i])) << at;
      }
    }
    for (uint32_t file = 0; file < 2; ++file) {
      const auto map = (*view)->page_map(file);
      if (map.ok()) continue;
      ASSERT_TRUE(IsKind(map.status(), ErrorKind::kCorrupt)) << at << " " << map.status();
      failed = true;
    }
    corrupt += failed;
  }
  // All but the magic at the start, which nothing reads.
  EXPECT_GE(corrupt + 8, static_cast<int64_t>(good.size()));
}

TEST(IndexViewDamageTest, EveryFlippedByteMapped) {
  grebe::testing::TempFolder temp;
  FlipEveryByte({store::MakeLocalStore(), temp.path() + "/index"}, {});
}
TEST(IndexViewDamageTest, EveryFlippedByteRanged) {
  FlipEveryByte({store::MakeMemoryStore(), "index"}, Ranged());
}
TEST(IndexViewDamageTest, EveryFlippedByteWhole) {
  FlipEveryByte({store::MakeMemoryStore(), "index"}, {});
}

TEST(IndexViewFaultTest, AFaultAtAnyReadGivesTheRightAnswerOrAnError) {
  const auto memory = store::MakeMemoryStore();
  TestIndex index({memory, "index"}, {});
  for (int f = 0; f < 3; ++f) {
    ASSERT_TRUE(index.AddFragment(RandomFiles(f, 10 * f, 2, 100, 40)).ok());
  }
  for (const int64_t eager : {int64_t{0}, int64_t{1} << 20}) {
    int64_t errors = 0;
    for (int64_t n = 1;; ++n) {
      FaultOptions faults;
      faults.error_on_read = n;
      const auto faulty = std::make_shared<FaultyStore>(memory, faults);
      ViewOptions options = Ranged();
      options.page_maps_eager_bytes_max = eager;
      const auto view = IndexView::Open(index.table, {faulty, "index"}, index.manifest(), options);
      if (!view.ok()) {
        EXPECT_TRUE(IsKind(view.status(), ErrorKind::kTransient));
        ++errors;
        continue;
      }
      const auto found = (*view)->Find(index.Encode({5}), {}, nullptr);
      if (!found.ok()) ++errors;
      if (faulty->fault_count() == 0) break;
      // The fault is over: a view that gave an error goes on as if nothing had been.
      EXPECT_FALSE(found.ok());
      ExpectRightAnswers(index, **view, {5, 6, kNull});
      ASSERT_LT(n, 1000);
    }
    EXPECT_GE(errors, 9);   // three heads, three blocks, page maps
  }
}

TEST(IndexViewFaultTest, WrongAndShortBodiesAreNeverBelieved) {
  const auto memory = store::MakeMemoryStore();
  TestIndex index({memory, "index"}, {});
  for (int f = 0; f < 3; ++f) {
    ASSERT_TRUE(index.AddFragment(RandomFiles(f, 10 * f, 2, 100, 40)).ok());
  }
  int64_t faults_seen = 0;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    FaultOptions faults;
    faults.seed = seed;
    faults.short_body = faults.empty_body = faults.wrong_bytes = 0.05;
    const auto faulty = std::make_shared<FaultyStore>(memory, faults);
    ViewOptions options = Ranged();
    if (seed % 2 == 0) options.whole_fragment_bytes_max = 1 << 20;
    const auto view = IndexView::Open(index.table, {faulty, "index"}, index.manifest(), options);
    if (!view.ok()) {
      EXPECT_TRUE(IsKind(view.status(), ErrorKind::kCorrupt)) << view.status();
      ++faults_seen;
      continue;
    }
    const auto found = (*view)->Find(index.Encode({5, 6}), {}, nullptr);
    if (found.ok()) {
      EXPECT_EQ(TestIndex::RowsOf(**view, (*found)[0]), index.Expected(5)) << "seed " << seed;
      EXPECT_EQ(TestIndex::RowsOf(**view, (*found)[1]), index.Expected(6)) << "seed " << seed;
      for (const FoundRun& run : (*found)[0].runs) {
        const auto map = (*view)->page_map(run.file);
        EXPECT_TRUE(map.ok() || IsKind(map.status(), ErrorKind::kCorrupt)) << map.status();
      }
    } else {
      EXPECT_TRUE(IsKind(found.status(), ErrorKind::kCorrupt)) << found.status();
    }
    faults_seen += faulty->fault_count();
  }
  EXPECT_GT(faults_seen, 50);
}

// ---- The filter over many fragments.

class IndexViewFilterTest : public ::testing::TestWithParam<bool> {};

TEST_P(IndexViewFilterTest, RulesOutMostFragmentsAndChangesNoAnswer) {
  TestOptions test_options;
  test_options.word_keys = GetParam();
  TestIndex index({store::MakeMemoryStore(), "index"}, test_options);
  constexpr int64_t kKeyRange = 20000;
  constexpr int kFragments = 150;
  for (int f = 0; f < kFragments; ++f) {
    std::vector<TestFile> files = RandomFiles(f, f, 1, 100, kKeyRange);
    // A hot key of some fragments: it has a list of its own.
    if (f % 50 == 0) files[0].keys.insert(files[0].keys.end(), 5000, 77);
    for (size_t i = 100; i < files[0].keys.size(); i += 2) files[0].keys[i] = 10 * kKeyRange;
    ASSERT_TRUE(index.AddFragment(files).ok());
  }
  ViewOptions options;
  options.whole_fragment_bytes_max = 1 << 20;
  const auto view = index.Open(options).ValueOrDie();
  Rng rng(5);
  const auto probed = [&](int64_t key) {
    ProbeCounters counters;
    EXPECT_TRUE(view->Find(index.Encode({key}), {}, &counters).ok());
    return counters.fragments_probed;
  };
  const int64_t before = probed(kKeyRange / 2);
  EXPECT_GT(before, kFragments / 2);
  for (int round = 0; round < 3000 && probed(kKeyRange / 2) > kFragments / 4; ++round) {
  }
  int64_t sum = 0;
  for (int64_t key = 0; key < 200; ++key) sum += probed(key * 17);
  EXPECT_LT(sum, 200 * kFragments / 8);
  for (int round = 0; round < 20; ++round) {
    ASSERT_NO_FATAL_FAILURE(ExpectRightAnswers(
        index, *view, SomeKeys(&rng, 1 + static_cast<int>(rng.Below(50)), kKeyRange)));
  }
  ExpectRightAnswers(index, *view, {77, kNull, 77, 10 * kKeyRange});
}

INSTANTIATE_TEST_SUITE_P(WordAndBytes, IndexViewFilterTest, ::testing::Bool());

TEST(IndexViewFilterDamageTest, ADamagedBlockIsNotRuledOut) {
  const auto memory = store::MakeMemoryStore();
  TestIndex index({memory, "index"}, {});
  for (int f = 0; f < 32; ++f) {
    ASSERT_TRUE(index.AddFragment(RandomFiles(f, f, 1, 100, 1000)).ok());
  }
  const FragmentInfo& info = index.manifest().fragments[9];
  const std::string path = "index/" + info.path;
  std::string bytes = memory->ReadWhole(std::span(&path, 1))[0].ValueOrDie().bytes->ToString();
  // The hash blocks lie after the page maps.
  const auto fragment =
      Fragment::Open(info, arrow::Buffer::FromString(bytes.substr(
                               static_cast<size_t>(info.head.begin)))).ValueOrDie();
  bytes[static_cast<size_t>(fragment->page_maps().end) + 40] ^= 4;
  Replace({memory, "index"}, path, bytes);
  ViewOptions options;
  options.whole_fragment_bytes_max = 1 << 20;
  const auto view = index.Open(options).ValueOrDie();
  const int64_t damaged_row_key = [&] {
    for (int64_t key = 0; key < 1000; ++key) {
      const auto found = view->Find(index.Encode({key}), {}, nullptr);
      if (!found.ok()) return key;
    }
    return int64_t{-1};
  }();
  ASSERT_GE(damaged_row_key, 0);
  for (int round = 0; round < 500; ++round) {
    const auto found = view->Find(index.Encode({damaged_row_key}), {}, nullptr);
    ASSERT_TRUE(IsKind(found.status(), ErrorKind::kCorrupt)) << round;
    ASSERT_TRUE(view->Find(index.Encode({-5}), {}, nullptr).ok());
  }
}

// ---- Threads.

TEST(IndexViewThreadsTest, ManyThreadsFindAtOnceWithCachesThatAreTooSmall) {
  grebe::testing::TempFolder temp;
  for (const bool local : {false, true}) {
    const Location place = local ? Location{store::MakeLocalStore(), temp.path() + "/index"}
                                 : Location{store::MakeMemoryStore(), "index"};
    TestIndex index(place, {});
    for (int f = 0; f < 40; ++f) {
      ASSERT_TRUE(index.AddFragment(RandomFiles(f, 10 * f, 1, 200, 100)).ok());
    }
    ViewOptions options = Ranged();
    options.block_cache_bytes_max = 20000;
    options.page_map_bytes_max = 1000;
    const auto view = index.Open(options).ValueOrDie();
    std::vector<std::thread> threads;
    for (int t = 0; t < 8; ++t) {
      threads.emplace_back([&, t] {
        Rng rng(static_cast<uint64_t>(t));
        for (int round = 0; round < 30; ++round) {
          ExpectRightAnswers(index, *view, SomeKeys(&rng, 1 + static_cast<int>(rng.Below(4)), 100));
          const auto file = static_cast<uint32_t>(rng.Below(view->files().size()));
          EXPECT_TRUE(view->page_map(file).ok());
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
}

}  // namespace
}  // namespace grebe::index

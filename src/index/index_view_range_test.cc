// Ranges of keys over the fragments of a view, against the rows sorted by key.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/rng.h"
#include "index/index_view.h"
#include "store/local_store.h"
#include "store/memory_store.h"
#include "testing/counting_store.h"
#include "testing/seed.h"
#include "testing/temp_folder.h"
#include "testing/test_index.h"

namespace grebe::index {
namespace {

using ::grebe::testing::CountingStore;
using testing::RandomFiles;
using testing::TestIndex;
using testing::TestOptions;

constexpr int64_t kNone = INT64_MIN + 1;   // no bound

key::OrderedRange RangeOf(int64_t least, int64_t most) {
  const key::KeyType type = key::KeyType::Parse("int").ValueOrDie();
  const auto bound = [](int64_t value) -> std::optional<key::RangeBound> {
    if (value == kNone) return std::nullopt;
    return key::RangeBound{
        arrow::MakeArrayFromScalar(arrow::Int64Scalar(value), 1).ValueOrDie(), true};
  };
  return key::OrderRange({&type, 1}, {{}, bound(least), bound(most)}).ValueOrDie();
}

TestIndex::Rows RowsOf(const IndexView& view, const std::vector<FoundRun>& runs) {
  TestIndex::Rows rows;
  for (const FoundRun& run : runs) {
    EXPECT_GT(run.row_count, 0);
    for (int64_t i = 0; i < run.row_count; ++i) {
      rows.emplace_back(view.files()[run.file].path, run.first_row.value + i);
    }
  }
  return rows;
}

ViewOptions Ranged() {
  ViewOptions options;
  options.whole_fragment_bytes_max = 0;
  return options;
}

void ExpectRightRanges(const TestIndex& index, IndexView& view, int64_t key_range, Rng* rng) {
  for (int round = 0; round < 25; ++round) {
    const auto least = static_cast<int64_t>(rng->Below(static_cast<uint64_t>(key_range) + 2)) - 1;
    const auto most = least - 1 + static_cast<int64_t>(rng->Below(rng->Chance(0.5) ? 5 : 500));
    const bool open = rng->Chance(0.1);
    const key::OrderedRange range = RangeOf(least, open ? kNone : most);
    const auto expected = index.ExpectedRange(least, open ? INT64_MAX : most);
    IndexView::RangeOptions options;
    const auto found = view.FindRange(range, options, nullptr);
    ASSERT_TRUE(found.ok()) << found.status();
    ASSERT_EQ(RowsOf(view, *found), expected) << least << " to " << most;
    const auto count = view.CountRange(range, nullptr);
    ASSERT_TRUE(count.ok()) << count.status();
    ASSERT_EQ(*count, static_cast<int64_t>(expected.size()));
    // A page of it.
    options.offset = static_cast<int64_t>(rng->Below(expected.size() + 3));
    options.limit = static_cast<int64_t>(rng->Below(20));
    const auto page = view.FindRange(range, options, nullptr);
    ASSERT_TRUE(page.ok()) << page.status();
    const auto begin = std::min<size_t>(static_cast<size_t>(options.offset), expected.size());
    const auto end = std::min<size_t>(begin + static_cast<size_t>(options.limit), expected.size());
    ASSERT_EQ(RowsOf(view, *page),
              TestIndex::Rows(expected.begin() + static_cast<int64_t>(begin),
                              expected.begin() + static_cast<int64_t>(end)));
  }
}

TEST(ViewRanges, RightOverManyFragmentsInMemoryMappedAndRemote) {
  Rng rng(grebe::testing::Seed("view ranges"));
  grebe::testing::TempFolder folder;
  for (const bool local : {true, false}) {
    for (const int fragments : {1, 7, 40}) {
      std::shared_ptr<store::Store> store =
          local ? store::MakeLocalStore() : store::MakeMemoryStore();
      const std::string path =
          local ? folder.path() + "/index" + std::to_string(fragments) : "index";
      TestIndex index({store, path}, TestOptions{.sorted = true});
      const int64_t key_range = fragments == 7 ? 40 : 5000;
      for (int f = 0; f < fragments; ++f) {
        ASSERT_TRUE(
            index.AddFragment(RandomFiles(rng.Next(), f * 3, 3, 5000 / fragments, key_range)).ok());
      }
      for (int dead = 0; dead < fragments; dead += 2) {
        std::string digits = std::to_string(dead * 3 + 1);
        index.Kill("f" + std::string(5 - digits.size(), '0') + digits + ".parquet");
      }
      for (const ViewOptions& options : {ViewOptions(), Ranged()}) {
        const auto view = index.Open(options);
        ASSERT_TRUE(view.ok()) << view.status();
        ExpectRightRanges(index, **view, key_range, &rng);
      }
    }
  }
}

TEST(ViewRanges, AnIndexThatIsNotSortedSaysSo) {
  TestIndex index({store::MakeMemoryStore(), "index"}, {});
  ASSERT_TRUE(index.AddFragment(RandomFiles(1, 0, 1, 10, 5)).ok());
  const auto view = index.Open().ValueOrDie();
  EXPECT_TRUE(IsKind(view->FindRange(RangeOf(1, 2), {}, nullptr).status(),
                     ErrorKind::kInvalidArgument));
  EXPECT_TRUE(IsKind(view->CountRange(RangeOf(1, 2), nullptr).status(),
                     ErrorKind::kInvalidArgument));
}

struct Remote {
  std::shared_ptr<CountingStore> store;
  std::unique_ptr<TestIndex> index;
  std::shared_ptr<IndexView> view;
};

// One fragment of 200,000 rows, every key 20 times.
Remote LargeRemote() {
  Remote remote;
  remote.store = std::make_shared<CountingStore>(store::MakeMemoryStore());
  remote.index = std::make_unique<TestIndex>(store::Location{remote.store, "index"},
                                             TestOptions{.sorted = true});
  EXPECT_TRUE(remote.index->AddFragment(RandomFiles(3, 0, 4, 50000, 10000)).ok());
  remote.view = remote.index->Open(Ranged()).ValueOrDie();
  return remote;
}

// Cold: the fences (and page maps) in one wave, the blocks in the next; warm: nothing.
TEST(ViewRanges, ARemoteRangeIsTwoWavesAndThenNone) {
  const Remote remote = LargeRemote();
  ProbeCounters counters;
  ASSERT_TRUE(remote.view->FindRange(RangeOf(5000, 5010), {}, &counters).ok());
  EXPECT_EQ(counters.waves, 2);
  EXPECT_LE(counters.requests, 3);
  EXPECT_LT(counters.bytes_read, 200 << 10);
  EXPECT_EQ(counters.fragments_probed, 1);
  ProbeCounters again;
  ASSERT_TRUE(remote.view->FindRange(RangeOf(5000, 5010), {}, &again).ok());
  EXPECT_EQ(again.waves, 0);
  EXPECT_GT(again.block_cache_hits, 0);
}

// A page of a wide range reads the blocks up to its end only; a count those at the ends only.
TEST(ViewRanges, PagesAndCountsReadFewBlocks) {
  const Remote all = LargeRemote();
  ProbeCounters whole, page, count, none;
  ASSERT_TRUE(all.view->FindRange(RangeOf(0, 10000), {}, &whole).ok());
  EXPECT_GT(whole.bytes_read, 400 << 10);
  const Remote paged = LargeRemote();
  IndexView::RangeOptions options;
  options.offset = 100;
  options.limit = 50;
  ASSERT_TRUE(paged.view->FindRange(RangeOf(0, 10000), options, &page).ok());
  EXPECT_EQ(page.waves, 2);
  EXPECT_LT(page.bytes_read, whole.bytes_read / 4);
  const Remote counted = LargeRemote();
  ASSERT_TRUE(counted.view->CountRange(RangeOf(10, 9990), &count).ok());
  EXPECT_LE(count.waves, 2);
  EXPECT_LT(count.bytes_read, 80 << 10);
  // Beyond the fragment's last key: nothing is read.
  ASSERT_TRUE(counted.view->FindRange(RangeOf(20000, 30000), {}, &none).ok());
  EXPECT_EQ(none.waves, 0);
  EXPECT_EQ(none.fragments_probed, 0);
}

}  // namespace
}  // namespace grebe::index

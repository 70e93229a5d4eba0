// The sorted part of fragments: built, merged, damaged; against the rows sorted by their keys.
#include "index/sorted_section.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "index/fragment_format.h"
#include "index/fragment_head.h"
#include "index/fragment_reader.h"
#include "index/fragment_test_util.h"
#include "testing/seed.h"

namespace grebe::index {
namespace {

// A key's ordered form, and a row that holds it.
using Entry = std::pair<std::string, TestRow>;

const key::KeyType kInt = key::KeyType::Parse("int").ValueOrDie();
const key::KeyType kString = key::KeyType::Parse("string").ValueOrDie();

TestKey StringKey(const std::string& text) {
  std::string bytes;
  PutVarint(&bytes, text.size() + 1);
  return BytesKey(bytes + text);
}

TestTable RandomTable(bool word_keys, int files, int rows, Rng* rng) {
  TestTable table;
  table.word_keys = word_keys;
  const uint64_t distinct = 1 + rng->Below(rng->Chance(0.5) ? 50 : 100000);
  const std::string prefix = rng->Chance(0.5) ? "" : std::string(rng->Below(200), 'p') + "://";
  for (int f = 0; f < files; ++f) {
    TestFile file;
    file.path = "f" + std::to_string(f);
    while (static_cast<int>(file.keys.size()) < rows) {
      const uint64_t pick = rng->Below(distinct);
      TestKey key = rng->Chance(0.03) ? (word_keys ? NullKey() : BytesKey(std::string(1, '\0')))
                    : word_keys       ? WordKey(pick - distinct / 2)
                                      : StringKey(prefix + std::to_string(pick));
      file.keys.insert(file.keys.end(), rng->Chance(0.2) ? 1 + rng->Below(9) : 1, key);
    }
    table.files.push_back(std::move(file));
  }
  return table;
}

std::vector<Entry> Expected(const TestTable& table, const std::vector<bool>& live = {}) {
  std::vector<Entry> expected;
  const std::vector<key::KeyType> types = {table.word_keys ? kInt : kString};
  for (size_t f = 0; f < table.files.size(); ++f) {
    if (!live.empty() && !live[f]) continue;
    key::OrderedKeys ordered;
    EXPECT_TRUE(key::OrderKeys(types, Encode(table.word_keys, table.files[f].keys), &ordered).ok());
    for (int64_t i = 0; i < ordered.count(); ++i) {
      expected.push_back({std::string(ordered.view(i)), {table.files[f].path, i}});
    }
  }
  std::sort(expected.begin(), expected.end());
  return expected;
}

// Everything in the sorted part, or what is wrong with it.
Result<std::vector<Entry>> ReadAll(const Fragment& fragment, std::string_view object) {
  const auto& reader = dynamic_cast<const FragmentReader&>(fragment);
  std::vector<Entry> entries;
  std::vector<Posting> postings;
  for (const Fence& top : fragment.sorted()->fences) {
    ARROW_ASSIGN_OR_RAISE(const auto fences, ReadFenceBlock(Slice(object, top.bytes), top));
    for (const Fence& fence : fences) {
      ARROW_ASSIGN_OR_RAISE(const auto bytes, OpenSortedBlock(Slice(object, fence.bytes)));
      EntryReader runs(bytes, reader.head().file_rows);
      while (runs.Next()) {
        postings.clear();
        if (!reader.finder().ToPosting(runs.row(), runs.count(), &postings)) {
          return Corrupt("a run leaves its file");
        }
        for (const TestRow& row : RowsOf(fragment, postings)) {
          entries.emplace_back(runs.key(), row);
        }
      }
      if (runs.damaged()) return Corrupt("bad entries");
    }
  }
  return entries;
}

FragmentOptions Options(bool word_keys, int64_t memory) {
  FragmentOptions options;
  options.word_keys = word_keys;
  options.sorted = {word_keys ? kInt : kString};
  options.memory_bytes_max = memory;
  options.threads = 2;
  return options;
}

TEST(SortedSection, HoldsEveryRowInKeyOrderWithMuchMemoryAndLittle) {
  Rng rng(grebe::testing::Seed("sorted"));
  for (int round = 0; round < 12; ++round) {
    const bool word_keys = round % 2 == 0;
    const TestTable table = RandomTable(word_keys, 1 + round % 3, round < 4 ? 40 : 30000, &rng);
    const auto built = Build(table, Options(word_keys, round % 4 < 2 ? 64 << 10 : 64 << 20), &rng);
    ASSERT_OK(built.status());
    ASSERT_OK(VerifyFragment(*built->store, built->info, built->whole));
    const auto fragment = built->Open();
    ASSERT_OK(fragment.status());
    const auto entries = ReadAll(**fragment, built->object);
    ASSERT_OK(entries.status());
    ASSERT_EQ(*entries, Expected(table));
  }
}

TEST(SortedSection, MergingKeepsTheOrderAndDropsVanishedFiles) {
  Rng rng(grebe::testing::Seed("sorted merge"));
  for (int round = 0; round < 8; ++round) {
    const bool word_keys = round % 2 == 0;
    const FragmentOptions options = Options(word_keys, 1 << 20);
    TestTable all;
    all.word_keys = word_keys;
    std::vector<bool> all_live;
    std::vector<MergeInput> inputs;
    auto store = store::MakeMemoryStore();
    for (int i = 0; i < 3; ++i) {
      TestTable part = RandomTable(word_keys, 2, 4000, &rng);
      for (TestFile& file : part.files) file.path = std::to_string(i) + file.path;
      const auto built = Build(part, options, &rng);
      ASSERT_OK(built.status());
      const std::string name = "in" + std::to_string(i);
      ASSERT_OK(store->Put(name, built->object, store::PutMode::kOverwrite).status());
      MergeInput input;
      input.fragment = built->Open().ValueOrDie();
      input.whole = {std::make_shared<store::Object>(store->Stat(name).ValueOrDie()),
                     {0, built->info.size_bytes}};
      for (size_t f = 0; f < part.files.size(); ++f) input.live.push_back(rng.Chance(0.7));
      all_live.insert(all_live.end(), input.live.begin(), input.live.end());
      all.files.insert(all.files.end(), part.files.begin(), part.files.end());
      inputs.push_back(std::move(input));
    }
    const auto merged = Finish([&](store::Upload& upload) {
      return MergeFragments(*store, inputs, options, upload);
    });
    ASSERT_OK(merged.status());
    ASSERT_OK(VerifyFragment(*merged->store, merged->info, merged->whole));
    const auto entries = ReadAll(*merged->Open().ValueOrDie(), merged->object);
    ASSERT_OK(entries.status());
    ASSERT_EQ(*entries, Expected(all, all_live));
  }
}

// For each pair of bounds among keys and near them: the fences lead to every key of the range.
TEST(SortedSection, FencesLeadToEveryKeyOfARange) {
  Rng rng(grebe::testing::Seed("fences"));
  const TestTable table = RandomTable(false, 2, 60000, &rng);
  const auto built = Build(table, Options(false, 64 << 20), &rng);
  ASSERT_OK(built.status());
  const auto fragment = built->Open().ValueOrDie();
  std::vector<std::string> keys;
  for (const Entry& entry : Expected(table)) keys.push_back(entry.first);
  const auto& tops = fragment->sorted()->fences;
  for (int round = 0; round < 300; ++round) {
    key::OrderedRange range;
    range.begin = keys[rng.Below(keys.size())];
    range.end = keys[rng.Below(keys.size())] + (rng.Chance(0.5) ? std::string(1, '\0') : "");
    range.has_end = rng.Chance(0.9);
    if (range.empty()) continue;
    size_t found = 0;
    const FenceSpan top_span = FencesOf(tops, range);
    for (size_t t = top_span.first; t < top_span.last; ++t) {
      const auto fences =
          ReadFenceBlock(Slice(built->object, tops[t].bytes), tops[t]).ValueOrDie();
      const FenceSpan span = FencesOf(fences, range);
      for (size_t b = span.first; b < span.last; ++b) {
        EntryReader runs(OpenSortedBlock(Slice(built->object, fences[b].bytes)).ValueOrDie(),
                         kRowsMax);
        while (runs.Next()) found += range.Contains(runs.key()) ? runs.count() : 0;
      }
    }
    const auto expected = std::count_if(keys.begin(), keys.end(),
                                        [&](const auto& key) { return range.Contains(key); });
    ASSERT_EQ(found, static_cast<size_t>(expected));
  }
}

// Keys with one run and with several, long runs, nulls; several blocks.
TestTable DamageTable(bool word_keys) {
  TestTable table;
  table.word_keys = word_keys;
  for (int f = 0; f < 2; ++f) {
    TestFile file;
    file.path = "f" + std::to_string(f);
    for (uint64_t i = 0; i < 3000; ++i) {
      const uint64_t id = i * 37 % 1700;
      file.keys.push_back(!word_keys       ? StringKey("key " + std::to_string(id))
                          : id % 50 == 0 ? NullKey()
                                         : WordKey(id * 1000));
      if (i % 9 == 0) file.keys.insert(file.keys.end(), 3, file.keys.back());
    }
    table.files.push_back(std::move(file));
  }
  return table;
}

TEST(SortedSection, AFlippedByteIsCorrupt) {
  Rng rng(7);
  for (const bool word_keys : {true, false}) {
    const TestTable table = DamageTable(word_keys);
    const auto built = Build(table, Options(word_keys, 64 << 20), &rng);
    ASSERT_OK(built.status());
    const auto fragment = built->Open().ValueOrDie();
    const auto& head = dynamic_cast<const FragmentReader&>(*fragment).head();
    ASSERT_GT(head.sorted_blocks.size_bytes(), 2 * static_cast<int64_t>(kSortedBlockBytes));
    for (const Fence& top : head.sorted.fences) {
      const std::string fences(Slice(built->object, top.bytes));
      for (size_t at = 0; at < fences.size(); ++at) {
        std::string bytes = fences;
        bytes[at] ^= static_cast<char>(1 << rng.Below(8));
        EXPECT_KIND(ErrorKind::kCorrupt, ReadFenceBlock(bytes, top).status());
      }
      for (const Fence& fence : ReadFenceBlock(fences, top).ValueOrDie()) {
        std::string bytes(Slice(built->object, fence.bytes));
        for (char& byte : bytes) {
          const char flip = static_cast<char>(1 << rng.Below(8));
          byte ^= flip;
          EXPECT_KIND(ErrorKind::kCorrupt, OpenSortedBlock(bytes).status());
          byte ^= flip;
        }
      }
    }
    // Whoever reads the whole object sees it too.
    for (int round = 0; round < 50; ++round) {
      const ByteRange part{head.sorted_blocks.begin, head.fence_blocks.end};
      BuiltFragment damaged = *built;
      damaged.object[static_cast<size_t>(part.begin) +
                     rng.Below(static_cast<uint64_t>(part.size_bytes()))] ^= 4;
      EXPECT_KIND(ErrorKind::kCorrupt, ReadAll(*fragment, damaged.object).status());
      ASSERT_OK(damaged.store->Put("g", damaged.object, store::PutMode::kOverwrite).status());
      damaged.whole.object =
          std::make_shared<store::Object>(damaged.store->Stat("g").ValueOrDie());
      EXPECT_KIND(ErrorKind::kCorrupt,
                  VerifyFragment(*damaged.store, damaged.info, damaged.whole));
    }
  }
}

std::string Rechecked(std::string bytes) {
  StoreLe(bytes.data(), static_cast<uint32_t>(Checksum(std::string_view(bytes).substr(4))));
  return bytes;
}

// Damage with a valid checksum: any entries within the fragment's rows, or an error.
TEST(SortedSection, DamageWithAValidChecksumStaysWithinBounds) {
  Rng rng(8);
  const TestTable table = DamageTable(false);
  const auto built = Build(table, Options(false, 64 << 20), &rng);
  ASSERT_OK(built.status());
  const auto fragment = built->Open().ValueOrDie();
  const Fence& top = fragment->sorted()->fences[0];
  const std::string fence_block(Slice(built->object, top.bytes));
  const Fence fence = ReadFenceBlock(fence_block, top).ValueOrDie()[0];
  const std::string block(Slice(built->object, fence.bytes));
  for (int round = 0; round < 20000; ++round) {
    std::string bytes = round % 2 ? block : fence_block;
    for (uint64_t flips = 1 + rng.Below(3); flips > 0; --flips) {
      bytes[4 + rng.Below(bytes.size() - 4)] = static_cast<char>(rng.Next());
    }
    if (rng.Chance(0.1)) bytes.resize(4 + rng.Below(bytes.size() - 4));
    bytes = Rechecked(bytes);
    if (round % 2 == 0) {
      const auto fences = ReadFenceBlock(bytes, top);
      if (!fences.ok()) continue;
      for (const Fence& read : *fences) {
        ASSERT_GE(read.bytes.begin, top.data.begin);
        ASSERT_LE(read.bytes.end, top.data.end);
      }
      continue;
    }
    EntryReader runs(OpenSortedBlock(bytes).ValueOrDie(), 8000);
    std::string before;
    while (runs.Next()) {
      ASSERT_LE(runs.count(), 8000 - runs.row());
      ASSERT_LE(before, runs.key());
      before = runs.key();
    }
  }
}

TEST(SortedSection, FragmentsWithoutOneSayVersion1AndCannotBeMergedIntoOne) {
  Rng rng(9);
  const TestTable table = RandomTable(true, 1, 100, &rng);
  FragmentOptions plain = Options(true, 1 << 20);
  plain.sorted.clear();
  const auto built = Build(table, plain, &rng);
  ASSERT_OK(built.status());
  const auto fragment = built->Open().ValueOrDie();
  EXPECT_EQ(fragment->sorted(), nullptr);
  const std::string_view head = Slice(built->object, built->info.head);
  EXPECT_EQ(LoadLe<uint16_t>(head.data() + 4), kFragmentVersion);
  const MergeInput input{fragment, built->whole, {true}};
  const auto merged = Finish([&](store::Upload& upload) {
    return MergeFragments(*built->store, {&input, 1}, Options(true, 1 << 20), upload);
  });
  EXPECT_KIND(ErrorKind::kInvalidArgument, merged.status());
  const auto sorted = Build(table, Options(true, 1 << 20), &rng);
  ASSERT_OK(sorted.status());
  EXPECT_EQ(LoadLe<uint16_t>(Slice(sorted->object, sorted->info.head).data() + 4),
            kFragmentVersionSorted);
}

}  // namespace
}  // namespace grebe::index

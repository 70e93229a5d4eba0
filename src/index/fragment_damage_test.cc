// Fragments with damaged bytes: the right answer or Corrupt, never anything else; and fragments
// whose damage carries valid checksums: any answer or Corrupt, never undefined behaviour.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/coding.h"
#include "index/fragment_format.h"
#include "index/fragment_head.h"
#include "index/fragment_reader.h"
#include "index/fragment_test_util.h"

namespace grebe::index {
namespace {

// A hot key, keys with one and with several runs, long runs, nulls; about 10 KiB.
TestTable DamageTable(bool word_keys, bool with_runs) {
  TestTable table;
  table.word_keys = word_keys;
  Rng rng(3);
  const auto make = [&](uint64_t id) {
    return word_keys ? WordKey(id) : BytesKey("key " + std::to_string(id));
  };
  for (int f = 0; f < 3; ++f) {
    TestFile file;
    file.path = "f" + std::to_string(f);
    for (int row = 0; row < 1500; ++row) {
      const uint64_t pick = rng.Below(10);
      if (word_keys && pick == 0) {
        file.keys.push_back(NullKey());
      } else if (row % 2 == 0) {
        file.keys.push_back(make(1));
      } else {
        file.keys.push_back(make(2 + rng.Below(pick < 5 ? 20 : 300)));
      }
    }
    if (with_runs) file.keys.insert(file.keys.end(), 40, make(5));
    table.files.push_back(std::move(file));
  }
  return table;
}

struct Asked {
  std::vector<TestKey> keys;
  key::EncodedKeys encoded;
  std::vector<std::vector<TestRow>> expected;
};

Asked AskAll(const TestTable& table) {
  Asked asked;
  for (auto& [key, rows] : table.Oracle()) {
    asked.keys.push_back(key);
    asked.expected.push_back(rows);
  }
  for (uint64_t id = 400; id < 420; ++id) {
    asked.keys.push_back(table.word_keys ? WordKey(id) : BytesKey("key " + std::to_string(id)));
    asked.expected.emplace_back();
  }
  asked.encoded = Encode(table.word_keys, asked.keys);
  return asked;
}

// Looks every key up, one by one and all at once. strict: answers must be right.
void LookUpAll(const Fragment& fragment, const std::string& object, const Asked& asked,
               bool strict) {
  std::vector<Posting> postings;
  bool exact = false;
  for (size_t i = 0; i < asked.keys.size(); ++i) {
    const auto at = static_cast<int64_t>(i);
    const Fragment::Place place = fragment.Locate(asked.encoded, at);
    ASSERT_LE(place.block.end, static_cast<int64_t>(object.size()));
    // A buffer of exactly the place's bytes, so that ASan sees any read beyond.
    const std::vector<char> block(object.begin() + place.block.begin,
                                  object.begin() + place.block.end);
    postings.clear();
    const Status found = fragment.Find(asked.encoded, at, place, {block.data(), block.size()},
                                       true, &postings, &exact, nullptr);
    if (!found.ok()) {
      ASSERT_EQ(KindOf(found), ErrorKind::kCorrupt) << found.ToString();
    } else if (strict) {
      ASSERT_EQ(RowsOf(fragment, postings), asked.expected[i]);
    }
  }
  std::vector<uint64_t> ends;
  const Status found = fragment.FindMany(asked.encoded, object, &postings, &ends, &exact);
  if (!found.ok()) {
    ASSERT_EQ(KindOf(found), ErrorKind::kCorrupt) << found.ToString();
  } else if (strict) {
    size_t begin = 0;
    for (size_t i = 0; i < asked.keys.size(); ++i) {
      ASSERT_EQ(RowsOf(fragment, std::span(postings).subspan(begin, ends[i] - begin)),
                asked.expected[i]);
      begin = ends[i];
    }
  }
}

Result<BuiltFragment> BuildDamageTable(const TestTable& table) {
  FragmentOptions options;
  options.word_keys = table.word_keys;
  options.threads = 1;
  Rng rng(4);
  return Build(table, options, &rng);
}

TEST(FragmentDamageTest, EveryFlippedByteGivesTheRightAnswerOrCorrupt) {
  for (const bool word_keys : {true, false}) {
    const TestTable table = DamageTable(word_keys, true);
    auto built = BuildDamageTable(table);
    ASSERT_TRUE(built.ok()) << built.status().ToString();
    const Asked asked = AskAll(table);
    LookUpAll(**built->Open(), built->object, asked, true);
    ASSERT_LT(built->object.size(), 40000u);
    Rng rng(5);
    int64_t refused = 0;
    for (size_t at = 0; at < built->object.size(); ++at) {
      std::string object = built->object;
      object[at] = static_cast<char>(object[at] ^ (1 << rng.Below(8)));
      auto fragment = built->Open(object);
      if (!fragment.ok()) {
        ASSERT_EQ(KindOf(fragment.status()), ErrorKind::kCorrupt);
        ++refused;
        continue;
      }
      LookUpAll(**fragment, object, asked, true);
      ASSERT_FALSE(HasFatalFailure()) << "byte " << at;
    }
    EXPECT_EQ(refused, built->info.head.size_bytes());
  }
}

TEST(FragmentDamageTest, VerifyFindsEveryFlippedByte) {
  const TestTable table = DamageTable(true, false);
  auto built = BuildDamageTable(table);
  ASSERT_TRUE(built.ok());
  ASSERT_OK(VerifyFragment(*built->store, built->info, built->whole));
  auto store = store::MakeMemoryStore();
  Rng rng(6);
  for (size_t at = 0; at < built->object.size(); at += 1 + rng.Below(20)) {
    std::string object = built->object;
    object[at] = static_cast<char>(object[at] ^ 0x40);
    ASSERT_OK(store->Put("f", object, store::PutMode::kOverwrite).status());
    store::ReadRequest whole = built->whole;
    whole.object = std::make_shared<store::Object>(store::Object{"f", {}});
    EXPECT_KIND(ErrorKind::kCorrupt, VerifyFragment(*store, built->info, whole)) << "byte " << at;
  }
}

TEST(FragmentDamageTest, CutShortIsCorrupt) {
  const TestTable table = DamageTable(true, false);
  auto built = BuildDamageTable(table);
  ASSERT_TRUE(built.ok());
  EXPECT_KIND(ErrorKind::kCorrupt,
              built->Open(built->object.substr(0, built->object.size() - 1)).status());
  auto fragment = *built->Open();
  std::vector<Posting> postings;
  std::vector<uint64_t> ends;
  bool exact = false;
  EXPECT_KIND(ErrorKind::kCorrupt,
              fragment->FindMany(AskAll(table).encoded, built->object.substr(0, 100), &postings,
                                 &ends, &exact));
}

// Makes every checksum of the object right again.
void Reseal(const BuiltFragment& built, const FragmentReader& reader, std::string* object,
            FragmentInfo* info) {
  const uint64_t block_count = reader.head().block_sizes.size();
  for (uint64_t block = 0; block < block_count; ++block) {
    const ByteRange range = reader.block_range(block);
    if (range.size_bytes() < 4) continue;
    const auto begin = static_cast<size_t>(range.begin);
    const uint64_t sum =
        Checksum(std::string_view(*object).substr(begin + 4, static_cast<size_t>(
                                                                  range.size_bytes() - 4)));
    StoreLe(object->data() + begin, static_cast<uint32_t>(sum));
  }
  const auto head_begin = static_cast<size_t>(built.info.head.begin);
  const size_t root_at = object->size() - sizeof(Root);
  auto root = LoadLe<Root>(object->data() + root_at);
  root.checksum = Checksum(std::string_view(*object).substr(head_begin, root_at - head_begin));
  StoreLe(object->data() + root_at, root);
  *info = built.info;
  info->head_checksum = Checksum(std::string_view(*object).substr(head_begin));
}

TEST(FragmentDamageTest, DamageWithValidChecksumsIsNeverUndefined) {
  for (const bool word_keys : {true, false}) {
    const TestTable table = DamageTable(word_keys, true);
    auto built = BuildDamageTable(table);
    ASSERT_TRUE(built.ok());
    const Asked asked = AskAll(table);
    auto intact = *built->Open();
    const auto& reader = dynamic_cast<const FragmentReader&>(*intact);
    Rng rng(7);
    for (size_t at = 0; at < built->object.size() - sizeof(Root); ++at) {
      BuiltFragment damaged = *built;
      std::string& object = damaged.object;
      object[at] = static_cast<char>(rng.Chance(0.3) ? 0xff : rng.Next());
      Reseal(*built, reader, &object, &damaged.info);
      auto fragment = damaged.Open();
      if (!fragment.ok()) {
        const ErrorKind kind = KindOf(fragment.status());
        ASSERT_TRUE(kind == ErrorKind::kCorrupt || kind == ErrorKind::kUnsupported);
        continue;
      }
      LookUpAll(**fragment, object, asked, false);
      ASSERT_FALSE(HasFatalFailure()) << "byte " << at;
      if (at % 16 != 0) continue;
      ASSERT_OK(built->store->Put("d", object, store::PutMode::kOverwrite).status());
      store::ReadRequest whole = built->whole;
      whole.object = std::make_shared<store::Object>(store::Object{"d", {}});
      (void)VerifyFragment(*built->store, damaged.info, whole);
    }
  }
}

}  // namespace
}  // namespace grebe::index

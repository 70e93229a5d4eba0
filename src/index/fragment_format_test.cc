// The worked example of docs/format/fragment.md, and the primitives of the format.
#include "index/fragment_format.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>

#include "index/bit_pack.h"
#include "index/fragment_reader.h"
#include "index/fragment_test_util.h"
#include "index/hash_block.h"
#include "index/key_hash.h"
#include "testing/source_folder.h"

namespace grebe::index {
namespace {

std::string HexDump(std::string_view bytes) {
  std::string out;
  char text[24];
  for (size_t at = 0; at < bytes.size(); at += 16) {
    std::snprintf(text, sizeof(text), "%04zx ", at);
    out += text;
    std::string shown;
    for (size_t i = at; i < at + 16; ++i) {
      if (i >= bytes.size()) {
        out += "   ";
        continue;
      }
      const auto byte = static_cast<unsigned char>(bytes[i]);
      std::snprintf(text, sizeof(text), " %02x", byte);
      out += text;
      shown += byte >= 0x20 && byte < 0x7f ? static_cast<char>(byte) : '.';
    }
    out += "  " + shown + "\n";
  }
  return out;
}

// Two files of three rows each.
Result<BuiltFragment> BuildExample(bool sorted) {
  FragmentOptions options;
  options.threads = 1;
  if (sorted) options.sorted = {key::KeyType::Parse("int").ValueOrDie()};
  ARROW_ASSIGN_OR_RAISE(auto builder, FragmentBuilder::Make(options));
  ARROW_RETURN_NOT_OK(builder->AddSchema("S").status());
  const std::vector<TestKey> keys[2] = {{WordKey(7), WordKey(7), WordKey(9)},
                                        {WordKey(8), NullKey(), WordKey(9)}};
  for (int f = 0; f < 2; ++f) {
    FragmentFile file;
    file.path = f == 0 ? "a" : "b";
    file.identity = {100 + f, "t"};
    file.row_count = 3;
    ARROW_ASSIGN_OR_RAISE(const FileId id, builder->AddFile(file, f == 0 ? "MAP1" : "MAP2"));
    ARROW_RETURN_NOT_OK(builder->AddRows(id, RowIndex{0}, Encode(true, keys[f]), nullptr));
  }
  return Finish([&](store::Upload& upload) { return builder->Write(upload); });
}

// Holds what stands in the page between the marks against bytes; GREBE_UPDATE_DOCS=1 writes it.
void ExpectInDocs(const std::string& mark, std::string_view bytes) {
  const auto page = testing::SourceFolder() + "/docs/format/fragment.md";
  std::ifstream input(page);
  ASSERT_TRUE(input) << page << ": run from the source folder, or set GREBE_SOURCE_DIR";
  std::stringstream text;
  text << input.rdbuf();
  std::string doc = text.str();
  const std::string begin_mark = "<!-- " + mark + " begin -->\n";
  const size_t begin = doc.find(begin_mark), end = doc.find("<!-- " + mark + " end -->");
  ASSERT_NE(begin, std::string::npos);
  ASSERT_NE(end, std::string::npos);
  const std::string expected = "```\n" + HexDump(bytes) + "```\n";
  const size_t from = begin + begin_mark.size();
  if (std::getenv("GREBE_UPDATE_DOCS") != nullptr) {
    std::ofstream(page) << doc.replace(from, end - from, expected);
    return;
  }
  EXPECT_EQ(doc.substr(from, end - from), expected);
}

TEST(FragmentFormatTest, TheWorkedExampleOfTheDocsIsWhatIsWritten) {
  const auto built = BuildExample(false);
  ASSERT_OK(built.status());
  ExpectInDocs("example", built->object);
}

// The page shows what comes after the hash part.
TEST(FragmentFormatTest, TheWorkedSortedExampleOfTheDocsIsWhatIsWritten) {
  const auto built = BuildExample(true);
  ASSERT_OK(built.status());
  const auto fragment = built->Open().ValueOrDie();
  const auto& head = dynamic_cast<const FragmentReader&>(*fragment).head();
  ExpectInDocs("sorted example",
               Slice(built->object, {head.sorted_blocks.begin, built->info.size_bytes}));
}

TEST(MixBitsTest, IsABijectionOnEveryWidth) {
  for (int bits = 0; bits <= 14; ++bits) {
    std::set<uint64_t> seen;
    for (uint64_t x = 0; x < uint64_t{1} << bits; ++x) {
      const uint64_t mixed = MixBits(x, bits);
      ASSERT_LT(mixed, uint64_t{1} << bits);
      ASSERT_EQ(UnmixBits(mixed, bits), x);
      ASSERT_TRUE(seen.insert(mixed).second);
    }
  }
  Rng rng(1);
  for (int i = 0; i < 100000; ++i) {
    const int bits = static_cast<int>(rng.Below(65));
    const uint64_t x = rng.Next() & LowMask(bits);
    ASSERT_EQ(UnmixBits(MixBits(x, bits), bits), x) << bits;
  }
}

// Sequences, strides and high bits alone must all spread: blocks are found by the high bits.
TEST(MixBitsTest, SpreadsRegularKeysEvenly) {
  for (const int bits : {20, 24, 31, 32, 40, 47, 64}) {
    for (const uint64_t stride : {1ull, 2ull, 1000ull, 4096ull, 86400ull}) {
      const uint64_t count = std::min<uint64_t>(100000, LowMask(bits) / stride / 2);
      if (count < 1000) continue;
      std::vector<uint64_t> load(64);
      for (uint64_t i = 0; i < count; ++i) ++load[BlockOf(MixBits(i * stride, bits), 64, bits)];
      const double mean = static_cast<double>(count) / 64;
      const auto [low, high] = std::minmax_element(load.begin(), load.end());
      EXPECT_GT(static_cast<double>(*low), mean * 0.5) << bits << " " << stride;
      EXPECT_LT(static_cast<double>(*high), mean * 1.6) << bits << " " << stride;
    }
  }
}

TEST(BlockStartTest, AgreesWithBlockOf) {
  Rng rng(2);
  for (int i = 0; i < 20000; ++i) {
    const int bits = static_cast<int>(rng.Below(65));
    const uint64_t limit = bits >= 20 ? 1000000 : uint64_t{1} << bits;
    const uint64_t count = 1 + rng.Below(limit);
    const uint64_t block = rng.Below(count);
    const uint64_t first = BlockStart(block, count, bits);
    ASSERT_EQ(BlockOf(first, count, bits), block);
    if (first > 0) {
      ASSERT_EQ(BlockOf(first - 1, count, bits), block - 1);
    }
  }
}

TEST(BitPackTest, RoundTripsEveryWidthAndNeverReadsBeyond) {
  Rng rng(3);
  for (int width = 0; width <= 64; ++width) {
    std::string bytes;
    BitWriter writer(&bytes);
    std::vector<uint64_t> values;
    for (int i = 0; i < 100; ++i) {
      values.push_back(rng.Next() & LowMask(width));
      writer.Put(values.back(), width);
    }
    writer.Align();
    ASSERT_EQ(bytes.size(), BytesOfBits(100 * static_cast<uint64_t>(width)));
    const std::vector<uint8_t> exact(bytes.begin(), bytes.end());
    for (uint64_t i = 0; i < 100; ++i) {
      ASSERT_EQ(GetBits(exact.data(), exact.size(), i * static_cast<uint64_t>(width), width),
                values[i]);
    }
  }
}

TEST(BitPackTest, SelectFindsEveryBit) {
  Rng rng(4);
  for (int round = 0; round < 200; ++round) {
    std::vector<uint8_t> bytes(1 + rng.Below(60));
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(rng.Next() & rng.Next());
    const uint64_t bits = bytes.size() * 8;
    uint64_t ones = 0, zeros = 0;
    for (uint64_t at = 0; at < bits; ++at) {
      if ((bytes[at / 8] >> (at % 8) & 1) != 0) {
        ASSERT_EQ(SelectBit<true>(bytes.data(), bytes.size(), bits, ones++), at);
      } else {
        ASSERT_EQ(SelectBit<false>(bytes.data(), bytes.size(), bits, zeros++), at);
      }
    }
    ASSERT_GE(SelectBit<true>(bytes.data(), bytes.size(), bits, ones), bits);
  }
}

TEST(PostingListTest, RoundTripsAndRefusesDamage) {
  Rng rng(5);
  for (int round = 0; round < 200; ++round) {
    std::vector<RowRun> runs;
    uint64_t end = 0;
    const uint64_t count = 1 + rng.Below(700);
    for (uint64_t i = 0; i < count; ++i) {
      const uint64_t row = end + rng.Below(rng.Chance(0.01) ? 100000 : 30);
      const uint64_t length = 1 + (rng.Chance(0.2) ? rng.Below(1000) : 0);
      runs.push_back({row, length});
      end = row + length;
    }
    std::string bytes;
    ListWriter writer;
    for (const RowRun& run : runs) writer.Add(run, &bytes);
    writer.Finish(&bytes);
    std::vector<RowRun> got;
    ASSERT_OK(DecodeList(bytes, count, end, &got));
    ASSERT_EQ(got, runs);
    EXPECT_KIND(ErrorKind::kCorrupt, DecodeList(bytes, count, end - 1, &got));
    EXPECT_KIND(ErrorKind::kCorrupt, DecodeList(bytes, count + 1, end, &got));
    EXPECT_KIND(ErrorKind::kCorrupt,
                DecodeList(std::string_view(bytes).substr(0, bytes.size() - 1), count, end, &got));
    EXPECT_KIND(ErrorKind::kCorrupt, DecodeList(bytes + "x", count, end, &got));
  }
}

}  // namespace
}  // namespace grebe::index

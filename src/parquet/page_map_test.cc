#include "parquet/page_map.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <random>
#include <sstream>

#include "base/rng.h"
#include "parquet/line_sequence.h"
#include "testing/source_folder.h"

namespace grebe::pq {
namespace {

struct Shape {
  int row_groups = 1;
  int leaves = 1;
  int pages_max = 20;
  bool gaps = false;
  bool mid_rows = false;
  bool even = false;  // equal pages, equal rows
};

ChunkPages RandomChunk(Rng& rng, const Shape& shape, int64_t row_count, int64_t* at) {
  ChunkPages chunk;
  chunk.info.codec = static_cast<int32_t>(rng.Below(8));
  chunk.info.always_compressed = rng.Chance(0.1);
  chunk.info.value_count = row_count + (shape.mid_rows ? static_cast<int64_t>(rng.Below(5000)) : 0);
  if (shape.gaps) *at += static_cast<int64_t>(rng.Below(100));
  if (rng.Chance(0.5)) {
    const auto size = static_cast<int64_t>(1 + rng.Below(100000));
    chunk.info.dictionary = ByteRange{*at, *at + size};
    *at += size;
    if (shape.gaps) *at += static_cast<int64_t>(rng.Below(10));
  }
  if (row_count == 0) return chunk;
  const auto pages = static_cast<int64_t>(1 + rng.Below(static_cast<uint64_t>(shape.pages_max)));
  const int64_t even_rows = std::max<int64_t>(row_count / pages, 1);
  int64_t row = 0;
  for (int64_t i = 0; i < pages; ++i) {
    PageLocation page;
    const auto size = shape.even ? 1000 : static_cast<int64_t>(1 + rng.Below(40000));
    page.bytes = {*at, *at + size};
    *at += size;
    if (shape.gaps && rng.Chance(0.3)) *at += static_cast<int64_t>(rng.Below(50));
    int64_t rows = shape.even ? even_rows : static_cast<int64_t>(rng.Below(2 * even_rows + 1));
    if (shape.mid_rows && rng.Chance(0.2)) rows = 0;
    page.rows = {row, i + 1 == pages ? row_count : std::min(row + rows, row_count)};
    row = page.rows.end;
    page.begins_mid_row = shape.mid_rows && i > 0 && rng.Chance(0.5);
    chunk.pages.push_back(page);
  }
  chunk.info.page_count = static_cast<int32_t>(chunk.pages.size());
  return chunk;
}

FilePages RandomPages(Rng& rng, const Shape& shape) {
  FilePages pages;
  int64_t at = 4;
  for (int i = 0; i < shape.row_groups; ++i) {
    RowGroupPages group;
    group.row_count = rng.Chance(0.1) ? 0 : static_cast<int64_t>(1 + rng.Below(100000));
    if (shape.even) group.row_count = 1000 * shape.pages_max;
    for (int leaf = 0; leaf < shape.leaves; ++leaf) {
      group.chunks.push_back(RandomChunk(rng, shape, group.row_count, &at));
    }
    pages.row_groups.push_back(std::move(group));
  }
  return pages;
}

std::shared_ptr<const PageMap> OpenOrDie(const std::string& packed) {
  auto map = PageMap::Open(arrow::Buffer::FromString(packed));
  EXPECT_TRUE(map.ok()) << map.status();
  return map.ok() ? *map : nullptr;
}

void ExpectSame(const FilePages& pages, const PageMap& map) {
  ASSERT_EQ(map.row_group_count(), static_cast<int>(pages.row_groups.size()));
  int64_t first_row = 0;
  for (int group = 0; group < map.row_group_count(); ++group) {
    const RowGroupPages& expected = pages.row_groups[group];
    ASSERT_EQ(map.row_group_rows(group), (RowRange{first_row, first_row + expected.row_count}));
    if (expected.row_count > 0) {
      ASSERT_EQ(map.FindRowGroup(RowIndex{first_row}), group);
      ASSERT_EQ(map.FindRowGroup(RowIndex{first_row + expected.row_count - 1}), group);
    }
    first_row += expected.row_count;
    for (int leaf = 0; leaf < map.leaf_count(); ++leaf) {
      const ChunkPages& chunk = expected.chunks[leaf];
      const ChunkInfo info = map.chunk(group, leaf);
      ASSERT_EQ(info.codec, chunk.info.codec);
      ASSERT_EQ(info.always_compressed, chunk.info.always_compressed);
      ASSERT_EQ(info.value_count, chunk.info.value_count);
      ASSERT_EQ(info.dictionary, chunk.info.dictionary);
      ASSERT_EQ(info.page_count, static_cast<int>(chunk.pages.size()));
      for (int i = 0; i < info.page_count; ++i) {
        const auto page = map.page(group, leaf, i);
        ASSERT_TRUE(page.ok()) << page.status();
        ASSERT_EQ(page->bytes, chunk.pages[i].bytes);
        ASSERT_EQ(page->rows, chunk.pages[i].rows);
        ASSERT_EQ(page->begins_mid_row, chunk.pages[i].begins_mid_row);
      }
    }
  }
  ASSERT_EQ(map.row_count(), first_row);
}

// The definition of FindPages, page by page.
PageMap::PageSpan SlowFind(const ChunkPages& chunk, RowRange rows) {
  PageMap::PageSpan span{-1, -1};
  const int count = static_cast<int>(chunk.pages.size());
  for (int i = 0; i < count; ++i) {
    const PageLocation& page = chunk.pages[i];
    const bool begins = page.rows.begin < rows.end && rows.begin < page.rows.end;
    // The row before page.rows.begin goes on here.
    const bool goes_on = page.begins_mid_row && rows.begin < page.rows.begin &&
                         page.rows.begin <= rows.end;
    if (!begins && !goes_on) continue;
    if (span.first < 0) span.first = i;
    span.last = i + 1;
  }
  return span;
}

TEST(PageMap, RandomMapsComeBack) {
  const uint64_t seed = std::random_device{}();
  SCOPED_TRACE("seed=" + std::to_string(seed));
  Rng rng(seed);
  for (int round = 0; round < 300; ++round) {
    Shape shape;
    shape.row_groups = static_cast<int>(rng.Below(12));
    shape.leaves = static_cast<int>(rng.Below(6));
    shape.pages_max = static_cast<int>(1 + rng.Below(rng.Chance(0.1) ? 2000 : 12));
    shape.gaps = rng.Chance(0.3);
    shape.mid_rows = rng.Chance(0.3);
    shape.even = rng.Chance(0.2);
    FilePages pages = RandomPages(rng, shape);
    if (shape.row_groups == 0) shape.leaves = 0;
    const auto packed = PackPageMap(pages);
    ASSERT_TRUE(packed.ok()) << packed.status();
    const auto map = OpenOrDie(*packed);
    ASSERT_NE(map, nullptr);
    ASSERT_EQ(map->leaf_count(), shape.leaves);
    ASSERT_NO_FATAL_FAILURE(ExpectSame(pages, *map));
  }
}

TEST(PageMap, FindsThePagesOfRows) {
  const uint64_t seed = std::random_device{}();
  SCOPED_TRACE("seed=" + std::to_string(seed));
  Rng rng(seed);
  for (int round = 0; round < 400; ++round) {
    Shape shape;
    shape.pages_max = static_cast<int>(1 + rng.Below(12));
    shape.mid_rows = rng.Chance(0.6);
    FilePages pages = RandomPages(rng, shape);
    RowGroupPages& group = pages.row_groups[0];
    const auto map = OpenOrDie(*PackPageMap(pages));
    for (int i = 0; i < 50 && group.row_count > 0; ++i) {
      auto begin = static_cast<int64_t>(rng.Below(static_cast<uint64_t>(group.row_count)));
      // Page bounds are where it goes wrong, if it does.
      const auto& some = group.chunks[0].pages[rng.Below(group.chunks[0].pages.size())];
      if (rng.Chance(0.5)) begin = std::min(some.rows.begin, group.row_count - 1);
      int64_t end = begin + 1 + static_cast<int64_t>(rng.Below(rng.Chance(0.5) ? 3 : 50000));
      if (rng.Chance(0.3)) end = std::max(begin + 1, some.rows.end);
      if (rng.Chance(0.2) && some.rows.begin < group.row_count) {   // ends one row into a page
        end = some.rows.begin + 1;
        begin = std::max<int64_t>(0, some.rows.begin - static_cast<int64_t>(rng.Below(3)));
      }
      end = std::min(end, group.row_count);
      const auto found = map->FindPages(0, 0, {begin, end});
      ASSERT_TRUE(found.ok()) << found.status();
      const auto expected = SlowFind(group.chunks[0], {begin, end});
      ASSERT_EQ(found->first, expected.first) << begin << " " << end;
      ASSERT_EQ(found->last, expected.last) << begin << " " << end;
    }
    const auto none = map->FindPages(0, 0, {0, 0});
    ASSERT_TRUE(none.ok());
    ASSERT_EQ(none->first, none->last);
    ASSERT_TRUE(IsKind(map->FindPages(0, 0, {0, group.row_count + 1}).status(),
                       ErrorKind::kInvalidArgument));
  }
}

// Whatever the bytes: a clean refusal, or a map whose every answer is in itself consistent.
void Probe(const PageMap& map, Rng& rng) {
  const int groups = std::min(map.row_group_count(), 50);
  const int leaves = std::min(map.leaf_count(), 50);
  for (int group = 0; group < groups; ++group) {
    const int64_t rows = map.row_group_rows(group).row_count();
    for (int leaf = 0; leaf < leaves; ++leaf) {
      const ChunkInfo info = map.chunk(group, leaf);
      ASSERT_GE(info.page_count, 0);
      for (int i = 0; i < std::min(info.page_count, 50); ++i) {
        const auto page = map.page(group, leaf, i);
        if (!page.ok()) {
          ASSERT_TRUE(IsKind(page.status(), ErrorKind::kCorrupt));
          continue;
        }
        ASSERT_GE(page->bytes.begin, 0);
        ASSERT_LT(page->bytes.begin, page->bytes.end);
        ASSERT_LE(page->rows.begin, page->rows.end);
        ASSERT_LE(page->rows.end, rows);
      }
      if (rows <= 0) continue;
      const auto row = static_cast<int64_t>(rng.Below(static_cast<uint64_t>(rows)));
      const auto found = map.FindPages(group, leaf, {row, row + 1});
      if (!found.ok()) continue;
      ASSERT_GE(found->first, 0);
      ASSERT_LE(found->first, found->last);
      ASSERT_LE(found->last, std::max(info.page_count, 0));
    }
  }
  map.FindRowGroup(RowIndex{0});
}

TEST(PageMap, DamagedBytesDoNoHarm) {
  const uint64_t seed = std::random_device{}();
  SCOPED_TRACE("seed=" + std::to_string(seed));
  Rng rng(seed);
  Shape shape{.row_groups = 3, .leaves = 3, .pages_max = 300, .gaps = true, .mid_rows = true};
  const std::string packed = *PackPageMap(RandomPages(rng, shape));
  for (size_t i = 0; i < packed.size(); ++i) {
    std::string damaged = packed;
    damaged[i] = static_cast<char>(damaged[i] ^ (1 << rng.Below(8)));
    auto map = PageMap::Open(arrow::Buffer::FromString(damaged));
    if (map.ok()) {
      ASSERT_NO_FATAL_FAILURE(Probe(**map, rng)) << "byte " << i;
    } else {
      ASSERT_TRUE(IsKind(map.status(), ErrorKind::kCorrupt));
    }
    auto cut = PageMap::Open(arrow::Buffer::FromString(packed.substr(0, i)));
    if (cut.ok()) {
      ASSERT_NO_FATAL_FAILURE(Probe(**cut, rng));
    }
  }
  for (int round = 0; round < 2000; ++round) {
    std::string noise(rng.Below(200), '\0');
    for (char& byte : noise) byte = static_cast<char>(rng.Chance(0.5) ? 0 : rng.Next());
    if (noise.size() > 4) noise.replace(0, 4, packed, 0, 4);
    auto map = PageMap::Open(arrow::Buffer::FromString(noise));
    if (map.ok()) {
      ASSERT_NO_FATAL_FAILURE(Probe(**map, rng));
    }
  }
}

TEST(PageMap, InconsistentDescriptionsAreRefused) {
  const auto refused = [](auto&& change) {
    FilePages pages;
    ChunkPages chunk;
    chunk.info.value_count = 10;
    chunk.pages = {{{4, 10}, {0, 5}}, {{10, 20}, {5, 10}}};
    pages.row_groups = {{10, {chunk}}};
    change(pages.row_groups[0]);
    return IsKind(PackPageMap(pages).status(), ErrorKind::kInvalidArgument);
  };
  EXPECT_FALSE(refused([](auto&) {}));
  EXPECT_TRUE(refused([](auto& g) { g.row_count = 11; }));
  EXPECT_TRUE(refused([](auto& g) { g.chunks[0].pages[1].rows.begin = 6; }));
  EXPECT_TRUE(refused([](auto& g) { g.chunks[0].pages[0].rows.end = 4; }));
  EXPECT_TRUE(refused([](auto& g) { g.chunks[0].pages[1].bytes.begin = 9; }));
  EXPECT_TRUE(refused([](auto& g) { g.chunks[0].pages[1].bytes.end = 10; }));
  EXPECT_TRUE(refused([](auto& g) { g.chunks[0].pages[0].begins_mid_row = true; }));
  EXPECT_TRUE(refused([](auto& g) { g.chunks[0].info.value_count = -1; }));
  EXPECT_TRUE(refused([](auto& g) { g.chunks[0].info.dictionary = ByteRange{4, 4}; }));
  EXPECT_TRUE(refused([](auto& g) { g.chunks[0].pages.clear(); }));
}

// One chunk of n pages; sizes and rows by the functions.
template <class Size, class Rows>
FilePages OneChunk(int64_t n, Size&& size, Rows&& rows) {
  ChunkPages chunk;
  int64_t at = 4;
  int64_t row = 0;
  for (int64_t i = 0; i < n; ++i) {
    const int64_t bytes = size(i);
    const int64_t count = rows(i);
    chunk.pages.push_back({{at, at + bytes}, {row, row + count}});
    at += bytes;
    row += count;
  }
  chunk.info.value_count = row;
  chunk.info.page_count = static_cast<int32_t>(n);
  FilePages pages;
  pages.row_groups.push_back({row, {std::move(chunk)}});
  return pages;
}

double BytesPerPage(const FilePages& pages) {
  const auto packed = *PackPageMap(pages);
  return static_cast<double>(packed.size()) /
         static_cast<double>(pages.row_groups[0].chunks[0].pages.size());
}

TEST(PageMap, IsSmall) {
  Rng rng(7);
  const auto near = [&](int64_t middle, int64_t spread) {
    return middle + static_cast<int64_t>(rng.Below(static_cast<uint64_t>(spread)));
  };
  // As pyarrow writes: 20,000 rows a page, sizes of a compressed column.
  EXPECT_LT(BytesPerPage(OneChunk(1000, [&](auto) { return near(60000, 4000); },
                                  [](auto) { return 20000; })), 3.0);
  // As parquet-mr writes: pages cut by size, so rows vary.
  EXPECT_LT(BytesPerPage(OneChunk(1000, [&](auto) { return near(30000, 3000); },
                                  [&](auto) { return near(9000, 500); })), 4.0);
  // Tens of thousands of pages.
  EXPECT_LT(BytesPerPage(OneChunk(40000, [&](auto) { return near(8000, 1000); },
                                  [&](auto) { return near(1000, 100); })), 4.0);
  // A dictionary that gave up in the middle: two kinds of page in one chunk.
  EXPECT_LT(BytesPerPage(OneChunk(300, [&](int64_t i) {
              return i < 60 ? near(9000, 300) : near(1000000, 20000);
            }, [](auto) { return 20000; })), 4.5);
  // Uncompressed numbers: every page alike.
  EXPECT_LT(BytesPerPage(OneChunk(1000, [](auto) { return 160023; },
                                  [](auto) { return 20000; })), 0.2);
}

TEST(LineSequence, ExtremeNumbersComeBack) {
  const uint64_t seed = std::random_device{}();
  SCOPED_TRACE("seed=" + std::to_string(seed));
  Rng rng(seed);
  for (int round = 0; round < 500; ++round) {
    std::vector<int64_t> values(rng.Below(40));
    const int bits = static_cast<int>(rng.Below(65));
    int64_t sum = 0;
    for (auto& value : values) {
      const uint64_t raw = bits == 0 ? 0 : rng.Next() >> (64 - bits);
      value = static_cast<int64_t>(raw);
      if (round % 2 == 0 && bits < 50) value = sum += value;
    }
    std::string packed;
    PutLineSequence(values, &packed);
    const size_t size = packed.size();
    packed.append(kLinePaddingBytes, '\xee');
    ByteReader in(packed.data(), size);
    LineSequence sequence;
    ASSERT_TRUE(sequence.Parse(&in, static_cast<int64_t>(values.size())));
    ASSERT_EQ(in.remaining_bytes(), 0u);
    for (size_t i = 0; i < values.size(); ++i) {
      ASSERT_EQ(sequence.At(static_cast<int64_t>(i)), values[i]) << "bits=" << bits;
    }
  }
}

std::string Hex(std::string_view bytes) {
  std::ostringstream out;
  const char* digits = "0123456789abcdef";
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (i % 16 == 0) out << (i == 0 ? "" : "\n");
    if (i % 16 != 0) out << ' ';
    const auto byte = static_cast<uint8_t>(bytes[i]);
    out << digits[byte >> 4] << digits[byte & 15];
  }
  return out.str();
}

// The worked example of docs/format/page-map.md is what the code writes.
TEST(PageMap, WorkedExampleOfTheFormatPage) {
  FilePages pages;
  ChunkPages id;
  id.info.value_count = 3000;
  id.pages = {{{4, 8027}, {0, 1000}},
              {{8027, 16050}, {1000, 2000}},
              {{16050, 24073}, {2000, 3000}}};
  ChunkPages tags;
  tags.info.codec = 6;
  tags.info.value_count = 7500;
  tags.info.dictionary = ByteRange{24073, 24573};
  tags.pages = {{{24573, 26573}, {0, 1200}}, {{26573, 28600}, {1200, 2300}, true},
                {{28600, 29900}, {2300, 3000}}};
  pages.row_groups = {{3000, {id, tags}}};
  const std::string hex = Hex(*PackPageMap(pages));
  std::ifstream in(testing::SourceFolder() + "/docs/format/page-map.md");
  std::stringstream page;
  page << in.rdbuf();
  EXPECT_NE(page.str().find(hex), std::string::npos) << "the page should have:\n" << hex;
}

}  // namespace
}  // namespace grebe::pq

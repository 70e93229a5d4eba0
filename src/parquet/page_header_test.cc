#include "parquet/page_header.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "base/coding.h"
#include "base/rng.h"
#include "parquet/offset_index.h"

namespace grebe::pq {
namespace {

// Writes Thrift compact structs of integers, by field.
class ThriftBytes {
 public:
  ThriftBytes& Int(int id, int64_t value) {
    Head(id, 5);
    PutVarint(&bytes_, ZigZag(value));
    return *this;
  }
  ThriftBytes& Bool(int id, bool value) {
    Head(id, value ? 1 : 2);
    return *this;
  }
  ThriftBytes& Text(int id, std::string_view value) {
    Head(id, 8);
    PutBytes(&bytes_, value);
    return *this;
  }
  ThriftBytes& Struct(int id, const ThriftBytes& value) {
    Head(id, 12);
    bytes_ += value.End();
    return *this;
  }
  std::string End() const { return bytes_ + '\0'; }

 private:
  void Head(int id, int type) {
    bytes_.push_back(static_cast<char>((id - last_) << 4 | type));
    last_ = id;
  }
  std::string bytes_;
  int last_ = 0;
};

std::span<const uint8_t> Span(const std::string& bytes) {
  return {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()};
}

std::string DataPage(int64_t uncompressed, int64_t compressed, int64_t values) {
  return ThriftBytes().Int(1, 0).Int(2, uncompressed).Int(3, compressed)
      .Struct(5, ThriftBytes().Int(1, values).Int(2, 8).Int(3, 3).Int(4, 3)).End();
}

std::string DictionaryPage(int64_t uncompressed, int64_t compressed, int64_t entries) {
  return ThriftBytes().Int(1, 2).Int(2, uncompressed).Int(3, compressed)
      .Struct(7, ThriftBytes().Int(1, entries).Int(2, 2).Bool(3, true)).End();
}

std::string DataPageV2(int64_t nulls, int64_t rows, int64_t definition, int64_t repetition) {
  return ThriftBytes().Int(1, 3).Int(2, 500).Int(3, 400)
      .Struct(8, ThriftBytes().Int(1, 100).Int(2, nulls).Int(3, rows).Int(4, 0).Int(5, definition)
                     .Int(6, repetition).Bool(7, false)).End();
}

Result<PageHeader> Parse(const std::string& bytes, PagePlace place = {10000, 1000}) {
  ARROW_ASSIGN_OR_RAISE(auto header, ParsePageHeader(Span(bytes), place, ReadLimits()));
  if (!header) return NotFound("more bytes are needed");
  return *header;
}

ErrorKind KindOfBad(const std::string& bytes, PagePlace place = {10000, 1000}) {
  const auto header = Parse(bytes, place);
  return header.ok() ? ErrorKind::kInternal : KindOf(header.status());
}

TEST(PageHeader, GivesWhatTheBytesSay) {
  const std::string v1 = DataPage(2000, 300, 100);
  const PageHeader data = *Parse(v1);
  EXPECT_EQ(data.type, PageType::kData);
  EXPECT_EQ(data.header_bytes, static_cast<int64_t>(v1.size()));
  EXPECT_EQ(data.compressed_bytes, 300);
  EXPECT_EQ(data.uncompressed_bytes, 2000);
  EXPECT_EQ(data.value_count, 100);
  EXPECT_EQ(data.encoding, 8);
  EXPECT_EQ(data.definition_level_encoding, 3);
  EXPECT_FALSE(data.crc.has_value());
  EXPECT_TRUE(data.is_compressed);

  const PageHeader v2 = *Parse(DataPageV2(7, 90, 20, 30));
  EXPECT_EQ(v2.type, PageType::kDataV2);
  EXPECT_EQ(v2.null_count, 7);
  EXPECT_EQ(v2.row_count, 90);
  EXPECT_EQ(v2.definition_level_bytes, 20);
  EXPECT_EQ(v2.repetition_level_bytes, 30);
  EXPECT_FALSE(v2.is_compressed);

  const PageHeader dictionary = *Parse(DictionaryPage(800, 500, 100));
  EXPECT_EQ(dictionary.type, PageType::kDictionary);
  EXPECT_EQ(dictionary.value_count, 100);

  // A checksum is an unsigned number, whichever way it was written.
  const auto with_crc = [](int64_t crc) {
    return ThriftBytes().Int(1, 1).Int(2, 10).Int(3, 10).Int(4, crc).End();
  };
  EXPECT_EQ(*Parse(with_crc(-2))->crc, 0xfffffffeu);
  EXPECT_EQ(*Parse(with_crc(0xfffffffeLL))->crc, 0xfffffffeu);
  EXPECT_EQ(Parse(with_crc(1))->type, PageType::kIndex);
  EXPECT_EQ(Parse(ThriftBytes().Int(1, 77).Int(2, 1).Int(3, 1).End())->type, PageType::kOther);
}

TEST(PageHeader, UnknownFieldsAreSteppedOver) {
  const std::string bytes = ThriftBytes().Int(1, 0).Int(2, 10).Int(3, 10)
      .Struct(5, ThriftBytes().Int(1, 5).Int(2, 0).Int(3, 3).Int(4, 3)
                     .Struct(5, ThriftBytes().Text(1, std::string(5000, 'x')).Bool(9, true))
                     .Bool(14, false))
      .Text(15, "later").End();
  const auto header = Parse(bytes, {20000, 1000});
  ASSERT_TRUE(header.ok()) << header.status();
  EXPECT_EQ(header->header_bytes, static_cast<int64_t>(bytes.size()));
  // Every shorter piece asks for more, unless nothing more can come.
  for (size_t i = 0; i < bytes.size(); i += i < 100 ? 1 : 97) {
    const auto cut = ParsePageHeader(Span(bytes).first(i), {20000, 1000}, ReadLimits());
    ASSERT_TRUE(cut.ok()) << i << cut.status();
    ASSERT_FALSE(cut->has_value());
    ASSERT_EQ(KindOfBad(bytes, {static_cast<int64_t>(i), 1000}), ErrorKind::kCorrupt);
  }
}

TEST(PageHeader, BadHeadersAreRefused) {
  constexpr auto kCorrupt = ErrorKind::kCorrupt;
  EXPECT_EQ(KindOfBad(DataPage(-1, 300, 100)), kCorrupt);
  EXPECT_EQ(KindOfBad(DataPage(2000, -300, 100)), kCorrupt);
  EXPECT_EQ(KindOfBad(DataPage(2000, 300, -1)), kCorrupt);
  EXPECT_EQ(KindOfBad(DataPage(2000, 300, 1001)), kCorrupt) << "more values than are left";
  EXPECT_EQ(KindOfBad(DataPage(20000, 9999, 100)), kCorrupt) << "does not fit behind its header";
  EXPECT_EQ(KindOfBad(DataPage(int64_t{1} << 33, 300, 100)), kCorrupt) << "not 32 bits";
  EXPECT_EQ(KindOfBad(DataPage(2000000000, 300, 100)), ErrorKind::kLimitExceeded);
  EXPECT_EQ(KindOfBad(DataPage(900000000, 300, 100)), ErrorKind::kLimitExceeded) << "ratio";
  EXPECT_EQ(KindOfBad(DictionaryPage(800, 500, 801)), kCorrupt);
  EXPECT_EQ(KindOfBad(DictionaryPage(800, 500, -1)), kCorrupt);
  EXPECT_EQ(KindOfBad(DataPageV2(7, -1, 20, 30)), kCorrupt);
  EXPECT_EQ(KindOfBad(DataPageV2(-7, 90, 20, 30)), kCorrupt);
  EXPECT_EQ(KindOfBad(DataPageV2(7, 90, -20, 30)), kCorrupt);
  EXPECT_EQ(KindOfBad(DataPageV2(7, 90, 20, 381)), kCorrupt) << "levels larger than the page";
  EXPECT_EQ(KindOfBad(ThriftBytes().Int(1, 0).Int(2, 10).Int(3, 10).End()), kCorrupt)
      << "no sub-header";
  EXPECT_EQ(KindOfBad(ThriftBytes().Int(1, 0).Int(2, 10).End()), kCorrupt);
  EXPECT_EQ(KindOfBad("PAR1"), kCorrupt);
  EXPECT_EQ(KindOfBad("\xff\xff\xff"), kCorrupt);
  EXPECT_EQ(KindOfBad(std::string(100, '\x1c')), kCorrupt) << "nested without end";
}

TEST(PageHeader, DamagedBytesDoNoHarm) {
  const uint64_t seed = std::random_device{}();
  SCOPED_TRACE("seed=" + std::to_string(seed));
  Rng rng(seed);
  const std::string whole = DataPageV2(7, 90, 20, 30) + DataPage(2000, 300, 100);
  for (int round = 0; round < 20000; ++round) {
    std::string bytes = whole;
    for (int i = 0; i < 3; ++i) bytes[rng.Below(bytes.size())] = static_cast<char>(rng.Next());
    const auto header = Parse(bytes);
    if (!header.ok()) continue;
    ASSERT_LE(header->page_bytes(), 10000);
    ASSERT_GE(header->compressed_bytes, 0);
    ASSERT_GE(header->value_count, 0);
    if (header->is_data()) {
      ASSERT_LE(header->value_count, 1000);
    }
  }
}

std::string IndexBytes(const std::vector<OffsetIndexEntry>& entries) {
  std::string bytes("\x19", 1);
  bytes.push_back('\xfc');  // a long list of structs
  PutVarint(&bytes, entries.size());
  for (const auto& entry : entries) {
    bytes += ThriftBytes().Int(1, entry.offset_bytes).Int(2, entry.page_bytes)
                 .Int(3, entry.first_row).End();
  }
  return bytes + '\0';
}

TEST(OffsetIndex, IsBelievedWhenItAgrees) {
  const std::vector<OffsetIndexEntry> good = {{100, 50, 0}, {150, 60, 10}, {210, 40, 25}};
  ChunkMeta chunk;
  chunk.bytes = {80, 250};
  chunk.dictionary_first = true;
  const auto parsed = ParseOffsetIndex(Span(IndexBytes(good)));
  ASSERT_TRUE(parsed.has_value());
  ASSERT_EQ(parsed->size(), 3u);
  const auto pages = PagesOfIndex(*parsed, chunk, false, 30);
  ASSERT_TRUE(pages.has_value());
  EXPECT_EQ((*pages)[1].bytes, (ByteRange{150, 210}));
  EXPECT_EQ((*pages)[1].rows, (RowRange{10, 25}));
  EXPECT_EQ((*pages)[2].rows, (RowRange{25, 30}));

  const auto believed = [&](auto&& change, bool repeated = false) {
    auto entries = good;
    ChunkMeta meta = chunk;
    change(entries, meta);
    return PagesOfIndex(entries, meta, repeated, 30).has_value();
  };
  EXPECT_TRUE(believed([](auto&, auto&) {}));
  EXPECT_FALSE(believed([](auto& e, auto&) { e.clear(); }));
  EXPECT_FALSE(believed([](auto& e, auto&) { e[0].first_row = 1; }));
  EXPECT_FALSE(believed([](auto& e, auto&) { e[1].first_row = 26; }));
  EXPECT_FALSE(believed([](auto& e, auto&) { e[2].first_row = 31; }));
  EXPECT_FALSE(believed([](auto& e, auto&) { e[1].offset_bytes = 149; })) << "overlaps";
  EXPECT_FALSE(believed([](auto& e, auto&) { e[2].page_bytes = 41; })) << "leaves the chunk";
  EXPECT_FALSE(believed([](auto& e, auto&) { e[0].page_bytes = 0; }));
  EXPECT_FALSE(believed([](auto& e, auto&) { e[0].offset_bytes = 79; })) << "before the chunk";
  EXPECT_FALSE(believed([](auto& e, auto&) { e[0].offset_bytes = 80; })) << "the dictionary";
  EXPECT_FALSE(believed([](auto&, auto& m) { m.data_pages = 4; })) << "another page count";
  EXPECT_TRUE(believed([](auto&, auto& m) { m.data_pages = 3; }));
  // A page without rows: empty in a flat column, undecidable in a repeated one.
  EXPECT_TRUE(believed([](auto& e, auto&) { e[1].first_row = 25; }));
  EXPECT_FALSE(believed([](auto& e, auto&) { e[1].first_row = 25; }, true));
  const std::string bytes = IndexBytes(good);
  for (size_t i = 0; i < bytes.size(); ++i) {
    EXPECT_FALSE(ParseOffsetIndex(Span(bytes).first(i)).has_value());
  }
}

}  // namespace
}  // namespace grebe::pq

#include "parquet/row_decode.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <arrow/io/memory.h>
#include <parquet/arrow/schema.h>
#include <parquet/column_writer.h>
#include <parquet/file_writer.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <random>

#include "parquet/guard.h"
#include "parquet/page_header.h"
#include "parquet/row_decode_test_util.h"
#include "parquet/schema_internal.h"
#include "store/memory_store.h"

namespace grebe::pq {
namespace {

using testing::Difference;
using testing::EveryType;
using testing::FileOptions;
using testing::PickRows;
using testing::RandomOptions;
using testing::RandomTable;
using testing::ReadCount;
using testing::ReadRows;
using testing::ReadWhole;
using testing::Subject;
using testing::TakeRows;
using testing::WriteFile;

uint64_t Seed() {
  static const uint64_t seed = [] {
    const char* given = std::getenv("GREBE_TEST_SEED");
    const uint64_t value =
        given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device()();
    std::printf("GREBE_TEST_SEED=%llu\n", static_cast<unsigned long long>(value));
    return value;
  }();
  return seed;
}

std::string Text(const Status& status) { return status.ok() ? "" : status.ToString(); }
template <class T>
std::string Text(const Result<T>& result) {
  return Text(result.status());
}
#define ASSERT_OK(expression) ASSERT_EQ(Text(expression), "")

enum class Encodings { kPlain, kDictionary, kFallback, kDelta, kSplit };

struct Case {
  Encodings encodings = Encodings::kPlain;
  arrow::Compression::type codec = arrow::Compression::UNCOMPRESSED;
  bool v2 = false;
  bool page_index = true;
  double null_chance = 0.2;
};

void PrintTo(const Case& c, std::ostream* out) {
  *out << "encodings " << static_cast<int>(c.encodings) << " codec " << static_cast<int>(c.codec)
       << (c.v2 ? " v2" : " v1") << (c.page_index ? " index" : " no index") << " nulls "
       << c.null_chance;
}

// The encoding that the case asks of a leaf; PLAIN where it does not exist for the leaf's type.
::parquet::Encoding::type EncodingOf(const Case& c, const ::parquet::ColumnDescriptor& leaf) {
  using ::parquet::Encoding;
  using ::parquet::Type;
  const auto type = leaf.physical_type();
  if (c.encodings == Encodings::kDelta) {
    switch (type) {
      case Type::BOOLEAN: return Encoding::RLE;
      case Type::INT32:
      case Type::INT64: return Encoding::DELTA_BINARY_PACKED;
      case Type::BYTE_ARRAY:
        // libparquet reads no dictionary-typed column from DELTA pages.
        if (leaf.name() == "dictionary") return Encoding::PLAIN;
        return leaf.name().size() % 2 == 0 ? Encoding::DELTA_BYTE_ARRAY
                                           : Encoding::DELTA_LENGTH_BYTE_ARRAY;
      case Type::FIXED_LEN_BYTE_ARRAY: return Encoding::DELTA_BYTE_ARRAY;
      default: return Encoding::PLAIN;
    }
  }
  if (c.encodings == Encodings::kSplit && type != Type::BOOLEAN && type != Type::BYTE_ARRAY &&
      type != Type::INT96) {
    return Encoding::BYTE_STREAM_SPLIT;
  }
  return Encoding::PLAIN;
}

FileOptions OptionsOf(const Case& c, const arrow::Schema& schema) {
  FileOptions options;
  options.properties.compression(c.codec)
      ->data_page_version(c.v2 ? ::parquet::ParquetDataPageVersion::V2
                               : ::parquet::ParquetDataPageVersion::V1)
      ->write_batch_size(13)
      ->data_pagesize(300)
      ->enable_page_checksum();
  if (c.page_index) {
    options.properties.enable_write_page_index();
  } else {
    options.properties.disable_write_page_index();
  }
  options.row_group_rows = 170;
  if (c.encodings == Encodings::kDictionary) return options;
  if (c.encodings == Encodings::kFallback) {
    options.properties.dictionary_pagesize_limit(200);
    return options;
  }
  options.properties.disable_dictionary();
  std::shared_ptr<::parquet::SchemaDescriptor> descriptor;
  EXPECT_TRUE(::parquet::arrow::ToParquetSchema(&schema, *::parquet::default_writer_properties(),
                                                &descriptor)
                  .ok());
  for (int i = 0; i < descriptor->num_columns(); ++i) {
    options.properties.encoding(descriptor->Column(i)->path(),
                                EncodingOf(c, *descriptor->Column(i)));
  }
  return options;
}

// Reads several sets of rows of a file both ways.
void ExpectSameRows(const std::string& bytes, Rng* rng, const DecodeOptions& options = {},
                    int rounds = 4) {
  auto subject = Subject::Open(bytes);
  ASSERT_OK(subject);
  auto projection = subject->schema->Project({});
  ASSERT_OK(projection);
  auto whole = ReadWhole(bytes, projection->leaves);
  ASSERT_OK(whole);
  const int64_t row_count = (*whole)->num_rows();
  for (int round = 0; round < rounds; ++round) {
    std::vector<int64_t> rows;
    if (round == 0) {
      rows.resize(static_cast<size_t>(row_count));
      std::iota(rows.begin(), rows.end(), 0);
    } else {
      rows = PickRows(row_count, round == 1 ? 1 : round == 2 ? 3 : row_count / 3, rng);
    }
    auto expected = TakeRows(**whole, rows);
    ASSERT_OK(expected);
    auto got = ReadRows(*subject, *projection, rows, options);
    ASSERT_OK(got) << " round " << round;
    ASSERT_OK((*got)->ValidateFull());
    ASSERT_EQ(Difference(**expected, **got), "") << " round " << round;
  }
}

class EveryCase : public ::testing::TestWithParam<Case> {};

TEST_P(EveryCase, RowsEqualTheWholeReadsRows) {
  const Case& c = GetParam();
  Rng rng(Seed());
  RandomOptions random;
  random.null_chance = c.null_chance;
  random.distinct = c.encodings == Encodings::kDictionary ? 9 : 0;
  auto table = RandomTable(EveryType(), 400, random, &rng);
  ASSERT_OK(table);
  FileOptions options = OptionsOf(c, *EveryType());
  auto bytes = WriteFile(**table, &options);
  ASSERT_OK(bytes);
  ExpectSameRows(*bytes, &rng);
}

std::vector<Case> Cases() {
  using arrow::Compression;
  std::vector<Case> cases;
  for (const auto encodings : {Encodings::kPlain, Encodings::kDictionary, Encodings::kFallback,
                               Encodings::kDelta, Encodings::kSplit}) {
    for (const bool v2 : {false, true}) {
      for (const bool page_index : {false, true}) {
        cases.push_back({encodings, Compression::UNCOMPRESSED, v2, page_index});
        cases.push_back({encodings, Compression::ZSTD, v2, page_index});
      }
    }
  }
  for (const auto codec : {Compression::SNAPPY, Compression::GZIP, Compression::BROTLI,
                           Compression::LZ4, Compression::LZ4_HADOOP}) {
    for (const bool v2 : {false, true}) {
      cases.push_back({Encodings::kFallback, codec, v2});
    }
  }
  for (const double nulls : {0.0, 0.97}) {
    for (const bool v2 : {false, true}) {
      cases.push_back({Encodings::kPlain, Compression::ZSTD, v2, true, nulls});
      cases.push_back({Encodings::kDictionary, Compression::SNAPPY, v2, false, nulls});
      cases.push_back({Encodings::kDelta, Compression::UNCOMPRESSED, v2, true, nulls});
    }
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(RowDecode, EveryCase, ::testing::ValuesIn(Cases()));

// --- int96, projections, caches -------------------------------------------------------------

TEST(RowDecode, Int96TimestampsEqualLibparquets) {
  Rng rng(Seed());
  auto table = RandomTable(
      arrow::schema({arrow::field("t", arrow::timestamp(arrow::TimeUnit::NANO))}), 300, {}, &rng);
  ASSERT_OK(table);
  FileOptions options;
  options.int96 = true;
  options.properties.data_pagesize(200)->write_batch_size(10);
  auto bytes = WriteFile(**table, &options);
  ASSERT_OK(bytes);
  ExpectSameRows(*bytes, &rng);
}

TEST(RowDecode, PrunedNestedColumnsEqualLibparquets) {
  Rng rng(Seed());
  auto table = RandomTable(EveryType(), 200, {}, &rng);
  ASSERT_OK(table);
  FileOptions options = OptionsOf({Encodings::kFallback}, *EveryType());
  auto bytes = WriteFile(**table, &options);
  ASSERT_OK(bytes);
  auto subject = Subject::Open(*bytes);
  ASSERT_OK(subject);
  const int leaf_count = subject->schema->leaf_count();
  for (int round = 0; round < 60; ++round) {
    std::vector<std::string> paths;
    for (int i = 0; i < leaf_count; ++i) {
      if (rng.Chance(0.15)) paths.push_back(subject->schema->leaf_path(i));
    }
    if (paths.empty()) continue;
    auto projection = subject->schema->Project(paths);
    ASSERT_OK(projection);
    auto whole = ReadWhole(*bytes, projection->leaves);
    ASSERT_OK(whole);
    const auto rows = PickRows(200, 20, &rng);
    auto expected = TakeRows(**whole, rows);
    ASSERT_OK(expected);
    auto got = ReadRows(*subject, *projection, rows);
    ASSERT_OK(got);
    ASSERT_EQ(Difference(**expected, **got), "");
  }
}

// A list<int32> column in v1 pages that are cut anywhere, also inside a row: every few levels.
// *rows_written gets the rows. (libparquet loses rows of some of these files: empty pages occur.)
Result<std::string> WriteCutAnywhere(int64_t rows, int64_t list_length_max, bool dictionary,
                                     std::shared_ptr<arrow::Array>* rows_written, Rng* rng) {
  std::vector<int16_t> definition, repetition;
  std::vector<int32_t> values;
  auto items = std::make_shared<arrow::Int32Builder>();
  arrow::ListBuilder lists(arrow::default_memory_pool(), items,
                           arrow::list(arrow::field("element", arrow::int32())));
  for (int64_t row = 0; row < rows; ++row) {
    const auto length = static_cast<int64_t>(rng->Below(uint64_t(list_length_max) + 1));
    if (length == 0) {
      definition.push_back(static_cast<int16_t>(rng->Below(2)));  // null, or empty
      repetition.push_back(0);
    }
    ARROW_RETURN_NOT_OK(length == 0 && definition.back() == 0 ? lists.AppendNull()
                                                              : lists.Append());
    for (int64_t i = 0; i < length; ++i) {
      const bool null = rng->Chance(0.2);
      definition.push_back(null ? 2 : 3);
      repetition.push_back(i == 0 ? 0 : 1);
      if (!null) values.push_back(static_cast<int32_t>(rng->Below(50)));
      ARROW_RETURN_NOT_OK(null ? items->AppendNull() : items->Append(values.back()));
    }
  }
  ARROW_ASSIGN_OR_RAISE(*rows_written, lists.Finish());
  return Guarded("writing a test file", [&]() -> Result<std::string> {
    const auto schema = arrow::schema({arrow::field("l", arrow::list(arrow::int32()))});
    ::parquet::WriterProperties::Builder builder;
    builder.disable_write_page_index()->data_pagesize(1)->write_batch_size(1);
    if (!dictionary) builder.disable_dictionary();
    const auto properties = builder.build();
    std::shared_ptr<::parquet::SchemaDescriptor> descriptor;
    ARROW_RETURN_NOT_OK(
        ::parquet::arrow::ToParquetSchema(schema.get(), *properties, &descriptor));
    ARROW_ASSIGN_OR_RAISE(auto out, arrow::io::BufferOutputStream::Create());
    auto writer = ::parquet::ParquetFileWriter::Open(
        out,
        std::static_pointer_cast<::parquet::schema::GroupNode>(descriptor->schema_root()),
        properties);
    auto* row_group = writer->AppendRowGroup();
    auto* column = static_cast<::parquet::Int32Writer*>(row_group->NextColumn());
    const int32_t* value = values.data();
    for (size_t at = 0; at < definition.size();) {
      const size_t count = std::min<size_t>(1 + rng->Below(5), definition.size() - at);
      column->WriteBatch(static_cast<int64_t>(count), &definition[at], &repetition[at], value);
      value += std::count(definition.begin() + long(at), definition.begin() + long(at + count), 3);
      at += count;
    }
    column->Close();
    row_group->Close();
    writer->Close();
    ARROW_ASSIGN_OR_RAISE(auto buffer, out->Finish());
    return buffer->ToString();
  });
}

TEST(RowDecode, PagesThatBeginInTheMiddleOfARowAreJoined) {
  Rng rng(Seed());
  for (const bool dictionary : {false, true}) {
    const int64_t row_count = 80;
    std::shared_ptr<arrow::Array> written;
    auto bytes = WriteCutAnywhere(row_count, 17, dictionary, &written, &rng);
    ASSERT_OK(bytes);
    auto subject = Subject::Open(*bytes);
    ASSERT_OK(subject);
    ASSERT_EQ(subject->map->row_count(), row_count);
    int mid_row = 0, without_rows = 0;
    for (const PageLocation& page : subject->pages.row_groups[0].chunks[0].pages) {
      mid_row += page.begins_mid_row;
      without_rows += page.rows.empty();
    }
    ASSERT_GT(mid_row, 10);
    ASSERT_GT(without_rows, 10);  // rows that span three pages and more
    auto projection = subject->schema->Project({});
    ASSERT_OK(projection);
    const auto whole = arrow::Table::Make(
        projection->arrow_schema,
        {*written->View(projection->arrow_schema->field(0)->type())}, row_count);
    for (int64_t round = 0; round < row_count + 20; ++round) {
      // Each row alone: its first page begins in the middle of the row before. Then several.
      std::vector<int64_t> rows{round};
      if (round >= row_count) rows = PickRows(row_count, 1 + round % 30, &rng);
      auto expected = TakeRows(*whole, rows);
      ASSERT_OK(expected);
      auto got = ReadRows(*subject, *projection, rows);
      ASSERT_OK(got);
      ASSERT_EQ(Difference(**expected, **got), "") << "round " << round;
    }
  }
}

TEST(RowDecode, CachedPagesAndDictionariesAreNotFetchedAgain) {
  Rng rng(Seed());
  auto table = RandomTable(EveryType(), 300, {}, &rng);
  ASSERT_OK(table);
  for (const auto codec : {arrow::Compression::UNCOMPRESSED, arrow::Compression::ZSTD}) {
    FileOptions options = OptionsOf({Encodings::kFallback, codec}, *EveryType());
    auto bytes = WriteFile(**table, &options);
    ASSERT_OK(bytes);
    auto subject = Subject::Open(*bytes);
    ASSERT_OK(subject);
    auto projection = subject->schema->Project({});
    ASSERT_OK(projection);
    DecodeCache cache(64 << 20, 64 << 20);
    DecodeOptions decode;
    decode.cache = &cache;
    const auto rows = PickRows(300, 40, &rng);
    ReadCount first, second;
    auto cold = ReadRows(*subject, *projection, rows, decode, &first);
    ASSERT_OK(cold);
    auto warm = ReadRows(*subject, *projection, rows, decode, &second);
    ASSERT_OK(warm);
    EXPECT_EQ(Difference(**cold, **warm), "");
    EXPECT_GT(first.pages, 0);
    EXPECT_GT(first.dictionaries, 0);
    EXPECT_EQ(second.pages, 0);
    EXPECT_EQ(second.dictionaries, 0);
    EXPECT_EQ(cache.counters().page_hits, first.pages);
    EXPECT_EQ(cache.counters().page_misses, first.pages);
    ExpectSameRows(*bytes, &rng, decode);
  }
}

TEST(RowDecode, ACacheWithoutRoomChangesNothing) {
  Rng rng(Seed());
  auto table = RandomTable(EveryType(), 300, {}, &rng);
  ASSERT_OK(table);
  FileOptions options = OptionsOf({Encodings::kDictionary, arrow::Compression::ZSTD},
                                  *EveryType());
  auto bytes = WriteFile(**table, &options);
  ASSERT_OK(bytes);
  for (const int64_t budget : {0, 1, 1000, 20000}) {
    DecodeCache cache(budget, budget);
    DecodeOptions decode;
    decode.cache = &cache;
    ExpectSameRows(*bytes, &rng, decode);
  }
}

TEST(RowDecode, LargePagesAndDictionariesAreDecodedAsFarAsNeeded) {
  Rng rng(Seed());
  RandomOptions random;
  random.string_bytes_max = 60;
  random.null_chance = 0.05;
  const auto schema = arrow::schema(
      {arrow::field("s", arrow::utf8()), arrow::field("i", arrow::int64()),
       arrow::field("f", arrow::fixed_size_binary(21)), arrow::field("b", arrow::boolean()),
       arrow::field("l", arrow::list(arrow::utf8()))});
  const int64_t row_count = 40000;
  auto table = RandomTable(schema, row_count, random, &rng);
  ASSERT_OK(table);
  for (const bool v2 : {false, true}) {
    for (const bool dictionary : {false, true}) {
      FileOptions options;
      options.properties.compression(arrow::Compression::ZSTD)
          ->data_page_version(v2 ? ::parquet::ParquetDataPageVersion::V2
                                 : ::parquet::ParquetDataPageVersion::V1)
          ->dictionary_pagesize_limit(8 << 20)
          ->max_rows_per_page(row_count);
      if (!dictionary) options.properties.disable_dictionary();
      auto bytes = WriteFile(**table, &options);
      ASSERT_OK(bytes);
      auto subject = Subject::Open(*bytes);
      ASSERT_OK(subject);
      auto projection = subject->schema->Project({});
      ASSERT_OK(projection);
      DecodeCache cache(64 << 20, 64 << 20);
      DecodeOptions with_cache;
      with_cache.cache = &cache;
      for (int round = 0; round < 24; ++round) {
        const auto rows = PickRows(row_count, round % 8 == 7 ? 300 : 1 + round % 3, &rng);
        auto expected = TakeRows(**table, rows);
        ASSERT_OK(expected);
        auto got = ReadRows(*subject, *projection, rows, round % 2 ? with_cache : DecodeOptions());
        ASSERT_OK(got);
        ASSERT_EQ(Difference(**expected, **got).substr(0, 500), "") << "round " << round;
      }
    }
  }
}

TEST(RowDecode, WhatTheCacheHoldsOutlivesTheCallersPool) {
  Rng rng(Seed());
  auto table = RandomTable(EveryType(), 200, {}, &rng);
  ASSERT_OK(table);
  FileOptions options = OptionsOf({Encodings::kFallback, arrow::Compression::ZSTD}, *EveryType());
  auto bytes = WriteFile(**table, &options);
  ASSERT_OK(bytes);
  auto subject = Subject::Open(*bytes);
  ASSERT_OK(subject);
  auto projection = subject->schema->Project({});
  ASSERT_OK(projection);
  DecodeCache cache(64 << 20, 64 << 20);
  const auto rows = PickRows(200, 30, &rng);
  auto expected = ReadRows(*subject, *projection, rows);
  ASSERT_OK(expected);
  for (int round = 0; round < 2; ++round) {
    arrow::ProxyMemoryPool pool(arrow::default_memory_pool());
    DecodeOptions decode;
    decode.cache = &cache;
    decode.pool = &pool;
    {
      auto got = ReadRows(*subject, *projection, rows, decode);
      ASSERT_OK(got);
      ASSERT_EQ(Difference(**expected, **got), "");
    }
    ASSERT_EQ(pool.bytes_allocated(), 0) << "something of the call's pool is still held";
  }
}

// --- damage ----------------------------------------------------------------------------------

// The top-level column that owns each leaf, alone.
std::vector<Projection> ColumnsByLeaf(const Schema& schema) {
  std::vector<Projection> columns;
  const Schema::Impl& impl = schema.impl();
  for (int leaf = 0; leaf < schema.leaf_count(); ++leaf) {
    const auto& field = impl.manifest.schema_fields[static_cast<size_t>(impl.leaf_roots[leaf])];
    Projection column;
    for (int i = 0; i < schema.leaf_count(); ++i) {
      if (impl.leaf_roots[i] == impl.leaf_roots[leaf]) column.leaves.push_back(i);
    }
    column.arrow_schema = arrow::schema({field.field});
    columns.push_back(std::move(column));
  }
  return columns;
}

// The first byte of a page that its checksum covers: what follows the header.
int64_t PayloadBegin(const std::string& file, const ByteRange& page) {
  const auto* data = reinterpret_cast<const uint8_t*>(file.data()) + page.begin;
  const auto header =
      ParsePageHeader({data, static_cast<size_t>(page.size_bytes())},
                      {.bytes_left = page.size_bytes()}, ReadLimits());
  return page.begin + (*header)->header_bytes;
}

// Damages bytes of pages one after the other, with the page map as it was, and reads the column.
void FlipBytes(const Case& c, bool checksums, int64_t flips) {
  Rng rng(Seed());
  RandomOptions random;
  random.distinct = c.encodings == Encodings::kDictionary ? 7 : 0;
  auto table = RandomTable(EveryType(), 60, random, &rng);
  ASSERT_OK(table);
  FileOptions options = OptionsOf(c, *EveryType());
  if (!checksums) options.properties.disable_page_checksum();
  auto bytes = WriteFile(**table, &options);
  ASSERT_OK(bytes);
  auto subject = Subject::Open(*bytes);
  ASSERT_OK(subject);
  const std::vector<Projection> columns = ColumnsByLeaf(*subject->schema);
  std::vector<int64_t> rows(60);
  std::iota(rows.begin(), rows.end(), 0);
  std::vector<std::pair<ByteRange, int>> ranges;  // of pages and dictionaries, with their leaf
  for (int leaf = 0; leaf < subject->schema->leaf_count(); ++leaf) {
    const ChunkPages& chunk = subject->pages.row_groups[0].chunks[static_cast<size_t>(leaf)];
    if (chunk.info.dictionary) ranges.push_back({*chunk.info.dictionary, leaf});
    for (const PageLocation& page : chunk.pages) ranges.push_back({page.bytes, leaf});
  }
  int64_t refused = 0;
  for (int64_t flip = 0; flip < flips; ++flip) {
    const auto& [range, leaf] = ranges[rng.Below(ranges.size())];
    const int64_t at = range.begin + int64_t(rng.Below(uint64_t(range.size_bytes())));
    std::string damaged = *bytes;
    const auto mask = static_cast<char>(1 + rng.Below(255));
    damaged[static_cast<size_t>(at)] = static_cast<char>(damaged[static_cast<size_t>(at)] ^ mask);
    Subject broken = *subject;
    broken.store = store::MakeMemoryStore();
    ASSERT_OK(broken.store->Put("f.parquet", damaged, store::PutMode::kOverwrite));
    auto object = broken.store->Stat("f.parquet");
    ASSERT_OK(object);
    broken.object = std::make_shared<const store::Object>(*object);
    const Projection& column = columns[static_cast<size_t>(leaf)];
    auto got = ReadRows(broken, column, rows);
    SCOPED_TRACE("byte " + std::to_string(at) + " mask " + std::to_string(mask & 0xff) +
                 " leaf " + subject->schema->leaf_path(leaf));
    if (!got.ok()) {
      ++refused;
      const ErrorKind kind = KindOf(got.status());
      ASSERT_TRUE(kind == ErrorKind::kCorrupt || kind == ErrorKind::kUnsupported ||
                  kind == ErrorKind::kLimitExceeded)
          << got.status();
      continue;
    }
    ASSERT_OK((*got)->Validate());
    // A header has no checksum: damage there may name another encoding, or no checksum at all.
    if (!checksums || at < PayloadBegin(*bytes, range)) continue;
    auto expected = ReadRows(*subject, column, rows);
    ASSERT_OK(expected);
    ASSERT_EQ(Difference(**expected, **got), "");
  }
  EXPECT_GT(refused, flips / 8);
}

TEST(RowDecode, FlippedBytesGiveRowsOrATypedError) {
  const int64_t flips = std::getenv("GREBE_TEST_FLIPS") != nullptr
                            ? std::atoll(std::getenv("GREBE_TEST_FLIPS"))
                            : 300;
  using arrow::Compression;
  for (const bool v2 : {false, true}) {
    for (const auto codec : {Compression::UNCOMPRESSED, Compression::ZSTD, Compression::SNAPPY}) {
      for (const auto encodings : {Encodings::kPlain, Encodings::kDictionary, Encodings::kDelta,
                                   Encodings::kSplit}) {
        FlipBytes({encodings, codec, v2}, false, flips);
      }
    }
  }
}

TEST(RowDecode, FlippedBytesNeverGiveWrongRowsWherePagesHaveChecksums) {
  for (const bool v2 : {false, true}) {
    FlipBytes({Encodings::kFallback, arrow::Compression::UNCOMPRESSED, v2}, true, 1500);
    FlipBytes({Encodings::kDelta, arrow::Compression::ZSTD, v2}, true, 500);
  }
}

}  // namespace
}  // namespace grebe::pq

#include "parquet/row_decode.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <parquet/arrow/schema.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <random>

#include "parquet/guard.h"
#include "parquet/row_decode_test_util.h"
#include "parquet/schema_internal.h"

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

}  // namespace
}  // namespace grebe::pq

#include "parquet/write_file.h"

#include <arrow/io/memory.h>
#include <gtest/gtest.h>
#include <parquet/column_page.h>
#include <parquet/file_reader.h>
#include <parquet/page_index.h>

#include <cstdlib>

#include "parquet/cut_bounds.h"
#include "parquet/footer.h"
#include "parquet/row_decode_test_util.h"

namespace grebe::pq {
namespace {

using testing::Difference;
using testing::RandomOptions;
using testing::RandomTable;
using testing::ReadRows;
using testing::ReadWhole;
using testing::Subject;

uint64_t Seed() {
  const char* text = std::getenv("GREBE_TEST_SEED");
  return text != nullptr ? std::strtoull(text, nullptr, 10) : 20261130;
}

struct Written {
  std::string bytes;
  WrittenFile file;
};

struct RowGroup {
  std::shared_ptr<arrow::Table> rows;
  std::vector<int64_t> ends;
};

Result<Written> Write(const std::shared_ptr<arrow::Schema>& schema,
                      const std::vector<RowGroup>& groups, const WriteOptions& options,
                      std::shared_ptr<const arrow::KeyValueMetadata> key_values = nullptr) {
  ARROW_ASSIGN_OR_RAISE(auto sink, arrow::io::BufferOutputStream::Create());
  ARROW_ASSIGN_OR_RAISE(auto writer, FileWriter::Open(sink, schema, key_values, options));
  for (const RowGroup& group : groups) {
    ARROW_RETURN_NOT_OK(writer->WriteRowGroup(*group.rows, group.ends));
  }
  Written written;
  ARROW_ASSIGN_OR_RAISE(written.file, writer->Finish());
  ARROW_ASSIGN_OR_RAISE(auto buffer, sink->Finish());
  written.bytes = buffer->ToString();
  return written;
}

std::vector<int64_t> RandomEnds(int64_t rows, Rng* rng) {
  std::vector<int64_t> ends;
  if (rng->Chance(0.2)) return ends;
  for (int64_t end = 0; end < rows;) {
    end = std::min(rows, end + 1 + static_cast<int64_t>(rng->Below(rng->Chance(0.3) ? 3 : 90)));
    ends.push_back(end);
  }
  return ends;
}

WriteOptions RandomWriteOptions(Rng* rng) {
  WriteOptions options;
  const Codec codecs[] = {Codec::kNone, Codec::kSnappy, Codec::kZstd, Codec::kGzip, Codec::kLz4};
  options.codec = codecs[rng->Below(5)];
  options.codec_level = 1 + static_cast<int>(rng->Below(3));
  options.page_rows_max = 1 + static_cast<int64_t>(rng->Below(200));
  options.page_bytes_max = 1 + static_cast<int64_t>(rng->Below(4000));
  options.dictionary = static_cast<DictionaryPolicy>(rng->Below(3));
  options.dictionary_bytes_max = 1 + static_cast<int64_t>(rng->Below(4000));
  options.threads = 1 + static_cast<int>(rng->Below(3));
  for (const char* path : {"i64", "string", "f64", "f16", "list_deep.list.element.y.list.element.z",
                           "dec9", "string_view"}) {
    if (rng->Chance(0.5)) options.bloom_columns.push_back(path);
  }
  return options;
}

std::vector<RowGroup> RandomGroups(const arrow::Table& table, Rng* rng) {
  std::vector<RowGroup> groups;
  for (int64_t row = 0; row < table.num_rows();) {
    const int64_t count = std::min<int64_t>(table.num_rows() - row,
                                            static_cast<int64_t>(rng->Below(400)));
    // In several pieces, as a sort may give them.
    std::vector<std::shared_ptr<arrow::Table>> pieces{table.Slice(row, 0)};
    for (int64_t at = row; at < row + count;) {
      const auto size =
          std::min<int64_t>(row + count - at, 1 + static_cast<int64_t>(rng->Below(300)));
      pieces.push_back(table.Slice(at, size));
      at += size;
    }
    groups.push_back({*arrow::ConcatenateTables(pieces), RandomEnds(count, rng)});
    row += count;
  }
  return groups;
}

void ExpectSamePages(const FilePages& expected, const FilePages& got) {
  ASSERT_EQ(expected.row_groups.size(), got.row_groups.size());
  for (size_t group = 0; group < got.row_groups.size(); ++group) {
    const RowGroupPages& a = expected.row_groups[group];
    const RowGroupPages& b = got.row_groups[group];
    EXPECT_EQ(a.row_count, b.row_count);
    ASSERT_EQ(a.chunks.size(), b.chunks.size());
    for (size_t leaf = 0; leaf < b.chunks.size(); ++leaf) {
      SCOPED_TRACE("row group " + std::to_string(group) + " leaf " + std::to_string(leaf));
      const ChunkPages& x = a.chunks[leaf];
      const ChunkPages& y = b.chunks[leaf];
      EXPECT_EQ(x.info.codec, y.info.codec);
      EXPECT_EQ(x.info.value_count, y.info.value_count);
      EXPECT_EQ(x.info.dictionary, y.info.dictionary);
      EXPECT_EQ(x.info.page_count, y.info.page_count);
      ASSERT_EQ(x.pages.size(), y.pages.size());
      for (size_t page = 0; page < y.pages.size(); ++page) {
        EXPECT_EQ(x.pages[page].bytes, y.pages[page].bytes);
        EXPECT_EQ(x.pages[page].rows, y.pages[page].rows);
        EXPECT_FALSE(y.pages[page].begins_mid_row);
      }
    }
  }
}

void ExpectEnds(const std::vector<RowGroup>& groups, const FilePages& pages) {
  size_t written = 0;
  for (const RowGroup& group : groups) {
    if (group.rows->num_rows() == 0) continue;
    const RowGroupPages& out = pages.row_groups[written++];
    if (group.ends.empty()) continue;
    for (const ChunkPages& chunk : out.chunks) {
      std::vector<int64_t> ends;
      for (const PageLocation& page : chunk.pages) ends.push_back(page.rows.end);
      EXPECT_EQ(ends, group.ends);
    }
  }
  EXPECT_EQ(written, pages.row_groups.size());
}

// Every type, random rows, random cuts: libparquet reads what libparquet's own writer would have
// stored, and so do we, by the page map that Finish gave.
void CheckRandomTable(uint64_t seed) {
  SCOPED_TRACE("GREBE_TEST_SEED=" + std::to_string(seed));
  Rng rng(seed);
  RandomOptions shape;
  shape.null_chance = rng.Chance(0.2) ? 0 : rng.Chance(0.1) ? 1 : rng.Fraction();
  shape.distinct = rng.Chance(0.5) ? 1 + static_cast<int64_t>(rng.Below(50)) : 0;
  shape.list_length_max = static_cast<int64_t>(rng.Below(6));
  const auto schema = testing::EveryType();
  const auto rows = static_cast<int64_t>(rng.Below(900));
  const auto table = *RandomTable(schema, rows, shape, &rng);
  const WriteOptions options = RandomWriteOptions(&rng);
  const auto groups = RandomGroups(*table, &rng);
  const auto written = Write(schema, groups, options);
  ASSERT_TRUE(written.ok()) << written.status();
  EXPECT_EQ(written->file.row_count, rows);
  EXPECT_EQ(written->file.size_bytes, static_cast<int64_t>(written->bytes.size()));

  testing::FileOptions plain;
  std::vector<int> leaves;
  for (int i = 0; i < written->file.schema->leaf_count(); ++i) leaves.push_back(i);
  const auto expected = *ReadWhole(*testing::WriteFile(*table, &plain), leaves);
  const auto got = ReadWhole(written->bytes, leaves);
  ASSERT_TRUE(got.ok()) << got.status();
  ASSERT_TRUE((*got)->ValidateFull().ok());
  EXPECT_EQ(Difference(**expected->CombineChunksToBatch(), **(*got)->CombineChunksToBatch()), "");

  const auto subject = Subject::Open(written->bytes);
  ASSERT_TRUE(subject.ok()) << subject.status();
  EXPECT_EQ(subject->schema->Serialize(), written->file.schema->Serialize());
  ExpectSamePages(subject->pages, written->file.pages);
  ExpectEnds(groups, written->file.pages);
  const auto wanted = testing::PickRows(rows, 60, &rng);
  if (!wanted.empty()) {
    const auto batch = ReadRows(*subject, *subject->schema->Project({}), wanted);
    ASSERT_TRUE(batch.ok()) << batch.status();
    EXPECT_EQ(Difference(**testing::TakeRows(*expected, wanted), **batch), "");
  }

  WriteOptions other = options;
  other.threads = options.threads == 1 ? 3 : 1;
  EXPECT_EQ(Write(schema, groups, other)->bytes, written->bytes) << "threads show in the bytes";
}

TEST(WriteFile, EveryTypeIsReadBackAndPagesEndWhereAsked) {
  const uint64_t seed = Seed();
  for (uint64_t i = 0; i < 40 && !::testing::Test::HasFailure(); ++i) CheckRandomTable(seed + i);
}

TEST(WriteFile, NoRowsMakeAFileWithoutRowGroups) {
  const auto schema = testing::EveryType();
  Rng rng(1);
  const auto empty = *RandomTable(schema, 0, {}, &rng);
  const auto written = Write(schema, {{empty, {}}}, {});
  ASSERT_TRUE(written.ok()) << written.status();
  const auto subject = *Subject::Open(written->bytes);
  EXPECT_EQ(subject.footer->row_group_count(), 0);
  EXPECT_TRUE(subject.schema->arrow_schema()->field(0)->Equals(schema->field(0)));
}

TEST(WriteFile, FieldIdsAndKeyValuesAreKept) {
  const auto id = [](const char* value) {
    return arrow::key_value_metadata({"PARQUET:field_id", "note"}, {value, "kept"});
  };
  const auto item = arrow::field("element", arrow::int32())->WithMetadata(id("7"));
  const auto schema = arrow::schema({arrow::field("a", arrow::int64())->WithMetadata(id("3")),
                                     arrow::field("l", arrow::list(item))->WithMetadata(id("5"))});
  Rng rng(1);
  const auto table = *RandomTable(schema, 10, {}, &rng);
  const auto key_values = arrow::key_value_metadata({"owner", "ARROW:schema"}, {"me", "stale"});
  const auto written = Write(schema, {{table, {}}}, {}, key_values);
  ASSERT_TRUE(written.ok()) << written.status();
  const auto read = *ReadWhole(written->bytes, {0, 1});
  EXPECT_EQ(*read->schema()->metadata()->Get("owner"), "me");
  EXPECT_EQ(*read->schema()->field(0)->metadata()->Get("PARQUET:field_id"), "3");
  EXPECT_EQ(*read->schema()->field(0)->metadata()->Get("note"), "kept");
  EXPECT_EQ(*read->schema()->field(1)->metadata()->Get("PARQUET:field_id"), "5");
  EXPECT_EQ(*read->schema()->field(1)->type()->field(0)->metadata()->Get("PARQUET:field_id"), "7");
}

TEST(WriteFile, RefusesBeforeAnythingIsWritten) {
  struct Case {
    const char* name;
    std::shared_ptr<arrow::Schema> schema;
    WriteOptions options;
    ErrorKind kind;
  };
  const auto ints = arrow::schema({arrow::field("a", arrow::int64()),
                                   arrow::field("b", arrow::boolean())});
  const auto with = [](auto change) {
    WriteOptions options;
    change(&options);
    return options;
  };
  const auto one = [](std::shared_ptr<arrow::DataType> type) {
    return arrow::schema({arrow::field("x", std::move(type))});
  };
  const auto either = arrow::dense_union({arrow::field("x", arrow::int8())});
  const auto runs = arrow::run_end_encoded(arrow::int32(), arrow::utf8());
  const Case cases[] = {
      {"union", one(either), {}, ErrorKind::kUnsupported},
      {"union in a list", one(arrow::list(either)), {}, ErrorKind::kUnsupported},
      {"runs", one(runs), {}, ErrorKind::kUnsupported},
      {"months", one(arrow::month_interval()), {}, ErrorKind::kUnsupported},
      {"empty struct", one(arrow::struct_({})), {}, ErrorKind::kUnsupported},
      {"no columns", arrow::schema({}), {}, ErrorKind::kUnsupported},
      {"bloom of booleans", ints, with([](auto* o) { o->bloom_columns = {"b"}; }),
       ErrorKind::kInvalidArgument},
      {"bloom of nothing", ints, with([](auto* o) { o->bloom_columns = {"c"}; }),
       ErrorKind::kInvalidArgument},
      {"sorted by nothing", ints, with([](auto* o) { o->sorting_columns = {{"c"}}; }),
       ErrorKind::kInvalidArgument},
      {"level", ints, with([](auto* o) { o->codec_level = 99; }), ErrorKind::kInvalidArgument},
      {"gzip level", ints, with([](auto* o) { o->codec = Codec::kGzip; o->codec_level = 99; }),
       ErrorKind::kInvalidArgument},
      {"bloom share", ints, with([](auto* o) { o->bloom_false_share_max = 1; }),
       ErrorKind::kInvalidArgument},
      {"no page", ints, with([](auto* o) { o->page_rows_max = 0; }), ErrorKind::kInvalidArgument},
  };
  for (const Case& c : cases) {
    const auto sink = *arrow::io::BufferOutputStream::Create();
    const auto writer = FileWriter::Open(sink, c.schema, nullptr, c.options);
    ASSERT_FALSE(writer.ok()) << c.name;
    EXPECT_EQ(KindOf(writer.status()), c.kind) << c.name << ": " << writer.status();
    EXPECT_EQ(*sink->Tell(), 0) << c.name;
  }
}

TEST(WriteFile, BadRowsAreRefused) {
  const auto schema = arrow::schema({arrow::field("a", arrow::int64(), false)});
  Rng rng(1);
  const auto rows = *RandomTable(schema, 10, {}, &rng);
  const std::vector<std::vector<int64_t>> bad_ends = {{5}, {5, 5, 10}, {7, 3, 10}, {0, 10}, {11}};
  for (const auto& ends : bad_ends) {
    const auto written = Write(schema, {{rows, ends}}, {});
    ASSERT_FALSE(written.ok());
    EXPECT_TRUE(IsKind(written.status(), ErrorKind::kInvalidArgument)) << written.status();
  }
  const auto other = arrow::schema({arrow::field("b", arrow::int64())});
  const auto nullable = arrow::schema({arrow::field("a", arrow::int64())});
  const auto with_nulls = *RandomTable(nullable, 50, {.null_chance = 0.9}, &rng);
  const auto lying = arrow::Table::Make(schema, with_nulls->columns());
  for (const auto& table : {*RandomTable(other, 10, {}, &rng), lying}) {
    const auto written = Write(schema, {{table, {}}}, {});
    ASSERT_FALSE(written.ok());
    EXPECT_TRUE(IsKind(written.status(), ErrorKind::kInvalidArgument)) << written.status();
  }
}

// A sink that fails from some byte on.
class FullDisk final : public arrow::io::OutputStream {
 public:
  explicit FullDisk(int64_t bytes_max) : bytes_max_(bytes_max) {}
  Status Close() override { return Status::OK(); }
  bool closed() const override { return false; }
  Result<int64_t> Tell() const override { return written_; }
  Status Write(const void*, int64_t size_bytes) override {
    written_ += size_bytes;
    if (written_ > bytes_max_) return LimitExceeded("no space left on device");
    return Status::OK();
  }

 private:
  const int64_t bytes_max_;
  int64_t written_ = 0;
};

TEST(WriteFile, AFailingSinkGivesItsErrorAtEveryByte) {
  const auto schema = testing::EveryType();
  Rng rng(3);
  const auto rows = *RandomTable(schema, 40, {}, &rng);
  const auto size = static_cast<int64_t>(Write(schema, {{rows, {}}}, {})->bytes.size());
  for (int64_t bytes = 0; bytes < size; bytes += 1 + size / 150) {
    const auto sink = std::make_shared<FullDisk>(bytes);
    const auto status = [&]() -> Status {
      ARROW_ASSIGN_OR_RAISE(auto writer, FileWriter::Open(sink, schema, nullptr, {}));
      ARROW_RETURN_NOT_OK(writer->WriteRowGroup(*rows));
      return writer->Finish().status();
    }();
    EXPECT_TRUE(IsKind(status, ErrorKind::kLimitExceeded)) << bytes << ": " << status;
  }
}

TEST(WriteFile, SharedEndsKeepToBoundariesAndLimits) {
  Rng rng(Seed());
  const auto schema = arrow::schema({arrow::field("k", arrow::int64()),
                                     arrow::field("s", arrow::utf8()),
                                     arrow::field("l", arrow::list(arrow::utf8()))});
  for (int round = 0; round < 50; ++round) {
    const auto rows = static_cast<int64_t>(1 + rng.Below(500));
    const auto table = *RandomTable(schema, rows, {.string_bytes_max = 60}, &rng);
    const auto sliced = table->Slice(static_cast<int64_t>(
        rng.Below(static_cast<uint64_t>(std::min<int64_t>(rows, 20)))));
    WriteOptions options;
    options.page_rows_max = static_cast<int64_t>(1 + rng.Below(100));
    options.page_bytes_max = static_cast<int64_t>(1 + rng.Below(5000));
    std::vector<int64_t> boundaries;
    for (int64_t row = 0; row < sliced->num_rows() && round % 3 != 0;) {
      row = std::min(sliced->num_rows(), row + 1 + static_cast<int64_t>(rng.Below(20)));
      boundaries.push_back(row);
    }
    const auto ends = *SharedPageEnds(*sliced, boundaries, options);
    ASSERT_EQ(ends.back(), sliced->num_rows());
    int64_t begin = 0;
    for (const int64_t end : ends) {
      ASSERT_GT(end, begin);
      if (end < sliced->num_rows() && !boundaries.empty()) {
        EXPECT_TRUE(std::ranges::binary_search(boundaries, end));
      }
      // As the encoder sees it: the page alone, by size, stays whole unless it is one boundary.
      const auto first =
          boundaries.empty() ? begin + 1 : *std::ranges::upper_bound(boundaries, begin);
      const auto own = *SharedPageEnds(*sliced->Slice(begin, end - begin), {}, options);
      if (end > first) {
        EXPECT_EQ(own.size(), 1U) << begin << " to " << end;
      }
      begin = end;
    }
  }
}

TEST(CutBounds, LowerIsAtMostAndUpperIsAbove) {
  Rng rng(Seed());
  const std::string_view alphabet[] = {"a", "z", "\x7f", "\u00e9", "\u07ff", "\ud7ff", "\ue000",
                                       "\uffff", "\U0010ffff", "\xff", "\x80"};
  for (int round = 0; round < 20000; ++round) {
    std::string value;
    const uint64_t kinds = rng.Chance(0.5) ? 9 : 11;   // valid UTF-8 or not
    for (uint64_t i = rng.Below(12); i > 0; --i) value += alphabet[rng.Below(kinds)];
    const auto size = static_cast<int64_t>(1 + rng.Below(10));
    const std::string lower = LowerBound(value, size);
    EXPECT_LE(lower, value);
    EXPECT_LE(static_cast<int64_t>(lower.size()), size);
    if (static_cast<int64_t>(value.size()) <= size) continue;
    if (const auto upper = UpperBound(value, size)) {
      EXPECT_GT(*upper, value);
      EXPECT_LE(static_cast<int64_t>(upper->size()), size);
    }
  }
  EXPECT_EQ(LowerBound("abcd", 3), "abc");
  EXPECT_EQ(*UpperBound("abcd", 3), "abd");
  EXPECT_EQ(LowerBound("ab\u00e9", 3), "ab");
  EXPECT_EQ(*UpperBound("ab\u00e9", 3), "ac");
  EXPECT_EQ(*UpperBound("a\ud7ffx", 4), "a\ue000");
  EXPECT_EQ(*UpperBound("a\U0010ffffx", 5), "b");
  EXPECT_EQ(*UpperBound("a\xff\xff\xff", 3), "b");
  EXPECT_EQ(UpperBound("\xff\xff\xff", 2), std::nullopt);
}

TEST(WriteFile, LongBoundsAreCutAndMarkedInexact) {
  arrow::StringBuilder builder;
  const std::string low = "b" + std::string(200, 'x');
  const std::string high = "c" + std::string(200, 'z');
  ASSERT_TRUE(builder.AppendValues({low, high, "bz"}).ok());
  const auto schema = arrow::schema({arrow::field("s", arrow::utf8())});
  const auto table = arrow::Table::Make(schema, {*builder.Finish()});
  const auto written = *Write(schema, {{table, {1, 3}}}, {});
  const auto file = ::parquet::ParquetFileReader::Open(std::make_shared<arrow::io::BufferReader>(
      std::make_shared<arrow::Buffer>(written.bytes)));
  const auto statistics = file->metadata()->RowGroup(0)->ColumnChunk(0)->encoded_statistics();
  EXPECT_EQ(statistics->min(), low.substr(0, 64));
  EXPECT_EQ(statistics->max(), "c" + std::string(62, 'z') + "{");
  EXPECT_EQ(statistics->is_min_value_exact, false);
  EXPECT_EQ(statistics->is_max_value_exact, false);
  const auto index = std::static_pointer_cast<::parquet::ByteArrayColumnIndex>(
      file->GetPageIndexReader()->RowGroup(0)->GetColumnIndex(0));
  ASSERT_EQ(index->encoded_min_values().size(), 2U);
  EXPECT_EQ(index->encoded_min_values()[0], low.substr(0, 64));
  EXPECT_EQ(index->encoded_min_values()[1], "bz");
  EXPECT_EQ(index->encoded_max_values()[1], "c" + std::string(62, 'z') + "{");
  EXPECT_EQ(index->boundary_order(), ::parquet::BoundaryOrder::Ascending);
}

}  // namespace
}  // namespace grebe::pq

// Files that libparquet writes here, in every shape that changes how pages are found; the truth is
// every level of every chunk, read by libparquet's own column readers.
#include <arrow/api.h>
#include <arrow/io/memory.h>
#include <gtest/gtest.h>
#include <parquet/arrow/writer.h>
#include <parquet/column_reader.h>
#include <parquet/column_writer.h>
#include <parquet/file_reader.h>
#include <parquet/file_writer.h>

#include <algorithm>
#include <map>
#include <memory>
#include <random>

#include "base/rng.h"
#include "parquet/footer.h"
#include "parquet/footer_internal.h"
#include "parquet/inspect.h"
#include "parquet/page_map.h"
#include "parquet/schema_internal.h"
#include "store/memory_store.h"

namespace grebe::pq {
namespace {

struct WriteShape {
  bool v2 = false;
  bool page_index = false;
  bool dictionary = true;
  ::parquet::Compression::type codec = ::parquet::Compression::ZSTD;
  bool checksums = false;
  std::string created_by = {};
};

std::string Name(const WriteShape& shape) {
  return std::string(shape.v2 ? "v2" : "v1") + (shape.page_index ? " index" : "") +
         (shape.dictionary ? " dictionary" : "") + " codec=" + std::to_string(shape.codec);
}

std::vector<WriteShape> AllShapes() {
  std::vector<WriteShape> shapes;
  for (int i = 0; i < 8; ++i) {
    for (const auto codec : {::parquet::Compression::ZSTD, ::parquet::Compression::UNCOMPRESSED,
                             ::parquet::Compression::SNAPPY}) {
      shapes.push_back({(i & 1) != 0, (i & 2) != 0, (i & 4) != 0, codec, i == 3, ""});
    }
  }
  return shapes;
}

// id: int64; name: string with few values and nulls; tags: list<int32>, some rows very long;
// who: struct<id: int32, words: list<string>>.
std::shared_ptr<arrow::Table> MakeTable(int64_t rows, uint64_t seed) {
  Rng rng(seed);
  arrow::MemoryPool* pool = arrow::default_memory_pool();
  arrow::Int64Builder id;
  arrow::StringBuilder name;
  auto tag = std::make_shared<arrow::Int32Builder>();
  arrow::ListBuilder tags(pool, tag);
  auto who_id = std::make_shared<arrow::Int32Builder>();
  auto word = std::make_shared<arrow::StringBuilder>();
  auto words = std::make_shared<arrow::ListBuilder>(pool, word);
  auto who_type = arrow::struct_({arrow::field("id", arrow::int32()),
                                  arrow::field("words", arrow::list(arrow::utf8()))});
  arrow::StructBuilder who(who_type, pool, {who_id, words});
  for (int64_t i = 0; i < rows; ++i) {
    EXPECT_TRUE(id.Append(static_cast<int64_t>(rng.Next() >> 20)).ok());
    if (rng.Chance(0.1)) {
      EXPECT_TRUE(name.AppendNull().ok());
    } else {
      EXPECT_TRUE(name.Append("name " + std::to_string(rng.Below(50))).ok());
    }
    if (rng.Chance(0.1)) {
      EXPECT_TRUE(tags.AppendNull().ok());
    } else {
      EXPECT_TRUE(tags.Append().ok());
      const uint64_t count = rng.Chance(0.01) ? 3000 : rng.Below(4);
      for (uint64_t k = 0; k < count; ++k) {
        EXPECT_TRUE(tag->Append(static_cast<int32_t>(rng.Below(1000000))).ok());
      }
    }
    EXPECT_TRUE(who.Append().ok());
    EXPECT_TRUE(who_id->Append(static_cast<int32_t>(i)).ok());
    EXPECT_TRUE(words->Append().ok());
    for (uint64_t k = rng.Below(3); k > 0; --k) {
      EXPECT_TRUE(word->Append("word" + std::to_string(rng.Below(9))).ok());
    }
  }
  auto schema = arrow::schema({arrow::field("id", arrow::int64(), false),
                               arrow::field("name", arrow::utf8()),
                               arrow::field("tags", arrow::list(arrow::int32())),
                               arrow::field("who", who_type)});
  return arrow::Table::Make(schema, {*id.Finish(), *name.Finish(), *tags.Finish(), *who.Finish()});
}

std::shared_ptr<arrow::Buffer> Write(const arrow::Table& table, const WriteShape& shape,
                                     int64_t row_group_rows) {
  ::parquet::WriterProperties::Builder properties;
  properties.compression(shape.codec)->data_pagesize(3000)->write_batch_size(64);
  properties.data_page_version(shape.v2 ? ::parquet::ParquetDataPageVersion::V2
                                        : ::parquet::ParquetDataPageVersion::V1);
  shape.dictionary ? properties.enable_dictionary() : properties.disable_dictionary();
  shape.page_index ? properties.enable_write_page_index() : properties.disable_write_page_index();
  if (shape.checksums) properties.enable_page_checksum();
  if (!shape.created_by.empty()) properties.created_by(shape.created_by);
  auto out = *arrow::io::BufferOutputStream::Create();
  const auto status = ::parquet::arrow::WriteTable(table, arrow::default_memory_pool(), out,
                                                   row_group_rows, properties.build());
  EXPECT_TRUE(status.ok()) << status;
  return *out->Finish();
}

class FilePagesTest : public ::testing::Test {
 protected:
  std::shared_ptr<const Footer> Open(const arrow::Buffer& bytes) {
    const auto identity = store_->Put("file.parquet", std::string_view(bytes),
                                      store::PutMode::kOverwrite);
    EXPECT_TRUE(identity.ok()) << identity.status();
    auto footer = Footer::Read(*store_, std::make_shared<const store::Object>(
                                            store::Object{"file.parquet", *identity}));
    EXPECT_TRUE(footer.ok()) << footer.status();
    return footer.ok() ? *footer : nullptr;
  }
  std::shared_ptr<store::Store> store_ = store::MakeMemoryStore();
};

// All repetition levels of a chunk (zeros where the column is not repeated).
template <class Type>
std::vector<int16_t> LevelsOf(::parquet::ColumnReader& reader) {
  auto& typed = static_cast<::parquet::TypedColumnReader<Type>&>(reader);
  std::vector<int16_t> all;
  std::vector<int16_t> definition(1000), repetition(1000);
  std::vector<typename Type::c_type> values(1000);
  while (typed.HasNext()) {
    int64_t values_read = 0;
    std::ranges::fill(repetition, int16_t{0});
    const int64_t got = typed.ReadBatch(1000, definition.data(), repetition.data(), values.data(),
                                        &values_read);
    all.insert(all.end(), repetition.begin(), repetition.begin() + got);
  }
  return all;
}

std::vector<int16_t> Levels(::parquet::RowGroupReader& group, int leaf) {
  auto reader = group.Column(leaf);
  switch (reader->type()) {
    case ::parquet::Type::INT32: return LevelsOf<::parquet::Int32Type>(*reader);
    case ::parquet::Type::INT64: return LevelsOf<::parquet::Int64Type>(*reader);
    default: return LevelsOf<::parquet::ByteArrayType>(*reader);
  }
}

void CheckChunk(const std::vector<int16_t>& levels, const ChunkPages& chunk,
                const ChunkDescription& described) {
  ASSERT_EQ(chunk.info.value_count, static_cast<int64_t>(levels.size()));
  size_t value = 0;
  int64_t row = 0;
  size_t next = 0;
  for (const PageDescription& page : described.pages) {
    if (page.type == "dictionary") {
      ASSERT_EQ(chunk.info.dictionary, page.bytes);
      continue;
    }
    ASSERT_LT(next, chunk.pages.size());
    const PageLocation& found = chunk.pages[next++];
    ASSERT_EQ(found.bytes, page.bytes);
    ASSERT_EQ(found.begins_mid_row, levels[value] != 0);
    const auto begin = levels.begin() + static_cast<ptrdiff_t>(value);
    const int64_t begun = std::count(begin, begin + page.value_count, int16_t{0});
    ASSERT_EQ(found.rows, (RowRange{row, row + begun}));
    row += begun;
    value += static_cast<size_t>(page.value_count);
  }
  ASSERT_EQ(next, chunk.pages.size());
  ASSERT_EQ(value, levels.size());
}

TEST_F(FilePagesTest, EveryShapeOfFile) {
  const auto table = MakeTable(3000, 1);
  for (const WriteShape& shape : AllShapes()) {
    SCOPED_TRACE(Name(shape));
    const auto bytes = Write(*table, shape, 1100);
    const auto footer = Open(*bytes);
    ASSERT_NE(footer, nullptr);
    ASSERT_EQ(footer->row_count(), 3000);
    const auto pages = FindPages(*store_, *footer);
    ASSERT_TRUE(pages.ok()) << pages.status();
    ASSERT_TRUE(PackPageMap(*pages).ok());
    const auto described = DescribeFile(*store_, *footer, true);
    ASSERT_TRUE(described.ok()) << described.status();
    auto reader = ::parquet::ParquetFileReader::Open(
        std::make_shared<arrow::io::BufferReader>(bytes));
    for (int group = 0; group < footer->row_group_count(); ++group) {
      for (int leaf = 0; leaf < footer->schema()->leaf_count(); ++leaf) {
        SCOPED_TRACE(footer->schema()->leaf_path(leaf));
        const ChunkPages& chunk = pages->row_groups[group].chunks[leaf];
        ASSERT_NO_FATAL_FAILURE(CheckChunk(Levels(*reader->RowGroup(group), leaf), chunk,
                                           described->row_groups[group].chunks[leaf]));
      }
    }
  }
}

// Pages that begin in the middle of a row, as writers may cut v1 pages: levels are given to the
// column writer a few at a time, without regard to rows.
std::shared_ptr<arrow::Buffer> WriteMidRowPages(const std::vector<int16_t>& repetition,
                                                ::parquet::Compression::type codec) {
  using ::parquet::schema::GroupNode;
  using ::parquet::schema::PrimitiveNode;
  const auto root = GroupNode::Make(
      "schema", ::parquet::Repetition::REQUIRED,
      {PrimitiveNode::Make("values", ::parquet::Repetition::REPEATED, ::parquet::Type::INT32)});
  ::parquet::WriterProperties::Builder properties;
  properties.compression(codec)->data_pagesize(100)->disable_dictionary();
  properties.disable_write_page_index();
  auto out = *arrow::io::BufferOutputStream::Create();
  auto writer = ::parquet::ParquetFileWriter::Open(
      out, std::static_pointer_cast<GroupNode>(root), properties.build());
  auto* column = static_cast<::parquet::Int32Writer*>(writer->AppendRowGroup()->NextColumn());
  const std::vector<int16_t> definition(repetition.size(), 1);
  const std::vector<int32_t> values(repetition.size(), 7);
  for (size_t at = 0; at < repetition.size(); at += 50) {
    const auto count = static_cast<int64_t>(std::min<size_t>(50, repetition.size() - at));
    column->WriteBatch(count, definition.data(), repetition.data() + at, values.data());
  }
  writer->Close();
  return *out->Finish();
}

TEST_F(FilePagesTest, PagesThatBeginInTheMiddleOfARow) {
  Rng rng(9);
  std::vector<int16_t> repetition;
  while (repetition.size() < 5000) {
    const auto more = rng.Chance(0.1) ? 200 + rng.Below(200) : rng.Below(5);
    repetition.push_back(0);
    repetition.insert(repetition.end(), more, 1);
  }
  for (const auto codec : {::parquet::Compression::UNCOMPRESSED, ::parquet::Compression::ZSTD,
                           ::parquet::Compression::GZIP}) {
    const auto footer = Open(*WriteMidRowPages(repetition, codec));
    ASSERT_EQ(footer->row_count(), std::ranges::count(repetition, 0));
    const auto pages = FindPages(*store_, *footer);
    ASSERT_TRUE(pages.ok()) << pages.status();
    const auto described = DescribeFile(*store_, *footer, true);
    ASSERT_TRUE(described.ok()) << described.status();
    const ChunkPages& chunk = pages->row_groups[0].chunks[0];
    ASSERT_NO_FATAL_FAILURE(
        CheckChunk(repetition, chunk, described->row_groups[0].chunks[0]));
    EXPECT_GT(std::ranges::count_if(chunk.pages, &PageLocation::begins_mid_row), 10);
    EXPECT_GT(std::ranges::count_if(chunk.pages, [](auto& p) { return p.rows.empty(); }), 10);
  }
}

TEST_F(FilePagesTest, ScanGivesWhatWasWritten) {
  const auto table = MakeTable(5000, 2);
  for (const WriteShape& shape : AllShapes()) {
    SCOPED_TRACE(Name(shape));
    const auto footer = Open(*Write(*table, shape, 1700));
    ScanOptions options;
    options.batch_rows = 600;
    std::vector<std::shared_ptr<arrow::RecordBatch>> batches;
    int64_t next_row = 0;
    // Leaves of id, name and who.id, in another order than the schema's.
    const auto status = ScanColumns(*store_, *footer, {3, 0, 1}, options,
                                    [&](const auto& batch, RowIndex first_row) {
                                      EXPECT_EQ(first_row.value, next_row);
                                      next_row += batch->num_rows();
                                      batches.push_back(batch);
                                      return Status::OK();
                                    });
    ASSERT_TRUE(status.ok()) << status;
    const auto got = *(*arrow::Table::FromRecordBatches(batches))->CombineChunks();
    ASSERT_EQ(got->num_rows(), 5000);
    ASSERT_EQ(got->num_columns(), 3);
    EXPECT_TRUE(got->column(0)->Equals(table->column(0)));
    EXPECT_TRUE(got->column(1)->Equals(table->column(1)));
    const auto who = std::static_pointer_cast<arrow::StructArray>(got->column(2)->chunk(0));
    ASSERT_EQ(who->num_fields(), 1);
    EXPECT_TRUE(who->field(0)->Equals(
        std::static_pointer_cast<arrow::StructArray>(table->column(3)->chunk(0))->field(0)));
  }
}

TEST_F(FilePagesTest, ScanStops) {
  const auto footer = Open(*Write(*MakeTable(3000, 3), {}, 500));
  StopToken stop;
  ScanOptions options;
  options.stop = &stop;
  int batches = 0;
  auto status = ScanColumns(*store_, *footer, {0}, options, [&](const auto&, RowIndex) {
    ++batches;
    stop.RequestStop();
    return Status::OK();
  });
  EXPECT_TRUE(IsKind(status, ErrorKind::kCancelled)) << status;
  EXPECT_EQ(batches, 1);
  status = ScanColumns(*store_, *footer, {0}, {},
                       [&](const auto&, RowIndex) { return LimitExceeded("enough"); });
  EXPECT_TRUE(IsKind(status, ErrorKind::kLimitExceeded)) << status;
}

// Damage anywhere in a file: an error with a kind, or pages that are consistent in themselves.
TEST_F(FilePagesTest, DamagedFilesDoNoHarm) {
  const uint64_t seed = std::random_device{}();
  SCOPED_TRACE("seed=" + std::to_string(seed));
  Rng rng(seed);
  const auto table = MakeTable(400, 4);
  int refused = 0;
  for (int round = 0; round < 1200; ++round) {
    const WriteShape shape{round % 2 == 0, round % 3 == 0, round % 5 != 0};
    static std::map<std::string, std::string> written;
    auto& clean = written[Name(shape)];
    if (clean.empty()) clean = Write(*table, shape, 150)->ToString();
    std::string bytes = clean;
    for (uint64_t flips = 1 + rng.Below(3); flips > 0; --flips) {
      // Half of the damage goes to the footer, where most is decided.
      const uint64_t tail = std::min<uint64_t>(bytes.size(), 3000);
      const uint64_t at = rng.Chance(0.5) ? bytes.size() - 1 - rng.Below(tail)
                                          : rng.Below(bytes.size());
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << rng.Below(8)));
    }
    const auto identity = *store_->Put("file.parquet", bytes, store::PutMode::kOverwrite);
    const auto footer = Footer::Read(*store_, std::make_shared<const store::Object>(
                                                  store::Object{"file.parquet", identity}));
    if (!footer.ok()) {
      ASSERT_NE(footer.status().detail(), nullptr) << footer.status();
      ++refused;
      continue;
    }
    const auto pages = FindPages(*store_, **footer);
    if (!pages.ok()) {
      ASSERT_NE(pages.status().detail(), nullptr) << pages.status();
      ++refused;
      continue;
    }
    const auto packed = PackPageMap(*pages);
    ASSERT_TRUE(packed.ok()) << packed.status();
    const auto scanned = ScanColumns(*store_, **footer, {0}, {},
                                     [](const auto&, RowIndex) { return Status::OK(); });
    if (!scanned.ok()) {
      ASSERT_NE(scanned.detail(), nullptr) << scanned;
    }
  }
  EXPECT_GT(refused, 100);
}

TEST_F(FilePagesTest, OldWritersHideCompression) {
  WriteShape shape{.v2 = true};
  shape.created_by = "parquet-cpp version 1.5.0";
  const auto old_footer = Open(*Write(*MakeTable(50, 5), shape, 100));
  EXPECT_TRUE(FindPages(*store_, *old_footer)->row_groups[0].chunks[0].info.always_compressed);
  const auto new_footer = Open(*Write(*MakeTable(50, 5), {.v2 = true}, 100));
  EXPECT_FALSE(FindPages(*store_, *new_footer)->row_groups[0].chunks[0].info.always_compressed);
}

TEST_F(FilePagesTest, SchemasOfOneTableAreEqual) {
  const auto table = MakeTable(10, 6);
  const auto other = MakeTable(500, 7)->ReplaceSchemaMetadata(
      arrow::key_value_metadata({"pandas"}, {"{\"rows\": 500}"}));
  const auto a = Open(*Write(*table, {}, 100))->schema();
  WriteShape shape;
  shape.created_by = "someone else version 9";
  const auto b = Open(*Write(*other, shape, 100))->schema();
  EXPECT_EQ(a->Serialize(), b->Serialize());
  const auto opened = Schema::Open(a->Serialize());
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_EQ((*opened)->Serialize(), a->Serialize());
  EXPECT_TRUE((*opened)->arrow_schema()->Equals(*table->schema(), false))
      << (*opened)->arrow_schema()->ToString();
  // Another type, another schema.
  const auto c = Open(*Write(**table->RemoveColumn(1), {}, 100))->schema();
  EXPECT_NE(a->Serialize(), c->Serialize());
  for (size_t i = 0; i < a->Serialize().size(); i += 3) {
    const auto cut = Schema::Open(std::string_view(a->Serialize()).substr(0, i));
    ASSERT_TRUE(cut.ok() || cut.status().detail() != nullptr) << cut.status();
  }
}

std::vector<int> Leaves(const Schema& schema, std::vector<std::string> paths) {
  const auto projection = schema.Project(paths);
  EXPECT_TRUE(projection.ok()) << projection.status();
  return projection.ok() ? projection->leaves : std::vector<int>{};
}

TEST_F(FilePagesTest, PathsNameColumns) {
  // Leaves: 0 id, 1 name, 2 tags.list.element, 3 who.id, 4 who.words.list.element
  const auto schema = Open(*Write(*MakeTable(10, 8), {}, 100))->schema();
  EXPECT_EQ(Leaves(*schema, {}), (std::vector<int>{0, 1, 2, 3, 4}));
  EXPECT_EQ(Leaves(*schema, {"name", "id"}), (std::vector<int>{0, 1}));
  EXPECT_EQ(Leaves(*schema, {"who"}), (std::vector<int>{3, 4}));
  EXPECT_EQ(Leaves(*schema, {"who.words"}), (std::vector<int>{4}));
  EXPECT_EQ(Leaves(*schema, {"who.words.list.element", "tags.list.element"}),
            (std::vector<int>{2, 4}));
  const auto pruned = schema->Project(std::vector<std::string>{"who.id", "id"});
  ASSERT_TRUE(pruned.ok()) << pruned.status();
  EXPECT_TRUE(pruned->arrow_schema->Equals(
      arrow::schema({arrow::field("id", arrow::int64(), false),
                     arrow::field("who", arrow::struct_({arrow::field("id", arrow::int32())}))}),
      false)) << pruned->arrow_schema->ToString();
  for (const char* wrong : {"nothing", "who.", "who.nothing", "id.x", "", "wh", "list.element"}) {
    EXPECT_TRUE(IsKind(schema->Project(std::vector<std::string>{wrong}).status(),
                       ErrorKind::kInvalidArgument)) << wrong;
  }
  EXPECT_EQ(*schema->KeyLeaf("id"), 0);
  EXPECT_EQ(*schema->KeyLeaf("who.id"), 3);
  for (const char* wrong : {"who", "tags", "tags.list.element", "who.words", "nothing"}) {
    EXPECT_TRUE(IsKind(schema->KeyLeaf(wrong).status(), ErrorKind::kInvalidArgument)) << wrong;
  }
}

TEST_F(FilePagesTest, NamesMayHoldDotsOrBeTwice) {
  const auto column = *arrow::MakeArrayFromScalar(arrow::Int32Scalar(1), 3);
  const auto inner = *arrow::StructArray::Make({column}, std::vector<std::string>{"b"});
  const auto table = arrow::Table::Make(
      arrow::schema({arrow::field("a.b", arrow::int32()), arrow::field("a", inner->type()),
                     arrow::field("twice", arrow::int32()), arrow::field("twice", arrow::int32()),
                     arrow::field("", arrow::int32())}),
      std::vector<std::shared_ptr<arrow::Array>>{column, inner, column, column, column});
  const auto schema = Open(*Write(*table, {}, 100))->schema();
  EXPECT_EQ(Leaves(*schema, {"a.b"}), (std::vector<int>{0}));
  EXPECT_EQ(Leaves(*schema, {"a"}), (std::vector<int>{1}));
  EXPECT_EQ(Leaves(*schema, {""}), (std::vector<int>{4}));
  EXPECT_FALSE(schema->KeyLeaf("a").ok()) << "a struct of one member is a group";
  EXPECT_FALSE(schema->KeyLeaf("twice").ok());
}

}  // namespace
}  // namespace grebe::pq

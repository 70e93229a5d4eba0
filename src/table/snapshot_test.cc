#include "table/snapshot.h"

#include <arrow/scalar.h>
#include <gtest/gtest.h>

#include "store/memory_store.h"

namespace grebe::table {
namespace {

Result<Snapshot> SnapshotOf(const std::vector<std::string>& paths, const std::string& table = "t") {
  auto memory = store::MakeMemoryStore();
  for (const std::string& path : paths) {
    ARROW_RETURN_NOT_OK(memory->Put(path, "x", store::PutMode::kOverwrite).status());
  }
  return ReadSnapshot({memory, table});
}

std::vector<std::string> Paths(const Snapshot& snapshot) {
  std::vector<std::string> out;
  for (const auto& file : snapshot.files) out.push_back(file.path);
  return out;
}

TEST(SnapshotTest, TakesParquetFilesAndSkipsHiddenOnes) {
  auto snapshot = SnapshotOf({"t/b.parquet", "t/a.parq", "t/sub/c.pq", "t/_index/k/x.parquet",
                              "t/.tmp/y.parquet", "t/_SUCCESS", "t/part.crc", "t/.z.parquet",
                              "t/_p=1/d.parquet", "u/other.parquet"});
  ASSERT_TRUE(snapshot.ok()) << snapshot.status();
  EXPECT_EQ(Paths(*snapshot), (std::vector<std::string>{"_p=1/d.parquet", "a.parq", "b.parquet",
                                                        "sub/c.pq"}));
  EXPECT_EQ(snapshot->kind, "hive");
}

TEST(SnapshotTest, OneFileIsATable) {
  auto snapshot = SnapshotOf({"t/x.parquet"}, "t/x.parquet");
  ASSERT_TRUE(snapshot.ok()) << snapshot.status();
  EXPECT_EQ(snapshot->single_file, "x.parquet");
  EXPECT_EQ(snapshot->root.path, "t");
  EXPECT_EQ(snapshot->kind, "plain");
}

TEST(SnapshotTest, NothingThereIsNotFound) {
  EXPECT_TRUE(IsKind(SnapshotOf({}).status(), ErrorKind::kNotFound));
}

TEST(SnapshotTest, DeltaAndIcebergTablesAreRefused) {
  for (const char* marker : {"t/_delta_log/00000000000000000000.json",
                             "t/metadata/v1.metadata.json"}) {
    const auto snapshot = SnapshotOf({"t/a.parquet", marker});
    EXPECT_TRUE(IsKind(snapshot.status(), ErrorKind::kUnsupported)) << marker;
  }
}

TEST(SnapshotTest, IdChangesWithAnyFile) {
  auto memory = store::MakeMemoryStore();
  ASSERT_TRUE(memory->Put("t/a.parquet", "x", store::PutMode::kOverwrite).ok());
  const std::string first = ReadSnapshot({memory, "t"})->id;
  EXPECT_EQ(ReadSnapshot({memory, "t"})->id, first);
  ASSERT_TRUE(memory->Put("t/a.parquet", "x", store::PutMode::kOverwrite).ok());
  EXPECT_NE(ReadSnapshot({memory, "t"})->id, first);
}

TEST(PartitionTest, TypesAreTheNarrowestThatHoldEveryValue) {
  auto snapshot = SnapshotOf({"t/day=2026-01-01/n=7/s=a%2Fb/x.parquet",
                              "t/day=2026-01-02/n=-12/s=8/x.parquet",
                              "t/day=__HIVE_DEFAULT_PARTITION__/n=07/s=/x.parquet"});
  ASSERT_TRUE(snapshot.ok()) << snapshot.status();
  const auto& schema = *snapshot->partitions.schema;
  EXPECT_TRUE(schema.Equals(arrow::Schema({arrow::field("day", arrow::date32()),
                                           arrow::field("n", arrow::int64()),
                                           arrow::field("s", arrow::utf8())})))
      << schema.ToString();
  EXPECT_EQ((*PartitionScalar(*schema.field(2), snapshot->files[0].path))->ToString(), "a/b");
  EXPECT_EQ((*PartitionScalar(*schema.field(1), snapshot->files[1].path))->ToString(), "-12");
  EXPECT_FALSE((*PartitionScalar(*schema.field(0), snapshot->files[2].path))->is_valid);
  const auto empty = *PartitionScalar(*schema.field(2), snapshot->files[2].path);
  EXPECT_TRUE(empty->is_valid);
  EXPECT_EQ(empty->ToString(), "");
}

TEST(PartitionTest, NamesAreDecodedOnceAndMayNotRepeatInAPath) {
  const auto parts = ParsePartitions("a%3Db=x%2541/f.parquet");
  ASSERT_TRUE(parts.ok());
  ASSERT_EQ(parts->size(), 1u);
  EXPECT_EQ((*parts)[0].name, "a=b");
  EXPECT_EQ((*parts)[0].value, "x%41");
  EXPECT_TRUE(IsKind(ParsePartitions("x=1/x=2/f.parquet").status(), ErrorKind::kInvalidArgument));
}

TEST(PartitionTest, AFileWithoutThePartitionHasNull) {
  auto snapshot = SnapshotOf({"t/p=1/x.parquet", "t/y.parquet"});
  ASSERT_TRUE(snapshot.ok());
  const auto& field = *snapshot->partitions.schema->field(0);
  EXPECT_FALSE((*PartitionScalar(field, "y.parquet"))->is_valid);
}

}  // namespace
}  // namespace grebe::table

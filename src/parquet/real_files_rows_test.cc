// Rows of every Parquet file that others made: each top-level column, rows picked at random and
// all of them, against libparquet's Arrow reader on the same file.
//
// GREBE_REAL_FILES names the folder. Without it the test is skipped. A column that Grebe refuses
// although libparquet reads it is a failure, and so is any difference; a column that libparquet
// cannot read must give a typed error or rows, and never a crash.
#include <gtest/gtest.h>

#include <filesystem>
#include <iostream>
#include <map>
#include <numeric>
#include <random>

#include "grebe/error.h"
#include "parquet/row_decode_test_util.h"
#include "parquet/schema_internal.h"
#include "testing/real_files.h"

namespace grebe::pq {
namespace {

namespace fs = std::filesystem;
using testing::Subject;

// Larger files are not compared whole, only rows picked at random.
constexpr int64_t kWholeRowsMax = 20000;
constexpr int64_t kMemoryBytesMax = 1 << 30;

void CollectLeaves(const ::parquet::arrow::SchemaField& field, std::vector<int>* out) {
  if (field.is_leaf()) out->push_back(field.column_index);
  for (const auto& child : field.children) CollectLeaves(child, out);
}

int64_t ChunkBytesOf(const Subject& subject, const std::vector<int>& leaves) {
  int64_t bytes = 0;
  for (const RowGroupPages& group : subject.pages.row_groups) {
    for (const int leaf : leaves) {
      for (const PageLocation& page : group.chunks[static_cast<size_t>(leaf)].pages) {
        bytes += page.bytes.size_bytes();
      }
    }
  }
  return bytes;
}

struct Tally {
  int64_t files = 0, refused = 0, columns_equal = 0, columns_only_here = 0, columns_nowhere = 0;
  std::map<std::string, int64_t> refusals;
};

class RealFilesRows : public ::testing::Test {
 protected:
  // One column of one file.
  void CheckColumn(const Subject& subject, const std::string& bytes,
                   const ::parquet::arrow::SchemaField& field, Tally* tally) {
    Projection projection;
    CollectLeaves(field, &projection.leaves);
    if (projection.leaves.empty()) return;  // an empty group: libparquet leaves it out
    projection.arrow_schema = arrow::schema({field.field});
    arrow::ProxyMemoryPool counted(arrow::default_memory_pool());
    arrow::CappedMemoryPool pool(&counted, kMemoryBytesMax);
    DecodeOptions options;
    options.pool = &pool;
    const bool large = ChunkBytesOf(subject, projection.leaves) > (16 << 20);
    auto whole = large ? Result<std::shared_ptr<arrow::Table>>(LimitExceeded("large"))
                       : testing::ReadWhole(bytes, projection.leaves);
    const int64_t row_count =
        whole.ok() ? (*whole)->num_rows() : subject.map->row_count();
    if (whole.ok()) {
      ASSERT_EQ(row_count, subject.map->row_count());
    }
    for (int round = 0; round < 4; ++round) {
      std::vector<int64_t> rows;
      if (round == 0 && row_count <= kWholeRowsMax) {
        rows.resize(static_cast<size_t>(row_count));
        std::iota(rows.begin(), rows.end(), 0);
      } else {
        rows = testing::PickRows(row_count, round == 1 ? 1 : 30, &rng_);
      }
      auto got = testing::ReadRows(subject, projection, rows, options);
      if (!whole.ok()) {
        if (got.ok()) {
          ASSERT_TRUE((*got)->Validate().ok());
        } else {
          ASSERT_NE(KindOf(got.status()), ErrorKind::kInternal) << got.status();
        }
        if (round == 0) ++(got.ok() ? tally->columns_only_here : tally->columns_nowhere);
        if (round == 0) {
          std::cout << "  libparquet: " << whole.status().message().substr(0, 160) << "\n  here: "
                    << (got.ok() ? "rows" : got.status().ToString().substr(0, 200)) << "\n";
        }
        continue;
      }
      ASSERT_TRUE(got.ok()) << got.status() << " round " << round;
      auto expected = testing::TakeRows(**whole, rows);
      ASSERT_TRUE(expected.ok()) << expected.status();
      ASSERT_TRUE((*got)->Validate().ok()) << (*got)->Validate();
      const std::string difference = testing::Difference(**expected, **got);
      ASSERT_EQ(difference.substr(0, 2000), "") << " round " << round;
    }
    if (whole.ok()) ++tally->columns_equal;
  }

  // All columns in one batch, as libparquet orders and names them.
  void CheckAllColumns(const Subject& subject, const std::string& bytes) {
    if (subject.map->row_count() > 2000) return;
    auto projection = subject.schema->Project({});
    ASSERT_TRUE(projection.ok()) << projection.status();
    auto whole = testing::ReadWhole(bytes, projection->leaves);
    if (!whole.ok()) return;
    const std::vector<int64_t> rows = testing::PickRows((*whole)->num_rows(), 20, &rng_);
    auto got = testing::ReadRows(subject, *projection, rows);
    ASSERT_TRUE(got.ok()) << got.status();
    auto expected = testing::TakeRows(**whole, rows);
    ASSERT_TRUE(expected.ok()) << expected.status();
    ASSERT_EQ(testing::Difference(**expected, **got).substr(0, 2000), "");
  }

  void CheckFile(const fs::path& path, Tally* tally) {
    const std::string bytes = grebe::testing::ReadWholeFile(path);
    auto subject = Subject::Open(bytes);
    ++tally->files;
    if (!subject.ok()) {
      ++tally->refused;
      ++tally->refusals[std::string(KindName(KindOf(subject.status())))];
      ASSERT_NE(KindOf(subject.status()), ErrorKind::kInternal) << subject.status();
      return;
    }
    for (const auto& field : subject->schema->impl().manifest.schema_fields) {
      SCOPED_TRACE("column " + field.field->name());
      CheckColumn(*subject, bytes, field, tally);
    }
    CheckAllColumns(*subject, bytes);
  }

  Rng rng_{std::random_device()()};
};

TEST_F(RealFilesRows, EqualLibparquets) {
  const fs::path root = grebe::testing::RealFiles();
  if (!fs::is_directory(root)) {
    GTEST_SKIP() << "no real files at " << root << ": set GREBE_REAL_FILES";
  }
  Tally tally;
  for (const fs::path& path : grebe::testing::ParquetFiles(root)) {
    SCOPED_TRACE(path.string());
    const size_t before = static_cast<size_t>(tally.columns_nowhere + tally.columns_only_here);
    CheckFile(path, &tally);
    if (static_cast<size_t>(tally.columns_nowhere + tally.columns_only_here) != before) {
      std::cout << path.string() << "\n";
    }
  }
  std::cout << "files " << tally.files << ", refused " << tally.refused << ", columns equal "
            << tally.columns_equal << ", read here only " << tally.columns_only_here
            << ", read by neither " << tally.columns_nowhere << "\n";
  for (const auto& [kind, count] : tally.refusals) {
    std::cout << "refused as " << kind << ": " << count << "\n";
  }
}

}  // namespace
}  // namespace grebe::pq

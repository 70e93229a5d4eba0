// Footer, page map, schema and column scan over every Parquet file that others made: no crash, only
// typed errors, the rows that pyarrow reads, page by page consistent.
//
// GREBE_REAL_FILES names the folder; beside it lies real-files-inventory.tsv, with what pyarrow 26
// says of each file. Without the folder the test is skipped.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <sstream>

#include "parquet/footer.h"
#include "parquet/page_map.h"
#include "store/local_store.h"
#include "testing/real_files.h"

namespace grebe::pq {
namespace {

namespace fs = std::filesystem;

struct Known {
  std::string read;  // "ok", or how pyarrow failed
  std::string rows;
};

std::map<std::string, Known> ReadInventory(const fs::path& root) {
  std::map<std::string, Known> known;
  std::ifstream in(root.parent_path() / "real-files-inventory.tsv");
  std::string line;
  while (std::getline(in, line)) {
    std::istringstream fields(line);
    std::string path;
    Known file;
    std::getline(fields, path, '\t');
    std::getline(fields, file.read, '\t');
    std::getline(fields, file.rows, '\t');
    known[path] = file;
  }
  return known;
}

// Every page of the map is where the description has it, and every row is found in its pages.
void CheckMap(const FilePages& pages, const PageMap& map) {
  ASSERT_EQ(map.row_group_count(), static_cast<int>(pages.row_groups.size()));
  for (int group = 0; group < map.row_group_count(); ++group) {
    const RowGroupPages& expected = pages.row_groups[group];
    ASSERT_EQ(map.row_group_rows(group).row_count(), expected.row_count);
    for (int leaf = 0; leaf < map.leaf_count(); ++leaf) {
      const ChunkPages& chunk = expected.chunks[leaf];
      const ChunkInfo info = map.chunk(group, leaf);
      ASSERT_EQ(info.page_count, static_cast<int>(chunk.pages.size()));
      ASSERT_EQ(info.value_count, chunk.info.value_count);
      ASSERT_EQ(info.dictionary, chunk.info.dictionary);
      int64_t row = 0;
      for (int i = 0; i < info.page_count; ++i) {
        const auto page = map.page(group, leaf, i);
        ASSERT_TRUE(page.ok()) << page.status();
        ASSERT_EQ(page->bytes, chunk.pages[i].bytes);
        ASSERT_EQ(page->rows, chunk.pages[i].rows);
        ASSERT_EQ(page->begins_mid_row, chunk.pages[i].begins_mid_row);
        ASSERT_EQ(page->rows.begin, row);
        row = page->rows.end;
        if (page->rows.empty()) continue;
        const auto span = map.FindPages(group, leaf, {page->rows.begin, page->rows.begin + 1});
        ASSERT_TRUE(span.ok()) << span.status();
        ASSERT_EQ(span->first, i);
      }
      ASSERT_EQ(row, expected.row_count);
    }
  }
}

// The first step that fails ends it.
Status ReadFile(store::Store& store, const std::string& path, int64_t* rows) {
  ARROW_ASSIGN_OR_RAISE(auto object, store.Stat(path));
  ARROW_ASSIGN_OR_RAISE(
      auto footer, Footer::Read(store, std::make_shared<const store::Object>(object)));
  ARROW_ASSIGN_OR_RAISE(auto schema, Schema::Open(footer->schema()->Serialize()));
  EXPECT_TRUE(schema->arrow_schema()->Equals(footer->schema()->arrow_schema(), true));
  EXPECT_EQ(schema->Serialize(), footer->schema()->Serialize());
  ARROW_ASSIGN_OR_RAISE(auto pages, FindPages(store, *footer));
  ARROW_ASSIGN_OR_RAISE(auto packed, PackPageMap(pages));
  ARROW_ASSIGN_OR_RAISE(auto map, PageMap::Open(arrow::Buffer::FromString(packed)));
  EXPECT_EQ(map->row_count(), footer->row_count());
  CheckMap(pages, *map);
  *rows = footer->row_count();
  return Status::OK();
}

// Scans every column that can be a key, alone. Gives the first failure.
Status ScanFile(store::Store& store, const std::string& path) {
  ARROW_ASSIGN_OR_RAISE(auto object, store.Stat(path));
  ARROW_ASSIGN_OR_RAISE(
      auto footer, Footer::Read(store, std::make_shared<const store::Object>(object)));
  for (int leaf = 0; leaf < footer->schema()->leaf_count(); ++leaf) {
    if (footer->schema()->leaf_is_repeated(leaf)) continue;
    int64_t rows = 0;
    ScanOptions options;
    options.batch_rows = 1000;
    ARROW_RETURN_NOT_OK(ScanColumns(
        store, *footer, {leaf}, options,
        [&](const std::shared_ptr<arrow::RecordBatch>& batch, RowIndex first_row) {
          EXPECT_EQ(first_row.value, rows);
          EXPECT_EQ(batch->num_columns(), 1);
          EXPECT_LE(batch->num_rows(), 1000);
          rows += batch->num_rows();
          return batch->Validate();
        }));
    EXPECT_EQ(rows, footer->row_count());
  }
  return Status::OK();
}

TEST(RealFilesPages, ScanEveryKeyColumn) {
  const fs::path root = testing::RealFiles();
  if (!fs::is_directory(root)) GTEST_SKIP() << "no real files: set GREBE_REAL_FILES";
  const auto known = ReadInventory(root);
  auto store = store::MakeLocalStore();
  int scanned = 0;
  for (const fs::path& path : testing::ParquetFiles(fs::absolute(root))) {
    const std::string name = fs::relative(path, root).string();
    SCOPED_TRACE(name);
    const Status status = ScanFile(*store, path.string());
    if (status.ok()) {
      ++scanned;
      continue;
    }
    EXPECT_NE(status.detail(), nullptr) << "an error without a kind: " << status;
    const auto at = known.find(name);
    // pyarrow does not verify checksums unless told to.
    if (at != known.end() && name.find("corrupt-checksum") == std::string::npos) {
      EXPECT_NE(at->second.read, "ok") << status;
    }
    if (std::getenv("GREBE_VERBOSE") != nullptr) std::cout << name << '\t' << status << '\n';
  }
  std::cout << scanned << " files scanned\n";
}

TEST(RealFilesPages, EveryFile) {
  const fs::path root = testing::RealFiles();
  if (!fs::is_directory(root)) GTEST_SKIP() << "no real files: set GREBE_REAL_FILES";
  const auto known = ReadInventory(root);
  auto store = store::MakeLocalStore();
  int agreed = 0;
  std::map<std::string, int> refused;
  const bool verbose = std::getenv("GREBE_VERBOSE") != nullptr;
  for (const fs::path& path : testing::ParquetFiles(fs::absolute(root))) {
    const std::string name = fs::relative(path, root).string();
    const auto at = known.find(name);
    const Known expected = at == known.end() ? Known{"unknown", ""} : at->second;
    SCOPED_TRACE(name);
    int64_t rows = -1;
    const Status status = ReadFile(*store, path.string(), &rows);
    if (!status.ok()) {
      EXPECT_NE(status.detail(), nullptr) << "an error without a kind: " << status;
      EXPECT_NE(expected.read, "ok") << status;
      ++refused[std::string(KindName(KindOf(status)))];
      if (verbose) {
        std::cout << (expected.read == "ok" ? "REFUSED" : "refused") << '\t' << name << '\t'
                  << expected.read << '\t' << KindName(KindOf(status)) << '\t' << status.message()
                  << '\n';
      }
      continue;
    }
    if (expected.read == "unknown") continue;
    // "rows 6!=0": what pyarrow read, and what the footer claims.
    const std::string expected_rows =
        expected.read.starts_with("rows ")
            ? expected.read.substr(5, expected.read.find("!=") - 5)
            : expected.rows;
    EXPECT_EQ(std::to_string(rows), expected_rows);
    ++agreed;
  }
  std::cout << agreed << " files agree\n";
  for (const auto& [kind, count] : refused) std::cout << count << " refused: " << kind << '\n';
}

}  // namespace
}  // namespace grebe::pq

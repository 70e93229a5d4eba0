// Every Parquet file that others made, written again by FileWriter: libparquet must read the same
// rows, types, field ids and key-values from the new file as from the old one.
//
// GREBE_REAL_FILES names the folder. Without it the test is skipped. Files that libparquet cannot
// read are passed over; a file that it reads and FileWriter refuses is a failure, unless as
// Unsupported.
#include <arrow/io/memory.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <iostream>
#include <random>

#include "parquet/row_decode_test_util.h"
#include "parquet/write_file.h"
#include "testing/real_files.h"

namespace grebe::pq {
namespace {

namespace fs = std::filesystem;
using testing::Subject;

constexpr uintmax_t kFileBytesMax = 24 << 20;
constexpr int64_t kMemoryBytesMax = 512 << 20;

std::vector<int> AllLeaves(const Schema& schema) {
  std::vector<int> leaves;
  for (int i = 0; i < schema.leaf_count(); ++i) leaves.push_back(i);
  return leaves;
}

// Field ids, depth first. (The child of a list is named `element` in the new file, as the format
// demands, whatever it was before.)
std::vector<std::string> Ids(const arrow::FieldVector& fields) {
  std::vector<std::string> ids;
  for (const auto& field : fields) {
    const auto id = field->metadata() != nullptr ? field->metadata()->Get("PARQUET:field_id")
                                                 : Result<std::string>("");
    ids.push_back(id.ok() ? *id : "");
    for (std::string& inner : Ids(field->type()->fields())) ids.push_back(std::move(inner));
  }
  return ids;
}

struct Tally {
  int64_t files = 0, unreadable = 0, unsupported = 0, equal = 0;
};

class WriteRealFiles : public ::testing::Test {
 protected:
  Result<std::string> Rewrite(const arrow::Table& table, WrittenFile* file) {
    WriteOptions options;
    options.page_rows_max = 1 + static_cast<int64_t>(rng_.Below(500));
    options.dictionary = static_cast<DictionaryPolicy>(rng_.Below(3));
    ARROW_ASSIGN_OR_RAISE(auto sink, arrow::io::BufferOutputStream::Create());
    ARROW_ASSIGN_OR_RAISE(auto writer,
                          FileWriter::Open(sink, table.schema(), nullptr, options));
    const auto group = static_cast<int64_t>(1 + rng_.Below(20000));
    for (int64_t row = 0; row < table.num_rows(); row += group) {
      const auto rows = table.Slice(row, group);
      std::vector<int64_t> ends;
      if (rng_.Chance(0.5)) {
        ARROW_ASSIGN_OR_RAISE(ends, SharedPageEnds(*rows, {}, options));
      }
      ARROW_RETURN_NOT_OK(writer->WriteRowGroup(*rows, ends));
    }
    ARROW_ASSIGN_OR_RAISE(*file, writer->Finish());
    ARROW_ASSIGN_OR_RAISE(auto buffer, sink->Finish());
    return buffer->ToString();
  }

  void CheckFile(const fs::path& path, Tally* tally) {
    const std::string bytes = grebe::testing::ReadWholeFile(path);
    ++tally->files;
    const auto subject = Subject::Open(bytes);
    if (!subject.ok()) {
      ++tally->unreadable;
      return;
    }
    const auto table = testing::ReadWhole(bytes, AllLeaves(*subject->schema));
    if (!table.ok() || !(*table)->ValidateFull().ok() || (*table)->num_columns() == 0) {
      ++tally->unreadable;
      return;
    }
    WrittenFile file;
    const auto written = Rewrite(**table, &file);
    if (!written.ok() && IsKind(written.status(), ErrorKind::kUnsupported)) {
      ++tally->unsupported;
      std::cout << path.string() << ": " << written.status().message().substr(0, 160) << "\n";
      return;
    }
    ASSERT_TRUE(written.ok()) << written.status();
    const auto got = testing::ReadWhole(*written, AllLeaves(*file.schema));
    ASSERT_TRUE(got.ok()) << got.status();
    const auto expected_rows = (*table)->CombineChunksToBatch();
    if (!expected_rows.ok()) return;   // more than one array holds
    ASSERT_EQ(testing::Difference(**expected_rows, **(*got)->CombineChunksToBatch())
                  .substr(0, 2000), "");
    const auto& before = (*table)->schema();
    const auto& after = (*got)->schema();
    ASSERT_EQ(Ids(before->fields()), Ids(after->fields()));
    ASSERT_EQ(before->metadata() == nullptr || before->metadata()->size() == 0,
              after->metadata() == nullptr);
    if (after->metadata() != nullptr) {
      ASSERT_TRUE(after->metadata()->Equals(*before->metadata()));
    }
    ++tally->equal;
  }

  Rng rng_{std::random_device()()};
};

TEST_F(WriteRealFiles, AreTheSameRowsAgain) {
  const fs::path root = grebe::testing::RealFiles();
  if (!fs::is_directory(root)) {
    GTEST_SKIP() << "no real files at " << root << ": set GREBE_REAL_FILES";
  }
  Tally tally;
  for (const fs::path& path : grebe::testing::ParquetFiles(root, kFileBytesMax)) {
    SCOPED_TRACE(path.string());
    CheckFile(path, &tally);
  }
  std::cout << "files " << tally.files << ", read by libparquet and written equal " << tally.equal
            << ", of a type that is not written " << tally.unsupported << ", not read "
            << tally.unreadable << "\n";
  EXPECT_LE(arrow::default_memory_pool()->bytes_allocated(), kMemoryBytesMax);
}

}  // namespace
}  // namespace grebe::pq

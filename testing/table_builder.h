// Small Parquet tables for tests, written into any store, and their rows for brute-force answers.
#pragma once

#include <arrow/record_batch.h>
#include <arrow/table.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "store/store.h"

namespace grebe::testing {

struct FileOptions {
  int64_t row_group_rows = 1 << 20;
  int64_t page_bytes = 4096;
  bool page_index = true;
  bool dictionary = true;
  bool page_v2 = false;
  bool checksums = false;
};

// The rows as the bytes of a Parquet file (zstd).
Result<std::string> ParquetBytes(const arrow::Table& rows, const FileOptions& options = {});

// Play events: user_id int64, ts int64, title utf8, note utf8 (a third null), score double, tags
// list<utf8>. Users are drawn from [0, users) by the seed.
std::shared_ptr<arrow::Table> PlayEvents(int64_t rows, int64_t users, uint64_t seed);

// Writes file_count files of PlayEvents as <folder>/part-<i>.parquet; returns their rows.
Result<std::vector<std::shared_ptr<arrow::Table>>> WritePlayTable(
    store::Store& store, const std::string& folder, int file_count, int64_t rows_per_file,
    int64_t users, uint64_t seed, const FileOptions& options = {});

// All rows of tables whose int64 column holds the value, in order.
std::shared_ptr<arrow::Table> RowsWhere(const std::vector<std::shared_ptr<arrow::Table>>& tables,
                                        const std::string& column, int64_t value);

}  // namespace grebe::testing

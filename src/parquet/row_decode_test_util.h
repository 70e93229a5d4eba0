// For the tests and benchmarks of row decoding: random tables, files made of them, and rows read
// both ways (by Grebe from a page map, and by libparquet's Arrow reader as the oracle).
#pragma once

#include <arrow/api.h>
#include <parquet/arrow/reader.h>
#include <parquet/properties.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/rng.h"
#include "base/status.h"
#include "parquet/row_decode.h"
#include "store/store.h"

namespace grebe::pq::testing {

// How random values are made.
struct RandomOptions {
  double null_chance = 0.2;
  int64_t distinct = 0;         // 0: no limit; else values repeat
  int64_t list_length_max = 4;
  int64_t string_bytes_max = 24;
};

// Every type that a Parquet file written by Arrow can hold, flat and nested.
std::shared_ptr<arrow::Schema> EveryType();
Result<std::shared_ptr<arrow::Table>> RandomTable(const std::shared_ptr<arrow::Schema>& schema,
                                                  int64_t rows, const RandomOptions& options,
                                                  Rng* rng);

struct FileOptions {
  ::parquet::WriterProperties::Builder properties;
  int64_t row_group_rows = 1 << 20;
  bool int96 = false;
};
Result<std::string> WriteFile(const arrow::Table& table, FileOptions* options);

// A file in a memory store, opened as a lookup opens it.
struct Subject {
  std::shared_ptr<store::Store> store;
  std::shared_ptr<const store::Object> object;
  std::shared_ptr<const Footer> footer;
  std::shared_ptr<const Schema> schema;
  std::shared_ptr<const PageMap> map;
  FilePages pages;

  static Result<Subject> Open(std::string bytes, const ReadLimits& limits = {});
};

// What a read cost.
struct ReadCount {
  int64_t pages = 0;
  int64_t dictionaries = 0;
};

// The rows (of the file; ascending, distinct) of the columns, as a lookup gives them.
Result<std::shared_ptr<arrow::RecordBatch>> ReadRows(const Subject& subject,
                                                     const Projection& projection,
                                                     std::span<const int64_t> rows,
                                                     const DecodeOptions& options = {},
                                                     ReadCount* count = nullptr);

// The whole file, or some of its leaves, by libparquet's Arrow reader.
Result<std::shared_ptr<arrow::Table>> ReadWhole(const std::string& bytes,
                                                const std::vector<int>& leaves);

// The rows of a table.
Result<std::shared_ptr<arrow::RecordBatch>> TakeRows(const arrow::Table& table,
                                                     std::span<const int64_t> rows);

// Empty when equal (NaN equals NaN; dictionaries compare by value); else what differs.
std::string Difference(const arrow::RecordBatch& expected, const arrow::RecordBatch& got);

// `count` distinct rows below `row_count`, ascending.
std::vector<int64_t> PickRows(int64_t row_count, int64_t count, Rng* rng);

}  // namespace grebe::pq::testing

// Looking rows up by key: exactly the rows of the indexed snapshot that hold the key, or a typed
// error; never a wrong, missing or torn row.
//
// Cost of a Get with the index local or cached: ONE wave of range reads for just the pages the
// rows lie in, however many keys, files and columns. Errors: Stale (a data file changed or
// vanished since it was indexed), Corrupt, Transient, Permission, InvalidArgument.
// Threads: an Index may be used by many threads at once.
#pragma once

#include <arrow/record_batch.h>
#include <arrow/result.h>
#include <arrow/type.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "grebe/explain.h"
#include "grebe/index.h"

namespace grebe {

// Affects performance only. Budgets in bytes; 0: no such cache; -1: a share of the machine's
// memory (given beside each), or 256 MiB when that is more. Memory is taken as it is needed.
struct CacheOptions {
  int64_t block_bytes_max = -1;         // 1/16: index blocks and page maps of remote indexes
  // 1/8: decompressed dictionary pages. On files as pyarrow or Spark write them by default they
  // are most of a lookup's cost: raise it when explain records show dictionary_pages.
  int64_t dictionary_bytes_max = -1;
  int64_t page_bytes_max = -1;          // 1/16: decompressed data pages
};

struct OpenOptions {
  // Key columns that lookups will use: picks the index when ref.name is empty.
  std::vector<std::string> key;
  // The lookups are ranges: a sorted index will do whose first key columns those are.
  bool ranges = false;
  CacheOptions cache;
  // Where no index has exactly these key columns (and ref.name is empty): look keys up by scanning
  // the files' statistics, Bloom filters and pages. The same answers, in more waves and bytes, and
  // of the table as it is now.
  bool scan_without_index = false;
};

struct GetOptions {
  std::vector<std::string> columns;   // dotted paths; empty: all. Order as given
  int64_t offset = 0;                 // rows of each key to skip; order: by file, then row
  int64_t limit = -1;                 // rows of each key to return; negative: all
  bool coalesce = true;               // bridge gaps that cost less than a request
  bool verify_crc = true;             // check page CRCs where pages have one
};

struct GetResult {
  // The rows of key 0, then of key 1, ...: one batch.
  std::shared_ptr<arrow::RecordBatch> rows;
  std::vector<int64_t> row_counts;    // per key, in the order asked
  Explain explain;
};

// A stretch of keys in order: the first key columns equal to values, then, maybe, bounds of the
// next one. Nulls are below every value, and NaN above every number, but neither is within bounds.
struct KeyRange {
  // One row, columns named as the first key columns; null: none. A null equals nulls.
  std::shared_ptr<arrow::RecordBatch> equal;
  // One row, the column after those; null: no bound on that side. A bound need not be a value that
  // the key can have (ts < 7.5 of whole seconds).
  std::shared_ptr<arrow::RecordBatch> lower, upper;
  bool lower_inclusive = true, upper_inclusive = false;
};

enum class Comparison { kEqual, kLess, kLessOrEqual, kGreater, kGreaterOrEqual };

struct KeyCondition {
  std::string column;
  Comparison comparison = Comparison::kEqual;
  std::string value;
};

struct CountResult {
  std::vector<int64_t> counts;        // per key, in the order asked
  Explain explain;
};

class Index {
 public:
  // Opens the newest version. Cost: one or two waves for the manifest, one for the fragments'
  // heads when they are remote. Errors: NotFound when there is no such index.
  static arrow::Result<std::shared_ptr<Index>> Open(const IndexRef& ref,
                                                    const OpenOptions& options = {});
  virtual ~Index() = default;

  virtual const IndexDescription& description() const = 0;
  // True: there is no index, lookups scan.
  virtual bool scans() const { return false; }
  // One field per key column: what keys are made of.
  virtual const std::shared_ptr<arrow::Schema>& key_schema() const = 0;
  // Every column a Get can return: the files' columns, then the partition columns.
  virtual arrow::Result<std::shared_ptr<arrow::Schema>> row_schema() = 0;

  // keys: one row per key; columns named as the key columns (any order), of any type that compares
  // with them. A null is a key like any other. Absent keys have row count 0.
  virtual arrow::Result<GetResult> Get(const arrow::RecordBatch& keys,
                                       const GetOptions& options = {}) = 0;
  // The number of rows of each key, from the index alone; keys of more than 64 bits (strings,
  // composite keys) are compared in their key columns' pages, in one wave.
  virtual arrow::Result<CountResult> Count(const arrow::RecordBatch& keys) = 0;

  // The rows of a range of keys, in key order, then by file and row; offset and limit count rows of
  // the whole range. Only of indexes created with `sorted`. Cost with the index local: ONE wave for
  // the pages of the rows returned; with the index remote, one wave more for fences and one for
  // the blocks of the range (several when they exceed 16 MiB). row_counts has one number. Errors:
  // as Get; InvalidArgument when the index is not sorted.
  virtual arrow::Result<GetResult> GetRange(const KeyRange& range,
                                            const GetOptions& options = {}) = 0;
  // The number of rows of a range, from the index alone; counts has one number.
  virtual arrow::Result<CountResult> CountRange(const KeyRange& range) = 0;

  // A range given as text: ("user_id", =, "42"), ("ts", >=, "2026-01-01"). Errors: InvalidArgument
  // for conditions that are no stretch of the key order, with what would be one.
  arrow::Result<KeyRange> ParseRange(const std::vector<KeyCondition>& conditions,
                                     const std::vector<std::string>& null_columns = {}) const;
  // One key given as text: ("user_id", "42"), ... ; see docs/reference/cli.md for the forms.
  arrow::Result<std::shared_ptr<arrow::RecordBatch>> ParseKey(
      const std::vector<std::pair<std::string, std::string>>& columns,
      const std::vector<std::string>& null_columns = {}) const;
  // The columns that the first key of such a text names: to open an index by.
  static arrow::Result<std::vector<std::string>> KeyColumnsIn(const std::string& text);
  // Many keys: JSON lines ({"user_id": 42}) or CSV with a header.
  arrow::Result<std::shared_ptr<arrow::RecordBatch>> ParseKeys(const std::string& text) const;
};

}  // namespace grebe

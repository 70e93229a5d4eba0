// Range queries on any columns, without an index: the rows that a predicate wants, reading as
// little as the files' own statistics, Bloom filters and page indexes allow.
//
//   ARROW_ASSIGN_OR_RAISE(auto scan, Scan::Open({"lake/plays"}, {.where = "score >= 4.5"}));
//   while (true) {
//     ARROW_ASSIGN_OR_RAISE(auto batch, scan->Next());
//     if (batch == nullptr) break;
//     ...
//   }
//
// What can be left out is left out without ever losing a row: bounds that are missing, shortened,
// contradictory, or in an unknown order are no reason to skip anything. docs/guide/scan.md tells
// the language of predicates and how nulls and NaN compare.
#pragma once

#include <arrow/record_batch.h>
#include <arrow/result.h>
#include <arrow/type.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "grebe/index.h"
#include "grebe/stop.h"

namespace grebe {

// What a scan read, and how much of the table that was.
struct ScanExplain {
  int64_t files_total = 0;         // data files of the table
  int64_t files_read = 0;          // files whose data was read
  int64_t row_groups_total = 0;    // of the files that partition values do not rule out
  int64_t row_groups_read = 0;
  int64_t pages_total = 0;         // data pages of the needed columns in row groups not ruled out
  int64_t pages_read = 0;
  int64_t bytes_read = 0;          // footers, filters, indexes, pages, and bridged gaps
  int64_t rows = 0;                // of the answer
  // Waves: groups of reads issued together, none waiting for another.
  int64_t waves = 0;
  int64_t requests = 0;            // range reads, after coalescing
  int64_t gap_bytes = 0;           // read only because bridging a gap was cheaper
  int64_t dictionary_pages = 0;
  int64_t footers_read = 0;
  int64_t bloom_filters_read = 0;
  int64_t rows_filtered = 0;       // rows whose filter columns were read and compared
  int64_t cache_hits = 0;          // pages and dictionaries needed twice and read once
  struct StageUs {
    int64_t open = 0;              // listing the table, finding what its indexes keep
    int64_t plan = 0;              // footers, statistics, Bloom filters, page indexes
    int64_t fetch = 0;
    int64_t decode = 0;            // filtering too
    int64_t total = 0;
  } stage_us;

  // One JSON object, in the order above.
  std::string ToJson() const;
  // A few aligned lines for people.
  std::string ToText() const;
};

struct ScanOptions {
  std::string where;                  // a predicate; empty: every row
  std::vector<std::string> columns;   // dotted paths; empty: all. Order as given
  int64_t offset = 0;                 // rows to skip; order: by file, then row
  int64_t limit = -1;                 // rows to return; negative: all. Stops reading early
  // Leave out files that cannot be read instead of failing. Rows that were given before the damage
  // was met stay given.
  bool skip_bad_files = false;
  bool coalesce = true;               // bridge gaps that cost less than a request
  bool verify_crc = true;             // check page CRCs where pages have one
  // Compressed bytes of pages held at once. Raise it when requests are slow beside bandwidth.
  int64_t window_bytes_max = 32 << 20;
  const StopToken* stop = nullptr;
};

class Scan {
 public:
  // Lists the table and rules out files and row groups. ref.name is ignored: statistics that any
  // index of the table keeps are used, so that files they speak of cost no request here. Errors:
  // NotFound, InvalidArgument (the predicate, with the position in its text; columns), Corrupt,
  // Unsupported, Stale, Transient, Permission; the message names the file.
  static arrow::Result<std::unique_ptr<Scan>> Open(const IndexRef& ref,
                                                   const ScanOptions& options = {});
  virtual ~Scan() = default;

  virtual const std::shared_ptr<arrow::Schema>& schema() const = 0;
  // The next rows, never an empty batch; null at the end. A batch has rows of one file.
  virtual arrow::Result<std::shared_ptr<arrow::RecordBatch>> Next() = 0;
  // So far.
  virtual ScanExplain explain() const = 0;
  virtual const std::vector<SkippedFile>& skipped() const = 0;
};

}  // namespace grebe

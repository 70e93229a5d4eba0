// Reading the rows of a table that a predicate wants, and as little else as its files allow to
// leave out: the path without an index.
//
//   partition values -> statistics of files and row groups -> Bloom filters -> page index
//     -> the filter columns' pages -> the other columns' pages, of the wanted rows only
//
// Each step is one wave for all files that are looked at together; what needs no reading
// (statistics that an index keeps, a page index within a footer's last bytes) costs none. Nothing
// is left out but what surely cannot match. Rows come in file order, then row order, batch by
// batch: memory holds the row groups under way, never the answer.
// Threads: one caller at a time; works on several itself.
#pragma once

#include <arrow/record_batch.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/stop.h"
#include "scan/predicate.h"
#include "scan/scan_file.h"
#include "table/snapshot.h"

namespace grebe::scan {

// What a scan read, and what it left out.
struct ScanCost {
  int64_t waves = 0, requests = 0, bytes_read = 0, gap_bytes = 0;
  int64_t files_total = 0;
  int64_t files_read = 0;          // whose data pages were read
  int64_t row_groups_total = 0;    // of the files whose footers or statistics were looked at
  int64_t row_groups_read = 0;
  int64_t pages_total = 0;         // data pages of the needed columns, in row groups not left out
  int64_t pages_read = 0;
  int64_t dictionary_pages = 0;
  int64_t footers_read = 0;
  int64_t bloom_filters_read = 0;
  int64_t rows_filtered = 0;       // rows whose filter columns were decoded
  int64_t rows = 0;                // of the answer
  int64_t cache_hits = 0;
  struct StageUs {
    int64_t plan = 0;              // footers, statistics, Bloom filters, page indexes
    int64_t fetch = 0;
    int64_t decode = 0;            // filtering too
    int64_t total = 0;
  } stage_us;
};

// The filter: named columns, and what makes a predicate of them once their types are known.
struct Filter {
  std::vector<std::string> columns;
  std::function<Result<std::shared_ptr<const BoundPredicate>>(std::vector<PredicateColumn>)> bind;
  // What decides of each row, in place of the predicate, which then only prunes: it may hold for
  // more rows, never for fewer. rows: of `columns`, by path; adds the runs of wanted rows, by
  // position. Called from several threads. Not set: the predicate itself.
  std::function<Status(const arrow::RecordBatch& rows, std::vector<RowRange>* wanted)> judge;
};
Filter FilterOf(Predicate predicate);

// Whether a file of this layout ("grebe.layout") may hold rows that the predicate wants.
using LayoutJudge = std::function<bool(const std::string& layout, const BoundPredicate&)>;

struct ScannerOptions {
  std::vector<std::string> columns;      // dotted paths; empty: all
  std::optional<Filter> filter;          // nullopt: every row
  int64_t offset = 0;
  int64_t limit = -1;                    // negative: all
  bool skip_bad_files = false;
  bool keep_filter_rows = false;         // for Scanner::filter_rows
  bool coalesce = true;
  bool verify_crc = true;
  // Which means of leaving out are used: all, unless one is to be measured.
  bool use_statistics = true, use_bloom_filters = true, use_page_index = true;
  // Compressed bytes of pages held at once. Raise it when requests are slow beside bandwidth.
  int64_t window_bytes_max = 32 << 20;
  const StopToken* stop = nullptr;
  // What an index keeps of a file; null: nothing.
  std::function<const KnownFile*(const store::Object&)> known;
  LayoutJudge may_match_layout;
};

class Scanner {
 public:
  // Prunes files and row groups. Cost: one wave for the footers that no index keeps (two where some
  // are larger than 64 KiB). Errors: InvalidArgument (columns, types), Corrupt, Unsupported, Stale,
  // the store's; the message names the file.
  static Result<std::unique_ptr<Scanner>> Open(table::Snapshot snapshot, ScannerOptions options);
  virtual ~Scanner() = default;

  virtual const std::shared_ptr<arrow::Schema>& schema() const = 0;
  // The next rows, never an empty batch; null at the end. Cost: at most one wave each for Bloom
  // filters and page indexes, filter columns and other columns, per window of row groups.
  virtual Result<std::shared_ptr<arrow::RecordBatch>> Next() = 0;
  // The filter's columns, by path, of the rows last given. REQUIRES: keep_filter_rows, and a filter
  // that judges.
  virtual const std::shared_ptr<arrow::RecordBatch>& filter_rows() const = 0;
  virtual ScanCost cost() const = 0;

  struct BadFile {
    std::string path, reason;
  };
  // Left out by skip_bad_files. Rows given before the damage was met stay given.
  virtual const std::vector<BadFile>& bad_files() const = 0;
};

}  // namespace grebe::scan

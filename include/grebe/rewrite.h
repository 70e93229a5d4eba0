// Rewriting a table's rows in another layout, into another folder, so that queries read few bytes.
//
// The table itself is never touched. The new folder is built under hidden names and gets its final
// ones when all of it is there (on stores without renaming: as each file is finished, while the
// folder `_grebe_rewrite` says that more will come). A rewrite that was killed is taken up again by
// the same call, file by file, or removed together with its folder. Rows that the layout does not
// order keep the order of the source (by path, then row).
//
// Errors: InvalidArgument (options that do not fit the table or each other; a folder that holds
// something else), NotFound, Corrupt, Unsupported, Transient, Permission, LimitExceeded (a full
// disk; the folder stays resumable), Conflict, Cancelled. Threads: safe; one rewrite per folder.
#pragma once

#include <arrow/result.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "grebe/index.h"

namespace grebe {

// How rows lie. Text: "sort(a,b)", "zorder(a,b)", "hilbert(a,b)", "bucket(16,k)", or "tree(LOG)",
// where LOG is the path or URI of a query log, or of the _grebe_layout.json that an earlier rewrite
// by tree left.
// "zorder(a,b:2)": b parts the rows into four slices at most (2 bits), a into as many as they ask
// for. Names with commas, colons, spaces or parentheses stand in "double quotes"; dots lead into
// structs.
struct RewriteLayout {
  std::string by;
  // Within the buckets of bucket(n,k) or a tree's leaves: a sort or a curve. Default: sort(k); of a
  // tree Z-order through its columns, four at most, or what its file says.
  std::string then;
  // Curves: "rank" gives each column's values equal shares of the curve, learnt from a sample;
  // "raw" takes their bytes as they are, as Iceberg's zorder does.
  std::string mode = "rank";
  // "keep": every Hive partition is laid out by itself and keeps its folder. "none": all together,
  // partition columns become columns of the files. Else what the new folders are made of, as in
  // "month(day)" or "region,year(day)": partition columns, or their years, months or days; the
  // other partition columns become columns of the files.
  std::string partitions = "keep";
  // A column: its rows become one, the other columns a list of structs named `rows`, ordered within
  // by cogroup_order (default: the source's order).
  std::string cogroup;
  std::string cogroup_order;
  // A list-of-structs column to be taken apart again into rows. A row whose list is empty or null
  // would be lost: InvalidArgument names it.
  std::string ungroup;
};

// What files are made of. 0 or empty: as the preset has it.
struct RewriteSizes {
  // "analytics": large row groups and pages. "serving": small aligned pages and row groups, no
  // dictionaries on columns of many values. docs/guide/layout.md has what each costs the other.
  std::string preset = "analytics";
  int64_t target_file_bytes = 0;     // about; from the source's bytes a row
  int64_t target_file_rows = 0;      // in place of target_file_bytes
  int64_t row_group_rows = 0;
  int64_t page_bytes = 0;            // before compression
  // "aligned": all columns' pages end at the same rows, where a key ends if possible. "per-key":
  // one page a key. "free": each column by its own size.
  std::string pages;
  std::vector<std::string> bloom;    // columns that get Bloom filters
};

struct RewriteRun {
  // Of the process, at least 128 MiB; beyond it rows spill to disk. With little of it there are
  // fewer threads than asked for: one for every 16 MiB beyond 96.
  int64_t memory_bytes_max = int64_t{1} << 30;
  std::string spill_folder;                      // default: the system's temporary folder
  int threads = 0;                               // 0: one per core
  // Leave out files that cannot be read instead of failing; they are listed in the summary.
  bool skip_bad_files = false;
  bool dry_run = false;                          // say what would be done, write nothing
  const StopToken* stop = nullptr;
  ProgressCallback progress;                     // bytes count once when read, once when written
};

struct RewriteRequest {
  std::string table_uri;
  std::string to_uri;
  // Only these files, by their paths in the table, in groups that are laid out each by itself: what
  // a plan names (ParsePlanFiles). Empty: all files of the table. The new files' names differ from
  // those of any other rewrite, so that they can take the places of the old ones.
  std::vector<std::vector<std::string>> file_groups;
  ConnectOptions connect;
  RewriteLayout layout;
  RewriteSizes sizes;
  RewriteRun run;
  // An index of the new files, written in the same pass: its key columns, which the files must
  // have (partition columns that keep their folders are not in them). Empty: none.
  std::vector<std::string> index_key;
  std::string index_name;            // default: the key columns joined by '+'
};

// The files that a text names: a plan of grebe layout plan as JSON, with its groups, or one path a
// line. Errors: InvalidArgument (neither; no files).
arrow::Result<std::vector<std::vector<std::string>>> ParsePlanFiles(const std::string& text);

// A dry run estimates what it does not know: files_out, rows_out (of a cogroup), bytes_out,
// spilled_bytes and memory_bytes, from rows that it lays out and encodes in memory. It writes
// nothing. bytes_out is exact when these are all rows; of a larger table it may be too high where
// neighbours resemble each other more than those of a sample do.
struct RewriteSummary {
  bool dry_run = false;
  int64_t files_in = 0, files_out = 0;
  int64_t files_resumed = 0;         // of files_out: an earlier run had written them
  int64_t rows_in = 0, rows_out = 0;
  int64_t bytes_in = 0, bytes_out = 0;
  int64_t row_bytes_memory = 0;      // of a row, decoded
  int64_t partitions = 0;            // that were sorted one by one
  int64_t spilled_bytes = 0;
  int64_t memory_bytes = 0;          // the most that rows took at once in this process
  std::string index;                 // name of the index written
  std::vector<SkippedFile> skipped;
  std::string ToJson() const;
};

arrow::Result<RewriteSummary> RewriteTable(const RewriteRequest& request);

}  // namespace grebe

// grebe scan
#include <iostream>

#include "cli/command.h"
#include "cli/number_option.h"
#include "grebe/scan.h"

namespace grebe::cli {
namespace {

struct ScanFlags {
  std::string columns;
  ScanOptions options;
  bool no_coalesce = false;
  bool no_crc = false;
  bool explain = false;
};

arrow::Status WriteBatches(Scan* scan, RowFormat format, arrow::io::OutputStream* sink) {
  ARROW_ASSIGN_OR_RAISE(auto writer, RowWriter::Make(scan->schema(), format, sink));
  while (true) {
    ARROW_ASSIGN_OR_RAISE(auto batch, scan->Next());
    if (batch == nullptr) return writer->Finish();
    ARROW_RETURN_NOT_OK(writer->Write(*batch));
  }
}

arrow::Status RunScan(const Common& common, const ScanFlags& flags) {
  ScanOptions options = flags.options;
  ARROW_ASSIGN_OR_RAISE(options.columns, SplitColumns(flags.columns));
  options.coalesce = !flags.no_coalesce;
  options.verify_crc = !flags.no_crc;
  options.stop = &Interrupt();
  ARROW_ASSIGN_OR_RAISE(auto scan, Scan::Open(common.ref, options));
  const bool only_explain = flags.explain && common.format == "json";
  if (only_explain) {
    while (true) {
      ARROW_ASSIGN_OR_RAISE(auto batch, scan->Next());
      if (batch == nullptr) break;
    }
    ARROW_RETURN_NOT_OK(WriteOutput(common, scan->explain().ToJson() + "\n"));
  } else {
    ARROW_ASSIGN_OR_RAISE(const RowFormat format, ChooseFormat(common));
    ARROW_RETURN_NOT_OK(WriteOutput(common, [&](arrow::io::OutputStream* sink) {
      return WriteBatches(scan.get(), format, sink);
    }));
    if (flags.explain) std::cerr << scan->explain().ToText();
  }
  for (const SkippedFile& file : scan->skipped()) {
    std::cerr << "grebe: skipped " << file.path << ": " << file.reason << "\n";
  }
  return arrow::Status::OK();
}

}  // namespace

void AddScanCommand(CLI::App* app, Common* common) {
  static ScanFlags flags;
  CLI::App* scan = app->add_subcommand("scan", "The rows that a predicate wants, without an index");
  AddTableOptions(scan, common);
  scan->add_option("--where", flags.options.where,
                   "A predicate, as in \"a >= 5 AND day IN ('2026-01-01')\" (default: every row)");
  scan->add_option("--columns", flags.columns, "Columns to return, as in a,b.c (default: all)");
  scan->add_option("--limit", flags.options.limit, "Most rows to return")
      ->check(AtLeast(0));
  scan->add_option("--offset", flags.options.offset, "Rows to skip")
      ->check(AtLeast(0));
  AddSkipFlag(scan, &flags.options.skip_bad_files);
  scan->add_flag("--no-coalesce", flags.no_coalesce, "One request a page: no gaps are bridged");
  scan->add_flag("--no-crc", flags.no_crc, "Do not check page checksums");
  scan->add_flag("--explain", flags.explain,
                 "The cost record: on stderr, or with --format json on stdout in place of rows");
  AddOutputOptions(scan, common);
  OnCommand(scan, common, [=] { return RunScan(*common, flags); });
}

}  // namespace grebe::cli

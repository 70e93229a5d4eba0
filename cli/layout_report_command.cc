// grebe layout report
#include "cli/layout_command.h"
#include "cli/number_option.h"
#include "grebe/layout.h"

namespace grebe::cli {
namespace {

// They live as long as the app.
struct ReportFlags {
  LayoutTable table;
  LayoutReportOptions options;
  std::string columns, queries, html, compare;
  bool no_pages = false;
};

arrow::Status RunReport(const Common& common, const ReportFlags& flags) {
  LayoutReportOptions options = flags.options;
  ARROW_ASSIGN_OR_RAISE(options.columns, SplitColumns(flags.columns));
  options.pages = !flags.no_pages;
  if (!flags.queries.empty()) {
    ARROW_ASSIGN_OR_RAISE(options.queries, ReadInput(flags.queries));
  }
  LayoutTable table = LayoutTableOf(common, flags.table);
  ARROW_ASSIGN_OR_RAISE(const LayoutReport report, ReportLayout(table, options));
  if (flags.html.empty()) {
    if (!flags.compare.empty()) return arrow::Status::Invalid("--compare needs --html");
    return WriteLayoutAnswer(common, report);
  }
  std::string page;
  if (flags.compare.empty()) {
    page = LayoutReportHtml(report, nullptr);
  } else {
    table.table_uri = flags.compare;
    // The same columns for both, even where they were chosen by what was found.
    if (options.columns.empty()) {
      for (const std::string& column : {report.x_column, report.y_column}) {
        if (!column.empty()) options.columns.push_back(column);
      }
    }
    ARROW_ASSIGN_OR_RAISE(const LayoutReport after, ReportLayout(table, options));
    page = LayoutReportHtml(report, &after);
  }
  Common html = common;
  html.output_path = flags.html;
  ARROW_RETURN_NOT_OK(WriteOutput(html, page));
  return WriteLayoutAnswer(common, report);
}

}  // namespace

void AddLayoutReportCommands(CLI::App* layout, Common* common) {
  static ReportFlags flags;
  CLI::App* report = layout->add_subcommand(
      "report", "How deep a table's files lie, and what queries read of it");
  AddLayoutTableOptions(report, common);
  report->add_option("--columns", flags.columns,
                     "Columns to measure, as in a,b.c (default: those of the queries, or all)");
  AddQueriesOption(report, &flags.queries);
  report->add_option("--sample", flags.options.sample_rows,
                     "Estimate the rows that queries want from about so many (default: count)")
      ->check(AtLeast(0));
  report->add_flag("--no-pages", flags.no_pages, "Do not read page indexes");
  report->add_option("--html", flags.html, "Write a page with pictures to this file");
  report->add_option("--compare", flags.compare, "With --html: another table, shown as after");
  AddSkipFlag(report, &flags.table.skip_bad_files);
  AddTextOrJson(report, common);
  OnCommand(report, common, [=] { return RunReport(*common, flags); });
}

}  // namespace grebe::cli

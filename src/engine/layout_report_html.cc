// A layout report as one page: no script, nothing fetched, readable light and dark.
#include <algorithm>
#include <iomanip>
#include <sstream>

#include "engine/html_text.h"
#include "engine/layout_picture.h"
#include "engine/layout_table.h"
#include "grebe/layout.h"

namespace grebe {
namespace {

using engine::BytesText;
using engine::CountText;
using engine::HtmlText;
using Reports = std::vector<const LayoutReport*>;

constexpr size_t kQueriesMax = 200;
constexpr size_t kNamesMax = 50;

constexpr const char* kStyle = R"css(
:root { color-scheme: light dark;
  --paper: #fbfbf9; --ink: #1d2320; --soft: #5c6660; --line: #d5dad6; --panel: #ffffff;
  --first: #2f6fb3; --second: #c2570c; --least: #1b7f4d; }
@media (prefers-color-scheme: dark) { :root {
  --paper: #161a18; --ink: #e8ece9; --soft: #a3ada7; --line: #39413c; --panel: #1e2421;
  --first: #7db4ee; --second: #f0a05a; --least: #62c993; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 1080px; padding: 28px 20px 60px; background: var(--paper);
  color: var(--ink); font: 16px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.5rem; margin: 0; overflow-wrap: anywhere; }
h2 { font-size: 1.1rem; margin: 2.2em 0 .5em; }
p { margin: .3em 0; max-width: 75ch; } .note, caption { color: var(--soft); font-size: .875rem; }
.tiles { display: flex; flex-wrap: wrap; gap: 12px; margin-top: 18px; }
.tile { background: var(--panel); border: 1px solid var(--line); border-radius: 8px;
  padding: 10px 16px; min-width: 150px; flex: 1; }
.tile b { display: block; font-size: 1.3rem; line-height: 1.25;
  font-variant-numeric: tabular-nums; }
.tile span { color: var(--soft); font-size: .875rem; }
.pair { display: flex; flex-wrap: wrap; gap: 16px; }
figure { margin: 0; flex: 1 1 380px; max-width: 520px; background: var(--panel);
  border: 1px solid var(--line); border-radius: 8px; padding: 10px; }
figure.wide { max-width: 700px; }
figcaption { font-weight: 600; margin: 0 2px 4px; }
svg { display: block; width: 100%; height: auto; }
svg text { font: 12px system-ui, sans-serif; fill: var(--soft); unicode-bidi: isolate; }
svg .end { text-anchor: end; }
svg .name { fill: var(--ink); }
.frame { fill: none; stroke: var(--line); }
.s0 { fill: var(--first); stroke: var(--first); }
.s1 { fill: var(--second); stroke: var(--second); }
.box { stroke-opacity: .55; stroke-width: .8; } .bar { stroke: none; }
.unknown { stroke-dasharray: 4 3; }
.curve { fill: none; stroke: var(--ink); stroke-opacity: .45; stroke-width: 1; }
.key { display: inline-block; width: .8em; height: .8em; border-radius: 2px; margin: 0 .35em 0 0; }
.key.s0 { background: var(--first); } .key.s1 { background: var(--second); }
.key.least { background: var(--least); }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: .9rem; width: 100%; }
caption { text-align: left; padding: 4px 0; }
th, td { text-align: left; padding: 5px 10px 5px 0; border-bottom: 1px solid var(--line);
  vertical-align: top; }
th { font-weight: 600; } td.n, th.n { text-align: right; font-variant-numeric: tabular-nums;
  white-space: nowrap; }
code, bdi { font-family: ui-monospace, monospace; font-size: .875em; overflow-wrap: anywhere; }
.meter { position: relative; width: 170px; height: 12px; background: var(--line);
  border-radius: 2px; margin-top: 6px; }
.meter i { position: absolute; left: 0; top: 0; bottom: 0; border-radius: 2px; min-width: 1px; }
.meter i.s0 { background: var(--first); } .meter i.s1 { background: var(--second); }
.meter i.least { background: var(--least); top: -3px; bottom: -3px; width: 3px; left: auto; }
)css";

std::string Fixed(double value, int digits) {
  std::ostringstream out;
  out << std::fixed << std::setprecision(digits) << value;
  return out.str();
}

std::string Whole(int64_t value) { return CountText(static_cast<double>(value)); }

// The figures that the picture is about: jointly where there are two columns.
const ColumnDepth* Pictured(const LayoutReport& report) {
  return report.columns.empty() ? nullptr : &report.columns.back();
}

// Sums over the queries, by weight.
struct QuerySums {
  double weight = 0, files = 0, files_fewest = 0, bytes = 0, bytes_fewest = 0, page_bytes = 0;
  explicit QuerySums(const LayoutReport& report) {
    for (const LayoutQuery& query : report.queries) {
      weight += query.weight;
      files += query.weight * static_cast<double>(query.files.read);
      files_fewest += query.weight * static_cast<double>(query.files.fewest);
      bytes += query.weight * static_cast<double>(query.files.bytes_read);
      bytes_fewest += query.weight * static_cast<double>(query.files.bytes_fewest);
      page_bytes += query.weight * static_cast<double>(query.pages.bytes_read);
    }
  }
};

void Tile(const std::string& value, const std::string& what, std::ostream& out) {
  out << "<div class=\"tile\"><b>" << value << "</b><span>" << what << "</span></div>\n";
}

// "8.3" of one report, "8.3 -> 1.2" of two.
template <class Value>
std::string BothOf(const Reports& reports, const Value& value) {
  std::string text;
  for (const LayoutReport* report : reports) {
    text += (text.empty() ? "" : " &#8594; ") + value(*report);
  }
  return text;
}

void PrintTiles(const Reports& reports, std::ostream& out) {
  out << "<div class=\"tiles\">\n";
  Tile(BothOf(reports, [](const LayoutReport& r) { return Whole(r.files); }),
       "files, " + BothOf(reports, [](const LayoutReport& r) {
         return BytesText(static_cast<double>(r.bytes));
       }), out);
  const ColumnDepth* const pictured = Pictured(*reports[0]);
  if (pictured != nullptr && pictured->files.counted) {
    const std::string of = pictured->columns.size() > 1 ? "the columns together"
                                                        : HtmlText(pictured->columns[0]);
    Tile(BothOf(reports, [](const LayoutReport& r) {
           const ColumnDepth* const depth = Pictured(r);
           return depth == nullptr ? "?" : Fixed(depth->files.average_depth, 1);
         }), "average depth in " + of + " (1 is best)", out);
    Tile(BothOf(reports, [](const LayoutReport& r) {
           const ColumnDepth* const depth = Pictured(r);
           return depth == nullptr ? "?" : Whole(depth->files.max_depth);
         }), "greatest depth", out);
  }
  if (!reports[0]->queries.empty()) {
    Tile(BothOf(reports, [](const LayoutReport& r) {
           const QuerySums sums(r);
           return Fixed(sums.files / sums.weight, 1);
         }), "files a query reads, on average", out);
    Tile(BothOf(reports, [](const LayoutReport& r) {
           const QuerySums sums(r);
           return sums.bytes_fewest <= 0 ? "?" : Fixed(sums.bytes / sums.bytes_fewest, 1) + "x";
         }), "bytes of those files over the fewest that could do", out);
  }
  out << "</div>\n";
}

std::string NameOf(const Reports& reports, size_t index) {
  return reports.size() == 1 ? "Files" : index == 0 ? "Before" : "After";
}

void PrintPictures(const Reports& reports, std::ostream& out) {
  if (reports[0]->boxes.empty()) return;
  const LayoutReport& first = *reports[0];
  out << "<h2>Where the files lie</h2>\n<p>Each box is a file: the range of its values in <bdi>"
      << HtmlText(first.x_column) << "</bdi>"
      << (first.y_column.empty() ? std::string(", one file above the other")
                                 : " and <bdi>" + HtmlText(first.y_column) + "</bdi>")
      << ". A query must read every box that its range touches, so small boxes side by side are "
         "good, and strongly coloured places, where many lie over each other, bad. The line goes "
         "through the files in their order."
      << "</p>\n<div class=\"pair\">\n";
  const engine::PlacedBoxes placed = engine::PlaceBoxes(reports);
  for (size_t r = 0; r < reports.size(); ++r) {
    const std::string name = NameOf(reports, r);
    out << "<figure><figcaption><span class=\"key s" << r << "\"></span>" << name << ": "
        << Whole(reports[r]->files) << " files</figcaption>\n"
        << engine::BoxesSvg(placed, r, name) << "</figure>\n";
  }
  out << "</div>\n";
}

void PrintHistogram(const Reports& reports, std::ostream& out) {
  const ColumnDepth* const pictured = Pictured(*reports[0]);
  if (pictured == nullptr || !pictured->files.counted) return;
  std::string columns;
  for (const std::string& column : pictured->columns) {
    columns += (columns.empty() ? "<bdi>" : ", <bdi>") + HtmlText(column) + "</bdi>";
  }
  out << "<h2>Depth of the files</h2>\n<p>The depth of a file is the most files, itself among "
         "them, that share one place in it, here in "
      << columns << (pictured->columns.size() > 1 ? " jointly" : "")
      << ". A query for that place reads them all.</p>\n<figure class=\"wide\"><figcaption>";
  std::vector<engine::NamedHistogram> histograms;
  for (size_t r = 0; r < reports.size(); ++r) {
    const ColumnDepth* const depth = Pictured(*reports[r]);
    if (depth == nullptr) continue;
    histograms.push_back({NameOf(reports, r), depth->files.histogram});
    out << "<span class=\"key s" << r << "\"></span>" << NameOf(reports, r) << " ";
  }
  out << "</figcaption>\n" << engine::HistogramSvg(histograms, "Files by depth") << "</figure>\n";
}

void PrintMeter(const LayoutReads& reads, size_t index, std::ostream& out) {
  const double total = static_cast<double>(std::max<int64_t>(1, reads.bytes_total));
  const double part = 100 * static_cast<double>(reads.bytes_read) / total;
  const double least = 100 * static_cast<double>(reads.bytes_fewest) / total;
  out << "<div class=\"meter\" aria-hidden=\"true\"><i class=\"s" << index << "\" style=\"width:"
      << Fixed(part, 2) << "%\"></i><i class=\"least\" style=\"left:calc("
      << Fixed(std::min(100.0, least), 2) << "% - 1px)\"></i></div>";
}

void PrintQueryRow(const Reports& reports, size_t q, std::ostream& out) {
  const LayoutQuery& query = reports[0]->queries[q];
  out << "<tr><td><code>" << HtmlText(query.predicate) << "</code></td><td class=\"n\">"
      << CountText(query.weight) << "</td><td class=\"n\">" << (query.estimated ? "about " : "")
      << Whole(query.rows) << "</td>";
  for (size_t r = 0; r < reports.size(); ++r) {
    const LayoutQuery& own = reports[r]->queries[q];
    out << "<td>" << Whole(own.files.read) << " of " << Whole(own.files.total) << " files, fewest "
        << Whole(own.files.fewest) << "<br>" << BytesText(static_cast<double>(own.files.bytes_read))
        << ", fewest " << BytesText(static_cast<double>(own.files.bytes_fewest));
    PrintMeter(own.files, r, out);
    out << "</td><td>" << Whole(own.pages.read) << " of " << Whole(own.pages.total)
        << " pages, fewest " << Whole(own.pages.fewest) << "<br>"
        << BytesText(static_cast<double>(own.pages.bytes_read)) << ", fewest "
        << BytesText(static_cast<double>(own.pages.bytes_fewest));
    PrintMeter(own.pages, r, out);
    out << "</td>";
  }
  out << "</tr>\n";
}

void PrintQueries(const Reports& reports, std::ostream& out) {
  const auto& queries = reports[0]->queries;
  if (queries.empty()) return;
  out << "<h2>What the queries read</h2>\n<p>A bar is the share of the table's bytes that a query "
         "reads; the <span class=\"key least\"></span>mark is the least that files, or pages, of "
         "these sizes allow.</p>\n<div class=\"scroll\"><table><thead><tr><th>predicate</th>"
         "<th class=\"n\">asked</th><th class=\"n\">rows wanted</th>";
  for (size_t r = 0; r < reports.size(); ++r) {
    const std::string when = reports.size() == 1 ? "" : r == 0 ? " before" : " after";
    out << "<th>files" << when << "</th><th>pages" << when << "</th>";
  }
  out << "</tr></thead><tbody>\n";
  for (size_t q = 0; q < std::min(queries.size(), kQueriesMax); ++q) {
    PrintQueryRow(reports, q, out);
  }
  out << "</tbody></table></div>\n";
  if (queries.size() > kQueriesMax) {
    out << "<p class=\"note\">The first " << kQueriesMax << " of "
        << Whole(static_cast<int64_t>(queries.size())) << " predicates; the figures above are of "
        << "all.</p>\n";
  }
}

void PrintDepthRow(const std::string& columns, const char* level, const DepthFigures& figures,
                   std::ostream& out) {
  out << "<tr><td>" << columns << "</td><td>" << level << "</td><td class=\"n\">"
      << Whole(figures.pieces) << "</td>";
  if (figures.counted) {
    out << "<td class=\"n\">" << Fixed(figures.average_depth, 2) << "</td><td class=\"n\">"
        << Whole(figures.max_depth) << "</td><td class=\"n\">"
        << Fixed(figures.average_overlaps, 2) << "</td>";
  } else {
    out << "<td colspan=\"3\">too many overlap to be counted</td>";
  }
  out << "<td class=\"n\">" << Whole(figures.constant) << "</td><td class=\"n\">"
      << Whole(figures.unknown) << "</td><td class=\"n\">" << Whole(figures.without_values)
      << "</td></tr>\n";
}

void PrintDepthTable(const LayoutReport& report, const std::string& name, std::ostream& out) {
  out << "<div class=\"scroll\"><table><caption>" << name
      << "</caption><thead><tr><th>column</th><th>level</th><th class=\"n\">pieces</th>"
         "<th class=\"n\">average depth</th><th class=\"n\">greatest</th>"
         "<th class=\"n\">average overlaps</th><th class=\"n\">one value</th>"
         "<th class=\"n\">no bounds</th><th class=\"n\">only nulls</th></tr></thead><tbody>\n";
  for (const ColumnDepth& depth : report.columns) {
    std::string columns;
    for (const std::string& column : depth.columns) {
      columns += (columns.empty() ? "<bdi>" : ", <bdi>") + HtmlText(column) + "</bdi>";
    }
    if (depth.columns.size() > 1) columns += " jointly";
    PrintDepthRow(columns, "files", depth.files, out);
    PrintDepthRow(columns, "row groups", depth.row_groups, out);
    if (depth.pages.pieces > 0) PrintDepthRow(columns, "pages", depth.pages, out);
  }
  out << "</tbody></table></div>\n";
}

void PrintNames(const std::string& what, const std::vector<std::string>& names,
                std::ostream& out) {
  if (names.empty()) return;
  out << "<p>" << what << " (" << names.size() << "): ";
  for (size_t i = 0; i < std::min(names.size(), kNamesMax); ++i) {
    out << (i == 0 ? "" : ", ") << "<bdi>" << HtmlText(names[i]) << "</bdi>";
  }
  out << (names.size() > kNamesMax ? " and more</p>\n" : "</p>\n");
}

void PrintRemarks(const Reports& reports, std::ostream& out) {
  for (const LayoutReport* report : reports) {
    for (const ColumnDepth& depth : report->columns) {
      if (depth.columns.size() > 1) continue;
      const std::string column = "<bdi>" + HtmlText(depth.columns[0]) + "</bdi>";
      PrintNames("Files without bounds of " + column + ", taken to cover everything",
                 depth.files_without_bounds, out);
      PrintNames("Files whose bounds of " + column + " may be shortened",
                 depth.files_with_shortened_bounds, out);
    }
    std::vector<std::string> skipped;
    for (const SkippedFile& file : report->skipped) {
      skipped.push_back(file.path + ": " + file.reason);
    }
    PrintNames("Files that could not be read", skipped, out);
  }
}

}  // namespace

std::string LayoutReportHtml(const LayoutReport& report, const LayoutReport* after) {
  Reports reports = {&report};
  if (after != nullptr) reports.push_back(after);
  std::ostringstream out;
  out << "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
         "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
         "'unsafe-inline'\">\n"
         "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>Layout "
         "of "
      << HtmlText(report.table) << "</title>\n<style>" << kStyle << "</style>\n</head>\n<body>\n"
      << "<h1>Layout of <bdi>" << HtmlText(report.table) << "</bdi></h1>\n";
  if (after != nullptr) {
    out << "<p>before, and after in <bdi>" << HtmlText(after->table) << "</bdi></p>\n";
  }
  out << "<p class=\"note\">" << Whole(report.rows) << " rows</p>\n";
  PrintTiles(reports, out);
  PrintPictures(reports, out);
  PrintHistogram(reports, out);
  PrintQueries(reports, out);
  out << "<h2>Depth by column and level</h2>\n";
  for (size_t r = 0; r < reports.size(); ++r) {
    PrintDepthTable(*reports[r], reports.size() == 1 ? "" : NameOf(reports, r), out);
  }
  PrintRemarks(reports, out);
  out << "</body>\n</html>\n";
  return out.str();
}

}  // namespace grebe

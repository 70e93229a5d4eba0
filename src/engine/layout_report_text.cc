// A layout report as text for people and as JSON.
#include <algorithm>
#include <iomanip>
#include <nlohmann/json.hpp>
#include <sstream>

#include "engine/layout_table.h"
#include "grebe/layout.h"

namespace grebe {
namespace {

using Json = nlohmann::ordered_json;
using engine::BytesText;
using engine::CountText;

constexpr size_t kNamesMax = 10;

Json DepthJson(const DepthFigures& figures) {
  Json histogram = Json::object();
  for (const auto& [depth, pieces] : figures.histogram) histogram[std::to_string(depth)] = pieces;
  Json json = {{"pieces", figures.pieces},
               {"average_depth", figures.average_depth},
               {"max_depth", figures.max_depth},
               {"average_overlaps", figures.average_overlaps},
               {"constant", figures.constant},
               {"unknown", figures.unknown},
               {"without_values", figures.without_values},
               {"histogram", std::move(histogram)}};
  if (!figures.counted) json["counted"] = false;
  return json;
}

Json ReadsJson(const LayoutReads& reads) {
  return {{"total", reads.total},
          {"read", reads.read},
          {"fewest", reads.fewest},
          {"bytes_total", reads.bytes_total},
          {"bytes_read", reads.bytes_read},
          {"bytes_fewest", reads.bytes_fewest}};
}

Json SkippedJson(const std::vector<SkippedFile>& skipped) {
  Json out = Json::array();
  for (const auto& file : skipped) out.push_back({{"path", file.path}, {"reason", file.reason}});
  return out;
}

std::string JoinNames(const std::vector<std::string>& names) {
  std::string joined;
  for (const std::string& name : names) joined += (joined.empty() ? "" : ", ") + name;
  return joined;
}

void PrintDepth(const char* level, const DepthFigures& figures, std::ostream& out) {
  out << "  " << std::left << std::setw(11) << level << std::right << std::setw(9)
      << CountText(static_cast<double>(figures.pieces));
  if (!figures.counted) {
    out << "  too many overlap to be counted\n";
    return;
  }
  out << std::fixed << std::setprecision(2) << std::setw(12) << figures.average_depth
      << std::setw(8) << figures.max_depth << std::setw(13) << figures.average_overlaps
      << std::setw(10) << figures.constant << std::setw(9) << figures.unknown << std::setw(11)
      << figures.without_values << "\n";
}

void PrintHistogram(const DepthFigures& figures, std::ostream& out) {
  out << "  files by depth:";
  size_t shown = 0;
  for (const auto& [depth, pieces] : figures.histogram) {
    if (++shown > 12) {
      out << " ..";
      break;
    }
    out << "  " << depth << ": " << pieces;
  }
  out << "\n";
}

void PrintNames(const std::string& what, const std::vector<std::string>& names,
                std::ostream& out) {
  if (names.empty()) return;
  out << "  " << names.size() << " " << what << ": ";
  for (size_t i = 0; i < std::min(names.size(), kNamesMax); ++i) {
    out << (i == 0 ? "" : ", ") << names[i];
  }
  out << (names.size() > kNamesMax ? ", ..\n" : "\n");
}

// "12 of 160 (fewest 3)".
std::string ReadsText(const LayoutReads& reads) {
  return CountText(static_cast<double>(reads.read)) + " of " +
         CountText(static_cast<double>(reads.total)) + " (fewest " +
         CountText(static_cast<double>(reads.fewest)) + ")";
}

std::string OverText(double read, double fewest) {
  if (fewest <= 0) return read <= 0 ? "as few as can be" : "no row is wanted";
  std::ostringstream out;
  out << std::fixed << std::setprecision(1) << read / fewest << "x";
  return out.str();
}

void PrintQueries(const std::vector<LayoutQuery>& queries, std::ostream& out) {
  double weight = 0, read[3] = {}, fewest[3] = {};
  for (const LayoutQuery& query : queries) {
    out << "\n" << query.predicate;
    if (query.weight != 1) out << "   (asked " << CountText(query.weight) << " times)";
    out << "\n  wants " << (query.estimated ? "about " : "")
        << CountText(static_cast<double>(query.rows)) << " rows\n";
    const LayoutReads* const levels[] = {&query.files, &query.row_groups, &query.pages};
    const char* const names[] = {"files", "row groups", "pages"};
    for (int i = 0; i < 3; ++i) {
      const LayoutReads& reads = *levels[i];
      out << "  " << std::left << std::setw(11) << names[i] << std::right << ReadsText(reads)
          << ", " << BytesText(static_cast<double>(reads.bytes_read)) << " of "
          << BytesText(static_cast<double>(reads.bytes_total)) << ": "
          << OverText(static_cast<double>(reads.bytes_read),
                      static_cast<double>(reads.bytes_fewest))
          << "\n";
      read[i] += query.weight * static_cast<double>(reads.bytes_read);
      fewest[i] += query.weight * static_cast<double>(reads.bytes_fewest);
    }
    weight += query.weight;
  }
  out << "\nall queries, by how often they are asked: " << BytesText(read[0] / weight)
      << " a query in files, " << BytesText(read[1] / weight) << " in row groups, "
      << BytesText(read[2] / weight) << " in pages; over the fewest bytes "
      << OverText(read[0], fewest[0]) << ", " << OverText(read[1], fewest[1]) << ", "
      << OverText(read[2], fewest[2]) << "\n";
}

}  // namespace

std::string LayoutReport::ToJson() const {
  Json json = {{"table", table}, {"files", files}, {"row_groups", row_groups},
               {"rows", rows},   {"bytes", bytes}};
  json["columns"] = Json::array();
  for (const ColumnDepth& column : columns) {
    json["columns"].push_back({{"columns", column.columns},
                               {"files", DepthJson(column.files)},
                               {"row_groups", DepthJson(column.row_groups)},
                               {"pages", DepthJson(column.pages)},
                               {"files_without_bounds", column.files_without_bounds},
                               {"files_with_shortened_bounds",
                                column.files_with_shortened_bounds}});
  }
  json["queries"] = Json::array();
  for (const LayoutQuery& query : queries) {
    json["queries"].push_back({{"predicate", query.predicate},
                               {"weight", query.weight},
                               {"rows", query.rows},
                               {"estimated", query.estimated},
                               {"files", ReadsJson(query.files)},
                               {"row_groups", ReadsJson(query.row_groups)},
                               {"pages", ReadsJson(query.pages)}});
  }
  json["skipped"] = SkippedJson(skipped);
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string LayoutReport::ToText() const {
  std::ostringstream out;
  out << table << "\n"
      << CountText(static_cast<double>(rows)) << " rows in "
      << CountText(static_cast<double>(files)) << " files, "
      << CountText(static_cast<double>(row_groups)) << " row groups, "
      << BytesText(static_cast<double>(bytes)) << "\n";
  for (const ColumnDepth& column : columns) {
    out << "\n"
        << JoinNames(column.columns) << (column.columns.size() > 1 ? ", jointly" : "")
        << "\n                pieces   avg depth     max  avg overlap  constant  unknown"
        << "  no values\n";
    PrintDepth("files", column.files, out);
    PrintDepth("row groups", column.row_groups, out);
    PrintDepth("pages", column.pages, out);
    if (column.files.counted) PrintHistogram(column.files, out);
    PrintNames("files without bounds, taken to cover everything", column.files_without_bounds,
               out);
    PrintNames("files whose bounds may be shortened", column.files_with_shortened_bounds, out);
  }
  if (!queries.empty()) PrintQueries(queries, out);
  for (const SkippedFile& file : skipped) {
    out << "skipped " << file.path << ": " << file.reason << "\n";
  }
  return out.str();
}

}  // namespace grebe

// Advice on a table's layout from a query log, with warnings and a ready command.
#include <algorithm>
#include <iomanip>
#include <nlohmann/json.hpp>
#include <sstream>

#include "engine/layout_table.h"
#include "grebe/layout.h"
#include "layout/advisor.h"

namespace grebe {
namespace {

using Json = nlohmann::ordered_json;
using engine::BytesText;
using engine::CountText;
using layout::TableView;

constexpr int64_t kFewValues = 16;        // partition by such a column instead
constexpr double kWorthIt = 0.9;          // of what the table reads as it is

std::string PercentText(double share) {
  std::ostringstream out;
  out << std::fixed << std::setprecision(share < 0.1 ? 1 : 0) << 100 * share << " %";
  return out.str();
}

void WarnOfColumn(const layout::ColumnUse& use, const layout::ViewColumn& column, bool hive,
                  std::vector<std::string>* warnings) {
  if (column.partition >= 0) return;
  if (use.distinct <= 1) {
    warnings->push_back(column.path + ": one value only: no order of the rows helps its queries");
  } else if (use.distinct <= kFewValues) {
    warnings->push_back(column.path + ": only " + std::to_string(use.distinct) +
                        " values: partition the table by it instead of ordering by it" +
                        (hive ? " (one level more)" : ""));
  }
  if (!use.has_bounds) {
    warnings->push_back(column.path + ": some files have no statistics of it, so queries on it "
                        "cannot skip them; a rewrite writes statistics");
  }
  if (use.null_share > 0.5) {
    warnings->push_back(column.path + ": " + PercentText(use.null_share) + " of its rows are null");
  }
  const bool text = arrow::is_base_binary_like(column.type->id());
  if (text && use.distinct > 1 && use.distinct_prefixes * 10 <= use.distinct) {
    warnings->push_back(column.path + ": " + CountText(static_cast<double>(use.distinct)) +
                        " values share " +
                        CountText(static_cast<double>(use.distinct_prefixes)) +
                        " beginnings of 8 bytes: raw mode cannot tell them apart, use rank");
  }
}

// A word of a command line that a shell reads as it is.
std::string ShellWord(const std::string& word) {
  const auto plain = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || std::string("/._-:+=@").find(c) !=
                                                                   std::string::npos;
  };
  if (!word.empty() && std::all_of(word.begin(), word.end(), plain)) return word;
  std::string out = "'";
  for (char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

std::string CommandFor(const layout::Candidate& best, const std::string& table,
                       const std::string& queries_path) {
  const std::string by = best.by == layout::kTreeCandidate ? "tree(" + queries_path + ")" : best.by;
  std::string command = "grebe layout rewrite " + ShellWord(table) + " --by " + ShellWord(by);
  if (best.mode == "raw") command += " --mode raw";
  return command + " --to " + ShellWord(table + "-ordered");
}

void AddWarnings(const TableView& view, const layout::Advice& advice, bool hive,
                 LayoutAdvice* out) {
  for (const layout::ColumnUse& use : advice.columns) {
    WarnOfColumn(use, view.columns[use.column], hive, &out->warnings);
  }
  for (const auto& [leader, follower] : advice.followers) {
    out->warnings.push_back(view.columns[follower].path + ": follows " +
                            view.columns[leader].path + ", so that ordering by the one orders by "
                            "both; it is left out");
  }
  const auto used = std::count_if(advice.columns.begin(), advice.columns.end(), [&](const auto& u) {
    return view.columns[u.column].partition < 0;
  });
  if (used > 4) {
    out->warnings.push_back("the queries filter " + std::to_string(used) + " columns: a layout of "
                            "more than 4 serves none of them well, the most used ones are tried");
  }
}

void Recommend(const std::string& table_uri, const std::string& queries_path,
               const layout::Advice& advice, LayoutAdvice* out) {
  const auto as_it_is = std::find_if(advice.candidates.begin(), advice.candidates.end(),
                                     [](const auto& c) { return c.by.empty(); });
  const layout::Candidate& best = advice.candidates.front();
  if (best.by.empty() || best.bytes_read > kWorthIt * as_it_is->bytes_read) {
    out->warnings.push_back("no layout that was tried reads much less than the table as it is: "
                            "leave it");
    return;
  }
  out->command = CommandFor(best, table_uri, queries_path);
}

}  // namespace

Result<LayoutAdvice> AdviseLayout(const LayoutTable& table, const LayoutAdviceOptions& options) {
  if (options.sample_rows < 1) return InvalidArgument("a sample needs at least one row");
  if (options.target_file_bytes < 0) return InvalidArgument("a file cannot have less than 0 bytes");
  ARROW_ASSIGN_OR_RAISE(const auto queries, layout::ParseQueryLog(options.queries));
  if (queries.empty()) return InvalidArgument("advice needs a query log with at least one line");
  ARROW_ASSIGN_OR_RAISE(const engine::OpenedTable opened, engine::OpenLayoutTable(table));
  ARROW_ASSIGN_OR_RAISE(const TableView view,
                        engine::ReadView(table, opened, layout::ColumnsOf(queries), false));
  ARROW_ASSIGN_OR_RAISE(const layout::TableSample sample,
                        layout::ReadTableSample(*opened.store, view, options.sample_rows,
                                                /*seed=*/1, table.stop));
  ARROW_ASSIGN_OR_RAISE(const layout::Advice advice,
                        layout::AdviseOnSample(view, sample, queries, options.target_file_bytes,
                                               table.stop));
  LayoutAdvice out;
  out.table = opened.uri;
  out.sample_rows = sample.rows;
  out.files = advice.files;
  out.bytes_fewest = advice.bytes_fewest;
  for (const auto& query : queries) out.predicates.push_back(query.text);
  for (const layout::ColumnUse& use : advice.columns) {
    out.columns.push_back({view.columns[use.column].path, use.weight, use.equality_weight,
                           use.distinct, use.null_share, use.order_correlation});
  }
  for (const layout::Candidate& candidate : advice.candidates) {
    out.candidates.push_back({candidate.by, candidate.mode, candidate.bytes_read,
                              candidate.bytes_read / std::max(1.0, advice.bytes_fewest),
                              candidate.query_bytes});
  }
  AddWarnings(view, advice, opened.partitions->num_fields() > 0, &out);
  Recommend(opened.uri, options.queries_path, advice, &out);
  out.skipped = engine::SkippedOf(view);
  return out;
}

std::string LayoutAdvice::ToJson() const {
  Json json = {{"table", table},
               {"sample_rows", sample_rows},
               {"files", files},
               {"bytes_fewest", bytes_fewest},
               {"predicates", predicates}};
  json["columns"] = Json::array();
  for (const LayoutColumnUse& use : columns) {
    json["columns"].push_back({{"column", use.column},
                               {"weight", use.weight},
                               {"equality_weight", use.equality_weight},
                               {"distinct", use.distinct},
                               {"null_share", use.null_share},
                               {"order_correlation", use.order_correlation}});
  }
  json["candidates"] = Json::array();
  for (const LayoutCandidate& candidate : candidates) {
    json["candidates"].push_back({{"by", candidate.by},
                                  {"mode", candidate.mode},
                                  {"bytes_read", candidate.bytes_read},
                                  {"over_fewest", candidate.over_fewest},
                                  {"query_bytes", candidate.query_bytes}});
  }
  json["warnings"] = warnings;
  json["command"] = command;
  json["skipped"] = Json::array();
  for (const auto& file : skipped) {
    json["skipped"].push_back({{"path", file.path}, {"reason", file.reason}});
  }
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string LayoutAdvice::ToText() const {
  std::ostringstream out;
  out << table << "\n"
      << CountText(static_cast<double>(sample_rows)) << " rows sampled, "
      << CountText(static_cast<double>(files)) << " files simulated, "
      << CountText(static_cast<double>(predicates.size())) << " predicates\n\n"
      << "column                    queries  by value   distinct    null  in row order\n"
      << std::fixed;
  for (const LayoutColumnUse& use : columns) {
    out << std::left << std::setw(24) << use.column << std::right << std::setw(9)
        << PercentText(use.weight) << std::setw(10) << PercentText(use.equality_weight)
        << std::setw(11) << CountText(static_cast<double>(use.distinct)) << std::setw(8)
        << PercentText(use.null_share) << std::setw(14) << std::setprecision(2)
        << use.order_correlation << "\n";
  }
  out << "\nlayout                                        bytes a query    over the fewest\n";
  for (const LayoutCandidate& candidate : candidates) {
    const std::string name = candidate.by.empty() ? "as it is"
                             : candidate.by + (candidate.mode == "raw" ? " raw" : "");
    out << std::left << std::setw(45) << name << std::right << std::setw(14)
        << BytesText(candidate.bytes_read) << std::setw(18) << std::setprecision(1)
        << candidate.over_fewest << "x\n";
  }
  if (!warnings.empty()) out << "\n";
  for (const std::string& warning : warnings) out << "warning: " << warning << "\n";
  if (!command.empty()) out << "\n" << command << "\n";
  for (const SkippedFile& file : skipped) {
    out << "skipped " << file.path << ": " << file.reason << "\n";
  }
  return out.str();
}

}  // namespace grebe

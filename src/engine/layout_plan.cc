// Planning which files of a table to rewrite, and replaying what that costs over time.
#include <algorithm>
#include <iomanip>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "engine/layout_table.h"
#include "grebe/layout.h"
#include "layout/planner.h"
#include "layout/simulator.h"

namespace grebe {
namespace {

using Json = nlohmann::ordered_json;
using engine::BytesText;
using engine::CountText;
using layout::TableView;

constexpr size_t kNamesMax = 10;

std::string JoinNames(const std::vector<std::string>& names, size_t most) {
  std::string joined;
  for (size_t i = 0; i < std::min(names.size(), most); ++i) {
    joined += (joined.empty() ? "" : ", ") + names[i];
  }
  return joined + (names.size() > most ? ", .." : "");
}

// The files' ranges in one column, as numbers in proportion to the values where they have one.
std::vector<layout::Interval> RangesOf(const TableView& view, size_t column) {
  constexpr double kSteps = 1LL << 52;
  layout::BoundRanks ranks;
  for (const layout::FileView& file : view.files) ranks.Add(file.bounds[column]);
  ranks.Finish();
  std::vector<int64_t> positions;
  std::optional<double> first, last;
  if (!ranks.values().empty()) {
    first = engine::NumberOf(*ranks.values().front());
    last = engine::NumberOf(*ranks.values().back());
  }
  for (size_t i = 0; i < ranks.values().size(); ++i) {
    const auto number = engine::NumberOf(*ranks.values()[i]);
    const bool by_value = number && first && last && *last > *first;
    positions.push_back(by_value ? static_cast<int64_t>((*number - *first) / (*last - *first) *
                                                        kSteps)
                                 : static_cast<int64_t>(i));
  }
  std::vector<layout::Interval> ranges;
  for (const layout::FileView& file : view.files) {
    layout::Interval range = ranks.Of(file.bounds[column]);
    if (!range.empty() && range != layout::kEverything) {
      range = {positions[static_cast<size_t>(range.low)],
               positions[static_cast<size_t>(range.high)]};
    }
    ranges.push_back(range);
  }
  return ranges;
}

// The view's files as the planner takes them: boxes of ranks, one group per Hive partition.
std::vector<layout::UpkeepFile> FilesOf(const TableView& view, const engine::OpenedTable& opened) {
  std::vector<layout::UpkeepFile> files(view.files.size());
  std::map<std::string, int> groups;
  for (size_t f = 0; f < files.size(); ++f) {
    const layout::FileView& file = view.files[f];
    std::string partition;
    for (const auto& value : opened.files[static_cast<size_t>(file.input)].partition_values) {
      partition += value->ToString() + '\n';
    }
    files[f].group = groups.emplace(partition, static_cast<int>(groups.size())).first->second;
    files[f].bytes = file.bytes;
    files[f].rows = file.rows;
  }
  for (size_t c = 0; c < view.columns.size(); ++c) {
    const std::vector<layout::Interval> ranges = RangesOf(view, c);
    for (size_t f = 0; f < files.size(); ++f) {
      files[f].box.push_back(files[f].rows == 0 ? layout::kNothing : ranges[f]);
    }
  }
  return files;
}

Json SkippedJson(const std::vector<SkippedFile>& skipped) {
  Json out = Json::array();
  for (const auto& file : skipped) out.push_back({{"path", file.path}, {"reason", file.reason}});
  return out;
}

}  // namespace

Result<LayoutPlan> PlanLayout(const LayoutTable& table, const LayoutPlanOptions& options) {
  if (options.columns.empty()) return InvalidArgument("a plan needs the columns to order by");
  if (options.budget_bytes < 0) return InvalidArgument("a budget cannot be less than nothing");
  if (!(options.weight_min > 0)) {
    return InvalidArgument("the least weight must be above 0", "weight_min", options.weight_min);
  }
  ARROW_ASSIGN_OR_RAISE(const engine::OpenedTable opened, engine::OpenLayoutTable(table));
  ARROW_ASSIGN_OR_RAISE(const TableView view,
                        engine::ReadView(table, opened, options.columns, /*pages=*/false));
  layout::UpkeepOptions how;
  how.weight_min = options.weight_min;
  how.budget_bytes = options.budget_bytes;
  const layout::UpkeepPlan plan = layout::PlanUpkeep(FilesOf(view, opened), how);
  LayoutPlan out;
  out.table = opened.uri;
  out.columns = options.columns;
  out.files_total = static_cast<int64_t>(view.files.size());
  out.bytes_total = view.bytes;
  out.files = plan.files;
  out.rows = plan.rows;
  out.bytes = plan.bytes;
  if (view.bytes > 0) {
    out.rewritten_share = static_cast<double>(plan.bytes) / static_cast<double>(view.bytes);
  }
  out.depth_before = plan.depth_before;
  out.depth_after = plan.depth_after;
  out.depth_max_before = plan.depth_max_before;
  out.depth_max_after = plan.depth_max_after;
  out.weight_min = plan.weight_min;
  for (const layout::UpkeepGroup& group : plan.groups) {
    LayoutPlanGroup named{{}, group.rows, group.bytes, group.depth_before};
    for (uint32_t f : group.files) named.files.push_back(view.files[f].name);
    out.groups.push_back(std::move(named));
  }
  out.skipped = engine::SkippedOf(view);
  return out;
}

std::string LayoutPlan::ToJson() const {
  Json json = {{"table", table},
               {"columns", columns},
               {"files_total", files_total},
               {"bytes_total", bytes_total},
               {"files", files},
               {"rows", rows},
               {"bytes", bytes},
               {"rewritten_share", rewritten_share},
               {"depth_before", depth_before},
               {"depth_after", depth_after},
               {"depth_max_before", depth_max_before},
               {"depth_max_after", depth_max_after},
               {"weight_min", weight_min}};
  json["groups"] = Json::array();
  for (const LayoutPlanGroup& group : groups) {
    json["groups"].push_back({{"files", group.files},
                              {"rows", group.rows},
                              {"bytes", group.bytes},
                              {"depth_before", group.depth_before}});
  }
  json["skipped"] = SkippedJson(skipped);
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string LayoutPlan::ToText() const {
  std::ostringstream out;
  out << std::fixed << std::setprecision(2);
  out << table << ", to be ordered by " << JoinNames(columns, columns.size()) << "\n";
  if (groups.empty()) {
    out << "nothing to do: no files overlap enough to be worth a rewrite (0 bytes)\n";
  } else {
    out << "rewrite " << CountText(static_cast<double>(files)) << " of "
        << CountText(static_cast<double>(files_total)) << " files, "
        << BytesText(static_cast<double>(bytes)) << " of "
        << BytesText(static_cast<double>(bytes_total)) << ": adds " << rewritten_share
        << " to the write amplification\n";
  }
  out << "files that cover the place of a row: " << depth_before << " on average, "
      << CountText(depth_max_before) << " at most; afterwards " << depth_after << " and "
      << CountText(depth_max_after) << "\n";
  for (size_t g = 0; g < groups.size(); ++g) {
    const LayoutPlanGroup& group = groups[g];
    out << "group " << g + 1 << ": " << group.files.size() << " files, "
        << BytesText(static_cast<double>(group.bytes)) << ", depth among themselves "
        << group.depth_before << ", afterwards 1: " << JoinNames(group.files, kNamesMax) << "\n";
  }
  for (const SkippedFile& file : skipped) {
    out << "skipped " << file.path << ": " << file.reason << "\n";
  }
  return out.str();
}

Result<ReplayReport> ReplayUpkeep(const ReplayOptions& options) {
  static const std::map<std::string, layout::Arrival> kArrivals = {
      {"spread", layout::Arrival::kSpread},
      {"time", layout::Arrival::kTime},
      {"late", layout::Arrival::kLate}};
  static const std::map<std::string, layout::UpkeepPolicy> kPolicies = {
      {"plan", layout::UpkeepPolicy::kPlanner},
      {"tiered", layout::UpkeepPolicy::kTiered},
      {"levelled", layout::UpkeepPolicy::kLevelled},
      {"none", layout::UpkeepPolicy::kNone}};
  const auto arrival = kArrivals.find(options.arrival);
  const auto policy = kPolicies.find(options.upkeep);
  if (arrival == kArrivals.end()) {
    return InvalidArgument("no such arrival", "arrival", options.arrival);
  }
  if (policy == kPolicies.end()) return InvalidArgument("no such upkeep", "upkeep", options.upkeep);
  constexpr int64_t kRowsMax = 100'000'000;
  if (options.appends < 1 || options.rows_per_append < 1 || options.rows_per_file < 1 ||
      options.appends > kRowsMax / options.rows_per_append || options.runs < 2 ||
      !(options.weight_min > 0)) {
    return InvalidArgument("appends, rows, runs (2 or more) and weight must be above 0, and all "
                           "rows at most 100 million");
  }
  layout::SimulateOptions how;
  how.appends = options.appends;
  how.rows_per_append = options.rows_per_append;
  how.rows_per_file = options.rows_per_file;
  how.arrival = arrival->second;
  how.upkeep = policy->second;
  how.runs = options.runs;
  how.weight_min = options.weight_min;
  how.seed = options.seed;
  const layout::Simulation simulation = layout::Simulate(how);
  ReplayReport report{simulation.average_depth,       simulation.max_average_depth,
                      simulation.write_amplification, simulation.rewrites,
                      simulation.second_plan_bytes,   {}};
  for (const layout::SimulatedStep& step : simulation.steps) {
    report.steps.push_back({step.appends, step.files, step.average_depth,
                            step.write_amplification});
  }
  return report;
}

std::string ReplayReport::ToJson() const {
  Json json = {{"average_depth", average_depth},
               {"max_average_depth", max_average_depth},
               {"write_amplification", write_amplification},
               {"rewrites", rewrites},
               {"second_plan_rows", second_plan_rows}};
  json["steps"] = Json::array();
  for (const ReplayStep& step : steps) {
    json["steps"].push_back({{"appends", step.appends},
                             {"files", step.files},
                             {"average_depth", step.average_depth},
                             {"write_amplification", step.write_amplification}});
  }
  return json.dump(2) + "\n";
}

std::string ReplayReport::ToText() const {
  std::ostringstream out;
  out << std::fixed << std::setprecision(2) << "average depth " << average_depth << " (at most "
      << max_average_depth << "), write amplification " << write_amplification << ", "
      << CountText(static_cast<double>(rewrites)) << " rewrites\n\n"
      << "appends     files  average depth  write amplification\n";
  const size_t every = std::max<size_t>(1, steps.size() / 20);
  for (size_t i = every - 1; i < steps.size(); i += every) {
    const ReplayStep& step = steps[i];
    out << std::setw(7) << step.appends << std::setw(10) << step.files << std::setw(15)
        << step.average_depth << std::setw(21) << step.write_amplification << "\n";
  }
  return out.str();
}

}  // namespace grebe

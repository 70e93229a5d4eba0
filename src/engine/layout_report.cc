// Measuring how a table lies: depth by column and jointly, and what logged queries read.
#include <algorithm>
#include <functional>

#include "engine/layout_table.h"
#include "grebe/layout.h"
#include "layout/metrics.h"

namespace grebe {
namespace {

using layout::FileView;
using layout::GroupView;
using layout::TableView;

constexpr size_t kJointColumnsMax = 4;

// Pieces of one level: the bounds of some columns of each.
using Pieces = std::vector<std::vector<const pq::Bounds*>>;

void AddPages(const GroupView& group, const std::vector<size_t>& columns, Pieces* pieces) {
  // Pages of several columns end at different rows: a piece is what lies between two ends.
  std::vector<int64_t> ends = {group.rows};
  for (size_t column : columns) {
    for (const pq::PageBounds& page : group.pages[column]) ends.push_back(page.rows.end);
  }
  std::sort(ends.begin(), ends.end());
  ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
  std::vector<size_t> at(columns.size(), 0);
  for (int64_t end : ends) {
    if (end <= 0) continue;
    std::vector<const pq::Bounds*> piece;
    for (size_t c = 0; c < columns.size(); ++c) {
      const auto& pages = group.pages[columns[c]];
      while (at[c] < pages.size() && pages[at[c]].rows.end < end) ++at[c];
      piece.push_back(at[c] < pages.size() ? &pages[at[c]].bounds : &group.bounds[columns[c]]);
    }
    pieces->push_back(std::move(piece));
  }
}

enum class Level { kFiles, kRowGroups, kPages };

Pieces PiecesOf(const TableView& view, const std::vector<size_t>& columns, Level level) {
  Pieces pieces;
  const auto add = [&](const std::vector<pq::Bounds>& bounds) {
    std::vector<const pq::Bounds*> piece;
    for (size_t column : columns) piece.push_back(&bounds[column]);
    pieces.push_back(std::move(piece));
  };
  for (const FileView& file : view.files) {
    if (file.rows == 0) continue;
    if (level == Level::kFiles) add(file.bounds);
    for (const GroupView& group : file.groups) {
      if (group.rows == 0) continue;
      if (level == Level::kRowGroups) add(group.bounds);
      if (level == Level::kPages) AddPages(group, columns, &pieces);
    }
  }
  return pieces;
}

DepthFigures FiguresOf(const Pieces& pieces) {
  const size_t columns = pieces.empty() ? 1 : pieces[0].size();
  std::vector<layout::Box> boxes(pieces.size());
  for (size_t c = 0; c < columns; ++c) {
    layout::BoundRanks ranks;
    for (const auto& piece : pieces) ranks.Add(*piece[c]);
    ranks.Finish();
    for (size_t i = 0; i < pieces.size(); ++i) boxes[i].push_back(ranks.Of(*pieces[i][c]));
  }
  DepthFigures out;
  const auto is_empty = [](const layout::Interval& range) { return range.empty(); };
  const auto is_unknown = [](const layout::Interval& range) {
    return range == layout::kEverything;
  };
  for (const layout::Box& box : boxes) {
    const bool unknown = std::any_of(box.begin(), box.end(), is_unknown);
    out.unknown += unknown && std::none_of(box.begin(), box.end(), is_empty);
  }
  layout::DepthMetrics metrics;
  if (columns == 1) {
    std::vector<layout::Interval> ranges;
    for (const layout::Box& box : boxes) ranges.push_back(box[0]);
    metrics = layout::MeasureDepth(ranges);
  } else {
    Result<layout::DepthMetrics> joint = layout::MeasureJointDepth(boxes);
    out.counted = joint.ok();
    if (joint.ok()) metrics = *std::move(joint);
  }
  out.pieces = metrics.boxes;
  out.without_values = metrics.empty_boxes;
  out.constant = metrics.constant;
  out.average_depth = metrics.average_depth;
  out.average_overlaps = metrics.average_overlaps;
  out.max_depth = metrics.max_depth;
  out.histogram = metrics.histogram;
  return out;
}

ColumnDepth MeasureColumns(const TableView& view, const std::vector<size_t>& columns, bool pages) {
  ColumnDepth out;
  for (size_t column : columns) out.columns.push_back(view.columns[column].path);
  out.files = FiguresOf(PiecesOf(view, columns, Level::kFiles));
  out.row_groups = FiguresOf(PiecesOf(view, columns, Level::kRowGroups));
  if (pages) out.pages = FiguresOf(PiecesOf(view, columns, Level::kPages));
  for (const FileView& file : view.files) {
    bool missing = false, shortened = false;
    for (size_t column : columns) {
      const pq::Bounds& bounds = file.bounds[column];
      missing = missing || (file.rows > 0 && !bounds.only_nulls() && !bounds.has_both());
      shortened = shortened || (bounds.has_both() && !(bounds.min_exact && bounds.max_exact));
    }
    if (missing) out.files_without_bounds.push_back(file.name);
    if (shortened) out.files_with_shortened_bounds.push_back(file.name);
  }
  return out;
}

LayoutReads ReadsOf(const layout::ReadShare& share) {
  return {share.total, share.read, share.fewest, share.bytes_total, share.bytes_read,
          share.bytes_fewest};
}

Status AddQueries(const engine::OpenedTable& opened, const TableView& view,
                  const std::vector<layout::LoggedQuery>& queries, const LayoutTable& table,
                  int64_t sample_rows, LayoutReport* report) {
  layout::QueryCostOptions options;
  options.sample_rows = sample_rows;
  options.stop = table.stop;
  ARROW_ASSIGN_OR_RAISE(const std::vector<layout::QueryCost> costs,
                        layout::MeasureQueries(*opened.store, view, queries, options));
  for (size_t q = 0; q < queries.size(); ++q) {
    report->queries.push_back({queries[q].text, queries[q].weight, costs[q].rows,
                               costs[q].estimated, ReadsOf(costs[q].files),
                               ReadsOf(costs[q].row_groups), ReadsOf(costs[q].pages)});
  }
  return Status::OK();
}

void AddBoxes(const TableView& view, const std::vector<size_t>& columns, LayoutReport* report) {
  if (columns.empty()) return;
  report->x_column = view.columns[columns[0]].path;
  if (columns.size() > 1) report->y_column = view.columns[columns[1]].path;
  for (const FileView& file : view.files) {
    if (file.rows == 0) continue;
    LayoutBox box{file.name, file.rows, file.bytes, nullptr, nullptr, nullptr, nullptr};
    const auto valid = [](const std::shared_ptr<arrow::Scalar>& value) {
      return value != nullptr && value->is_valid ? value : nullptr;
    };
    box.x_min = valid(file.bounds[columns[0]].min);
    box.x_max = valid(file.bounds[columns[0]].max);
    if (columns.size() > 1) {
      box.y_min = valid(file.bounds[columns[1]].min);
      box.y_max = valid(file.bounds[columns[1]].max);
    }
    report->boxes.push_back(std::move(box));
  }
}

}  // namespace

Result<LayoutReport> ReportLayout(const LayoutTable& table, const LayoutReportOptions& options) {
  if (options.sample_rows < 0) return InvalidArgument("a sample cannot have less than no rows");
  ARROW_ASSIGN_OR_RAISE(const auto queries, layout::ParseQueryLog(options.queries));
  ARROW_ASSIGN_OR_RAISE(const engine::OpenedTable opened, engine::OpenLayoutTable(table));
  const std::vector<std::string> used = layout::ColumnsOf(queries);
  std::vector<std::string> columns = options.columns.empty() ? used : options.columns;
  const size_t measured = columns.size();
  // Columns that only the queries use are read too, but not measured.
  if (!columns.empty()) {
    for (const std::string& column : used) {
      if (std::find(columns.begin(), columns.end(), column) == columns.end()) {
        columns.push_back(column);
      }
    }
  }
  ARROW_ASSIGN_OR_RAISE(const TableView view,
                        engine::ReadView(table, opened, columns, options.pages));
  LayoutReport report;
  report.table = opened.uri;
  report.files = static_cast<int64_t>(view.files.size());
  report.rows = view.rows;
  report.bytes = view.bytes;
  for (const FileView& file : view.files) {
    report.row_groups += static_cast<int64_t>(file.groups.size());
  }
  const size_t count = measured == 0 ? view.columns.size() : measured;
  std::vector<size_t> joint;
  for (size_t c = 0; c < count; ++c) {
    if (table.stop != nullptr) ARROW_RETURN_NOT_OK(table.stop->Check());
    report.columns.push_back(MeasureColumns(view, {c}, options.pages));
    if (c < kJointColumnsMax) joint.push_back(c);
  }
  if (measured == 0) {
    // Nobody said which: the two that are laid out best make the picture.
    std::stable_sort(joint.begin(), joint.end(), [&](size_t a, size_t b) {
      return report.columns[a].files.average_depth < report.columns[b].files.average_depth;
    });
    joint.resize(std::min<size_t>(joint.size(), 2));
  }
  if (joint.size() > 1) report.columns.push_back(MeasureColumns(view, joint, options.pages));
  AddBoxes(view, joint, &report);
  report.skipped = engine::SkippedOf(view);
  if (!queries.empty()) {
    ARROW_RETURN_NOT_OK(AddQueries(opened, view, queries, table, options.sample_rows, &report));
  }
  return report;
}

}  // namespace grebe

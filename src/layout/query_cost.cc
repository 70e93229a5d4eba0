#include "layout/query_cost.h"

#include <arrow/array/util.h>
#include <arrow/util/parallel.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cmath>
#include <map>
#include <mutex>
#include <numeric>
#include <set>

#include "base/rng.h"
#include "layout/leaf_column.h"

namespace grebe::layout {
namespace {

std::string_view Trim(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

// A whole positive number that is all of the text.
bool ReadCount(std::string_view text, double* count) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value <= 0) return false;
  *count = static_cast<double>(value);
  return true;
}

// Takes the count off a line: "12 a = 1", "a = 1 # 12", "a = 1<tab>12". A number that begins the
// line and has an operator behind it is part of the predicate: "12 < a".
std::string_view TakeCount(std::string_view line, double* count) {
  const size_t space = line.find_first_of(" \t");
  if (space != std::string_view::npos) {
    const std::string_view rest = Trim(line.substr(space));
    const bool compares = rest.find_first_of("=<>!") == 0;
    if (!compares && ReadCount(line.substr(0, space), count)) return rest;
  }
  const size_t mark = line.find_last_of("#\t");
  if (mark != std::string_view::npos && ReadCount(Trim(line.substr(mark + 1)), count)) {
    return Trim(line.substr(0, mark));
  }
  return line;
}

// Answers FewestPieces for many numbers of rows.
class LeastPieces {
 public:
  void Add(PieceSize piece) {
    if (piece.rows > 0) pieces_.push_back(piece);
  }
  void Finish() {
    std::sort(pieces_.begin(), pieces_.end(), [](const PieceSize& a, const PieceSize& b) {
      // Fewest bytes a row first.
      return static_cast<__int128>(a.bytes) * b.rows < static_cast<__int128>(b.bytes) * a.rows;
    });
    rows_.assign(pieces_.size(), 0);
    bytes_.assign(pieces_.size(), 0);
    for (size_t i = 0; i < pieces_.size(); ++i) {
      rows_[i] = pieces_[i].rows;
      bytes_[i] = pieces_[i].bytes;
    }
    std::sort(rows_.rbegin(), rows_.rend());
    std::sort(bytes_.begin(), bytes_.end());
    std::partial_sum(rows_.begin(), rows_.end(), rows_.begin());
    std::partial_sum(bytes_.begin(), bytes_.end(), bytes_.begin());
    int64_t rows = 0, bytes = 0;
    for (const PieceSize& piece : pieces_) {
      dense_rows_.push_back(rows += piece.rows);
      dense_bytes_.push_back(bytes += piece.bytes);
    }
  }
  Fewest Of(int64_t wanted) const {
    if (wanted <= 0 || pieces_.empty()) return {};
    const auto last = static_cast<int64_t>(pieces_.size()) - 1;
    const int64_t index = std::min(
        last, std::lower_bound(rows_.begin(), rows_.end(), wanted) - rows_.begin());
    // So many pieces have at least the bytes of the smallest so many; and so many rows at least
    // those of the pieces with the fewest bytes a row, the last one in part.
    const auto dense = static_cast<size_t>(std::min(
        last, std::lower_bound(dense_rows_.begin(), dense_rows_.end(), wanted) -
                  dense_rows_.begin()));
    const int64_t missing = std::max<int64_t>(0, dense_rows_[dense] - wanted);
    const PieceSize& part = pieces_[dense];
    const auto fraction = static_cast<int64_t>(static_cast<double>(part.bytes) *
                                               static_cast<double>(missing) /
                                               static_cast<double>(part.rows));
    return {index + 1, std::max(bytes_[static_cast<size_t>(index)],
                                dense_bytes_[dense] - fraction)};
  }

 private:
  std::vector<PieceSize> pieces_;
  std::vector<int64_t> rows_, bytes_, dense_rows_, dense_bytes_;
};

// The rows of the sorted ranges `kept` that a piece holds decide whether it is read.
void AddPages(const std::vector<PagePiece>& pages, const std::vector<RowRange>& kept,
              ReadShare* share) {
  auto range = kept.begin();
  for (const PagePiece& page : pages) {
    while (range != kept.end() && range->end <= page.rows.begin) ++range;
    if (range == kept.end()) return;
    if (range->begin >= page.rows.end) continue;
    ++share->read;
    share->bytes_read += page.bytes;
  }
}

// One query bound to the view, and what the bounds of files and row groups say.
struct Judged {
  std::shared_ptr<const scan::BoundPredicate> predicate;
  std::vector<size_t> columns;                  // of the view
  std::vector<std::vector<bool>> may, must;     // [file][row group]; empty: the file is left out
};

class QueryMeter {
 public:
  QueryMeter(store::Store& store, const TableView& view, const std::vector<LoggedQuery>& queries,
             const QueryCostOptions& options)
      : store_(store), view_(view), queries_(queries), options_(options) {}

  Result<std::vector<QueryCost>> Run() {
    SumUp();
    costs_.resize(queries_.size());
    for (size_t q = 0; q < queries_.size(); ++q) {
      if (options_.stop != nullptr) ARROW_RETURN_NOT_OK(options_.stop->Check());
      ARROW_RETURN_NOT_OK(Judge(q));
      ARROW_RETURN_NOT_OK(JudgePages(q));
    }
    ARROW_RETURN_NOT_OK(CountRows());
    for (size_t q = 0; q < queries_.size(); ++q) AddFewest(&costs_[q]);
    return std::move(costs_);
  }

 private:
  // Totals, and what the lower bounds are taken from.
  void SumUp() {
    least_pages_.resize(static_cast<size_t>(view_.leaf_count));
    least_dictionaries_.resize(static_cast<size_t>(view_.leaf_count));
    for (const FileView& file : view_.files) {
      ++totals_.files.total;
      totals_.files.bytes_total += file.bytes;
      least_files_.Add({file.rows, file.bytes});
      for (const GroupView& group : file.groups) {
        ++totals_.row_groups.total;
        totals_.row_groups.bytes_total += group.bytes;
        least_groups_.Add({group.rows, group.bytes});
        for (size_t leaf = 0; leaf < group.leaf_pages.size(); ++leaf) {
          totals_.pages.bytes_total += group.dictionary_bytes[leaf];
          least_dictionaries_[leaf].Add({group.rows, group.dictionary_bytes[leaf]});
          for (const PagePiece& page : group.leaf_pages[leaf]) {
            ++totals_.pages.total;
            totals_.pages.bytes_total += page.bytes;
            least_pages_[leaf].Add({page.rows.row_count(), page.bytes});
          }
        }
      }
    }
    least_files_.Finish();
    least_groups_.Finish();
    for (LeastPieces& leaf : least_pages_) leaf.Finish();
    for (LeastPieces& leaf : least_dictionaries_) leaf.Finish();
  }

  Result<scan::BoundPredicate::Verdicts> Ask(const Judged& judged,
                                             std::vector<scan::ColumnBounds> bounds,
                                             size_t count) const {
    return judged.predicate->Judge(bounds, count);
  }

  Status Bind(const LoggedQuery& query, Judged* judged) const {
    std::vector<scan::PredicateColumn> columns;
    for (const std::string& path : query.predicate.columns()) {
      const auto found = std::find_if(view_.columns.begin(), view_.columns.end(),
                                      [&](const ViewColumn& c) { return c.path == path; });
      if (found == view_.columns.end()) return InvalidArgument("no such column", "column", path);
      judged->columns.push_back(static_cast<size_t>(found - view_.columns.begin()));
      columns.push_back({path, found->own_type});
    }
    Result<std::shared_ptr<const scan::BoundPredicate>> bound =
        scan::BoundPredicate::Bind(query.predicate, std::move(columns));
    if (!bound.ok()) return AddContext(bound.status(), "predicate", query.text);
    judged->predicate = *bound;
    return Status::OK();
  }

  // Files, then the row groups of those that are left.
  Status Judge(size_t q) {
    Judged judged;
    ARROW_RETURN_NOT_OK(Bind(queries_[q], &judged));
    std::vector<scan::ColumnBounds> bounds(judged.columns.size());
    for (const FileView& file : view_.files) {
      for (size_t c = 0; c < bounds.size(); ++c) {
        bounds[c].bounds.push_back(file.bounds[judged.columns[c]]);
      }
    }
    ARROW_ASSIGN_OR_RAISE(const auto files, Ask(judged, bounds, view_.files.size()));
    bounds.assign(judged.columns.size(), {});
    size_t count = 0;
    for (size_t f = 0; f < view_.files.size(); ++f) {
      if (!files.may_match[f]) continue;
      ++costs_[q].files.read;
      costs_[q].files.bytes_read += view_.files[f].bytes;
      for (const GroupView& group : view_.files[f].groups) {
        ++count;
        for (size_t c = 0; c < bounds.size(); ++c) {
          bounds[c].bounds.push_back(group.bounds[judged.columns[c]]);
        }
      }
    }
    ARROW_ASSIGN_OR_RAISE(const auto groups, Ask(judged, bounds, count));
    judged.may.resize(view_.files.size());
    judged.must.resize(view_.files.size());
    size_t at = 0;
    for (size_t f = 0; f < view_.files.size(); ++f) {
      if (!files.may_match[f]) continue;
      for (const GroupView& group : view_.files[f].groups) {
        judged.may[f].push_back(groups.may_match[at]);
        judged.must[f].push_back(groups.must_match[at]);
        if (groups.may_match[at++]) {
          ++costs_[q].row_groups.read;
          costs_[q].row_groups.bytes_read += group.bytes;
        }
      }
    }
    judged_.push_back(std::move(judged));
    return Status::OK();
  }

  // A row group's rows between the page ends of the predicate's columns.
  struct Segment {
    size_t file, group;
    RowRange rows;
  };

  Status JudgePages(size_t q) {
    const Judged& judged = judged_[q];
    std::vector<Segment> segments;
    std::vector<scan::ColumnBounds> bounds(judged.columns.size());
    for (size_t f = 0; f < view_.files.size(); ++f) {
      for (size_t g = 0; g < judged.may[f].size(); ++g) {
        if (judged.may[f][g]) AddSegments(judged, f, g, &segments, &bounds);
      }
    }
    ARROW_ASSIGN_OR_RAISE(const auto verdicts, Ask(judged, bounds, segments.size()));
    std::vector<RowRange> kept;
    for (size_t i = 0; i < segments.size(); ++i) {
      const Segment& here = segments[i];
      if (verdicts.may_match[i]) kept.push_back(here.rows);
      const bool last = i + 1 == segments.size() || segments[i + 1].file != here.file ||
                        segments[i + 1].group != here.group;
      if (!last) continue;
      const GroupView& group = view_.files[here.file].groups[here.group];
      for (size_t leaf = 0; leaf < group.leaf_pages.size() && !kept.empty(); ++leaf) {
        AddPages(group.leaf_pages[leaf], kept, &costs_[q].pages);
        costs_[q].pages.bytes_read += group.dictionary_bytes[leaf];
      }
      kept.clear();
    }
    return Status::OK();
  }

  void AddSegments(const Judged& judged, size_t f, size_t g, std::vector<Segment>* segments,
                   std::vector<scan::ColumnBounds>* bounds) const {
    const GroupView& group = view_.files[f].groups[g];
    std::set<int64_t> ends = {group.rows};
    for (size_t column : judged.columns) {
      for (const pq::PageBounds& page : group.pages[column]) ends.insert(page.rows.end);
    }
    std::vector<size_t> at(judged.columns.size(), 0);
    int64_t begin = 0;
    for (int64_t end : ends) {
      segments->push_back({f, g, {begin, end}});
      for (size_t c = 0; c < at.size(); ++c) {
        const std::vector<pq::PageBounds>& pages = group.pages[judged.columns[c]];
        while (at[c] < pages.size() && pages[at[c]].rows.end < end) ++at[c];
        (*bounds)[c].bounds.push_back(at[c] < pages.size() ? pages[at[c]].bounds
                                                           : group.bounds[judged.columns[c]]);
      }
      begin = end;
    }
  }

  // Rows wanted of row groups that bounds decide are known; those of the others are counted in the
  // files read, and estimated in the rest.
  struct Counter {
    std::atomic<int64_t> wanted = 0;      // surely, or counted
    std::atomic<int64_t> seen = 0, matched = 0;   // rows of row groups that were read, and wanted
    std::atomic<int64_t> unseen = 0;      // rows of undecided row groups that were not
  };

  Status CountRows() {
    std::vector<Counter> counters(queries_.size());
    const std::vector<bool> chosen = ChooseFiles();
    ARROW_RETURN_NOT_OK(arrow::internal::ParallelFor(
        static_cast<int>(view_.files.size()), [&](int i) -> Status {
          const auto f = static_cast<size_t>(i);
          const std::vector<size_t> undecided = CountDecided(f, &counters);
          if (undecided.empty()) return Status::OK();
          if (!chosen[f]) {
            CountUnseen(f, undecided, &counters);
            return Status::OK();
          }
          const Status status = CountInFile(f, undecided, &counters);
          return status.ok() ? status : AddContext(status, "file", view_.files[f].name);
        }));
    for (size_t q = 0; q < queries_.size(); ++q) {
      const Counter& counter = counters[q];
      double rows = static_cast<double>(counter.wanted);
      if (counter.unseen > 0) {
        costs_[q].estimated = true;
        if (counter.seen > 0) {
          rows += static_cast<double>(counter.unseen) * static_cast<double>(counter.matched) /
                  static_cast<double>(counter.seen);
        }
      }
      costs_[q].rows = std::llround(rows);
    }
    return Status::OK();
  }

  std::vector<bool> ChooseFiles() const {
    std::vector<bool> chosen(view_.files.size(), options_.sample_rows <= 0);
    if (options_.sample_rows <= 0) return chosen;
    std::vector<size_t> order(view_.files.size());
    std::iota(order.begin(), order.end(), size_t{0});
    Rng rng(options_.seed);
    for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[rng.Below(i)]);
    int64_t rows = 0;
    for (size_t f : order) {
      if (rows >= options_.sample_rows) break;
      chosen[f] = true;
      rows += view_.files[f].rows;
    }
    return chosen;
  }

  // Adds the row groups that are wanted whole; gives the queries that must look at others.
  std::vector<size_t> CountDecided(size_t f, std::vector<Counter>* counters) const {
    std::vector<size_t> undecided;
    for (size_t q = 0; q < queries_.size(); ++q) {
      bool open = false;
      for (size_t g = 0; g < judged_[q].may[f].size(); ++g) {
        if (judged_[q].must[f][g]) {
          (*counters)[q].wanted += view_.files[f].groups[g].rows;
        } else {
          open = open || judged_[q].may[f][g];
        }
      }
      if (open) undecided.push_back(q);
    }
    return undecided;
  }

  bool IsOpen(size_t q, size_t f, size_t g) const {
    return judged_[q].may[f][g] && !judged_[q].must[f][g];
  }

  void CountUnseen(size_t f, const std::vector<size_t>& undecided,
                   std::vector<Counter>* counters) const {
    for (size_t q : undecided) {
      for (size_t g = 0; g < view_.files[f].groups.size(); ++g) {
        if (IsOpen(q, f, g)) (*counters)[q].unseen += view_.files[f].groups[g].rows;
      }
    }
  }

  Status CountInFile(size_t f, const std::vector<size_t>& undecided,
                     std::vector<Counter>* counters) const {
    const FileView& file = view_.files[f];
    std::set<size_t> columns;
    for (size_t q : undecided) {
      columns.insert(judged_[q].columns.begin(), judged_[q].columns.end());
    }
    std::vector<int64_t> group_ends;
    for (const GroupView& group : file.groups) {
      group_ends.push_back((group_ends.empty() ? 0 : group_ends.back()) + group.rows);
    }
    return ScanViewColumns(
        store_, view_, file, {columns.begin(), columns.end()}, options_.stop,
        [&](const std::map<size_t, std::shared_ptr<arrow::Array>>& arrays, int64_t first_row,
            int64_t rows) -> Status {
          const auto g = static_cast<size_t>(
              std::upper_bound(group_ends.begin(), group_ends.end(), first_row) -
              group_ends.begin());
          for (size_t q : undecided) {
            if (!IsOpen(q, f, g)) continue;
            ARROW_ASSIGN_OR_RAISE(const int64_t matched, Filter(judged_[q], arrays, rows));
            (*counters)[q].wanted += matched;
            (*counters)[q].matched += matched;
            (*counters)[q].seen += rows;
          }
          return Status::OK();
        });
  }

  Result<int64_t> Filter(const Judged& judged,
                         const std::map<size_t, std::shared_ptr<arrow::Array>>& arrays,
                         int64_t rows) const {
    std::vector<std::shared_ptr<arrow::Array>> columns;
    arrow::FieldVector fields;
    for (size_t column : judged.columns) {
      columns.push_back(arrays.at(column));
      fields.push_back(arrow::field(view_.columns[column].path, columns.back()->type()));
    }
    const auto batch = arrow::RecordBatch::Make(arrow::schema(fields), rows, columns);
    std::vector<RowRange> wanted;
    ARROW_RETURN_NOT_OK(judged.predicate->Filter(*batch, 0, &wanted));
    int64_t count = 0;
    for (const RowRange& range : wanted) count += range.row_count();
    return count;
  }

  void AddFewest(QueryCost* cost) const {
    const auto add = [&](const ReadShare& total, const LeastPieces& least, ReadShare* share) {
      share->total = total.total;
      share->bytes_total = total.bytes_total;
      const Fewest fewest = least.Of(cost->rows);
      share->fewest += fewest.pieces;
      share->bytes_fewest += fewest.bytes;
    };
    add(totals_.files, least_files_, &cost->files);
    add(totals_.row_groups, least_groups_, &cost->row_groups);
    for (const LeastPieces& leaf : least_pages_) add(totals_.pages, leaf, &cost->pages);
    // Pages that hold so many rows lie in at least so many chunks, each with its dictionary.
    for (const LeastPieces& leaf : least_dictionaries_) {
      cost->pages.bytes_fewest += leaf.Of(cost->rows).bytes;
    }
  }

  store::Store& store_;
  const TableView& view_;
  const std::vector<LoggedQuery>& queries_;
  const QueryCostOptions& options_;
  QueryCost totals_;
  LeastPieces least_files_, least_groups_;
  std::vector<LeastPieces> least_pages_, least_dictionaries_;   // per leaf
  std::vector<Judged> judged_;
  std::vector<QueryCost> costs_;
};

}  // namespace

Result<std::vector<LoggedQuery>> ParseQueryLog(std::string_view text) {
  std::vector<LoggedQuery> queries;
  int number = 0;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = Trim(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    if (line.empty() || line.front() == '#') continue;
    LoggedQuery query;
    const std::string_view predicate = TakeCount(line, &query.weight);
    Result<scan::Predicate> parsed = scan::Predicate::Parse(predicate);
    if (!parsed.ok()) return AddContext(parsed.status(), "line", std::to_string(number));
    query.text = predicate;
    query.predicate = *std::move(parsed);
    queries.push_back(std::move(query));
  }
  return queries;
}

std::vector<std::string> ColumnsOf(const std::vector<LoggedQuery>& queries) {
  std::map<std::string, double> use;
  std::vector<std::string> columns;
  for (const LoggedQuery& query : queries) {
    for (const std::string& column : query.predicate.columns()) {
      if (use.emplace(column, 0).second) columns.push_back(column);
      use[column] += query.weight;
    }
  }
  std::stable_sort(columns.begin(), columns.end(), [&](const auto& a, const auto& b) {
    return use[a] > use[b];
  });
  return columns;
}

Fewest FewestPieces(const std::vector<PieceSize>& pieces, int64_t wanted_rows) {
  LeastPieces least;
  for (const PieceSize& piece : pieces) least.Add(piece);
  least.Finish();
  return least.Of(wanted_rows);
}

Result<std::vector<QueryCost>> MeasureQueries(store::Store& store, const TableView& view,
                                              const std::vector<LoggedQuery>& queries,
                                              const QueryCostOptions& options) {
  return QueryMeter(store, view, queries, options).Run();
}

}  // namespace grebe::layout

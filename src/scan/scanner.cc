#include "scan/scanner.h"

#include <arrow/util/parallel.h>

#include <algorithm>
#include <deque>
#include <set>
#include <unordered_set>

#include "base/clock.h"
#include "base/column_by_path.h"
#include "scan/ahead_store.h"
#include "scan/file_set.h"
#include "scan/group_plan.h"
#include "scan/row_reader.h"

namespace grebe::scan {
namespace {

// Row groups looked at together; a scan that stops early begins with one and doubles.
constexpr size_t kGroupsPerWindow = 256;
// What decoded rows may take more than their compressed pages: a guess for the windows.
constexpr int64_t kUnitRowsMin = 1024;
constexpr int64_t kUnitRowsMax = 256 << 10;
constexpr int64_t kDictionaryCacheBytes = 256 << 20;

// Rows of one row group to be read in one go.
struct Unit {
  size_t file = 0;
  int group = 0;
  std::vector<RowRange> sure;      // wanted without a look
  std::vector<RowRange> maybe;     // to be filtered
  int64_t bytes = 0;               // about what their pages take
};

int64_t CountRows(const std::vector<RowRange>& rows) {
  int64_t count = 0;
  for (const RowRange& range : rows) count += range.row_count();
  return count;
}

// Appends a range to sorted ones, joining it to the last where they touch.
void AppendRange(RowRange range, std::vector<RowRange>* rows) {
  if (range.empty()) return;
  if (!rows->empty() && rows->back().end >= range.begin) {
    rows->back().end = std::max(rows->back().end, range.end);
  } else {
    rows->push_back(range);
  }
}

std::vector<RowRange> Merge(const std::vector<RowRange>& a, const std::vector<RowRange>& b) {
  std::vector<RowRange> all(a.size() + b.size());
  std::merge(a.begin(), a.end(), b.begin(), b.end(), all.begin());
  std::vector<RowRange> out;
  for (const RowRange& range : all) AppendRange(range, &out);
  return out;
}

// Positions among the rows of `rows`, back to rows.
std::vector<RowRange> RowsAt(const std::vector<RowRange>& rows,
                             const std::vector<RowRange>& positions) {
  std::vector<RowRange> out;
  size_t at = 0;
  int64_t passed = 0;   // rows before rows[at]
  for (RowRange wanted : positions) {
    while (!wanted.empty()) {
      while (passed + rows[at].row_count() <= wanted.begin) passed += rows[at++].row_count();
      const int64_t end = std::min(wanted.end, passed + rows[at].row_count());
      AppendRange({rows[at].begin + wanted.begin - passed, rows[at].begin + end - passed}, &out);
      wanted.begin = end;
    }
  }
  return out;
}

// Rows [skip, skip + take) of these.
std::vector<RowRange> Window(const std::vector<RowRange>& rows, int64_t skip, int64_t take) {
  return RowsAt(rows, {{skip, skip + take}});
}

class ScannerImpl final : public Scanner {
 public:
  ScannerImpl(table::Snapshot snapshot, ScannerOptions options)
      : snapshot_(std::move(snapshot)), options_(std::move(options)),
        ahead_(*snapshot_.root.store, options_.coalesce),
        cache_(kDictionaryCacheBytes, 2 * options_.window_bytes_max),
        set_(snapshot_, options_, &ahead_, &cost_), skip_left_(options_.offset),
        limit_left_(options_.limit) {}

  Status Init() {
    if (options_.offset < 0) return InvalidArgument("negative offset", "offset", options_.offset);
    Stopwatch watch;
    ARROW_RETURN_NOT_OK(set_.Open());
    AddReads(ahead_.TakeCounters());
    ARROW_ASSIGN_OR_RAISE(candidates_, set_.JudgeRowGroups());
    groups_per_window_ = options_.limit >= 0 ? 1 : kGroupsPerWindow;
    cost_.stage_us.plan += watch.LapUs();
    cost_.stage_us.total += watch.TotalUs();
    return Status::OK();
  }

  const std::shared_ptr<arrow::Schema>& schema() const override { return set_.shape()->schema(); }
  ScanCost cost() const override { return cost_; }
  const std::shared_ptr<arrow::RecordBatch>& filter_rows() const override { return filter_rows_; }
  const std::vector<BadFile>& bad_files() const override { return set_.bad_files(); }

  Result<std::shared_ptr<arrow::RecordBatch>> Next() override {
    Stopwatch watch;
    while (ready_.empty() && limit_left_ != 0) {
      if (options_.stop != nullptr) ARROW_RETURN_NOT_OK(options_.stop->Check());
      if (!units_.empty()) {
        ARROW_RETURN_NOT_OK(ReadUnits());
      } else if (next_candidate_ < candidates_.size()) {
        ARROW_RETURN_NOT_OK(PlanWindow());
      } else {
        break;
      }
    }
    std::shared_ptr<arrow::RecordBatch> batch;
    if (!ready_.empty()) {
      batch = std::move(ready_.front().rows);
      filter_rows_ = std::move(ready_.front().filter_rows);
      ready_.pop_front();
    }
    cost_.stage_us.total += watch.TotalUs();
    return batch;
  }

 private:
  void AddReads(const ReadCounters& reads) {
    cost_.waves += reads.waves;
    cost_.requests += reads.requests;
    cost_.bytes_read += reads.bytes;
    cost_.gap_bytes += reads.gap_bytes;
  }

  // The next row groups: what their Bloom filters and page indexes leave of them becomes units.
  Status PlanWindow() {
    Stopwatch watch;
    ahead_.Clear();
    const size_t end = std::min(next_candidate_ + groups_per_window_, candidates_.size());
    const std::span<const FileSet::Candidate> window(candidates_.data() + next_candidate_,
                                                     end - next_candidate_);
    next_candidate_ = end;
    for (; let_go_ < window.front().file; ++let_go_) set_.files()[let_go_].LetGo();
    groups_per_window_ = std::min(groups_per_window_ * 2, kGroupsPerWindow);
    ARROW_ASSIGN_OR_RAISE(auto plans, PlanGroups(window, options_, &set_, &ahead_, &cost_));
    AddReads(ahead_.TakeCounters());
    for (const GroupPlan& plan : plans) SplitIntoUnits(plan);
    cost_.stage_us.plan += watch.LapUs();
    return Status::OK();
  }

  void SplitIntoUnits(const GroupPlan& plan) {
    const ScanFile& file = set_.files()[plan.file];
    const int64_t rows = std::max<int64_t>(file.groups[static_cast<size_t>(plan.group)].rows, 1);
    std::set<int> leaves;
    const auto add = [&](const table::RowShape& shape) {
      const auto& projection = shape.projection(file.schema.get()).leaves;
      leaves.insert(projection.begin(), projection.end());
    };
    add(*set_.shape());
    if (set_.filter_shape() != nullptr) add(*set_.filter_shape());
    int64_t bytes = 0;
    for (const int leaf : leaves) bytes += file.ChunkBytes(plan.group, leaf);
    const int64_t fitting = static_cast<int64_t>(static_cast<double>(options_.window_bytes_max) /
                                                 std::max<double>(1, static_cast<double>(bytes)) *
                                                 static_cast<double>(rows));
    const int64_t unit_rows = std::clamp(fitting, kUnitRowsMin, kUnitRowsMax);
    Unit unit{plan.file, plan.group, {}, {}, 0};
    int64_t held = 0;
    const auto flush = [&] {
      if (held == 0) return;
      unit.bytes = static_cast<int64_t>(static_cast<double>(bytes) * static_cast<double>(held) /
                                        static_cast<double>(rows));
      units_.push_back(std::move(unit));
      unit = {plan.file, plan.group, {}, {}, 0};
      held = 0;
    };
    for (const GroupPlan::Part& part : plan.parts) {
      RowRange left = part.rows;
      while (!left.empty()) {
        const int64_t take = std::min(left.row_count(), unit_rows - held);
        AppendRange({left.begin, left.begin + take}, part.all_rows ? &unit.sure : &unit.maybe);
        held += take;
        left.begin += take;
        if (held == unit_rows) flush();
      }
    }
    flush();
  }

  // Takes units up to the window's bytes, and reads them: filter columns, then the others.
  Status ReadUnits() {
    std::vector<Unit> window;
    int64_t bytes = 0;
    while (!units_.empty() && (window.empty() || bytes + units_.front().bytes <=
                                                     options_.window_bytes_max)) {
      bytes += units_.front().bytes;
      if (!set_.files()[units_.front().file].bad) window.push_back(std::move(units_.front()));
      units_.pop_front();
    }
    std::vector<std::vector<RowRange>> wanted;
    ARROW_RETURN_NOT_OK(FilterUnits(window, &wanted));
    ApplyLimits(&wanted);
    const int64_t mark = ahead_.mark();
    ARROW_RETURN_NOT_OK(ReadWanted(window, wanted));
    ahead_.Clear(mark);
    if (limit_left_ == 0) units_.clear();
    return Status::OK();
  }

  Status FilterUnits(const std::vector<Unit>& units, std::vector<std::vector<RowRange>>* wanted) {
    std::vector<RowsWanted> parts;
    std::vector<size_t> places;
    for (size_t i = 0; i < units.size(); ++i) {
      wanted->push_back(units[i].sure);
      if (units[i].maybe.empty()) continue;
      parts.push_back({&set_.files()[units[i].file], units[i].group, units[i].maybe});
      places.push_back(i);
      cost_.rows_filtered += CountRows(units[i].maybe);
    }
    if (parts.empty()) return Status::OK();
    auto batches = Read(*set_.filter_shape(), parts);
    Stopwatch watch;
    std::vector<Status> failed(parts.size());
    ARROW_RETURN_NOT_OK(arrow::internal::OptionalParallelFor(
        parts.size() > 1, static_cast<int>(parts.size()), [&](int i) {
          const auto at = static_cast<size_t>(i);
          std::vector<RowRange>& rows = (*wanted)[places[at]];
          failed[at] = FilterPart(parts[at], batches[at], &rows);
          if (!failed[at].ok()) rows.clear();
          return Status::OK();
        }));
    cost_.stage_us.decode += watch.LapUs();
    for (size_t i = 0; i < parts.size(); ++i) {
      if (!failed[i].ok()) ARROW_RETURN_NOT_OK(set_.OnBadFile(*parts[i].file, failed[i]));
    }
    return Status::OK();
  }

  // The filter's columns by path.
  Result<std::shared_ptr<arrow::RecordBatch>> Flatten(const arrow::RecordBatch& batch) const {
    arrow::ArrayVector columns;
    arrow::FieldVector fields;
    for (const PredicateColumn& column : set_.predicate()->columns()) {
      ARROW_ASSIGN_OR_RAISE(auto array, ColumnByPath(batch, column.path));
      fields.push_back(arrow::field(column.path, array->type()));
      columns.push_back(std::move(array));
    }
    return arrow::RecordBatch::Make(arrow::schema(std::move(fields)), batch.num_rows(),
                                    std::move(columns));
  }

  // Adds the wanted rows of one part to *rows.
  Status FilterPart(const RowsWanted& part,
                    const Result<std::shared_ptr<arrow::RecordBatch>>& batch,
                    std::vector<RowRange>* rows) const {
    ARROW_RETURN_NOT_OK(batch.status());
    ARROW_ASSIGN_OR_RAISE(const auto flat, Flatten(**batch));
    std::vector<RowRange> positions;
    ARROW_RETURN_NOT_OK(options_.filter->judge ? options_.filter->judge(*flat, &positions)
                                               : set_.predicate()->Filter(*flat, 0, &positions));
    *rows = Merge(*rows, RowsAt(part.rows, positions));
    return Status::OK();
  }

  // Drops the rows that offset and limit leave out.
  void ApplyLimits(std::vector<std::vector<RowRange>>* wanted) {
    for (std::vector<RowRange>& rows : *wanted) {
      const int64_t count = CountRows(rows);
      const int64_t skip = std::min(skip_left_, count);
      const int64_t take = limit_left_ < 0 ? count - skip : std::min(limit_left_, count - skip);
      skip_left_ -= skip;
      if (limit_left_ > 0) limit_left_ -= take;
      if (take == 0) {
        rows.clear();
      } else if (take < count) {
        rows = Window(rows, skip, take);
      }
    }
  }

  Status ReadWanted(const std::vector<Unit>& units,
                    const std::vector<std::vector<RowRange>>& wanted) {
    std::vector<GroupLeaves> missing;
    for (size_t i = 0; i < units.size(); ++i) {
      if (!wanted[i].empty()) missing.push_back({units[i].file, units[i].group});
    }
    if (missing.empty()) return Status::OK();
    Stopwatch watch;
    ARROW_RETURN_NOT_OK(FindPages(missing, *set_.shape(), options_, &set_, &ahead_, &cost_));
    AddReads(ahead_.TakeCounters());
    cost_.stage_us.plan += watch.LapUs();
    std::vector<RowsWanted> parts;
    for (size_t i = 0; i < units.size(); ++i) {
      const ScanFile& file = set_.files()[units[i].file];
      if (!wanted[i].empty() && !file.bad) {
        parts.push_back({&file, units[i].group, wanted[i]});
      }
    }
    auto batches = Read(*set_.shape(), parts);
    decltype(batches) filter_rows(parts.size(), std::shared_ptr<arrow::RecordBatch>());
    if (options_.keep_filter_rows) filter_rows = Read(*set_.filter_shape(), parts);
    for (size_t i = 0; i < batches.size(); ++i) {
      const Status status = batches[i].ok() ? filter_rows[i].status() : batches[i].status();
      if (!status.ok()) {
        ARROW_RETURN_NOT_OK(set_.OnBadFile(*parts[i].file, status));
        continue;
      }
      cost_.rows += (*batches[i])->num_rows();
      Ready& ready = ready_.emplace_back(Ready{*std::move(batches[i]), nullptr});
      if (options_.keep_filter_rows) {
        ARROW_ASSIGN_OR_RAISE(ready.filter_rows, Flatten(**filter_rows[i]));
      }
    }
    return Status::OK();
  }

  std::vector<Result<std::shared_ptr<arrow::RecordBatch>>> Read(
      const table::RowShape& shape, const std::vector<RowsWanted>& parts) {
    RowReaderOptions options;
    options.cache = &cache_;
    options.coalesce = options_.coalesce;
    options.verify_crc = options_.verify_crc;
    options.counted_pages = &counted_pages_;
    RowReaderCounters counters;
    auto out = ReadRows(ahead_, shape, parts, options, &counters);
    AddReads(ahead_.TakeCounters());
    cost_.gap_bytes += counters.gap_bytes;
    cost_.pages_read += counters.pages;
    cost_.dictionary_pages += counters.dictionary_pages;
    cost_.cache_hits += counters.cache_hits;
    cost_.stage_us.fetch += counters.fetch_us;
    cost_.stage_us.decode += counters.decode_us;
    for (const RowsWanted& part : parts) {
      if (shape.projection(part.file->schema.get()).leaves.empty()) continue;
      if (files_read_.insert(part.file).second) ++cost_.files_read;
      if (groups_read_.insert({part.file, part.row_group}).second) ++cost_.row_groups_read;
    }
    return out;
  }

  const table::Snapshot snapshot_;
  const ScannerOptions options_;
  ScanCost cost_;
  AheadStore ahead_;
  pq::DecodeCache cache_;
  FileSet set_;
  std::vector<FileSet::Candidate> candidates_;
  size_t next_candidate_ = 0;
  size_t let_go_ = 0;   // files before are done
  size_t groups_per_window_ = kGroupsPerWindow;
  std::deque<Unit> units_;
  struct Ready {
    std::shared_ptr<arrow::RecordBatch> rows, filter_rows;
  };
  std::deque<Ready> ready_;
  std::shared_ptr<arrow::RecordBatch> filter_rows_;
  int64_t skip_left_;
  int64_t limit_left_;   // negative: no limit
  std::unordered_set<uint64_t> counted_pages_;
  std::set<const ScanFile*> files_read_;
  std::set<std::pair<const ScanFile*, int>> groups_read_;
};

}  // namespace

Filter FilterOf(Predicate predicate) {
  Filter filter;
  filter.columns = predicate.columns();
  filter.bind = [predicate = std::move(predicate)](std::vector<PredicateColumn> columns) {
    return BoundPredicate::Bind(predicate, std::move(columns));
  };
  return filter;
}

Result<std::unique_ptr<Scanner>> Scanner::Open(table::Snapshot snapshot, ScannerOptions options) {
  auto scanner = std::make_unique<ScannerImpl>(std::move(snapshot), std::move(options));
  ARROW_RETURN_NOT_OK(scanner->Init());
  return scanner;
}

}  // namespace grebe::scan

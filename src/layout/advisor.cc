#include "layout/advisor.h"

#include <arrow/array/builder_primitive.h>
#include <arrow/array/concatenate.h>
#include <arrow/array/util.h>
#include <arrow/compute/api_vector.h>
#include <arrow/record_batch.h>
#include <arrow/util/parallel.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "base/hash.h"
#include "base/rng.h"
#include "layout/layout_spec.h"
#include "layout/leaf_column.h"
#include "layout/sample_order.h"
#include "layout/table_tree.h"
#include "scan/predicate_value.h"

namespace grebe::layout {
namespace {

constexpr size_t kColumnsMax = 4;         // of a candidate
// Of candidates that are as good, a tree comes last: it fits one log only.
constexpr int kTreeColumns = static_cast<int>(kColumnsMax) + 1;
constexpr int64_t kPieceRowsMin = 32;     // sampled rows of a simulated file
constexpr int64_t kPiecesMin = 16;
constexpr double kFollows = 0.95;         // rank correlation from which a column adds nothing

double Correlation(const std::vector<double>& a, const std::vector<double>& b) {
  const auto mean = [](const std::vector<double>& x) {
    return std::accumulate(x.begin(), x.end(), 0.0) / static_cast<double>(x.size());
  };
  const double mean_a = mean(a), mean_b = mean(b);
  double ab = 0, aa = 0, bb = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    ab += (a[i] - mean_a) * (b[i] - mean_b);
    aa += (a[i] - mean_a) * (a[i] - mean_a);
    bb += (b[i] - mean_b) * (b[i] - mean_b);
  }
  return aa > 0 && bb > 0 ? ab / std::sqrt(aa * bb) : 0;
}

std::vector<double> AsNumbers(const std::vector<uint32_t>& ranks) {
  return {ranks.begin(), ranks.end()};
}

bool IsEquality(const scan::BoundAtom& atom) {
  return !atom.negated &&
         (atom.op == scan::BoundAtom::Op::kEqual || atom.op == scan::BoundAtom::Op::kIn);
}

struct AskedQuery {
  std::shared_ptr<const scan::BoundPredicate> predicate;
  std::vector<size_t> columns;      // of the view
  double weight = 1;
};

class Advisor {
 public:
  Advisor(const TableView& view, const TableSample& sample, const StopToken* stop)
      : view_(view), sample_(sample), stop_(stop) {}

  Result<Advice> Run(const std::vector<LoggedQuery>& queries, int64_t target_file_bytes) {
    const auto own = static_cast<int64_t>(view_.files.size());
    int64_t pieces = target_file_bytes > 0 ? (view_.bytes + target_file_bytes - 1) /
                                                 target_file_bytes
                                           : own;
    pieces = std::min(std::max(pieces, kPiecesMin), std::max<int64_t>(1, sample_.rows /
                                                                            kPieceRowsMin));
    advice_.files = pieces;
    for (const LoggedQuery& query : queries) ARROW_RETURN_NOT_OK(Bind(query));
    ARROW_RETURN_NOT_OK(DescribeColumns());
    ARROW_RETURN_NOT_OK(MeasureFewest());
    ARROW_RETURN_NOT_OK(MeasureAsItIs());
    ARROW_RETURN_NOT_OK(TryAll());
    ARROW_RETURN_NOT_OK(TryTree(queries));
    RankCandidates();
    return std::move(advice_);
  }

 private:
  double PieceBytes() const {
    return static_cast<double>(view_.bytes) / static_cast<double>(advice_.files);
  }

  Status Bind(const LoggedQuery& query) {
    AskedQuery asked;
    asked.weight = query.weight;
    std::vector<scan::PredicateColumn> columns;
    for (const std::string& path : query.predicate.columns()) {
      const auto found = std::find_if(view_.columns.begin(), view_.columns.end(),
                                      [&](const ViewColumn& c) { return c.path == path; });
      if (found == view_.columns.end()) return InvalidArgument("no such column", "column", path);
      asked.columns.push_back(static_cast<size_t>(found - view_.columns.begin()));
      columns.push_back({path, found->own_type});
    }
    Result<std::shared_ptr<const scan::BoundPredicate>> bound =
        scan::BoundPredicate::Bind(query.predicate, std::move(columns));
    if (!bound.ok()) return AddContext(bound.status(), "predicate", query.text);
    asked.predicate = *bound;
    weight_ += asked.weight;
    queries_.push_back(std::move(asked));
    return Status::OK();
  }

  // How many values of the column the query names where nothing else could let a row match; 0: it
  // can match rows of any value.
  int64_t EqualValues(const AskedQuery& query, size_t column) const {
    int64_t values = 0;
    const auto is_on = [&](const scan::BoundAtom& atom) {
      return IsEquality(atom) && query.columns[static_cast<size_t>(atom.column)] == column;
    };
    const bool other_way = query.predicate->MayHold([&](const scan::BoundAtom& atom) {
      if (is_on(atom)) values += static_cast<int64_t>(atom.values.size());
      return !is_on(atom);
    });
    return other_way ? 0 : std::max<int64_t>(1, values);
  }

  Status DescribeColumns() {
    std::map<size_t, ColumnUse> uses;
    for (const AskedQuery& query : queries_) {
      for (size_t column : query.columns) {
        ColumnUse& use = uses[column];
        use.column = column;
        use.weight += query.weight / weight_;
        if (EqualValues(query, column) > 0) use.equality_weight += query.weight / weight_;
      }
    }
    std::vector<double> places(static_cast<size_t>(sample_.rows));
    std::iota(places.begin(), places.end(), 0.0);
    for (auto& [column, use] : uses) {
      ARROW_ASSIGN_OR_RAISE(ranked_[column], RankColumn(*sample_.columns[column]));
      const RankedColumn& ranked = ranked_[column];
      use.distinct = ranked.distinct();
      use.distinct_prefixes = static_cast<int64_t>(
          std::set<uint64_t>(ranked.words.begin(), ranked.words.end()).size());
      use.null_share = static_cast<double>(ranked.nulls) /
                       static_cast<double>(std::max<int64_t>(1, sample_.rows));
      use.order_correlation = Correlation(places, AsNumbers(ranked.ranks));
      use.has_bounds = std::all_of(view_.files.begin(), view_.files.end(), [&](const FileView& f) {
        return f.rows == 0 || f.bounds[column].only_nulls() || f.bounds[column].has_both();
      });
      advice_.columns.push_back(use);
    }
    std::stable_sort(advice_.columns.begin(), advice_.columns.end(),
                     [](const ColumnUse& a, const ColumnUse& b) { return a.weight > b.weight; });
    for (const ColumnUse& use : advice_.columns) {
      if (view_.columns[use.column].partition >= 0 || use.distinct < 2) continue;
      const auto numbers = AsNumbers(ranked_[use.column].ranks);
      const auto leader = std::find_if(chosen_.begin(), chosen_.end(), [&](size_t other) {
        return std::abs(Correlation(numbers, AsNumbers(ranked_[other].ranks))) >= kFollows;
      });
      if (leader != chosen_.end()) {
        advice_.followers.emplace_back(*leader, use.column);
      } else if (chosen_.size() < kColumnsMax) {
        chosen_.push_back(use.column);
      }
    }
    return Status::OK();
  }

  // The fewest whole files that could hold the wanted rows, by their share of the sample.
  Status MeasureFewest() {
    for (const AskedQuery& query : queries_) {
      std::vector<std::shared_ptr<arrow::Array>> columns;
      arrow::FieldVector fields;
      for (size_t column : query.columns) {
        columns.push_back(sample_.columns[column]);
        fields.push_back(arrow::field(view_.columns[column].path, columns.back()->type()));
      }
      const auto batch = arrow::RecordBatch::Make(arrow::schema(fields), sample_.rows, columns);
      std::vector<RowRange> wanted;
      ARROW_RETURN_NOT_OK(query.predicate->Filter(*batch, 0, &wanted));
      double rows = 0;
      for (const RowRange& range : wanted) rows += static_cast<double>(range.row_count());
      const double share = rows / static_cast<double>(std::max<int64_t>(1, sample_.rows));
      const double files = std::max(1.0, std::ceil(share * static_cast<double>(advice_.files)));
      advice_.bytes_fewest += query.weight / weight_ * files * PieceBytes();
    }
    return Status::OK();
  }

  Status MeasureAsItIs() {
    Candidate candidate;
    for (const AskedQuery& query : queries_) {
      std::vector<scan::ColumnBounds> bounds(query.columns.size());
      for (const FileView& file : view_.files) {
        for (size_t c = 0; c < bounds.size(); ++c) {
          bounds[c].bounds.push_back(file.bounds[query.columns[c]]);
        }
      }
      ARROW_ASSIGN_OR_RAISE(const auto verdicts,
                            query.predicate->Judge(bounds, view_.files.size()));
      double bytes = 0;
      for (size_t f = 0; f < view_.files.size(); ++f) {
        if (verdicts.may_match[f]) bytes += static_cast<double>(view_.files[f].bytes);
      }
      candidate.query_bytes.push_back(bytes);
      candidate.bytes_read += query.weight / weight_ * bytes;
    }
    advice_.candidates.push_back(std::move(candidate));
    return Status::OK();
  }

  // Bounds of the pieces in one column.
  Result<scan::ColumnBounds> BoundsOf(const CutOrder& order, size_t column) const {
    const RankedColumn& ranked = ranked_.at(column);
    scan::ColumnBounds out;
    size_t begin = 0;
    for (size_t end : order.ends) {
      uint32_t low = UINT32_MAX, high = 0;
      pq::Bounds bounds;
      bounds.value_count = static_cast<int64_t>(end - begin);
      bounds.null_count = 0;
      for (size_t i = begin; i < end; ++i) {
        const uint32_t rank = ranked.ranks[order.rows[i]];
        if (rank == 0) ++*bounds.null_count;
        // A NaN is no bound: such a piece may hold it besides.
        if (rank == 0 || (ranked.has_nan && rank == ranked.distinct())) continue;
        low = std::min(low, rank);
        high = std::max(high, rank);
      }
      if (high > 0) {
        const arrow::Array& values = *sample_.columns[column];
        ARROW_ASSIGN_OR_RAISE(bounds.min, values.GetScalar(ranked.first_rows[low]));
        ARROW_ASSIGN_OR_RAISE(bounds.max, values.GetScalar(ranked.first_rows[high]));
        bounds.min_exact = bounds.max_exact = true;
      }
      out.bounds.push_back(std::move(bounds));
      begin = end;
    }
    return out;
  }

  // Of each query; bucket: the column that the pieces are buckets of; -1: none.
  Result<std::vector<double>> QueryBytes(const CutOrder& order, int bucket) const {
    if (stop_ != nullptr) ARROW_RETURN_NOT_OK(stop_->Check());
    std::map<size_t, scan::ColumnBounds> bounds;
    for (const ColumnUse& use : advice_.columns) {
      ARROW_ASSIGN_OR_RAISE(bounds[use.column], BoundsOf(order, use.column));
    }
    std::vector<double> out;
    for (const AskedQuery& query : queries_) {
      std::vector<scan::ColumnBounds> asked;
      for (size_t column : query.columns) asked.push_back(bounds[column]);
      ARROW_ASSIGN_OR_RAISE(const auto verdicts, query.predicate->Judge(asked, order.ends.size()));
      // By rows, since pieces of a curve differ.
      double rows = 0;
      size_t begin = 0;
      for (size_t p = 0; p < order.ends.size(); ++p) {
        if (verdicts.may_match[p]) rows += static_cast<double>(order.ends[p] - begin);
        begin = order.ends[p];
      }
      double bytes = rows / static_cast<double>(sample_.rows) * static_cast<double>(view_.bytes);
      if (bucket >= 0) {
        const int64_t values = EqualValues(query, static_cast<size_t>(bucket));
        if (values > 0) bytes = std::min(bytes, static_cast<double>(values) * PieceBytes());
      }
      out.push_back(std::max(bytes, PieceBytes()));
    }
    return out;
  }

  void AddCandidate(std::string by, std::string mode, int columns,
                    std::vector<double> query_bytes) {
    const double mean = MeanBytes(query_bytes);
    advice_.candidates.push_back(
        {std::move(by), std::move(mode), columns, mean, std::move(query_bytes)});
  }

  // Of a query, by weight.
  double MeanBytes(const std::vector<double>& query_bytes) const {
    double mean = 0;
    for (size_t q = 0; q < queries_.size(); ++q) {
      mean += queries_[q].weight / weight_ * query_bytes[q];
    }
    return mean;
  }

  Status Try(std::string by, std::string mode, int columns, const CutOrder& order, int bucket) {
    ARROW_ASSIGN_OR_RAISE(auto query_bytes, QueryBytes(order, bucket));
    AddCandidate(std::move(by), std::move(mode), columns, std::move(query_bytes));
    return Status::OK();
  }

  // One tree learns from one half of the lines, chosen at random, and is judged by the other half;
  // another the other way round. So no query is judged by cuts that were made for it.
  Status TryTree(const std::vector<LoggedQuery>& queries) {
    if (sample_.rows == 0 || queries.size() < 2) return Status::OK();
    arrow::FieldVector fields;
    arrow::ArrayVector arrays;
    std::vector<std::string> names;
    for (const ColumnUse& use : advice_.columns) {
      const ViewColumn& column = view_.columns[use.column];
      if (column.partition >= 0) continue;
      names.push_back(column.path);
      fields.push_back(arrow::field(column.path, column.type));
      arrays.push_back(sample_.columns[use.column]);
    }
    const auto rows = arrow::RecordBatch::Make(arrow::schema(std::move(fields)), sample_.rows,
                                               std::move(arrays));
    const double target = static_cast<double>(sample_.rows) / static_cast<double>(advice_.files);
    std::vector<double> judged(queries.size());
    const auto half_of = [](size_t query) { return Mix64(query + 1) % 2; };
    for (const uint64_t half : {0, 1}) {
      std::vector<LoggedQuery> log;
      for (size_t q = 0; q < queries.size(); ++q) {
        if (half_of(q) == half) log.push_back(queries[q]);
      }
      const auto tree = TableTree::Learn(log, names, *rows, target);
      if (IsKind(tree.status(), ErrorKind::kInvalidArgument)) return Status::OK();   // none helps
      ARROW_RETURN_NOT_OK(tree.status());
      ARROW_ASSIGN_OR_RAISE(const CutOrder order, TreeOrder(**tree, *rows));
      ARROW_ASSIGN_OR_RAISE(const auto query_bytes, QueryBytes(order, -1));
      for (size_t q = 0; q < queries.size(); ++q) {
        if (half_of(q) != half) judged[q] = query_bytes[q];
      }
    }
    AddCandidate(kTreeCandidate, "rank", kTreeColumns, std::move(judged));
    return Status::OK();
  }

  // A layout through columns of the view, as text.
  std::string TextOf(LayoutKind kind, const std::vector<size_t>& columns,
                     std::vector<int> bits_max = {}) const {
    LayoutSpec spec;
    spec.kind = kind;
    for (size_t column : columns) spec.columns.push_back(view_.columns[column].path);
    spec.bits_max = std::move(bits_max);
    spec.bucket_count = static_cast<int>(advice_.files);
    return spec.ToString();
  }

  Status TrySorts() {
    for (size_t first : chosen_) {
      ARROW_RETURN_NOT_OK(Try(TextOf(LayoutKind::kSort, {first}), "rank", 1,
                              SortOrder({&ranked_[first]}, advice_.files), -1));
      for (size_t second : chosen_) {
        if (second == first) continue;
        ARROW_RETURN_NOT_OK(Try(TextOf(LayoutKind::kSort, {first, second}), "rank", 2,
                                SortOrder({&ranked_[first], &ranked_[second]}, advice_.files),
                                -1));
      }
    }
    return Status::OK();
  }

  Status TryCurves(const std::vector<size_t>& columns) {
    ColumnRefs refs;
    for (size_t column : columns) refs.push_back(&ranked_[column]);
    for (const bool raw : {false, true}) {
      for (const auto kind : {curve::CurveKind::kZOrder, curve::CurveKind::kHilbert}) {
        const auto layout = kind == curve::CurveKind::kZOrder ? LayoutKind::kZOrder
                                                              : LayoutKind::kHilbert;
        ARROW_RETURN_NOT_OK(Try(TextOf(layout, columns), raw ? "raw" : "rank",
                                static_cast<int>(columns.size()),
                                CurveOrder(kind, raw, refs, advice_.files), -1));
      }
    }
    return Status::OK();
  }

  // A Z-order in which columns after the first have few bits: one after another, first the one that
  // is asked for least. A candidate only where that saves more than a little.
  Status TryFewBits(const std::vector<size_t>& columns) {
    constexpr double kWorth = 0.97;
    ColumnRefs refs;
    for (size_t column : columns) refs.push_back(&ranked_[column]);
    const auto judge = [&](const std::vector<int>& bits) {
      return QueryBytes(CurveOrder(curve::CurveKind::kZOrder, false, refs, advice_.files, bits),
                        -1);
    };
    std::vector<int> bits(columns.size());
    ARROW_ASSIGN_OR_RAISE(std::vector<double> best, judge(bits));
    for (size_t c = columns.size() - 1; c > 0; --c) {
      for (const int few : {3, 2, 1}) {
        std::vector<int> tried = bits;
        tried[c] = few;
        ARROW_ASSIGN_OR_RAISE(std::vector<double> bytes, judge(tried));
        if (MeanBytes(bytes) > kWorth * MeanBytes(best)) continue;
        best = std::move(bytes);
        bits = std::move(tried);
      }
    }
    if (std::all_of(bits.begin(), bits.end(), [](int b) { return b == 0; })) return Status::OK();
    AddCandidate(TextOf(LayoutKind::kZOrder, columns, bits), "rank",
                 static_cast<int>(columns.size()), std::move(best));
    return Status::OK();
  }

  Status TryAll() {
    if (sample_.rows == 0) return Status::OK();
    ARROW_RETURN_NOT_OK(TrySorts());
    for (uint32_t set = 1; set < (1u << chosen_.size()); ++set) {
      std::vector<size_t> columns;
      for (size_t i = 0; i < chosen_.size(); ++i) {
        if (set >> i & 1) columns.push_back(chosen_[i]);
      }
      if (columns.size() < 2) continue;
      ARROW_RETURN_NOT_OK(TryCurves(columns));
      ARROW_RETURN_NOT_OK(TryFewBits(columns));
    }
    for (const ColumnUse& use : advice_.columns) {
      if (use.equality_weight <= 0 || view_.columns[use.column].partition >= 0) continue;
      ARROW_RETURN_NOT_OK(Try(TextOf(LayoutKind::kBucket, {use.column}), "rank", 1,
                              BucketOrder(ranked_[use.column], advice_.files),
                              static_cast<int>(use.column)));
    }
    return Status::OK();
  }

  void RankCandidates() {
    std::stable_sort(advice_.candidates.begin(), advice_.candidates.end(),
                     [](const Candidate& a, const Candidate& b) {
                       return a.bytes_read < b.bytes_read;
                     });
    // Of those that are about as good as the best, the one of the fewest columns comes first.
    constexpr double kAsGood = 1.03;
    auto end = advice_.candidates.begin();
    while (end != advice_.candidates.end() &&
           end->bytes_read <= advice_.candidates[0].bytes_read * kAsGood) {
      ++end;
    }
    std::stable_sort(advice_.candidates.begin(), end, [](const Candidate& a, const Candidate& b) {
      return a.columns < b.columns;
    });
  }

  const TableView& view_;
  const TableSample& sample_;
  const StopToken* stop_;
  std::vector<AskedQuery> queries_;
  double weight_ = 0;
  std::map<size_t, RankedColumn> ranked_;
  std::vector<size_t> chosen_;
  Advice advice_;
};

}  // namespace

Result<TableSample> ReadTableSample(store::Store& store, const TableView& view, int64_t sample_rows,
                                    uint64_t seed, const StopToken* stop) {
  ARROW_RETURN_NOT_OK(scan::EnsureCompute());
  const int64_t step = std::max<int64_t>(1, (view.rows + sample_rows - 1) / sample_rows);
  std::vector<size_t> columns(view.columns.size());
  std::iota(columns.begin(), columns.end(), size_t{0});
  std::vector<int64_t> file_begins;
  int64_t rows_before = 0;
  for (const FileView& file : view.files) {
    file_begins.push_back(rows_before);
    rows_before += file.rows;
  }
  std::vector<std::vector<arrow::ArrayVector>> parts(view.files.size());
  ARROW_RETURN_NOT_OK(arrow::internal::ParallelFor(
      static_cast<int>(view.files.size()), [&](int i) -> Status {
        const auto f = static_cast<size_t>(i);
        parts[f].resize(columns.size());
        return ScanViewColumns(
            store, view, view.files[f], columns, stop,
            [&](const ViewArrays& arrays, int64_t first_row, int64_t rows) -> Status {
              // One row of each step of the table's rows, wherever the files begin.
              const int64_t begin = file_begins[f] + first_row;
              arrow::Int64Builder builder;
              for (int64_t s = begin / step; s * step < begin + rows; ++s) {
                const auto row = s * step + static_cast<int64_t>(
                    Rng(seed ^ static_cast<uint64_t>(s)).Below(static_cast<uint64_t>(step)));
                if (row >= begin && row < begin + rows) {
                  ARROW_RETURN_NOT_OK(builder.Append(row - begin));
                }
              }
              ARROW_ASSIGN_OR_RAISE(const auto places, builder.Finish());
              for (const auto& [column, values] : arrays) {
                ARROW_ASSIGN_OR_RAISE(
                    auto own, scan::ToComparable(values, view.columns[column].type));
                ARROW_ASSIGN_OR_RAISE(auto taken, arrow::compute::Take(*own, *places));
                parts[f][column].push_back(std::move(taken));
              }
              return Status::OK();
            });
      }));
  TableSample sample;
  for (size_t c = 0; c < columns.size(); ++c) {
    arrow::ArrayVector all;
    for (auto& file : parts) all.insert(all.end(), file[c].begin(), file[c].end());
    if (all.empty()) {
      ARROW_ASSIGN_OR_RAISE(auto none, arrow::MakeEmptyArray(view.columns[c].type));
      all.push_back(std::move(none));
    }
    ARROW_ASSIGN_OR_RAISE(auto column, arrow::Concatenate(all));
    sample.rows = column->length();
    sample.columns.push_back(std::move(column));
  }
  return sample;
}

Result<Advice> AdviseOnSample(const TableView& view, const TableSample& sample,
                              const std::vector<LoggedQuery>& queries, int64_t target_file_bytes,
                              const StopToken* stop) {
  return Advisor(view, sample, stop).Run(queries, target_file_bytes);
}

}  // namespace grebe::layout

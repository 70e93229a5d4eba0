// Index: opening, Get and Count. Everything else is done by the rooms it joins.
#include <unistd.h>

#include <algorithm>
#include <map>
#include <mutex>

#include "base/clock.h"
#include "base/hash.h"
#include "base/take_rows.h"
#include "engine/build.h"
#include "engine/covering_types.h"
#include "engine/engine.h"
#include "engine/index_report.h"
#include "engine/key_range.h"
#include "engine/key_rows.h"
#include "engine/scan_index.h"
#include "engine/table_context.h"
#include "grebe/lookup.h"
#include "index/index_view.h"
#include "lookup/key_check.h"
#include "lookup/row_fetch.h"
#include "table/row_shape.h"

namespace grebe {
namespace {

using engine::KeyRows;
using engine::RowSet;

constexpr int64_t kCacheBytesMin = 256 << 20;
constexpr int kOpenAttempts = 5;

// A cache's budget: as given, or a share of the machine's memory.
int64_t CacheBudget(int64_t given, int64_t share) {
  if (given >= 0) return given;
  const int64_t memory = int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGE_SIZE);
  return std::max(kCacheBytesMin, memory / share);
}

class IndexImpl final : public Index {
 public:
  IndexImpl(engine::FoundIndex found, store::Location root, std::shared_ptr<index::IndexView> view,
            std::vector<key::KeyType> key_types, const CacheOptions& cache, Explain open_cost)
      : description_(engine::Describe(found.name, found.manifest)),
        root_(std::move(root)),
        view_(std::move(view)),
        codec_(std::move(key_types)),
        cache_(CacheBudget(cache.dictionary_bytes_max, 8), CacheBudget(cache.page_bytes_max, 16)),
        open_cost_(open_cost) {
    arrow::FieldVector fields;
    for (size_t i = 0; i < found.manifest.key.size(); ++i) {
      key_names_.push_back(found.manifest.key[i].name);
      fields.push_back(arrow::field(key_names_.back(), codec_.types()[i].value_type()));
    }
    key_schema_ = arrow::schema(std::move(fields));
  }

  // Partition types follow from the paths of all live files.
  Status Init() {
    std::vector<std::string_view> paths;
    for (const auto& file : view_->files()) paths.push_back(file.path);
    ARROW_ASSIGN_OR_RAISE(partitions_, table::InferPartitions(paths));
    return Status::OK();
  }

  const IndexDescription& description() const override { return description_; }
  const std::shared_ptr<arrow::Schema>& key_schema() const override { return key_schema_; }

  Result<std::shared_ptr<arrow::Schema>> row_schema() override {
    ARROW_ASSIGN_OR_RAISE(auto shape, ShapeOf({}));
    return shape->schema();
  }

  Result<GetResult> Get(const arrow::RecordBatch& keys, const GetOptions& options) override {
    if (options.offset < 0) return InvalidArgument("negative offset", "offset", options.offset);
    Stopwatch watch;
    GetResult result;
    result.explain = TakeOpenCost();
    ARROW_ASSIGN_OR_RAISE(auto shape, ShapeOf(options.columns));
    const bool covered = IsCovered(options.columns, *shape->schema());
    ARROW_ASSIGN_OR_RAISE(auto asked, Probe(keys, covered, !covered, &result.explain));
    if (covered) {
      ARROW_RETURN_NOT_OK(GetCovered(asked, *shape, options, &result));
    } else {
      ARROW_RETURN_NOT_OK(GetFromPages(&asked, shape, options, &result));
    }
    result.explain.rows = result.rows->num_rows();
    result.explain.stage_us.total = watch.TotalUs() + result.explain.stage_us.open;
    return result;
  }

  Result<GetResult> GetRange(const KeyRange& range, const GetOptions& options) override {
    if (options.offset < 0) return InvalidArgument("negative offset", "offset", options.offset);
    Stopwatch watch;
    GetResult result;
    result.explain = TakeOpenCost();
    ARROW_ASSIGN_OR_RAISE(const auto ordered, Ordered(range));
    ARROW_ASSIGN_OR_RAISE(auto shape, ShapeOf(options.columns));
    Stopwatch probe;
    index::ProbeCounters counters;
    KeyRows found;
    ARROW_ASSIGN_OR_RAISE(found.runs,
                          view_->FindRange(ordered, {options.offset, options.limit, true},
                                           &counters));
    AddCounters(counters, &result.explain);
    result.explain.stage_us.probe += probe.LapUs();
    const RowSet rows({found});
    const lookup::FetchPart part{shape.get(), rows.files()};
    ARROW_ASSIGN_OR_RAISE(auto batches,
                          lookup::FetchRows(*view_, *root_.store, std::span(&part, 1),
                                            FetchOptionsOf(options), &result.explain));
    if (ReadsKey(*batches[0]->schema())) {
      ARROW_RETURN_NOT_OK(CheckOrder(ordered, found, rows, *batches[0], &result.explain));
    }
    ARROW_RETURN_NOT_OK(TakeRows(rows, {found}, *shape, batches[0], &result));
    result.explain.rows = result.rows->num_rows();
    result.explain.stage_us.total = watch.TotalUs() + result.explain.stage_us.open;
    return result;
  }

  Result<CountResult> CountRange(const KeyRange& range) override {
    Stopwatch watch;
    CountResult result;
    result.explain = TakeOpenCost();
    ARROW_ASSIGN_OR_RAISE(const auto ordered, Ordered(range));
    index::ProbeCounters counters;
    ARROW_ASSIGN_OR_RAISE(const int64_t count, view_->CountRange(ordered, &counters));
    AddCounters(counters, &result.explain);
    result.counts.push_back(count);
    result.explain.rows = count;
    result.explain.stage_us.probe = watch.TotalUs();
    result.explain.stage_us.total = watch.TotalUs() + result.explain.stage_us.open;
    return result;
  }

  Result<CountResult> Count(const arrow::RecordBatch& keys) override {
    Stopwatch watch;
    CountResult result;
    result.explain = TakeOpenCost();
    const bool may_verify = !codec_.is_word();
    ARROW_ASSIGN_OR_RAISE(auto asked, Probe(keys, false, may_verify, &result.explain));
    const bool all_exact = std::all_of(asked.keys.begin(), asked.keys.end(),
                                       [](const KeyRows& key) { return key.exact; });
    if (!all_exact) {
      ARROW_RETURN_NOT_OK(VerifyCandidates(&asked, FetchOptionsOf({}), &result.explain));
    }
    for (const KeyRows& key : asked.keys) result.counts.push_back(key.row_count());
    for (int64_t count : result.counts) result.explain.rows += count;
    result.explain.stage_us.total = watch.TotalUs() + result.explain.stage_us.open;
    return result;
  }

 private:
  // The keys asked for, in canonical form, and where their rows are.
  struct Asked {
    key::EncodedKeys encoded;
    std::vector<KeyRows> keys;
  };

  // The cost of opening is told once, in the first call's record.
  Explain TakeOpenCost() {
    std::lock_guard lock(mutex_);
    return std::exchange(open_cost_, {});
  }

  lookup::FetchOptions FetchOptionsOf(const GetOptions& options) {
    lookup::FetchOptions out;
    out.cache = &cache_;
    out.coalesce = options.coalesce;
    out.verify_crc = options.verify_crc;
    return out;
  }

  // Resolved columns are kept: services ask for the same ones again and again.
  Result<std::shared_ptr<const table::RowShape>> ShapeOf(const std::vector<std::string>& columns) {
    std::lock_guard lock(mutex_);
    auto& shape = shapes_[columns];
    if (shape == nullptr) {
      table::RowShape::Schemas schemas;
      for (const auto& file : view_->files()) {
        const bool seen = std::any_of(schemas.begin(), schemas.end(),
                                      [&](const auto& s) { return s == file.schema; });
        if (!seen) schemas.push_back(file.schema);
      }
      auto made = table::RowShape::Make(schemas, partitions_, columns);
      if (!made.ok()) {
        shapes_.erase(columns);
        return made.status();
      }
      if (shapes_.size() > kShapesMax) {
        auto keep = *std::move(made);
        shapes_.clear();
        shapes_[columns] = keep;
        return keep;
      }
      shape = *std::move(made);
    }
    return shape;
  }

  // Whether the index holds every column asked for. A part of a struct is not: only whole columns
  // are covering.
  bool IsCovered(const std::vector<std::string>& columns, const arrow::Schema& shape) const {
    const auto& covering = view_->manifest().covering;
    if (covering.empty() || columns.empty()) return false;
    const auto holds = [](const std::vector<std::string>& names, const std::string& name) {
      return std::find(names.begin(), names.end(), name) != names.end();
    };
    const auto& fields = shape.fields();
    return std::all_of(fields.begin(), fields.end(), [&](const auto& field) {
      return holds(columns, field->name()) &&
             (holds(covering, field->name()) || holds(key_names_, field->name()));
    });
  }

  Result<Asked> Probe(const arrow::RecordBatch& keys, bool covering, bool page_maps,
                      Explain* explain) {
    Stopwatch watch;
    arrow::ArrayVector columns;
    for (const std::string& name : key_names_) {
      auto column = keys.GetColumnByName(name);
      if (column == nullptr) return InvalidArgument("a key column is missing", "column", name);
      columns.push_back(std::move(column));
    }
    Asked asked;
    std::vector<bool> absent;
    ARROW_RETURN_NOT_OK(codec_.EncodeQuery(columns, &asked.encoded, &absent));
    index::ProbeCounters counters;
    ARROW_ASSIGN_OR_RAISE(auto found,
                          view_->Find(asked.encoded, {covering, page_maps}, &counters));
    for (size_t i = 0; i < found.size(); ++i) {
      KeyRows rows;
      if (!absent[i]) {
        rows.runs = std::move(found[i].runs);
        rows.exact = found[i].exact;
        rows.covering = std::move(found[i].covering);
      }
      asked.keys.push_back(std::move(rows));
    }
    AddCounters(counters, explain);
    explain->stage_us.probe += watch.LapUs();
    return asked;
  }

  static void AddCounters(const index::ProbeCounters& counters, Explain* explain) {
    explain->waves += counters.waves;
    explain->requests += counters.requests;
    explain->bytes_read += counters.bytes_read;
    explain->fragments_probed += counters.fragments_probed;
    explain->postings += counters.postings;
    explain->cache_hits += counters.block_cache_hits;
  }

  Result<key::OrderedRange> Ordered(const KeyRange& range) const {
    if (!view_->manifest().sorted) {
      return InvalidArgument("the index is not sorted: 'grebe index create --sorted' makes one",
                             "index", description_.name);
    }
    return engine::OrderedRangeOf(key_names_, codec_.types(), range);
  }

  // Rows whose keys are read anyway must ascend within the range.
  Status CheckOrder(const key::OrderedRange& range, const KeyRows& found, const RowSet& rows,
                    const arrow::RecordBatch& batch, Explain* explain) const {
    key::EncodedKeys held;
    std::vector<bool> absent;
    ARROW_RETURN_NOT_OK(lookup::EncodeRowKeys(codec_, key_names_, batch, &held, &absent));
    key::OrderedKeys ordered;
    ARROW_RETURN_NOT_OK(key::OrderKeys(codec_.types(), held, &ordered));
    std::string_view before;
    for (const index::FoundRun& run : found.runs) {
      const int64_t first = rows.PositionOf(run.file, run.first_row);
      for (int64_t at = first; at < first + run.row_count; ++at) {
        ++explain->verified_rows;
        const std::string_view key = ordered.view(at);
        if (absent[at] || key < before || !range.Contains(key)) {
          return Corrupt("a row does not hold the key that the index says", "file",
                         view_->files()[run.file].path, "row", run.first_row.value + at - first);
        }
        before = key;
      }
    }
    return Status::OK();
  }

  // Whether the columns that are read anyway hold the whole key, so that comparing it is free.
  bool ReadsKey(const arrow::Schema& schema) const {
    return std::all_of(key_names_.begin(), key_names_.end(), [&](const std::string& name) {
      return schema.GetFieldIndex(name) >= 0;
    });
  }

  Status GetFromPages(Asked* asked, std::shared_ptr<const table::RowShape> shape,
                      const GetOptions& options, GetResult* result) {
    const bool all_exact = std::all_of(asked->keys.begin(), asked->keys.end(),
                                       [](const KeyRows& key) { return key.exact; });
    const bool windowed = options.offset > 0 || options.limit >= 0;
    std::shared_ptr<const table::RowShape> wide = shape;
    if (!all_exact && !options.columns.empty() && !ReadsKey(*shape->schema())) {
      std::vector<std::string> with_key = options.columns;
      with_key.insert(with_key.end(), key_names_.begin(), key_names_.end());
      ARROW_ASSIGN_OR_RAISE(wide, ShapeOf(with_key));
    }
    ARROW_ASSIGN_OR_RAISE(auto key_shape, ShapeOf(key_names_));
    const lookup::FetchOptions fetch = FetchOptionsOf(options);

    std::vector<KeyRows> wanted, skipped;
    for (const KeyRows& key : asked->keys) {
      wanted.push_back(key.Window(options.offset, options.limit));
      skipped.push_back(key.exact ? KeyRows{} : key.Window(0, options.offset));
    }
    const RowSet rows(wanted), skipped_rows(skipped);
    std::vector<lookup::FetchPart> parts = {{wide.get(), rows.files()}};
    if (!skipped_rows.empty()) parts.push_back({key_shape.get(), skipped_rows.files()});
    ARROW_ASSIGN_OR_RAISE(auto batches, lookup::FetchRows(*view_, *root_.store, parts, fetch,
                                                          &result->explain));
    std::shared_ptr<arrow::RecordBatch> batch = batches[0];

    if (ReadsKey(*batch->schema()) || !all_exact) {
      int64_t rejected = 0;
      ARROW_RETURN_NOT_OK(RejectOthers(*asked, *batch, rows, &wanted, &rejected, &result->explain));
      if (!skipped_rows.empty()) {
        ARROW_RETURN_NOT_OK(RejectOthers(*asked, *batches[1], skipped_rows, &skipped, &rejected,
                                         &result->explain));
      }
      if (rejected > 0 && windowed) {
        // A fingerprint matched another key's rows, so the window is off: find the true rows of
        // these keys in a further wave (about once in 60,000 lookups of long keys).
        ARROW_RETURN_NOT_OK(VerifyCandidates(asked, fetch, &result->explain));
        return GetFromPages(asked, std::move(shape), options, result);
      }
    }
    return TakeRows(rows, wanted, *shape, batch, result);
  }

  // Whether two different long keys may share a fingerprint: then the index may well have named a
  // row of the other key. Every fragment keeps at least the top 40 bits of the hash.
  static bool MayCollide(const key::EncodedKeys& a, int64_t i, const key::EncodedKeys& b,
                         int64_t j) {
    constexpr int kFingerprintBitsMin = 40;
    const uint64_t differing = HashBytes(a.view(i)) ^ HashBytes(b.view(j));
    return differing >> (64 - kFingerprintBitsMin) == 0;
  }

  // Drops from keys the rows whose key is another one with the same fingerprint. Any other key in
  // a row that the index named is damage.
  Status RejectOthers(const Asked& asked, const arrow::RecordBatch& batch, const RowSet& rows,
                      std::vector<KeyRows>* keys, int64_t* rejected, Explain* explain) const {
    key::EncodedKeys held;
    std::vector<bool> absent;
    ARROW_RETURN_NOT_OK(lookup::EncodeRowKeys(codec_, key_names_, batch, &held, &absent));
    for (size_t i = 0; i < keys->size(); ++i) {
      KeyRows& key = (*keys)[i];
      std::vector<index::FoundRun> kept;
      for (const index::FoundRun& run : key.runs) {
        const int64_t first = rows.PositionOf(run.file, run.first_row);
        for (int64_t r = 0; r < run.row_count; ++r) {
          ++explain->verified_rows;
          const int64_t at = first + r;
          if (!absent[at] && lookup::SameKey(held, at, asked.encoded, static_cast<int64_t>(i))) {
            engine::AppendRow(run.file, RowIndex{run.first_row.value + r}, &kept);
            continue;
          }
          if (asked.keys[i].exact || absent[at] ||
              !MayCollide(asked.encoded, static_cast<int64_t>(i), held, at)) {
            return Corrupt("a row does not hold the key that the index says", "file",
                           view_->files()[run.file].path, "row", run.first_row.value + r);
          }
          ++*rejected;
          ++explain->rejected_rows;
        }
      }
      key.runs = std::move(kept);
    }
    return Status::OK();
  }

  // Reads the key columns of every candidate of the inexact keys and keeps the true rows.
  Status VerifyCandidates(Asked* asked, const lookup::FetchOptions& fetch, Explain* explain) {
    std::vector<KeyRows> candidates;
    for (const KeyRows& key : asked->keys) candidates.push_back(key.exact ? KeyRows{} : key);
    const RowSet rows(candidates);
    if (!rows.empty()) {
      ARROW_ASSIGN_OR_RAISE(auto shape, ShapeOf(key_names_));
      const lookup::FetchPart part{shape.get(), rows.files()};
      ARROW_ASSIGN_OR_RAISE(auto batches, lookup::FetchRows(*view_, *root_.store,
                                                            std::span(&part, 1), fetch, explain));
      int64_t rejected = 0;
      ARROW_RETURN_NOT_OK(
          RejectOthers(*asked, *batches[0], rows, &candidates, &rejected, explain));
    }
    for (size_t i = 0; i < asked->keys.size(); ++i) {
      if (asked->keys[i].exact) continue;
      asked->keys[i].runs = std::move(candidates[i].runs);
      asked->keys[i].exact = true;
    }
    return Status::OK();
  }

  // The answer's rows out of the rows read: each key's, in order, only the asked columns.
  static Status TakeRows(const RowSet& rows, const std::vector<KeyRows>& keys,
                         const table::RowShape& shape, std::shared_ptr<arrow::RecordBatch> batch,
                         GetResult* result) {
    if (batch->num_columns() != shape.schema()->num_fields()) {
      arrow::ArrayVector columns;
      for (const auto& field : shape.schema()->fields()) {
        columns.push_back(batch->GetColumnByName(field->name()));
      }
      batch = arrow::RecordBatch::Make(shape.schema(), batch->num_rows(), std::move(columns));
    }
    std::vector<int64_t> positions;
    for (const KeyRows& key : keys) {
      result->row_counts.push_back(key.row_count());
      for (const index::FoundRun& run : key.runs) {
        const int64_t first = rows.PositionOf(run.file, run.first_row);
        for (int64_t r = 0; r < run.row_count; ++r) positions.push_back(first + r);
      }
    }
    ARROW_ASSIGN_OR_RAISE(result->rows, grebe::TakeRows(batch, positions));
    return Status::OK();
  }

  // Everything asked for is in the index: no storage is read.
  Status GetCovered(const Asked& asked, const table::RowShape& shape, const GetOptions& options,
                    GetResult* result) {
    arrow::RecordBatchVector batches;
    ARROW_ASSIGN_OR_RAISE(auto empty, EmptyRows(shape.schema()));
    batches.push_back(empty);
    for (size_t i = 0; i < asked.keys.size(); ++i) {
      const KeyRows& key = asked.keys[i];
      result->row_counts.push_back(0);
      if (key.covering == nullptr) continue;
      key::EncodedKeys held;
      std::vector<bool> absent;
      ARROW_RETURN_NOT_OK(lookup::EncodeRowKeys(codec_, key_names_, *key.covering, &held, &absent));
      std::vector<int64_t> positions;
      for (int64_t row = 0; row < key.covering->num_rows(); ++row) {
        ++result->explain.verified_rows;
        if (!absent[row] && lookup::SameKey(held, row, asked.encoded, static_cast<int64_t>(i))) {
          positions.push_back(row);
        } else if (key.exact || absent[row] ||
                   !MayCollide(asked.encoded, static_cast<int64_t>(i), held, row)) {
          return Corrupt("a covering row does not hold the key that the index says");
        } else {
          ++result->explain.rejected_rows;
        }
      }
      const int64_t total = static_cast<int64_t>(positions.size());
      const int64_t begin = std::min(options.offset, total);
      const int64_t end = options.limit < 0 ? total : std::min(total, begin + options.limit);
      positions = {positions.begin() + begin, positions.begin() + end};
      ARROW_ASSIGN_OR_RAISE(auto taken, grebe::TakeRows(key.covering, positions));
      ARROW_ASSIGN_OR_RAISE(auto conformed, ConformCovering(*taken, *shape.schema()));
      batches.push_back(std::move(conformed));
      result->row_counts.back() = end - begin;
    }
    ARROW_ASSIGN_OR_RAISE(result->rows, arrow::ConcatenateRecordBatches(batches));
    return Status::OK();
  }

  static Result<std::shared_ptr<arrow::RecordBatch>> ConformCovering(const arrow::RecordBatch& rows,
                                                                     const arrow::Schema& schema) {
    arrow::ArrayVector columns;
    for (const auto& field : schema.fields()) {
      auto column = rows.GetColumnByName(field->name());
      if (column == nullptr) return Internal("covering column is missing", "column", field->name());
      ARROW_ASSIGN_OR_RAISE(column, engine::FromStored(std::move(column), field->type()));
      columns.push_back(std::move(column));
    }
    return arrow::RecordBatch::Make(std::make_shared<arrow::Schema>(schema), rows.num_rows(),
                                    std::move(columns));
  }

  static constexpr size_t kShapesMax = 64;

  const IndexDescription description_;
  const store::Location root_;
  const std::shared_ptr<index::IndexView> view_;
  const key::KeyCodec codec_;
  pq::DecodeCache cache_;
  std::vector<std::string> key_names_;
  std::shared_ptr<arrow::Schema> key_schema_;
  table::PartitionScheme partitions_;

  std::mutex mutex_;
  Explain open_cost_;
  std::map<std::vector<std::string>, std::shared_ptr<const table::RowShape>> shapes_;
};

}  // namespace

Result<std::shared_ptr<Index>> Index::Open(const IndexRef& ref, const OpenOptions& options) {
  ARROW_ASSIGN_OR_RAISE(engine::TableContext context, engine::ResolveTable(ref));
  return engine::OpenIndexAt(context, ref.name, options);
}

Result<std::shared_ptr<Index>> engine::OpenIndexAt(const TableContext& context,
                                                   const std::string& name,
                                                   const OpenOptions& options) {
  Stopwatch watch;
  auto looked = engine::FindIndex(context, name, options.key, options.ranges);
  if (!looked.ok() && IsKind(looked.status(), ErrorKind::kNotFound) && name.empty() &&
      options.scan_without_index && !options.key.empty()) {
    return engine::OpenScanIndexAt(context, options);
  }
  ARROW_ASSIGN_OR_RAISE(auto found, std::move(looked));
  index::ViewOptions view_options;
  view_options.block_cache_bytes_max = CacheBudget(options.cache.block_bytes_max, 16);
  const auto open = [&] {
    return index::IndexView::Open(engine::DataRoot(context, found.manifest),
                                  engine::IndexFolder(context, found.name), found.manifest,
                                  view_options);
  };
  auto view = open();
  // Fragments may go between the manifest and this: another process cleaned up, or dropped the
  // index and made it anew. Then there is a newer version to open.
  for (int attempt = 1; attempt < kOpenAttempts && IsKind(view.status(), ErrorKind::kNotFound);
       ++attempt) {
    ARROW_ASSIGN_OR_RAISE(auto newer,
                          engine::FindIndex(context, found.name, options.key, options.ranges));
    if (newer.manifest.version == found.manifest.version) break;
    found = std::move(newer);
    view = open();
  }
  ARROW_RETURN_NOT_OK(view.status());
  store::Location root = engine::DataRoot(context, found.manifest);
  ARROW_ASSIGN_OR_RAISE(engine::IndexSpec spec, engine::SpecOf(found.manifest));
  Explain open_cost;
  open_cost.stage_us.open = watch.TotalUs();
  auto index = std::make_shared<IndexImpl>(std::move(found), std::move(root), std::move(*view),
                                           std::move(spec.key_types), options.cache, open_cost);
  ARROW_RETURN_NOT_OK(index->Init());
  return index;
}

}  // namespace grebe

#include "lookup/row_fetch.h"

#include <arrow/table.h>
#include <arrow/util/parallel.h>
#include <arrow/util/thread_pool.h>

#include <atomic>
#include <deque>
#include <mutex>
#include <set>

#include "base/clock.h"
#include "base/take_rows.h"
#include "store/coalesce.h"

namespace grebe::lookup {
namespace {

// One column chunk to read and decode.
struct ChunkJob {
  pq::ChunkRead read;
  pq::ChunkBytes bytes;
  const pq::Schema* schema = nullptr;
  const index::ViewFile* file = nullptr;
  std::atomic<int> pending{0};       // ranges still under way
  std::atomic<bool> failed{false};
  std::shared_ptr<const pq::LeafSlice> slice;
};

// A range to fetch and where its bytes go: a page of a job, or (page < 0) its dictionary.
struct Wanted {
  ChunkJob* job = nullptr;
  int page = -1;
};

// The files that share one Parquet schema, decoded and assembled together.
struct SchemaGroup {
  const table::RowShape* shape = nullptr;
  const pq::Schema* schema = nullptr;
  std::vector<std::vector<ChunkJob*>> leaf_jobs;                      // per leaf of the projection
  std::vector<std::pair<std::string_view, int64_t>> paths;            // files and their row counts
  std::vector<size_t> positions;                                      // ordinals in the part
};

size_t DistinctFiles(std::span<const FetchPart> parts) {
  std::set<uint32_t> files;
  for (const FetchPart& part : parts) {
    for (const FileRows& rows : part.rows) files.insert(rows.file);
  }
  return files.size();
}

class Fetch {
 public:
  Fetch(index::IndexView& view, store::Store& store, const FetchOptions& options, Explain* explain)
      : view_(view), store_(store), options_(options), explain_(explain) {}

  Result<std::vector<std::shared_ptr<arrow::RecordBatch>>> Run(std::span<const FetchPart> parts) {
    Stopwatch watch;
    groups_.resize(parts.size());
    for (size_t part = 0; part < parts.size(); ++part) {
      for (size_t i = 0; i < parts[part].rows.size(); ++i) {
        const FileRows& rows = parts[part].rows[i];
        SchemaGroup& group = GroupOf(part, *parts[part].shape, rows.file);
        ARROW_RETURN_NOT_OK(PlanFile(i, rows, &group));
      }
    }
    explain_->files += static_cast<int64_t>(DistinctFiles(parts));
    explain_->stage_us.plan += watch.LapUs();
    ARROW_RETURN_NOT_OK(FetchAndDecode());
    explain_->stage_us.fetch += watch.LapUs();
    std::vector<std::shared_ptr<arrow::RecordBatch>> out;
    for (size_t part = 0; part < parts.size(); ++part) {
      ARROW_ASSIGN_OR_RAISE(auto batch, AssemblePart(parts[part], groups_[part]));
      out.push_back(std::move(batch));
    }
    explain_->stage_us.decode += watch.LapUs();
    return out;
  }

 private:
  SchemaGroup& GroupOf(size_t part, const table::RowShape& shape, uint32_t file) {
    const pq::Schema* schema = view_.files()[file].schema.get();
    for (SchemaGroup& group : groups_[part]) {
      if (group.schema == schema) return group;
    }
    SchemaGroup& group = groups_[part].emplace_back();
    group.shape = &shape;
    group.schema = schema;
    group.leaf_jobs.resize(shape.projection(schema).leaves.size());
    return group;
  }

  Status PlanFile(size_t position, const FileRows& wanted, SchemaGroup* group) {
    const index::ViewFile& file = view_.files()[wanted.file];
    int64_t row_count = 0;
    for (const RowRange& range : wanted.rows) row_count += range.row_count();
    group->paths.emplace_back(file.path, row_count);
    group->positions.push_back(position);
    if (group->leaf_jobs.empty()) return Status::OK();

    ARROW_ASSIGN_OR_RAISE(auto map, view_.page_map(wanted.file));
    if (wanted.rows.back().end > map->row_count()) {
      return Corrupt("posting beyond the file's rows", "path", file.path, "row",
                     wanted.rows.back().end - 1, "rows", map->row_count());
    }
    size_t next = 0;
    int64_t done_until = wanted.rows[0].begin;
    while (next < wanted.rows.size()) {
      const int row_group = map->FindRowGroup(RowIndex{done_until});
      const RowRange bounds = map->row_group_rows(row_group);
      std::vector<RowRange> rows;
      while (next < wanted.rows.size() && wanted.rows[next].begin < bounds.end) {
        const int64_t begin = std::max(wanted.rows[next].begin, bounds.begin);
        const int64_t end = std::min(wanted.rows[next].end, bounds.end);
        rows.push_back({begin - bounds.begin, end - bounds.begin});
        if (wanted.rows[next].end > bounds.end) break;
        ++next;
      }
      done_until = next < wanted.rows.size() ? std::max(wanted.rows[next].begin, bounds.end) : 0;
      ARROW_RETURN_NOT_OK(PlanRowGroup(file, *map, row_group, rows, group));
    }
    return Status::OK();
  }

  Status PlanRowGroup(const index::ViewFile& file, const pq::PageMap& map, int row_group,
                      const std::vector<RowRange>& rows, SchemaGroup* group) {
    const pq::Projection& projection = group->shape->projection(group->schema);
    for (size_t i = 0; i < projection.leaves.size(); ++i) {
      auto planned = pq::PlanChunk(map, file.file_key, row_group, projection.leaves[i], rows,
                                   options_.cache);
      if (!planned.ok()) return AddContext(planned.status(), "path", file.path);
      ChunkJob& job = jobs_.emplace_back();
      job.read = *std::move(planned);
      job.schema = group->schema;
      job.file = &file;
      group->leaf_jobs[i].push_back(&job);
      AddRequests(&job);
    }
    return Status::OK();
  }

  void AddRequests(ChunkJob* job) {
    const pq::ChunkRead& read = job->read;
    job->bytes.pages.resize(read.pages.size());
    explain_->pages += static_cast<int64_t>(read.pages.size());
    if (read.info.dictionary && read.cached_dictionary != nullptr) ++explain_->cache_hits;
    if (read.dictionary_needed) {
      ++explain_->dictionary_pages;
      AddRequest(job, -1, *read.info.dictionary);
    }
    for (size_t i = 0; i < read.pages.size(); ++i) {
      if (read.page_needed[i]) {
        AddRequest(job, static_cast<int>(i), read.pages[i].bytes);
      } else {
        ++explain_->cache_hits;
      }
    }
  }

  void AddRequest(ChunkJob* job, int page, ByteRange range) {
    requests_.push_back({job->file->object, range});
    wanted_.push_back({job, page});
    job->pending.fetch_add(1, std::memory_order_relaxed);
  }

  Status FetchAndDecode() {
    std::vector<ChunkJob*> ready;
    for (ChunkJob& job : jobs_) {
      if (job.pending.load(std::memory_order_relaxed) == 0) ready.push_back(&job);
    }
    if (!requests_.empty()) {
      ++explain_->waves;
      const store::ReadCosts costs = store_.read_costs();
      const store::CoalesceOptions coalesce{
          .gap_bytes_max = options_.coalesce ? costs.gap_bytes_max : -1,
          .range_bytes_max = costs.range_bytes_max};
      const store::CoalescedWave wave = store::Coalesce(requests_, coalesce);
      explain_->requests += static_cast<int64_t>(wave.requests.size());
      for (const store::ReadRequest& request : wave.requests) {
        explain_->bytes_read += request.range.size_bytes();
      }
      explain_->gap_bytes += wave.bridged_bytes;
      store_.ReadEach(wave.requests, [&](size_t i, Result<std::shared_ptr<arrow::Buffer>> bytes) {
        OnRead(wave, i, std::move(bytes));
      });
    }
    // Chunks whose pages were all in memory: on all cores when there are many.
    const bool parallel = ready.size() >= kParallelJobsMin;
    ARROW_RETURN_NOT_OK(arrow::internal::OptionalParallelFor(
        parallel, static_cast<int>(ready.size()), [&](int i) {
          Decode(ready[i]);
          return Status::OK();
        }));
    std::lock_guard lock(mutex_);
    return first_error_;
  }

  void OnRead(const store::CoalescedWave& wave, size_t request,
              Result<std::shared_ptr<arrow::Buffer>> bytes) {
    for (uint32_t i = wave.part_begin[request]; i < wave.part_begin[request + 1]; ++i) {
      const store::CoalescedWave::Part& part = wave.parts[i];
      const Wanted& wanted = wanted_[part.request];
      ChunkJob* job = wanted.job;
      if (bytes.ok()) {
        auto slice = part.size_bytes == (*bytes)->size()
                         ? *bytes
                         : arrow::SliceBuffer(*bytes, part.offset_bytes, part.size_bytes);
        (wanted.page < 0 ? job->bytes.dictionary : job->bytes.pages[wanted.page]) =
            std::move(slice);
      } else {
        job->failed.store(true, std::memory_order_relaxed);
        const bool vanished = IsKind(bytes.status(), ErrorKind::kNotFound);
        Fail(vanished ? Stale("a data file vanished after it was indexed", "file", job->file->path)
                      : AddContext(bytes.status(), "file", job->file->path));
      }
      if (job->pending.fetch_sub(1, std::memory_order_acq_rel) == 1 &&
          !job->failed.load(std::memory_order_relaxed)) {
        Decode(job);
      }
    }
  }

  void Decode(ChunkJob* job) {
    pq::DecodeOptions options;
    options.cache = options_.cache;
    options.verify_crc = options_.verify_crc;
    options.pool = options_.pool;
    auto slice = pq::DecodeChunk(*job->schema, job->read, job->bytes, options);
    job->bytes = {};
    if (slice.ok()) {
      job->slice = *std::move(slice);
    } else {
      Fail(AddContext(slice.status(), "file", job->file->path));
    }
  }

  void Fail(const Status& status) {
    std::lock_guard lock(mutex_);
    if (first_error_.ok()) first_error_ = status;
  }

  Result<std::shared_ptr<arrow::RecordBatch>> AssembleGroup(const SchemaGroup& group) {
    const pq::Projection& projection = group.shape->projection(group.schema);
    std::shared_ptr<arrow::RecordBatch> rows;
    int64_t row_count = 0;
    for (const auto& [path, count] : group.paths) row_count += count;
    if (group.leaf_jobs.empty()) {
      rows = arrow::RecordBatch::Make(arrow::schema({}), row_count, arrow::ArrayVector{});
    } else {
      std::vector<std::vector<std::shared_ptr<const pq::LeafSlice>>> slices(group.leaf_jobs.size());
      for (size_t i = 0; i < slices.size(); ++i) {
        slices[i].reserve(group.leaf_jobs[i].size());
        for (ChunkJob* job : group.leaf_jobs[i]) slices[i].push_back(std::move(job->slice));
      }
      ARROW_ASSIGN_OR_RAISE(rows, pq::Assemble(*group.schema, projection, slices, options_.pool));
      if (rows->num_rows() != row_count) {
        return Corrupt("pages hold other rows than the index says", "expected", row_count, "got",
                       rows->num_rows());
      }
    }
    return group.shape->Conform(group.schema, rows, group.paths);
  }

  Result<std::shared_ptr<arrow::RecordBatch>> AssemblePart(const FetchPart& part,
                                                           const std::deque<SchemaGroup>& groups) {
    if (groups.empty()) return EmptyRows(part.shape->schema());
    arrow::RecordBatchVector batches;
    for (const SchemaGroup& group : groups) {
      ARROW_ASSIGN_OR_RAISE(auto batch, AssembleGroup(group));
      batches.push_back(std::move(batch));
    }
    if (batches.size() == 1) return batches[0];
    return Reorder(part, groups, batches);
  }

  // Several schemas: each group's rows are together; put all rows in the order of the part.
  static Result<std::shared_ptr<arrow::RecordBatch>> Reorder(
      const FetchPart& part, const std::deque<SchemaGroup>& groups,
      const arrow::RecordBatchVector& batches) {
    ARROW_ASSIGN_OR_RAISE(auto joined, arrow::ConcatenateRecordBatches(batches));
    // Of each key: first row in joined, count.
    std::vector<std::pair<int64_t, int64_t>> place(part.rows.size());
    int64_t at = 0;
    for (const SchemaGroup& group : groups) {
      for (size_t i = 0; i < group.positions.size(); ++i) {
        place[group.positions[i]] = {at, group.paths[i].second};
        at += group.paths[i].second;
      }
    }
    std::vector<int64_t> positions;
    positions.reserve(static_cast<size_t>(at));
    for (const auto& [first, count] : place) {
      for (int64_t i = 0; i < count; ++i) positions.push_back(first + i);
    }
    return TakeRows(joined, positions);
  }

  static constexpr size_t kParallelJobsMin = 16;

  index::IndexView& view_;
  store::Store& store_;
  const FetchOptions& options_;
  Explain* explain_;

  std::deque<ChunkJob> jobs_;        // a deque: jobs hold atomics and must not move
  std::vector<std::deque<SchemaGroup>> groups_;   // per part
  std::vector<store::ReadRequest> requests_;
  std::vector<Wanted> wanted_;       // parallel to requests_
  std::mutex mutex_;
  Status first_error_;
};

}  // namespace

Result<std::vector<std::shared_ptr<arrow::RecordBatch>>> FetchRows(
    index::IndexView& view, store::Store& store, std::span<const FetchPart> parts,
    const FetchOptions& options, Explain* explain) {
  return Fetch(view, store, options, explain).Run(parts);
}

}  // namespace grebe::lookup

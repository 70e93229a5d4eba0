#include "layout/rewrite_job.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <mutex>

#include "base/failpoint.h"
#include "layout/gather.h"
#include "layout/memory_share.h"
#include "layout/parallel.h"
#include "layout/partition_writer.h"
#include "layout/piece_store.h"
#include "layout/value_order.h"

namespace grebe::layout {
namespace {

// The sample is held as long as the rewrite lasts, and twice while it is put together. Files depend
// on it, so its bound is no part of the memory limit: whatever the limit, the files are the same.
constexpr int64_t kSampleBytesMax = 32 << 20;
// What it is picked from at once.
constexpr int64_t kSampleBatchRows = 64 << 10;
constexpr int64_t kSampleBatchBytes = 4 << 20;
// Whole rows are measured in this many files, this many rows each.
constexpr int kMeasuredFiles = 8;
constexpr int64_t kMeasuredRows = 4096;

bool IsFileError(const Status& status) {
  switch (KindOf(status)) {
    case ErrorKind::kCorrupt:
    case ErrorKind::kUnsupported:
    case ErrorKind::kNotFound:
    case ErrorKind::kStale: return true;
    default: return false;
  }
}

bool SkipsFile(const RewriteOptions& options, int file, const Status& error) {
  return IsFileError(error) && options.skip_file && options.skip_file(file, error);
}

// Bytes of a row in memory, from the first rows of a few files. columns: as RowSource::Read has
// them. skipped: files to leave out; empty: none.
Result<double> MeasureRows(RowSource& source, const std::vector<std::string>& columns,
                           const std::vector<bool>& skipped, const RewriteOptions& options) {
  int64_t rows = 0, bytes = 0;
  const int files = source.file_count();
  for (int i = 0; i < std::min(files, kMeasuredFiles); ++i) {
    const int file = static_cast<int>(static_cast<int64_t>(i) * files /
                                      std::min(files, kMeasuredFiles));
    if (!skipped.empty() && skipped[static_cast<size_t>(file)]) continue;
    // Enough is known after the first batch: then the reading is given up.
    const Status enough = Cancelled("enough");
    const Status status =
        source.Read(file, columns, kMeasuredRows, [&](const auto& batch, int64_t) -> Status {
          rows += batch->num_rows();
          bytes += BytesOf(*batch);
          return enough;
        });
    // What is wrong with a file shows again when it is read whole.
    if (!status.ok() && !IsKind(status, ErrorKind::kCancelled) && !IsFileError(status)) {
      return status;
    }
    if (options.stop != nullptr) ARROW_RETURN_NOT_OK(options.stop->Check());
  }
  return std::max(1.0,
                  static_cast<double>(bytes) / static_cast<double>(std::max<int64_t>(rows, 1)));
}

class Sampler {
 public:
  Sampler(RowSource& source, const std::vector<std::string>& columns,
          const RewriteOptions& options)
      : source_(source), options_(options), columns_(columns) {}

  Result<SampledRows> Run() {
    SampledRows out;
    for (int file = 0; file < source_.file_count(); ++file) {
      first_rows_.push_back(out.row_count);
      out.row_count += source_.row_count(file);
    }
    ARROW_ASSIGN_OR_RAISE(const double row_bytes, MeasureRows(source_, columns_, {}, options_));
    const auto rows_of = [row_bytes](int64_t bytes) {
      return static_cast<int64_t>(static_cast<double>(bytes) / row_bytes);
    };
    const int64_t rows_max = std::clamp<int64_t>(rows_of(kSampleBytesMax), 1,
                                                 options_.sample_rows_max);
    stride_ = std::max<int64_t>(1, (out.row_count + rows_max - 1) / rows_max);
    batch_rows_ = std::clamp<int64_t>(rows_of(kSampleBatchBytes), 64, kSampleBatchRows);
    parts_.resize(static_cast<size_t>(source_.file_count()));
    const int threads = MemoryShare::Of(options_.memory_bytes_max, options_.threads).threads;
    ARROW_RETURN_NOT_OK(RunAll(threads, parts_.size(), [&](size_t file) {
      return SampleFile(static_cast<int>(file));
    }));
    out.weight = static_cast<double>(stride_);
    ARROW_RETURN_NOT_OK(Join(&out));
    return out;
  }

 private:
  struct Part {
    Batches rows;
    std::vector<int64_t> file_rows;
    bool skipped = false;
  };

  Status SampleFile(int file) {
    const Status status = TrySampleFile(file);
    if (status.ok() || !SkipsFile(options_, file, status)) return status;
    parts_[static_cast<size_t>(file)] = {};
    parts_[static_cast<size_t>(file)].skipped = true;
    return Status::OK();
  }

  Status TrySampleFile(int file) {
    Part& part = parts_[static_cast<size_t>(file)];
    // Rows are counted over all files, so that small files are not sampled more densely.
    const int64_t base = first_rows_[static_cast<size_t>(file)];
    return source_.Read(file, columns_, batch_rows_, [&](const auto& rows, int64_t first) {
      if (options_.stop != nullptr) ARROW_RETURN_NOT_OK(options_.stop->Check());
      std::vector<RowRef> picked;
      const int64_t begin = base + first;
      for (int64_t at = (begin + stride_ - 1) / stride_ * stride_; at < begin + rows->num_rows();
           at += stride_) {
        picked.push_back({0, static_cast<uint32_t>(at - begin)});
        part.file_rows.push_back(at - base);
      }
      if (picked.empty()) return Status::OK();
      ARROW_ASSIGN_OR_RAISE(auto batch, Gather({rows}, picked, RowPool()));
      part.rows.push_back(std::move(batch));
      return Status::OK();
    });
  }

  Status Join(SampledRows* out) {
    Batches batches;
    std::vector<RowRef> all;
    for (size_t file = 0; file < parts_.size(); ++file) {
      out->skipped.push_back(parts_[file].skipped);
      if (parts_[file].skipped) out->row_count -= source_.row_count(static_cast<int>(file));
      for (const auto& batch : parts_[file].rows) {
        for (int64_t row = 0; row < batch->num_rows(); ++row) {
          all.push_back({static_cast<uint32_t>(batches.size()), static_cast<uint32_t>(row)});
          out->files.push_back(static_cast<int>(file));
        }
        batches.push_back(batch);
      }
      out->file_rows.insert(out->file_rows.end(), parts_[file].file_rows.begin(),
                            parts_[file].file_rows.end());
    }
    if (batches.empty()) return InvalidArgument("the table has no rows");
    return Gather(batches, all, RowPool()).Value(&out->rows);
  }

  RowSource& source_;
  const RewriteOptions& options_;
  const std::vector<std::string> columns_;
  std::vector<int64_t> first_rows_;
  int64_t stride_ = 1;
  int64_t batch_rows_ = 0;
  std::vector<Part> parts_;
};

// Whether the largest key's rows, which may not part, fit the memory limit.
Status MeasureKeys(const RewriteOptions& options, PreparedRewrite* prepared) {
  ARROW_ASSIGN_OR_RAISE(const RowSample::Run run, prepared->sample->LongestRun());
  const double rows = static_cast<double>(run.rows) * prepared->sample->weight();
  prepared->key_bytes = std::llround(rows * prepared->row_bytes);
  const auto share =
      MemoryShare::Of(options.memory_bytes_max, options.threads, prepared->key_bytes);
  if (prepared->key_bytes <= share.key_bytes_max) return Status::OK();
  return LimitExceeded("the rows of one key do not fit the memory limit", "key", run.value, "rows",
                       std::llround(rows), "key_bytes", prepared->key_bytes, "key_bytes_max",
                       share.key_bytes_max, "memory_bytes_max", options.memory_bytes_max);
}

// Between two steps: what the first one's threads left in the default pool's caches.
void GiveBackMemory() { arrow::default_memory_pool()->ReleaseUnused(); }

class Job {
 public:
  Job(RowSource& source, RewriteTarget& target, const PreparedRewrite& prepared,
      const RewriteOptions& options)
      : source_(source), target_(target), prepared_(prepared), options_(options),
        share_(MemoryShare::Of(options.memory_bytes_max, options.threads, prepared.key_bytes)),
        finder_(prepared.plan, *prepared.sample) {}

  Result<RewriteResult> Run() {
    RewriteResult result;
    const RewritePlan& plan = prepared_.plan;
    for (size_t file = 0; file < plan.files.size(); ++file) {
      result.files_kept += target_.IsFinished(static_cast<int>(file)) ? 1 : 0;
    }
    const auto schema = PieceSchema(source_.schema(), prepared_.sample->order().has_sections());
    PieceStore store(plan.partitions.size(), source_.file_count(), schema, share_.held_bytes,
                     options_.spill_folder, RowPool());
    ARROW_RETURN_NOT_OK(Partition(&store));
    for (const int file : bad_files_) store.Exclude(file);
    GiveBackMemory();
    ARROW_RETURN_NOT_OK(target_.BeginWriting());
    GREBE_FAILPOINT("rewrite.partitioned");
    ARROW_RETURN_NOT_OK(Write(&store, &result));
    result.row_count = rows_read_.load();
    result.partitions = static_cast<int64_t>(plan.partitions.size());
    result.spilled_bytes = store.spilled_bytes();
    result.row_bytes = prepared_.row_bytes;
    return result;
  }

 private:
  void Report(int64_t rows) {
    if (!options_.progress) return;
    std::lock_guard lock(mutex_);
    progress_rows_ += rows;
    options_.progress(progress_rows_);
  }

  // Rows that all of a partition's files have already.
  std::vector<bool> FinishedPartitions() const {
    std::vector<bool> finished;
    for (const PlannedPartition& partition : prepared_.plan.partitions) {
      bool all = true;
      for (int i = 0; i < partition.file_count; ++i) {
        all = all && target_.IsFinished(partition.first_file + i);
      }
      finished.push_back(all);
    }
    return finished;
  }

  Status Partition(PieceStore* store) {
    const int64_t batch_rows = std::clamp<int64_t>(
        static_cast<int64_t>(static_cast<double>(share_.scatter_bytes) / 4 / prepared_.row_bytes),
        64, 64 << 10);
    std::vector<std::unique_ptr<PieceScatter>> scatters;
    for (int i = 0; i < share_.threads; ++i) {
      scatters.push_back(std::make_unique<PieceScatter>(*prepared_.sample, finder_,
                                                        FinishedPartitions(), share_.scatter_bytes,
                                                        store));
    }
    std::atomic<int> next{0};
    return RunAll(share_.threads, scatters.size(), [&](size_t worker) -> Status {
      PieceScatter& scatter = *scatters[worker];
      while (true) {
        const int file = next.fetch_add(1);
        if (file >= source_.file_count()) return scatter.Flush();
        if (prepared_.skipped[static_cast<size_t>(file)]) continue;
        Status added;
        const auto add = [&](const auto& rows, int64_t first_row) -> Status {
          if (options_.stop != nullptr) ARROW_RETURN_NOT_OK(options_.stop->Check());
          GREBE_FAILPOINT("rewrite.mid_read");
          Report(rows->num_rows());
          rows_read_ += rows->num_rows();
          added = scatter.Add(rows, file, first_row);
          return added;
        };
        const Status status = source_.Read(file, {}, batch_rows, add);
        if (status.ok()) continue;
        ARROW_RETURN_NOT_OK(added);   // spilling failed: no fault of the file
        if (!SkipsFile(options_, file, status)) return status;
        std::lock_guard lock(mutex_);
        bad_files_.push_back(file);
      }
    });
  }

  Status Write(PieceStore* store, RewriteResult* result) {
    std::atomic<int64_t> files_written{0};
    PartitionWriter::Context context;
    context.prepared = &prepared_;
    context.options = &options_;
    context.share = share_;
    context.store = store;
    context.target = &target_;
    context.files_written = &files_written;
    context.report = [this](int64_t rows) { Report(rows); };
    ARROW_RETURN_NOT_OK(RunAll(share_.writers, prepared_.plan.tasks.size(), [&](size_t task) {
      return PartitionWriter(context, prepared_.plan.tasks[task]).Run();
    }));
    result->files_written = files_written.load();
    return Status::OK();
  }

  RowSource& source_;
  RewriteTarget& target_;
  const PreparedRewrite& prepared_;
  const RewriteOptions& options_;
  const MemoryShare share_;
  const PartitionFinder finder_;
  std::mutex mutex_;
  int64_t progress_rows_ = 0;
  std::atomic<int64_t> rows_read_{0};
  std::vector<int> bad_files_;    // found bad after some of their rows were read
};

}  // namespace

Result<SampledRows> SampleRows(RowSource& source, const std::vector<std::string>& columns,
                               const RewriteOptions& options) {
  return Sampler(source, columns, options).Run();
}

Result<PreparedRewrite> PrepareRewrite(RowSource& source, const RewriteOptions& options) {
  ARROW_ASSIGN_OR_RAISE(SampledRows sampled,
                        SampleRows(source, RowOrder::ColumnsUsed(options.order), options));
  ARROW_ASSIGN_OR_RAISE(auto order,
                        RowOrder::Make(options.order, *sampled.rows, sampled.row_count));
  PreparedRewrite prepared;
  ARROW_ASSIGN_OR_RAISE(prepared.sample,
                        RowSample::Make(std::move(order), *sampled.rows, std::move(sampled.files),
                                        std::move(sampled.file_rows), sampled.weight));
  prepared.row_count = sampled.row_count;
  prepared.skipped = std::move(sampled.skipped);
  ARROW_ASSIGN_OR_RAISE(prepared.row_bytes, MeasureRows(source, {}, prepared.skipped, options));
  if (options.unparted_columns > 0) ARROW_RETURN_NOT_OK(MeasureKeys(options, &prepared));
  GiveBackMemory();
  PlanOptions plan;
  plan.target_file_rows = options.target_file_rows;
  plan.row_bytes = prepared.row_bytes;
  plan.partition_bytes_max =
      MemoryShare::Of(options.memory_bytes_max, options.threads).partition_bytes;
  plan.section_count = prepared.sample->order().section_count();
  plan.unparted_columns = options.unparted_columns;
  prepared.plan = PlanRewrite(*prepared.sample, plan);
  return prepared;
}

Result<RewriteResult> RunRewrite(RowSource& source, RewriteTarget& target,
                                 const PreparedRewrite& prepared, const RewriteOptions& options) {
  return Job(source, target, prepared, options).Run();
}

}  // namespace grebe::layout

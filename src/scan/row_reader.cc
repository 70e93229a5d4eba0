#include "scan/row_reader.h"

#include <arrow/util/parallel.h>

#include <deque>

#include "base/clock.h"
#include "base/hash.h"
#include "store/coalesce.h"

namespace grebe::scan {
namespace {

using BatchResult = Result<std::shared_ptr<arrow::RecordBatch>>;

// One column chunk to read and decode.
struct Job {
  pq::ChunkRead read;
  pq::ChunkBytes bytes;
  const ScanFile* file = nullptr;
  std::shared_ptr<const pq::LeafSlice> slice;
};

// A range to fetch and where its bytes go: a page of a job, or (page < 0) its dictionary.
struct Target {
  size_t part = 0;
  Job* job = nullptr;
  int page = -1;
};

class Reader {
 public:
  Reader(AheadStore& store, const table::RowShape& shape, std::span<const RowsWanted> wanted,
         const RowReaderOptions& options, RowReaderCounters* counters)
      : store_(store), shape_(shape), wanted_(wanted), options_(options), counters_(counters),
        jobs_(wanted.size()), failed_(wanted.size()) {}

  std::vector<BatchResult> Run() {
    for (size_t part = 0; part < wanted_.size(); ++part) failed_[part] = Plan(part);
    Stopwatch watch;
    Fetch();
    counters_->fetch_us += watch.LapUs();
    std::vector<BatchResult> out(wanted_.size(), Status::Cancelled("not assembled"));
    // A status of its own each: the call itself does not fail.
    const Status ignored = arrow::internal::OptionalParallelFor(
        wanted_.size() > 1, static_cast<int>(wanted_.size()), [&](int part) {
          const auto i = static_cast<size_t>(part);
          out[i] = failed_[i].ok() ? DecodePart(i) : BatchResult(failed_[i]);
          if (!out[i].ok()) out[i] = AddContext(out[i].status(), "file", wanted_[i].file->path);
          return Status::OK();
        });
    counters_->decode_us += watch.LapUs();
    return out;
  }

 private:
  Status Plan(size_t part) {
    const RowsWanted& wanted = wanted_[part];
    const ScanFile& file = *wanted.file;
    for (const int leaf : shape_.projection(file.schema.get()).leaves) {
      Job& job = jobs_[part].emplace_back();
      job.file = &file;
      if (file.map != nullptr) {
        ARROW_ASSIGN_OR_RAISE(job.read, pq::PlanChunk(*file.map, file.file_key, wanted.row_group,
                                                      leaf, wanted.rows, options_.cache));
      } else {
        const auto pages = file.pages.find({wanted.row_group, leaf});
        if (pages == file.pages.end()) return Internal("pages were not found", "leaf", leaf);
        const int64_t rows = file.groups[static_cast<size_t>(wanted.row_group)].rows;
        ARROW_ASSIGN_OR_RAISE(job.read,
                              pq::PlanChunk(pages->second, rows, file.file_key, wanted.row_group,
                                            leaf, wanted.rows, options_.cache));
      }
      AddRequests(part, &job);
    }
    return Status::OK();
  }

  void AddRequests(size_t part, Job* job) {
    const pq::ChunkRead& read = job->read;
    job->bytes.pages.resize(read.pages.size());
    if (read.dictionary_needed) {
      counters_->dictionary_pages += IsNew(*job->file, *read.info.dictionary);
      AddRequest({part, job, -1}, *read.info.dictionary);
    }
    for (size_t i = 0; i < read.pages.size(); ++i) {
      if (read.page_needed[i]) {
        counters_->pages += IsNew(*job->file, read.pages[i].bytes);
        AddRequest({part, job, static_cast<int>(i)}, read.pages[i].bytes);
      } else {
        ++counters_->cache_hits;
      }
    }
  }

  bool IsNew(const ScanFile& file, ByteRange page) {
    if (options_.counted_pages == nullptr) return true;
    const auto place = static_cast<uint64_t>(page.begin);
    return options_.counted_pages->insert(Mix64(file.file_key ^ Mix64(place))).second;
  }

  void AddRequest(const Target& target, ByteRange range) {
    requests_.push_back({target.job->file->object, range});
    targets_.push_back(target);
  }

  void Fetch() {
    if (requests_.empty()) return;
    const store::ReadCosts costs = store_.read_costs();
    const store::CoalescedWave wave = store::Coalesce(
        requests_, {.gap_bytes_max = options_.coalesce ? costs.gap_bytes_max : -1,
                    .range_bytes_max = costs.range_bytes_max});
    counters_->gap_bytes += wave.bridged_bytes;
    std::vector<Status> errors(wave.requests.size());
    store_.ReadEach(wave.requests, [&](size_t i, Result<std::shared_ptr<arrow::Buffer>> bytes) {
      errors[i] = bytes.status();
      if (bytes.ok()) Deliver(wave, i, *bytes);
    });
    for (size_t i = 0; i < errors.size(); ++i) {
      if (errors[i].ok()) continue;
      for (uint32_t at = wave.part_begin[i]; at < wave.part_begin[i + 1]; ++at) {
        Status& failed = failed_[targets_[wave.parts[at].request].part];
        if (failed.ok()) failed = errors[i];
      }
    }
  }

  // Each range has a slot of its own.
  void Deliver(const store::CoalescedWave& wave, size_t request,
               const std::shared_ptr<arrow::Buffer>& bytes) {
    for (uint32_t i = wave.part_begin[request]; i < wave.part_begin[request + 1]; ++i) {
      const store::CoalescedWave::Part& part = wave.parts[i];
      const Target& target = targets_[part.request];
      auto slice = part.size_bytes == bytes->size()
                       ? bytes
                       : arrow::SliceBuffer(bytes, part.offset_bytes, part.size_bytes);
      pq::ChunkBytes& to = target.job->bytes;
      (target.page < 0 ? to.dictionary : to.pages[static_cast<size_t>(target.page)]) =
          std::move(slice);
    }
  }

  BatchResult DecodePart(size_t part) {
    const RowsWanted& wanted = wanted_[part];
    const pq::Schema* schema = wanted.file->schema.get();
    const pq::Projection& projection = shape_.projection(schema);
    pq::DecodeOptions decode;
    decode.cache = options_.cache;
    decode.verify_crc = options_.verify_crc;
    decode.pool = options_.pool;
    int64_t row_count = 0;
    for (const RowRange& range : wanted.rows) row_count += range.row_count();
    std::vector<std::vector<std::shared_ptr<const pq::LeafSlice>>> slices;
    for (Job& job : jobs_[part]) {
      ARROW_ASSIGN_OR_RAISE(auto slice, pq::DecodeChunk(*schema, job.read, job.bytes, decode));
      job.bytes = {};
      slices.push_back({std::move(slice)});
    }
    std::shared_ptr<arrow::RecordBatch> rows;
    if (slices.empty()) {
      rows = arrow::RecordBatch::Make(arrow::schema({}), row_count, arrow::ArrayVector{});
    } else {
      ARROW_ASSIGN_OR_RAISE(rows, pq::Assemble(*schema, projection, slices, options_.pool));
    }
    if (rows->num_rows() != row_count) {
      return Corrupt("pages hold other rows than they should", "expected", row_count, "got",
                     rows->num_rows());
    }
    return shape_.Conform(schema, rows, {{wanted.file->path, row_count}});
  }

  AheadStore& store_;
  const table::RowShape& shape_;
  const std::span<const RowsWanted> wanted_;
  const RowReaderOptions& options_;
  RowReaderCounters* counters_;
  std::vector<std::deque<Job>> jobs_;   // per part; a deque: targets point to them
  std::vector<Status> failed_;          // per part
  std::vector<store::ReadRequest> requests_;
  std::vector<Target> targets_;         // parallel to requests_
};

}  // namespace

std::vector<Result<std::shared_ptr<arrow::RecordBatch>>> ReadRows(
    AheadStore& store, const table::RowShape& shape, std::span<const RowsWanted> wanted,
    const RowReaderOptions& options, RowReaderCounters* counters) {
  return Reader(store, shape, wanted, options, counters).Run();
}

}  // namespace grebe::scan

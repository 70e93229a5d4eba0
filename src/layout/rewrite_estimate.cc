#include "layout/rewrite_estimate.h"

#include <arrow/ipc/writer.h>

#include <algorithm>
#include <cmath>

#include "layout/gather.h"
#include "layout/memory_share.h"
#include "layout/partition_writer.h"
#include "layout/piece_store.h"

namespace grebe::layout {
namespace {

constexpr size_t kFilesMax = 16;

// Bytes that rows take in memory, and packed for the spill file.
struct PackedBytes {
  int64_t rows = 0, memory = 0, packed = 0;
};

// Packs the rows of a batch in pieces of piece_rows.
Status PackPieces(const RowOrder& order, const std::shared_ptr<arrow::RecordBatch>& rows,
                  int64_t piece_rows, PackedBytes* bytes) {
  RowKeys keys;
  ARROW_RETURN_NOT_OK(order.Keys(*rows, &keys));
  const auto keyed = WithKeys(rows, std::move(keys));
  for (int64_t at = 0; at < keyed->num_rows(); at += piece_rows) {
    const auto piece = keyed->Slice(at, piece_rows);
    ARROW_ASSIGN_OR_RAISE(const auto packed,
                          arrow::ipc::SerializeRecordBatch(*piece, SpillFormat(RowPool())));
    bytes->rows += piece->num_rows();
    bytes->memory += BytesOf(*piece);
    bytes->packed += packed->size();
  }
  return Status::OK();
}

}  // namespace

SampledSource::SampledSource(RowSource& whole, const std::vector<bool>& skipped, int64_t rows_max)
    : whole_(whole) {
  std::vector<Part> all;
  int64_t rows = 0;
  for (int file = 0; file < whole.file_count(); ++file) {
    if (skipped[static_cast<size_t>(file)] || whole.row_count(file) == 0) continue;
    all.push_back({file, whole.row_count(file)});
    rows += all.back().rows;
  }
  is_whole_ = rows <= rows_max;
  if (is_whole_) {
    parts_ = std::move(all);
    return;
  }
  const size_t count = std::min(all.size(), kFilesMax);
  const int64_t each = std::max<int64_t>(1, rows_max / static_cast<int64_t>(count));
  for (size_t i = 0; i < count; ++i) {
    const Part& part = all[i * all.size() / count];
    parts_.push_back({part.file, std::min(part.rows, each)});
  }
}

Status SampledSource::Read(int file, const std::vector<std::string>& columns, int64_t batch_rows,
                           const RowsCallback& on_rows) {
  const Part& part = PartOf(file);
  const bool whole = part.rows == whole_.row_count(part.file);
  const Status enough = Cancelled("enough");
  bool given_all = false;
  const Status status = whole_.Read(
      part.file, columns, batch_rows, [&](const auto& rows, int64_t first) -> Status {
        if (whole) return on_rows(rows, first);
        const int64_t left = part.rows - first;
        ARROW_RETURN_NOT_OK(on_rows(left < rows->num_rows() ? rows->Slice(0, left) : rows, first));
        given_all = left <= rows->num_rows();
        return given_all ? enough : Status::OK();
      });
  return given_all ? Status::OK() : status;
}

Result<RewriteCosts> EstimateCosts(RowSource& sampled, const PreparedRewrite& prepared,
                                   const RewriteOptions& options) {
  const auto share = MemoryShare::Of(options.memory_bytes_max, options.threads);
  const auto piece_rows = std::max<int64_t>(
      1, static_cast<int64_t>(static_cast<double>(share.scatter_bytes) / prepared.row_bytes /
                              static_cast<double>(prepared.plan.partitions.size())));
  PackedBytes bytes;
  for (int file = 0; file < sampled.file_count(); ++file) {
    const Status status = sampled.Read(
        file, {}, std::max<int64_t>(piece_rows, 64 << 10), [&](const auto& rows, int64_t) {
          return PackPieces(prepared.sample->order(), rows, piece_rows, &bytes);
        });
    ARROW_RETURN_NOT_OK(status);
  }
  RewriteCosts costs;
  costs.sampled_rows = bytes.rows;
  if (bytes.rows == 0) return costs;
  const double scale =
      static_cast<double>(prepared.row_count) / static_cast<double>(bytes.rows);
  const double all = static_cast<double>(bytes.memory) * scale;
  const double held = std::min(all, static_cast<double>(share.held_bytes));
  const double packed_share =
      static_cast<double>(bytes.packed) / static_cast<double>(bytes.memory);
  costs.spilled_bytes = std::llround((all - held) * packed_share);
  // Row groups of the source seldom fill what may be held of them.
  const double scattering =
      static_cast<double>(2 * share.scatter_bytes + share.reading_bytes / 2);
  const double writing =
      static_cast<double>(share.partition_bytes + 2 * share.row_group_bytes);
  const double at_work = share.threads * std::max(scattering, writing);
  costs.memory_bytes = std::llround(held + std::min(all, at_work));
  return costs;
}

int64_t EstimateFiles(const PreparedRewrite& prepared) {
  const RowSample& sample = *prepared.sample;
  int64_t sections = 0;
  for (int64_t i = 0; i < sample.count(); ++i) {
    sections += i == 0 || sample.section(i) != sample.section(i - 1) ? 1 : 0;
  }
  return static_cast<int64_t>(prepared.plan.files.size()) - sample.order().section_count() +
         sections;
}

int64_t EstimateKeys(const PreparedRewrite& prepared) {
  const RowSample& sample = *prepared.sample;
  const auto key_level = static_cast<int>(sample.order().tie_columns().size());
  int64_t once = 0, keys = 0, run = 0;
  for (int64_t i = 0; i < sample.count(); ++i) {
    ++run;
    const bool ends = i + 1 == sample.count() || sample.section(i + 1) != sample.section(i) ||
                      sample.Level(i + 1) >= key_level;
    if (!ends) continue;
    keys += 1;
    once += run == 1 ? 1 : 0;
    run = 0;
  }
  return keys - once + std::llround(static_cast<double>(once) * std::sqrt(sample.weight()));
}

}  // namespace grebe::layout

#include "layout/partition_writer.h"

#include <algorithm>
#include <array>

#include "base/failpoint.h"
#include "layout/cuts.h"
#include "layout/sort_rows.h"
#include "layout/value_order.h"

namespace grebe::layout {
namespace {

constexpr const char* kWordName = "grebe.word";
constexpr const char* kSectionName = "grebe.section";
// Rows gathered at once: small enough that a column of them stays in the cache.
constexpr int64_t kGatherRowsMax = 32 << 10;
constexpr int64_t kGatherBytesMax = 16 << 20;

template <class T>
std::shared_ptr<arrow::Array> ArrayOf(const std::shared_ptr<arrow::DataType>& type,
                                      std::vector<T> values) {
  const auto count = static_cast<int64_t>(values.size());
  return arrow::MakeArray(arrow::ArrayData::Make(
      type, count, {nullptr, arrow::Buffer::FromVector(std::move(values))}, 0));
}

}  // namespace

std::shared_ptr<arrow::Schema> PieceSchema(const std::shared_ptr<arrow::Schema>& source,
                                           bool has_sections) {
  arrow::FieldVector fields = source->fields();
  fields.push_back(arrow::field(kWordName, arrow::uint64(), false));
  if (has_sections) fields.push_back(arrow::field(kSectionName, arrow::uint32(), false));
  return arrow::schema(std::move(fields));
}

std::shared_ptr<arrow::RecordBatch> WithKeys(const std::shared_ptr<arrow::RecordBatch>& rows,
                                             RowKeys keys) {
  const bool has_sections = !keys.sections.empty();
  arrow::ArrayVector columns = rows->columns();
  columns.push_back(ArrayOf(arrow::uint64(), std::move(keys.words)));
  if (has_sections) columns.push_back(ArrayOf(arrow::uint32(), std::move(keys.sections)));
  return arrow::RecordBatch::Make(PieceSchema(rows->schema(), has_sections), rows->num_rows(),
                                  std::move(columns));
}

Status PieceScatter::Add(const std::shared_ptr<arrow::RecordBatch>& rows, int file,
                         int64_t first_row) {
  RowKeys keys;
  ARROW_RETURN_NOT_OK(sample_.order().Keys(*rows, &keys));
  ARROW_ASSIGN_OR_RAISE(const Columns ties, ColumnsOf(*rows, sample_.order().tie_columns()));
  const auto count = static_cast<size_t>(rows->num_rows());
  std::vector<uint32_t> partitions(count);
  for (size_t row = 0; row < count; ++row) {
    const auto at = static_cast<int64_t>(row);
    partitions[row] = static_cast<uint32_t>(finder_.Find(
        {keys.section(row), keys.words[row], &ties, at, file, first_row + at}));
  }
  auto batch = WithKeys(rows, std::move(keys));
  bytes_ += BytesOf(*batch);
  batches_.push_back(std::move(batch));
  files_.push_back(file);
  partitions_.push_back(std::move(partitions));
  return bytes_ >= bytes_max_ ? Flush() : Status::OK();
}

Status PieceScatter::Flush() {
  if (batches_.empty()) return Status::OK();
  // Counting sort by partition: within one the rows keep their order.
  std::vector<size_t> starts(dropped_.size() + 1);
  size_t total = 0;
  for (const auto& partitions : partitions_) {
    for (const uint32_t partition : partitions) ++starts[partition + 1];
    total += partitions.size();
  }
  for (size_t i = 1; i < starts.size(); ++i) starts[i] += starts[i - 1];
  std::vector<size_t> next(starts.begin(), starts.end() - 1);
  std::vector<RowRef> rows(total);
  for (uint32_t batch = 0; batch < partitions_.size(); ++batch) {
    for (uint32_t row = 0; row < partitions_[batch].size(); ++row) {
      rows[next[partitions_[batch][row]]++] = {batch, row};
    }
  }
  for (size_t partition = 0; partition < dropped_.size(); ++partition) {
    const size_t count = starts[partition + 1] - starts[partition];
    if (count == 0 || dropped_[partition]) continue;
    ARROW_RETURN_NOT_OK(AddPiece(partition, std::span(rows).subspan(starts[partition], count)));
  }
  batches_.clear();
  files_.clear();
  partitions_.clear();
  bytes_ = 0;
  return Status::OK();
}

Status PieceScatter::AddPiece(size_t partition, std::span<const RowRef> rows) {
  ARROW_ASSIGN_OR_RAISE(Batches gathered,
                        GatherSome(batches_, rows, RowPool()));
  for (auto& batch : gathered) {
    Piece piece;
    for (const RowRef row : rows.first(static_cast<size_t>(batch->num_rows()))) {
      const int file = files_[row.batch];
      if (piece.runs.empty() || piece.runs.back().file != file) piece.runs.push_back({file, 0});
      ++piece.runs.back().row_count;
    }
    rows = rows.subspan(static_cast<size_t>(batch->num_rows()));
    piece.rows = std::move(batch);
    ARROW_RETURN_NOT_OK(store_->Add(partition, std::move(piece)));
  }
  return Status::OK();
}

PartitionWriter::PartitionWriter(const Context& context, const PlannedTask& task)
    : context_(context), order_(context.prepared->sample->order()), task_(task),
      level_min_(context.options->unparted_columns == 0
                     ? 0
                     : static_cast<int>(order_.tie_columns().size()) -
                           context.options->unparted_columns + 1) {
  const double row_bytes = context.prepared->row_bytes;
  const auto rows_of = [row_bytes](int64_t bytes) {
    return std::max<int64_t>(1, static_cast<int64_t>(static_cast<double>(bytes) / row_bytes));
  };
  row_group_rows_ = std::clamp<int64_t>(context.options->target_row_group_rows, 1,
                                        rows_of(context.share.row_group_bytes));
  gather_rows_ = std::min(kGatherRowsMax, rows_of(kGatherBytesMax));
}

Status PartitionWriter::Run() {
  for (int i = 0; i < task_.partition_count; ++i) {
    ARROW_RETURN_NOT_OK(WritePartition(task_.first_partition + i));
  }
  return Status::OK();
}

Status PartitionWriter::WritePartition(int partition) {
  const auto& plan = context_.prepared->plan;
  const PlannedPartition& planned = plan.partitions[static_cast<size_t>(partition)];
  const bool last_of_file = partition + 1 == task_.first_partition + task_.partition_count;
  if (context_.target->IsFinished(planned.first_file) && planned.file_count == 1) {
    return Status::OK();
  }
  ARROW_RETURN_NOT_OK(CheckFits(static_cast<size_t>(partition)));
  ARROW_ASSIGN_OR_RAISE(auto pieces, context_.store->Take(static_cast<size_t>(partition)));
  ARROW_ASSIGN_OR_RAISE(const Sorted sorted, Sort(std::move(pieces)));
  int64_t at = 0;
  for (int i = 0; i < planned.file_count; ++i) {
    const int file = planned.first_file + i;
    int64_t end = sorted.count();
    if (i + 1 < planned.file_count) {
      end = FirstRowOf(sorted, plan.files[static_cast<size_t>(file) + 1].begin, at);
    }
    if (!context_.target->IsFinished(file)) {
      if (open_file_ != file) {
        ARROW_RETURN_NOT_OK(BeginFile(file));
        file_rows_left_ = end - at;
        if (planned.file_count == 1) {
          file_rows_left_ = 0;
          for (int p = 0; p < task_.partition_count; ++p) {
            file_rows_left_ +=
                p == 0 ? sorted.count()
                       : context_.store->row_count(static_cast<size_t>(task_.first_partition + p));
          }
        }
      }
      const bool file_ends = i + 1 < planned.file_count || last_of_file;
      ARROW_RETURN_NOT_OK(AppendRows(sorted, at, end, file_ends));
      if (file_ends) ARROW_RETURN_NOT_OK(EndFile());
    }
    at = end;
  }
  return Status::OK();
}

// A partition whose rows may part is as small as was planned, or nearly. Others hold the rows of
// one key, however many: those that the sample did not foresee must not pass the limit silently.
Status PartitionWriter::CheckFits(size_t partition) const {
  if (context_.options->unparted_columns == 0) return Status::OK();
  const int64_t bytes = context_.store->size_bytes(partition);
  if (bytes <= 2 * context_.share.partition_bytes + context_.share.key_bytes_max) {
    return Status::OK();
  }
  return LimitExceeded("rows of one key, which may not part, do not fit the memory limit", "rows",
                       context_.store->row_count(partition), "key_bytes", bytes, "key_bytes_max",
                       context_.share.key_bytes_max, "memory_bytes_max",
                       context_.options->memory_bytes_max);
}

Result<PartitionWriter::Sorted> PartitionWriter::Sort(std::vector<Piece> pieces) const {
  Sorted sorted;
  sorted.rows = SourceOrder(pieces, context_.store->excluded());
  const int keys = order_.has_sections() ? 2 : 1;
  std::vector<const uint64_t*> words;
  std::vector<const uint32_t*> sections;
  std::vector<std::shared_ptr<arrow::RecordBatch>> keyed;   // keeps the keys alive
  for (Piece& piece : pieces) {
    const int data = piece.rows->num_columns() - keys;
    words.push_back(piece.rows->column_data(data)->GetValues<uint64_t>(1));
    if (keys == 2) sections.push_back(piece.rows->column_data(data + 1)->GetValues<uint32_t>(1));
    auto columns = piece.rows->columns();
    columns.resize(static_cast<size_t>(data));
    arrow::FieldVector fields = piece.rows->schema()->fields();
    fields.resize(static_cast<size_t>(data));
    sorted.batches.push_back(arrow::RecordBatch::Make(
        arrow::schema(std::move(fields)), piece.rows->num_rows(), std::move(columns)));
    ARROW_ASSIGN_OR_RAISE(auto ties, ColumnsOf(*sorted.batches.back(), order_.tie_columns()));
    sorted.ties.push_back(std::move(ties));
    keyed.push_back(std::move(piece.rows));
  }
  sorted.words.reserve(sorted.rows.size());
  for (const RowRef row : sorted.rows) sorted.words.push_back(words[row.batch][row.row]);
  SortByWords(&sorted.words, &sorted.rows);
  if (keys == 2) {
    std::vector<uint64_t> by_section;
    by_section.reserve(sorted.rows.size());
    for (const RowRef row : sorted.rows) by_section.push_back(sections[row.batch][row.row]);
    SortByWords(&by_section, &sorted.rows);
    sorted.sections.assign(by_section.begin(), by_section.end());
    for (size_t i = 0; i < sorted.rows.size(); ++i) {
      sorted.words[i] = words[sorted.rows[i].batch][sorted.rows[i].row];
    }
  }
  if (!order_.tie_columns().empty()) ARROW_RETURN_NOT_OK(SortEqualWords(&sorted));
  return sorted;
}

// Most runs are short: they are not worth std::stable_sort's buffer.
template <class Less>
void PartitionWriter::SortRun(std::span<RowRef> rows, const Less& less) {
  constexpr size_t kShort = 24;
  if (rows.size() > kShort) {
    std::stable_sort(rows.begin(), rows.end(), less);
    return;
  }
  for (size_t i = 1; i < rows.size(); ++i) {
    const RowRef row = rows[i];
    size_t at = i;
    for (; at > 0 && less(row, rows[at - 1]); --at) rows[at] = rows[at - 1];
    rows[at] = row;
  }
}

Status PartitionWriter::SortEqualWords(Sorted* sorted) const {
  // Words of the second tie column: they decide most of what the first one's leave open.
  std::vector<std::vector<uint64_t>> second(sorted->ties.size());
  bool second_decides = false;
  if (order_.tie_columns().size() > 1) {
    for (size_t i = 0; i < second.size(); ++i) {
      const arrow::Array& column = *sorted->ties[i][1];
      second[i].resize(static_cast<size_t>(column.length()));
      ARROW_RETURN_NOT_OK(ValueWords(column, second[i].data()));
      second_decides = WordsAreExact(*column.type());
    }
  }
  const auto by_values = [&](RowRef a, RowRef b, size_t first) {
    return CompareRows(sorted->ties[a.batch], a.row, sorted->ties[b.batch], b.row, first) < 0;
  };
  const auto by_words = [&](RowRef a, RowRef b) {
    const uint64_t left = second[a.batch][a.row], right = second[b.batch][b.row];
    if (left != right) return left < right;
    return by_values(a, b, second_decides && left != 0 ? 2 : 1);
  };
  const size_t count = sorted->rows.size();
  for (size_t begin = 0, end = 0; begin < count; begin = end) {
    const uint64_t word = sorted->words[begin];
    end = begin + 1;
    while (end < count && sorted->words[end] == word &&
           (sorted->sections.empty() || sorted->sections[end] == sorted->sections[begin])) {
      ++end;
    }
    const size_t first = order_.FirstTie(word);
    if (end - begin < 2 || first == order_.tie_columns().size()) continue;
    const auto run = std::span(sorted->rows).subspan(begin, end - begin);
    if (first == 1) {
      SortRun(run, by_words);
    } else {
      SortRun(run, [&](RowRef a, RowRef b) { return by_values(a, b, 0); });
    }
  }
  return Status::OK();
}

RowPlace PartitionWriter::PlaceOf(const Sorted& sorted, int64_t i) const {
  const auto at = static_cast<size_t>(i);
  const RowRef row = sorted.rows[at];
  return {sorted.sections.empty() ? 0 : sorted.sections[at], sorted.words[at],
          &sorted.ties[row.batch], row.row};
}

int64_t PartitionWriter::FirstRowOf(const Sorted& sorted, const Border& border,
                                    int64_t from) const {
  int64_t low = from, high = sorted.count();
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (context_.prepared->sample->IsBefore(PlaceOf(sorted, middle), border)) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

Status PartitionWriter::BeginFile(int file) {
  open_file_ = file;
  open_section_ = context_.prepared->plan.files[static_cast<size_t>(file)].section;
  file_ = nullptr;
  carried_ = {};
  return Status::OK();
}

Status PartitionWriter::AppendRows(const Sorted& sorted, int64_t begin, int64_t end,
                                   bool file_ends) {
  if (carried_.count() > 0) {
    // What was carried goes first: one sequence of rows over the carried batch and the others.
    Sorted joined = std::move(carried_);
    carried_ = {};
    const auto shift = static_cast<uint32_t>(joined.batches.size());
    joined.batches.insert(joined.batches.end(), sorted.batches.begin(), sorted.batches.end());
    joined.ties.insert(joined.ties.end(), sorted.ties.begin(), sorted.ties.end());
    for (int64_t i = begin; i < end; ++i) {
      const RowRef row = sorted.rows[static_cast<size_t>(i)];
      joined.rows.push_back({row.batch + shift, row.row});
      joined.words.push_back(sorted.words[static_cast<size_t>(i)]);
    }
    return AppendRows(joined, 0, joined.count(), file_ends);
  }
  const auto level = [&](int64_t i) {
    return BorderLevel(order_, PlaceOf(sorted, i - 1), PlaceOf(sorted, i));
  };
  int64_t at = begin;
  while (at < end) {
    const int64_t file_end = at + file_rows_left_;
    const int64_t needed = std::min(file_rows_left_, CutLookahead(row_group_rows_) + 1);
    if (!file_ends && end - at < needed) break;
    int64_t cut = NextCut(at, file_end, row_group_rows_, level);
    while (cut < end && level(cut) < level_min_) ++cut;
    if (cut >= end && !file_ends && file_end > end) break;   // the next rows may belong with these
    ARROW_RETURN_NOT_OK(WriteRowGroup(sorted, at, cut));
    at = cut;
  }
  return at < end ? Carry(sorted, at, end) : Status::OK();
}

Status PartitionWriter::Carry(const Sorted& sorted, int64_t begin, int64_t end) {
  const auto rows = std::span(sorted.rows).subspan(static_cast<size_t>(begin),
                                                   static_cast<size_t>(end - begin));
  ARROW_ASSIGN_OR_RAISE(Batches batches,
                        GatherSome(sorted.batches, rows, RowPool()));
  for (const auto& batch : batches) {
    ARROW_ASSIGN_OR_RAISE(auto ties, ColumnsOf(*batch, order_.tie_columns()));
    carried_.ties.push_back(std::move(ties));
    const auto ordinal = static_cast<uint32_t>(carried_.batches.size());
    for (int64_t row = 0; row < batch->num_rows(); ++row) {
      carried_.rows.push_back({ordinal, static_cast<uint32_t>(row)});
    }
    carried_.batches.push_back(batch);
  }
  carried_.words.assign(sorted.words.begin() + begin, sorted.words.begin() + end);
  return Status::OK();
}

Status PartitionWriter::WriteRowGroup(const Sorted& sorted, int64_t begin, int64_t end) {
  if (context_.options->stop != nullptr) ARROW_RETURN_NOT_OK(context_.options->stop->Check());
  GREBE_FAILPOINT("rewrite.mid_file");
  if (file_ == nullptr) {
    ARROW_ASSIGN_OR_RAISE(file_, context_.target->Create(open_file_, open_section_));
  }
  Batches batches;
  std::vector<int64_t> key_ends;
  for (int64_t at = begin; at < end; at += gather_rows_) {
    const auto count = static_cast<size_t>(std::min(gather_rows_, end - at));
    ARROW_ASSIGN_OR_RAISE(Batches some,
                          GatherSome(sorted.batches,
                                     std::span(sorted.rows).subspan(static_cast<size_t>(at), count),
                                     RowPool()));
    batches.insert(batches.end(), some.begin(), some.end());
  }
  if (context_.options->key_ends) {
    const int highest = order_.is_curve() ? 1 : static_cast<int>(order_.tie_columns().size());
    for (int64_t at = begin + 1; at < end; ++at) {
      if (BorderLevel(order_, PlaceOf(sorted, at - 1), PlaceOf(sorted, at)) >= highest) {
        key_ends.push_back(at - begin);
      }
    }
    key_ends.push_back(end - begin);
  }
  ARROW_ASSIGN_OR_RAISE(auto table, arrow::Table::FromRecordBatches(batches));
  ARROW_RETURN_NOT_OK(file_->WriteRowGroup(table, key_ends));
  file_rows_left_ -= end - begin;
  context_.report(end - begin);
  return Status::OK();
}

Status PartitionWriter::EndFile() {
  open_file_ = -1;
  if (file_ == nullptr) return Status::OK();   // no row fell into it
  ARROW_RETURN_NOT_OK(file_->Finish());
  file_ = nullptr;
  context_.files_written->fetch_add(1);
  return Status::OK();
}

}  // namespace grebe::layout

#include "index/covering.h"

#include <arrow/array.h>
#include <arrow/io/memory.h>
#include <arrow/ipc/dictionary.h>
#include <arrow/ipc/reader.h>
#include <arrow/ipc/writer.h>
#include <arrow/table.h>
#include <arrow/util/compression.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/coding.h"
#include "base/hash.h"
#include "base/take_rows.h"
#include "index/posting_sorter.h"

namespace grebe::index {
namespace {

Status CheckCoveringType(const arrow::DataType& type, const std::string& name) {
  if (type.id() == arrow::Type::DICTIONARY || type.id() == arrow::Type::EXTENSION) {
    return Unsupported("type of a covering column", "column", name, "type", type.ToString());
  }
  for (const auto& field : type.fields()) {
    ARROW_RETURN_NOT_OK(CheckCoveringType(*field->type(), name));
  }
  return Status::OK();
}

std::shared_ptr<arrow::Buffer> OwnedBuffer(std::string bytes) {
  return arrow::Buffer::FromString(std::move(bytes));
}

}  // namespace

Status CheckCoveringSchema(const arrow::Schema& schema) {
  for (const auto& field : schema.fields()) {
    ARROW_RETURN_NOT_OK(CheckCoveringType(*field->type(), field->name()));
  }
  return Status::OK();
}

Result<std::string> SerializeSchema(const arrow::Schema& schema) {
  ARROW_ASSIGN_OR_RAISE(auto buffer, arrow::ipc::SerializeSchema(schema));
  return buffer->ToString();
}

Result<std::shared_ptr<arrow::Schema>> ParseSchema(std::string_view bytes) {
  arrow::io::BufferReader reader(OwnedBuffer(std::string(bytes)));
  arrow::ipc::DictionaryMemo memo;
  auto schema = arrow::ipc::ReadSchema(&reader, &memo);
  if (!schema.ok()) return Corrupt("bad covering schema", "error", schema.status().message());
  return schema;
}

Result<std::string> SerializeBatch(const arrow::RecordBatch& batch) {
  ARROW_ASSIGN_OR_RAISE(auto buffer, arrow::ipc::SerializeRecordBatch(
                                         batch, arrow::ipc::IpcWriteOptions::Defaults()));
  return buffer->ToString();
}

Result<std::shared_ptr<arrow::RecordBatch>> ParseBatch(
    std::string bytes, const std::shared_ptr<arrow::Schema>& schema) {
  arrow::io::BufferReader reader(OwnedBuffer(std::move(bytes)));
  arrow::ipc::DictionaryMemo memo;
  return arrow::ipc::ReadRecordBatch(schema, &memo, arrow::ipc::IpcReadOptions::Defaults(),
                                     &reader);
}

std::shared_ptr<arrow::Schema> WithRowColumn(const std::shared_ptr<arrow::Schema>& covering) {
  std::vector<std::shared_ptr<arrow::Field>> fields = covering->fields();
  fields.push_back(arrow::field("", arrow::uint64(), false));
  return arrow::schema(std::move(fields));
}

Status CoveringRows::Load(const std::shared_ptr<arrow::Schema>& covering,
                          const std::vector<BlobStore::Ref>& pieces, BlobStore* store) {
  index_.clear();
  const auto schema = WithRowColumn(covering);
  std::vector<std::shared_ptr<arrow::RecordBatch>> batches;
  for (const BlobStore::Ref& ref : pieces) {
    ARROW_ASSIGN_OR_RAISE(std::string bytes, store->Take(ref));
    ARROW_ASSIGN_OR_RAISE(auto batch, ParseBatch(std::move(bytes), schema));
    batches.push_back(std::move(batch));
  }
  ARROW_ASSIGN_OR_RAISE(auto table, arrow::Table::FromRecordBatches(schema, batches));
  ARROW_ASSIGN_OR_RAISE(batch_, table->CombineChunksToBatch());
  const int row_column = batch_->num_columns() - 1;
  const auto& rows = static_cast<const arrow::UInt64Array&>(*batch_->column(row_column));
  index_.reserve(static_cast<size_t>(rows.length()));
  for (int64_t i = 0; i < rows.length(); ++i) index_.emplace_back(rows.Value(i), i);
  std::sort(index_.begin(), index_.end());
  ARROW_ASSIGN_OR_RAISE(batch_, batch_->RemoveColumn(row_column));
  batch_ = arrow::RecordBatch::Make(covering, batch_->num_rows(), batch_->columns());
  return Status::OK();
}

Status CoveringRows::AppendBlock(std::span<const RowRun> runs, std::string* out) {
  std::vector<int64_t> indices;
  for (const RowRun& run : runs) {
    auto at = std::lower_bound(index_.begin(), index_.end(), std::pair(run.row, int64_t{-1}));
    for (uint64_t row = run.row; row < run.row + run.count; ++row, ++at) {
      if (at == index_.end() || at->first != row) {
        return InvalidArgument("a row has no covering values", "row", row);
      }
      indices.push_back(at->second);
    }
  }
  ARROW_ASSIGN_OR_RAISE(auto batch, TakeRows(batch_, indices));
  ARROW_ASSIGN_OR_RAISE(auto sink, arrow::io::BufferOutputStream::Create());
  auto options = arrow::ipc::IpcWriteOptions::Defaults();
  ARROW_ASSIGN_OR_RAISE(options.codec, arrow::util::Codec::Create(arrow::Compression::ZSTD));
  ARROW_ASSIGN_OR_RAISE(auto writer,
                        arrow::ipc::MakeStreamWriter(sink, batch->schema(), options));
  ARROW_RETURN_NOT_OK(writer->WriteRecordBatch(*batch));
  ARROW_RETURN_NOT_OK(writer->Close());
  ARROW_ASSIGN_OR_RAISE(auto bytes, sink->Finish());
  const std::string_view view(reinterpret_cast<const char*>(bytes->data()),
                              static_cast<size_t>(bytes->size()));
  PutFixed(out, Checksum(view));
  out->append(view);
  return Status::OK();
}

Status PostingSorter::Feeder::AddCovering(const std::shared_ptr<arrow::RecordBatch>& batch,
                                          const std::vector<uint64_t>& rows,
                                          const std::vector<uint64_t>& hashes,
                                          const std::vector<uint8_t>& null_rows) {
  const size_t null_partition = slots_.size() - 1;
  std::vector<size_t> partition_of(hashes.size());
  for (size_t i = 0; i < hashes.size(); ++i) {
    const bool null = !null_rows.empty() && null_rows[i] != 0;
    partition_of[i] = null ? null_partition : sorter_->PartitionOf(hashes[i]);
  }
  std::vector<int64_t> order(hashes.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return partition_of[static_cast<size_t>(a)] < partition_of[static_cast<size_t>(b)];
  });
  ARROW_ASSIGN_OR_RAISE(auto sorted, TakeRows(batch, order));
  std::vector<uint64_t> sorted_rows(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) sorted_rows[i] = rows[static_cast<size_t>(order[i])];
  auto columns = sorted->columns();
  columns.push_back(std::make_shared<arrow::UInt64Array>(
      static_cast<int64_t>(rows.size()), arrow::Buffer::Wrap(sorted_rows)));
  sorted = arrow::RecordBatch::Make(WithRowColumn(sorter_->options_.covering), sorted->num_rows(),
                                    std::move(columns));
  for (size_t begin = 0; begin < order.size();) {
    const size_t partition = partition_of[static_cast<size_t>(order[begin])];
    size_t end = begin + 1;
    while (end < order.size() && partition_of[static_cast<size_t>(order[end])] == partition) ++end;
    const auto piece =
        sorted->Slice(static_cast<int64_t>(begin), static_cast<int64_t>(end - begin));
    ARROW_ASSIGN_OR_RAISE(const std::string bytes, SerializeBatch(*piece));
    ARROW_ASSIGN_OR_RAISE(const BlobStore::Ref ref, sorter_->covering_rows_.Put(bytes));
    std::lock_guard lock(sorter_->mutex_);
    sorter_->partitions_[partition].covering.push_back(ref);
    begin = end;
  }
  return Status::OK();
}

}  // namespace grebe::index

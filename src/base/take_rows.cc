#include "base/take_rows.h"

#include <arrow/array/builder_base.h>
#include <arrow/array/builder_primitive.h>
#include <arrow/array/util.h>
#include <arrow/builder.h>
#include <arrow/compute/api_vector.h>
#include <arrow/datum.h>
#include <arrow/extension_type.h>

namespace grebe {
namespace {

bool HasView(const arrow::DataType& type) {
  switch (type.id()) {
    case arrow::Type::STRING_VIEW:
    case arrow::Type::BINARY_VIEW:
    case arrow::Type::LIST_VIEW:
    case arrow::Type::LARGE_LIST_VIEW: return true;
    case arrow::Type::EXTENSION:
      return HasView(*static_cast<const arrow::ExtensionType&>(type).storage_type());
    default: break;
  }
  for (const auto& field : type.fields()) {
    if (HasView(*field->type())) return true;
  }
  return false;
}

Result<std::shared_ptr<arrow::Array>> CopyRows(const std::shared_ptr<arrow::Array>& column,
                                               const std::vector<int64_t>& positions) {
  if (column->type_id() == arrow::Type::EXTENSION) {
    const auto& extension = static_cast<const arrow::ExtensionArray&>(*column);
    ARROW_ASSIGN_OR_RAISE(auto storage, CopyRows(extension.storage(), positions));
    return arrow::ExtensionType::WrapArray(column->type(), storage);
  }
  ARROW_ASSIGN_OR_RAISE(auto builder, arrow::MakeBuilder(column->type()));
  const arrow::ArraySpan span(*column->data());
  for (const int64_t position : positions) {
    ARROW_RETURN_NOT_OK(builder->AppendArraySlice(span, position, 1));
  }
  return builder->Finish();
}

}  // namespace

Result<std::shared_ptr<arrow::RecordBatch>> TakeRows(
    const std::shared_ptr<arrow::RecordBatch>& batch, const std::vector<int64_t>& positions) {
  bool identity = static_cast<int64_t>(positions.size()) == batch->num_rows();
  for (size_t i = 0; identity && i < positions.size(); ++i) {
    identity = positions[i] == static_cast<int64_t>(i);
  }
  if (identity) return batch;
  arrow::Int64Builder builder;
  ARROW_RETURN_NOT_OK(builder.AppendValues(positions));
  ARROW_ASSIGN_OR_RAISE(auto indices, builder.Finish());
  arrow::ArrayVector columns;
  for (const auto& column : batch->columns()) {
    std::shared_ptr<arrow::Array> taken;
    if (HasView(*column->type())) {
      ARROW_ASSIGN_OR_RAISE(taken, CopyRows(column, positions));
    } else {
      ARROW_ASSIGN_OR_RAISE(taken, arrow::compute::Take(*column, *indices));
    }
    columns.push_back(std::move(taken));
  }
  return arrow::RecordBatch::Make(batch->schema(), static_cast<int64_t>(positions.size()),
                                  std::move(columns));
}

Result<std::shared_ptr<arrow::RecordBatch>> EmptyRows(
    const std::shared_ptr<arrow::Schema>& schema) {
  arrow::ArrayVector columns;
  for (const auto& field : schema->fields()) {
    ARROW_ASSIGN_OR_RAISE(auto column, arrow::MakeArrayOfNull(field->type(), 0));
    columns.push_back(std::move(column));
  }
  return arrow::RecordBatch::Make(schema, 0, std::move(columns));
}

}  // namespace grebe

#include "layout/dictionaries.h"

#include <arrow/array.h>
#include <arrow/array/util.h>
#include <arrow/compute/api_vector.h>
#include <arrow/compute/cast.h>
#include <arrow/datum.h>

namespace grebe::layout {
namespace {

using arrow::Type;

std::shared_ptr<arrow::Field> PlainField(const std::shared_ptr<arrow::Field>& field);

std::shared_ptr<arrow::DataType> PlainType(const std::shared_ptr<arrow::DataType>& type) {
  switch (type->id()) {
    case Type::DICTIONARY:
      return PlainType(static_cast<const arrow::DictionaryType&>(*type).value_type());
    case Type::LIST: return arrow::list(PlainField(type->field(0)));
    case Type::LARGE_LIST: return arrow::large_list(PlainField(type->field(0)));
    case Type::FIXED_SIZE_LIST:
      return arrow::fixed_size_list(
          PlainField(type->field(0)),
          static_cast<const arrow::FixedSizeListType&>(*type).list_size());
    case Type::MAP: {
      const auto& map = static_cast<const arrow::MapType&>(*type);
      return std::make_shared<arrow::MapType>(PlainField(map.key_field()),
                                              PlainField(map.item_field()), map.keys_sorted());
    }
    case Type::STRUCT: {
      arrow::FieldVector fields;
      for (const auto& field : type->fields()) fields.push_back(PlainField(field));
      return arrow::struct_(std::move(fields));
    }
    default: return type;
  }
}

std::shared_ptr<arrow::Field> PlainField(const std::shared_ptr<arrow::Field>& field) {
  return field->WithType(PlainType(field->type()));
}

Result<std::shared_ptr<arrow::Array>> Encode(const std::shared_ptr<arrow::Array>& array,
                                             const arrow::DictionaryType& type) {
  ARROW_ASSIGN_OR_RAISE(const arrow::Datum encoded, arrow::compute::DictionaryEncode(array));
  const std::shared_ptr<arrow::Array> made = encoded.make_array();
  const auto& dictionary = static_cast<const arrow::DictionaryArray&>(*made);
  ARROW_ASSIGN_OR_RAISE(auto indices,
                        arrow::compute::Cast(*dictionary.indices(), type.index_type()));
  return arrow::DictionaryArray::FromArrays(
      arrow::dictionary(type.index_type(), type.value_type(), type.ordered()), indices,
      dictionary.dictionary());
}

}  // namespace

std::shared_ptr<arrow::Schema> PlainSchema(const std::shared_ptr<arrow::Schema>& schema) {
  arrow::FieldVector fields;
  for (const auto& field : schema->fields()) fields.push_back(PlainField(field));
  return arrow::schema(std::move(fields), schema->metadata());
}

Result<std::shared_ptr<arrow::Array>> WithDictionariesOf(
    const std::shared_ptr<arrow::Array>& array, const std::shared_ptr<arrow::DataType>& type) {
  if (array->type()->Equals(*type)) return array;
  if (array->type_id() == Type::DICTIONARY) {
    return arrow::compute::Cast(*array, type);
  }
  if (type->id() == Type::DICTIONARY) {
    return Encode(array, static_cast<const arrow::DictionaryType&>(*type));
  }
  // Nested: the same buffers over other children.
  auto data = array->data()->Copy();
  data->type = type;
  for (size_t i = 0; i < data->child_data.size(); ++i) {
    ARROW_ASSIGN_OR_RAISE(auto child,
                          WithDictionariesOf(arrow::MakeArray(data->child_data[i]),
                                             type->field(static_cast<int>(i))->type()));
    data->child_data[i] = child->data();
  }
  return arrow::MakeArray(std::move(data));
}

Result<std::shared_ptr<arrow::RecordBatch>> WithDictionariesOf(
    const std::shared_ptr<arrow::RecordBatch>& batch,
    const std::shared_ptr<arrow::Schema>& schema) {
  arrow::ArrayVector columns;
  for (int i = 0; i < batch->num_columns(); ++i) {
    ARROW_ASSIGN_OR_RAISE(auto column,
                          WithDictionariesOf(batch->column(i), schema->field(i)->type()));
    columns.push_back(std::move(column));
  }
  return arrow::RecordBatch::Make(schema, batch->num_rows(), std::move(columns));
}

}  // namespace grebe::layout

#include "engine/covering_types.h"

#include <arrow/array/array_dict.h>
#include <arrow/compute/api_vector.h>
#include <arrow/compute/cast.h>
#include <arrow/datum.h>
#include <arrow/extension_type.h>

namespace grebe::engine {

std::shared_ptr<arrow::DataType> StoredType(const std::shared_ptr<arrow::DataType>& type) {
  if (type->id() == arrow::Type::DICTIONARY) {
    return static_cast<const arrow::DictionaryType&>(*type).value_type();
  }
  if (type->id() == arrow::Type::EXTENSION) {
    return static_cast<const arrow::ExtensionType&>(*type).storage_type();
  }
  return type;
}

Result<std::shared_ptr<arrow::Array>> ToStored(std::shared_ptr<arrow::Array> array,
                                               const std::shared_ptr<arrow::DataType>& stored) {
  if (array->type_id() == arrow::Type::EXTENSION) {
    array = static_cast<const arrow::ExtensionArray&>(*array).storage();
  }
  if (array->type()->Equals(*stored)) return array;
  return arrow::compute::Cast(*array, stored);
}

Result<std::shared_ptr<arrow::Array>> FromStored(std::shared_ptr<arrow::Array> array,
                                                 const std::shared_ptr<arrow::DataType>& type) {
  const auto stored = StoredType(type);
  if (!array->type()->Equals(*stored)) {
    ARROW_ASSIGN_OR_RAISE(array, arrow::compute::Cast(*array, stored));
  }
  if (type->id() == arrow::Type::EXTENSION) return arrow::ExtensionType::WrapArray(type, array);
  if (type->id() != arrow::Type::DICTIONARY) return array;
  ARROW_ASSIGN_OR_RAISE(arrow::Datum encoded, arrow::compute::DictionaryEncode(array));
  const auto& dictionary = static_cast<const arrow::DictionaryArray&>(*encoded.make_array());
  const auto& index_type = static_cast<const arrow::DictionaryType&>(*type).index_type();
  ARROW_ASSIGN_OR_RAISE(auto indices, arrow::compute::Cast(*dictionary.indices(), index_type));
  return arrow::DictionaryArray::FromArrays(type, indices, dictionary.dictionary());
}

}  // namespace grebe::engine

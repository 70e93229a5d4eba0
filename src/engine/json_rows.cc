// Arrow values as JSON text: what --format json and jsonl print.
#include <arrow/array.h>
#include <arrow/scalar.h>
#include <arrow/util/base64.h>
#include <arrow/util/float16.h>

#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/status.h"
#include "engine/json_text.h"
#include "grebe/output.h"

namespace grebe {
namespace engine {

void AppendJsonString(std::string_view text, std::string* out) {
  *out += nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace engine

namespace {

using engine::AppendJsonString;

// The shortest text that reads back as the same number; NaN and infinities have no JSON form and
// become strings.
template <class Float>
void AppendFloat(Float value, std::string* out) {
  if (std::isnan(value)) {
    *out += "\"NaN\"";
  } else if (std::isinf(value)) {
    *out += value > 0 ? "\"Infinity\"" : "\"-Infinity\"";
  } else {
    char text[64];
    const auto end = std::to_chars(text, text + sizeof(text), value);
    out->append(text, end.ptr);
  }
}

Status AppendList(const arrow::Array& values, int64_t begin, int64_t end, std::string* out) {
  *out += '[';
  for (int64_t i = begin; i < end; ++i) {
    if (i > begin) *out += ',';
    ARROW_RETURN_NOT_OK(AppendJson(values, i, out));
  }
  *out += ']';
  return Status::OK();
}

Status AppendStruct(const arrow::StructArray& array, int64_t row, std::string* out) {
  *out += '{';
  for (int i = 0; i < array.num_fields(); ++i) {
    if (i > 0) *out += ',';
    AppendJsonString(array.type()->field(i)->name(), out);
    *out += ':';
    ARROW_RETURN_NOT_OK(AppendJson(*array.field(i), row, out));
  }
  *out += '}';
  return Status::OK();
}

// A map is a list of {"key": ..., "value": ...}: keys need not be strings.
Status AppendMap(const arrow::MapArray& array, int64_t row, std::string* out) {
  *out += '[';
  for (int64_t i = array.value_offset(row); i < array.value_offset(row + 1); ++i) {
    if (i > array.value_offset(row)) *out += ',';
    *out += "{\"key\":";
    ARROW_RETURN_NOT_OK(AppendJson(*array.keys(), i, out));
    *out += ",\"value\":";
    ARROW_RETURN_NOT_OK(AppendJson(*array.items(), i, out));
    *out += '}';
  }
  *out += ']';
  return Status::OK();
}

void AppendUuid(const uint8_t* bytes, std::string* out) {
  static constexpr char kHex[] = "0123456789abcdef";
  *out += '"';
  for (int i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) *out += '-';
    *out += kHex[bytes[i] >> 4];
    *out += kHex[bytes[i] & 15];
  }
  *out += '"';
}

Status AppendExtension(const arrow::ExtensionArray& array, int64_t row, std::string* out) {
  const auto& type = static_cast<const arrow::ExtensionType&>(*array.type());
  if (type.extension_name() == "arrow.uuid") {
    const auto& storage = static_cast<const arrow::FixedSizeBinaryArray&>(*array.storage());
    AppendUuid(storage.GetValue(row), out);
    return Status::OK();
  }
  return AppendJson(*array.storage(), row, out);
}

template <class ArrayType>
void AppendBinary(const arrow::Array& array, int64_t row, std::string* out) {
  *out += '"' + arrow::util::base64_encode(static_cast<const ArrayType&>(array).GetView(row)) + '"';
}

template <class ArrayType>
void AppendText(const arrow::Array& array, int64_t row, std::string* out) {
  AppendJsonString(static_cast<const ArrayType&>(array).GetView(row), out);
}

template <class ArrayType>
void AppendInteger(const arrow::Array& array, int64_t row, std::string* out) {
  *out += std::to_string(static_cast<const ArrayType&>(array).Value(row));
}

}  // namespace

Status AppendJson(const arrow::Array& array, int64_t row, std::string* out) {
  if (array.IsNull(row)) {
    *out += "null";
    return Status::OK();
  }
  using arrow::Type;
  switch (array.type_id()) {
    case Type::NA: *out += "null"; break;
    case Type::BOOL:
      *out += static_cast<const arrow::BooleanArray&>(array).Value(row) ? "true" : "false";
      break;
    case Type::INT8: AppendInteger<arrow::Int8Array>(array, row, out); break;
    case Type::INT16: AppendInteger<arrow::Int16Array>(array, row, out); break;
    case Type::INT32: AppendInteger<arrow::Int32Array>(array, row, out); break;
    case Type::INT64: AppendInteger<arrow::Int64Array>(array, row, out); break;
    case Type::UINT8: AppendInteger<arrow::UInt8Array>(array, row, out); break;
    case Type::UINT16: AppendInteger<arrow::UInt16Array>(array, row, out); break;
    case Type::UINT32: AppendInteger<arrow::UInt32Array>(array, row, out); break;
    case Type::UINT64: AppendInteger<arrow::UInt64Array>(array, row, out); break;
    case Type::HALF_FLOAT:
      AppendFloat(arrow::util::Float16::FromBits(
                      static_cast<const arrow::HalfFloatArray&>(array).Value(row)).ToFloat(), out);
      break;
    case Type::FLOAT:
      AppendFloat(static_cast<const arrow::FloatArray&>(array).Value(row), out);
      break;
    case Type::DOUBLE:
      AppendFloat(static_cast<const arrow::DoubleArray&>(array).Value(row), out);
      break;
    case Type::STRING: AppendText<arrow::StringArray>(array, row, out); break;
    case Type::LARGE_STRING: AppendText<arrow::LargeStringArray>(array, row, out); break;
    case Type::STRING_VIEW: AppendText<arrow::StringViewArray>(array, row, out); break;
    case Type::BINARY: AppendBinary<arrow::BinaryArray>(array, row, out); break;
    case Type::LARGE_BINARY: AppendBinary<arrow::LargeBinaryArray>(array, row, out); break;
    case Type::BINARY_VIEW: AppendBinary<arrow::BinaryViewArray>(array, row, out); break;
    case Type::FIXED_SIZE_BINARY: AppendBinary<arrow::FixedSizeBinaryArray>(array, row, out); break;
    case Type::STRUCT: return AppendStruct(static_cast<const arrow::StructArray&>(array), row, out);
    case Type::MAP: return AppendMap(static_cast<const arrow::MapArray&>(array), row, out);
    case Type::LIST: {
      const auto& list = static_cast<const arrow::ListArray&>(array);
      return AppendList(*list.values(), list.value_offset(row), list.value_offset(row + 1), out);
    }
    case Type::LARGE_LIST: {
      const auto& list = static_cast<const arrow::LargeListArray&>(array);
      return AppendList(*list.values(), list.value_offset(row), list.value_offset(row + 1), out);
    }
    case Type::FIXED_SIZE_LIST: {
      const auto& list = static_cast<const arrow::FixedSizeListArray&>(array);
      return AppendList(*list.values(), list.value_offset(row), list.value_offset(row + 1), out);
    }
    case Type::DICTIONARY: {
      const auto& dictionary = static_cast<const arrow::DictionaryArray&>(array);
      return AppendJson(*dictionary.dictionary(), dictionary.GetValueIndex(row), out);
    }
    case Type::EXTENSION:
      return AppendExtension(static_cast<const arrow::ExtensionArray&>(array), row, out);
    default: {   // decimals, dates, times, timestamps, durations: their exact text
      ARROW_ASSIGN_OR_RAISE(auto scalar, array.GetScalar(row));
      AppendJsonString(scalar->ToString(), out);
    }
  }
  return Status::OK();
}

}  // namespace grebe

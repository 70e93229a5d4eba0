// Texts of keys: a value of every type, and the name of a key type.
// Whatever the bytes are, the answer is a value or a typed error; a value that comes back can be
// encoded; a key type that parses says its own name.
#include <arrow/array/util.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "key/key.h"

namespace {

using grebe::key::EncodedKeys;
using grebe::key::KeyCodec;
using grebe::key::KeyType;

const std::vector<std::shared_ptr<arrow::DataType>>& Types() {
  static const std::vector<std::shared_ptr<arrow::DataType>> types = {
      arrow::int8(), arrow::int64(), arrow::uint64(), arrow::decimal32(9, 2),
      arrow::decimal64(18, 18), arrow::decimal128(38, 10), arrow::decimal256(76, 0), arrow::utf8(),
      arrow::binary(), arrow::fixed_size_binary(5), arrow::fixed_size_binary(16), arrow::date32(),
      arrow::date64(), arrow::time32(arrow::TimeUnit::MILLI), arrow::time64(arrow::TimeUnit::NANO),
      arrow::timestamp(arrow::TimeUnit::NANO), arrow::timestamp(arrow::TimeUnit::SECOND, "UTC"),
      arrow::duration(arrow::TimeUnit::MICRO), arrow::boolean(), arrow::float16(),
      arrow::float32(), arrow::float64()};
  return types;
}

void Require(bool holds) {
  if (!holds) std::abort();
}

void TryKeyType(std::string_view text) {
  const auto type = KeyType::Parse(text);
  if (type.ok()) {
    Require(type->ToString() == text && type->value_type() != nullptr);
  } else {
    Require(grebe::IsKind(type.status(), grebe::ErrorKind::kInvalidArgument));
  }
}

void TryValue(const arrow::DataType& type, std::string_view text) {
  const auto value = grebe::key::ParseValue(type, text);
  if (!value.ok()) {
    Require(grebe::IsKind(value.status(), grebe::ErrorKind::kInvalidArgument));
    return;
  }
  const auto array = arrow::MakeArrayFromScalar(**value, 1);
  Require(array.ok());
  const KeyCodec codec({KeyType::FromArrow(type).ValueOrDie()});
  EncodedKeys keys;
  std::vector<bool> absent;
  const std::vector<std::shared_ptr<arrow::Array>> columns = {*array};
  Require(codec.EncodeQuery(columns, &keys, &absent).ok());
  Require(keys.count() == 1 && absent.size() == 1);
  // A value of the type itself is never absent, and can be in a row.
  if ((*value)->type->Equals(type)) Require(!absent[0] && codec.Encode(columns, &keys).ok());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size_bytes) {
  if (size_bytes == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data + 1), size_bytes - 1);
  if (data[0] % 32 == 31) {
    TryKeyType(text);
  } else {
    TryValue(*Types()[data[0] % Types().size()], text);
  }
  return 0;
}

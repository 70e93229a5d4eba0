#include <cstring>
#include <utility>

#include "base/coding.h"
#include "key/column.h"
#include "key/key.h"
#include "key/kinds_internal.h"

namespace grebe::key {

using internal::Column;

namespace {

constexpr size_t kWordPieceBytes = 9;  // its size and 8 bytes, little-endian

// Appends the piece of one row (docs/format/key.md); the caller made room.
inline uint8_t* PutPiece(uint8_t* at, std::string_view payload) {
  uint64_t size = payload.size() + 1;
  while (size >= 0x80) {
    *at++ = static_cast<uint8_t>(size | 0x80);
    size >>= 7;
  }
  *at++ = static_cast<uint8_t>(size);
  if (!payload.empty()) std::memcpy(at, payload.data(), payload.size());
  return at + payload.size();
}

inline size_t PieceBytesMax(std::string_view payload) {
  return payload.size() + (payload.size() < 127 ? 1 : 10);
}

void WordForm(Column column, EncodedKeys* out) {
  out->is_word = true;
  out->words = std::move(column.words);
  for (const uint8_t null : column.nulls) {
    if (null) {
      out->null_rows = std::move(column.nulls);
      break;
    }
  }
}

void BytesForm(std::span<const Column> columns, int64_t count, EncodedKeys* out) {
  out->is_word = false;
  size_t room = 0;
  for (const Column& column : columns) {
    room += column.words.size() * kWordPieceBytes;
    for (const std::string_view payload : column.payloads) room += PieceBytesMax(payload);
  }
  out->bytes.resize(room);
  out->offsets.resize(static_cast<size_t>(count) + 1);
  auto* const begin = reinterpret_cast<uint8_t*>(out->bytes.data());
  uint8_t* at = begin;
  out->offsets[0] = 0;
  for (int64_t i = 0; i < count; ++i) {
    for (const Column& column : columns) {
      if (!column.nulls.empty() && column.nulls[i]) {
        *at++ = 0;
      } else if (column.is_word) {
        *at = kWordPieceBytes;
        StoreLe(at + 1, column.words[i]);
        at += kWordPieceBytes;
      } else {
        at = PutPiece(at, column.payloads[i]);
      }
    }
    out->offsets[i + 1] = static_cast<uint64_t>(at - begin);
  }
  out->bytes.resize(static_cast<size_t>(at - begin));
}

// The most common bytes key, in one pass: a string or binary column without nulls.
void EncodeStrings(const arrow::BinaryArray& array, EncodedKeys* out) {
  out->Clear();
  out->is_word = false;
  const int64_t count = array.length();
  const int32_t* ends = array.raw_value_offsets();
  const int64_t first = ends[0];
  const uint8_t* values = array.raw_data() + first;
  out->offsets.resize(static_cast<size_t>(count) + 1);
  // A size takes one byte up to 126 bytes of text, then one more for every 128 times.
  const auto total = static_cast<size_t>(ends[count] - first);
  out->bytes.resize(total + static_cast<size_t>(count) + total / 32);
  auto* const begin = reinterpret_cast<uint8_t*>(out->bytes.data());
  uint8_t* at = begin;
  out->offsets[0] = 0;
  for (int64_t i = 0; i < count; ++i) {
    at = PutPiece(at, std::string_view(reinterpret_cast<const char*>(values + (ends[i] - first)),
                                       static_cast<size_t>(ends[i + 1] - ends[i])));
    out->offsets[i + 1] = static_cast<uint64_t>(at - begin);
  }
  out->bytes.resize(static_cast<size_t>(at - begin));
}

bool IsPlainStrings(const KeyType& type, const arrow::Array& array) {
  return internal::IsBytes(type.kind) && array.length() > 0 && array.null_count() == 0 &&
         (array.type_id() == arrow::Type::STRING || array.type_id() == arrow::Type::BINARY);
}

void Assemble(std::vector<Column> columns, bool is_word, int64_t count, EncodedKeys* out) {
  out->Clear();
  if (is_word) {
    WordForm(std::move(columns[0]), out);
  } else {
    BytesForm(columns, count, out);
  }
}

Result<std::vector<Column>> EncodeColumns(std::span<const KeyType> types,
                                          std::span<const std::shared_ptr<arrow::Array>> arrays,
                                          bool query) {
  if (types.empty() || types.size() != arrays.size()) {
    return InvalidArgument("wrong number of key columns", "expected", types.size(), "got",
                           arrays.size());
  }
  std::vector<Column> columns;
  columns.reserve(types.size());
  for (size_t c = 0; c < types.size(); ++c) {
    if (arrays[c] == nullptr || arrays[c]->length() != arrays[0]->length()) {
      return InvalidArgument("key columns of unequal lengths", "column", c);
    }
    ARROW_ASSIGN_OR_RAISE(Column column, internal::EncodeColumn(types[c], arrays[c], query));
    columns.push_back(std::move(column));
  }
  return columns;
}

void MarkAbsent(std::span<const Column> columns, int64_t count, std::vector<bool>* absent) {
  absent->assign(static_cast<size_t>(count), false);
  for (const Column& column : columns) {
    for (size_t i = 0; i < column.bad.size(); ++i) {
      if (column.bad[i]) (*absent)[i] = true;
    }
  }
}

}  // namespace

KeyCodec::KeyCodec(std::vector<KeyType> types) : types_(std::move(types)) {}

bool KeyCodec::is_word() const { return types_.size() == 1 && types_[0].fits_word(); }

Status KeyCodec::Encode(std::span<const std::shared_ptr<arrow::Array>> arrays,
                        EncodedKeys* out) const {
  if (types_.size() == 1 && arrays.size() == 1 && IsPlainStrings(types_[0], *arrays[0])) {
    EncodeStrings(static_cast<const arrow::BinaryArray&>(*arrays[0]), out);
    return Status::OK();
  }
  ARROW_ASSIGN_OR_RAISE(std::vector<Column> columns, EncodeColumns(types_, arrays, false));
  const int64_t count = arrays[0]->length();
  for (size_t c = 0; c < columns.size(); ++c) {
    for (size_t i = 0; i < columns[c].bad.size(); ++i) {
      if (!columns[c].bad[i]) continue;
      ARROW_ASSIGN_OR_RAISE(const auto value, arrays[c]->GetScalar(static_cast<int64_t>(i)));
      return Unsupported("the key type cannot represent a value exactly", "key_type",
                         types_[c].ToString(), "value", value->ToString(), "type",
                         arrays[c]->type()->ToString(), "row", i);
    }
  }
  Assemble(std::move(columns), is_word(), count, out);
  return Status::OK();
}

Status KeyCodec::EncodeQuery(std::span<const std::shared_ptr<arrow::Array>> arrays,
                             EncodedKeys* out, std::vector<bool>* absent) const {
  ARROW_ASSIGN_OR_RAISE(std::vector<Column> columns, EncodeColumns(types_, arrays, true));
  const int64_t count = arrays[0]->length();
  MarkAbsent(columns, count, absent);
  Assemble(std::move(columns), is_word(), count, out);
  return Status::OK();
}

}  // namespace grebe::key

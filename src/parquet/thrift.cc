#include "parquet/thrift.h"

#include <limits>

#include "base/coding.h"

namespace grebe::pq {
namespace {

// Deeper nesting than any Parquet struct has: what lies deeper is not one.
constexpr int kDepthMax = 16;

}  // namespace

bool ThriftReader::ReadVarint(uint64_t* out) {
  uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    if (cursor_ == end_) return Fail(State::kTruncated);
    const uint64_t byte = *cursor_++;
    if (shift == 63 && byte > 1) return Fail(State::kMalformed);
    value |= (byte & 0x7f) << shift;
    if (byte < 0x80) {
      *out = value;
      return true;
    }
  }
  return Fail(State::kMalformed);
}

bool ThriftReader::ReadField(int* previous_id, Field* field) {
  if (cursor_ == end_) return Fail(State::kTruncated);
  const uint8_t head = *cursor_++;
  field->type = static_cast<Type>(head & 0x0f);
  if (field->type > kUuid) return Fail(State::kMalformed);
  if (field->type == kStop) {
    field->id = 0;
    return head == 0 || Fail(State::kMalformed);
  }
  const int delta = head >> 4;
  if (delta != 0) {
    field->id = *previous_id + delta;
  } else {
    uint64_t raw = 0;
    if (!ReadVarint(&raw)) return false;
    const int64_t id = UnZigZag(raw);
    if (id != static_cast<int16_t>(id)) return Fail(State::kMalformed);
    field->id = static_cast<int>(id);
  }
  if (field->id > std::numeric_limits<int16_t>::max()) return Fail(State::kMalformed);
  *previous_id = field->id;
  return true;
}

bool ThriftReader::ReadI64(int64_t* out) {
  uint64_t raw = 0;
  if (!ReadVarint(&raw)) return false;
  *out = UnZigZag(raw);
  return true;
}

bool ThriftReader::ReadI32(int32_t* out) {
  int64_t value = 0;
  if (!ReadI64(&value)) return false;
  // Writers exist that give an unsigned 32-bit number (a CRC) in a wider varint.
  if (value < std::numeric_limits<int32_t>::min() ||
      value > std::numeric_limits<int32_t>::max()) {
    return Fail(State::kMalformed);
  }
  *out = static_cast<int32_t>(value);
  return true;
}

bool ThriftReader::ReadListHead(Type* element, int64_t* count) {
  if (cursor_ == end_) return Fail(State::kTruncated);
  const uint8_t head = *cursor_++;
  *element = static_cast<Type>(head & 0x0f);
  if (*element > kUuid) return Fail(State::kMalformed);
  uint64_t size = head >> 4;
  if (size == 15 && !ReadVarint(&size)) return false;
  if (size > static_cast<uint64_t>(std::numeric_limits<int32_t>::max())) {
    return Fail(State::kMalformed);
  }
  // Every element takes a byte at least.
  if (size > static_cast<uint64_t>(end_ - cursor_)) return Fail(State::kTruncated);
  *count = static_cast<int64_t>(size);
  return true;
}

bool ThriftReader::SkipBytes(uint64_t count) {
  if (count > static_cast<uint64_t>(std::numeric_limits<int32_t>::max())) {
    return Fail(State::kMalformed);
  }
  if (count > static_cast<uint64_t>(end_ - cursor_)) return Fail(State::kTruncated);
  cursor_ += count;
  return true;
}

bool ThriftReader::ReadBinary(std::span<const uint8_t>* out) {
  uint64_t size = 0;
  if (!ReadVarint(&size)) return false;
  const uint8_t* begin = cursor_;
  if (!SkipBytes(size)) return false;
  *out = {begin, static_cast<size_t>(size)};
  return true;
}

bool ThriftReader::ReadBoolElement(bool* out) {
  if (cursor_ == end_) return Fail(State::kTruncated);
  *out = *cursor_++ == kTrue;
  return true;
}

bool ThriftReader::SkipStruct(int depth) {
  int previous_id = 0;
  Field field;
  while (ReadField(&previous_id, &field)) {
    if (field.type == kStop) return true;
    // A boolean field has its value in the type.
    if (!IsBool(field.type) && !SkipValue(field.type, depth)) return false;
  }
  return false;
}

bool ThriftReader::SkipElements(Type type, int64_t count, int depth) {
  for (int64_t i = 0; i < count; ++i) {
    if (!(IsBool(type) ? SkipBytes(1) : SkipValue(type, depth))) return false;
  }
  return true;
}

bool ThriftReader::SkipValue(Type type, int depth) {
  if (depth > kDepthMax) return Fail(State::kMalformed);
  uint64_t size = 0;
  switch (type) {
    case kTrue:
    case kFalse: return true;
    case kByte: return SkipBytes(1);
    case kI16:
    case kI32:
    case kI64: return ReadVarint(&size);
    case kDouble: return SkipBytes(8);
    case kUuid: return SkipBytes(16);
    case kBinary: return ReadVarint(&size) && SkipBytes(size);
    case kStruct: return SkipStruct(depth + 1);
    case kList:
    case kSet: {
      Type element = kStop;
      int64_t count = 0;
      return ReadListHead(&element, &count) && SkipElements(element, count, depth + 1);
    }
    case kMap: {
      if (!ReadVarint(&size)) return false;
      if (size == 0) return true;
      if (size > static_cast<uint64_t>(end_ - cursor_)) return Fail(State::kTruncated);
      if (cursor_ == end_) return Fail(State::kTruncated);
      const uint8_t types = *cursor_++;
      const auto key = static_cast<Type>(types >> 4);
      const auto value = static_cast<Type>(types & 0x0f);
      for (uint64_t i = 0; i < size; ++i) {
        if (!SkipElements(key, 1, depth + 1) || !SkipElements(value, 1, depth + 1)) return false;
      }
      return true;
    }
    case kStop: break;
  }
  return Fail(State::kMalformed);
}

}  // namespace grebe::pq

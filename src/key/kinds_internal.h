// The kinds of KeyType. Private to src/key; their text (key_type.cc) is what is persisted.
#pragma once

#include "key/key.h"

namespace grebe::key::internal {

enum Kind : int {
  kNone = 0,
  kInt,             // word: int64
  kUInt64,          // word: uint64
  kDecimal64,       // word: int64 at scale param
  kDecimal,         // bytes: normalised coefficient and exponent
  kString,          // bytes
  kBinary,          // bytes
  kUuid,            // bytes: 16 of them
  kDate,            // word: days since 1970-01-01
  kTime,            // word: units (param) since midnight
  kTimestamp,       // word: units (param) since 1970-01-01
  kTimestampMixed,  // bytes: seconds and nanoseconds; holds every value of every unit
  kDuration,        // word: units (param)
  kBool,            // word: 0 or 1
  kFloat,           // word: bits of a double; param 16, 32 or 64 is the widest width seen
};

inline KeyType MakeType(Kind kind, int param = 0, bool utc = false) {
  KeyType type;
  type.kind = kind;
  type.param = param;
  type.utc = utc;
  return type;
}

inline bool IsNumber(int kind) {
  return kind == kInt || kind == kUInt64 || kind == kDecimal64 || kind == kDecimal;
}
inline bool IsBytes(int kind) { return kind == kString || kind == kBinary || kind == kUuid; }

inline bool IsTimestamp(const KeyType& type) {
  return type.kind == kTimestamp || type.kind == kTimestampMixed;
}

// The type of the values inside a dictionary or an extension (through any depth of both).
const arrow::DataType& Unwrap(const arrow::DataType& type);

}  // namespace grebe::key::internal

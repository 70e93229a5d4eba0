// A bounds-checked reader of Thrift's compact protocol, for page headers and offset indexes: small
// structs read by the hundred thousand, from bytes that may end in the middle or be hostile.
//
// Nothing is allocated and nothing throws. Every Read* returns false on failure and then state()
// tells a struct that ends in the middle (kTruncated: more bytes may help) from one that no bytes
// can mend (kMalformed). After a failure the reader must not be used further.
#pragma once

#include <cstdint>
#include <span>

namespace grebe::pq {

class ThriftReader {
 public:
  enum class State { kOk, kTruncated, kMalformed };
  // The wire types of the compact protocol.
  enum Type : uint8_t {
    kStop = 0, kTrue = 1, kFalse = 2, kByte = 3, kI16 = 4, kI32 = 5, kI64 = 6, kDouble = 7,
    kBinary = 8, kList = 9, kSet = 10, kMap = 11, kStruct = 12, kUuid = 13,
  };
  struct Field {
    Type type = kStop;
    int id = 0;
  };

  explicit ThriftReader(std::span<const uint8_t> bytes)
      : begin_(bytes.data()), cursor_(begin_), end_(begin_ + bytes.size()) {}

  State state() const { return state_; }
  int64_t consumed_bytes() const { return cursor_ - begin_; }

  // The next field of a struct; `previous_id` starts at 0 and is kept by the caller, a struct
  // each. field->type is kStop at the struct's end.
  [[nodiscard]] bool ReadField(int* previous_id, Field* field);
  // An i16, i32 or i64 that must fit 32 bits, or 64. REQUIRES: the field is of such a type, which
  // IsInt tells.
  [[nodiscard]] bool ReadI32(int32_t* out);
  [[nodiscard]] bool ReadI64(int64_t* out);
  static bool IsInt(Type type) { return type == kI16 || type == kI32 || type == kI64; }
  static bool IsBool(Type type) { return type == kTrue || type == kFalse; }
  // A list's head. The element count is at most the bytes that are left.
  [[nodiscard]] bool ReadListHead(Type* element, int64_t* count);
  // A binary's bytes, within the bytes given to the reader.
  [[nodiscard]] bool ReadBinary(std::span<const uint8_t>* out);
  // A boolean that is a list's element (a byte each; a field has its value in the type).
  [[nodiscard]] bool ReadBoolElement(bool* out);
  // Steps over a value of the type, whatever is inside.
  [[nodiscard]] bool Skip(Type type) { return SkipValue(type, 0); }

 private:
  bool Fail(State state) {
    state_ = state;
    return false;
  }
  bool ReadVarint(uint64_t* out);
  bool SkipBytes(uint64_t count);
  bool SkipValue(Type type, int depth);
  bool SkipStruct(int depth);
  bool SkipElements(Type type, int64_t count, int depth);

  const uint8_t* begin_;
  const uint8_t* cursor_;
  const uint8_t* end_;
  State state_ = State::kOk;
};

}  // namespace grebe::pq

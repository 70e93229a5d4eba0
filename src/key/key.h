// Keys: typed values to canonical bytes. Two values are equal if and only if their canonical forms
// are, whatever physical type or encoding a file chose: int32 7 = int64 7 = decimal(9,0) stored as
// binary 7 when the index's key type is an integer; -0.0 = 0.0; every NaN is one value.
//
// A key of one column whose values fit 64 bits is in WORD form (a uint64, exact by itself). Every
// other key, and every composite one, is in BYTES form: self-delimiting pieces, nulls included.
// Threads: all const methods are safe.
#pragma once

#include <arrow/array.h>
#include <arrow/scalar.h>
#include <arrow/type.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace grebe::key {

// The logical type of one key column, independent of physical form. Persisted as text in the
// manifest ("int", "uint64", "decimal64(2)", "decimal", "string", "binary", "uuid", "date",
// "time(us)", "timestamp(us,utc)", "timestamp(mixed)", "duration(ms)", "bool", "float",
// "float(32)"). docs/format/key.md says the canonical form of each.
class KeyType {
 public:
  // Errors: Unsupported (nested, null, interval, dictionary of such, ...).
  static Result<KeyType> FromArrow(const arrow::DataType& type);
  static Result<KeyType> Parse(std::string_view text);
  // The type that holds every value of both exactly (int+uint64, decimals of two scales, two
  // timestamp units, string+binary, ...). Unsupported when there is none (string and int).
  static Result<KeyType> Unify(const KeyType& a, const KeyType& b);
  std::string ToString() const;
  // True when the canonical form of every value is the same under both, so that keys encoded under
  // one may be compared with keys encoded under the other: float(32) and float, string and binary
  // and uuid. False for int and decimal, or for two timestamp units.
  static bool SameForm(const KeyType& a, const KeyType& b);
  // The Arrow type that user values of this key are parsed into (a value it cannot hold gets a
  // type of its own: see ParseValue).
  std::shared_ptr<arrow::DataType> value_type() const;
  bool fits_word() const;
  bool operator==(const KeyType&) const = default;

  // Private to this room.
  int kind = 0;
  int param = 0;
  bool utc = false;
};

// Keys of many rows, in canonical form.
struct EncodedKeys {
  bool is_word = true;
  // Word form: one per row; for a null row the word is 0 and null_rows says so.
  std::vector<uint64_t> words;
  std::vector<uint8_t> null_rows;     // empty: no row is null; else one byte a row (word form)
  // Bytes form: row i is bytes[offsets[i], offsets[i + 1]). A composite key with null parts is an
  // ordinary value here. A single null key is the one-byte value "\0".
  std::string bytes;
  std::vector<uint64_t> offsets;

  int64_t count() const {
    return is_word ? static_cast<int64_t>(words.size())
                   : static_cast<int64_t>(offsets.empty() ? 0 : offsets.size() - 1);
  }
  bool is_null(int64_t i) const { return !null_rows.empty() && null_rows[i] != 0; }
  std::string_view view(int64_t i) const {
    return std::string_view(bytes).substr(offsets[i], offsets[i + 1] - offsets[i]);
  }
  void Clear();
};

class KeyCodec {
 public:
  explicit KeyCodec(std::vector<KeyType> types);
  const std::vector<KeyType>& types() const { return types_; }
  bool is_word() const;

  // Encodes the rows of columns (one array per key column, equal lengths; any Arrow type whose
  // KeyType unifies into types()[i]; dictionary-encoded ones too). Replaces *out. A value that
  // types()[i] cannot represent exactly cannot equal any other value it could be compared with:
  // Encode fails with Unsupported. Cost: about 1 ns a row in word form.
  Status Encode(std::span<const std::shared_ptr<arrow::Array>> columns, EncodedKeys* out) const;

  // Like Encode, for keys that a user asks for: a value that the type cannot represent exactly
  // (7.5 for an int key, 2^70) gives absent[i] = true (no row can have it) instead of an error.
  // Numbers of another kind are compared by value: 7.0 (double) asks an int key for 7. Decimals
  // may ask for timestamps, as seconds since 1970 (see MakeQueryColumn).
  Status EncodeQuery(std::span<const std::shared_ptr<arrow::Array>> columns, EncodedKeys* out,
                     std::vector<bool>* absent) const;

 private:
  std::vector<KeyType> types_;
};

// Parses a value as people and JSON write it: "42", "-1.50", "2024-02-29",
// "2024-02-29T12:00:00Z", "true", a UUID with or without dashes, "nan"; binary as "0x" hex or
// "base64:..." (never as raw text with escapes). The scalar has the given type (a dictionary's or
// extension's value or storage type); but a well-formed value that the type cannot hold exactly
// ("7.5" for int64, the year 9999 for nanoseconds, "1e400" for doubles) comes as a scalar of a type
// that can, for EncodeQuery to answer. Floats are rounded to the nearest. A time zone is refused
// where the type has none ("Z" and "+00:00" aside); where the type has one, text without a zone
// means UTC. Errors: InvalidArgument naming type and text.
Result<std::shared_ptr<arrow::Scalar>> ParseValue(const arrow::DataType& type,
                                                  std::string_view text);

// Puts values that ParseValue(type, ...) gave into one column for EncodeQuery; a null pointer is
// null. The column has the given type when every value has; else the values' common one (decimal
// for numbers, and for timestamps: seconds). Errors: InvalidArgument for decimals that 76 digits
// cannot hold side by side (1e75 and 1e-75): ask for them in two calls.
Result<std::shared_ptr<arrow::Array>> MakeQueryColumn(
    const arrow::DataType& type, std::span<const std::shared_ptr<arrow::Scalar>> values);

}  // namespace grebe::key

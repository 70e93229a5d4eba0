// Persisted integers: fixed width, little-endian, and LEB128 varints. Stated once, here.
//
// Put* append to a string. ByteReader reads from bytes it does not own and never reads past
// their end: each Read* returns false (and leaves the output untouched) when too few are left.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

namespace grebe {

static_assert(std::endian::native == std::endian::little,
              "the codecs assume a little-endian machine");

template <class T>
T LoadLe(const void* from) {
  static_assert(std::is_trivially_copyable_v<T>);
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

template <class T>
void StoreLe(void* to, T value) {
  static_assert(std::is_trivially_copyable_v<T>);
  std::memcpy(to, &value, sizeof(T));
}

template <class T>
void PutFixed(std::string* out, T value) {
  char bytes[sizeof(T)];
  StoreLe(bytes, value);
  out->append(bytes, sizeof(T));
}

inline void PutVarint(std::string* out, uint64_t value) {
  while (value >= 0x80) {
    out->push_back(static_cast<char>(value | 0x80));
    value >>= 7;
  }
  out->push_back(static_cast<char>(value));
}

inline void PutBytes(std::string* out, std::string_view bytes) {
  PutVarint(out, bytes.size());
  out->append(bytes);
}

inline uint64_t ZigZag(int64_t value) {
  return (static_cast<uint64_t>(value) << 1) ^ static_cast<uint64_t>(value >> 63);
}
inline int64_t UnZigZag(uint64_t value) {
  return static_cast<int64_t>(value >> 1) ^ -static_cast<int64_t>(value & 1);
}

class ByteReader {
 public:
  ByteReader(const void* data, size_t size_bytes)
      : cursor_(static_cast<const uint8_t*>(data)), end_(cursor_ + size_bytes) {}
  explicit ByteReader(std::string_view bytes) : ByteReader(bytes.data(), bytes.size()) {}

  size_t remaining_bytes() const { return static_cast<size_t>(end_ - cursor_); }
  const uint8_t* cursor() const { return cursor_; }

  template <class T>
  [[nodiscard]] bool ReadFixed(T* out) {
    if (remaining_bytes() < sizeof(T)) return false;
    *out = LoadLe<T>(cursor_);
    cursor_ += sizeof(T);
    return true;
  }

  // False also for an encoding of more than 64 bits.
  [[nodiscard]] bool ReadVarint(uint64_t* out) {
    uint64_t value = 0;
    const uint8_t* at = cursor_;
    for (int shift = 0; shift < 64; shift += 7) {
      if (at == end_) return false;
      const uint64_t byte = *at++;
      if (shift == 63 && byte > 1) return false;
      value |= (byte & 0x7f) << shift;
      if (byte < 0x80) {
        *out = value;
        cursor_ = at;
        return true;
      }
    }
    return false;
  }

  [[nodiscard]] bool ReadBytes(std::string_view* out) {
    ByteReader probe = *this;
    uint64_t size = 0;
    if (!probe.ReadVarint(&size) || size > probe.remaining_bytes()) return false;
    *out = {reinterpret_cast<const char*>(probe.cursor_), static_cast<size_t>(size)};
    cursor_ = probe.cursor_ + size;
    return true;
  }

  [[nodiscard]] bool Skip(size_t size_bytes) {
    if (size_bytes > remaining_bytes()) return false;
    cursor_ += size_bytes;
    return true;
  }

 private:
  const uint8_t* cursor_;
  const uint8_t* end_;
};

}  // namespace grebe

#include "parquet/cut_bounds.h"

#include <arrow/util/utf8.h>

#include <algorithm>

namespace grebe::pq {
namespace {

bool IsContinuation(char byte) { return (static_cast<uint8_t>(byte) & 0xc0) == 0x80; }

bool IsUtf8(std::string_view value) {
  arrow::util::InitializeUTF8();
  return arrow::util::ValidateUTF8(value);
}

// The longest beginning of at most size_max bytes that ends with a whole character.
std::string_view WholeCharacters(std::string_view value, size_t size_max) {
  if (value.size() <= size_max) return value;
  size_t size = size_max;
  while (size > 0 && IsContinuation(value[size])) --size;
  return value.substr(0, size);
}

uint32_t Decode(std::string_view character) {
  const auto byte = [&](size_t i) -> uint32_t { return static_cast<uint8_t>(character[i]); };
  switch (character.size()) {
    case 1: return byte(0);
    case 2: return (byte(0) & 0x1f) << 6 | (byte(1) & 0x3f);
    case 3: return (byte(0) & 0x0f) << 12 | (byte(1) & 0x3f) << 6 | (byte(2) & 0x3f);
    default:
      return (byte(0) & 0x07) << 18 | (byte(1) & 0x3f) << 12 | (byte(2) & 0x3f) << 6 |
             (byte(3) & 0x3f);
  }
}

std::string Encode(uint32_t code) {
  std::string out;
  const auto put = [&](uint32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xc0 | code >> 6);
    put(0x80 | (code & 0x3f));
  } else if (code < 0x10000) {
    put(0xe0 | code >> 12);
    put(0x80 | (code >> 6 & 0x3f));
    put(0x80 | (code & 0x3f));
  } else {
    put(0xf0 | code >> 18);
    put(0x80 | (code >> 12 & 0x3f));
    put(0x80 | (code >> 6 & 0x3f));
    put(0x80 | (code & 0x3f));
  }
  return out;
}

// The next character, by code point, which is also the order of the bytes.
std::optional<uint32_t> NextCharacter(uint32_t code) {
  if (code == 0xd7ff) return 0xe000;  // none of the surrogates between is a character
  if (code >= 0x10ffff) return std::nullopt;
  return code + 1;
}

std::optional<std::string> NextText(std::string_view head) {
  while (!head.empty()) {
    size_t begin = head.size() - 1;
    while (begin > 0 && IsContinuation(head[begin])) --begin;
    const auto next = NextCharacter(Decode(head.substr(begin)));
    const std::string character = next ? Encode(*next) : "";
    // A longer character could pass the limit: then the one before is raised.
    if (next && character.size() == head.size() - begin) {
      return std::string(head.substr(0, begin)) + character;
    }
    head = head.substr(0, begin);
  }
  return std::nullopt;
}

std::optional<std::string> NextBytes(std::string_view head) {
  while (!head.empty() && static_cast<uint8_t>(head.back()) == 0xff) head.remove_suffix(1);
  if (head.empty()) return std::nullopt;
  std::string out(head);
  out.back() = static_cast<char>(static_cast<uint8_t>(out.back()) + 1);
  return out;
}

}  // namespace

std::string LowerBound(std::string_view value, int64_t size_max) {
  const auto size = static_cast<size_t>(size_max);
  if (value.size() <= size) return std::string(value);
  return std::string(IsUtf8(value) ? WholeCharacters(value, size) : value.substr(0, size));
}

std::optional<std::string> UpperBound(std::string_view value, int64_t size_max) {
  const auto size = static_cast<size_t>(size_max);
  if (IsUtf8(value)) return NextText(WholeCharacters(value, size));
  return NextBytes(value.substr(0, size));
}

bool BoundsMayBeCut(const ::parquet::ColumnDescriptor& column) {
  return column.physical_type() == ::parquet::Type::BYTE_ARRAY &&
         column.sort_order() == ::parquet::SortOrder::UNSIGNED;
}

void CutBounds(int64_t size_max, ::parquet::EncodedStatistics* statistics) {
  const auto too_long = [&](const std::string& bound) {
    return static_cast<int64_t>(bound.size()) > size_max;
  };
  if (statistics->has_min && too_long(statistics->min())) {
    statistics->set_min(LowerBound(statistics->min(), size_max));
    statistics->is_min_value_exact = false;
  }
  if (!statistics->has_max || !too_long(statistics->max())) return;
  if (auto bound = UpperBound(statistics->max(), size_max)) {
    statistics->set_max(*std::move(bound));
    statistics->is_max_value_exact = false;
  } else {
    statistics->ApplyStatSizeLimits(kBoundBytesKept);
  }
}

}  // namespace grebe::pq

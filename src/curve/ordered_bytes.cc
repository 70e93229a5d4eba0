#include "curve/ordered_bytes.h"

#include <algorithm>

namespace grebe::curve {

namespace {

// Bits of the two's complement of every decimal of so many digits: 3.3220 > log2(10).
int DecimalBits(int precision) { return precision * 3322 / 1000 + 2; }

void AppendWord(uint64_t word, std::string* out) {
  for (int shift = 56; shift >= 0; shift -= 8) out->push_back(static_cast<char>(word >> shift));
}

// Bits [shift, shift + 64) of a two's complement number.
uint64_t WordAt(std::span<const uint64_t> words, int shift) {
  const uint64_t sign = (words.back() & kSignBit) != 0 ? ~0ULL : 0;
  const auto word = [&](size_t i) { return i < words.size() ? words[i] : sign; };
  const uint64_t low = word(shift / 64) >> (shift % 64);
  return shift % 64 == 0 ? low : low | word(shift / 64 + 1) << (64 - shift % 64);
}

}  // namespace

uint64_t OrderedDecimal(std::span<const uint64_t> words, int precision) {
  const bool negative = (words.back() & kSignBit) != 0;
  const int shift = std::max(0, DecimalBits(precision) - 64);
  const uint64_t top = WordAt(words, shift);
  // All bits above must repeat the sign.
  for (int at = shift + 63; at < static_cast<int>(words.size()) * 64; at += 64) {
    if (WordAt(words, at) != (negative ? ~0ULL : 0)) return negative ? 0 : ~0ULL;
  }
  return top ^ kSignBit;
}

uint64_t OrderedPrefix(std::string_view value) {
  uint64_t word = 0;
  OrderedPrefixWords(value, 8, &word);
  return word;
}

void OrderedPrefixWords(std::string_view value, int length_bytes, uint64_t* words) {
  for (int begin = 0; begin < length_bytes; begin += 8) {
    uint64_t word = 0;
    for (int at = begin; at < std::min(begin + 8, length_bytes); ++at) {
      const bool has = static_cast<size_t>(at) < value.size();
      word = word << 8 | (has ? static_cast<uint8_t>(value[at]) : 0);
    }
    *words++ = word;
  }
}

void AppendNull(std::string* out) { out->push_back('\0'); }

void AppendOrdered(uint64_t ordered, std::string* out) {
  out->push_back('\1');
  AppendWord(ordered, out);
}

void AppendOrderedDecimal(std::span<const uint64_t> words, std::string* out) {
  out->push_back('\1');
  AppendWord(words.back() ^ kSignBit, out);
  for (size_t i = words.size() - 1; i > 0; --i) AppendWord(words[i - 1], out);
}

void AppendOrderedString(std::string_view value, std::string* out) {
  out->push_back('\1');
  for (const char byte : value) {
    out->push_back(byte);
    if (byte == '\0') out->push_back('\xff');
  }
  out->append(2, '\0');
}

}  // namespace grebe::curve

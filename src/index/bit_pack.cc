#include "index/bit_pack.h"

namespace grebe::index {

void AppendEliasFano(std::span<const uint64_t> values, uint64_t last, int low_bits,
                     std::string* out) {
  const uint64_t upper_bits = EliasFanoUpperBits(last, values.size(), low_bits);
  const size_t upper_at = out->size();
  out->resize(upper_at + BytesOfBits(upper_bits), '\0');
  auto* upper = reinterpret_cast<uint8_t*>(out->data() + upper_at);
  for (size_t i = 0; i < values.size(); ++i) {
    const uint64_t bit = (low_bits >= 64 ? 0 : values[i] >> low_bits) + i;
    upper[bit >> 3] |= static_cast<uint8_t>(1u << (bit & 7));
  }
  BitWriter writer(out);
  const uint64_t mask = LowMask(low_bits);
  for (const uint64_t value : values) writer.Put(value & mask, low_bits);
  writer.Align();
}

}  // namespace grebe::index

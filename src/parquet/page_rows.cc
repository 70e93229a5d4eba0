#include "parquet/page_rows.h"

#include <bit>

#include "base/coding.h"

namespace grebe::pq {
namespace {

constexpr int32_t kRle = 3, kBitPacked = 4;

int BitWidth(int16_t level_max) {
  return std::bit_width(static_cast<uint32_t>(level_max));
}

Status BadLevels() { return Corrupt("page's levels are damaged, or fewer than its values"); }

}  // namespace

Status PageRows::Open(const Source& source) {
  source_ = source;
  levels_left_ = source.page->header().value_count;
  int64_t values_begin = 0;
  ARROW_RETURN_NOT_OK(OpenLevels(&values_begin));
  ValueReader::Source values;
  values.page = source.page;
  values.begin_bytes = values_begin;
  values.value_count_max = levels_left_;
  values.cached = source.cached;
  values.dictionary = source.dictionary;
  values.descriptor = source.descriptor;
  values.shape = source.shape;
  values.limits = source.limits;
  values.pool = source.pool;
  return values_.Open(values);
}

Status PageRows::OpenLevels(int64_t* values_begin) {
  const PageHeader& header = source_.page->header();
  const LeafShape& shape = source_.shape;
  if (header.type == PageType::kDataV2) {
    *values_begin = header.repetition_level_bytes + header.definition_level_bytes;
    ARROW_RETURN_NOT_OK(source_.page->Ensure(*values_begin));
    const uint8_t* data = source_.page->data();
    repetition_ = RunReader(data, header.repetition_level_bytes,
                            BitWidth(shape.repetition_level_max), levels_left_);
    definition_ = RunReader(data + header.repetition_level_bytes, header.definition_level_bytes,
                            BitWidth(shape.definition_level_max), levels_left_);
    return Status::OK();
  }
  *values_begin = 0;
  ARROW_RETURN_NOT_OK(OpenV1Levels(shape.repetition_level_max, header.repetition_level_encoding,
                                   values_begin, &repetition_));
  return OpenV1Levels(shape.definition_level_max, header.definition_level_encoding, values_begin,
                      &definition_);
}

Status PageRows::OpenV1Levels(int16_t level_max, int32_t encoding, int64_t* at, RunReader* out) {
  if (level_max == 0) return Status::OK();
  PageBytes& page = *source_.page;
  const int bit_width = BitWidth(level_max);
  if (encoding == kBitPacked) {
    const int64_t bytes = (levels_left_ * bit_width + 7) / 8;
    ARROW_RETURN_NOT_OK(page.Ensure(*at + bytes));
    if (*at + bytes > page.available_bytes()) return Corrupt("levels run past their page");
    *out = RunReader::BitPacked(page.data() + *at, bytes, bit_width, levels_left_);
    *at += bytes;
    return Status::OK();
  }
  if (encoding != kRle) {
    return Unsupported("levels have an unknown encoding", "encoding", encoding);
  }
  ARROW_RETURN_NOT_OK(page.Ensure(*at + 4));
  if (*at + 4 > page.available_bytes()) return Corrupt("levels run past their page");
  const int64_t bytes = LoadLe<uint32_t>(page.data() + *at);
  *at += 4;
  if (bytes > page.size_bytes() - *at) {
    return Corrupt("levels run past their page", "level_bytes", bytes, "bytes_left",
                   page.size_bytes() - *at);
  }
  ARROW_RETURN_NOT_OK(page.Ensure(*at + bytes));
  *out = RunReader(page.data() + *at, bytes, bit_width, levels_left_);
  *at += bytes;
  return Status::OK();
}

bool PageRows::has_tail() {
  uint32_t level = 0;
  return repeated() && repetition_.Peek(&level) && level != 0;
}

Status PageRows::SkipTail() { return SkipRows(0); }

Status PageRows::TakeTail(LeafSlice* out) {
  if (!repeated()) return Status::OK();
  const RunReader begin = repetition_;
  int64_t levels = 0;
  const auto level_max = static_cast<uint32_t>(source_.shape.repetition_level_max);
  if (!repetition_.PassRows(0, level_max, &levels)) return BadLevels();
  return Take(levels, begin, out);
}

Status PageRows::SkipRows(int64_t count) {
  int64_t levels = count;
  if (repeated()) {
    const auto level_max = static_cast<uint32_t>(source_.shape.repetition_level_max);
    if (!repetition_.PassRows(count, level_max, &levels)) return BadLevels();
  }
  return Skip(levels);
}

Status PageRows::TakeRows(int64_t count, LeafSlice* out) {
  const RunReader begin = repetition_;
  int64_t levels = count;
  if (repeated()) {
    const auto level_max = static_cast<uint32_t>(source_.shape.repetition_level_max);
    if (!repetition_.PassRows(count, level_max, &levels)) return BadLevels();
  }
  ARROW_RETURN_NOT_OK(Take(levels, begin, out));
  out->row_count += count;
  return Status::OK();
}

Status PageRows::Skip(int64_t levels) {
  if (levels == 0) return Status::OK();
  if (levels > levels_left_) return Corrupt("page has fewer rows than the page map says");
  levels_left_ -= levels;
  int64_t values = levels;
  if (const auto level_max = static_cast<uint32_t>(source_.shape.definition_level_max);
      level_max > 0) {
    values = 0;
    if (!definition_.SkipCounting(levels, level_max, level_max, &values)) return BadLevels();
  }
  return values_.Skip(values);
}

Status PageRows::Take(int64_t levels, const RunReader& repetition, LeafSlice* out) {
  if (levels == 0) return Status::OK();
  if (levels > levels_left_) return Corrupt("page has fewer rows than the page map says");
  levels_left_ -= levels;
  int16_t* to = nullptr;
  if (repeated()) {
    RunReader reader = repetition;
    ARROW_RETURN_NOT_OK(out->repetition_levels.Grow(levels, &to));
    if (!reader.Read(levels, static_cast<uint32_t>(source_.shape.repetition_level_max), to)) {
      return BadLevels();
    }
  }
  int64_t values = levels;
  if (const int16_t level_max = source_.shape.definition_level_max; level_max > 0) {
    ARROW_RETURN_NOT_OK(out->definition_levels.Grow(levels, &to));
    if (!definition_.Read(levels, static_cast<uint32_t>(level_max), to)) return BadLevels();
    values = 0;
    for (int64_t i = 0; i < levels; ++i) values += to[i] == level_max;
  }
  return values_.Take(values, out);
}

}  // namespace grebe::pq

#include "layout/value_ranks.h"

#include <bit>
#include <string>
#include <string_view>
#include <vector>

#include "layout/value_order.h"

namespace grebe::layout {
namespace {

// Rows looked up at once: their words stay in the cache.
constexpr int64_t kStepRows = 4096;

}  // namespace

Result<ValueRanks> ValueRanks::Make(const arrow::Array& sample, int bits, bool spread) {
  curve::RankOptions options;
  options.buckets = uint32_t{1} << bits;
  options.nulls = true;   // the sample may have missed them
  ValueRanks ranks;
  uint32_t count = 0;
  if (WordsAreExact(*sample.type())) {
    std::vector<uint64_t> words(static_cast<size_t>(sample.length()));
    ARROW_RETURN_NOT_OK(ValueWords(sample, words.data()));
    size_t kept = 0;
    for (int64_t i = 0; i < sample.length(); ++i) {
      if (sample.IsValid(i)) words[kept++] = words[static_cast<size_t>(i)];
    }
    words.resize(kept);
    ranks.words_ = std::make_shared<curve::Ranks64>(std::move(words), options);
    count = ranks.words_->count();
  } else {
    std::string bytes;
    std::vector<std::string_view> values;
    ARROW_RETURN_NOT_OK(OrderedViews(sample, &values, &bytes));
    std::vector<std::string_view> valid;
    for (int64_t i = 0; i < sample.length(); ++i) {
      if (sample.IsValid(i)) valid.push_back(values[static_cast<size_t>(i)]);
    }
    ranks.strings_ = std::make_shared<curve::RanksOfStrings>(std::move(valid), options);
    count = ranks.strings_->count();
  }
  ranks.bits_ = std::max(1, static_cast<int>(std::bit_width(count - 1)));
  if (spread) {
    ranks.bits_ = bits;
    ranks.spread_ = curve::SpreadIds(count, bits);
  }
  return ranks;
}

Status ValueRanks::Ids(const arrow::Array& values, uint32_t* ids) const {
  std::vector<uint64_t> words(static_cast<size_t>(std::min(kStepRows, values.length())));
  std::vector<std::string_view> views;
  std::string bytes;
  for (int64_t begin = 0; begin < values.length(); begin += kStepRows) {
    const int64_t count = std::min(kStepRows, values.length() - begin);
    const auto step = values.Slice(begin, count);
    uint32_t* out = ids + begin;
    if (words_ != nullptr) {
      ARROW_RETURN_NOT_OK(ValueWords(*step, words.data()));
      words_->Ids(words.data(), static_cast<size_t>(count), out);
    } else {
      ARROW_RETURN_NOT_OK(OrderedViews(*step, &views, &bytes));
      strings_->Ids(views.data(), static_cast<size_t>(count), out);
    }
    if (step->null_count() > 0) {
      for (int64_t i = 0; i < count; ++i) {
        if (step->IsNull(i)) out[i] = words_ != nullptr ? words_->null_id() : strings_->null_id();
      }
    }
    if (!spread_.empty()) {
      for (int64_t i = 0; i < count; ++i) out[i] = spread_[out[i]];
    }
  }
  return Status::OK();
}

}  // namespace grebe::layout

#include "parquet/page_walk.h"

#include <parquet/column_reader.h>
#include <parquet/types.h>

#include <algorithm>
#include <array>

#include "base/coding.h"
#include "parquet/guard.h"
#include "parquet/page_bytes.h"

namespace grebe::pq {
namespace {

// Read at once where pages are small; where the next header lies behind a larger payload, only
// what a header usually takes.
constexpr int64_t kWindowBytes = 64 << 10;
constexpr int64_t kHeaderWindowBytes = 4 << 10;
// Bytes and walks of one wave.
constexpr int64_t kWaveBytesMax = 64 << 20;
constexpr size_t kWaveWalksMax = 256;

// Counts the levels that begin a row.
class RowCounter {
 public:
  RowCounter(int16_t level_max, int32_t values) : decoder_(level_max), left_(values) {}
  ::parquet::LevelDecoder& decoder() { return decoder_; }

  Status Run() {
    std::array<int16_t, 1024> levels;
    while (left_ > 0) {
      const int want = std::min<int>(left_, levels.size());
      const int got = decoder_.Decode(want, levels.data());
      if (got <= 0) return Corrupt("page has fewer repetition levels than values");
      if (!any_) first_ = levels[0];
      any_ = true;
      rows_ += std::count(levels.begin(), levels.begin() + got, int16_t{0});
      left_ -= got;
    }
    return Status::OK();
  }
  int64_t rows() const { return rows_; }
  bool begins_mid_row() const { return any_ && first_ != 0; }

 private:
  ::parquet::LevelDecoder decoder_;
  int left_;
  int16_t first_ = 0;
  bool any_ = false;
  int64_t rows_ = 0;
};

// Points the decoder at a v1 page's repetition levels, decompressing no further than needed.
Status SetLevelsV1(const PageHeader& header, int16_t level_max, PageBytes* page,
                   ::parquet::LevelDecoder* decoder) {
  const auto encoding = static_cast<::parquet::Encoding::type>(header.repetition_level_encoding);
  int64_t bytes = 0;
  if (encoding == ::parquet::Encoding::RLE) {
    if (page->size_bytes() < 4) return Corrupt("page is too small for its levels");
    ARROW_RETURN_NOT_OK(page->Ensure(4));
    bytes = 4 + int64_t{LoadLe<uint32_t>(page->data())};
  } else if (encoding == ::parquet::Encoding::BIT_PACKED) {
    const int64_t width = 64 - __builtin_clzll(static_cast<uint64_t>(level_max));
    bytes = (header.value_count * width + 7) / 8;
  } else {
    return Unsupported("unknown encoding of repetition levels", "encoding",
                       header.repetition_level_encoding);
  }
  if (bytes > page->size_bytes()) return Corrupt("page is too small for its levels");
  ARROW_RETURN_NOT_OK(page->Ensure(bytes));
  decoder->SetData(encoding, level_max, header.value_count, page->data(),
                   static_cast<int32_t>(bytes));
  return Status::OK();
}

}  // namespace

PageWalk::PageWalk(const ChunkMeta& chunk, const Column& column, const ReadLimits& limits)
    : chunk_(chunk), column_(column), limits_(limits), only_dictionary_(false),
      end_(chunk.bytes.end) {
  Restart(false);
}

PageWalk::PageWalk(const ChunkMeta& chunk, ByteRange dictionary_place, const ReadLimits& limits)
    : chunk_(chunk), limits_(limits), only_dictionary_(true), end_(dictionary_place.end) {
  Restart(false);
}

PageWalk PageWalk::CountingValues(const ChunkMeta& chunk, int64_t slack_bytes,
                                  const ReadLimits& limits) {
  PageWalk walk(chunk, Column{0, -1}, limits);
  walk.stop_ = std::max(chunk.bytes.end - slack_bytes, chunk.bytes.begin + 1);
  return walk;
}

PageWalk PageWalk::OverHeaders(const ChunkMeta& chunk, bool repeated, const ReadLimits& limits) {
  return PageWalk(chunk, Column{static_cast<int16_t>(repeated ? 1 : 0), -1}, limits);
}

void PageWalk::Restart(bool by_levels) {
  by_levels_ = by_levels;
  any_v2_ = false;
  values_ = 0;
  rows_ = 0;
  pages_.clear();
  dictionary_.reset();
  position_ = chunk_.bytes.begin;
  step_bytes_ = kWindowBytes;
  Need(step_bytes_);
}

void PageWalk::Need(int64_t bytes) {
  need_ = {position_, std::min(position_ + bytes, end_)};
}

std::span<const uint8_t> PageWalk::Window() const {
  const int64_t skip = position_ - bytes_begin_;
  if (bytes_ == nullptr || skip < 0 || skip >= bytes_->size()) return {};
  return {bytes_->data() + skip, static_cast<size_t>(bytes_->size() - skip)};
}

Status PageWalk::Feed(std::shared_ptr<arrow::Buffer> bytes) {
  bytes_begin_ = need_.begin;
  bytes_ = std::move(bytes);
  const Status status = Guarded("walking page headers", [&] { return Step(); });
  if (!status.ok()) return AddContext(status, "offset_bytes", std::to_string(position_));
  if (done_) bytes_.reset();
  return status;
}

Status PageWalk::Step() {
  while (!done_) {
    const bool at_end = position_ >= end_;
    if (AtLastPage()) {
      ARROW_RETURN_NOT_OK(Finish());
      continue;
    }
    if (at_end) {
      return Corrupt("column chunk ends before its values do", "values_expected",
                     chunk_.value_count, "values_found", values_);
    }
    const std::span<const uint8_t> window = Window();
    if (window.empty()) {
      Need(step_bytes_);
      return Status::OK();
    }
    const PagePlace place{end_ - position_, ValuesLeft()};
    ARROW_ASSIGN_OR_RAISE(auto header, ParsePageHeader(window, place, limits_));
    if (!header) {
      // A long header: statistics of long strings are in it.
      Need(std::max<int64_t>(kWindowBytes, 2 * static_cast<int64_t>(window.size())));
      return Status::OK();
    }
    const int64_t needed = NeededBytes(*header);
    if (needed > static_cast<int64_t>(window.size())) {
      Need(needed);
      return Status::OK();
    }
    ARROW_RETURN_NOT_OK(OnPage(*header, window.first(static_cast<size_t>(needed))));
    position_ += header->page_bytes();
    step_bytes_ = header->page_bytes() >= kWindowBytes ? kHeaderWindowBytes : kWindowBytes;
  }
  return Status::OK();
}

bool PageWalk::AtLastPage() const {
  if (only_dictionary_) return position_ >= end_;
  return stop_ >= 0 ? position_ >= stop_ : values_ >= chunk_.value_count;
}

// Some writers state too few values for repeated columns. There the rows decide, so that the last
// page may hold more values than the footer says.
int64_t PageWalk::ValuesLeft() const {
  const bool bound = !only_dictionary_ && stop_ < 0 && column_.repetition_level_max == 0;
  return bound ? chunk_.value_count - values_ : -1;
}

int64_t PageWalk::NeededBytes(const PageHeader& header) const {
  if (!header.is_data() || header.value_count == 0 || column_.repetition_level_max == 0 ||
      only_dictionary_ || column_.row_count < 0) {
    return header.header_bytes;
  }
  if (header.type == PageType::kData) return header.page_bytes();
  return header.header_bytes + (by_levels_ ? header.repetition_level_bytes : 0);
}

Status PageWalk::OnPage(const PageHeader& header, std::span<const uint8_t> page) {
  if (on_header_) on_header_(header, position_);
  if (header.is_data()) return OnDataPage(header, page);
  if (header.type != PageType::kDictionary) return Status::OK();
  if (dictionary_ || !pages_.empty()) {
    return Unsupported("column chunk has more than one dictionary page, or has it too late");
  }
  dictionary_ = ByteRange{position_, position_ + header.page_bytes()};
  return Status::OK();
}

Status PageWalk::OnDataPage(const PageHeader& header, std::span<const uint8_t> page) {
  if (only_dictionary_) return Corrupt("data page where a dictionary page was expected");
  // A page without values has nothing that any row needs.
  if (header.value_count == 0) return Status::OK();
  values_ += header.value_count;
  if (column_.row_count < 0) return Status::OK();
  PageRows rows;
  if (column_.repetition_level_max == 0) {
    rows.begun = header.value_count;
  } else if (header.type == PageType::kDataV2 && !by_levels_) {
    any_v2_ = true;
    rows.begun = header.row_count;
  } else {
    ARROW_ASSIGN_OR_RAISE(rows, RowsByLevels(header, page));
  }
  if (rows.begins_mid_row && pages_.empty()) {
    return Corrupt("first page of a column chunk begins in the middle of a row");
  }
  pages_.push_back({{position_, position_ + header.page_bytes()},
                    {rows_, rows_ + rows.begun},
                    rows.begins_mid_row});
  rows_ += rows.begun;
  return Status::OK();
}

Result<PageWalk::PageRows> PageWalk::RowsByLevels(const PageHeader& header,
                                                  std::span<const uint8_t> page) const {
  const int16_t level_max = column_.repetition_level_max;
  RowCounter counter(level_max, header.value_count);
  PageBytes bytes;
  if (header.type == PageType::kDataV2) {
    counter.decoder().SetDataV2(static_cast<int32_t>(header.repetition_level_bytes), level_max,
                                header.value_count, page.data() + header.header_bytes);
  } else {
    PageBytes::Options options;
    options.codec = chunk_.codec;
    options.verify_crc = false;
    options.limits = &limits_;
    ARROW_RETURN_NOT_OK(bytes.Parse(page, options));
    ARROW_RETURN_NOT_OK(bytes.Start(/*own_buffer=*/false));
    ARROW_RETURN_NOT_OK(SetLevelsV1(header, level_max, &bytes, &counter.decoder()));
  }
  ARROW_RETURN_NOT_OK(counter.Run());
  return PageRows{counter.rows(), counter.begins_mid_row()};
}

Status PageWalk::Finish() {
  if (only_dictionary_ || column_.row_count < 0 || rows_ == column_.row_count) {
    done_ = true;
    return Status::OK();
  }
  if (any_v2_) {
    // Some writers state values for rows in v2 headers: the levels decide.
    Restart(true);
    bytes_.reset();
    return Status::OK();
  }
  return Corrupt("column chunk has another number of rows than its row group", "expected",
                 column_.row_count, "got", rows_);
}

namespace {

// The needs of some walks, as few reads: neighbours that the store would rather read together.
struct Wave {
  std::vector<size_t> walks;                   // sorted by where their need begins
  std::vector<store::ReadRequest> requests;
  std::vector<size_t> request_of;              // parallel to walks
};

constexpr size_t kFromTail = static_cast<size_t>(-1);

Wave PlanWave(const store::ReadCosts& costs, const Footer::Impl& footer,
              std::span<PageWalk> walks, std::vector<size_t> active) {
  std::ranges::sort(active, [&](size_t a, size_t b) {
    return walks[a].need().begin < walks[b].need().begin;
  });
  Wave wave;
  int64_t bytes = 0;
  for (const size_t i : active) {
    const ByteRange need = walks[i].need();
    if (!wave.walks.empty() && (wave.walks.size() == kWaveWalksMax ||
                                bytes + need.size_bytes() > kWaveBytesMax)) {
      break;
    }
    wave.walks.push_back(i);
    if (footer.FromTail(need) != nullptr) {
      wave.request_of.push_back(kFromTail);
      continue;
    }
    bytes += need.size_bytes();
    ByteRange* last = wave.requests.empty() ? nullptr : &wave.requests.back().range;
    if (last != nullptr && need.begin <= last->end + costs.gap_bytes_max &&
        std::max(last->end, need.end) - last->begin <= costs.range_bytes_max) {
      last->end = std::max(last->end, need.end);
    } else {
      wave.requests.push_back({footer.object, need});
    }
    wave.request_of.push_back(wave.requests.size() - 1);
  }
  return wave;
}

}  // namespace

Status RunWalks(store::Store& store, const Footer::Impl& footer, std::span<PageWalk> walks,
                size_t* failed) {
  std::vector<size_t> active(walks.size());
  for (size_t i = 0; i < walks.size(); ++i) active[i] = i;
  while (!active.empty()) {
    const Wave wave = PlanWave(store.read_costs(), footer, walks, active);
    ARROW_ASSIGN_OR_RAISE(auto buffers, store.Read(wave.requests));
    for (size_t i = 0; i < wave.walks.size(); ++i) {
      const size_t index = wave.walks[i];
      const ByteRange need = walks[index].need();
      std::shared_ptr<arrow::Buffer> bytes;
      if (wave.request_of[i] == kFromTail) {
        bytes = footer.FromTail(need);
      } else {
        const auto& request = wave.requests[wave.request_of[i]];
        bytes = arrow::SliceBuffer(buffers[wave.request_of[i]],
                                   need.begin - request.range.begin, need.size_bytes());
      }
      *failed = index;
      ARROW_RETURN_NOT_OK(walks[index].Feed(std::move(bytes)));
    }
    std::erase_if(active, [&](size_t i) { return walks[i].done(); });
  }
  return Status::OK();
}

Status CheckPageHeaders(const ChunkMeta& chunk, bool repeated, std::span<const uint8_t> bytes,
                        const ReadLimits& limits) {
  if (chunk.value_count == 0) return Status::OK();
  const arrow::Buffer all(bytes.data(), static_cast<int64_t>(bytes.size()));
  PageWalk walk = PageWalk::OverHeaders(chunk, repeated, limits);
  while (!walk.done()) {
    const int64_t skip = walk.need().begin - chunk.bytes.begin;
    // All that is left, so that one step does.
    auto rest = std::make_shared<arrow::Buffer>(all.data() + skip, all.size() - skip);
    ARROW_RETURN_NOT_OK(walk.Feed(std::move(rest)));
  }
  return Status::OK();
}

}  // namespace grebe::pq

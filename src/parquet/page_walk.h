// Finding a chunk's pages by its page headers, without reading payloads (levels of repeated
// columns excepted). A walk does no I/O: it says which bytes it needs next, so that the walks of
// many chunks share each wave of reads.
#pragma once

#include <arrow/buffer.h>

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "parquet/footer_internal.h"
#include "parquet/page_header.h"
#include "parquet/page_map.h"

namespace grebe::pq {

class PageWalk {
 public:
  struct Column {
    int16_t repetition_level_max = 0;
    int64_t row_count = 0;            // of the row group; negative: rows are not looked at
  };

  // Walks the whole chunk.
  PageWalk(const ChunkMeta& chunk, const Column& column, const ReadLimits& limits);
  // Looks at [begin, end) only, where a dictionary page may be.
  PageWalk(const ChunkMeta& chunk, ByteRange dictionary_place, const ReadLimits& limits);
  // Counts the values of a column that is not repeated, whatever the footer says of them: goes on
  // until at most `slack_bytes` of the chunk are left.
  static PageWalk CountingValues(const ChunkMeta& chunk, int64_t slack_bytes,
                                 const ReadLimits& limits);
  // Checks every page header up to the chunk's last value, and learns no rows.
  static PageWalk OverHeaders(const ChunkMeta& chunk, bool repeated, const ReadLimits& limits);

  // Called with every header, and where it is in the file, as the walk comes by.
  using OnHeader = std::function<void(const PageHeader&, int64_t offset_bytes)>;
  void set_on_header(OnHeader on_header) { on_header_ = std::move(on_header); }

  bool done() const { return done_; }
  // REQUIRES: !done(). Not empty, within the chunk.
  ByteRange need() const { return need_; }
  // Goes on with the bytes of need(). Errors: Corrupt, Unsupported, LimitExceeded.
  Status Feed(std::shared_ptr<arrow::Buffer> bytes);

  // REQUIRES: done().
  std::vector<PageLocation> take_pages() { return std::move(pages_); }
  int64_t value_count() const { return values_; }
  const std::optional<ByteRange>& dictionary() const { return dictionary_; }

 private:
  struct PageRows {
    int64_t begun = 0;          // rows that begin in the page
    bool begins_mid_row = false;
  };

  Status Step();
  Status OnPage(const PageHeader& header, std::span<const uint8_t> page);
  Status OnDataPage(const PageHeader& header, std::span<const uint8_t> page);
  Result<PageRows> RowsByLevels(const PageHeader& header, std::span<const uint8_t> page) const;
  Status Finish();
  void Restart(bool by_levels);
  void Need(int64_t bytes);
  int64_t ValuesLeft() const;
  bool AtLastPage() const;
  // The bytes of the page, from its header on, that its rows are learned from.
  int64_t NeededBytes(const PageHeader& header) const;
  std::span<const uint8_t> Window() const;

  const ChunkMeta chunk_;
  const Column column_;
  const ReadLimits limits_;
  const bool only_dictionary_;
  int64_t end_;                       // no page of the walk reaches beyond
  int64_t stop_ = -1;                 // counting values: the walk is over from here on
  // Count rows by repetition levels also where v2 headers state them.
  bool by_levels_ = false;
  bool any_v2_ = false;

  OnHeader on_header_;
  bool done_ = false;
  ByteRange need_;
  std::shared_ptr<arrow::Buffer> bytes_;
  int64_t bytes_begin_ = 0;
  int64_t position_ = 0;              // of the next header
  int64_t step_bytes_ = 0;            // how much to read at the next header
  int64_t values_ = 0;
  int64_t rows_ = 0;
  std::vector<PageLocation> pages_;
  std::optional<ByteRange> dictionary_;
};

// Runs walks to their end, reading for all of them together. Cost: one wave a step; chunks of few
// pages take one or two. An error is the first walk's that fails, with its index in *failed.
Status RunWalks(store::Store& store, const Footer::Impl& footer, std::span<PageWalk> walks,
                size_t* failed);

// Checks every page header of a chunk whose bytes are at hand. Errors: as ParsePageHeader.
Status CheckPageHeaders(const ChunkMeta& chunk, bool repeated, std::span<const uint8_t> bytes,
                        const ReadLimits& limits);

}  // namespace grebe::pq

// The packed page map. Format: docs/format/page-map.md; keep the two in step.
//
// Everything is a sequence of integers predicted by a few straight lines, with what the lines miss
// packed at a fixed width: page sizes and row counts are near enough constant that a page costs
// few bits, and any element is found without reading those before it.
#include "parquet/page_map.h"

#include <algorithm>
#include <limits>

#include "base/coding.h"
#include "parquet/line_sequence.h"

namespace grebe::pq {
namespace {

constexpr uint32_t kMagic = 0x314d5047;  // "GPM1"
constexpr int32_t kRowGroupsWithoutLeavesMax = 1 << 20;
constexpr uint8_t kBodyHasGaps = 1;
constexpr uint8_t kBodyHasMidRows = 2;
constexpr int64_t kAlwaysCompressed = 1 << 8;  // beside the codec's number

// The integers kept for every chunk, in this order; chunk index = row group * leaf count + leaf.
enum ChunkField {
  kCodec,            // codec number, kAlwaysCompressed
  kExtraValues,      // values minus the row group's rows: 0 for flat columns
  kPageCount,
  kBegin,            // of the first page's bytes
  kDataBytes,        // from there to the last page's end
  kDictionaryBytes,  // 0: none
  kDictionaryGap,    // first page's begin minus the dictionary's end
  kBodyAt,           // where the chunk's body is, within the bodies; unused without a body
  kFieldCount,
};

bool GetBit(const uint8_t* bits, int64_t i) { return (bits[i >> 3] >> (i & 7) & 1) != 0; }

void PutBits(const std::vector<bool>& bits, std::string* out) {
  std::string bytes((bits.size() + 7) / 8, '\0');
  for (size_t i = 0; i < bits.size(); ++i) {
    if (bits[i]) bytes[i >> 3] = static_cast<char>(bytes[i >> 3] | 1 << (i & 7));
  }
  out->append(bytes);
}

// Wrapping arithmetic: damaged maps may hold any number.
int64_t Add(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
int64_t Sub(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
}

}  // namespace

// ---- reading ----

namespace {

// A chunk's body, parsed: what pages need beyond the chunk's own numbers. Without a body the chunk
// has at most one page.
struct Body {
  LineSequence first_rows;  // of pages 1 .. n-1
  LineSequence bounds;      // where pages 1 .. n-1 begin, from the first page's begin
  LineSequence gaps;        // bytes between page i and i+1 (n-1 of them); no gaps: empty
  const uint8_t* mid_rows = nullptr;
};

bool ParseBody(ByteReader* in, int64_t page_count, Body* body) {
  uint8_t flags = 0;
  if (!in->ReadFixed(&flags) || (flags & ~(kBodyHasGaps | kBodyHasMidRows)) != 0) return false;
  const int64_t inner = page_count - 1;
  if (inner < 0 || !body->first_rows.Parse(in, inner) || !body->bounds.Parse(in, inner)) {
    return false;
  }
  if ((flags & kBodyHasGaps) != 0 && !body->gaps.Parse(in, inner)) return false;
  if ((flags & kBodyHasMidRows) != 0) {
    body->mid_rows = in->cursor();
    if (!in->Skip(static_cast<size_t>((page_count + 7) / 8))) return false;
  }
  return true;
}

// One chunk as the map gives it, ready for questions about its pages.
struct ChunkView {
  ChunkInfo info;
  int64_t row_count = 0;
  int64_t begin = 0;
  int64_t data_bytes = 0;
  Body body;

  // The first row of page i; i may be the page count.
  int64_t FirstRow(int64_t i) const {
    if (i <= 0) return 0;
    if (i >= info.page_count) return row_count;
    return body.first_rows.At(i - 1);
  }
  int64_t PageBegin(int64_t i) const {
    return i == 0 ? begin : Add(begin, body.bounds.At(i - 1));
  }
  int64_t PageEnd(int64_t i) const {
    if (i + 1 == info.page_count) return Add(begin, data_bytes);
    const int64_t next = PageBegin(i + 1);
    return body.gaps.count() == 0 ? next : Sub(next, body.gaps.At(i));
  }
  bool BeginsMidRow(int64_t i) const {
    return body.mid_rows != nullptr && GetBit(body.mid_rows, i);
  }
  // The last page whose first row is at most `row`: the one in which the row begins, as long as
  // the map is sound. REQUIRES: page_count > 0, 0 <= row < row_count.
  int64_t PageOf(int64_t row) const;
};

int64_t ChunkView::PageOf(int64_t row) const {
  // Rows are spread nearly evenly over pages: guess, widen until the row is enclosed, halve.
  const int64_t pages = info.page_count;
  const auto guess = static_cast<int64_t>(static_cast<__int128>(row) * pages / row_count);
  int64_t low = 0;
  int64_t high = pages;
  int64_t at = std::clamp<int64_t>(guess, 0, pages - 1);
  if (FirstRow(at) <= row) {
    for (int64_t step = 1; at < pages && FirstRow(at) <= row; step *= 2) {
      low = at;
      at += step;
    }
    high = std::min(at, pages);
  } else {
    for (int64_t step = 1; at > 0 && FirstRow(at) > row; step *= 2) {
      high = at;
      at -= step;
    }
    low = std::max<int64_t>(at, 0);
  }
  while (high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    if (FirstRow(middle) <= row) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return low;
}

}  // namespace

struct PageMap::Impl {
  std::shared_ptr<arrow::Buffer> packed;
  int32_t row_group_count = 0;
  int32_t leaf_count = 0;
  int64_t row_count = 0;
  LineSequence row_group_begins;  // of row groups 1 .. n-1
  LineSequence fields[kFieldCount];
  const uint8_t* has_body = nullptr;
  const uint8_t* bodies = nullptr;
  int64_t bodies_bytes = 0;

  int64_t chunk_count() const { return int64_t{row_group_count} * leaf_count; }
  int64_t RowGroupBegin(int64_t i) const {
    if (i <= 0) return 0;
    if (i >= row_group_count) return row_count;
    return row_group_begins.At(i - 1);
  }
  RowRange RowGroupRows(int64_t i) const { return {RowGroupBegin(i), RowGroupBegin(i + 1)}; }

  bool Parse();
  // The chunk's own numbers, unchecked.
  void Numbers(int64_t row_group, int64_t leaf, ChunkView* view) const;
  // What its pages' rows and bytes take. False: damaged.
  bool View(int64_t row_group, int64_t leaf, ChunkView* view) const;
};

void PageMap::Impl::Numbers(int64_t row_group, int64_t leaf, ChunkView* view) const {
  const int64_t chunk = row_group * leaf_count + leaf;
  const int64_t codec = fields[kCodec].At(chunk);
  view->row_count = RowGroupRows(row_group).row_count();
  view->begin = fields[kBegin].At(chunk);
  view->info.codec = static_cast<int32_t>(codec & 0xff);
  view->info.always_compressed = (codec & kAlwaysCompressed) != 0;
  view->info.value_count = Add(view->row_count, fields[kExtraValues].At(chunk));
  view->info.page_count = static_cast<int32_t>(fields[kPageCount].At(chunk));
  const int64_t dictionary_bytes = fields[kDictionaryBytes].At(chunk);
  if (dictionary_bytes != 0) {
    const int64_t end = Sub(view->begin, fields[kDictionaryGap].At(chunk));
    view->info.dictionary = ByteRange{Sub(end, dictionary_bytes), end};
  }
}

bool PageMap::Impl::View(int64_t row_group, int64_t leaf, ChunkView* view) const {
  const int64_t chunk = row_group * leaf_count + leaf;
  view->row_count = RowGroupRows(row_group).row_count();
  view->begin = fields[kBegin].At(chunk);
  view->data_bytes = fields[kDataBytes].At(chunk);
  view->info.page_count = static_cast<int32_t>(fields[kPageCount].At(chunk));
  if (!GetBit(has_body, chunk)) return true;
  const int64_t at = fields[kBodyAt].At(chunk);
  if (at < 0 || at >= bodies_bytes) return false;
  ByteReader in(bodies + at, static_cast<size_t>(bodies_bytes - at));
  return ParseBody(&in, view->info.page_count, &view->body);
}

bool PageMap::Impl::Parse() {
  // The last bytes are padding, so that unpacking may load 8 bytes at any place before them.
  if (packed->size() < kLinePaddingBytes) return false;
  ByteReader in(packed->data(), static_cast<size_t>(packed->size() - kLinePaddingBytes));
  uint32_t magic = 0, groups = 0, leaves = 0;
  if (!in.ReadFixed(&magic) || magic != kMagic || !in.ReadFixed(&groups) ||
      !in.ReadFixed(&leaves) || !in.ReadFixed(&row_count)) {
    return false;
  }
  row_group_count = static_cast<int32_t>(groups);
  leaf_count = static_cast<int32_t>(leaves);
  if (row_group_count < 0 || leaf_count < 0 || row_count < 0) return false;
  if (!row_group_begins.Parse(&in, std::max<int64_t>(row_group_count - 1, 0))) return false;
  // A bit a chunk: so the number of chunks is bounded by the bytes that are there.
  has_body = in.cursor();
  if (!in.Skip(static_cast<size_t>((chunk_count() + 7) / 8))) return false;
  for (auto& field : fields) {
    if (!field.Parse(&in, chunk_count())) return false;
  }
  bodies = in.cursor();
  bodies_bytes = static_cast<int64_t>(in.remaining_bytes());

  // Without columns nothing bounds the number of row groups; no such file has many.
  if (leaf_count == 0 && row_group_count > kRowGroupsWithoutLeavesMax) return false;
  for (int64_t group = 0; group < row_group_count; ++group) {
    const RowRange rows = RowGroupRows(group);
    if (rows.begin < 0 || rows.end < rows.begin || rows.end > row_count) return false;
    for (int64_t leaf = 0; leaf < leaf_count; ++leaf) {
      const int64_t chunk = group * leaf_count + leaf;
      const int64_t pages = fields[kPageCount].At(chunk);
      if (pages != static_cast<int32_t>(pages) || pages < 0) return false;
      if (!GetBit(has_body, chunk) && pages > 1) return false;
      ChunkView view;
      Numbers(group, leaf, &view);
      if (!View(group, leaf, &view)) return false;
      if (view.info.value_count < 0) return false;
      const auto& dictionary = view.info.dictionary;
      if (dictionary && (dictionary->begin < 0 || dictionary->end < dictionary->begin)) {
        return false;
      }
      if (pages == 0 ? view.row_count != 0 : view.begin < 0 || view.data_bytes < 0) return false;
    }
  }
  return true;
}

PageMap::PageMap() = default;
PageMap::~PageMap() = default;

Result<std::shared_ptr<const PageMap>> PageMap::Open(std::shared_ptr<arrow::Buffer> packed) {
  std::shared_ptr<PageMap> map(new PageMap());
  map->impl_ = std::make_unique<Impl>();
  map->impl_->packed = std::move(packed);
  if (!map->impl_->Parse()) return Corrupt("not a page map");
  return map;
}

int PageMap::row_group_count() const { return impl_->row_group_count; }
int PageMap::leaf_count() const { return impl_->leaf_count; }
int64_t PageMap::row_count() const { return impl_->row_count; }
int64_t PageMap::memory_bytes() const {
  return impl_->packed->size() + static_cast<int64_t>(sizeof(PageMap) + sizeof(Impl));
}

RowRange PageMap::row_group_rows(int row_group) const { return impl_->RowGroupRows(row_group); }

int PageMap::FindRowGroup(RowIndex row) const {
  int low = 0;
  int high = impl_->row_group_count;
  while (high - low > 1) {
    const int middle = low + (high - low) / 2;
    if (impl_->RowGroupBegin(middle) <= row.value) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return low;
}

ChunkInfo PageMap::chunk(int row_group, int leaf) const {
  ChunkView view;
  impl_->Numbers(row_group, leaf, &view);
  return view.info;
}

Result<PageLocation> PageMap::page(int row_group, int leaf, int page) const {
  ChunkView view;
  if (!impl_->View(row_group, leaf, &view) || page < 0 || page >= view.info.page_count) {
    return Corrupt("no such page in the page map", "row_group", row_group, "leaf", leaf, "page",
                   page);
  }
  PageLocation location;
  location.bytes = {view.PageBegin(page), view.PageEnd(page)};
  location.rows = {view.FirstRow(page), view.FirstRow(page + 1)};
  location.begins_mid_row = view.BeginsMidRow(page);
  const int64_t end = Add(view.begin, view.data_bytes);
  if (location.bytes.begin < view.begin || location.bytes.end <= location.bytes.begin ||
      location.bytes.end > end || location.rows.begin < 0 ||
      location.rows.end < location.rows.begin || location.rows.end > view.row_count) {
    return Corrupt("page map contradicts itself", "row_group", row_group, "leaf", leaf, "page",
                   page);
  }
  return location;
}

Result<PageMap::PageSpan> PageMap::FindPages(int row_group, int leaf, RowRange rows) const {
  ChunkView view;
  if (!impl_->View(row_group, leaf, &view)) {
    return Corrupt("page map is damaged", "row_group", row_group, "leaf", leaf);
  }
  if (rows.begin < 0 || rows.end > view.row_count || rows.begin > rows.end) {
    return InvalidArgument("rows are outside of the row group", "begin", rows.begin, "end",
                           rows.end, "rows", view.row_count);
  }
  if (rows.empty()) return PageSpan{};
  if (view.info.page_count <= 0) {
    return Corrupt("page map has rows without pages", "row_group", row_group, "leaf", leaf);
  }
  const int64_t first = view.PageOf(rows.begin);
  int64_t last = first;
  // The last wanted row is most often on the same page.
  if (rows.end > view.FirstRow(first + 1)) last = view.PageOf(rows.end - 1);
  if (last < first) return Corrupt("page map is damaged", "row_group", row_group, "leaf", leaf);
  ++last;
  // The last wanted row goes on in those next pages that begin in the middle of it.
  if (view.body.mid_rows != nullptr) {
    for (int64_t i = last; i < view.info.page_count && view.FirstRow(i) == rows.end; ++i) {
      if (view.BeginsMidRow(i)) last = i + 1;
    }
  }
  return PageSpan{static_cast<int>(first), static_cast<int>(last)};
}

// ---- packing ----

namespace {

Status CheckChunk(const RowGroupPages& group, size_t leaf) {
  const ChunkPages& chunk = group.chunks[leaf];
  const auto bad = [&](std::string_view what) {
    return InvalidArgument(what, "leaf", leaf, "pages", chunk.pages.size());
  };
  if (chunk.info.codec < 0 || chunk.info.codec > 255 || chunk.info.value_count < 0) {
    return bad("chunk has a codec or a value count out of range");
  }
  if (chunk.pages.size() > static_cast<size_t>(std::numeric_limits<int32_t>::max())) {
    return bad("chunk has too many pages");
  }
  if (chunk.info.dictionary &&
      (chunk.info.dictionary->begin < 0 || chunk.info.dictionary->empty())) {
    return bad("dictionary has no bytes");
  }
  int64_t row = 0;
  int64_t byte = 0;
  for (const PageLocation& page : chunk.pages) {
    if (page.rows.begin != row || page.rows.end < row) return bad("pages' rows are not in order");
    if (page.bytes.begin < byte || page.bytes.empty()) return bad("pages' bytes are not in order");
    if (page.begins_mid_row && &page == chunk.pages.data()) {
      return bad("first page begins in the middle of a row");
    }
    row = page.rows.end;
    byte = page.bytes.end;
  }
  if (row != group.row_count) return bad("pages do not cover the row group's rows");
  return Status::OK();
}

// True when the chunk's own numbers say everything.
bool NeedsNoBody(const ChunkPages& chunk) { return chunk.pages.size() <= 1; }

void PutBody(const ChunkPages& chunk, std::string* out) {
  const auto& pages = chunk.pages;
  std::vector<int64_t> first_rows, bounds, gaps;
  std::vector<bool> mid_rows(pages.size());
  bool has_gaps = false;
  bool has_mid_rows = false;
  for (size_t i = 0; i < pages.size(); ++i) {
    mid_rows[i] = pages[i].begins_mid_row;
    has_mid_rows = has_mid_rows || mid_rows[i];
    if (i == 0) continue;
    first_rows.push_back(pages[i].rows.begin);
    bounds.push_back(pages[i].bytes.begin - pages[0].bytes.begin);
    gaps.push_back(pages[i].bytes.begin - pages[i - 1].bytes.end);
    has_gaps = has_gaps || gaps.back() != 0;
  }
  PutFixed<uint8_t>(out, static_cast<uint8_t>((has_gaps ? kBodyHasGaps : 0) |
                                              (has_mid_rows ? kBodyHasMidRows : 0)));
  PutLineSequence(first_rows, out);
  PutLineSequence(bounds, out);
  if (has_gaps) PutLineSequence(gaps, out);
  if (has_mid_rows) PutBits(mid_rows, out);
}

void PutChunk(const RowGroupPages& group, const ChunkPages& chunk,
              std::vector<int64_t>* fields, std::vector<bool>* has_body, std::string* bodies) {
  const bool any = !chunk.pages.empty();
  const auto& dictionary = chunk.info.dictionary;
  // A chunk without pages may still have a dictionary: it is kept from its own end.
  const int64_t begin = any ? chunk.pages.front().bytes.begin : dictionary ? dictionary->end : 0;
  fields[kCodec].push_back(chunk.info.codec |
                           (chunk.info.always_compressed ? kAlwaysCompressed : 0));
  fields[kExtraValues].push_back(chunk.info.value_count - group.row_count);
  fields[kPageCount].push_back(static_cast<int64_t>(chunk.pages.size()));
  fields[kBegin].push_back(begin);
  fields[kDataBytes].push_back(any ? chunk.pages.back().bytes.end - begin : 0);
  fields[kDictionaryBytes].push_back(dictionary ? dictionary->size_bytes() : 0);
  fields[kDictionaryGap].push_back(dictionary ? begin - dictionary->end : 0);
  fields[kBodyAt].push_back(static_cast<int64_t>(bodies->size()));
  has_body->push_back(!NeedsNoBody(chunk));
  if (has_body->back()) PutBody(chunk, bodies);
}

}  // namespace

Result<std::string> PackPageMap(const FilePages& pages) {
  const size_t leaves = pages.row_groups.empty() ? 0 : pages.row_groups[0].chunks.size();
  std::vector<int64_t> group_begins;
  std::vector<int64_t> fields[kFieldCount];
  std::vector<bool> has_body;
  std::string bodies;
  int64_t row_count = 0;
  for (size_t i = 0; i < pages.row_groups.size(); ++i) {
    const RowGroupPages& group = pages.row_groups[i];
    if (group.chunks.size() != leaves || group.row_count < 0 ||
        group.row_count > std::numeric_limits<int64_t>::max() - row_count) {
      return InvalidArgument("row groups do not fit together", "row_group", i);
    }
    if (i > 0) group_begins.push_back(row_count);
    row_count += group.row_count;
    for (size_t leaf = 0; leaf < leaves; ++leaf) {
      ARROW_RETURN_NOT_OK(CheckChunk(group, leaf));
      PutChunk(group, group.chunks[leaf], fields, &has_body, &bodies);
    }
  }
  std::string out;
  PutFixed<uint32_t>(&out, kMagic);
  PutFixed<uint32_t>(&out, static_cast<uint32_t>(pages.row_groups.size()));
  PutFixed<uint32_t>(&out, static_cast<uint32_t>(leaves));
  PutFixed<int64_t>(&out, row_count);
  PutLineSequence(group_begins, &out);
  PutBits(has_body, &out);
  for (const auto& field : fields) PutLineSequence(field, &out);
  out.append(bodies);
  out.append(kLinePaddingBytes, '\0');
  return out;
}

}  // namespace grebe::pq

#include "parquet/row_decode.h"

#include <algorithm>

#include "parquet/decode_cache.h"
#include "parquet/dictionary.h"
#include "parquet/guard.h"
#include "parquet/leaf_slice.h"
#include "parquet/page_bytes.h"
#include "parquet/page_rows.h"
#include "parquet/schema_internal.h"

namespace grebe::pq {
namespace {

CacheKey KeyOf(const ChunkRead& read, int page) {
  return {read.file_key, read.row_group, read.leaf, page};
}

// The pages that hold the rows, each once, in order.
Status AddPages(const PageMap& map, ChunkRead* read) {
  int next = 0;
  for (const RowRange& range : read->rows) {
    ARROW_ASSIGN_OR_RAISE(const PageMap::PageSpan span,
                          map.FindPages(read->row_group, read->leaf, range));
    for (int page = std::max(span.first, next); page < span.last; ++page) {
      ARROW_ASSIGN_OR_RAISE(PageLocation location, map.page(read->row_group, read->leaf, page));
      read->pages.push_back(location);
      read->page_indexes.push_back(page);
    }
    next = std::max(next, span.last);
  }
  return Status::OK();
}

// The pages of a found chunk that hold the rows; as PageMap::FindPages.
PageMap::PageSpan SpanOf(const std::vector<PageLocation>& pages, RowRange rows) {
  const auto begins_after = [](int64_t row, const PageLocation& page) {
    return row < page.rows.end;
  };
  const auto first = std::upper_bound(pages.begin(), pages.end(), rows.begin, begins_after);
  auto last = std::upper_bound(first, pages.end(), rows.end - 1, begins_after);
  if (last != pages.end()) ++last;
  // The last wanted row goes on in those next pages that begin in the middle of it.
  for (auto page = last; page != pages.end() && page->rows.begin == rows.end; ++page) {
    if (page->begins_mid_row) last = page + 1;
  }
  return {static_cast<int>(first - pages.begin()), static_cast<int>(last - pages.begin())};
}

void AddPages(const ChunkPages& chunk, ChunkRead* read) {
  int next = 0;
  for (const RowRange& range : read->rows) {
    const PageMap::PageSpan span = SpanOf(chunk.pages, range);
    for (int page = std::max(span.first, next); page < span.last; ++page) {
      read->pages.push_back(chunk.pages[static_cast<size_t>(page)]);
      read->page_indexes.push_back(page);
    }
    next = std::max(next, span.last);
  }
}

bool IsDictionaryEncoded(const PageHeader& header) {
  return header.encoding == 2 || header.encoding == 8;
}

void ConsultCache(DecodeCache::Impl& cache, ChunkRead* read) {
  bool dictionary_used = false;
  int64_t hits = 0;
  for (size_t i = 0; i < read->pages.size(); ++i) {
    auto page = cache.pages.Find(KeyOf(*read, read->page_indexes[i]));
    read->page_needed[i] = page == nullptr;
    hits += page != nullptr;
    dictionary_used |= page == nullptr ||
                       IsDictionaryEncoded(static_cast<const CachedPage*>(page.get())->header);
    read->cached_pages[i] = std::move(page);
  }
  cache.page_hits.fetch_add(hits, std::memory_order_relaxed);
  cache.page_misses.fetch_add(static_cast<int64_t>(read->pages.size()) - hits,
                              std::memory_order_relaxed);
  read->dictionary_needed &= dictionary_used;
  if (!read->dictionary_needed) return;
  read->cached_dictionary = cache.dictionaries.Find(KeyOf(*read, -1));
  read->dictionary_needed = read->cached_dictionary == nullptr;
  (read->dictionary_needed ? cache.dictionary_misses : cache.dictionary_hits)
      .fetch_add(1, std::memory_order_relaxed);
}

Result<LeafShape> ShapeOf(const ::parquet::ColumnDescriptor& descriptor) {
  LeafShape shape;
  shape.type = descriptor.physical_type();
  shape.definition_level_max = descriptor.max_definition_level();
  shape.repetition_level_max = descriptor.max_repetition_level();
  switch (shape.type) {
    case ::parquet::Type::BOOLEAN: shape.width = 1; break;
    case ::parquet::Type::INT32:
    case ::parquet::Type::FLOAT: shape.width = 4; break;
    case ::parquet::Type::INT64:
    case ::parquet::Type::DOUBLE: shape.width = 8; break;
    case ::parquet::Type::INT96: shape.width = 12; break;
    case ::parquet::Type::BYTE_ARRAY: shape.width = 0; break;
    case ::parquet::Type::FIXED_LEN_BYTE_ARRAY:
      shape.width = descriptor.type_length();
      if (shape.width <= 0) return Unsupported("fixed-size values have no size");
      break;
    default: return Unsupported("unknown physical type", "type", static_cast<int>(shape.type));
  }
  return shape;
}

// One chunk being decoded.
class ChunkDecoder {
 public:
  ChunkDecoder(const Schema& schema, const ChunkRead& read, const ChunkBytes& bytes,
               const DecodeOptions& options)
      : schema_(schema), read_(read), bytes_(bytes), options_(options),
        pool_(options.pool != nullptr ? options.pool : arrow::default_memory_pool()) {}

  Result<std::shared_ptr<const LeafSlice>> Run() {
    ARROW_RETURN_NOT_OK(CheckRead());
    descriptor_ = schema_.impl().descriptor->Column(read_.leaf);
    ARROW_ASSIGN_OR_RAISE(shape_, ShapeOf(*descriptor_));
    ARROW_RETURN_NOT_OK(OpenDictionary());
    slice_ = std::make_shared<LeafSlice>(read_.leaf, shape_, pool_);
    for (size_t i = 0; i < read_.pages.size(); ++i) {
      Status status = AddPage(i);
      if (!status.ok()) return AtPage(std::move(status), read_.pages[i].bytes.begin);
    }
    int64_t wanted = 0;
    for (const RowRange& range : read_.rows) wanted += range.row_count();
    if (slice_->row_count != wanted) {
      return Corrupt("pages hold fewer rows than wanted", "row_group", read_.row_group, "leaf",
                     read_.leaf, "expected", wanted, "got", slice_->row_count);
    }
    ARROW_RETURN_NOT_OK(KeepDictionary());
    return slice_;
  }

 private:
  Status CheckRead() const {
    const size_t count = read_.pages.size();
    if (read_.leaf < 0 || read_.leaf >= schema_.leaf_count() ||
        read_.page_indexes.size() != count || read_.page_needed.size() != count ||
        bytes_.pages.size() != count) {
      return InvalidArgument("chunk read and its bytes do not fit together");
    }
    return Status::OK();
  }

  Status AtPage(Status status, int64_t offset) const {
    status = AddContext(FileStatus(status, "decoding a page"), "row_group",
                        std::to_string(read_.row_group));
    status = AddContext(status, "column", schema_.leaf_path(read_.leaf));
    return AddContext(status, "page_offset_bytes", std::to_string(offset));
  }

  PageBytes::Options PageOptions(bool dictionary, bool verify_crc) const {
    PageBytes::Options options;
    options.codec = read_.info.codec;
    options.always_compressed = read_.info.always_compressed;
    options.values_max = dictionary ? -1 : read_.info.value_count;
    options.dictionary = dictionary;
    options.verify_crc = verify_crc;
    options.limits = &options_.limits;
    options.pool = pool_;
    // What the cache holds outlives the caller's pool.
    options.kept_pool = options_.cache != nullptr ? arrow::default_memory_pool() : pool_;
    return options;
  }

  Status OpenDictionary() {
    const PageBytes::Options options = PageOptions(true, options_.verify_crc);
    if (read_.cached_dictionary != nullptr) {
      return dictionary_.OpenCached(
          std::static_pointer_cast<const Dictionary>(read_.cached_dictionary), shape_, options);
    }
    if (bytes_.dictionary == nullptr) return Status::OK();
    Status status = dictionary_.OpenPage(bytes_.dictionary, shape_, options);
    if (status.ok()) return status;
    return AtPage(std::move(status),
                  read_.info.dictionary ? read_.info.dictionary->begin : 0);
  }

  Status KeepDictionary() {
    if (options_.cache == nullptr) return Status::OK();
    ARROW_ASSIGN_OR_RAISE(auto dictionary, dictionary_.TakeForCache());
    if (dictionary == nullptr) return Status::OK();
    const int64_t bytes = dictionary->memory_bytes();
    options_.cache->impl().dictionaries.Insert(KeyOf(read_, -1), std::move(dictionary), bytes);
    return Status::OK();
  }

  // Opens a page from the cache or from its bytes; *keep gets what the cache should hold of it,
  // or null. *cached gets the decompressed page when it comes from the cache.
  Status OpenPage(size_t i, PageBytes* page, std::shared_ptr<CachedPage>* keep,
                  const CachedPage** cached) {
    const auto* found = read_.cached_pages.size() > i
                            ? static_cast<const CachedPage*>(read_.cached_pages[i].get())
                            : nullptr;
    if (found != nullptr && found->bytes != nullptr) {
      page->OpenDecoded(found->header, *found->bytes);
      *cached = found;
      return Status::OK();
    }
    const arrow::Buffer* stored = found != nullptr ? found->stored.get() : bytes_.pages[i].get();
    if (stored == nullptr) return InvalidArgument("a page's bytes are missing");
    ARROW_RETURN_NOT_OK(
        page->Parse({stored->data(), static_cast<size_t>(stored->size())},
                    PageOptions(false, options_.verify_crc && found == nullptr)));
    if (options_.cache == nullptr || options_.cache->impl().pages.bytes_max() == 0) {
      return page->Start(false);
    }
    // A large page that is wanted for the first time is not decompressed further than it must.
    auto made = std::make_shared<CachedPage>();
    made->header = page->header();
    *keep = made;
    if (found == nullptr && read_.info.codec == kCodecZstd &&
        page->size_bytes() > PageBytes::kZstdBlockBytes) {
      ARROW_ASSIGN_OR_RAISE(made->stored, stored->CopySlice(0, stored->size()));
      return page->Start(false);
    }
    ARROW_RETURN_NOT_OK(page->Start(true));
    ARROW_RETURN_NOT_OK(page->Ensure(page->size_bytes()));
    made->bytes = page->take_buffer();
    return Status::OK();
  }

  Status AddPage(size_t i) {
    PageBytes page;
    std::shared_ptr<CachedPage> keep;
    const CachedPage* cached = nullptr;
    ARROW_RETURN_NOT_OK(OpenPage(i, &page, &keep, &cached));
    ARROW_RETURN_NOT_OK(AddPageRows(i, &page, cached));
    if (keep == nullptr) return Status::OK();
    const int64_t bytes = keep->memory_bytes();
    options_.cache->impl().pages.Insert(KeyOf(read_, read_.page_indexes[i]), std::move(keep),
                                        bytes);
    return Status::OK();
  }

  Status AddPageRows(size_t i, PageBytes* page, const CachedPage* cached) {
    const PageLocation& location = read_.pages[i];
    const int64_t rows_here = location.rows.row_count();
    if (shape_.repetition_level_max == 0 && page->header().value_count != rows_here) {
      return Corrupt("page holds another number of rows than the page map says", "expected",
                     rows_here, "got", page->header().value_count);
    }
    if (page->header().value_count == 0) return Status::OK();
    PageRows::Source source;
    source.page = page;
    source.cached = cached;
    source.dictionary = &dictionary_;
    source.descriptor = descriptor_;
    source.shape = shape_;
    source.limits = &options_.limits;
    source.pool = pool_;
    PageRows rows;
    ARROW_RETURN_NOT_OK(rows.Open(source));
    ARROW_RETURN_NOT_OK(AddTail(i, &rows));
    return AddRows(location, &rows);
  }

  // What the page has of the row before its first one.
  Status AddTail(size_t i, PageRows* rows) {
    if (shape_.repetition_level_max == 0) return Status::OK();
    const bool next = i > 0 && read_.page_indexes[i] == read_.page_indexes[i - 1] + 1;
    if (rows->has_tail() && !read_.pages[i].begins_mid_row && !read_.pages[i].rows.empty()) {
      return Corrupt("page begins in the middle of a row, but the page map says that it does not");
    }
    const bool wanted = next && row_is_open_;
    row_is_open_ = false;
    ARROW_RETURN_NOT_OK(wanted ? rows->TakeTail(slice_.get()) : rows->SkipTail());
    if (wanted && rows->at_end()) row_is_open_ = true;
    return Status::OK();
  }

  // The wanted rows that begin in the page.
  Status AddRows(const PageLocation& location, PageRows* rows) {
    int64_t at = location.rows.begin;
    for (; range_ < read_.rows.size(); ++range_) {
      const RowRange wanted = read_.rows[range_];
      const int64_t begin = std::max(wanted.begin, at);
      const int64_t end = std::min(wanted.end, location.rows.end);
      if (begin < end) {
        ARROW_RETURN_NOT_OK(rows->SkipRows(begin - at));
        ARROW_RETURN_NOT_OK(rows->TakeRows(end - begin, slice_.get()));
        at = end;
        row_is_open_ = shape_.repetition_level_max > 0 && rows->at_end();
      }
      if (wanted.end > location.rows.end) break;  // goes on in the next page
    }
    return Status::OK();
  }

  const Schema& schema_;
  const ChunkRead& read_;
  const ChunkBytes& bytes_;
  const DecodeOptions& options_;
  arrow::MemoryPool* pool_;
  const ::parquet::ColumnDescriptor* descriptor_ = nullptr;
  LeafShape shape_;
  DictionaryReader dictionary_;
  std::shared_ptr<LeafSlice> slice_;
  size_t range_ = 0;          // the first wanted range not yet taken to its end
  bool row_is_open_ = false;  // the last row taken may go on in the next page
};

}  // namespace

namespace {

// The rows of a chunk to be read, before its pages are known.
Result<ChunkRead> StartRead(uint64_t file_key, int row_group, int leaf, int64_t row_count,
                            std::span<const RowRange> rows) {
  int64_t previous_end = 0;
  for (const RowRange& range : rows) {
    if (range.empty() || range.begin < previous_end || range.end > row_count) {
      return InvalidArgument("rows are not sorted, disjoint and within the row group",
                             "row_group", row_group, "begin", range.begin, "end", range.end);
    }
    previous_end = range.end;
  }
  ChunkRead read;
  read.file_key = file_key;
  read.row_group = row_group;
  read.leaf = leaf;
  read.rows.assign(rows.begin(), rows.end());
  return read;
}

ChunkRead FinishPlan(ChunkRead read, DecodeCache* cache) {
  read.page_needed.assign(read.pages.size(), true);
  read.cached_pages.resize(read.pages.size());
  read.dictionary_needed = read.info.dictionary.has_value() && !read.pages.empty();
  if (cache != nullptr) ConsultCache(cache->impl(), &read);
  return read;
}

}  // namespace

Result<ChunkRead> PlanChunk(const PageMap& map, uint64_t file_key, int row_group, int leaf,
                            std::span<const RowRange> rows, DecodeCache* cache) {
  if (row_group < 0 || row_group >= map.row_group_count() || leaf < 0 ||
      leaf >= map.leaf_count()) {
    return InvalidArgument("no such column chunk", "row_group", row_group, "leaf", leaf);
  }
  ARROW_ASSIGN_OR_RAISE(ChunkRead read, StartRead(file_key, row_group, leaf,
                                                  map.row_group_rows(row_group).row_count(), rows));
  read.info = map.chunk(row_group, leaf);
  ARROW_RETURN_NOT_OK(AddPages(map, &read));
  return FinishPlan(std::move(read), cache);
}

Result<ChunkRead> PlanChunk(const ChunkPages& chunk, int64_t row_count, uint64_t file_key,
                            int row_group, int leaf, std::span<const RowRange> rows,
                            DecodeCache* cache) {
  ARROW_ASSIGN_OR_RAISE(ChunkRead read, StartRead(file_key, row_group, leaf, row_count, rows));
  read.info = chunk.info;
  AddPages(chunk, &read);
  return FinishPlan(std::move(read), cache);
}

Result<std::shared_ptr<const LeafSlice>> DecodeChunk(const Schema& schema, const ChunkRead& read,
                                                     const ChunkBytes& bytes,
                                                     const DecodeOptions& options) {
  return Guarded("decoding a column chunk",
                 [&] { return ChunkDecoder(schema, read, bytes, options).Run(); });
}

}  // namespace grebe::pq

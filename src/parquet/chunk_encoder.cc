#include "parquet/chunk_encoder.h"

#include <arrow/array/builder_binary.h>
#include <arrow/compute/api_vector.h>
#include <arrow/compute/exec.h>
#include <arrow/datum.h>
#include <arrow/io/memory.h>
#include <arrow/util/bit_util.h>
#include <parquet/bloom_filter.h>
#include <parquet/column_page.h>
#include <parquet/column_writer.h>
#include <parquet/level_conversion.h>
#include <parquet/page_index.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <deque>
#include <limits>
#include <span>

#include "parquet/cut_bounds.h"
#include "parquet/leaf_values.h"

namespace grebe::pq {
namespace {

namespace lib = ::parquet;

constexpr int64_t kPageBytesLimit = std::numeric_limits<int32_t>::max();
// Estimates of distinct values may be this much off.
constexpr double kDistinctSlack = 1.05;

// A page as its rows are known before its values are encoded.
struct PageHead {
  RowRange rows;
  int64_t levels = 0;
  int64_t values = 0;
  std::string level_bytes;   // both kinds, as a v1 page begins with them
};

// Takes the pages of values that a ColumnWriter makes, puts their levels before them, compresses
// them and hands them to libparquet's own page writer. Pages without values, of which a
// ColumnWriter knows nothing, are put in where they belong.
class PageSink final : public lib::PageWriter {
 public:
  PageSink(std::unique_ptr<lib::PageWriter> pages, arrow::io::BufferOutputStream* stream,
           const ChunkSettings& settings, bool cut_bounds, EncodedChunk* out)
      : pages_(std::move(pages)), stream_(stream), settings_(settings), cut_bounds_(cut_bounds),
        out_(out) {}

  void Expect(PageHead head) { expected_.push_back(std::move(head)); }

  int64_t WriteDataPage(const lib::DataPage& page) override {
    WriteEmptyPages();
    if (expected_.empty()) throw lib::ParquetException("a page that was not asked for");
    encoding_ = page.encoding();
    return WritePage({page.data(), static_cast<size_t>(page.size())}, page.statistics());
  }

  int64_t WriteDictionaryPage(const lib::DictionaryPage& page) override {
    encoding_ = lib::Encoding::RLE_DICTIONARY;
    const int64_t written = pages_->WriteDictionaryPage(page);
    out_->dictionary = ByteRange{0, Position()};
    return written;
  }

  void Close(bool has_dictionary, bool fallback) override {
    WriteEmptyPages();
    if (!expected_.empty()) throw lib::ParquetException("a page is missing");
    out_->dictionary_fallback = fallback;
    pages_->Close(has_dictionary, fallback);
  }

  int64_t total_compressed_bytes_written() const override {
    return pages_->total_compressed_bytes_written();
  }
  bool has_compressor() override { return false; }
  void Compress(const arrow::Buffer&, arrow::ResizableBuffer*) override {
    throw lib::ParquetException("pages are compressed as they are written");
  }

 private:
  int64_t Position() const {
    PARQUET_ASSIGN_OR_THROW(const int64_t position, stream_->Tell());
    return position;
  }

  void WriteEmptyPages() {
    // The bit width of the indices, of which there are none.
    static constexpr uint8_t kNoIndices[] = {0};
    while (!expected_.empty() && expected_.front().values == 0) {
      const bool indices = encoding_ == lib::Encoding::RLE_DICTIONARY;
      WritePage(indices ? std::span(kNoIndices) : std::span<const uint8_t>(), {});
    }
  }

  int64_t WritePage(std::span<const uint8_t> values, lib::EncodedStatistics statistics) {
    const PageHead head = std::move(expected_.front());
    expected_.pop_front();
    std::span<const uint8_t> payload = values;
    if (!head.level_bytes.empty()) {
      payload_ = head.level_bytes;
      payload_.append(reinterpret_cast<const char*>(values.data()), values.size());
      payload = {reinterpret_cast<const uint8_t*>(payload_.data()), payload_.size()};
    }
    if (static_cast<int64_t>(payload.size()) > kPageBytesLimit) {
      throw lib::ParquetStatusException(
          LimitExceeded("page is larger than Parquet allows", "size_bytes", payload.size()));
    }
    PARQUET_ASSIGN_OR_THROW(auto compressed, settings_.compressor->Compress(payload));
    if (head.values == 0) {
      statistics.all_null_value = true;
      statistics.set_null_count(head.levels);
    } else if (statistics.has_null_count) {
      statistics.set_null_count(head.levels - head.values);
    }
    if (cut_bounds_) CutBounds(settings_.options->bound_bytes_max, &statistics);
    const int64_t begin = Position();
    const int64_t written = pages_->WriteDataPage(lib::DataPageV1(
        compressed, static_cast<int32_t>(head.levels), encoding_, lib::Encoding::RLE,
        lib::Encoding::RLE, static_cast<int64_t>(payload.size()), std::move(statistics),
        head.rows.begin));
    out_->pages.push_back({{begin, Position()}, head.rows});
    return written;
  }

  std::unique_ptr<lib::PageWriter> pages_;
  arrow::io::BufferOutputStream* stream_;
  const ChunkSettings& settings_;
  const bool cut_bounds_;
  EncodedChunk* out_;
  std::deque<PageHead> expected_;
  lib::Encoding::type encoding_ = lib::Encoding::PLAIN;
  std::string payload_;
};

// Where the rows of a repeated column begin, among its levels and among its slots; the last element
// is the end. Empty for columns that are not repeated: there a row is one level and one slot.
struct RowStarts {
  std::vector<int64_t> levels;
  std::vector<int64_t> slots;

  int64_t Level(int64_t row) const { return levels.empty() ? row : levels[Index(row)]; }
  int64_t Slot(int64_t row) const { return slots.empty() ? row : slots[Index(row)]; }
  static size_t Index(int64_t row) { return static_cast<size_t>(row); }
};

RowStarts FindRows(const LeafLevels& levels, int16_t slot_level_min) {
  RowStarts starts;
  if (levels.repetition == nullptr) return starts;
  int64_t slot = 0;
  for (int64_t i = 0; i < levels.count; ++i) {
    if (levels.repetition[i] == 0) {
      starts.levels.push_back(i);
      starts.slots.push_back(slot);
    }
    slot += levels.definition[i] >= slot_level_min ? 1 : 0;
  }
  starts.levels.push_back(levels.count);
  starts.slots.push_back(slot);
  return starts;
}

// A run of levels as a v1 page holds it: length, then RLE.
void AppendLevels(std::span<const int16_t> levels, int16_t level_max, std::string* out) {
  const auto count = static_cast<int>(levels.size());
  const int size_max = lib::LevelEncoder::MaxBufferSize(lib::Encoding::RLE, level_max, count);
  const size_t begin = out->size();
  out->resize(begin + sizeof(int32_t) + static_cast<size_t>(size_max));
  auto* bytes = reinterpret_cast<uint8_t*>(out->data()) + begin;
  lib::LevelEncoder encoder;
  encoder.Init(lib::Encoding::RLE, level_max, count, bytes + sizeof(int32_t), size_max);
  if (encoder.Encode(count, levels.data()) != count) {
    throw lib::ParquetException("levels do not fit their buffer");
  }
  const int32_t size = encoder.len();
  std::memcpy(bytes, &size, sizeof(size));
  out->resize(begin + sizeof(int32_t) + static_cast<size_t>(size));
}

bool IsView(const arrow::Array& values) {
  return values.type_id() == arrow::Type::STRING_VIEW ||
         values.type_id() == arrow::Type::BINARY_VIEW;
}

template <class ArrayType, class IsNan>
bool AnyNan(const arrow::Array& values, IsNan is_nan) {
  const auto& numbers = static_cast<const ArrayType&>(values);
  return std::any_of(numbers.raw_values(), numbers.raw_values() + numbers.length(), is_nan);
}

// Bounds leave NaN out, as the format says; but readers for whom NaN is the greatest number trust
// them all the same (DuckDB finds no NaN then). So the caller leaves such bounds out.
bool HasNan(const arrow::Array& values) {
  const auto is_nan = [](auto value) { return std::isnan(value); };
  switch (values.type_id()) {
    case arrow::Type::FLOAT: return AnyNan<arrow::FloatArray>(values, is_nan);
    case arrow::Type::DOUBLE: return AnyNan<arrow::DoubleArray>(values, is_nan);
    case arrow::Type::HALF_FLOAT:
      return AnyNan<arrow::HalfFloatArray>(
          values, [](uint16_t bits) { return (bits & 0x7fff) > 0x7c00; });
    default: return false;
  }
}

// Values of a dictionary array in place of indices: the chunk gets a dictionary of its own.
Result<std::shared_ptr<arrow::Array>> WithoutDictionary(
    const std::shared_ptr<arrow::Array>& leaf) {
  if (leaf->type_id() != arrow::Type::DICTIONARY) return leaf;
  const auto& array = static_cast<const arrow::DictionaryArray&>(*leaf);
  return arrow::compute::Take(*array.dictionary(), *array.indices());
}

class ChunkEncoder {
 public:
  ChunkEncoder(const lib::ColumnDescriptor& column, const LeafLevels& levels,
               std::shared_ptr<arrow::Array> leaf, const ChunkSettings& settings)
      : column_(column),
        // Parents and levels are left out: values reach libparquet as a flat required column.
        values_column_(lib::schema::PrimitiveNode::Make(
                           column.name(), lib::Repetition::REQUIRED, column.logical_type(),
                           column.physical_type(), column.type_length()),
                       0, 0),
        levels_(levels),
        leaf_(std::move(leaf)),
        settings_(settings),
        options_(*settings.options),
        slot_level_min_(
            lib::internal::LevelInfo::ComputeLevelInfo(&column).repeated_ancestor_def_level),
        sizes_(*leaf_, WidthBits()) {}

  Result<EncodedChunk> Run(lib::ArrowWriteContext* context);

 private:
  int64_t WidthBits() const;
  bool ChooseDictionary() const;
  int64_t RowBytes(int64_t begin, int64_t end) const;
  std::vector<int64_t> EndsBySize() const;
  PageHead HeadOf(RowRange rows);
  Result<std::shared_ptr<arrow::Array>> ValuesOf(RowRange rows, int64_t count) const;
  std::shared_ptr<lib::WriterProperties> Properties(std::span<const int64_t> ends) const;
  void MakeBloomFilter();
  Status WriteBloomFilter();
  void ReadStatistics(const lib::ColumnChunkMetaDataBuilder& metadata);
  std::span<const int16_t> Definition(int64_t begin, int64_t end) const {
    return {levels_.definition + begin, static_cast<size_t>(end - begin)};
  }

  const lib::ColumnDescriptor& column_;
  const lib::ColumnDescriptor values_column_;
  const LeafLevels levels_;
  const std::shared_ptr<arrow::Array> leaf_;
  const ChunkSettings& settings_;
  const WriteOptions& options_;
  const int16_t slot_level_min_;
  const ValueSizes sizes_;
  int64_t distinct_ = 0;
  bool dictionary_ = false;
  RowStarts starts_;
  int64_t row_count_ = 0;
  int64_t values_written_ = 0;
  std::unique_ptr<lib::BlockSplitBloomFilter> bloom_;
  EncodedChunk out_;
};

int64_t ChunkEncoder::WidthBits() const {
  switch (column_.physical_type()) {
    case lib::Type::BOOLEAN: return 1;
    case lib::Type::INT32:
    case lib::Type::FLOAT: return 32;
    case lib::Type::INT64:
    case lib::Type::DOUBLE: return 64;
    case lib::Type::FIXED_LEN_BYTE_ARRAY: return std::max(column_.type_length() * 8, 1);
    default: return 0;
  }
}

bool ChunkEncoder::ChooseDictionary() const {
  const int64_t count = leaf_->length() - leaf_->null_count();
  if (count == 0 || settings_.dictionary == DictionaryPolicy::kOff ||
      column_.physical_type() == lib::Type::BOOLEAN) {
    return false;
  }
  if (settings_.dictionary == DictionaryPolicy::kOn) return true;
  const double distinct = static_cast<double>(distinct_) * kDistinctSlack;
  const double plain_bytes = static_cast<double>(sizes_.BytesOf(0, leaf_->length()));
  const double entry_bytes = plain_bytes / static_cast<double>(leaf_->length());
  const double index_bits = std::bit_width(static_cast<uint64_t>(distinct_));
  const double with_dictionary =
      distinct * entry_bytes + static_cast<double>(count) * index_bits / 8;
  return distinct <= options_.dictionary_distinct_share_max * static_cast<double>(count) &&
         distinct * entry_bytes < static_cast<double>(options_.dictionary_bytes_max) &&
         with_dictionary < plain_bytes;
}

// About how many bytes the rows' levels and values take in a page.
int64_t ChunkEncoder::RowBytes(int64_t begin, int64_t end) const {
  const int64_t first = starts_.Slot(begin);
  const int64_t last = starts_.Slot(end);
  int64_t bytes = 0;
  if (dictionary_) {
    bytes = (last - first) * std::bit_width(static_cast<uint64_t>(distinct_)) / 8;
  } else {
    bytes = sizes_.BytesOf(first, last);
  }
  const int level_bits = std::bit_width(static_cast<uint16_t>(column_.max_definition_level())) +
                         std::bit_width(static_cast<uint16_t>(column_.max_repetition_level()));
  if (!starts_.levels.empty()) {
    bytes += (starts_.Level(end) - starts_.Level(begin)) * level_bits / 8;
  }
  return bytes;
}

std::vector<int64_t> ChunkEncoder::EndsBySize() const {
  std::vector<int64_t> ends;
  int64_t begin = 0;
  while (begin < row_count_) {
    // The largest end that keeps the limits; one row in any case.
    int64_t low = begin + 1;
    int64_t high = std::min(row_count_, begin + std::max<int64_t>(options_.page_rows_max, 1));
    while (low < high) {
      const int64_t middle = high - (high - low) / 2;
      if (RowBytes(begin, middle) <= options_.page_bytes_max) {
        low = middle;
      } else {
        high = middle - 1;
      }
    }
    ends.push_back(low);
    begin = low;
  }
  return ends;
}

PageHead ChunkEncoder::HeadOf(RowRange rows) {
  PageHead head;
  head.rows = rows;
  const int64_t begin = starts_.Level(rows.begin);
  const int64_t end = starts_.Level(rows.end);
  head.levels = end - begin;
  head.values = head.levels;
  if (column_.max_repetition_level() > 0) {
    const std::span<const int16_t> levels(levels_.repetition + begin,
                                          static_cast<size_t>(end - begin));
    AppendLevels(levels, column_.max_repetition_level(), &head.level_bytes);
    lib::UpdateLevelHistogram(levels, out_.sizes.repetition_level_histogram);
  }
  if (column_.max_definition_level() > 0) {
    const auto levels = Definition(begin, end);
    AppendLevels(levels, column_.max_definition_level(), &head.level_bytes);
    lib::UpdateLevelHistogram(levels, out_.sizes.definition_level_histogram);
    head.values = std::ranges::count(levels, column_.max_definition_level());
  }
  return head;
}

// The rows' values without the slots of nulls.
Result<std::shared_ptr<arrow::Array>> ChunkEncoder::ValuesOf(RowRange rows,
                                                             int64_t count) const {
  const int64_t first = starts_.Slot(rows.begin);
  const int64_t slots = starts_.Slot(rows.end) - first;
  auto values = leaf_->Slice(first, slots);
  if (slots == count) return values;
  ARROW_ASSIGN_OR_RAISE(auto bits, arrow::AllocateEmptyBitmap(slots, settings_.pool));
  int64_t slot = 0;
  for (const int16_t level : Definition(starts_.Level(rows.begin), starts_.Level(rows.end))) {
    if (level < slot_level_min_) continue;
    if (level == column_.max_definition_level()) {
      arrow::bit_util::SetBit(bits->mutable_data(), slot);
    }
    ++slot;
  }
  if (IsView(*values)) {  // Arrow's Filter has no kernel for views
    const auto& views = static_cast<const arrow::BinaryViewArray&>(*values);
    arrow::LargeBinaryBuilder builder(settings_.pool);
    for (int64_t i = 0; i < slots; ++i) {
      if (!arrow::bit_util::GetBit(bits->data(), i)) continue;
      ARROW_RETURN_NOT_OK(builder.Append(views.GetView(i)));
    }
    return builder.Finish();
  }
  const arrow::BooleanArray present(slots, std::move(bits));
  arrow::compute::ExecContext compute(settings_.pool);
  compute.set_use_threads(false);
  ARROW_ASSIGN_OR_RAISE(auto filtered,
                        arrow::compute::Filter(values, arrow::Datum(present.data()),
                                               arrow::compute::FilterOptions::Defaults(),
                                               &compute));
  return filtered.make_array();
}

std::shared_ptr<lib::WriterProperties> ChunkEncoder::Properties(
    std::span<const int64_t> ends) const {
  // A batch holds a whole page, or libparquet would divide it.
  int64_t slots_max = 1;
  for (size_t i = 0; i < ends.size(); ++i) {
    slots_max = std::max(slots_max, starts_.Slot(ends[i]) -
                                        starts_.Slot(i == 0 ? 0 : ends[i - 1]));
  }
  lib::WriterProperties::Builder builder;
  builder.memory_pool(settings_.pool)
      ->compression(LibraryCodec(options_.codec))
      ->data_pagesize(0)
      ->write_batch_size(slots_max)
      ->max_rows_per_page(std::numeric_limits<int64_t>::max())
      ->max_statistics_size(std::numeric_limits<int64_t>::max())
      ->dictionary_pagesize_limit(std::max<int64_t>(options_.dictionary_bytes_max, 1))
      ->set_size_statistics_level(lib::SizeStatisticsLevel::ColumnChunk);
  if (dictionary_) {
    builder.enable_dictionary();
  } else {
    builder.disable_dictionary();
  }
  return builder.build();
}

void ChunkEncoder::MakeBloomFilter() {
  bloom_ = std::make_unique<lib::BlockSplitBloomFilter>(settings_.pool);
  const auto distinct =
      static_cast<uint64_t>(static_cast<double>(distinct_) * kDistinctSlack) + 1;
  bloom_->Init(lib::BlockSplitBloomFilter::OptimalNumOfBytes(distinct,
                                                             options_.bloom_false_share_max));
}

Status ChunkEncoder::WriteBloomFilter() {
  // 0.0 and -0.0 are equal, but their bytes and hashes are not: a filter that has one has both.
  const auto insert_both = [&](uint64_t a, uint64_t b) {
    if (bloom_->FindHash(a) || bloom_->FindHash(b)) {
      bloom_->InsertHash(a);
      bloom_->InsertHash(b);
    }
  };
  if (column_.physical_type() == lib::Type::FLOAT) {
    insert_both(bloom_->Hash(0.0F), bloom_->Hash(-0.0F));
  } else if (column_.physical_type() == lib::Type::DOUBLE) {
    insert_both(bloom_->Hash(0.0), bloom_->Hash(-0.0));
  } else if (column_.logical_type() != nullptr && column_.logical_type()->is_float16()) {
    const uint8_t zero[] = {0, 0};
    const uint8_t minus_zero[] = {0, 0x80};
    const lib::FLBA a(zero);
    const lib::FLBA b(minus_zero);
    insert_both(bloom_->Hash(&a, 2), bloom_->Hash(&b, 2));
  }
  ARROW_ASSIGN_OR_RAISE(auto stream, arrow::io::BufferOutputStream::Create());
  bloom_->WriteTo(stream.get());
  ARROW_ASSIGN_OR_RAISE(auto bytes, stream->Finish());
  out_.bloom_filter = bytes->ToString();
  return Status::OK();
}

// What the ColumnWriter noted, which knows nothing of nulls and levels.
void ChunkEncoder::ReadStatistics(const lib::ColumnChunkMetaDataBuilder& metadata) {
  // Only for libparquet's distrust of old writers.
  static const lib::ApplicationVersion kWriter("parquet-cpp-arrow version 26.0.0");
  const auto read = lib::ColumnChunkMetaData::Make(
      metadata.contents(), &values_column_, lib::default_reader_properties(), &kWriter);
  if (values_written_ > 0 && read->is_stats_set()) {
    out_.statistics = *read->encoded_statistics();
    out_.statistics.set_is_signed(column_.sort_order() == lib::SortOrder::SIGNED);
  }
  if (column_.sort_order() != lib::SortOrder::UNKNOWN) {
    out_.statistics.set_null_count(levels_.count - values_written_);
  }
  if (BoundsMayBeCut(column_)) CutBounds(options_.bound_bytes_max, &out_.statistics);
  if (values_written_ > 0 && !(out_.statistics.has_min && out_.statistics.has_max)) {
    out_.bounded = false;
  }
  if (column_.physical_type() == lib::Type::BYTE_ARRAY) {
    const auto sizes = read->size_statistics();
    out_.sizes.unencoded_byte_array_data_bytes =
        sizes == nullptr ? 0 : sizes->unencoded_byte_array_data_bytes.value_or(0);
  }
  for (const auto& stats : read->encoding_stats()) {
    auto& counts = stats.page_type == lib::PageType::DICTIONARY_PAGE ? out_.dictionary_encodings
                                                                     : out_.data_encodings;
    counts[stats.encoding] += stats.count;
  }
  out_.uncompressed_bytes = read->total_uncompressed_size();
  out_.value_count = levels_.count;
}

Result<EncodedChunk> ChunkEncoder::Run(lib::ArrowWriteContext* context) {
  starts_ = FindRows(levels_, slot_level_min_);
  row_count_ = starts_.levels.empty() ? levels_.count
                                      : static_cast<int64_t>(starts_.levels.size()) - 1;
  if (settings_.bloom || settings_.dictionary == DictionaryPolicy::kAuto) {
    distinct_ = EstimateDistinct(*leaf_);
  }
  dictionary_ = ChooseDictionary();
  const std::vector<int64_t> own_ends =
      settings_.page_ends.empty() ? EndsBySize() : std::vector<int64_t>();
  const auto ends = settings_.page_ends.empty() ? std::span<const int64_t>(own_ends)
                                                : settings_.page_ends;
  if (column_.max_repetition_level() > 0) {
    out_.sizes.repetition_level_histogram.resize(column_.max_repetition_level() + 1U);
  }
  if (column_.max_definition_level() > 0) {
    out_.sizes.definition_level_histogram.resize(column_.max_definition_level() + 1U);
  }
  if (settings_.bloom) MakeBloomFilter();

  const auto properties = Properties(ends);
  const auto metadata = lib::ColumnChunkMetaDataBuilder::Make(properties, &values_column_);
  const auto column_index = lib::ColumnIndexBuilder::Make(&column_);
  // Compressed values seldom take more than half; growing a stream copies it.
  const int64_t bytes_expected = 4096 + sizes_.BytesOf(0, leaf_->length()) / 2;
  ARROW_ASSIGN_OR_RAISE(auto stream,
                        arrow::io::BufferOutputStream::Create(bytes_expected, settings_.pool));
  auto pages = lib::PageWriter::Open(
      stream, LibraryCodec(options_.codec), metadata.get(), -1, -1, settings_.pool,
      /*buffered_row_group=*/false, nullptr, nullptr, /*page_write_checksum_enabled=*/true,
      column_index.get(), nullptr,
      lib::CodecOptions(LibraryLevel(options_.codec, options_.codec_level)));
  auto owned_sink = std::make_unique<PageSink>(std::move(pages), stream.get(), settings_,
                                               BoundsMayBeCut(column_), &out_);
  PageSink* sink = owned_sink.get();
  const auto writer = lib::ColumnWriter::Make(metadata.get(), std::move(owned_sink),
                                              properties.get(), bloom_.get());
  int64_t begin = 0;
  for (const int64_t end : ends) {
    const RowRange rows{begin, end};
    begin = end;
    PageHead head = HeadOf(rows);
    const int64_t count = head.values;
    sink->Expect(std::move(head));
    if (count == 0) continue;
    values_written_ += count;
    ARROW_ASSIGN_OR_RAISE(auto values, ValuesOf(rows, count));
    if (HasNan(*values)) out_.bounded = false;
    ARROW_RETURN_NOT_OK(
        writer->WriteArrow(nullptr, nullptr, count, *values, context, /*nullable=*/false));
  }
  writer->Close();
  ReadStatistics(*metadata);
  if (bloom_ != nullptr) ARROW_RETURN_NOT_OK(WriteBloomFilter());
  ARROW_ASSIGN_OR_RAISE(auto index_stream, arrow::io::BufferOutputStream::Create());
  column_index->WriteTo(index_stream.get());
  ARROW_ASSIGN_OR_RAISE(auto index_bytes, index_stream->Finish());
  out_.column_index = index_bytes->ToString();
  ARROW_ASSIGN_OR_RAISE(out_.bytes, stream->Finish());
  return std::move(out_);
}

}  // namespace

Result<EncodedChunk> EncodeChunk(const lib::ColumnDescriptor& column, const LeafLevels& levels,
                                 const std::shared_ptr<arrow::Array>& leaf,
                                 const ChunkSettings& settings, lib::ArrowWriteContext* context) {
  ARROW_ASSIGN_OR_RAISE(auto values, WithoutDictionary(leaf));
  return ChunkEncoder(column, levels, std::move(values), settings).Run(context);
}

}  // namespace grebe::pq

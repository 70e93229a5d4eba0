// Writes one Parquet file whose pages end where the caller says: the output stage of a rewrite.
//
// Every type and nesting that Arrow and Parquet share is written, with field ids, key-value
// metadata and the Arrow schema. INT96 timestamps come out as INT64 nanoseconds (Arrow has no other
// form for them), decimals of up to 18 digits as integers, lists in the format's three-level form
// with the child `element`; annotations that Arrow has no type for (ENUM, BSON) are dropped.
// Statistics, ColumnIndex, OffsetIndex and page checksums are always written; bounds of long
// strings are cut short and never wrong, and floating-point columns that hold a NaN have none.
// Equal rows, calls and options give equal bytes, whatever the number of threads.
//
//   ARROW_ASSIGN_OR_RAISE(auto writer, FileWriter::Open(sink, schema, key_values, options));
//   ARROW_RETURN_NOT_OK(writer->WriteRowGroup(*rows));   // as often as there are row groups
//   ARROW_ASSIGN_OR_RAISE(WrittenFile file, writer->Finish());
//
// (Not named file_writer.h: libparquet has a header of that name and path.)
#pragma once

#include <arrow/io/interfaces.h>
#include <arrow/table.h>
#include <arrow/util/key_value_metadata.h>

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "parquet/file_schema.h"
#include "parquet/page_map.h"

namespace grebe::pq {

// The format's Thrift numbers.
enum class Codec : int32_t { kNone = 0, kSnappy = 1, kGzip = 2, kBrotli = 4, kZstd = 6, kLz4 = 7 };

enum class DictionaryPolicy {
  kOff,
  kOn,    // until dictionary_bytes_max; the pages after that are plain
  kAuto,  // where the rows at hand repeat enough to gain by it
};

struct SortingColumn {
  std::string path;          // a leaf
  bool descending = false;
  bool nulls_first = false;
};

struct WriteOptions {
  // What a reader may rely on.

  // The order the caller writes the rows in, noted in the footer. It is not checked.
  std::vector<SortingColumn> sorting_columns;
  // Leaves that get a Bloom filter, and how often it may say yes wrongly. Sized by the distinct
  // values of the row group at hand.
  std::vector<std::string> bloom_columns;
  double bloom_false_share_max = 0.01;

  // What it costs. A page ends before either limit is passed, unless the caller gives the ends;
  // one row is never divided.

  Codec codec = Codec::kZstd;
  int codec_level = 1;                      // zstd, gzip, brotli. Higher: smaller and slower
  // Encoded bytes of a page before compression. Small: a lookup reads less; large: a scan
  // decodes faster and the file is smaller.
  int64_t page_bytes_max = 1 << 20;
  int64_t page_rows_max = 20000;
  DictionaryPolicy dictionary = DictionaryPolicy::kAuto;
  std::map<std::string, DictionaryPolicy> dictionary_of;   // by leaf, in place of `dictionary`
  int64_t dictionary_bytes_max = 1 << 20;   // of one column chunk
  // kAuto takes no dictionary where more than this share of a chunk's values is distinct.
  double dictionary_distinct_share_max = 0.5;
  // Bounds longer than this are cut: down for the least, up for the greatest value.
  int64_t bound_bytes_max = 64;
  // Columns of a row group encoded at once. 1: on the caller's thread.
  int threads = 1;
  arrow::MemoryPool* pool = nullptr;        // null: the default pool
};

struct WrittenFile {
  int64_t size_bytes = 0;
  int64_t row_count = 0;
  std::shared_ptr<const Schema> schema;     // as Footer::Read would give it
  FilePages pages;                          // as FindPages would give them
  std::string footer_bytes;                 // for Footer::Parse
};

// Threads: one at a time.
class FileWriter {
 public:
  // Writes nothing but the magic bytes. The sink may hold bytes already; offsets count from here.
  // It is not closed. key_values: the file's; null: the schema's own. The Arrow schema is added.
  // Errors: InvalidArgument (a column of the options that is not there or cannot have a Bloom
  // filter; a level the codec does not have), Unsupported (a type that Parquet does not have).
  static Result<std::unique_ptr<FileWriter>> Open(
      std::shared_ptr<arrow::io::OutputStream> sink, const std::shared_ptr<arrow::Schema>& schema,
      std::shared_ptr<const arrow::KeyValueMetadata> key_values, const WriteOptions& options);
  ~FileWriter();

  // Writes the rows as one row group; no rows, no row group. page_ends: the rows, counted from the
  // row group's first, at which every page of every column ends; ascending, the last one is the
  // row count. Empty: pages end by the options' limits, each column by its own size.
  // Memory: the row group once more, encoded. Errors: InvalidArgument (another schema, bad
  // page_ends), LimitExceeded (a page above 2 GiB), the sink's. After an error the file is lost.
  Status WriteRowGroup(const arrow::Table& rows, std::span<const int64_t> page_ends = {});

  // So far, from the file's first byte.
  int64_t bytes_written() const;

  // Writes indexes and footer. Call once.
  Result<WrittenFile> Finish();

 private:
  FileWriter();
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Ends for WriteRowGroup that all columns share: pages are cut only at `boundaries` (ascending
// rows, such as where a key ends; empty: anywhere), the largest column of a page stays within
// page_bytes_max (as plain values) and page_rows_max where the boundaries allow it.
// Cost: about a nanosecond a row and column.
Result<std::vector<int64_t>> SharedPageEnds(const arrow::Table& rows,
                                            std::span<const int64_t> boundaries,
                                            const WriteOptions& options);

}  // namespace grebe::pq

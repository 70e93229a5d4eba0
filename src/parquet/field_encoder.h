// From one top-level Arrow column to the encoded chunks of its leaves. For this room only.
//
// The levels of nested types are libparquet's work: its Arrow writer is given a row group whose
// column writers, in place of writing, hand levels and values to EncodeChunk.
#pragma once

#include <arrow/chunked_array.h>
#include <parquet/properties.h>
#include <parquet/schema.h>

#include <memory>
#include <span>
#include <vector>

#include "base/status.h"
#include "parquet/chunk_encoder.h"
#include "parquet/write_file.h"

namespace grebe::pq {

// What the encoders of one file share.
struct EncodePlan {
  WriteOptions options;
  arrow::MemoryPool* pool = nullptr;
  std::shared_ptr<::parquet::schema::GroupNode> root;
  std::shared_ptr<arrow::Schema> arrow_schema;
  std::vector<DictionaryPolicy> dictionary;   // by leaf
  std::vector<bool> bloom;                    // by leaf
};

// Threads: one at a time; several may share a plan.
class FieldEncoder {
 public:
  // The plan must outlive it. Errors: as PageCompressor::Make.
  static Result<std::unique_ptr<FieldEncoder>> Make(const EncodePlan& plan);
  ~FieldEncoder();

  // Encodes the field whose first leaf is `leaf`; the column has rows. Gives one chunk a leaf.
  // Errors: as EncodeChunk, and LimitExceeded where pieces of the column do not fit one array.
  Result<std::vector<EncodedChunk>> Encode(const arrow::ChunkedArray& column, int leaf,
                                           std::span<const int64_t> page_ends);

 private:
  FieldEncoder();
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace grebe::pq

// What Schema holds, for this room only: libparquet's descriptor and the Arrow manifest over it.
#pragma once

#include <parquet/arrow/schema.h>
#include <parquet/metadata.h>
#include <parquet/properties.h>
#include <parquet/schema.h>

#include <memory>
#include <string>
#include <vector>

#include "parquet/file_schema.h"

namespace grebe::pq {

// The properties under which Arrow types are derived, everywhere: libparquet's defaults, with
// Arrow's extension types (UUID, JSON, variant) as pyarrow has them by default.
::parquet::ArrowReaderProperties ArrowProperties();

// The properties under which footers are parsed.
::parquet::ReaderProperties FooterProperties();

struct Schema::Impl {
  std::string bytes;                                    // what Serialize returns
  // Holds no row groups; owns the descriptor.
  std::shared_ptr<::parquet::FileMetaData> metadata;
  const ::parquet::SchemaDescriptor* descriptor = nullptr;
  ::parquet::arrow::SchemaManifest manifest;            // of the descriptor
  std::shared_ptr<arrow::Schema> arrow_schema;
  std::vector<std::string> leaf_paths;
  std::vector<int> leaf_roots;                          // leaf -> top-level field
};

// The schema of a file, from its footer. Equal to Open(its Serialize()).
Result<std::shared_ptr<const Schema>> SchemaOf(const ::parquet::FileMetaData& metadata);

}  // namespace grebe::pq

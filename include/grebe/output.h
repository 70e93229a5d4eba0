// Writing rows for people and programs, and describing files.
#pragma once

#include <arrow/io/interfaces.h>
#include <arrow/record_batch.h>
#include <arrow/result.h>

#include <memory>
#include <string>
#include <string_view>

#include "grebe/connect.h"

namespace grebe {

enum class RowFormat { kTable, kJson, kJsonLines, kCsv, kArrow, kParquet };

// "table", "json", "jsonl", "csv", "arrow", "parquet". Errors: InvalidArgument.
arrow::Result<RowFormat> ParseRowFormat(std::string_view name);

// Writes the rows. Text forms: times as ISO 8601, decimals as exact digits in quotes (JSON),
// binary as base64, NaN and infinities as strings (JSON). Arrow: an IPC stream. Errors: the sink's.
arrow::Status WriteRows(const arrow::RecordBatch& rows, RowFormat format,
                        arrow::io::OutputStream* sink);

// The same piece by piece, in memory of one batch. The widths of a table's columns are those of the
// first batch. Errors: the sink's; Unsupported for types that the format does not have.
class RowWriter {
 public:
  // The sink must outlive the writer.
  static arrow::Result<std::unique_ptr<RowWriter>> Make(
      const std::shared_ptr<arrow::Schema>& schema, RowFormat format,
      arrow::io::OutputStream* sink);
  virtual ~RowWriter() = default;
  // rows: of the schema.
  virtual arrow::Status Write(const arrow::RecordBatch& rows) = 0;
  virtual arrow::Status Finish() = 0;
};

// One value as JSON text.
arrow::Status AppendJson(const arrow::Array& array, int64_t row, std::string* out);

// What a Parquet file holds, as JSON or text for people: schema, row groups, chunks, and with
// `pages` every page's place and rows. Errors: Corrupt, Unsupported, NotFound.
arrow::Result<std::string> InspectFile(const std::string& uri, bool pages, bool json,
                                       const ConnectOptions& connect = {});

}  // namespace grebe

#include "parquet/write_table.h"

#include <arrow/table.h>

#include "parquet/write_file.h"

namespace grebe::pq {

Status WriteTable(const arrow::RecordBatch& rows, arrow::io::OutputStream* sink) {
  const std::shared_ptr<arrow::io::OutputStream> borrowed(sink, [](auto*) {});
  ARROW_ASSIGN_OR_RAISE(auto writer,
                        FileWriter::Open(borrowed, rows.schema(), nullptr, WriteOptions{}));
  const auto table = arrow::Table::Make(rows.schema(), rows.columns(), rows.num_rows());
  ARROW_RETURN_NOT_OK(writer->WriteRowGroup(*table));
  return writer->Finish().status();
}

}  // namespace grebe::pq

#include "engine/covering_schema.h"

#include <arrow/buffer.h>
#include <arrow/io/memory.h>
#include <arrow/ipc/dictionary.h>
#include <arrow/ipc/reader.h>
#include <arrow/ipc/writer.h>

namespace grebe::engine {

Result<std::string> SerializeSchema(const arrow::Schema& schema) {
  ARROW_ASSIGN_OR_RAISE(auto buffer, arrow::ipc::SerializeSchema(schema));
  return buffer->ToString();
}

Result<std::shared_ptr<arrow::Schema>> ParseSchema(const std::string& bytes) {
  arrow::io::BufferReader reader(std::make_shared<arrow::Buffer>(bytes));
  arrow::ipc::DictionaryMemo memo;
  auto schema = arrow::ipc::ReadSchema(&reader, &memo);
  if (!schema.ok()) return Corrupt("bad covering schema", "reason", schema.status().message());
  return schema;
}

}  // namespace grebe::engine

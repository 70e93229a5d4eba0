#include "lookup/key_check.h"

#include "base/column_by_path.h"

namespace grebe::lookup {

Status EncodeRowKeys(const key::KeyCodec& codec, const std::vector<std::string>& key_columns,
                     const arrow::RecordBatch& rows, key::EncodedKeys* keys,
                     std::vector<bool>* absent) {
  arrow::ArrayVector columns;
  for (const std::string& name : key_columns) {
    ARROW_ASSIGN_OR_RAISE(auto column, ColumnByPath(rows, name));
    columns.push_back(std::move(column));
  }
  return codec.EncodeQuery(columns, keys, absent);
}

}  // namespace grebe::lookup

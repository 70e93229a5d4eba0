#include "base/column_by_path.h"

#include <arrow/array/array_nested.h>

#include <algorithm>
#include <string_view>

namespace grebe {
namespace {

// Follows the rest of a dotted path into a struct column.
Result<std::shared_ptr<arrow::Array>> Descend(std::shared_ptr<arrow::Array> array,
                                              std::string_view rest) {
  while (!rest.empty()) {
    if (array->type_id() != arrow::Type::STRUCT) {
      return InvalidArgument("not a struct", "at", rest);
    }
    const auto& type = *array->type();
    int best = -1;
    for (int i = 0; i < type.num_fields(); ++i) {
      const std::string& name = type.field(i)->name();
      const bool matches =
          rest == name || (rest.size() > name.size() && rest.starts_with(name) &&
                           rest[name.size()] == '.');
      if (matches && (best < 0 || name.size() > type.field(best)->name().size())) best = i;
    }
    if (best < 0) return InvalidArgument("no such column", "at", rest);
    rest.remove_prefix(std::min(rest.size(), type.field(best)->name().size() + 1));
    ARROW_ASSIGN_OR_RAISE(
        array, static_cast<const arrow::StructArray&>(*array).GetFlattenedField(best));
  }
  return array;
}

}  // namespace

Result<std::shared_ptr<arrow::Array>> ColumnByPath(const arrow::RecordBatch& rows,
                                                   const std::string& path) {
  for (size_t end = path.size(); end != std::string::npos && end > 0;
       end = path.rfind('.', end - 1)) {
    const int column = rows.schema()->GetFieldIndex(path.substr(0, end));
    if (column < 0) continue;
    const std::string_view rest =
        end == path.size() ? std::string_view() : std::string_view(path).substr(end + 1);
    return Descend(rows.column(column), rest);
  }
  return InvalidArgument("no such column", "column", path);
}

}  // namespace grebe

#include "layout/leaf_column.h"

#include <arrow/array/util.h>
#include <arrow/record_batch.h>
#include <arrow/type.h>

namespace grebe::layout {
namespace {

// The place of a dotted path in a schema; a top-level name with dots wins.
Result<arrow::FieldPath> PathOf(const arrow::Schema& schema, const std::string& path) {
  std::vector<int> indices;
  const arrow::FieldVector* fields = &schema.fields();
  std::string_view rest = path;
  while (true) {
    int found = -1;
    size_t used = 0;
    for (size_t i = 0; i < fields->size(); ++i) {
      const std::string& name = (*fields)[i]->name();
      const bool whole = rest == name;
      const bool leads = rest.size() > name.size() && rest.starts_with(name) &&
                         rest[name.size()] == '.';
      if ((whole || leads) && (found < 0 || name.size() > used)) {
        found = static_cast<int>(i);
        used = name.size();
      }
    }
    if (found < 0) return InvalidArgument("no such column", "column", path);
    indices.push_back(found);
    if (rest.size() == used) return arrow::FieldPath(std::move(indices));
    rest.remove_prefix(used + 1);
    fields = &(*fields)[static_cast<size_t>(found)]->type()->fields();
  }
}

}  // namespace

Status ScanViewColumns(
    store::Store& store, const TableView& view, const FileView& file,
    const std::vector<size_t>& columns, const StopToken* stop,
    const std::function<Status(const ViewArrays&, int64_t first_row, int64_t rows)>& on_batch) {
  std::vector<int> leaves;
  for (size_t column : columns) {
    if (file.leaves[column] >= 0) leaves.push_back(file.leaves[column]);
  }
  const auto add_constants = [&](int64_t rows, ViewArrays* arrays) -> Status {
    for (size_t column : columns) {
      if (file.leaves[column] >= 0) continue;
      ARROW_ASSIGN_OR_RAISE((*arrays)[column],
                            arrow::MakeArrayFromScalar(*file.constants[column], rows));
    }
    return Status::OK();
  };
  if (leaves.empty()) {
    int64_t first_row = 0;
    for (const GroupView& group : file.groups) {
      ViewArrays arrays;
      ARROW_RETURN_NOT_OK(add_constants(group.rows, &arrays));
      ARROW_RETURN_NOT_OK(on_batch(arrays, first_row, group.rows));
      first_row += group.rows;
    }
    return Status::OK();
  }
  pq::ScanOptions options;
  options.stop = stop;
  return pq::ScanColumns(
      store, *file.footer, leaves, options,
      [&](const std::shared_ptr<arrow::RecordBatch>& batch, RowIndex first_row) -> Status {
        ViewArrays arrays;
        for (size_t column : columns) {
          if (file.leaves[column] < 0) continue;
          ARROW_ASSIGN_OR_RAISE(const arrow::FieldPath path,
                                PathOf(*batch->schema(), view.columns[column].path));
          ARROW_ASSIGN_OR_RAISE(arrays[column], path.GetFlattened(*batch));
        }
        ARROW_RETURN_NOT_OK(add_constants(batch->num_rows(), &arrays));
        return on_batch(arrays, first_row.value, batch->num_rows());
      });
}

}  // namespace grebe::layout

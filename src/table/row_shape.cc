#include "table/row_shape.h"

#include <arrow/array/builder_base.h>
#include <arrow/array/util.h>
#include <arrow/builder.h>
#include <arrow/compute/cast.h>
#include <arrow/scalar.h>

#include <algorithm>
#include <unordered_set>

namespace grebe::table {
namespace {

using Schemas = RowShape::Schemas;

// The columns to ask of one schema: those of `columns` that it has.
Result<std::vector<std::string>> ColumnsPresent(const pq::Schema& schema,
                                                const std::vector<std::string>& columns) {
  std::vector<std::string> present;
  for (const std::string& column : columns) {
    auto projection = schema.Project(std::span(&column, 1));
    if (projection.ok()) {
      present.push_back(column);
    } else if (!IsKind(projection.status(), ErrorKind::kInvalidArgument)) {
      return projection.status();
    }
  }
  return present;
}

// The top-level field a dotted path belongs to: the longest field name that is the path, or a
// prefix of it up to a dot.
std::string TopLevelName(const arrow::Schema& schema, const std::string& column) {
  std::string best = column;
  size_t best_size = 0;
  for (const auto& field : schema.fields()) {
    const std::string& name = field->name();
    const bool matches =
        column == name || (column.size() > name.size() && column.starts_with(name) &&
                           column[name.size()] == '.');
    if (matches && (best_size == 0 || name.size() > best_size)) {
      best = name;
      best_size = name.size();
    }
  }
  return best;
}

Result<std::shared_ptr<arrow::Schema>> UnifyProjected(
    const std::vector<std::shared_ptr<arrow::Schema>>& projected) {
  bool all_equal = true;
  for (const auto& schema : projected) all_equal &= schema->Equals(*projected[0], false);
  if (all_equal) return projected[0];
  auto options = arrow::Field::MergeOptions::Permissive();
  auto unified = arrow::UnifySchemas(projected, options);
  if (!unified.ok()) {
    return InvalidArgument("the files' types of a column cannot be reconciled", "reason",
                           unified.status().message());
  }
  return unified;
}

// All top-level file columns, less those a partition column hides. Empty: no need to name them.
std::vector<std::string> UnhiddenColumns(const Schemas& schemas, const arrow::Schema& partitions) {
  std::vector<std::string> names;
  std::unordered_set<std::string> seen;
  bool hidden = false;
  for (const auto& schema : schemas) {
    for (const auto& field : schema->arrow_schema()->fields()) {
      if (partitions.GetFieldIndex(field->name()) >= 0) {
        hidden = true;
      } else if (seen.insert(field->name()).second) {
        names.push_back(field->name());
      }
    }
  }
  if (!hidden) names.clear();
  return names;
}

// A column of one value a file, repeated for the file's rows.
Result<std::shared_ptr<arrow::Array>> PartitionColumn(
    const arrow::Field& field, const std::vector<std::pair<std::string_view, int64_t>>& paths) {
  ARROW_ASSIGN_OR_RAISE(auto builder, arrow::MakeBuilder(field.type()));
  for (const auto& [path, row_count] : paths) {
    ARROW_ASSIGN_OR_RAISE(auto scalar, PartitionScalar(field, path));
    ARROW_RETURN_NOT_OK(builder->AppendScalar(*scalar, row_count));
  }
  return builder->Finish();
}

}  // namespace

Result<std::shared_ptr<const RowShape>> RowShape::Make(const Schemas& schemas,
                                                       const PartitionScheme& partitions,
                                                       const std::vector<std::string>& columns) {
  auto shape = std::make_shared<RowShape>();
  std::vector<std::string> file_columns;
  for (const std::string& column : columns) {
    if (partitions.schema->GetFieldIndex(column) < 0) file_columns.push_back(column);
  }
  if (columns.empty()) file_columns = UnhiddenColumns(schemas, *partitions.schema);
  const bool all_file_columns = columns.empty() && file_columns.empty();

  std::vector<std::shared_ptr<arrow::Schema>> projected;
  std::unordered_set<std::string> found;
  for (const auto& schema : schemas) {
    if (shape->per_schema_.contains(schema.get())) continue;
    PerSchema per_schema;
    std::vector<std::string> present = file_columns;
    if (schemas.size() > 1) {
      ARROW_ASSIGN_OR_RAISE(present, ColumnsPresent(*schema, file_columns));
    }
    found.insert(present.begin(), present.end());
    if (all_file_columns || !present.empty()) {
      ARROW_ASSIGN_OR_RAISE(per_schema.projection, schema->Project(present));
    } else {
      per_schema.projection.arrow_schema = arrow::schema({});
    }
    projected.push_back(per_schema.projection.arrow_schema);
    shape->per_schema_.emplace(schema.get(), std::move(per_schema));
  }
  for (const std::string& column : file_columns) {
    if (!found.contains(column) && !schemas.empty()) {
      return InvalidArgument("no file has this column", "column", column);
    }
  }

  std::shared_ptr<arrow::Schema> unified = arrow::schema({});
  if (!projected.empty()) {
    ARROW_ASSIGN_OR_RAISE(unified, UnifyProjected(projected));
  }
  shape->PlaceFields(*unified, *partitions.schema, columns);
  shape->FindSources(*unified, /*by_position=*/columns.empty());
  return shape;
}

void RowShape::PlaceFields(const arrow::Schema& unified, const arrow::Schema& partitions,
                           const std::vector<std::string>& columns) {
  arrow::FieldVector fields;
  std::unordered_set<std::string> placed;
  const auto place = [&](const std::shared_ptr<arrow::Field>& field, bool is_partition) {
    fields.push_back(field);
    is_partition_.push_back(is_partition);
  };
  if (columns.empty()) {
    for (const auto& field : unified.fields()) place(field, false);
    for (const auto& field : partitions.fields()) place(field, true);
  }
  for (const std::string& column : columns) {
    const int partition = partitions.GetFieldIndex(column);
    const std::string name = partition >= 0 ? column : TopLevelName(unified, column);
    if (!placed.insert(name).second) continue;
    place(partition >= 0 ? partitions.field(partition) : unified.GetFieldByName(name),
          partition >= 0);
  }
  schema_ = arrow::schema(std::move(fields));
}

void RowShape::FindSources(const arrow::Schema& unified, bool by_position) {
  for (auto& [key, per_schema] : per_schema_) {
    const arrow::Schema& own = *per_schema.projection.arrow_schema;
    // By position where that is safe: a file may have two columns of one name.
    const bool same = by_position && own.Equals(unified, false);
    for (int i = 0; i < schema_->num_fields(); ++i) {
      if (is_partition_[i]) {
        per_schema.source.push_back(-1);
      } else {
        per_schema.source.push_back(same ? i : own.GetFieldIndex(schema_->field(i)->name()));
      }
    }
  }
}

Result<std::shared_ptr<arrow::RecordBatch>> RowShape::Conform(
    const pq::Schema* schema, const std::shared_ptr<arrow::RecordBatch>& rows,
    const std::vector<std::pair<std::string_view, int64_t>>& paths) const {
  const PerSchema& per_schema = per_schema_.at(schema);
  arrow::ArrayVector columns;
  for (int i = 0; i < schema_->num_fields(); ++i) {
    const auto& field = *schema_->field(i);
    const int source = per_schema.source[i];
    if (is_partition_[i]) {
      ARROW_ASSIGN_OR_RAISE(auto column, PartitionColumn(field, paths));
      columns.push_back(std::move(column));
    } else if (source < 0) {
      ARROW_ASSIGN_OR_RAISE(auto column, arrow::MakeArrayOfNull(field.type(), rows->num_rows()));
      columns.push_back(std::move(column));
    } else if (rows->column(source)->type()->Equals(*field.type())) {
      columns.push_back(rows->column(source));
    } else {
      ARROW_ASSIGN_OR_RAISE(auto column, arrow::compute::Cast(*rows->column(source), field.type()));
      columns.push_back(std::move(column));
    }
  }
  return arrow::RecordBatch::Make(schema_, rows->num_rows(), std::move(columns));
}

}  // namespace grebe::table

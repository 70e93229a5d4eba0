#include "layout/cogroup.h"

#include <arrow/array.h>
#include <arrow/array/concatenate.h>
#include <arrow/array/util.h>

#include <charconv>
#include <limits>

#include "layout/gather.h"
#include "layout/memory_share.h"

namespace grebe::layout {
namespace {

// Places of the key and of all other columns.
Result<int> KeyPlace(const arrow::Schema& schema, const std::string& key) {
  const auto places = schema.GetAllFieldIndices(key);
  if (places.size() != 1) {
    return InvalidArgument("a cogroup needs a top-level column of this name", "column", key);
  }
  return places[0];
}

Result<std::shared_ptr<arrow::Array>> OneArray(const arrow::ChunkedArray& column) {
  if (column.num_chunks() == 1) return column.chunk(0);
  if (column.num_chunks() == 0) return arrow::MakeArrayOfNull(column.type(), 0);
  return arrow::Concatenate(column.chunks(), RowPool());
}

}  // namespace

Result<std::shared_ptr<arrow::Schema>> CogroupedSchema(const std::shared_ptr<arrow::Schema>& schema,
                                                       const std::string& key) {
  ARROW_ASSIGN_OR_RAISE(const int place, KeyPlace(*schema, key));
  arrow::FieldVector members = schema->fields();
  const auto key_field = members[static_cast<size_t>(place)];
  members.erase(members.begin() + place);
  if (members.empty()) return InvalidArgument("there is nothing beside the key to group");
  if (key == kCogroupColumn) {
    return InvalidArgument("the key has the name that the list of rows gets", "column", key);
  }
  const auto item = arrow::field("item", arrow::struct_(std::move(members)), false);
  return arrow::schema({key_field, arrow::field(kCogroupColumn, arrow::list(item), false)});
}

std::string CogroupMetadata(const arrow::Schema& schema, const std::string& key) {
  return std::to_string(schema.GetFieldIndex(key));
}

Result<std::shared_ptr<arrow::Table>> Cogroup(const std::shared_ptr<arrow::Table>& rows,
                                              const std::string& key,
                                              std::span<const int64_t> key_ends,
                                              const std::shared_ptr<arrow::Schema>& schema) {
  if (rows->num_rows() > std::numeric_limits<int32_t>::max()) {
    return LimitExceeded("rows of a cogrouped row group", "rows", rows->num_rows());
  }
  ARROW_ASSIGN_OR_RAISE(const int place, KeyPlace(*rows->schema(), key));
  arrow::ArrayVector members;
  std::shared_ptr<arrow::Array> keys;
  for (int i = 0; i < rows->num_columns(); ++i) {
    ARROW_ASSIGN_OR_RAISE(auto column, OneArray(*rows->column(i)));
    if (i == place) {
      keys = std::move(column);
    } else {
      members.push_back(std::move(column));
    }
  }
  std::vector<RowRef> firsts;
  std::vector<int32_t> offsets = {0};
  for (const int64_t end : key_ends) {
    firsts.push_back({0, static_cast<uint32_t>(offsets.back())});
    offsets.push_back(static_cast<int32_t>(end));
  }
  const auto key_schema = arrow::schema({schema->field(0)});
  const auto key_rows = arrow::RecordBatch::Make(key_schema, keys->length(), {keys});
  ARROW_ASSIGN_OR_RAISE(auto key_column,
                        Gather({key_rows}, firsts, RowPool()));
  const auto& list_type = static_cast<const arrow::ListType&>(*schema->field(1)->type());
  const auto items = std::make_shared<arrow::StructArray>(list_type.value_type(), rows->num_rows(),
                                                          std::move(members));
  const auto groups = static_cast<int64_t>(firsts.size());
  const auto lists = std::make_shared<arrow::ListArray>(
      schema->field(1)->type(), groups, arrow::Buffer::FromVector(std::move(offsets)), items);
  return arrow::Table::Make(schema, {key_column->column(0), lists}, groups);
}

Result<std::shared_ptr<arrow::Schema>> UngroupedSchema(const std::shared_ptr<arrow::Schema>& schema,
                                                       const std::string& list,
                                                       const arrow::KeyValueMetadata* metadata) {
  const auto places = schema->GetAllFieldIndices(list);
  if (places.size() != 1) return InvalidArgument("no such top-level column", "column", list);
  const auto& type = *schema->field(places[0])->type();
  if (type.id() != arrow::Type::LIST ||
      static_cast<const arrow::ListType&>(type).value_type()->id() != arrow::Type::STRUCT) {
    return InvalidArgument("only a list of structs can be taken apart", "column", list, "type",
                           type.ToString());
  }
  arrow::FieldVector fields = schema->fields();
  fields.erase(fields.begin() + places[0]);
  const auto& members = static_cast<const arrow::ListType&>(type).value_type()->fields();
  int at = places[0];
  // A cogroup's file has the key, then the list: the key goes back to its old place.
  int key_place = 0;
  const auto noted = metadata == nullptr ? Result<std::string>(Status::KeyError(""))
                                         : metadata->Get(kCogroupKey);
  if (noted.ok() && fields.size() == 1) {
    const auto [end, error] =
        std::from_chars(noted->data(), noted->data() + noted->size(), key_place);
    if (error == std::errc() && key_place >= 0 &&
        key_place <= static_cast<int>(members.size())) {
      fields.insert(fields.begin(), members.begin(), members.begin() + key_place);
      fields.insert(fields.end(), members.begin() + key_place, members.end());
      return arrow::schema(std::move(fields));
    }
  }
  fields.insert(fields.begin() + at, members.begin(), members.end());
  auto out = arrow::schema(std::move(fields));
  for (const auto& member : members) {
    if (out->GetAllFieldIndices(member->name()).size() != 1) {
      return InvalidArgument("a column has the name of a member of the list", "column",
                             member->name());
    }
  }
  return out;
}

Result<std::shared_ptr<arrow::RecordBatch>> Ungroup(const arrow::RecordBatch& rows,
                                                    int64_t first_row, const std::string& list,
                                                    const std::shared_ptr<arrow::Schema>& schema) {
  const int place = rows.schema()->GetFieldIndex(list);
  const auto& lists = static_cast<const arrow::ListArray&>(*rows.column(place));
  std::vector<RowRef> parents, items;
  for (int64_t row = 0; row < lists.length(); ++row) {
    if (lists.IsNull(row) || lists.value_length(row) == 0) {
      return InvalidArgument(
          "a row's list is empty or null: taking it apart would lose the row", "column", list,
          "row", first_row + row);
    }
    for (int32_t item = lists.value_offset(row); item < lists.value_offset(row + 1); ++item) {
      parents.push_back({0, static_cast<uint32_t>(row)});
      items.push_back({0, static_cast<uint32_t>(item)});
    }
  }
  const auto& structs = static_cast<const arrow::StructArray&>(*lists.values());
  arrow::ArrayVector members;
  for (int i = 0; i < structs.num_fields(); ++i) {
    ARROW_ASSIGN_OR_RAISE(auto member, structs.GetFlattenedField(i));
    members.push_back(std::move(member));
  }
  const auto member_rows = arrow::RecordBatch::Make(
      arrow::schema(structs.type()->fields()), structs.length(), std::move(members));
  ARROW_ASSIGN_OR_RAISE(auto inner, Gather({member_rows}, items, RowPool()));
  const auto outer_rows =
      arrow::RecordBatch::Make(arrow::schema(rows.schema()->fields()), rows.num_rows(),
                               rows.columns());
  ARROW_ASSIGN_OR_RAISE(auto others, outer_rows->RemoveColumn(place));
  std::shared_ptr<arrow::RecordBatch> outer;
  if (others->num_columns() > 0) {
    ARROW_ASSIGN_OR_RAISE(outer, Gather({others}, parents, RowPool()));
  }
  arrow::ArrayVector columns;
  for (const auto& field : schema->fields()) {
    const int own = inner->schema()->GetFieldIndex(field->name());
    columns.push_back(own >= 0 ? inner->column(own) : outer->GetColumnByName(field->name()));
  }
  return arrow::RecordBatch::Make(schema, static_cast<int64_t>(items.size()), std::move(columns));
}

}  // namespace grebe::layout

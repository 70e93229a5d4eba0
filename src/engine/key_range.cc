#include "engine/key_range.h"

#include <algorithm>
#include <map>

namespace grebe {
namespace {

using Scalars = std::vector<std::shared_ptr<arrow::Scalar>>;

std::string Joined(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "" : ",") + name;
  return out;
}

// One row of one column.
Result<std::shared_ptr<arrow::RecordBatch>> OneValue(const arrow::Field& field,
                                                     const std::string& text) {
  auto value = key::ParseValue(*field.type(), text);
  if (!value.ok()) return AddContext(value.status(), "column", field.name());
  const Scalars values = {*value};
  ARROW_ASSIGN_OR_RAISE(auto array, key::MakeQueryColumn(*field.type(), values));
  return arrow::RecordBatch::Make(arrow::schema({arrow::field(field.name(), array->type())}), 1,
                                  arrow::ArrayVector{array});
}

// What the conditions say of one column.
struct ColumnConditions {
  const KeyCondition* equal = nullptr;
  const KeyCondition* lower = nullptr;
  const KeyCondition* upper = nullptr;
  bool null = false;
  bool bounded() const { return lower != nullptr || upper != nullptr; }
  bool fixed() const { return equal != nullptr || null; }
};

Status Add(const KeyCondition& condition, ColumnConditions* column) {
  const bool is_lower = condition.comparison == Comparison::kGreater ||
                        condition.comparison == Comparison::kGreaterOrEqual;
  const KeyCondition*& slot = condition.comparison == Comparison::kEqual ? column->equal
                              : is_lower                                 ? column->lower
                                                                         : column->upper;
  if (slot != nullptr || (column->fixed() && condition.comparison != Comparison::kEqual) ||
      (condition.comparison == Comparison::kEqual && (column->bounded() || column->null))) {
    return InvalidArgument("conditions of one column that do not go together", "column",
                           condition.column);
  }
  slot = &condition;
  return Status::OK();
}

}  // namespace

namespace engine {

Result<key::OrderedRange> OrderedRangeOf(const std::vector<std::string>& names,
                                         const std::vector<key::KeyType>& types,
                                         const KeyRange& range) {
  key::RangeQuery query;
  if (range.equal != nullptr) {
    const auto count = static_cast<size_t>(range.equal->num_columns());
    for (size_t i = 0; i < count; ++i) {
      auto column = i < names.size() ? range.equal->GetColumnByName(names[i]) : nullptr;
      if (column == nullptr || range.equal->num_rows() != 1) {
        return InvalidArgument("a range fixes the first key columns, each to one value", "key",
                               Joined(names));
      }
      query.equal.push_back(std::move(column));
    }
  }
  const auto bound = [&](const std::shared_ptr<arrow::RecordBatch>& batch,
                         bool inclusive) -> Result<std::optional<key::RangeBound>> {
    if (batch == nullptr) return std::nullopt;
    const size_t next = query.equal.size();
    auto column = next < names.size() ? batch->GetColumnByName(names[next]) : nullptr;
    if (column == nullptr || batch->num_columns() != 1) {
      return InvalidArgument("a range bounds the key column after those it fixes", "key",
                             Joined(names));
    }
    return key::RangeBound{std::move(column), inclusive};
  };
  ARROW_ASSIGN_OR_RAISE(query.lower, bound(range.lower, range.lower_inclusive));
  ARROW_ASSIGN_OR_RAISE(query.upper, bound(range.upper, range.upper_inclusive));
  return key::OrderRange(types, query);
}

}  // namespace engine

Result<KeyRange> Index::ParseRange(const std::vector<KeyCondition>& conditions,
                                   const std::vector<std::string>& null_columns) const {
  const arrow::Schema& key = *key_schema();
  std::map<std::string, ColumnConditions> columns;
  for (const std::string& name : null_columns) columns[name].null = true;
  for (const KeyCondition& condition : conditions) {
    ARROW_RETURN_NOT_OK(Add(condition, &columns[condition.column]));
  }
  KeyRange range;
  size_t used = 0;
  int next = 0;
  arrow::FieldVector fields;
  arrow::ArrayVector values;
  for (; next < key.num_fields(); ++next) {
    const auto found = columns.find(key.field(next)->name());
    if (found == columns.end() || !found->second.fixed()) break;
    ++used;
    const arrow::Field& field = *key.field(next);
    if (found->second.null) {
      ARROW_ASSIGN_OR_RAISE(auto array, key::MakeQueryColumn(*field.type(), Scalars(1)));
      fields.push_back(arrow::field(field.name(), array->type()));
      values.push_back(std::move(array));
    } else {
      ARROW_ASSIGN_OR_RAISE(auto one, OneValue(field, found->second.equal->value));
      fields.push_back(one->schema()->field(0));
      values.push_back(one->column(0));
    }
  }
  if (!values.empty()) range.equal = arrow::RecordBatch::Make(arrow::schema(fields), 1, values);
  if (next < key.num_fields()) {
    const auto found = columns.find(key.field(next)->name());
    if (found != columns.end()) {
      ++used;
      const auto& [equal, lower, upper, null] = found->second;
      if (lower != nullptr) {
        ARROW_ASSIGN_OR_RAISE(range.lower, OneValue(*key.field(next), lower->value));
        range.lower_inclusive = lower->comparison == Comparison::kGreaterOrEqual;
      }
      if (upper != nullptr) {
        ARROW_ASSIGN_OR_RAISE(range.upper, OneValue(*key.field(next), upper->value));
        range.upper_inclusive = upper->comparison == Comparison::kLessOrEqual;
      }
    }
  }
  if (used == columns.size()) return range;
  return InvalidArgument(
      "no stretch of the key order: fix the first key columns with =, then bound the next one",
      "key", Joined(key.field_names()));
}

}  // namespace grebe

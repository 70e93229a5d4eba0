// Predicates as text. Whatever the bytes are, the answer is a predicate or InvalidArgument; one
// that parses binds to columns of many types or is refused with InvalidArgument; one that binds can
// be judged by bounds and filters rows: of nulls, and of the values that it names itself, where
// bounds must not say another thing than the rows.
#include <arrow/array/util.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "scan/predicate.h"
#include "scan/predicate_value.h"

namespace {

using grebe::scan::BoundNode;
using grebe::scan::BoundPredicate;
using grebe::scan::ColumnBounds;
using grebe::scan::Predicate;
using grebe::scan::PredicateColumn;

const std::vector<std::shared_ptr<arrow::DataType>>& Types() {
  static const std::vector<std::shared_ptr<arrow::DataType>> types = {
      arrow::int8(), arrow::uint64(), arrow::int32(), arrow::decimal128(20, 5),
      arrow::decimal256(76, 0), arrow::utf8(), arrow::large_utf8(), arrow::binary(),
      arrow::fixed_size_binary(16), arrow::date32(), arrow::date64(),
      arrow::time32(arrow::TimeUnit::SECOND), arrow::time64(arrow::TimeUnit::NANO),
      arrow::timestamp(arrow::TimeUnit::MICRO), arrow::timestamp(arrow::TimeUnit::SECOND, "UTC"),
      arrow::duration(arrow::TimeUnit::MILLI), arrow::boolean(), arrow::float16(),
      arrow::float32(), arrow::float64(), arrow::dictionary(arrow::int32(), arrow::utf8()),
      arrow::int64(), arrow::timestamp(arrow::TimeUnit::NANO), arrow::decimal128(38, 0),
      arrow::decimal256(76, 60), arrow::decimal32(4, 2),
      arrow::list(arrow::int32())};
  return types;
}

void Require(bool holds) {
  if (!holds) std::abort();
}

void RequireUsage(const grebe::Status& status) {
  Require(grebe::IsKind(status, grebe::ErrorKind::kInvalidArgument));
}

// A value of the column that the predicate names, in its comparable type; null: none.
std::shared_ptr<arrow::Scalar> NamedValue(const BoundNode& node, int column) {
  if (node.atom.column == column && !node.atom.values.empty()) return node.atom.values.back();
  for (const BoundNode& child : node.children) {
    if (auto found = NamedValue(child, column)) return found;
  }
  return nullptr;
}

// Three rows, each column null or one value throughout.
void Use(const BoundPredicate& predicate, bool with_values) {
  std::vector<ColumnBounds> bounds;
  arrow::ArrayVector arrays;
  for (const auto& field : predicate.schema()->fields()) {
    auto value = NamedValue(predicate.root(), static_cast<int>(arrays.size()));
    if (!with_values || value == nullptr) value = arrow::MakeNullScalar(field->type());
    grebe::pq::Bounds column;
    column.value_count = 3;
    if (value->is_valid) {
      column = grebe::scan::ConstantBounds(value, 3);
      if (grebe::scan::IsNaN(*value)) column.min = column.max = nullptr;
    }
    bounds.push_back({{column}});
    const auto rows = arrow::MakeArrayFromScalar(*value, 3);
    Require(rows.ok());
    arrays.push_back(*rows);
  }
  const auto verdicts = predicate.Judge(bounds, 1);
  Require(verdicts.ok());
  std::vector<grebe::RowRange> rows;
  Require(predicate.Filter(*arrow::RecordBatch::Make(predicate.schema(), 3, arrays), 0, &rows)
              .ok());
  if (verdicts->must_match[0]) Require(!rows.empty() && rows[0].row_count() == 3);
  if (!verdicts->may_match[0]) Require(rows.empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size_bytes) {
  if (size_bytes == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data + 1), size_bytes - 1);
  const auto predicate = Predicate::Parse(text);
  if (!predicate.ok()) {
    RequireUsage(predicate.status());
    return 0;
  }
  std::vector<PredicateColumn> columns;
  size_t next = data[0];
  for (const std::string& name : predicate->columns()) {
    columns.push_back({name, Types()[next++ % Types().size()]});
  }
  const auto bound = BoundPredicate::Bind(*predicate, columns);
  if (bound.ok()) {
    Use(**bound, false);
    Use(**bound, true);
  } else {
    RequireUsage(bound.status());
  }
  return 0;
}

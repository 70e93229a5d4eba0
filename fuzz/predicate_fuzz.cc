// Predicates as text. Whatever the bytes are, the answer is a predicate or InvalidArgument; one
// that parses binds to columns of many types or is refused with InvalidArgument; one that binds can
// be judged by bounds and filters rows.
#include <arrow/array/util.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "scan/predicate.h"

namespace {

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
      arrow::list(arrow::int32())};
  return types;
}

void Require(bool holds) {
  if (!holds) std::abort();
}

void RequireUsage(const grebe::Status& status) {
  Require(grebe::IsKind(status, grebe::ErrorKind::kInvalidArgument));
}

void Use(const BoundPredicate& predicate) {
  std::vector<ColumnBounds> bounds;
  arrow::ArrayVector arrays;
  for (const auto& field : predicate.schema()->fields()) {
    grebe::pq::Bounds unknown;
    unknown.value_count = 3;
    bounds.push_back({{unknown}});
    const auto nulls = arrow::MakeArrayOfNull(field->type(), 3);
    Require(nulls.ok());
    arrays.push_back(*nulls);
  }
  const auto verdicts = predicate.Judge(bounds, 1);
  Require(verdicts.ok());
  std::vector<grebe::RowRange> rows;
  Require(predicate.Filter(*arrow::RecordBatch::Make(predicate.schema(), 3, arrays), 0, &rows)
              .ok());
  // Three rows of nulls: what must match does.
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
    Use(**bound);
  } else {
    RequireUsage(bound.status());
  }
  return 0;
}

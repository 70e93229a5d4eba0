// The order of the values of a column, for every type that has one: nulls first, numbers by value
// (-0.0 = 0.0, NaN last), text and binary by unsigned bytes. Threads: safe.
#pragma once

#include <arrow/array.h>
#include <arrow/record_batch.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace grebe::layout {

// Appends nothing to the order of equal values: a word never contradicts CompareValues. A smaller
// value has a smaller word or, where 64 bits do not tell (text, large decimals), the same one; the
// word of a null is 0. words: one per row of the array. Errors: InvalidArgument for a type without
// an order (list, struct, ...).
Status ValueWords(const arrow::Array& values, uint64_t* words);

// The values as bytes that compare by memcmp as the values do: text as it is, other types encoded
// into *bytes, which must outlive the views. The view of a null is empty. Errors: as ValueWords.
Status OrderedViews(const arrow::Array& values, std::vector<std::string_view>* views,
                    std::string* bytes);

// True when two values that are not null are equal whenever their words are.
bool WordsAreExact(const arrow::DataType& type);

// Errors: InvalidArgument for a type without an order.
Status CheckOrdered(const arrow::DataType& type, const std::string& column);

// Row i of a against row j of b: negative, 0 or positive. REQUIRES: one type, CheckOrdered.
int CompareValues(const arrow::Array& a, int64_t i, const arrow::Array& b, int64_t j);

// The column of a dotted path (base/column_by_path.h), its dictionary decoded.
Result<std::shared_ptr<arrow::Array>> ColumnOf(const arrow::RecordBatch& batch,
                                               const std::string& path);
Result<std::vector<std::shared_ptr<arrow::Array>>> ColumnsOf(
    const arrow::RecordBatch& batch, const std::vector<std::string>& paths);

}  // namespace grebe::layout

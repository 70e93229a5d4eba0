// Bounds of long strings, cut short: for statistics and page indexes. For this room only.
#pragma once

#include <parquet/schema.h>
#include <parquet/statistics.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace grebe::pq {

// A string of at most size_max bytes that sorts, byte by byte, at or before `value`: its beginning.
// Of valid UTF-8 it keeps whole characters, so that it is valid too.
std::string LowerBound(std::string_view value, int64_t size_max);

// A string of at most size_max bytes that sorts after every string beginning as `value` does.
// nullopt: there is none (all bytes 0xff). Of valid UTF-8 it is valid UTF-8.
std::optional<std::string> UpperBound(std::string_view value, int64_t size_max);

// Whether the column's bounds may be cut: byte strings that sort as bytes.
bool BoundsMayBeCut(const ::parquet::ColumnDescriptor& column);

// Cuts both bounds and marks what was cut as inexact. A greatest value that cannot be cut stays
// whole, or is left out where it is longer than kBoundBytesKept.
inline constexpr int64_t kBoundBytesKept = 1 << 20;
void CutBounds(int64_t size_max, ::parquet::EncodedStatistics* statistics);

}  // namespace grebe::pq

// What a layout is asked for as text: "sort(a,b)", "zorder(a,b)", "zorder(a,b:2)", "hilbert(a,b)",
// "bucket(16,k)".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace grebe::layout {

enum class LayoutKind { kSort, kZOrder, kHilbert, kBucket };
enum class CurveMode { kRank, kRaw };

struct LayoutSpec {
  LayoutKind kind = LayoutKind::kSort;
  std::vector<std::string> columns;   // dotted paths
  // Of a Z-order in rank mode, per column: it parts the rows into at most 2^bits slices; 0: into as
  // many as the rows call for. Fewer for columns that queries seldom ask for. Empty: all 0.
  std::vector<int> bits_max;
  int bucket_count = 0;               // kBucket
  CurveMode mode = CurveMode::kRank;

  bool is_curve() const { return kind == LayoutKind::kZOrder || kind == LayoutKind::kHilbert; }
  // "zorder(a,b)"; names that need it in double quotes.
  std::string ToString() const;
};

// Errors: InvalidArgument, saying what is wrong.
Result<LayoutSpec> ParseLayout(std::string_view text);

}  // namespace grebe::layout

// What a layout is asked for as text: "sort(a,b)", "zorder(a,b)", "zorder(a,b:2)", "hilbert(a,b)",
// "bucket(16,k)", "tree(LOG)".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace grebe::layout {

enum class LayoutKind { kSort, kZOrder, kHilbert, kBucket, kTree };
enum class CurveMode { kRank, kRaw };

struct LayoutSpec {
  LayoutKind kind = LayoutKind::kSort;
  std::vector<std::string> columns;   // dotted paths; of a tree none: its log has them
  // Of a Z-order in rank mode, per column: it parts the rows into at most 2^bits slices; 0: into as
  // many as the rows call for. Fewer for columns that queries seldom ask for. Empty: all 0.
  std::vector<int> bits_max;
  int bucket_count = 0;               // kBucket
  std::string log;                    // kTree: where its query log, or the tree itself, lies
  CurveMode mode = CurveMode::kRank;

  bool is_curve() const { return kind == LayoutKind::kZOrder || kind == LayoutKind::kHilbert; }
  // Parts the rows, which are then laid out within: by RowOrder::Request::then.
  bool has_sections() const { return kind == LayoutKind::kBucket || kind == LayoutKind::kTree; }
  // "zorder(a,b)"; names that need it in double quotes. Of a tree "tree", wherever its log lies.
  std::string ToString() const;
};

// Errors: InvalidArgument, saying what is wrong.
Result<LayoutSpec> ParseLayout(std::string_view text);

}  // namespace grebe::layout

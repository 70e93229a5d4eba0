// The tree of a rewrite by tree(LOG): learnt from a query log, or read from the file that an
// earlier rewrite left beside its own files. docs/format/layout.md has the file.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "engine/rewrite_folder.h"
#include "engine/rewrite_partitions.h"
#include "engine/rewrite_source.h"
#include "layout/layout_spec.h"
#include "layout/query_cost.h"
#include "layout/rewrite_job.h"
#include "layout/table_tree.h"
#include "store/store.h"

namespace grebe::engine {

constexpr const char* kTreeFile = "_grebe_layout.json";

// A tree, and the order within its leaves.
struct SavedTree {
  std::shared_ptr<const layout::TableTree> tree;
  layout::LayoutSpec then;
};

// What tree(LOG) names: a tree that was kept, or the queries to learn one from.
struct TreeLog {
  std::optional<SavedTree> saved;
  std::vector<layout::LoggedQuery> queries;
};
// Errors: NotFound, InvalidArgument (no predicate in it, or a line that is none, by its number),
// Corrupt (a kept tree that cannot be read), the store's.
Result<TreeLog> ReadTreeLog(const std::string& uri, const store::StoreOptions& options);

// One tree for all groups, from a sample of all their rows. target_file_rows: of a leaf's file in
// the group that a row drawn at random is in. Null when there are no rows.
// Errors: as layout::TableTree::Learn, the source's.
Result<std::shared_ptr<const layout::TableTree>> LearnTree(
    const std::vector<layout::LoggedQuery>& queries, const RewriteGroups& groups,
    RewriteSource& source, const layout::RewriteOptions& options);

// Along a curve through the tree's first columns, or by its only one.
layout::LayoutSpec OrderWithin(const layout::TableTree& tree);

std::string TreeText(const SavedTree& tree);
// Errors: Corrupt.
Result<SavedTree> ParseTree(std::string_view text);

// Puts it among the files of the rewrite, under the name kTreeFile.
Status KeepTree(const SavedTree& tree, RewriteFolder* folder);

}  // namespace grebe::engine

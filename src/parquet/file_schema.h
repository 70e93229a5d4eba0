// One distinct Parquet schema: the footer without its row groups. Many files share one.
// Threads: immutable, safe.
//
// (Not named schema.h: libparquet has a header of that name and path, and its own headers would get
// this one.)
#pragma once

#include <arrow/type.h>

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace grebe::pq {

// The columns a reader wants, resolved against one schema.
struct Projection {
  std::vector<int> leaves;                        // leaf columns, ascending
  std::shared_ptr<arrow::Schema> arrow_schema;    // of the assembled rows: top-level fields,
                                                  // nested ones pruned to the wanted leaves
};

class Schema {
 public:
  // Parses what Serialize gave. Errors: Corrupt, Unsupported.
  static Result<std::shared_ptr<const Schema>> Open(std::string_view bytes);
  ~Schema();

  // Equal schemas (names, types, logical types, field ids, Arrow schema metadata) serialize to
  // equal bytes, whatever the number of rows and the writer's version.
  const std::string& Serialize() const;

  int leaf_count() const;
  std::string leaf_path(int leaf) const;          // dotted: "a.list.element.b"
  bool leaf_is_repeated(int leaf) const;
  // The whole table's Arrow schema, as libparquet's Arrow reader derives it.
  const std::shared_ptr<arrow::Schema>& arrow_schema() const;

  // Resolves dotted paths ("a", "b.c": a top-level field, a struct member, or through lists and
  // maps by their Arrow child names; the Parquet spelling with list.element works too). A path of
  // a group takes all its leaves. Empty: all columns. A top-level name that contains dots wins
  // over a path. Errors: InvalidArgument for a name that is not there or matches twice.
  Result<Projection> Project(std::span<const std::string> paths) const;

  // The leaf of a column that can be a key: a primitive one that is not inside a list or map.
  // Errors: InvalidArgument (absent, ambiguous, repeated or a group).
  Result<int> KeyLeaf(std::string_view path) const;

  struct Impl;  // for this room only
  const Impl& impl() const { return *impl_; }
  static std::shared_ptr<const Schema> FromImpl(std::unique_ptr<Impl> impl);

 private:
  Schema();
  std::unique_ptr<Impl> impl_;
};

}  // namespace grebe::pq

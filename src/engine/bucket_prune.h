// Leaving out files of other hash buckets: files that a rewrite by bucket(n, column) marked with
// their bucket. docs/format/stats.md.
#pragma once

#include <string>

#include "scan/predicate.h"

namespace grebe::engine {

// False: the file's bucket surely holds no row that the predicate wants. A layout that is none of
// one column's buckets, or is not understood, may always hold one.
bool MayMatchBucket(const std::string& layout, const scan::BoundPredicate& predicate);

}  // namespace grebe::engine

// Ranges of keys as the public API gives them, in the key room's terms.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "grebe/lookup.h"
#include "key/ordered.h"

namespace grebe::engine {

// The keys that a range means; names and types: of the key columns. Errors: InvalidArgument when
// the columns are not the first of the key and the next one, as key::OrderRange.
Result<key::OrderedRange> OrderedRangeOf(const std::vector<std::string>& names,
                                         const std::vector<key::KeyType>& types,
                                         const KeyRange& range);

}  // namespace grebe::engine

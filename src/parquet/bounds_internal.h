// What reading statistics and reading the page index share, for this room only.
#pragma once

#include "parquet/leaf_bounds.h"

namespace grebe::pq {

// Whether a page index of the column is in an order that is known.
bool PageOrderIsKnown(const Footer& footer, int leaf);

// Whether null counts of the column count every null: not in an optional group.
bool NullCountsAreWhole(const Schema& schema, int leaf);

// Whether bounds of the column cannot be shortened: numbers, not bytes.
bool HasFixedWidth(const Schema& schema, int leaf);

}  // namespace grebe::pq

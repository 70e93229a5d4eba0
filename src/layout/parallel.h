// Units of work on a few threads, until the first error.
#pragma once

#include <cstddef>
#include <functional>

#include "base/status.h"

namespace grebe::layout {

// Runs unit(0) .. unit(count - 1), in this order but several at once. After an error no unit is
// begun; the error of the lowest unit that failed is returned.
Status RunAll(int threads, size_t count, const std::function<Status(size_t)>& unit);

}  // namespace grebe::layout

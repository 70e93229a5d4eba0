// Checks of options that are numbers. Their messages name the end that was passed, and no other.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <limits>

namespace grebe::cli {

// A number that is at least `least`, 0 or 1.
CLI::Validator AtLeast(int64_t least);

// A number above 0.
CLI::Validator MoreThanZero();

// For Option::transform: bytes from least to most, with or without a unit (128MB is 2^27).
CLI::Validator Size(int64_t least, int64_t most = std::numeric_limits<int64_t>::max());

}  // namespace grebe::cli

// The seed of random tests: printed, so that a failure can be run again.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <random>

namespace grebe::testing {

// $GREBE_TEST_SEED, else a new one.
inline uint64_t Seed(const char* what) {
  const char* const given = std::getenv("GREBE_TEST_SEED");
  const uint64_t seed =
      given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device{}();
  std::cout << what << ": seed " << seed << " (GREBE_TEST_SEED)\n";
  return seed;
}

}  // namespace grebe::testing

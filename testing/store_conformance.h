// What every Store promises, as one battery of tests run over each kind.
//
// A test program lists store_conformance.cc and its backends:
//   INSTANTIATE_TEST_SUITE_P(Local, StoreConformance, ::testing::Values(LocalBackend()), ...);
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "store/store.h"

namespace grebe::testing {

struct StoreBackend {
  std::string name;
  // An empty place to work in: a store and a path prefix within it.
  std::function<Result<store::Location>()> open;
  int racing_writers = 8;
  int large_object_bytes = 3 << 20;
};

class StoreConformance : public ::testing::TestWithParam<StoreBackend> {
 protected:
  void SetUp() override;

  std::string PathOf(const std::string& name) const { return place_.path + "/" + name; }
  store::Store& store() { return *place_.store; }
  // Writes and returns the object as its writer knows it.
  std::shared_ptr<const store::Object> Write(const std::string& name, const std::string& bytes);

  store::Location place_;
};

// n bytes that tell positions apart.
std::string PatternBytes(int64_t n, uint64_t seed);

}  // namespace grebe::testing

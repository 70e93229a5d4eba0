// Objects in memory: for tests, and for tables that live within one process.
// Every write gives the object a new identity, also when the bytes are the same.
// Answers are copies of exactly the bytes asked for, so that a reader that strays past their end
// is caught by the sanitizers.
#pragma once

#include <memory>
#include <string_view>

#include "store/store.h"

namespace grebe::store {

// A store of its own, empty. name: for messages only.
std::shared_ptr<Store> MakeMemoryStore(std::string_view name = "test");

// The store of that name: one for the whole process, kept until it ends.
std::shared_ptr<Store> SharedMemoryStore(std::string_view name);

}  // namespace grebe::store

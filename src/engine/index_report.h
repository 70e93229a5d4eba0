// What a manifest says, in the public terms.
#pragma once

#include <string>

#include "grebe/index.h"
#include "index/manifest.h"

namespace grebe::engine {

IndexDescription Describe(const std::string& name, const index::Manifest& manifest);

}  // namespace grebe::engine

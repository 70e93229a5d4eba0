#include "grebe/version.h"

#include "base/version.h"

namespace grebe {

const char* Version() { return kVersion; }

}  // namespace grebe

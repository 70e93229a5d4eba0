#include "grebe/version.h"

namespace grebe {

const char* Version() { return "0.1.0"; }

}  // namespace grebe

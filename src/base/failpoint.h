// Named places where a test can make the process die or fail, to prove that nothing is lost.
//
// GREBE_FAILPOINT("create.before_manifest") returns a Status from the enclosing function when the
// environment variable GREBE_FAILPOINTS arms that name: "name=kill" (SIGKILL to itself),
// "name=error" (Transient), "name=kill@3" (on the third passing). Unarmed it costs one load.
// A list: names separated by commas. Every name is listed in TESTING.md.
#pragma once

#include "base/status.h"

namespace grebe {

Status FailpointHit(const char* name);
bool FailpointsArmed();

#define GREBE_FAILPOINT(name)                                       \
  do {                                                              \
    if (::grebe::FailpointsArmed()) {                               \
      ARROW_RETURN_NOT_OK(::grebe::FailpointHit(name));             \
    }                                                               \
  } while (false)

}  // namespace grebe

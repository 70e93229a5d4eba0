#include "base/stop.h"

namespace grebe {

Status StopToken::Check() const {
  return stopped() ? Cancelled("stopped on request") : Status::OK();
}

}  // namespace grebe

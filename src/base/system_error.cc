#include "grebe/system_error.h"

#include <cerrno>
#include <cstring>
#include <string>

#include "base/status.h"

namespace grebe {

Status ErrnoStatus(int error_number, std::string_view what, std::string_view path) {
  ErrorKind kind = ErrorKind::kTransient;
  switch (error_number) {
    case ENOENT:
    case ELOOP: kind = ErrorKind::kNotFound; break;
    case ENOTDIR:
    case EISDIR:
    case ENAMETOOLONG: kind = ErrorKind::kInvalidArgument; break;
    case EACCES:
    case EPERM:
    case EROFS: kind = ErrorKind::kPermission; break;
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case ENOSPC:
    case EDQUOT:
    case EFBIG: kind = ErrorKind::kLimitExceeded; break;
    default: break;
  }
  std::string message(what);
  message += " path=" + std::string(path) + " errno=" + std::to_string(error_number);
  char text[128];
  message += std::string(" reason=") + ::strerror_r(error_number, text, sizeof(text));
  return MakeError(kind, std::move(message));
}

}  // namespace grebe

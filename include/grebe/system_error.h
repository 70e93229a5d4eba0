// The typed error of a failed system call.
#pragma once

#include <arrow/status.h>

#include <string_view>

namespace grebe {

// Names the path and the system's reason. The kind: ENOENT, ELOOP -> NotFound; ENOTDIR, EISDIR,
// ENAMETOOLONG -> InvalidArgument; EACCES, EPERM, EROFS -> Permission; ENOSPC, EDQUOT, EFBIG,
// EMFILE, ENFILE, ENOMEM -> LimitExceeded; the rest -> Transient.
arrow::Status ErrnoStatus(int error_number, std::string_view what, std::string_view path);

}  // namespace grebe

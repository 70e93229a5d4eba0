#include "parquet/guard.h"

namespace grebe::pq {
namespace {

bool Mentions(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// libparquet has one exception type; whether a file is damaged or merely beyond it shows only in
// the words.
ErrorKind KindOfMessage(std::string_view message) {
  for (std::string_view part :
       {"ot yet implemented", "not implemented", "nsupported", "not supported", "decrypt",
        "ncrypted", "Unknown encoding type", "too deeply nested", "Decimal precision out of range",
        "Invalid physical column type", "Map keys must be annotated as required",
        "Logical type Null cannot be applied to group node"}) {
    if (Mentions(message, part)) return ErrorKind::kUnsupported;
  }
  return ErrorKind::kCorrupt;
}

}  // namespace

Status FileStatus(const Status& status, std::string_view doing) {
  if (status.ok() || status.detail() != nullptr) return status;
  ErrorKind kind = KindOf(status);
  switch (status.code()) {
    case arrow::StatusCode::Invalid:
    case arrow::StatusCode::IOError:
    case arrow::StatusCode::TypeError:
    case arrow::StatusCode::IndexError:
    case arrow::StatusCode::SerializationError:
    case arrow::StatusCode::UnknownError: kind = KindOfMessage(status.message()); break;
    default: break;
  }
  std::string message = status.message();
  message.append(" doing='").append(doing).append("'");
  return MakeError(kind, std::move(message));
}

Status FileException(std::string_view message, std::string_view doing) {
  std::string text(message);
  text.append(" doing='").append(doing).append("'");
  return MakeError(KindOfMessage(message), std::move(text));
}

}  // namespace grebe::pq

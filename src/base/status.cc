#include "base/status.h"

#include <memory>
#include <utility>

namespace grebe {
namespace {

constexpr char kDetailId[] = "grebe::ErrorKind";

class KindDetail final : public arrow::StatusDetail {
 public:
  explicit KindDetail(ErrorKind kind) : kind_(kind) {}
  const char* type_id() const override { return kDetailId; }
  std::string ToString() const override { return std::string(KindName(kind_)); }
  ErrorKind kind() const { return kind_; }

 private:
  ErrorKind kind_;
};

arrow::StatusCode CodeOf(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kInvalidArgument: return arrow::StatusCode::Invalid;
    case ErrorKind::kNotFound: return arrow::StatusCode::KeyError;
    case ErrorKind::kUnsupported: return arrow::StatusCode::NotImplemented;
    case ErrorKind::kLimitExceeded: return arrow::StatusCode::CapacityError;
    case ErrorKind::kInternal: return arrow::StatusCode::UnknownError;
    case ErrorKind::kCancelled: return arrow::StatusCode::Cancelled;
    default: return arrow::StatusCode::IOError;
  }
}

}  // namespace

std::string_view KindName(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kInvalidArgument: return "InvalidArgument";
    case ErrorKind::kNotFound: return "NotFound";
    case ErrorKind::kCorrupt: return "Corrupt";
    case ErrorKind::kStale: return "Stale";
    case ErrorKind::kConflict: return "Conflict";
    case ErrorKind::kUnsupported: return "Unsupported";
    case ErrorKind::kTransient: return "Transient";
    case ErrorKind::kLimitExceeded: return "LimitExceeded";
    case ErrorKind::kInternal: return "Internal";
    case ErrorKind::kPermission: return "Permission";
    case ErrorKind::kCancelled: return "Cancelled";
  }
  return "Internal";
}

ErrorKind KindOf(const Status& status) {
  const auto& detail = status.detail();
  if (detail != nullptr && std::string_view(detail->type_id()) == kDetailId) {
    return static_cast<const KindDetail&>(*detail).kind();
  }
  switch (status.code()) {
    case arrow::StatusCode::OutOfMemory:
    case arrow::StatusCode::CapacityError: return ErrorKind::kLimitExceeded;
    case arrow::StatusCode::IOError: return ErrorKind::kTransient;
    case arrow::StatusCode::NotImplemented: return ErrorKind::kUnsupported;
    case arrow::StatusCode::KeyError: return ErrorKind::kNotFound;
    case arrow::StatusCode::Cancelled: return ErrorKind::kCancelled;
    case arrow::StatusCode::Invalid:
    case arrow::StatusCode::TypeError:
    case arrow::StatusCode::IndexError: return ErrorKind::kInvalidArgument;
    default: return ErrorKind::kInternal;
  }
}

Status MakeError(ErrorKind kind, std::string message) {
  return Status(CodeOf(kind), std::move(message), std::make_shared<KindDetail>(kind));
}

Status AddContext(const Status& status, std::string_view key, std::string_view value) {
  if (status.ok()) return status;
  std::ostringstream message;
  message << status.message() << ' ' << key << '=' << value;
  return status.WithMessage(message.str());
}

}  // namespace grebe

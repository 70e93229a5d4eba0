// Making typed errors: Corrupt("bad page header", "path", path, "offset_bytes", 12).
//
// The first argument is the sentence; the rest are key, value pairs, appended as key=value.
#pragma once

#include <arrow/result.h>
#include <arrow/status.h>

#include <sstream>
#include <string>
#include <string_view>

#include "grebe/error.h"

namespace grebe {

using arrow::Result;
using arrow::Status;

// A status of the kind, with the message as given.
Status MakeError(ErrorKind kind, std::string message);

// The same status with " key=value" appended to its message; kind and code are kept.
Status AddContext(const Status& status, std::string_view key, std::string_view value);

inline bool IsKind(const Status& status, ErrorKind kind) {
  return !status.ok() && KindOf(status) == kind;
}

namespace internal {
inline void AppendPairs(std::ostringstream&) {}
template <class Key, class Value, class... Rest>
void AppendPairs(std::ostringstream& out, const Key& key, const Value& value,
                 const Rest&... rest) {
  out << ' ' << key << '=' << value;
  AppendPairs(out, rest...);
}
template <class... Pairs>
Status MakeErrorOf(ErrorKind kind, std::string_view what, const Pairs&... pairs) {
  static_assert(sizeof...(pairs) % 2 == 0, "key, value pairs");
  std::ostringstream out;
  out << what;
  AppendPairs(out, pairs...);
  return MakeError(kind, out.str());
}
}  // namespace internal

#define GREBE_ERROR_MAKER(Name)                                        \
  template <class... Pairs>                                            \
  Status Name(std::string_view what, const Pairs&... pairs) {          \
    return internal::MakeErrorOf(ErrorKind::k##Name, what, pairs...);  \
  }
GREBE_ERROR_MAKER(InvalidArgument)
GREBE_ERROR_MAKER(NotFound)
GREBE_ERROR_MAKER(Corrupt)
GREBE_ERROR_MAKER(Stale)
GREBE_ERROR_MAKER(Conflict)
GREBE_ERROR_MAKER(Unsupported)
GREBE_ERROR_MAKER(Transient)
GREBE_ERROR_MAKER(LimitExceeded)
GREBE_ERROR_MAKER(Internal)
GREBE_ERROR_MAKER(Permission)
GREBE_ERROR_MAKER(Cancelled)
#undef GREBE_ERROR_MAKER

}  // namespace grebe

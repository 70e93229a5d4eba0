// The one bridge from libparquet's exceptions to Status: every libparquet call that can throw runs
// inside Guarded(). Many metadata accessors do throw on odd files (an encrypted column, an unknown
// codec), and an exception that escapes would end the process.
//
//   ARROW_ASSIGN_OR_RAISE(auto chunk, Guarded("reading chunk metadata", [&] {
//     return row_group->ColumnChunk(i);
//   }));
//
// The function may return nothing (Guarded gives a Status), a Status, a Result<T> or a T (Guarded
// gives a Result<T>). Exceptions that carry a Status keep its kind, with Invalid and IOError read
// as Corrupt: here they speak of file bytes. Other ParquetExceptions are Corrupt, or Unsupported
// where libparquet says that a thing is not implemented; bad_alloc and length_error are
// LimitExceeded. Cost: none unless something is thrown.
#pragma once

#include <parquet/exception.h>

#include <exception>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "base/status.h"

namespace grebe::pq {

// A Status that Arrow or libparquet made while looking at file bytes, with one of our kinds.
// An error that already has one keeps it. OK stays OK.
Status FileStatus(const Status& status, std::string_view doing);

// The Status of a ParquetException's (or other exception's) message.
Status FileException(std::string_view message, std::string_view doing);

namespace internal {

template <class T>
struct GuardedResult {
  using type = Result<T>;
};
template <>
struct GuardedResult<void> {
  using type = Status;
};
template <>
struct GuardedResult<Status> {
  using type = Status;
};
template <class T>
struct GuardedResult<Result<T>> {
  using type = Result<T>;
};

}  // namespace internal

template <class Function>
auto Guarded(std::string_view doing, Function&& function) ->
    typename internal::GuardedResult<std::invoke_result_t<Function>>::type {
  using Out = std::invoke_result_t<Function>;
  try {
    if constexpr (std::is_void_v<Out>) {
      std::forward<Function>(function)();
      return Status::OK();
    } else if constexpr (std::is_same_v<Out, Status>) {
      return FileStatus(std::forward<Function>(function)(), doing);
    } else if constexpr (std::is_same_v<typename internal::GuardedResult<Out>::type, Out>) {
      Out out = std::forward<Function>(function)();
      if (!out.ok()) return FileStatus(out.status(), doing);
      return out;
    } else {
      return std::forward<Function>(function)();
    }
  } catch (const ::parquet::ParquetStatusException& e) {
    return FileStatus(e.status(), doing);
  } catch (const std::bad_alloc&) {
    return LimitExceeded("not enough memory", "doing", doing);
  } catch (const std::length_error&) {
    return LimitExceeded("a size is beyond what memory can hold", "doing", doing);
  } catch (const std::exception& e) {
    return FileException(e.what(), doing);
  } catch (...) {
    return FileException("unknown exception", doing);
  }
}

}  // namespace grebe::pq

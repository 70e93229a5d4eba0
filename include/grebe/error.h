// The kinds of error Grebe reports, each one something a caller acts on differently.
//
// Every call returns arrow::Status or arrow::Result. The kind rides on the status as a detail;
// KindOf() reads it. The message is for people: lower case, then key=value pairs.
// A key that no row has is an empty result, never an error. The library never prints or exits.
#pragma once

#include <arrow/status.h>

#include <string_view>

namespace grebe {

// Never renumber: the values are part of the JSON errors of the command line.
enum class ErrorKind {
  kInvalidArgument = 1,  // the call is wrong: mend the call
  kNotFound = 2,         // a file, table or index is not there
  kCorrupt = 3,          // bytes are damaged, or not of the format they claim
  kStale = 4,            // a data file changed after it was indexed: refresh the index
  kConflict = 5,         // another writer committed first: read again and retry
  kUnsupported = 6,      // well-formed, but not something this version reads
  kTransient = 7,        // storage failed after bounded retries: try again later
  kLimitExceeded = 8,    // a memory, size or time limit was reached
  kInternal = 9,         // a bug in Grebe
  kPermission = 10,      // storage refused the credentials
  kCancelled = 11,       // the caller asked to stop
};

// "Corrupt", "Stale", ...: the kind's name as the command line prints it.
std::string_view KindName(ErrorKind kind);

// The kind of a failed status. A status that Arrow itself made maps to the nearest kind
// (Invalid -> InvalidArgument, OutOfMemory and CapacityError -> LimitExceeded, IOError ->
// Transient, NotImplemented -> Unsupported, KeyError -> NotFound). REQUIRES: !status.ok().
ErrorKind KindOf(const arrow::Status& status);

}  // namespace grebe

// Bytes at rest: one interface over local files, S3, GCS, Azure and memory.
//
// A Store holds objects named by path ('/'-separated; S3: the key inside one bucket; local: an
// absolute path). Objects are read by range, many at once: one call of ReadEach is one WAVE, the
// unit in which latency is counted. Reads of data files are pinned to an identity: if the object
// is no longer the one that was indexed the read fails with Stale, and no byte of it is seen.
//
// Threads: every method of every Store may be called from any thread.
#pragma once

#include <arrow/buffer.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/types.h"

namespace grebe::store {

// What tells one content of a path from another. Local: "mtime_ns-inode". S3, GCS, Azure: the
// ETag as the server sends it, without the quotes.
struct Identity {
  int64_t size_bytes = -1;  // -1: not known
  std::string tag;          // empty: not pinned
  bool operator==(const Identity&) const = default;
};

struct Object {
  std::string path;
  Identity identity;
  bool operator==(const Object&) const = default;
};

// One range of one object. With a tag in the identity the read is pinned to it.
// A range that reaches past the end of the object is an error (Corrupt), never a short answer.
// An empty range is answered with an empty buffer, without a request and without a check.
struct ReadRequest {
  std::shared_ptr<const Object> object;
  ByteRange range;
};

// A whole object, or its last bytes, with the identity they belong to.
struct WholeObject {
  Identity identity;
  std::shared_ptr<arrow::Buffer> bytes;
};

enum class PutMode { kOverwrite, kIfAbsent };

// What a request costs on this kind of store, for the planner's coalescing.
struct ReadCosts {
  // A gap of at most this many bytes between two ranges of one object is cheaper to read than a
  // second request. Raise it when requests are slow beside bandwidth.
  int64_t gap_bytes_max = 0;
  // No coalesced range grows beyond this. Raise it when the store streams large ranges well.
  int64_t range_bytes_max = 8 << 20;
};

using ReadCallback =
    std::function<void(size_t request_index, Result<std::shared_ptr<arrow::Buffer>> answer)>;

// An object being written piece by piece. Nothing is visible before Finish returns OK; when the
// Upload is destroyed unfinished, what it had written is removed.
// Threads: one at a time.
class Upload {
 public:
  virtual ~Upload() = default;
  virtual Status Append(std::string_view bytes) = 0;
  // Publishes the object. Its path now holds exactly the appended bytes.
  virtual Result<Identity> Finish() = 0;
};

// What a store has done since it was opened. Stores that speak HTTP count; others leave zeros.
struct StoreCounters {
  int64_t requests = 0;  // attempts sent, retries and hedges among them
  int64_t retries = 0;
  int64_t hedges = 0;
  int64_t bytes_read = 0;  // body bytes received, errors' and lost answers' too
  int64_t bytes_written = 0;
};

class Store {
 public:
  virtual ~Store() = default;

  // "file", "s3", "gs", "abfs", "memory": for explain records and messages.
  virtual std::string_view kind() const = 0;
  virtual ReadCosts read_costs() const = 0;

  // Reads every range as one wave: all are under way together, none waits for another. Calls
  // on_read exactly once per request, from any of several threads, possibly at once, as each
  // completes; returns after the last call returned. on_read may do work (decode); it must not
  // call back into this store. Cost: one request a range. Errors (per request): NotFound, Stale,
  // Transient after bounded retries, Permission, Corrupt for a range outside the object.
  virtual void ReadEach(std::span<const ReadRequest> requests, const ReadCallback& on_read) = 0;

  // The whole object at each path, of unknown size (manifests, hints), as one wave. One request
  // each, never a HEAD. Errors per path as ReadEach.
  virtual std::vector<Result<WholeObject>> ReadWhole(std::span<const std::string> paths) = 0;

  // Every object whose path starts with prefix, sorted by path as bytes. Local: the files under
  // the folder `prefix` (which ends in '/'), following links to files and folders; a missing
  // folder is an empty list. Hidden names are listed too; the caller filters.
  // `start_after`: only paths greater than this one (saves requests on long listings).
  virtual Result<std::vector<Object>> List(std::string_view prefix,
                                           std::string_view start_after = {}) = 0;

  // The object's identity: a HEAD, or a stat. NotFound when there is none. Not used by lookups.
  virtual Result<Object> Stat(std::string_view path) = 0;

  // Writes a small object atomically (durable before it returns, locally: fsync of file and
  // folder). kIfAbsent: Conflict when the path exists, and of several at once exactly one wins.
  virtual Result<Identity> Put(std::string_view path, std::string_view bytes, PutMode mode) = 0;

  // Starts writing a large object (local: a temporary file beside it, renamed at Finish; S3:
  // multipart). An existing object is replaced at Finish.
  virtual Result<std::unique_ptr<Upload>> StartUpload(std::string_view path) = 0;

  // Removes the object. A path that holds none is fine.
  virtual Status Delete(std::string_view path) = 0;

  // Gives an object another name, replacing what had it; its identity stays. Local: one rename,
  // missing folders are made. Unsupported where a rename would be a copy.
  virtual Status Rename(std::string_view from, std::string_view to);
  virtual bool can_rename() const { return false; }

  // Removes every object under the folder `path`, and locally the folder itself.
  virtual Status DeleteFolder(std::string_view path);

  // The whole object mapped into memory, without reading it (local files; Unsupported on other
  // stores). Errors: NotFound, Stale. An unpinned object is mapped as it is. The file must not be
  // cut short in place while it is mapped: for own files, which are only ever replaced or removed.
  virtual Result<std::shared_ptr<arrow::Buffer>> Map(const Object& object);

  // The URI of a path for people: "s3://bucket/key", "/data/x.parquet".
  virtual std::string Uri(std::string_view path) const;

  virtual StoreCounters counters() const { return {}; }

  // All ranges as one wave, in order. Of several errors, the one of the first request wins.
  Result<std::vector<std::shared_ptr<arrow::Buffer>>> Read(std::span<const ReadRequest> requests);
};

// A store and a path in it.
struct Location {
  std::shared_ptr<Store> store;
  std::string path;  // no trailing '/'
};

// How remote stores are reached. Unset fields come from the environment as the AWS tools read it
// (AWS_ACCESS_KEY_ID, ..., AWS_ENDPOINT_URL_S3, AWS_PROFILE and the shared files, web identity,
// instance metadata).
struct StoreOptions {
  std::string s3_endpoint;           // "http://127.0.0.1:8333": path style unless told otherwise
  std::string s3_region;             // default us-east-1
  std::string s3_access_key_id;
  std::string s3_secret_access_key;
  std::string s3_session_token = {};
  std::optional<bool> s3_path_style = {};
  int s3_connections_max = 64;       // raise it when waves are wider than this
  int retries_max = 5;               // attempts beyond the first, per request
  int64_t request_timeout_ms = 30000;
  int local_threads = 0;             // 0: one per core
  int64_t hedge_after_us = 0;        // 0: off. A read slower than this is asked a second time
};

// Opens the store a URI names. A plain path, relative or absolute, is a local file.
// Schemes: file, s3, gs, abfs/abfss, memory (memory://name: shared within the process).
// No request is made. Errors: InvalidArgument for an unknown scheme or a malformed URI.
// Locations opened with the same options share a store (connections, threads, open files) while
// any of them lives.
Result<Location> OpenLocation(std::string_view uri, const StoreOptions& options = {});

// The display URI of a path in a store: "s3://bucket/key", "/data/x.parquet".
std::string DisplayUri(const Location& location);

}  // namespace grebe::store

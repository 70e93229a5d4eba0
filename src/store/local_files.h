// The file system calls below LocalStore: open files kept for reuse, identities, atomic writes.
#pragma once

#include <sys/stat.h>

#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include "store/store.h"

namespace grebe::store {

// The typed error of a failed stat. A path below a file names nothing: NotFound.
Status StatFailed(int error_number, std::string_view path);

// size and "mtime_ns-inode". What it cannot tell apart: two writes to one file within one tick
// of the kernel's clock (1 to 10 ms; finer on Linux 6.13 and later) that leave the size the same.
Identity IdentityOfStat(const struct stat& st);

// Fails with Stale when `now` is not what `pinned` names. An empty tag and a negative size match.
Status CheckIdentity(const Identity& pinned, const Identity& now, std::string_view path);

// An open regular file, closed with its last owner.
class OpenedFile {
 public:
  OpenedFile(int fd, dev_t device, ino_t inode) : fd_(fd), device_(device), inode_(inode) {}
  ~OpenedFile();
  OpenedFile(const OpenedFile&) = delete;
  OpenedFile& operator=(const OpenedFile&) = delete;

  int fd() const { return fd_; }
  bool Is(const struct stat& st) const { return st.st_dev == device_ && st.st_ino == inode_; }

 private:
  const int fd_;
  const dev_t device_;
  const ino_t inode_;
};

struct FileNow {
  std::shared_ptr<const OpenedFile> file;
  struct stat st;  // of the opened file
};

// Open files by path, least recently used out first.
// Threads: safe.
class FileCache {
 public:
  explicit FileCache(size_t files_max) : files_max_(files_max) {}

  // The file that the path names now: always one stat, and an open when the cached file is not
  // that one. Errors: NotFound (a folder is not a file), Permission, LimitExceeded.
  Result<FileNow> Open(const std::string& path);

  void Forget(std::string_view path);
  size_t size();

 private:
  using Entry = std::pair<std::string, std::shared_ptr<const OpenedFile>>;

  std::shared_ptr<const OpenedFile> Find(const std::string& path);
  void Insert(const std::string& path, std::shared_ptr<const OpenedFile> file);

  const size_t files_max_;
  std::mutex mutex_;
  std::list<Entry> by_use_;  // front: used last
  std::unordered_map<std::string_view, std::list<Entry>::iterator> by_path_;  // views into by_use_
};

// A file being written beside its final path, under a hidden temporary name. Removed when it is
// destroyed before Publish succeeded.
class TemporaryFile {
 public:
  // Makes missing folders. The name: "<folder>/.<name>.<16 hex digits>.tmp".
  static Result<std::unique_ptr<TemporaryFile>> Create(std::string_view final_path);
  ~TemporaryFile();

  Status Append(std::string_view bytes);
  // Makes the bytes durable, gives the file its final name, makes that durable too.
  // kIfAbsent: Conflict when the path exists; of several at once exactly one wins.
  Result<Identity> Publish(PutMode mode);

 private:
  TemporaryFile(int fd, std::string path, std::string final_path)
      : fd_(fd), path_(std::move(path)), final_path_(std::move(final_path)) {}
  Status GiveFinalName(PutMode mode);

  int fd_;
  std::string path_;  // empty once it has its final name
  const std::string final_path_;
};

// Renames a file, making missing folders; durable when it returns.
Status RenameFile(const std::string& from, const std::string& to);

// Every file under folder whose path starts with prefix, following links to files and folders,
// sorted by path. Names that vanish meanwhile, dangling links, and a folder that is its own
// ancestor by a link are passed over.
Result<std::vector<Object>> ListFiles(std::string_view prefix, std::string_view start_after);

}  // namespace grebe::store

#include "store/local_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <utility>
#include <vector>

#include "base/failpoint.h"
#include "base/hash.h"
#include "grebe/system_error.h"

namespace grebe::store {
namespace {

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }
  int Release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

std::string FolderOf(std::string_view path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string_view::npos) return ".";
  return slash == 0 ? "/" : std::string(path.substr(0, slash));
}

Status SyncFolder(const std::string& folder) {
  const Descriptor fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd.get() < 0) return ErrnoStatus(errno, "cannot open the folder", folder);
  // Some network file systems cannot sync a folder; there the rename is as durable as it gets.
  if (::fsync(fd.get()) != 0 && errno != EINVAL && errno != ENOTSUP) {
    return ErrnoStatus(errno, "cannot sync the folder", folder);
  }
  return Status::OK();
}

// mkdir -p; every folder made is made durable in its parent.
Status MakeFolders(const std::string& folder) {
  if (::mkdir(folder.c_str(), 0777) == 0) return SyncFolder(FolderOf(folder));
  if (errno == EEXIST) return Status::OK();  // if it is a file, the open that follows says so
  if (errno != ENOENT || folder == "/") {
    return ErrnoStatus(errno, "cannot make the folder", folder);
  }
  ARROW_RETURN_NOT_OK(MakeFolders(FolderOf(folder)));
  if (::mkdir(folder.c_str(), 0777) == 0) return SyncFolder(FolderOf(folder));
  if (errno == EEXIST) return Status::OK();
  return ErrnoStatus(errno, "cannot make the folder", folder);
}

std::string UniqueSuffix() {
  static std::atomic<uint64_t> counter{0};
  const uint64_t time_ns = static_cast<uint64_t>(
      std::chrono::system_clock::now().time_since_epoch().count());
  const uint64_t value = Mix64(time_ns ^ (static_cast<uint64_t>(::getpid()) << 40) ^
                               Mix64(counter.fetch_add(1) + 1));
  char text[17];
  std::snprintf(text, sizeof(text), "%016llx", static_cast<unsigned long long>(value));
  return text;
}

struct Folder {
  std::string path;  // ends in '/'
  std::vector<std::pair<dev_t, ino_t>> ancestors;
};

// Adds the files of one folder to found and its folders to folders.
Status ListFolder(const Folder& folder, std::string_view prefix, std::string_view start_after,
                  std::vector<Object>* found, std::vector<Folder>* folders) {
  DIR* const opened = ::opendir(folder.path.c_str());
  if (opened == nullptr) {
    if (errno == ENOENT || errno == ENOTDIR) return Status::OK();
    return ErrnoStatus(errno, "cannot list the folder", folder.path);
  }
  const std::unique_ptr<DIR, int (*)(DIR*)> dir(opened, ::closedir);
  while (true) {
    errno = 0;
    const dirent* const entry = ::readdir(dir.get());
    if (entry == nullptr) {
      if (errno != 0) return ErrnoStatus(errno, "cannot list the folder", folder.path);
      return Status::OK();
    }
    const std::string_view name = entry->d_name;
    if (name == "." || name == "..") continue;
    std::string path = folder.path + std::string(name);
    // A folder above the prefix's last '/' never occurs; below it, both must agree so far.
    const size_t shared = std::min(path.size(), prefix.size());
    if (std::string_view(path).substr(0, shared) != prefix.substr(0, shared)) continue;
    struct stat st;
    if (::fstatat(::dirfd(dir.get()), entry->d_name, &st, 0) != 0) {
      if (errno == ENOENT || errno == ELOOP || errno == ENOTDIR) continue;
      return ErrnoStatus(errno, "cannot stat", path);
    }
    if (S_ISDIR(st.st_mode)) {
      const std::pair<dev_t, ino_t> id(st.st_dev, st.st_ino);
      const auto& above = folder.ancestors;
      if (std::find(above.begin(), above.end(), id) != above.end()) continue;
      Folder below{.path = path + "/", .ancestors = above};
      below.ancestors.push_back(id);
      folders->push_back(std::move(below));
    } else if (S_ISREG(st.st_mode) && path.size() >= prefix.size() &&
               (start_after.empty() || path > start_after)) {
      found->push_back({std::move(path), IdentityOfStat(st)});
    }
  }
}

}  // namespace

Status StatFailed(int error_number, std::string_view path) {
  return ErrnoStatus(error_number == ENOTDIR ? ENOENT : error_number, "cannot stat", path);
}

Identity IdentityOfStat(const struct stat& st) {
  const int64_t mtime_ns =
      static_cast<int64_t>(st.st_mtim.tv_sec) * 1000000000 + st.st_mtim.tv_nsec;
  return {.size_bytes = static_cast<int64_t>(st.st_size),
          .tag = std::to_string(mtime_ns) + "-" + std::to_string(st.st_ino)};
}

Status CheckIdentity(const Identity& pinned, const Identity& now, std::string_view path) {
  if ((pinned.tag.empty() || pinned.tag == now.tag) &&
      (pinned.size_bytes < 0 || pinned.size_bytes == now.size_bytes)) {
    return Status::OK();
  }
  return Stale("the file changed", "path", path, "expected", pinned.tag, "got", now.tag,
               "expected_bytes", pinned.size_bytes, "got_bytes", now.size_bytes);
}

OpenedFile::~OpenedFile() { ::close(fd_); }

std::shared_ptr<const OpenedFile> FileCache::Find(const std::string& path) {
  std::lock_guard lock(mutex_);
  const auto found = by_path_.find(path);
  if (found == by_path_.end()) return nullptr;
  by_use_.splice(by_use_.begin(), by_use_, found->second);
  return found->second->second;
}

void FileCache::Insert(const std::string& path, std::shared_ptr<const OpenedFile> file) {
  std::shared_ptr<const OpenedFile> dropped;  // closed after the lock is gone
  std::lock_guard lock(mutex_);
  const auto found = by_path_.find(path);
  if (found != by_path_.end()) {
    dropped = std::exchange(found->second->second, std::move(file));
    return;
  }
  by_use_.emplace_front(path, std::move(file));
  by_path_.emplace(by_use_.front().first, by_use_.begin());
  if (by_use_.size() > files_max_) {
    by_path_.erase(by_use_.back().first);
    dropped = std::move(by_use_.back().second);
    by_use_.pop_back();
  }
}

void FileCache::Forget(std::string_view path) {
  std::lock_guard lock(mutex_);
  const auto found = by_path_.find(path);
  if (found == by_path_.end()) return;
  const auto entry = found->second;
  by_path_.erase(found);
  by_use_.erase(entry);
}

size_t FileCache::size() {
  std::lock_guard lock(mutex_);
  return by_use_.size();
}

Result<FileNow> FileCache::Open(const std::string& path) {
  FileNow now;
  if (::stat(path.c_str(), &now.st) != 0) {
    const int error_number = errno;
    Forget(path);
    return StatFailed(error_number, path);
  }
  now.file = Find(path);
  if (now.file != nullptr && now.file->Is(now.st)) return now;
  Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (fd.get() < 0) return ErrnoStatus(errno, "cannot open", path);
  // Of the opened file, not of the path, which may name another one by now.
  if (::fstat(fd.get(), &now.st) != 0) return ErrnoStatus(errno, "cannot stat", path);
  if (!S_ISREG(now.st.st_mode)) return NotFound("not a file", "path", path);
  now.file = std::make_shared<OpenedFile>(fd.Release(), now.st.st_dev, now.st.st_ino);
  Insert(path, now.file);
  return now;
}

Result<std::unique_ptr<TemporaryFile>> TemporaryFile::Create(std::string_view final_path) {
  const std::string folder = FolderOf(final_path);
  const std::string_view name = final_path.substr(final_path.rfind('/') + 1);
  if (name.empty() || name == "." || name == "..") {
    return InvalidArgument("not the path of a file", "path", final_path);
  }
  const std::string path =
      folder + "/." + std::string(name.substr(0, 200)) + "." + UniqueSuffix() + ".tmp";
  constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC;
  int fd = ::open(path.c_str(), kFlags, 0666);
  if (fd < 0 && errno == ENOENT) {
    ARROW_RETURN_NOT_OK(MakeFolders(folder));
    fd = ::open(path.c_str(), kFlags, 0666);
  }
  if (fd < 0) return ErrnoStatus(errno, "cannot create", path);
  return std::unique_ptr<TemporaryFile>(new TemporaryFile(fd, path, std::string(final_path)));
}

TemporaryFile::~TemporaryFile() {
  if (fd_ >= 0) ::close(fd_);
  if (!path_.empty()) ::unlink(path_.c_str());
}

Status TemporaryFile::Append(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd_, bytes.data(), bytes.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      return ErrnoStatus(errno, "cannot write", path_);
    }
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return Status::OK();
}

Status TemporaryFile::GiveFinalName(PutMode mode) {
  if (mode == PutMode::kOverwrite) {
    if (::rename(path_.c_str(), final_path_.c_str()) != 0) {
      return ErrnoStatus(errno, "cannot rename to", final_path_);
    }
    path_.clear();
    return Status::OK();
  }
  if (::link(path_.c_str(), final_path_.c_str()) == 0) {
    ::unlink(path_.c_str());
    path_.clear();
    return Status::OK();
  }
  int error_number = errno;
  if (error_number == EPERM || error_number == ENOTSUP || error_number == ENOSYS) {
    // A file system without hard links: a rename that refuses to replace is as good.
    if (::renameat2(AT_FDCWD, path_.c_str(), AT_FDCWD, final_path_.c_str(), RENAME_NOREPLACE) ==
        0) {
      path_.clear();
      return Status::OK();
    }
    error_number = errno;
    if (error_number == EINVAL || error_number == ENOSYS) {
      return Unsupported("the file system can neither link nor rename without replacing", "path",
                         final_path_);
    }
  }
  if (error_number == EEXIST) return Conflict("the file exists", "path", final_path_);
  return ErrnoStatus(error_number, "cannot link to", final_path_);
}

Result<Identity> TemporaryFile::Publish(PutMode mode) {
  if (fd_ < 0) return InvalidArgument("the file is finished", "path", final_path_);
  if (::fsync(fd_) != 0) return ErrnoStatus(errno, "cannot sync", path_);
  GREBE_FAILPOINT("store.local.before_name");
  ARROW_RETURN_NOT_OK(GiveFinalName(mode));
  GREBE_FAILPOINT("store.local.before_folder_sync");
  ARROW_RETURN_NOT_OK(SyncFolder(FolderOf(final_path_)));
  struct stat st;
  if (::fstat(fd_, &st) != 0) return ErrnoStatus(errno, "cannot stat", final_path_);
  ::close(std::exchange(fd_, -1));
  return IdentityOfStat(st);
}

Status RenameFile(const std::string& from, const std::string& to) {
  ARROW_RETURN_NOT_OK(MakeFolders(FolderOf(to)));
  if (::rename(from.c_str(), to.c_str()) != 0) return ErrnoStatus(errno, "cannot rename to", to);
  return SyncFolder(FolderOf(to));
}

Result<std::vector<Object>> ListFiles(std::string_view prefix, std::string_view start_after) {
  const size_t slash = prefix.rfind('/');
  if (slash == std::string_view::npos) {
    return InvalidArgument("a prefix of files is an absolute path", "prefix", prefix);
  }
  std::vector<Object> found;
  std::vector<Folder> folders;
  folders.push_back({.path = std::string(prefix.substr(0, slash + 1)), .ancestors = {}});
  struct stat st;
  if (::stat(folders.back().path.c_str(), &st) == 0) {
    folders.back().ancestors.emplace_back(st.st_dev, st.st_ino);
  }
  while (!folders.empty()) {
    const Folder folder = std::move(folders.back());
    folders.pop_back();
    ARROW_RETURN_NOT_OK(ListFolder(folder, prefix, start_after, &found, &folders));
  }
  std::sort(found.begin(), found.end(),
            [](const Object& a, const Object& b) { return a.path < b.path; });
  return found;
}

}  // namespace grebe::store

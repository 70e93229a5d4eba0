#include "base/spill_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "grebe/system_error.h"

namespace grebe {

SpillFile::~SpillFile() {
  if (fd_ >= 0) close(fd_);
}

Status SpillFile::Open() {
  std::string folder = folder_;
  if (folder.empty()) {
    const char* named = std::getenv("TMPDIR");
    folder = named != nullptr && *named != '\0' ? named : "/tmp";
  }
  fd_ = open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (fd_ >= 0) {
    folder_ = std::move(folder);
    return Status::OK();
  }
  // Filesystems without nameless files: the name goes before the first byte is written.
  std::string path = folder + "/grebe-spill-XXXXXX";
  fd_ = mkostemp(path.data(), O_CLOEXEC);
  if (fd_ < 0) return ErrnoStatus(errno, "cannot make a spill file", folder);
  if (unlink(path.c_str()) != 0) return ErrnoStatus(errno, "cannot unlink a spill file", path);
  folder_ = std::move(folder);
  return Status::OK();
}

Result<int64_t> SpillFile::Append(std::string_view bytes) {
  std::call_once(once_, [this] { opened_ = Open(); });
  ARROW_RETURN_NOT_OK(opened_);
  const int64_t begin = end_.fetch_add(static_cast<int64_t>(bytes.size()));
  int64_t at = begin;
  while (!bytes.empty()) {
    const ssize_t written = pwrite(fd_, bytes.data(), bytes.size(), at);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      return ErrnoStatus(written < 0 ? errno : ENOSPC, "cannot write a spill file", folder_);
    }
    bytes.remove_prefix(static_cast<size_t>(written));
    at += written;
  }
  return begin;
}

Status SpillFile::Read(int64_t offset_bytes, size_t size_bytes, char* out) const {
  while (size_bytes > 0) {
    const ssize_t got = pread(fd_, out, size_bytes, offset_bytes);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return ErrnoStatus(errno, "cannot read a spill file", folder_);
    if (got == 0) return Internal("spill file is too short", "offset_bytes", offset_bytes);
    out += got;
    offset_bytes += got;
    size_bytes -= static_cast<size_t>(got);
  }
  return Status::OK();
}

}  // namespace grebe

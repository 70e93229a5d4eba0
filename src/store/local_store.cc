#include "store/local_store.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <thread>
#include <utility>
#include <vector>

#include "grebe/system_error.h"
#include "store/local_files.h"
#include "store/work_pool.h"

namespace grebe::store {
namespace {

// A unit of work is a run of requests: as many as one thread does before it is worth another's
// while to wake up (about 5 us).
constexpr size_t kUnitRequestsMax = 8;
constexpr int64_t kUnitBytesMax = 512 << 10;

using Answer = Result<std::shared_ptr<arrow::Buffer>>;

// Reads [at, at + left) of fd on top of what has been read. 0: done. -1: end of file. Otherwise
// an errno. cached_only: EAGAIN when bytes are missing from the page cache.
struct Transfer {
  uint8_t* to = nullptr;
  int64_t at = 0;
  int64_t left = 0;
  int error_number = 0;

  void Run(int fd, bool cached_only);
};

std::atomic<bool> cached_only_works{true};

void Transfer::Run(int fd, bool cached_only) {
  while (left > 0) {
    ssize_t got;
    if (cached_only) {
      iovec part{to, static_cast<size_t>(left)};
      got = ::preadv2(fd, &part, 1, at, RWF_NOWAIT);
    } else {
      got = ::pread(fd, to, static_cast<size_t>(left), at);
    }
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) {
      error_number = got < 0 ? errno : -1;
      return;
    }
    to += got;
    at += got;
    left -= got;
  }
  error_number = 0;
}

struct Unit {
  size_t begin = 0;
  size_t end = 0;
};

class MappedBuffer final : public arrow::Buffer {
 public:
  MappedBuffer(const uint8_t* data, int64_t size) : arrow::Buffer(data, size) {}
  ~MappedBuffer() override {
    ::munmap(const_cast<uint8_t*>(data()), static_cast<size_t>(size()));
  }
};

class LocalUpload final : public Upload {
 public:
  explicit LocalUpload(std::unique_ptr<TemporaryFile> file) : file_(std::move(file)) {}
  Status Append(std::string_view bytes) override { return file_->Append(bytes); }
  Result<Identity> Finish() override { return file_->Publish(PutMode::kOverwrite); }

 private:
  std::unique_ptr<TemporaryFile> file_;
};

class LocalStore final : public Store {
 public:
  LocalStore(int threads, int open_files_max)
      : files_(static_cast<size_t>(open_files_max)), pool_(threads - 1) {}

  std::string_view kind() const override { return "file"; }
  // A pread of cached bytes costs about 1 us, and so do copying and crossing 6 KiB for nothing.
  ReadCosts read_costs() const override { return {.gap_bytes_max = 6 << 10}; }
  std::string Uri(std::string_view path) const override { return std::string(path); }

  void ReadEach(std::span<const ReadRequest> requests, const ReadCallback& on_read) override;
  std::vector<Result<WholeObject>> ReadWhole(std::span<const std::string> paths) override;

  Result<std::vector<Object>> List(std::string_view prefix,
                                   std::string_view start_after) override {
    return ListFiles(prefix, start_after);
  }

  Result<Object> Stat(std::string_view path) override {
    const std::string name(path);
    struct stat st;
    if (::stat(name.c_str(), &st) != 0) return StatFailed(errno, path);
    if (!S_ISREG(st.st_mode)) return NotFound("not a file", "path", path);
    return Object{name, IdentityOfStat(st)};
  }

  Result<Identity> Put(std::string_view path, std::string_view bytes, PutMode mode) override {
    ARROW_ASSIGN_OR_RAISE(const std::unique_ptr<TemporaryFile> file, TemporaryFile::Create(path));
    ARROW_RETURN_NOT_OK(file->Append(bytes));
    return file->Publish(mode);
  }

  Result<std::unique_ptr<Upload>> StartUpload(std::string_view path) override {
    ARROW_ASSIGN_OR_RAISE(std::unique_ptr<TemporaryFile> file, TemporaryFile::Create(path));
    return std::make_unique<LocalUpload>(std::move(file));
  }

  Status Delete(std::string_view path) override {
    files_.Forget(path);
    if (::unlink(std::string(path).c_str()) == 0) return Status::OK();
    if (errno == ENOENT || errno == ENOTDIR) return Status::OK();
    return ErrnoStatus(errno, "cannot delete", path);
  }

  bool can_rename() const override { return true; }
  Status Rename(std::string_view from, std::string_view to) override {
    files_.Forget(from);
    files_.Forget(to);
    return RenameFile(std::string(from), std::string(to));
  }

  // Links in the folder are removed, never what they lead to.
  Status DeleteFolder(std::string_view path) override {
    std::error_code error;
    std::filesystem::remove_all(std::filesystem::path(path), error);
    return error ? ErrnoStatus(error.value(), "cannot remove the folder", path) : Status::OK();
  }

  Result<std::shared_ptr<arrow::Buffer>> Map(const Object& object) override;

 private:
  struct Wave {
    std::span<const ReadRequest> requests;
    const ReadCallback& on_read;
    std::vector<Unit> units;
    std::atomic<bool> announced{false};
  };

  Result<FileNow> OpenChecked(const Object& object);
  void RunUnit(Wave* wave, size_t unit);
  void ReadRun(Wave* wave, Unit run);
  void Transfers(Wave* wave, int fd, size_t later_begin, std::vector<Transfer>* transfers);
  void Announce(Wave* wave, size_t begin);
  Result<WholeObject> ReadAll(const std::string& path);

  FileCache files_;
  WorkPool pool_;
};

std::vector<Unit> CutIntoUnits(std::span<const ReadRequest> requests) {
  std::vector<Unit> units;
  int64_t bytes = 0;
  for (size_t i = 0; i < requests.size(); ++i) {
    if (units.empty() || units.back().end - units.back().begin == kUnitRequestsMax ||
        bytes + requests[i].range.size_bytes() > kUnitBytesMax) {
      units.push_back({i, i});
      bytes = 0;
    }
    units.back().end = i + 1;
    bytes += requests[i].range.size_bytes();
  }
  return units;
}

bool SameObject(const ReadRequest& a, const ReadRequest& b) {
  return a.object == b.object ||
         (a.object->path == b.object->path && a.object->identity == b.object->identity);
}

void LocalStore::ReadEach(std::span<const ReadRequest> requests, const ReadCallback& on_read) {
  Wave wave{.requests = requests, .on_read = on_read, .units = CutIntoUnits(requests)};
  pool_.ParallelFor(wave.units.size(), [&](size_t unit) { RunUnit(&wave, unit); });
}

void LocalStore::RunUnit(Wave* wave, size_t unit) {
  const Unit whole = wave->units[unit];
  for (size_t begin = whole.begin; begin < whole.end;) {
    size_t end = begin + 1;
    while (end < whole.end && SameObject(wave->requests[begin], wave->requests[end])) ++end;
    ReadRun(wave, {begin, end});
    begin = end;
  }
}

Result<FileNow> LocalStore::OpenChecked(const Object& object) {
  ARROW_ASSIGN_OR_RAISE(FileNow now, files_.Open(object.path));
  ARROW_RETURN_NOT_OK(CheckIdentity(object.identity, IdentityOfStat(now.st), object.path));
  return now;
}

// Tells the kernel of every range from request `begin` on, so that the device works on all of
// them at once. Errors do not matter: the reads will meet them.
void LocalStore::Announce(Wave* wave, size_t begin) {
  for (size_t i = begin; i < wave->requests.size();) {
    size_t end = i + 1;
    while (end < wave->requests.size() &&
           SameObject(wave->requests[i], wave->requests[end])) {
      ++end;
    }
    if (const Result<FileNow> now = files_.Open(wave->requests[i].object->path); now.ok()) {
      for (size_t r = i; r < end; ++r) {
        const ByteRange range = wave->requests[r].range;
        ::posix_fadvise(now->file->fd(), range.begin, range.size_bytes(), POSIX_FADV_WILLNEED);
      }
    }
    i = end;
  }
}

Status CheckRange(const ReadRequest& request, int64_t size_bytes) {
  const ByteRange range = request.range;
  if (range.begin < 0 || range.end < range.begin) {
    return InvalidArgument("a malformed range", "begin", range.begin, "end", range.end);
  }
  if (range.end > size_bytes) {
    return Corrupt("a range past the end of the file", "path", request.object->path, "end",
                   range.end, "size_bytes", size_bytes);
  }
  return Status::OK();
}

// Makes room for one request's answer. An answer that is not OK needs no transfer.
Answer Prepare(const ReadRequest& request, const Result<FileNow>& opened, Transfer* transfer) {
  if (request.range.begin == request.range.end) {
    return std::make_shared<arrow::Buffer>(nullptr, 0);
  }
  ARROW_RETURN_NOT_OK(opened.status());
  ARROW_RETURN_NOT_OK(CheckRange(request, opened->st.st_size));
  const int64_t size_bytes = request.range.size_bytes();
  ARROW_ASSIGN_OR_RAISE(std::unique_ptr<arrow::Buffer> buffer, arrow::AllocateBuffer(size_bytes));
  *transfer = {.to = buffer->mutable_data(), .at = request.range.begin, .left = size_bytes};
  return std::shared_ptr<arrow::Buffer>(std::move(buffer));
}

// First what lies in the page cache; then, announced together, what has to come from the device.
void LocalStore::Transfers(Wave* wave, int fd, size_t later_begin,
                           std::vector<Transfer>* transfers) {
  bool missing = false;
  for (Transfer& transfer : *transfers) {
    if (transfer.left == 0 || !cached_only_works.load(std::memory_order_relaxed)) continue;
    transfer.Run(fd, true);
    if (transfer.error_number == EAGAIN) {
      missing = true;
    } else if (transfer.error_number > 0) {
      cached_only_works.store(false, std::memory_order_relaxed);
    }
  }
  if (missing) {
    for (const Transfer& transfer : *transfers) {
      if (transfer.left == 0) continue;
      ::posix_fadvise(fd, transfer.at, transfer.left, POSIX_FADV_WILLNEED);
    }
    if (!wave->announced.exchange(true)) Announce(wave, later_begin);
  }
  for (Transfer& transfer : *transfers) {
    if (transfer.left > 0) transfer.Run(fd, false);
  }
}

// Overwritten or cut while it was read: then no byte of it is seen.
Status CheckUnchanged(const FileNow& opened, const std::string& path) {
  struct stat after;
  if (::fstat(opened.file->fd(), &after) != 0) return ErrnoStatus(errno, "cannot stat", path);
  const struct stat& before = opened.st;
  if (before.st_size == after.st_size && before.st_mtim.tv_sec == after.st_mtim.tv_sec &&
      before.st_mtim.tv_nsec == after.st_mtim.tv_nsec) {
    return Status::OK();
  }
  return CheckIdentity(IdentityOfStat(before), IdentityOfStat(after), path);
}

// Reads one object's requests [run.begin, run.end), looks at the file again, hands the bytes out.
void LocalStore::ReadRun(Wave* wave, Unit run) {
  const Object& object = *wave->requests[run.begin].object;
  const Result<FileNow> opened = OpenChecked(object);
  const size_t count = run.end - run.begin;
  std::vector<Transfer> transfers(count);
  std::vector<Answer> answers;
  answers.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    answers.push_back(Prepare(wave->requests[run.begin + i], opened, &transfers[i]));
  }
  if (opened.ok()) {
    Transfers(wave, opened->file->fd(), run.end, &transfers);
    for (size_t i = 0; i < count; ++i) {
      if (transfers[i].error_number > 0) {
        answers[i] = ErrnoStatus(transfers[i].error_number, "cannot read", object.path);
      } else if (transfers[i].error_number < 0) {
        answers[i] = Corrupt("the file ends early", "path", object.path);
      }
    }
    if (const Status same = CheckUnchanged(*opened, object.path); !same.ok()) {
      answers.assign(count, same);
    }
  }
  for (size_t i = 0; i < count; ++i) wave->on_read(run.begin + i, std::move(answers[i]));
}

Result<WholeObject> LocalStore::ReadAll(const std::string& path) {
  // A file that changes while it is read is read again; own files are only ever replaced whole.
  constexpr int kAttemptsMax = 5;
  for (int attempt = 0; attempt < kAttemptsMax; ++attempt) {
    ARROW_ASSIGN_OR_RAISE(const FileNow now, files_.Open(path));
    WholeObject whole{.identity = IdentityOfStat(now.st), .bytes = nullptr};
    ARROW_ASSIGN_OR_RAISE(std::unique_ptr<arrow::Buffer> buffer,
                          arrow::AllocateBuffer(now.st.st_size));
    Transfer transfer{.to = buffer->mutable_data(), .at = 0, .left = now.st.st_size};
    transfer.Run(now.file->fd(), false);
    if (transfer.error_number > 0) {
      return ErrnoStatus(transfer.error_number, "cannot read", path);
    }
    struct stat after;
    if (::fstat(now.file->fd(), &after) != 0) return ErrnoStatus(errno, "cannot stat", path);
    if (transfer.left == 0 && IdentityOfStat(after) == whole.identity) {
      whole.bytes = std::move(buffer);
      return whole;
    }
  }
  return Transient("the file keeps changing while it is read", "path", path);
}

std::vector<Result<WholeObject>> LocalStore::ReadWhole(std::span<const std::string> paths) {
  std::vector<Result<WholeObject>> answers(paths.size(), Status::UnknownError("unread"));
  const size_t units = (paths.size() + kUnitRequestsMax - 1) / kUnitRequestsMax;
  pool_.ParallelFor(units, [&](size_t unit) {
    const size_t end = std::min(paths.size(), (unit + 1) * kUnitRequestsMax);
    for (size_t i = unit * kUnitRequestsMax; i < end; ++i) answers[i] = ReadAll(paths[i]);
  });
  return answers;
}

Result<std::shared_ptr<arrow::Buffer>> LocalStore::Map(const Object& object) {
  ARROW_ASSIGN_OR_RAISE(const FileNow now, OpenChecked(object));
  const int64_t size_bytes = now.st.st_size;
  if (size_bytes == 0) return std::make_shared<arrow::Buffer>(nullptr, 0);
  void* const address = ::mmap(nullptr, static_cast<size_t>(size_bytes), PROT_READ, MAP_SHARED,
                               now.file->fd(), 0);
  if (address == MAP_FAILED) return ErrnoStatus(errno, "cannot map", object.path);
  return std::make_shared<MappedBuffer>(static_cast<const uint8_t*>(address), size_bytes);
}

}  // namespace

std::shared_ptr<Store> MakeLocalStore(const LocalStoreOptions& options) {
  int threads = options.threads;
  if (threads <= 0) threads = static_cast<int>(std::thread::hardware_concurrency());
  return std::make_shared<LocalStore>(std::max(threads, 1), std::max(options.open_files_max, 1));
}

}  // namespace grebe::store

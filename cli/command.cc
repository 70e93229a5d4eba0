#include "cli/command.h"

#include <arrow/io/interfaces.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "grebe/error.h"
#include "grebe/system_error.h"

namespace grebe::cli {
namespace {

void OnSignal(int signal) {
  Interrupt().RequestStop();
  std::signal(signal, SIG_DFL);   // the next one ends the process
}

int CodeOf(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kInvalidArgument:
    case ErrorKind::kNotFound: return kUsage;
    case ErrorKind::kCorrupt:
    case ErrorKind::kUnsupported: return kCorruptData;
    case ErrorKind::kStale: return kStaleIndex;
    case ErrorKind::kConflict:
    case ErrorKind::kTransient:
    case ErrorKind::kLimitExceeded:
    case ErrorKind::kPermission: return kStorage;
    case ErrorKind::kCancelled: return kInterrupted;
    case ErrorKind::kInternal: return kInternalError;
  }
  return kInternalError;
}

using WriteFunction = std::function<arrow::Status(arrow::io::OutputStream*)>;

// A file, pipe or stdout, with its errors told by their kinds (Arrow's own streams hide errors of
// stdout, and call every other one an IOError).
class FileSink final : public arrow::io::OutputStream {
 public:
  // file: closed by Close() or with the sink, unless it is stdout.
  FileSink(std::FILE* file, std::string path) : file_(file), path_(std::move(path)) {}
  ~FileSink() override {
    if (file_ != nullptr && file_ != stdout) std::fclose(file_);
  }

  arrow::Status Close() override {
    ARROW_RETURN_NOT_OK(Flush());
    if (file_ == stdout) return arrow::Status::OK();
    return std::fclose(std::exchange(file_, nullptr)) == 0 ? arrow::Status::OK() : Failed(errno);
  }
  bool closed() const override { return file_ == nullptr; }
  arrow::Result<int64_t> Tell() const override { return position_; }
  arrow::Status Write(const void* data, int64_t size) override {
    const auto bytes = static_cast<size_t>(size);
    if (std::fwrite(data, 1, bytes, file_) != bytes) return Failed(errno);
    position_ += size;
    return arrow::Status::OK();
  }
  arrow::Status Flush() override {
    return std::fflush(file_) == 0 ? arrow::Status::OK() : Failed(errno);
  }

 private:
  arrow::Status Failed(int error_number) const {
    // The reader went away, as `head` does: it has all it wants, so there is nothing to report.
    if (error_number == EPIPE) std::_Exit(kReaderGone);
    return ErrnoStatus(error_number, "cannot write", path_);
  }

  std::FILE* file_;
  const std::string path_;
  int64_t position_ = 0;
};

// name: the file as errors call it.
arrow::Status WriteFile(const std::string& path, const std::string& name,
                        const WriteFunction& write) {
  std::FILE* file = std::fopen(path.c_str(), "wb");
  if (file == nullptr) return ErrnoStatus(errno, "cannot create", name);
  FileSink sink(file, name);
  ARROW_RETURN_NOT_OK(write(&sink));
  return sink.Close();
}

}  // namespace

arrow::Status WriteOutput(const Common& common, const WriteFunction& write) {
  if (common.output_path.empty()) {
    FileSink out(stdout, "stdout");
    ARROW_RETURN_NOT_OK(write(&out));
    return out.Close();
  }
  // A link stays a link, and a device or pipe is written to, never replaced by a file.
  std::error_code ignored;
  const auto target = std::filesystem::weakly_canonical(common.output_path, ignored);
  const std::string path = target.empty() ? common.output_path : target.string();
  if (std::filesystem::exists(path, ignored) && !std::filesystem::is_regular_file(path, ignored)) {
    return WriteFile(path, path, write);
  }
  const std::string temporary = path + ".tmp" + std::to_string(getpid());
  const auto write_and_rename = [&]() -> arrow::Status {
    ARROW_RETURN_NOT_OK(WriteFile(temporary, path, write));
    if (std::rename(temporary.c_str(), path.c_str()) != 0) {
      return ErrnoStatus(errno, "cannot rename to", path);
    }
    return arrow::Status::OK();
  };
  const arrow::Status status = write_and_rename();
  if (!status.ok()) std::remove(temporary.c_str());
  return status;
}

StopToken& Interrupt() {
  static StopToken token;
  return token;
}

void InstallInterruptHandler() {
  Interrupt();   // made before a handler can need it
  std::signal(SIGINT, OnSignal);
  std::signal(SIGTERM, OnSignal);
  // Writes to a pipe without a reader, or beyond the size limit of files, fail with an error each.
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
}

void AddSkipFlag(CLI::App* command, bool* skip_bad_files) {
  command->add_flag("--skip-bad-files", *skip_bad_files,
                    "Leave out damaged, unsupported and vanished files, and say which; a file that "
                    "one has no permission to read is an error all the same");
}

void AddTableOptions(CLI::App* command, Common* common) {
  command->add_option("TABLE", common->ref.table_uri, "Folder or URI (file, s3, gs, abfs)")
      ->required();
  command->add_option("--name", common->ref.name,
                      "Index name (default: the key columns, or the only index)");
  command->add_option("--index-root", common->ref.index_root,
                      "Where indexes are kept (default: TABLE/_index)");
  auto& connect = common->ref.connect;
  command->add_option("--s3-endpoint", connect.s3_endpoint, "S3 endpoint, as in http://host:port")
      ->group("Connection");
  command->add_option("--s3-region", connect.s3_region, "S3 region")->group("Connection");
  command->add_option("--connections", connect.s3_connections_max, "Most connections at once")
      ->capture_default_str()->check(CLI::Range(1, 4096))->group("Connection");
  command->add_option("--retries", connect.retries_max, "Attempts beyond the first, per request")
      ->capture_default_str()->check(CLI::Range(0, 100))->group("Connection");
  command->add_option("--timeout-ms", connect.request_timeout_ms, "One attempt of a request")
      ->capture_default_str()->check(CLI::Range(1, 3600000))->group("Connection");
  command->add_option("--hedge-after-us", connect.hedge_after_us,
                      "Ask again when a read takes longer (0: never)")
      ->capture_default_str()->group("Connection");
}

void AddOutputOptions(CLI::App* command, Common* common) {
  command->add_option("--format", common->format,
                      "table, json, jsonl, csv, arrow or parquet (default: table on a terminal, "
                      "else jsonl)")
      ->check(CLI::IsMember({"table", "json", "jsonl", "csv", "arrow", "parquet"}));
  command->add_option("-o,--output", common->output_path, "File to write (default: stdout)");
}

arrow::Result<std::vector<std::string>> SplitColumns(const std::string& text) {
  std::vector<std::string> out;
  std::string current;
  bool quoted = false, any = false;
  for (size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '"' && quoted && text.compare(at + 1, 1, "\"") == 0) {
      current += '"';
      ++at;
    } else if (c == '"') {
      quoted = !quoted;
      any = true;
    } else if (c == ',' && !quoted) {
      if (any) out.push_back(std::move(current));
      current.clear();
      any = false;
    } else {
      current += c;
      any = true;
    }
  }
  if (quoted) return arrow::Status::Invalid("columns with an unclosed quote text=", text);
  if (any) out.push_back(std::move(current));
  return out;
}

void OnCommand(CLI::App* command, Common* common, std::function<arrow::Status()> body) {
  command->add_flag("--json-errors", common->json_errors, "Errors as one JSON object on stderr");
  command->callback([common, body = std::move(body)] {
    const arrow::Status status = body();
    if (!status.ok()) common->exit_code = ReportError(status, common->json_errors);
  });
}

arrow::Result<RowFormat> ChooseFormat(const Common& common) {
  if (!common.format.empty()) return ParseRowFormat(common.format);
  const bool terminal = common.output_path.empty() && isatty(STDOUT_FILENO) != 0;
  return terminal ? RowFormat::kTable : RowFormat::kJsonLines;
}

arrow::Status WriteOutput(const Common& common, const arrow::RecordBatch& rows) {
  ARROW_ASSIGN_OR_RAISE(const RowFormat format, ChooseFormat(common));
  return WriteOutput(common, [&](arrow::io::OutputStream* sink) {
    return WriteRows(rows, format, sink);
  });
}

arrow::Status WriteOutput(const Common& common, const std::string& text) {
  return WriteOutput(common,
                     [&](arrow::io::OutputStream* sink) { return sink->Write(text); });
}

arrow::Result<std::string> ReadInput(const std::string& path) {
  if (path == "-") {
    return std::string(std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>());
  }
  std::FILE* file = std::fopen(path.c_str(), "rb");
  if (file == nullptr) return ErrnoStatus(errno, "cannot open", path);
  std::string text;
  char buffer[1 << 16];
  for (size_t got; (got = std::fread(buffer, 1, sizeof(buffer), file)) > 0;) {
    text.append(buffer, got);
  }
  const int error_number = std::ferror(file) != 0 ? errno : 0;
  std::fclose(file);
  if (error_number != 0) return ErrnoStatus(error_number, "cannot read", path);
  return text;
}

int ReportError(const arrow::Status& status, bool json) {
  const ErrorKind kind = KindOf(status);
  const int code = CodeOf(kind);
  if (json) {
    nlohmann::ordered_json object = {{"error", std::string(KindName(kind))},
                                     {"message", status.message()},
                                     {"exit_code", code}};
    std::cerr << object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
  } else {
    std::cerr << "grebe: " << KindName(kind) << ": " << status.message() << "\n";
  }
  return code;
}

}  // namespace grebe::cli

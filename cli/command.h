// What all commands of the command line share: options, output, errors, exit codes.
#pragma once

#include <arrow/record_batch.h>
#include <arrow/result.h>

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

#include "grebe/index.h"
#include "grebe/output.h"
#include "grebe/stop.h"

namespace grebe::cli {

// Exit codes (docs/reference/errors.md).
enum ExitCode {
  kOk = 0,
  kKeyNotFound = 1,     // get --exit-code
  kUsage = 2,           // wrong arguments; no such table, index or column
  kCorruptData = 3,     // damaged or unsupported files
  kStaleIndex = 4,      // a data file changed after it was indexed
  kStorage = 5,         // storage, credentials, conflicts, limits
  kInternalError = 70,  // a bug
  kInterrupted = 130,
  kReaderGone = 141,    // the reader of the output went away: what a shell says of SIGPIPE
};

// Options that several commands take.
struct Common {
  IndexRef ref;
  std::string format;         // empty: table on a terminal, JSON lines in a pipe
  std::string output_path;    // empty: stdout
  bool json_errors = false;
  int exit_code = kOk;
};

// Set by Ctrl-C. A second Ctrl-C ends the process at once.
StopToken& Interrupt();
void InstallInterruptHandler();

// TABLE, --name, --index-root and the connection options.
void AddTableOptions(CLI::App* command, Common* common);
// --skip-bad-files.
void AddSkipFlag(CLI::App* command, bool* skip_bad_files);
// --format and -o.
void AddOutputOptions(CLI::App* command, Common* common);

// "a,b.c" -> {"a", "b.c"}. A comma inside "double quotes" does not separate; a quote inside them is
// written twice, as in --where and --by. Errors: an unclosed quote.
arrow::Result<std::vector<std::string>> SplitColumns(const std::string& text);

// Runs the body when the command was given, and records how it ended.
void OnCommand(CLI::App* command, Common* common, std::function<arrow::Status()> body);

// The format asked for, or the default for where the output goes.
arrow::Result<RowFormat> ChooseFormat(const Common& common);

// Writes rows or text to stdout or -o FILE. A file appears whole or not at all.
arrow::Status WriteOutput(const Common& common, const arrow::RecordBatch& rows);
arrow::Status WriteOutput(const Common& common, const std::string& text);
// The same for whatever the function writes, piece by piece.
arrow::Status WriteOutput(const Common& common,
                          const std::function<arrow::Status(arrow::io::OutputStream*)>& write);

// The whole of a file, or of stdin for "-".
arrow::Result<std::string> ReadInput(const std::string& path);

// Prints the error to stderr (as text, or one JSON object) and gives its exit code.
int ReportError(const arrow::Status& status, bool json);

void AddIndexCommands(CLI::App* app, Common* common);
void AddGetCommands(CLI::App* app, Common* common);
void AddScanCommand(CLI::App* app, Common* common);
void AddBenchCommands(CLI::App* app, Common* common);
void AddInspectCommand(CLI::App* app, Common* common);
void AddLayoutCommands(CLI::App* app, Common* common);
void AddCompletionCommand(CLI::App* app, Common* common);

}  // namespace grebe::cli

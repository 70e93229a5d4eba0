// The command line: a door that parses arguments, calls include/grebe and prints. It decides
// nothing.
#include <algorithm>
#include <iostream>
#include <string>
#include <string_view>

#include "cli/command.h"
#include "grebe/version.h"

namespace {

// What was wrong with the arguments; of a command that does not exist CLI11 says only that one is
// required.
std::string MessageOf(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App* at = &app;
  std::string name;
  while (!at->get_subcommands().empty()) {
    at = at->get_subcommands().back();
    name += at->get_name() + " ";
  }
  if (at->get_require_subcommand_min() == 0) return error.what();
  for (const std::string& word : at->remaining()) {
    if (!word.starts_with('-')) return "there is no command '" + name + word + "'";
  }
  return error.what();
}

}  // namespace

int main(int argc, char** argv) {
  using namespace grebe::cli;
  CLI::App app{"Grebe: point queries straight from a Parquet lake"};
  app.name("grebe");
  app.set_version_flag("--version", std::string("grebe ") + grebe::Version());
  app.set_help_all_flag("--help-all", "Help of every command");
  app.require_subcommand(1);
  app.failure_message(CLI::FailureMessage::help);

  Common common;
  AddIndexCommands(&app, &common);
  AddGetCommands(&app, &common);
  AddScanCommand(&app, &common);
  AddInspectCommand(&app, &common);
  AddBenchCommands(&app, &common);
  AddLayoutCommands(&app, &common);
  AddCompletionCommand(&app, &common);

  InstallInterruptHandler();
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {   // --help, --version
    return app.exit(success);
  } catch (const CLI::ParseError& error) {
    const std::string message = MessageOf(app, error);
    if (std::find(argv, argv + argc, std::string_view("--json-errors")) != argv + argc) {
      return ReportError(arrow::Status::Invalid(message), /*json=*/true);
    }
    std::cerr << "grebe: " << message << "\nTry 'grebe --help', or --help after a command.\n";
    return kUsage;
  }
  return common.exit_code;
}

// grebe layout: the group of commands that measure and rewrite how a table's rows lie.
#include "cli/layout_command.h"

namespace grebe::cli {

void AddLayoutCommands(CLI::App* app, Common* common) {
  CLI::App* layout =
      app->add_subcommand("layout", "Measure, plan and change how a table's rows lie");
  layout->require_subcommand(1);
  AddLayoutReportCommands(layout, common);
}

void AddLayoutTableOptions(CLI::App* command, Common* common) {
  AddTableOptions(command, common);
  command->remove_option(command->get_option("--name"));
  command->remove_option(command->get_option("--index-root"));
}

}  // namespace grebe::cli

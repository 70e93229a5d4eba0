// grebe layout: the group of commands that measure and rewrite how a table's rows lie.
#include "cli/layout_command.h"

namespace grebe::cli {

void AddLayoutCommands(CLI::App* app, Common* common) {
  CLI::App* layout =
      app->add_subcommand("layout", "Measure, plan and change how a table's rows lie");
  layout->require_subcommand(1);
  AddLayoutReportCommands(layout, common);
  AddLayoutPlanCommands(layout, common);
  AddLayoutRewriteCommand(layout, common);
  AddLayoutAdviseCommand(layout, common);
}

void AddLayoutTableOptions(CLI::App* command, Common* common) {
  AddTableOptions(command, common);
  command->remove_option(command->get_option("--name"));
  command->remove_option(command->get_option("--index-root"));
}

CLI::Option* AddQueriesOption(CLI::App* command, std::string* path) {
  return command->add_option(
      "--queries", *path,
      "Query log (-: stdin): one predicate a line, with a count before or after it");
}

LayoutTable LayoutTableOf(const Common& common, LayoutTable table) {
  table.table_uri = common.ref.table_uri;
  table.connect = common.ref.connect;
  table.stop = &Interrupt();
  return table;
}

void AddTextOrJson(CLI::App* command, Common* common) {
  command->add_option("--format", common->format,
                      "table or json (default: table on a terminal, else json)")
      ->check(CLI::IsMember({"table", "json"}));
  command->add_option("-o,--output", common->output_path, "File to write (default: stdout)");
}

}  // namespace grebe::cli

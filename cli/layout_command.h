// What the commands of the group `grebe layout` share.
#pragma once

#include "cli/command.h"
#include "grebe/layout.h"

namespace grebe::cli {

// TABLE and the connection options: layout commands know no index.
void AddLayoutTableOptions(CLI::App* command, Common* common);

// --queries: a query log.
CLI::Option* AddQueriesOption(CLI::App* command, std::string* path);

// The table of the command line.
LayoutTable LayoutTableOf(const Common& common, LayoutTable table);

// --format table or json, and -o.
void AddTextOrJson(CLI::App* command, Common* common);

// Writes an answer that has ToText() and ToJson() as asked.
template <class Answer>
arrow::Status WriteLayoutAnswer(const Common& common, const Answer& answer) {
  ARROW_ASSIGN_OR_RAISE(const RowFormat format, ChooseFormat(common));
  return WriteOutput(common, format == RowFormat::kTable ? answer.ToText() : answer.ToJson());
}

void AddLayoutAdviseCommand(CLI::App* layout, Common* common);
void AddLayoutPlanCommands(CLI::App* layout, Common* common);
void AddLayoutReportCommands(CLI::App* layout, Common* common);
void AddLayoutRewriteCommand(CLI::App* layout, Common* common);

}  // namespace grebe::cli

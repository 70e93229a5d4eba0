// What the commands of the group `grebe layout` share.
#pragma once

#include "cli/command.h"

namespace grebe::cli {

// TABLE and the connection options: layout commands know no index.
void AddLayoutTableOptions(CLI::App* command, Common* common);

void AddLayoutReportCommands(CLI::App* layout, Common* common);

}  // namespace grebe::cli

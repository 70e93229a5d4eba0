// grebe inspect FILE.parquet
#include "cli/command.h"

namespace grebe::cli {
namespace {

struct InspectFlags {
  std::string file;
  bool pages = false;
};

}  // namespace

void AddInspectCommand(CLI::App* app, Common* common) {
  static InspectFlags flags;
  CLI::App* command = app->add_subcommand("inspect", "What a Parquet file holds");
  command->add_option("FILE", flags.file, "Path or URI of a Parquet file")->required();
  command->add_flag("--pages", flags.pages, "Every page: place, size, rows");
  command->add_option("--s3-endpoint", common->ref.connect.s3_endpoint, "S3 endpoint")
      ->group("Connection");
  command->add_option("--s3-region", common->ref.connect.s3_region, "S3 region")
      ->group("Connection");
  command->add_option("--format", common->format, "table or json")
      ->check(CLI::IsMember({"table", "json"}));
  command->add_option("-o,--output", common->output_path, "File to write (default: stdout)");
  OnCommand(command, common, [=]() -> arrow::Status {
    ARROW_ASSIGN_OR_RAISE(const RowFormat format, ChooseFormat(*common));
    ARROW_ASSIGN_OR_RAISE(const std::string text,
                          InspectFile(flags.file, flags.pages, format != RowFormat::kTable,
                                      common->ref.connect));
    return WriteOutput(*common, text);
  });
}

}  // namespace grebe::cli

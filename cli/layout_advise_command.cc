// grebe layout advise
#include "cli/layout_command.h"
#include "cli/number_option.h"
#include "grebe/layout.h"

namespace grebe::cli {
namespace {

// They live as long as the app.
struct AdviseFlags {
  LayoutTable table;
  LayoutAdviceOptions options;
  std::string queries;
};

arrow::Status RunAdvise(const Common& common, const AdviseFlags& flags) {
  LayoutAdviceOptions options = flags.options;
  ARROW_ASSIGN_OR_RAISE(options.queries, ReadInput(flags.queries));
  if (flags.queries != "-") options.queries_path = flags.queries;
  ARROW_ASSIGN_OR_RAISE(const LayoutAdvice advice,
                        AdviseLayout(LayoutTableOf(common, flags.table), options));
  return WriteLayoutAnswer(common, advice);
}

}  // namespace

void AddLayoutAdviseCommand(CLI::App* layout, Common* common) {
  static AdviseFlags flags;
  CLI::App* command = layout->add_subcommand(
      "advise", "Which layout would let logged queries read least, tried on a sample");
  AddLayoutTableOptions(command, common);
  AddQueriesOption(command, &flags.queries)->required();
  command->add_option("--sample", flags.options.sample_rows, "Rows to try layouts on, about")
      ->capture_default_str()->check(AtLeast(1));
  command->add_option("--target-file-size", flags.options.target_file_bytes,
                      "Bytes of a file, about (default: as the table's files)")
      ->transform(Size(0));
  AddSkipFlag(command, &flags.table.skip_bad_files);
  AddTextOrJson(command, common);
  OnCommand(command, common, [=] { return RunAdvise(*common, flags); });
}

}  // namespace grebe::cli

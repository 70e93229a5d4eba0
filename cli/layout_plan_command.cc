// grebe layout plan and grebe layout simulate
#include "cli/layout_command.h"
#include "cli/number_option.h"
#include "grebe/layout.h"

namespace grebe::cli {
namespace {

// They live as long as the app.
struct PlanFlags {
  LayoutTable table;
  LayoutPlanOptions options;
  std::string by;
};

arrow::Status RunPlan(const Common& common, const PlanFlags& flags) {
  LayoutPlanOptions options = flags.options;
  ARROW_ASSIGN_OR_RAISE(options.columns, SplitColumns(flags.by));
  ARROW_ASSIGN_OR_RAISE(const LayoutPlan plan,
                        PlanLayout(LayoutTableOf(common, flags.table), options));
  return WriteLayoutAnswer(common, plan);
}

void AddPlan(CLI::App* layout, Common* common) {
  static PlanFlags flags;
  CLI::App* command = layout->add_subcommand(
      "plan", "Which files to rewrite so that their ranges overlap less; writes nothing");
  AddLayoutTableOptions(command, common);
  command->add_option("--by", flags.by,
                      "Columns that part the files: of sort(a,b) only the first, a; of a curve "
                      "all, as in a,b.c, measured jointly")
      ->required();
  command->add_option("--budget", flags.options.budget_bytes, "Most bytes to rewrite")
      ->transform(Size(0));
  command->add_option("--weight", flags.options.weight_min,
                      "Least weight of other files on a file; higher rewrites less")
      ->capture_default_str()->check(MoreThanZero());
  AddSkipFlag(command, &flags.table.skip_bad_files);
  AddTextOrJson(command, common);
  OnCommand(command, common, [=] { return RunPlan(*common, flags); });
}

void AddSimulate(CLI::App* layout, Common* common) {
  static ReplayOptions options;
  CLI::App* command = layout->add_subcommand(
      "simulate", "Replay appends and their upkeep on a synthetic table: depth and bytes written");
  command->add_option("--appends", options.appends, "Appends, one file each")
      ->capture_default_str()->check(AtLeast(1));
  command->add_option("--arrival", options.arrival,
                      "Where appended keys lie: spread, time (in order) or late (a tenth is late)")
      ->capture_default_str()->check(CLI::IsMember({"spread", "time", "late"}));
  command->add_option("--upkeep", options.upkeep, "plan, tiered, levelled or none")
      ->capture_default_str()->check(CLI::IsMember({"plan", "tiered", "levelled", "none"}));
  command->add_option("--runs", options.runs, "Runs a level, of tiered and levelled")
      ->capture_default_str()->check(CLI::Range(2, 1000));
  command->add_option("--weight", options.weight_min, "As of grebe layout plan")
      ->capture_default_str()->check(MoreThanZero());
  command->add_option("--seed", options.seed, "Of the keys")->capture_default_str();
  AddTextOrJson(command, common);
  OnCommand(command, common, [=]() -> arrow::Status {
    ARROW_ASSIGN_OR_RAISE(const ReplayReport report, ReplayUpkeep(options));
    return WriteLayoutAnswer(*common, report);
  });
}

}  // namespace

void AddLayoutPlanCommands(CLI::App* layout, Common* common) {
  AddPlan(layout, common);
  AddSimulate(layout, common);
}

}  // namespace grebe::cli

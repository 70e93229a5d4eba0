// grebe index create | refresh | list | show | verify | compact | drop
#include <iostream>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/number_option.h"
#include "cli/progress.h"

namespace grebe::cli {
namespace {

using Json = nlohmann::ordered_json;

// Options of the commands that build; they live as long as the app.
struct BuildFlags {
  BuildOptions options;
  std::string key, covering;
  bool sorted = false;
  bool all = false;
  bool clean = false;
  VerifyOptions verify;
};

void AddBuildOptions(CLI::App* command, BuildFlags* flags) {
  command->add_option("--memory", flags->options.memory_bytes_max,
                      "Bytes of build buffers; beyond it the build spills to disk")
      ->capture_default_str()->transform(Size(int64_t{1} << 20, int64_t{1} << 40));
  command->add_option("--spill-folder", flags->options.spill_folder, "Where a build spills");
  command->add_option("--threads", flags->options.threads, "0: one per core")
      ->check(CLI::Range(0, 1024));
  flags->options.stop = &Interrupt();
}

std::string SummaryText(const BuildSummary& summary) {
  Json json = {{"index", summary.name},
               {"version", summary.version},
               {"changed", summary.changed},
               {"files_added", summary.files_added},
               {"files_removed", summary.files_removed},
               {"rows_added", summary.rows_added},
               {"index_bytes_written", summary.index_bytes_written},
               {"fragments_merged", summary.fragments_merged}};
  Json skipped = Json::array();
  for (const auto& file : summary.skipped) {
    skipped.push_back({{"path", file.path}, {"reason", file.reason}});
  }
  json["skipped"] = std::move(skipped);
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

arrow::Status ReportSummary(const Common& common, const BuildSummary& summary) {
  for (const auto& file : summary.skipped) {
    std::cerr << "grebe: skipped " << file.path << ": " << file.reason << "\n";
  }
  return WriteOutput(common, SummaryText(summary));
}

void AddCreate(CLI::App* index, Common* common, BuildFlags* flags) {
  CLI::App* command = index->add_subcommand("create", "Build an index of a table's keys");
  AddTableOptions(command, common);
  command->add_option("--key", flags->key, "Key columns, as in a,b.c")->required();
  command->add_option("--covering", flags->covering,
                      "Columns whose values the index keeps: asking for them reads no data file");
  command->add_flag("--sorted", flags->sorted,
                    "Also keep the keys in order, so that ranges of keys can be looked up");
  AddBuildOptions(command, flags);
  AddSkipFlag(command, &flags->options.skip_bad_files);
  OnCommand(command, common, [=]() -> arrow::Status {
    CreateOptions options;
    ARROW_ASSIGN_OR_RAISE(options.key, SplitColumns(flags->key));
    ARROW_ASSIGN_OR_RAISE(options.covering, SplitColumns(flags->covering));
    options.sorted = flags->sorted;
    options.build = flags->options;
    arrow::Result<BuildSummary> summary = [&] {
      ProgressBar bar;
      options.build.progress = bar.Callback();
      return CreateIndex(common->ref, options);
    }();
    ARROW_RETURN_NOT_OK(summary.status());
    return ReportSummary(*common, *summary);
  });
}

void AddRefresh(CLI::App* index, Common* common, BuildFlags* flags) {
  CLI::App* command =
      index->add_subcommand("refresh", "Index new files, drop vanished ones");
  AddTableOptions(command, common);
  AddBuildOptions(command, flags);
  AddSkipFlag(command, &flags->options.skip_bad_files);
  OnCommand(command, common, [=]() -> arrow::Status {
    arrow::Result<BuildSummary> summary = [&] {
      ProgressBar bar;
      BuildOptions options = flags->options;
      options.progress = bar.Callback();
      return RefreshIndex(common->ref, options);
    }();
    ARROW_RETURN_NOT_OK(summary.status());
    return ReportSummary(*common, *summary);
  });
}

void AddCompact(CLI::App* index, Common* common, BuildFlags* flags) {
  CLI::App* command = index->add_subcommand("compact", "Merge fragments in size tiers");
  AddTableOptions(command, common);
  AddBuildOptions(command, flags);
  command->add_flag("--all", flags->all, "Merge all fragments into one");
  OnCommand(command, common, [=]() -> arrow::Status {
    ARROW_ASSIGN_OR_RAISE(auto summary, CompactIndex(common->ref, flags->options, flags->all));
    return ReportSummary(*common, summary);
  });
}

void AddList(CLI::App* index, Common* common) {
  CLI::App* command = index->add_subcommand("list", "The indexes of a table, one JSON line each");
  AddTableOptions(command, common);
  OnCommand(command, common, [=]() -> arrow::Status {
    ARROW_ASSIGN_OR_RAISE(auto all, ListIndexes(common->ref));
    std::string text;
    for (const auto& description : all) {
      text += Json({{"name", description.name},
                    {"version", description.version},
                    {"key", description.key},
                    {"files", description.files},
                    {"rows", description.rows},
                    {"index_bytes", description.index_bytes},
                    {"fragments", description.fragments.size()}})
                  .dump() + "\n";
    }
    return WriteOutput(*common, text);
  });
}

void AddShow(CLI::App* index, Common* common) {
  CLI::App* command = index->add_subcommand("show", "One index in full, as JSON");
  AddTableOptions(command, common);
  OnCommand(command, common, [=]() -> arrow::Status {
    ARROW_ASSIGN_OR_RAISE(auto description, ShowIndex(common->ref));
    return WriteOutput(*common, description.ToJson() + "\n");
  });
}

void AddVerify(CLI::App* index, Common* common, BuildFlags* flags) {
  CLI::App* command = index->add_subcommand(
      "verify", "Check every data file's identity and every checksum of the index");
  AddTableOptions(command, common);
  command->add_flag("--clean", flags->verify.clean, "Remove what killed builds left");
  command->add_option("--orphan-age", flags->verify.orphan_age_seconds,
                      "Seconds before an unreferenced object counts as left over")
      ->capture_default_str()->check(AtLeast(0));
  OnCommand(command, common, [=]() -> arrow::Status {
    ARROW_ASSIGN_OR_RAISE(auto report, VerifyIndex(common->ref, flags->verify));
    ARROW_RETURN_NOT_OK(WriteOutput(*common, report.ToJson() + "\n"));
    if (!report.corrupt.empty()) {
      common->exit_code = kCorruptData;
    } else if (!report.ok()) {
      common->exit_code = kStaleIndex;
    }
    return arrow::Status::OK();
  });
}

void AddDrop(CLI::App* index, Common* common) {
  CLI::App* command = index->add_subcommand("drop", "Remove an index");
  AddTableOptions(command, common);
  OnCommand(command, common, [=] { return DropIndex(common->ref); });
}

}  // namespace

void AddIndexCommands(CLI::App* app, Common* common) {
  static BuildFlags flags;
  CLI::App* index = app->add_subcommand("index", "Build and keep indexes");
  index->require_subcommand(1);
  AddCreate(index, common, &flags);
  AddRefresh(index, common, &flags);
  AddList(index, common);
  AddShow(index, common);
  AddVerify(index, common, &flags);
  AddCompact(index, common, &flags);
  AddDrop(index, common);
}

}  // namespace grebe::cli

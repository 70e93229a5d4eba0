// grebe layout rewrite
#include <iostream>

#include "cli/layout_command.h"
#include "cli/number_option.h"
#include "cli/progress.h"
#include "grebe/rewrite.h"

namespace grebe::cli {
namespace {

// They live as long as the app.
struct RewriteFlags {
  RewriteRequest request;
  std::string index_name, index_key, bloom, files;
};

void AddSizeOptions(CLI::App* command, RewriteFlags* flags) {
  RewriteSizes& sizes = flags->request.sizes;
  command->add_option("--preset", sizes.preset,
                      "analytics: large row groups and pages; serving: small aligned ones")
      ->capture_default_str()->check(CLI::IsMember({"analytics", "serving"}));
  command->add_option("--target-file-size", sizes.target_file_bytes,
                      "Bytes of a file, about (default: 128 MiB)")
      ->transform(Size(1));
  command->add_option("--target-file-rows", sizes.target_file_rows, "Rows of a file, about")
      ->check(AtLeast(1))->excludes("--target-file-size");
  command->add_option("--row-group-rows", sizes.row_group_rows, "Rows of a row group, about")
      ->check(AtLeast(1));
  command->add_option("--page-size", sizes.page_bytes, "Bytes of a page before compression")
      ->transform(Size(1));
  command->add_option("--pages", sizes.pages,
                      "aligned: all columns' pages end at the same rows; per-key: one page a key; "
                      "free (default: the preset's)")
      ->check(CLI::IsMember({"aligned", "per-key", "free"}));
  command->add_option("--bloom", flags->bloom, "Columns that get Bloom filters, as in a,b.c");
}

void AddRunOptions(CLI::App* command, RewriteFlags* flags) {
  RewriteRun& run = flags->request.run;
  command->add_option("--memory", run.memory_bytes_max,
                      "Bytes of memory, at least 128MB; beyond it rows spill to disk")
      ->capture_default_str()->transform(Size(0));
  command->add_option("--spill-folder", run.spill_folder, "Where rows spill");
  command->add_option("--threads", run.threads, "0: one per core")->check(CLI::Range(0, 1024));
  AddSkipFlag(command, &run.skip_bad_files);
  command->add_flag("--dry-run", run.dry_run, "Say what would be done, write nothing");
  run.stop = &Interrupt();
}

arrow::Status Run(const Common& common, RewriteFlags* flags) {
  RewriteRequest& request = flags->request;
  request.table_uri = common.ref.table_uri;
  request.connect = common.ref.connect;
  ARROW_ASSIGN_OR_RAISE(request.index_key, SplitColumns(flags->index_key));
  request.index_name = flags->index_name;
  ARROW_ASSIGN_OR_RAISE(request.sizes.bloom, SplitColumns(flags->bloom));
  if (!flags->files.empty()) {
    ARROW_ASSIGN_OR_RAISE(const std::string plan, ReadInput(flags->files));
    ARROW_ASSIGN_OR_RAISE(request.file_groups, ParsePlanFiles(plan));
  }
  if (!request.index_name.empty() && request.index_key.empty()) {
    return arrow::Status::Invalid("--index needs --key, the columns to find rows by");
  }
  arrow::Result<RewriteSummary> summary = [&] {
    ProgressBar bar;
    request.run.progress = bar.Callback();
    return RewriteTable(request);
  }();
  ARROW_RETURN_NOT_OK(summary.status());
  for (const auto& file : summary->skipped) {
    std::cerr << "grebe: skipped " << file.path << ": " << file.reason << "\n";
  }
  return WriteOutput(common, summary->ToJson() + "\n");
}

}  // namespace

void AddLayoutRewriteCommand(CLI::App* layout, Common* common) {
  static RewriteFlags flags;
  CLI::App* command =
      layout->add_subcommand("rewrite", "Write a table's rows in another layout, elsewhere");
  AddLayoutTableOptions(command, common);
  RewriteLayout& layout_options = flags.request.layout;
  command->add_option("--by", layout_options.by,
                      "sort(a,b), zorder(a,b), zorder(a,b:2), hilbert(a,b), bucket(16,k) or "
                      "tree(LOG), LOG being a query log or an earlier rewrite's _grebe_layout.json")
      ->required();
  command->add_option("--then", layout_options.then,
                      "Within buckets or leaves: sort(...), zorder(...) or hilbert(...)");
  command->add_option("--to", flags.request.to_uri, "Folder or URI to write to")->required();
  command->add_option("--files", flags.files,
                      "Only these files: a plan of 'grebe layout plan --format json', or one path "
                      "a line (-: stdin)");
  command->add_option("--mode", layout_options.mode,
                      "What a curve is made of: rank (equal shares of the rows) or raw (bytes)")
      ->capture_default_str()->check(CLI::IsMember({"rank", "raw"}));
  command->add_option("--partitions", layout_options.partitions,
                      "Hive partitions: keep; none (all together); or coarser, as in "
                      "'month(day)' or 'region,year(day)'")
      ->capture_default_str();
  command->add_option("--cogroup", layout_options.cogroup,
                      "One row per value of this column, the others a list of structs");
  command->add_option("--cogroup-order", layout_options.cogroup_order,
                      "Column that orders each list");
  command->add_option("--ungroup", layout_options.ungroup,
                      "List-of-structs column to take apart into rows");
  command->add_option("--index", flags.index_name,
                      "Write an index of this name in the same pass (with --key)");
  command->add_option("--key", flags.index_key, "Key columns of that index, as in a,b.c");
  AddSizeOptions(command, &flags);
  AddRunOptions(command, &flags);
  OnCommand(command, common, [common] { return Run(*common, &flags); });
}

}  // namespace grebe::cli

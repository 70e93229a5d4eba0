// grebe get and grebe count
#include <arrow/array/builder_primitive.h>

#include <algorithm>
#include <iostream>
#include <optional>

#include "cli/command.h"
#include "cli/number_option.h"
#include "grebe/error.h"
#include "grebe/lookup.h"

namespace grebe::cli {
namespace {

struct LookupFlags {
  std::vector<std::string> conditions;
  std::vector<std::string> nulls;
  std::string keys_from;
  std::string columns;
  GetOptions options;
  bool no_coalesce = false;
  bool no_crc = false;
  bool explain = false;
  bool exit_code = false;
};

void AddKeyOptions(CLI::App* command, LookupFlags* flags) {
  command->add_option("COL=VALUE", flags->conditions,
                      "The key: a value for every key column of the index. Of an index created "
                      "with --sorted also a range: values for the first key columns, then bounds "
                      "of the next one ('ts>=2026-01-01' 'ts<2026-02-01')");
  command->add_option("--null", flags->nulls, "A key column that is null; may be repeated")
      ->allow_extra_args(false);
  command->add_option("--keys-from", flags->keys_from,
                      "Many keys: a file (-: stdin) of JSON lines or CSV with a header");
  command->add_flag("--explain", flags->explain,
                    "The cost record: on stderr, or with --format json on stdout in place of rows");
  command->add_flag("--exit-code", flags->exit_code, "Exit with 1 when no row was found");
}

// COL=VALUE, or COL and one of < <= > >= and VALUE.
arrow::Result<KeyCondition> ParseCondition(const std::string& text) {
  const size_t at = text.find_first_of("=<>");
  if (at == std::string::npos || at == 0) {
    return arrow::Status::Invalid("expected COL=VALUE, or a bound such as COL>=VALUE got=", text);
  }
  const bool or_equal = text[at] != '=' && text.compare(at + 1, 1, "=") == 0;
  KeyCondition condition{text.substr(0, at), Comparison::kEqual,
                         text.substr(at + (or_equal ? 2 : 1))};
  if (text[at] == '<') {
    condition.comparison = or_equal ? Comparison::kLessOrEqual : Comparison::kLess;
  } else if (text[at] == '>') {
    condition.comparison = or_equal ? Comparison::kGreaterOrEqual : Comparison::kGreater;
  }
  return condition;
}

std::string JoinNames(const std::vector<std::string>& names) {
  std::string joined;
  for (const std::string& name : names) joined += (joined.empty() ? "" : ", ") + name;
  return joined;
}

// Either keys or a range.
struct OpenedKeys {
  std::shared_ptr<Index> index;
  std::shared_ptr<arrow::RecordBatch> keys;
  std::optional<KeyRange> range;
};

// One key, or, when bounds are given or not all key columns are, a range.
arrow::Status ParseOne(const LookupFlags& flags, const std::vector<KeyCondition>& conditions,
                       OpenedKeys* opened) {
  const bool bounded = std::any_of(conditions.begin(), conditions.end(), [](const auto& condition) {
    return condition.comparison != Comparison::kEqual;
  });
  const auto given = static_cast<int>(conditions.size() + flags.nulls.size());
  if (bounded || given < opened->index->key_schema()->num_fields()) {
    ARROW_ASSIGN_OR_RAISE(opened->range, opened->index->ParseRange(conditions, flags.nulls));
    return arrow::Status::OK();
  }
  std::vector<std::pair<std::string, std::string>> values;
  for (const auto& condition : conditions) values.emplace_back(condition.column, condition.value);
  ARROW_ASSIGN_OR_RAISE(opened->keys, opened->index->ParseKey(values, flags.nulls));
  return arrow::Status::OK();
}

// The index of just the columns; else a sorted one that begins with them; else a scan, which gives
// no ranges.
arrow::Result<std::shared_ptr<Index>> OpenFor(const Common& common, OpenOptions options,
                                              bool many) {
  auto index = Index::Open(common.ref, options);
  if (index.ok() || KindOf(index.status()) != ErrorKind::kNotFound || options.ranges) return index;
  if (!many) {
    options.ranges = true;
    auto sorted = Index::Open(common.ref, options);
    if (sorted.ok()) return sorted;
    options.ranges = false;
  }
  options.scan_without_index = true;
  return Index::Open(common.ref, options);
}

arrow::Result<OpenedKeys> OpenAndParse(const Common& common, const LookupFlags& flags) {
  const bool many = !flags.keys_from.empty();
  if (many == !(flags.conditions.empty() && flags.nulls.empty())) {
    return arrow::Status::Invalid("give either COL=VALUE for one key, or --keys-from");
  }
  std::vector<KeyCondition> conditions;
  OpenOptions options;
  std::string text;
  if (many) {
    ARROW_ASSIGN_OR_RAISE(text, ReadInput(flags.keys_from));
    ARROW_ASSIGN_OR_RAISE(options.key, Index::KeyColumnsIn(text));
  }
  const auto add_column = [&](const std::string& name) {
    const bool known = std::find(options.key.begin(), options.key.end(), name) != options.key.end();
    if (!known) options.key.push_back(name);
  };
  for (const std::string& given : flags.conditions) {
    ARROW_ASSIGN_OR_RAISE(KeyCondition condition, ParseCondition(given));
    add_column(condition.column);
    options.ranges = options.ranges || condition.comparison != Comparison::kEqual;
    conditions.push_back(std::move(condition));
  }
  for (const std::string& name : flags.nulls) add_column(name);
  OpenedKeys opened;
  ARROW_ASSIGN_OR_RAISE(opened.index, OpenFor(common, options, many));
  if (opened.index->scans()) {
    std::cerr << "grebe: no index of " << JoinNames(options.key)
              << ": scanning the table ('grebe index create' makes such lookups one wave)\n";
  }
  if (many) {
    ARROW_ASSIGN_OR_RAISE(opened.keys, opened.index->ParseKeys(text));
  } else {
    ARROW_RETURN_NOT_OK(ParseOne(flags, conditions, &opened));
  }
  return opened;
}

// --explain: true when the record took the place of the rows.
arrow::Result<bool> PrintExplain(const Common& common, const LookupFlags& flags,
                                 const Explain& explain) {
  if (!flags.explain) return false;
  if (common.format == "json") {
    ARROW_RETURN_NOT_OK(WriteOutput(common, explain.ToJson() + "\n"));
    return true;
  }
  std::cerr << explain.ToText();
  return false;
}

arrow::Status RunGet(Common* common, LookupFlags* flags) {
  ARROW_ASSIGN_OR_RAISE(OpenedKeys opened, OpenAndParse(*common, *flags));
  GetOptions options = flags->options;
  ARROW_ASSIGN_OR_RAISE(options.columns, SplitColumns(flags->columns));
  options.coalesce = !flags->no_coalesce;
  options.verify_crc = !flags->no_crc;
  ARROW_ASSIGN_OR_RAISE(GetResult result,
                        opened.range ? opened.index->GetRange(*opened.range, options)
                                     : opened.index->Get(*opened.keys, options));
  ARROW_ASSIGN_OR_RAISE(const bool replaced, PrintExplain(*common, *flags, result.explain));
  if (!replaced) ARROW_RETURN_NOT_OK(WriteOutput(*common, *result.rows));
  if (flags->exit_code && result.rows->num_rows() == 0) common->exit_code = kKeyNotFound;
  return arrow::Status::OK();
}

arrow::Status RunCount(Common* common, LookupFlags* flags) {
  ARROW_ASSIGN_OR_RAISE(OpenedKeys opened, OpenAndParse(*common, *flags));
  ARROW_ASSIGN_OR_RAISE(CountResult result, opened.range
                                                ? opened.index->CountRange(*opened.range)
                                                : opened.index->Count(*opened.keys));
  ARROW_ASSIGN_OR_RAISE(const bool replaced, PrintExplain(*common, *flags, result.explain));
  if (!replaced) {
    arrow::Int64Builder counts;
    ARROW_RETURN_NOT_OK(counts.AppendValues(result.counts));
    ARROW_ASSIGN_OR_RAISE(std::shared_ptr<arrow::Array> column, counts.Finish());
    auto rows = arrow::RecordBatch::Make(arrow::schema({arrow::field("count", column->type())}),
                                         column->length(), arrow::ArrayVector{column});
    if (!opened.range) {
      ARROW_ASSIGN_OR_RAISE(rows, opened.keys->AddColumn(opened.keys->num_columns(), "count",
                                                         column));
    }
    ARROW_RETURN_NOT_OK(WriteOutput(*common, *rows));
  }
  const bool none = std::all_of(result.counts.begin(), result.counts.end(),
                                [](int64_t count) { return count == 0; });
  if (flags->exit_code && none) common->exit_code = kKeyNotFound;
  return arrow::Status::OK();
}

}  // namespace

void AddGetCommands(CLI::App* app, Common* common) {
  static LookupFlags flags;
  CLI::App* get = app->add_subcommand("get", "The rows of a key, or of many");
  AddTableOptions(get, common);
  AddKeyOptions(get, &flags);
  get->add_option("--columns", flags.columns, "Columns to return, as in a,b.c (default: all)");
  get->add_option("--limit", flags.options.limit, "Most rows of each key")
      ->check(AtLeast(0));
  get->add_option("--offset", flags.options.offset, "Rows of each key to skip")
      ->check(AtLeast(0));
  get->add_flag("--no-coalesce", flags.no_coalesce, "One request a page: no gaps are bridged");
  get->add_flag("--no-crc", flags.no_crc, "Do not check page checksums");
  AddOutputOptions(get, common);
  OnCommand(get, common, [=] { return RunGet(common, &flags); });

  CLI::App* count =
      app->add_subcommand("count", "The number of rows of a key, from the index alone");
  AddTableOptions(count, common);
  AddKeyOptions(count, &flags);
  AddOutputOptions(count, common);
  OnCommand(count, common, [=] { return RunCount(common, &flags); });
}

}  // namespace grebe::cli

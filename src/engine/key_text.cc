// Keys written as text: "user_id=42" of the command line, JSON lines, CSV with a header.
#include <arrow/csv/api.h>
#include <arrow/io/memory.h>
#include <arrow/scalar.h>

#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/status.h"
#include "grebe/lookup.h"
#include "key/key.h"

namespace grebe {
namespace {

using Texts = std::map<std::string, std::optional<std::string>>;   // nullopt: null

// Takes one flat JSON object apart, keeping numbers as they are written.
class FlatObject : public nlohmann::json_sax<nlohmann::json> {
 public:
  const Texts& texts() const { return texts_; }
  const std::string& problem() const { return problem_; }

  bool null() override { return Put(std::nullopt); }
  bool boolean(bool value) override { return Put(value ? "true" : "false"); }
  bool number_integer(number_integer_t value) override { return Put(std::to_string(value)); }
  bool number_unsigned(number_unsigned_t value) override { return Put(std::to_string(value)); }
  bool number_float(number_float_t, const string_t& text) override { return Put(text); }
  bool string(string_t& value) override { return Put(value); }
  bool binary(binary_t&) override { return Refuse("binary"); }
  bool start_object(size_t) override {
    return depth_++ == 0 ? true : Refuse("a key is a flat object");
  }
  bool key(string_t& name) override {
    name_ = name;
    return texts_.contains(name) ? Refuse("a column is named twice") : true;
  }
  bool end_object() override { return true; }
  bool start_array(size_t) override { return Refuse("a key is an object, not a list"); }
  bool end_array() override { return true; }
  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception& error) override {
    return Refuse(error.what());
  }

 private:
  bool Put(std::optional<std::string> text) {
    if (depth_ == 0) return Refuse("a key is an object such as {\"user_id\": 42}");
    texts_[name_] = std::move(text);
    return true;
  }
  bool Refuse(std::string problem) {
    problem_ = std::move(problem);
    return false;
  }

  int depth_ = 0;
  std::string name_;
  Texts texts_;
  std::string problem_;
};

// Collects keys, row by row, in the index's key types.
class KeyRowsBuilder {
 public:
  explicit KeyRowsBuilder(std::shared_ptr<arrow::Schema> schema)
      : schema_(std::move(schema)), columns_(schema_->num_fields()) {}

  Status Add(const Texts& texts) {
    for (const auto& [name, text] : texts) {
      if (schema_->GetFieldIndex(name) < 0) {
        return InvalidArgument("not a key column of the index", "column", name, "key", Names());
      }
    }
    for (int i = 0; i < schema_->num_fields(); ++i) {
      const auto& field = *schema_->field(i);
      const auto found = texts.find(field.name());
      if (found == texts.end()) {
        return InvalidArgument("a key column has no value", "column", field.name(), "key", Names());
      }
      if (!found->second) {
        columns_[i].push_back(nullptr);
        continue;
      }
      auto value = key::ParseValue(*field.type(), *found->second);
      if (!value.ok()) return AddContext(value.status(), "column", field.name());
      columns_[i].push_back(*std::move(value));
    }
    ++row_count_;
    return Status::OK();
  }

  // A column has the key's type, or one that holds what was asked when the key's type cannot.
  Result<std::shared_ptr<arrow::RecordBatch>> Finish() {
    arrow::ArrayVector arrays;
    arrow::FieldVector fields;
    for (int i = 0; i < schema_->num_fields(); ++i) {
      const auto& field = *schema_->field(i);
      ARROW_ASSIGN_OR_RAISE(auto array, key::MakeQueryColumn(*field.type(), columns_[i]));
      fields.push_back(arrow::field(field.name(), array->type()));
      arrays.push_back(std::move(array));
    }
    return arrow::RecordBatch::Make(arrow::schema(std::move(fields)), row_count_,
                                    std::move(arrays));
  }

 private:
  std::string Names() const {
    std::string names;
    for (const auto& name : schema_->field_names()) names += (names.empty() ? "" : ",") + name;
    return names;
  }

  std::shared_ptr<arrow::Schema> schema_;
  std::vector<std::vector<std::shared_ptr<arrow::Scalar>>> columns_;   // null pointer: null
  int64_t row_count_ = 0;
};

Status AddJsonLines(const std::string& text, KeyRowsBuilder* rows) {
  int64_t line_number = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = std::string_view(text).substr(begin, end - begin);
    begin = end + 1;
    ++line_number;
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    FlatObject object;
    if (!nlohmann::json::sax_parse(line.begin(), line.end(), &object)) {
      return InvalidArgument("not a key", "line", line_number, "reason", object.problem());
    }
    const Status status = rows->Add(object.texts());
    if (!status.ok()) return AddContext(status, "line", std::to_string(line_number));
  }
  return Status::OK();
}

// The names in a CSV header.
Result<std::vector<std::string>> CsvNames(const std::string& header) {
  auto input = std::make_shared<arrow::io::BufferReader>(
      arrow::Buffer::FromString(header + "\n" + header + "\n"));
  ARROW_ASSIGN_OR_RAISE(auto sniff,
                        arrow::csv::TableReader::Make(arrow::io::default_io_context(), input,
                                                      arrow::csv::ReadOptions::Defaults(),
                                                      arrow::csv::ParseOptions::Defaults(),
                                                      arrow::csv::ConvertOptions::Defaults()));
  ARROW_ASSIGN_OR_RAISE(auto table, sniff->Read());
  return table->schema()->field_names();
}

// CSV with a header; an empty unquoted field is null.
Status AddCsv(const std::string& text, KeyRowsBuilder* rows) {
  auto read = arrow::csv::ReadOptions::Defaults();
  auto convert = arrow::csv::ConvertOptions::Defaults();
  convert.strings_can_be_null = true;
  convert.quoted_strings_can_be_null = false;
  convert.null_values = {""};
  // Everything stays text: ParseValue knows the key's types.
  const std::string header = text.substr(0, text.find_first_of("\r\n"));
  auto input = std::make_shared<arrow::io::BufferReader>(arrow::Buffer::FromString(text));
  auto parse = arrow::csv::ParseOptions::Defaults();
  parse.ignore_empty_lines = false;   // of a one-column file, an empty line is a null
  parse.newlines_in_values = true;
  ARROW_ASSIGN_OR_RAISE(const auto names, CsvNames(header));
  for (const std::string& name : names) {
    convert.column_types[name] = arrow::utf8();
  }
  ARROW_ASSIGN_OR_RAISE(auto reader,
                        arrow::csv::TableReader::Make(arrow::io::default_io_context(), input, read,
                                                      parse, convert));
  ARROW_ASSIGN_OR_RAISE(auto table, reader->Read());
  ARROW_ASSIGN_OR_RAISE(auto batch, table->CombineChunksToBatch());
  for (int64_t row = 0; row < batch->num_rows(); ++row) {
    Texts texts;
    for (int i = 0; i < batch->num_columns(); ++i) {
      const auto& column = static_cast<const arrow::StringArray&>(*batch->column(i));
      auto& slot = texts[batch->column_name(i)];
      if (column.IsValid(row)) slot = column.GetString(row);
    }
    const Status status = rows->Add(texts);
    if (!status.ok()) return AddContext(status, "line", std::to_string(row + 2));
  }
  return Status::OK();
}

}  // namespace

Result<std::shared_ptr<arrow::RecordBatch>> Index::ParseKey(
    const std::vector<std::pair<std::string, std::string>>& columns,
    const std::vector<std::string>& null_columns) const {
  KeyRowsBuilder rows(key_schema());
  Texts texts;
  for (const auto& [name, text] : columns) {
    if (!texts.emplace(name, text).second) {
      return InvalidArgument("a column is given twice", "column", name);
    }
  }
  for (const std::string& name : null_columns) {
    if (!texts.emplace(name, std::nullopt).second) {
      return InvalidArgument("a column is given twice", "column", name);
    }
  }
  ARROW_RETURN_NOT_OK(rows.Add(texts));
  return rows.Finish();
}

Result<std::vector<std::string>> Index::KeyColumnsIn(const std::string& text) {
  std::vector<std::string> names;
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string::npos) return names;
  const std::string line = text.substr(first, text.find('\n', first) - first);
  if (text[first] != '{') {
    ARROW_ASSIGN_OR_RAISE(names, CsvNames(text.substr(0, text.find_first_of("\r\n", first))));
    return names;
  }
  FlatObject object;
  if (!nlohmann::json::sax_parse(line.begin(), line.end(), &object)) {
    return InvalidArgument("not a key", "line", 1, "reason", object.problem());
  }
  for (const auto& [name, value] : object.texts()) names.push_back(name);
  return names;
}

Result<std::shared_ptr<arrow::RecordBatch>> Index::ParseKeys(const std::string& text) const {
  KeyRowsBuilder rows(key_schema());
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first != std::string::npos) {
    ARROW_RETURN_NOT_OK(text[first] == '{' ? AddJsonLines(text, &rows) : AddCsv(text, &rows));
  }
  return rows.Finish();
}

}  // namespace grebe

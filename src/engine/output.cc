// Rows for people and programs: tables, JSON, CSV, Arrow, Parquet.
#include "grebe/output.h"

#include <arrow/array/builder_binary.h>
#include <arrow/ipc/writer.h>

#include <algorithm>

#include "base/status.h"
#include "engine/json_text.h"
#include "parquet/write_table.h"

namespace grebe {
namespace {

constexpr size_t kCellWidthMax = 60;   // of the table format, in characters

// A value as a cell: strings bare, everything else as JSON.
Status AppendCell(const arrow::Array& array, int64_t row, std::string* out) {
  if (array.IsValid(row) && array.type_id() == arrow::Type::STRING) {
    out->append(static_cast<const arrow::StringArray&>(array).GetView(row));
    return Status::OK();
  }
  std::string json;
  ARROW_RETURN_NOT_OK(AppendJson(array, row, &json));
  const bool quoted = json.size() >= 2 && json.front() == '"' && json.back() == '"' &&
                      json.find('\\') == std::string::npos;
  *out += quoted ? json.substr(1, json.size() - 2) : json;
  return Status::OK();
}

// Characters of UTF-8 text, one column each; continuation bytes do not count.
size_t DisplayWidth(std::string_view text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

// Fits a cell into its column: one line, cut with "..." when long.
std::string Fit(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  }
  if (DisplayWidth(text) <= kCellWidthMax) return text;
  size_t end = 0, width = 0;
  while (end < text.size() && width < kCellWidthMax - 3) {
    ++end;
    while (end < text.size() && (text[end] & 0xc0) == 0x80) ++end;
    ++width;
  }
  return text.substr(0, end) + "...";
}

class TextTableWriter final : public RowWriter {
 public:
  TextTableWriter(std::shared_ptr<arrow::Schema> schema, arrow::io::OutputStream* sink)
      : schema_(std::move(schema)), sink_(sink) {}

  Status Write(const arrow::RecordBatch& rows) override {
    std::vector<Line> cells;
    for (int64_t row = 0; row < rows.num_rows(); ++row) {
      Line& line = cells.emplace_back();
      for (int i = 0; i < rows.num_columns(); ++i) {
        std::string cell;
        ARROW_RETURN_NOT_OK(AppendCell(*rows.column(i), row, &cell));
        line.push_back(Fit(std::move(cell)));
      }
    }
    std::string text;
    if (widths_.empty()) AppendHead(cells, &text);
    for (const Line& line : cells) AppendLine(line, &text);
    return sink_->Write(text);
  }

  Status Finish() override {
    if (!widths_.empty() || schema_->num_fields() == 0) return Status::OK();
    std::string text;
    AppendHead({}, &text);
    return sink_->Write(text);
  }

 private:
  using Line = std::vector<std::string>;

  void AppendHead(const std::vector<Line>& cells, std::string* text) {
    Line names;
    for (const auto& field : schema_->fields()) names.push_back(Fit(field->name()));
    widths_.assign(names.size(), 0);
    const auto widen = [&](const Line& line) {
      for (size_t i = 0; i < line.size(); ++i) {
        widths_[i] = std::max(widths_[i], DisplayWidth(line[i]));
      }
    };
    widen(names);
    for (const Line& line : cells) widen(line);
    AppendLine(names, text);
    for (size_t i = 0; i < widths_.size(); ++i) {
      text->append(widths_[i], '-');
      if (i + 1 < widths_.size()) *text += "  ";
    }
    *text += '\n';
  }

  void AppendLine(const Line& line, std::string* text) const {
    for (size_t i = 0; i < line.size(); ++i) {
      *text += line[i];
      const size_t width = DisplayWidth(line[i]);
      if (i + 1 < line.size()) text->append(std::max(widths_[i], width) - width + 2, ' ');
    }
    *text += '\n';
  }

  const std::shared_ptr<arrow::Schema> schema_;
  arrow::io::OutputStream* sink_;
  std::vector<size_t> widths_;   // empty: no head yet
};

class JsonWriter final : public RowWriter {
 public:
  JsonWriter(bool lines, arrow::io::OutputStream* sink) : lines_(lines), sink_(sink) {}

  Status Write(const arrow::RecordBatch& rows) override {
    std::string text;
    for (int64_t row = 0; row < rows.num_rows(); ++row) {
      if (!lines_) text += any_ ? ",\n" : "[\n";
      any_ = true;
      text += '{';
      for (int i = 0; i < rows.num_columns(); ++i) {
        if (i > 0) text += ',';
        engine::AppendJsonString(rows.column_name(i), &text);
        text += ':';
        ARROW_RETURN_NOT_OK(AppendJson(*rows.column(i), row, &text));
      }
      text += lines_ ? "}\n" : "}";
      if (text.size() > (1 << 20)) {
        ARROW_RETURN_NOT_OK(sink_->Write(text));
        text.clear();
      }
    }
    return sink_->Write(text);
  }

  Status Finish() override {
    if (lines_) return Status::OK();
    return sink_->Write(any_ ? "\n]\n" : "[\n]\n");
  }

 private:
  const bool lines_;
  arrow::io::OutputStream* sink_;
  bool any_ = false;
};

// RFC 4180; null is an empty field, an empty string is "".
Status AppendCsvField(const arrow::Array& array, int64_t row, std::string* out) {
  if (array.IsNull(row)) return Status::OK();
  std::string cell;
  ARROW_RETURN_NOT_OK(AppendCell(array, row, &cell));
  if (!cell.empty() && cell.find_first_of(",\"\r\n") == std::string::npos) {
    *out += cell;
    return Status::OK();
  }
  *out += '"';
  for (char c : cell) {
    if (c == '"') *out += '"';
    *out += c;
  }
  *out += '"';
  return Status::OK();
}

class CsvWriter final : public RowWriter {
 public:
  explicit CsvWriter(arrow::io::OutputStream* sink) : sink_(sink) {}

  Status WriteHead(const arrow::Schema& schema) {
    std::string text;
    arrow::StringBuilder names;
    ARROW_RETURN_NOT_OK(names.AppendValues(schema.field_names()));
    ARROW_ASSIGN_OR_RAISE(auto header, names.Finish());
    for (int i = 0; i < schema.num_fields(); ++i) {
      if (i > 0) text += ',';
      ARROW_RETURN_NOT_OK(AppendCsvField(*header, i, &text));
    }
    return sink_->Write(text + '\n');
  }

  Status Write(const arrow::RecordBatch& rows) override {
    std::string text;
    for (int64_t row = 0; row < rows.num_rows(); ++row) {
      for (int i = 0; i < rows.num_columns(); ++i) {
        if (i > 0) text += ',';
        ARROW_RETURN_NOT_OK(AppendCsvField(*rows.column(i), row, &text));
      }
      text += '\n';
    }
    return sink_->Write(text);
  }

  Status Finish() override { return Status::OK(); }

 private:
  arrow::io::OutputStream* sink_;
};

class ArrowWriter final : public RowWriter {
 public:
  explicit ArrowWriter(std::shared_ptr<arrow::ipc::RecordBatchWriter> writer)
      : writer_(std::move(writer)) {}
  Status Write(const arrow::RecordBatch& rows) override { return writer_->WriteRecordBatch(rows); }
  Status Finish() override { return writer_->Close(); }

 private:
  const std::shared_ptr<arrow::ipc::RecordBatchWriter> writer_;
};

class ParquetWriter final : public RowWriter {
 public:
  explicit ParquetWriter(std::unique_ptr<pq::TableWriter> writer) : writer_(std::move(writer)) {}
  Status Write(const arrow::RecordBatch& rows) override { return writer_->Write(rows); }
  Status Finish() override { return writer_->Finish(); }

 private:
  const std::unique_ptr<pq::TableWriter> writer_;
};

}  // namespace

Result<RowFormat> ParseRowFormat(std::string_view name) {
  if (name == "table") return RowFormat::kTable;
  if (name == "json") return RowFormat::kJson;
  if (name == "jsonl") return RowFormat::kJsonLines;
  if (name == "csv") return RowFormat::kCsv;
  if (name == "arrow") return RowFormat::kArrow;
  if (name == "parquet") return RowFormat::kParquet;
  return InvalidArgument("not a format (table, json, jsonl, csv, arrow, parquet)", "format", name);
}

Result<std::unique_ptr<RowWriter>> RowWriter::Make(const std::shared_ptr<arrow::Schema>& schema,
                                                   RowFormat format,
                                                   arrow::io::OutputStream* sink) {
  switch (format) {
    case RowFormat::kTable: return std::make_unique<TextTableWriter>(schema, sink);
    case RowFormat::kJson:
    case RowFormat::kJsonLines:
      return std::make_unique<JsonWriter>(format == RowFormat::kJsonLines, sink);
    case RowFormat::kCsv: {
      auto writer = std::make_unique<CsvWriter>(sink);
      ARROW_RETURN_NOT_OK(writer->WriteHead(*schema));
      return writer;
    }
    case RowFormat::kArrow: {
      ARROW_ASSIGN_OR_RAISE(auto writer, arrow::ipc::MakeStreamWriter(sink, schema));
      return std::make_unique<ArrowWriter>(std::move(writer));
    }
    case RowFormat::kParquet: {
      ARROW_ASSIGN_OR_RAISE(auto writer, pq::TableWriter::Open(schema, sink));
      return std::make_unique<ParquetWriter>(std::move(writer));
    }
  }
  return Internal("unknown row format");
}

Status WriteRows(const arrow::RecordBatch& rows, RowFormat format, arrow::io::OutputStream* sink) {
  ARROW_ASSIGN_OR_RAISE(auto writer, RowWriter::Make(rows.schema(), format, sink));
  ARROW_RETURN_NOT_OK(writer->Write(rows));
  return writer->Finish();
}

}  // namespace grebe

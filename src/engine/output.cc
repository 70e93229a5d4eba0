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

Status WriteTextTable(const arrow::RecordBatch& rows, arrow::io::OutputStream* sink) {
  std::vector<std::vector<std::string>> cells(1);
  for (const auto& field : rows.schema()->fields()) cells[0].push_back(Fit(field->name()));
  for (int64_t row = 0; row < rows.num_rows(); ++row) {
    auto& line = cells.emplace_back();
    for (int i = 0; i < rows.num_columns(); ++i) {
      std::string cell;
      ARROW_RETURN_NOT_OK(AppendCell(*rows.column(i), row, &cell));
      line.push_back(Fit(std::move(cell)));
    }
  }
  std::vector<size_t> widths(rows.num_columns(), 0);
  for (const auto& line : cells) {
    for (size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], DisplayWidth(line[i]));
  }
  std::string text;
  for (size_t l = 0; l < cells.size(); ++l) {
    for (size_t i = 0; i < cells[l].size(); ++i) {
      text += cells[l][i];
      if (i + 1 < cells[l].size()) text.append(widths[i] - DisplayWidth(cells[l][i]) + 2, ' ');
    }
    text += '\n';
    if (l > 0) continue;
    for (size_t i = 0; i < widths.size(); ++i) {
      text.append(widths[i], '-');
      if (i + 1 < widths.size()) text += "  ";
    }
    text += '\n';
  }
  return sink->Write(text);
}

Status WriteJson(const arrow::RecordBatch& rows, bool lines, arrow::io::OutputStream* sink) {
  std::string text = lines ? "" : "[";
  for (int64_t row = 0; row < rows.num_rows(); ++row) {
    if (!lines) text += row == 0 ? "\n" : ",\n";
    text += '{';
    for (int i = 0; i < rows.num_columns(); ++i) {
      if (i > 0) text += ',';
      engine::AppendJsonString(rows.column_name(i), &text);
      text += ':';
      ARROW_RETURN_NOT_OK(AppendJson(*rows.column(i), row, &text));
    }
    text += lines ? "}\n" : "}";
    if (text.size() > (1 << 20)) {
      ARROW_RETURN_NOT_OK(sink->Write(text));
      text.clear();
    }
  }
  if (!lines) text += "\n]\n";
  return sink->Write(text);
}

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

Status WriteCsv(const arrow::RecordBatch& rows, arrow::io::OutputStream* sink) {
  std::string text;
  arrow::StringBuilder names;
  ARROW_RETURN_NOT_OK(names.AppendValues(rows.schema()->field_names()));
  ARROW_ASSIGN_OR_RAISE(auto header, names.Finish());
  for (int i = 0; i < rows.num_columns(); ++i) {
    if (i > 0) text += ',';
    ARROW_RETURN_NOT_OK(AppendCsvField(*header, i, &text));
  }
  text += '\n';
  for (int64_t row = 0; row < rows.num_rows(); ++row) {
    for (int i = 0; i < rows.num_columns(); ++i) {
      if (i > 0) text += ',';
      ARROW_RETURN_NOT_OK(AppendCsvField(*rows.column(i), row, &text));
    }
    text += '\n';
  }
  return sink->Write(text);
}

Status WriteArrow(const arrow::RecordBatch& rows, arrow::io::OutputStream* sink) {
  ARROW_ASSIGN_OR_RAISE(auto writer, arrow::ipc::MakeStreamWriter(sink, rows.schema()));
  ARROW_RETURN_NOT_OK(writer->WriteRecordBatch(rows));
  return writer->Close();
}

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

Status WriteRows(const arrow::RecordBatch& rows, RowFormat format, arrow::io::OutputStream* sink) {
  switch (format) {
    case RowFormat::kTable: return WriteTextTable(rows, sink);
    case RowFormat::kJson: return WriteJson(rows, false, sink);
    case RowFormat::kJsonLines: return WriteJson(rows, true, sink);
    case RowFormat::kCsv: return WriteCsv(rows, sink);
    case RowFormat::kArrow: return WriteArrow(rows, sink);
    case RowFormat::kParquet: return pq::WriteTable(rows, sink);
  }
  return Internal("unknown row format");
}

}  // namespace grebe

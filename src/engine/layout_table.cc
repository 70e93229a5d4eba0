#include "engine/layout_table.h"

#include <cmath>
#include <cstdio>

#include "engine/table_context.h"
#include "table/snapshot.h"

namespace grebe::engine {

Result<OpenedTable> OpenLayoutTable(const LayoutTable& table) {
  ARROW_ASSIGN_OR_RAISE(const store::Location location,
                        store::OpenLocation(table.table_uri, ToStoreOptions(table.connect)));
  ARROW_ASSIGN_OR_RAISE(const table::Snapshot snapshot, table::ReadSnapshot(location));
  OpenedTable opened{store::DisplayUri(location), location.store, {}, snapshot.partitions.schema};
  for (const store::Object& file : snapshot.files) {
    layout::ViewFile view;
    auto object = std::make_shared<store::Object>(file);
    if (!snapshot.root.path.empty()) object->path = snapshot.root.path + "/" + file.path;
    view.object = std::move(object);
    view.name = file.path;
    for (const auto& field : snapshot.partitions.schema->fields()) {
      ARROW_ASSIGN_OR_RAISE(auto value, table::PartitionScalar(*field, file.path));
      view.partition_values.push_back(std::move(value));
    }
    opened.files.push_back(std::move(view));
  }
  return opened;
}

Result<layout::TableView> ReadView(const LayoutTable& table, const OpenedTable& opened,
                                   std::vector<std::string> columns, bool pages) {
  layout::ViewOptions options;
  options.columns = std::move(columns);
  options.partitions = opened.partitions;
  options.pages = pages;
  options.skip_bad_files = table.skip_bad_files;
  options.stop = table.stop;
  return layout::TableView::Read(*opened.store, opened.files, options);
}

std::vector<SkippedFile> SkippedOf(const layout::TableView& view) {
  std::vector<SkippedFile> skipped;
  for (const layout::BadFile& file : view.bad_files) skipped.push_back({file.name, file.reason});
  return skipped;
}

std::optional<double> NumberOf(const arrow::Scalar& value) {
  const auto& type = *value.type;
  const bool temporal = arrow::is_temporal(type.id());
  if (!temporal && !arrow::is_numeric(type.id()) && !arrow::is_decimal(type.id())) {
    return std::nullopt;
  }
  if (temporal) {
    const bool days = type.id() == arrow::Type::DATE32 || type.id() == arrow::Type::TIME32;
    Result<std::shared_ptr<arrow::Scalar>> whole =
        value.CastTo(days ? arrow::int32() : arrow::int64());
    if (!whole.ok()) return std::nullopt;
    return NumberOf(**whole);
  }
  Result<std::shared_ptr<arrow::Scalar>> number = value.CastTo(arrow::float64());
  if (!number.ok()) return std::nullopt;
  const double out = static_cast<const arrow::DoubleScalar&>(**number).value;
  return std::isfinite(out) ? std::optional(out) : std::nullopt;
}

std::string BytesText(double bytes) {
  const char* const units[] = {"B", "kB", "MB", "GB", "TB", "PB"};
  int unit = 0;
  while (std::abs(bytes) >= 999.5 && unit < 5) {
    bytes /= 1000;
    ++unit;
  }
  char text[48];
  std::snprintf(text, sizeof text, unit == 0 || bytes >= 99.95 ? "%.0f %s" : "%.1f %s", bytes,
                units[unit]);
  return text;
}

std::string CountText(double count) {
  char digits[48];
  std::snprintf(digits, sizeof digits, "%.0f", count);
  std::string text = digits;
  for (int at = static_cast<int>(text.size()) - 3; at > 0 && text[at - 1] != '-'; at -= 3) {
    text.insert(static_cast<size_t>(at), ",");
  }
  return text;
}

std::string ValueText(const std::shared_ptr<arrow::Scalar>& value) {
  constexpr size_t kCharactersMax = 40;
  if (value == nullptr) return "?";
  std::string text = value->ToString();
  if (text.size() <= kCharactersMax) return text;
  size_t end = kCharactersMax - 3;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  return text.substr(0, end) + "...";
}

}  // namespace grebe::engine

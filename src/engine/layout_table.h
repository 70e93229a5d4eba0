// A table as src/layout wants it: its live files with their partition values.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "grebe/layout.h"
#include "layout/query_cost.h"
#include "layout/table_view.h"
#include "store/store.h"

namespace grebe::engine {

struct OpenedTable {
  std::string uri;                            // for people
  std::shared_ptr<store::Store> store;
  std::vector<layout::ViewFile> files;
  std::shared_ptr<arrow::Schema> partitions;
};

// Lists the table. Errors: NotFound, Unsupported, InvalidArgument, the store's.
Result<OpenedTable> OpenLayoutTable(const LayoutTable& table);

// The view of the columns; empty: all that have an order.
Result<layout::TableView> ReadView(const LayoutTable& table, const OpenedTable& opened,
                                   std::vector<std::string> columns, bool pages);

std::vector<SkippedFile> SkippedOf(const layout::TableView& view);

// A number or time as a number; nullopt for text and such, and for what is not finite.
std::optional<double> NumberOf(const arrow::Scalar& value);

// What a person reads: 3.2 MB, 1,234.
std::string BytesText(double bytes);
std::string CountText(double count);
// A value as in a predicate, shortened to fit a line.
std::string ValueText(const std::shared_ptr<arrow::Scalar>& value);

}  // namespace grebe::engine

#include "layout/table_view.h"

#include <arrow/util/parallel.h>

#include <algorithm>
#include <mutex>
#include <optional>

#include "scan/file_stats.h"
#include "scan/predicate.h"

namespace grebe::layout {
namespace {

bool IsBadFile(const Status& status) {
  return IsKind(status, ErrorKind::kCorrupt) || IsKind(status, ErrorKind::kUnsupported) ||
         IsKind(status, ErrorKind::kNotFound);
}

bool HasOrder(const arrow::DataType& type) {
  return arrow::is_primitive(type.id()) || arrow::is_base_binary_like(type.id()) ||
         arrow::is_decimal(type.id());
}

std::optional<int> LeafOf(const pq::Schema& schema, const std::string& path) {
  Result<int> leaf = schema.KeyLeaf(path);
  if (!leaf.ok()) return std::nullopt;
  return *leaf;
}

int PartitionOf(const ViewOptions& options, const std::string& path) {
  return options.partitions == nullptr ? -1 : options.partitions->GetFieldIndex(path);
}

std::shared_ptr<arrow::DataType> LeafType(const pq::Schema& schema, int leaf) {
  return pq::ComparableType(pq::LeafArrowType(schema, leaf));
}

// A bound as the view's type has it; unknown where it has not.
void ConvertBounds(const std::shared_ptr<arrow::DataType>& type, pq::Bounds* bounds) {
  for (auto* bound : {&bounds->min, &bounds->max}) {
    if (*bound == nullptr || (*bound)->type->Equals(*type)) continue;
    Result<std::shared_ptr<arrow::Scalar>> cast = (*bound)->CastTo(type);
    // A cast that loses something would move the bound.
    if (cast.ok()) {
      Result<std::shared_ptr<arrow::Scalar>> back = (*cast)->CastTo((*bound)->type);
      if (back.ok() && (*back)->Equals(**bound)) {
        *bound = *cast;
        continue;
      }
    }
    bounds->min = bounds->max = nullptr;
    bounds->note = pq::BoundsNote::kUnreadable;
    return;
  }
}

class FileReader {
 public:
  FileReader(store::Store& store, const ViewOptions& options) : store_(store), options_(options) {}

  Status ReadFooter(const ViewFile& in, FileView* out) const {
    if (options_.stop != nullptr) ARROW_RETURN_NOT_OK(options_.stop->Check());
    ARROW_ASSIGN_OR_RAISE(out->footer, pq::Footer::Read(store_, in.object));
    out->name = in.name;
    out->rows = out->footer->row_count();
    out->bytes = in.object->identity.size_bytes;
    return Status::OK();
  }

  Status ReadBounds(const ViewFile& in, const std::vector<ViewColumn>& columns,
                    FileView* out) const {
    const scan::FileStats stats = scan::StatsOf(*out->footer);
    for (const ViewColumn& column : columns) {
      const auto leaf = column.partition >= 0 ? std::nullopt
                                              : LeafOf(*out->footer->schema(), column.path);
      out->leaves.push_back(leaf.value_or(-1));
      out->constants.push_back(
          leaf                    ? nullptr
          : column.partition >= 0 ? in.partition_values[static_cast<size_t>(column.partition)]
                                  : arrow::MakeNullScalar(column.type));
    }
    const auto bounds_of = [&](size_t c, const std::vector<pq::Bounds>& leaves, int64_t rows) {
      if (out->leaves[c] < 0) return scan::ConstantBounds(out->constants[c], rows);
      pq::Bounds bounds = leaves[static_cast<size_t>(out->leaves[c])];
      ConvertBounds(columns[c].type, &bounds);
      return bounds;
    };
    for (size_t c = 0; c < columns.size(); ++c) {
      out->bounds.push_back(bounds_of(c, stats.leaves, stats.rows));
    }
    for (const scan::RowGroupStats& from : stats.row_groups) {
      GroupView group;
      group.rows = from.rows;
      group.bytes = from.bytes();
      std::vector<pq::Bounds> leaves;
      for (const scan::ChunkStats& chunk : from.leaves) {
        leaves.push_back(chunk.bounds);
        group.leaf_pages.push_back({{RowRange{0, from.rows}, chunk.bytes}});
      }
      for (size_t c = 0; c < columns.size(); ++c) {
        group.bounds.push_back(bounds_of(c, leaves, from.rows));
      }
      group.pages.resize(columns.size());
      group.dictionary_bytes.assign(from.leaves.size(), 0);
      out->groups.push_back(std::move(group));
    }
    return options_.pages ? ReadPages(columns, out) : Status::OK();
  }

 private:
  Status ReadPages(const std::vector<ViewColumn>& columns, FileView* out) const {
    std::vector<int> leaves;
    for (int leaf : out->leaves) {
      if (leaf >= 0) leaves.push_back(leaf);
    }
    ARROW_ASSIGN_OR_RAISE(const scan::PageStats stats,
                          scan::ReadPageStats(store_, *out->footer, leaves));
    for (size_t g = 0; g < out->groups.size(); ++g) {
      size_t at = 0;
      for (size_t c = 0; c < columns.size(); ++c) {
        if (out->leaves[c] < 0) continue;
        out->groups[g].pages[c] = stats[g][at++];
        for (pq::PageBounds& page : out->groups[g].pages[c]) {
          ConvertBounds(columns[c].type, &page.bounds);
        }
      }
    }
    return ReadPagePlaces(out);
  }

  // Where pages lie is taken from the OffsetIndex; without one the chunk is read as a whole.
  Status ReadPagePlaces(FileView* out) const {
    std::vector<pq::ChunkId> chunks;
    for (size_t g = 0; g < out->groups.size(); ++g) {
      for (size_t leaf = 0; leaf < out->groups[g].leaf_pages.size(); ++leaf) {
        const pq::ChunkId chunk{static_cast<int>(g), static_cast<int>(leaf)};
        if (!pq::PageIndexRanges(*out->footer, chunk).empty()) chunks.push_back(chunk);
      }
    }
    ARROW_ASSIGN_OR_RAISE(const std::vector<pq::ChunkPages> found,
                          pq::FindChunkPages(store_, *out->footer, chunks));
    for (size_t i = 0; i < chunks.size(); ++i) {
      GroupView& group = out->groups[static_cast<size_t>(chunks[i].row_group)];
      const auto leaf = static_cast<size_t>(chunks[i].leaf);
      std::vector<PagePiece> pieces;
      for (const pq::PageLocation& page : found[i].pages) {
        pieces.push_back({page.rows, page.bytes.size_bytes()});
        // A page that goes on with the row before is needed for that row too.
        if (page.begins_mid_row && pieces.back().rows.begin > 0) --pieces.back().rows.begin;
      }
      if (!pieces.empty()) group.leaf_pages[leaf] = std::move(pieces);
      if (found[i].info.dictionary) {
        group.dictionary_bytes[leaf] = found[i].info.dictionary->size_bytes();
      }
    }
    return Status::OK();
  }

  store::Store& store_;
  const ViewOptions& options_;
};

// Every leaf of the first file that has an order and is not in a list, after the partition columns.
std::vector<std::string> AllColumns(const TableView& view, const ViewOptions& options) {
  std::vector<std::string> paths;
  if (options.partitions != nullptr) paths = options.partitions->field_names();
  if (view.files.empty()) return paths;
  const pq::Schema& schema = *view.files[0].footer->schema();
  for (int leaf = 0; leaf < schema.leaf_count(); ++leaf) {
    const std::string path = schema.leaf_path(leaf);
    if (LeafOf(schema, path) && HasOrder(*LeafType(schema, leaf))) paths.push_back(path);
  }
  return paths;
}

Status ResolveColumns(const ViewOptions& options, TableView* view) {
  const std::vector<std::string> paths =
      options.columns.empty() ? AllColumns(*view, options) : options.columns;
  for (const std::string& path : paths) {
    ViewColumn column{path, nullptr, nullptr, PartitionOf(options, path)};
    if (column.partition >= 0) {
      column.type = column.own_type = options.partitions->field(column.partition)->type();
    }
    Status why;
    for (const FileView& file : view->files) {
      if (column.type != nullptr) break;
      const pq::Schema& schema = *file.footer->schema();
      const Result<int> leaf = schema.KeyLeaf(path);
      if (leaf.ok()) {
        column.own_type = pq::LeafArrowType(schema, *leaf);
        column.type = pq::ComparableType(column.own_type);
      } else {
        why = leaf.status();
      }
    }
    if (column.type == nullptr) {
      return why.ok() ? InvalidArgument("no file has the column", "column", path) : why;
    }
    view->columns.push_back(std::move(column));
  }
  return Status::OK();
}

}  // namespace

Result<TableView> TableView::Read(store::Store& store, const std::vector<ViewFile>& files,
                                  const ViewOptions& options) {
  TableView view;
  const FileReader reader(store, options);
  std::vector<FileView> read(files.size());
  std::vector<std::string> reasons(files.size());
  const auto each = [&](auto step) {
    return arrow::internal::ParallelFor(static_cast<int>(files.size()), [&](int i) {
      const auto at = static_cast<size_t>(i);
      if (!reasons[at].empty()) return Status::OK();
      const Status status = step(files[at], &read[at]);
      if (status.ok()) return status;
      if (!options.skip_bad_files || !IsBadFile(status)) {
        return AddContext(status, "file", files[at].name);
      }
      reasons[at] = status.message();
      return Status::OK();
    });
  };
  ARROW_RETURN_NOT_OK(each([&](const ViewFile& in, FileView* out) {
    return reader.ReadFooter(in, out);
  }));
  for (size_t i = 0; i < files.size(); ++i) {
    read[i].input = static_cast<int>(i);
    if (reasons[i].empty()) view.files.push_back(read[i]);
  }
  ARROW_RETURN_NOT_OK(ResolveColumns(options, &view));
  view.files.clear();
  ARROW_RETURN_NOT_OK(each([&](const ViewFile& in, FileView* out) {
    return reader.ReadBounds(in, view.columns, out);
  }));
  for (size_t i = 0; i < files.size(); ++i) {
    if (!reasons[i].empty()) {
      view.bad_files.push_back({files[i].name, reasons[i]});
      continue;
    }
    view.rows += read[i].rows;
    view.bytes += read[i].bytes;
    view.leaf_count = std::max(view.leaf_count, read[i].footer->schema()->leaf_count());
    view.files.push_back(std::move(read[i]));
  }
  return view;
}

void BoundRanks::Add(const pq::Bounds& bounds) {
  for (const auto& bound : {bounds.min, bounds.max}) {
    if (bound != nullptr && bound->is_valid) values_.push_back(bound);
  }
}

void BoundRanks::Finish() {
  std::sort(values_.begin(), values_.end(), [](const auto& a, const auto& b) {
    return pq::CompareScalars(*a, *b) < 0;
  });
  values_.erase(std::unique(values_.begin(), values_.end(),
                            [](const auto& a, const auto& b) {
                              return pq::CompareScalars(*a, *b) == 0;
                            }),
                values_.end());
}

Interval BoundRanks::Of(const pq::Bounds& bounds) const {
  if (bounds.only_nulls()) return kNothing;
  const auto rank = [&](const std::shared_ptr<arrow::Scalar>& bound) {
    return std::lower_bound(values_.begin(), values_.end(), bound,
                            [](const auto& a, const auto& b) {
                              return pq::CompareScalars(*a, *b) < 0;
                            }) - values_.begin();
  };
  if (!bounds.has_both()) return kEverything;
  return {rank(bounds.min), rank(bounds.max)};
}

}  // namespace grebe::layout

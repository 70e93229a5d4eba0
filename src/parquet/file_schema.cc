#include "parquet/file_schema.h"

#include <arrow/io/memory.h>
#include <arrow/ipc/writer.h>
#include <arrow/record_batch.h>
#include <arrow/util/base64.h>
#include <arrow/util/key_value_metadata.h>
#include <parquet/arrow/reader.h>
#include <parquet/file_reader.h>

#include <algorithm>
#include <optional>
#include <set>

#include "base/coding.h"
#include "parquet/guard.h"
#include "parquet/schema_internal.h"
#include "parquet/thrift.h"

namespace grebe::pq {
namespace {

constexpr char kArrowSchemaKey[] = "ARROW:schema";

// The ARROW:schema metadata (empty: none) without the metadata of the schema as a whole (pandas
// puts the row range of the very file there). Fields keep theirs: it names extension types.
Result<std::string> ArrowSchemaOf(const ::parquet::FileMetaData& metadata) {
  const auto& all = metadata.key_value_metadata();
  if (all == nullptr || !all->Contains(kArrowSchemaKey)) return std::string();
  ::parquet::arrow::SchemaManifest manifest;
  ARROW_RETURN_NOT_OK(::parquet::arrow::SchemaManifest::Make(metadata.schema(), all,
                                                             ArrowProperties(), &manifest));
  if (manifest.origin_schema == nullptr) return std::string();
  ARROW_ASSIGN_OR_RAISE(auto message,
                        arrow::ipc::SerializeSchema(*manifest.origin_schema->RemoveMetadata()));
  return arrow::util::base64_encode(std::string_view(*message));
}

// The schema list as it lies in the footer (Thrift compact, FileMetaData's field 2).
Result<std::string_view> SchemaElements(std::string_view footer) {
  ThriftReader in({reinterpret_cast<const uint8_t*>(footer.data()), footer.size()});
  int previous_id = 0;
  ThriftReader::Field field;
  while (in.ReadField(&previous_id, &field) && field.type != ThriftReader::kStop) {
    const auto begin = static_cast<size_t>(in.consumed_bytes());
    if (!in.Skip(field.type)) break;
    if (field.id == 2 && field.type == ThriftReader::kList) {
      return footer.substr(begin, static_cast<size_t>(in.consumed_bytes()) - begin);
    }
  }
  return Corrupt("footer has no schema");
}

// A footer of the schema elements as they are: version 1, no rows, no row groups, the metadata.
std::string FooterOf(std::string_view elements, std::string_view arrow_schema) {
  std::string out("\x15\x02\x19", 3);
  out.append(elements);
  out.append("\x16\x00\x19\x0c", 4);
  if (!arrow_schema.empty()) {
    out.append("\x19\x1c\x18", 3);
    PutBytes(&out, kArrowSchemaKey);
    out.push_back('\x18');
    PutBytes(&out, arrow_schema);
    out.push_back('\0');
  }
  out.push_back('\0');
  return out;
}

// The footer that any file of this schema has, written by nobody and holding no rows. libparquet
// writes it anew, so that it does not depend on how the file's writer spelled the schema. A few
// schemas it reads but does not write (logical types it does not know): those stay as spelled.
Result<std::string> CanonicalBytes(const ::parquet::FileMetaData& metadata) {
  ARROW_ASSIGN_OR_RAISE(const std::string arrow_schema, ArrowSchemaOf(metadata));
  const auto rewritten = Guarded("rewriting the schema", [&] {
    ::parquet::WriterProperties::Builder properties;
    properties.created_by("");
    std::shared_ptr<const arrow::KeyValueMetadata> key_values;
    if (!arrow_schema.empty()) {
      key_values = arrow::key_value_metadata({kArrowSchemaKey}, {arrow_schema});
    }
    auto builder = ::parquet::FileMetaDataBuilder::Make(metadata.schema(), properties.build());
    return builder->Finish(key_values)->SerializeToString();
  });
  if (rewritten.ok()) return rewritten;
  const std::string footer = metadata.Subset({})->SerializeToString();
  ARROW_ASSIGN_OR_RAISE(const std::string_view elements, SchemaElements(footer));
  return FooterOf(elements, arrow_schema);
}

Result<std::unique_ptr<Schema::Impl>> MakeImpl(std::string bytes) {
  auto impl = std::make_unique<Schema::Impl>();
  impl->metadata = ::parquet::FileMetaData::Make(
      bytes.data(), static_cast<int64_t>(bytes.size()), FooterProperties());
  if (impl->metadata->num_row_groups() != 0) {
    return Corrupt("serialized schema holds row groups");
  }
  impl->bytes = std::move(bytes);
  impl->descriptor = impl->metadata->schema();
  const auto& key_values = impl->metadata->key_value_metadata();
  ARROW_RETURN_NOT_OK(::parquet::arrow::SchemaManifest::Make(impl->descriptor, key_values,
                                                             ArrowProperties(), &impl->manifest));
  ARROW_RETURN_NOT_OK(::parquet::arrow::FromParquetSchema(impl->descriptor, ArrowProperties(),
                                                          key_values, &impl->arrow_schema));
  const int leaves = impl->descriptor->num_columns();
  for (int leaf = 0; leaf < leaves; ++leaf) {
    impl->leaf_paths.push_back(impl->descriptor->Column(leaf)->path()->ToDotString());
    impl->leaf_roots.push_back(
        impl->descriptor->group_node()->FieldIndex(*impl->descriptor->GetColumnRoot(leaf)));
  }
  return impl;
}

using LeafSet = std::set<int>;

// A node of the schema that a path names. A struct of one member is not that member.
struct Match {
  LeafSet leaves;
  bool is_leaf = false;
  auto operator<=>(const Match&) const = default;
};

void CollectLeaves(const ::parquet::arrow::SchemaField& field, LeafSet* out) {
  if (field.is_leaf()) out->insert(field.column_index);
  for (const auto& child : field.children) CollectLeaves(child, out);
}

// What is left of `path` after `name` as its first step: nullopt when it does not begin so.
std::optional<std::string_view> AfterStep(std::string_view path, std::string_view name) {
  if (!path.starts_with(name)) return std::nullopt;
  if (path.size() == name.size()) return std::string_view();
  if (path[name.size()] != '.') return std::nullopt;
  return path.substr(name.size() + 1);
}

Match MatchOf(const ::parquet::arrow::SchemaField& field) {
  Match match;
  CollectLeaves(field, &match.leaves);
  match.is_leaf = field.is_leaf();
  return match;
}

// Every node below `fields` that the path names, by Arrow names.
void MatchArrow(const std::vector<::parquet::arrow::SchemaField>& fields, std::string_view path,
                std::set<Match>* found) {
  for (const auto& field : fields) {
    const std::string& name = field.field->name();
    const auto rest = AfterStep(path, name);
    if (!rest) continue;
    if (path.size() == name.size()) {
      found->insert(MatchOf(field));
      continue;
    }
    MatchArrow(field.children, *rest, found);
    // A map's entries need not be named: "m.value" as well as "m.key_value.value".
    if (field.field->type()->id() == arrow::Type::MAP && field.children.size() == 1) {
      MatchArrow(field.children[0].children, *rest, found);
    }
  }
}

// The same, by Parquet names: leaves whose dotted path is the path, or begins with it.
void MatchParquet(const Schema::Impl& impl, std::string_view path, std::set<Match>* found) {
  Match below;
  for (size_t leaf = 0; leaf < impl.leaf_paths.size(); ++leaf) {
    const auto rest = AfterStep(impl.leaf_paths[leaf], path);
    if (!rest) continue;
    below.leaves.insert(static_cast<int>(leaf));
    below.is_leaf = impl.leaf_paths[leaf].size() == path.size();
  }
  if (!below.leaves.empty()) found->insert(std::move(below));
}

Result<Match> ResolvePath(const Schema::Impl& impl, std::string_view path) {
  std::vector<Match> top_level;
  for (const auto& field : impl.manifest.schema_fields) {
    if (field.field->name() == path) top_level.push_back(MatchOf(field));
  }
  if (top_level.size() == 1) return top_level[0];
  if (top_level.size() > 1) return InvalidArgument("column name is there twice", "column", path);
  std::set<Match> found;
  MatchArrow(impl.manifest.schema_fields, path, &found);
  // The Parquet spelling counts only where the Arrow one names nothing: it cannot tell a dot
  // inside a name from one between names.
  if (found.empty()) MatchParquet(impl, path, &found);
  if (found.empty()) return InvalidArgument("no such column", "column", path);
  if (found.size() > 1) return InvalidArgument("column name is ambiguous", "column", path);
  return *found.begin();
}

// The fields that libparquet's reader gives for these leaves; asked of that reader itself, so that
// pruned lists and maps get exactly its types.
Result<std::shared_ptr<arrow::Schema>> PrunedSchema(const Schema::Impl& impl,
                                                    const std::vector<int>& leaves) {
  auto nothing = std::make_shared<arrow::io::BufferReader>(arrow::Buffer::FromString(""));
  auto reader = ::parquet::ParquetFileReader::Open(nothing, FooterProperties(), impl.metadata);
  auto properties = ArrowProperties();
  properties.set_pre_buffer(false);
  ARROW_ASSIGN_OR_RAISE(auto file, ::parquet::arrow::FileReader::Make(
                                       arrow::default_memory_pool(), std::move(reader),
                                       properties));
  ARROW_ASSIGN_OR_RAISE(auto batches, file->GetRecordBatchReader({}, leaves));
  return batches->schema();
}

}  // namespace

::parquet::ArrowReaderProperties ArrowProperties() {
  ::parquet::ArrowReaderProperties properties(/*use_threads=*/false);
  properties.set_arrow_extensions_enabled(true);
  return properties;
}

::parquet::ReaderProperties FooterProperties() { return ::parquet::ReaderProperties(); }

Schema::Schema() = default;
Schema::~Schema() = default;

std::shared_ptr<const Schema> Schema::FromImpl(std::unique_ptr<Impl> impl) {
  std::shared_ptr<Schema> schema(new Schema());
  schema->impl_ = std::move(impl);
  return schema;
}

Result<std::shared_ptr<const Schema>> Schema::Open(std::string_view bytes) {
  ARROW_ASSIGN_OR_RAISE(auto impl, Guarded("parsing a schema", [&] {
                          return MakeImpl(std::string(bytes));
                        }));
  return FromImpl(std::move(impl));
}

Result<std::shared_ptr<const Schema>> SchemaOf(const ::parquet::FileMetaData& metadata) {
  ARROW_ASSIGN_OR_RAISE(auto bytes, Guarded("reading the schema",
                                            [&] { return CanonicalBytes(metadata); }));
  return Schema::Open(bytes);
}

const std::string& Schema::Serialize() const { return impl_->bytes; }

int Schema::leaf_count() const { return impl_->descriptor->num_columns(); }

std::string Schema::leaf_path(int leaf) const {
  return impl_->leaf_paths[static_cast<size_t>(leaf)];
}

bool Schema::leaf_is_repeated(int leaf) const {
  return impl_->descriptor->Column(leaf)->max_repetition_level() > 0;
}

const std::shared_ptr<arrow::Schema>& Schema::arrow_schema() const { return impl_->arrow_schema; }

Result<Projection> Schema::Project(std::span<const std::string> paths) const {
  Projection projection;
  LeafSet wanted;
  if (paths.empty()) {
    for (int leaf = 0; leaf < leaf_count(); ++leaf) wanted.insert(leaf);
    projection.arrow_schema = impl_->arrow_schema;
  }
  for (const std::string& path : paths) {
    ARROW_ASSIGN_OR_RAISE(auto match, ResolvePath(*impl_, path));
    wanted.merge(match.leaves);
  }
  projection.leaves.assign(wanted.begin(), wanted.end());
  if (projection.arrow_schema != nullptr) return projection;

  std::vector<std::shared_ptr<arrow::Field>> fields;
  bool whole_fields = true;
  for (const auto& field : impl_->manifest.schema_fields) {
    LeafSet leaves;
    CollectLeaves(field, &leaves);
    const auto count = std::ranges::count_if(leaves, [&](int i) { return wanted.contains(i); });
    if (count == 0) continue;
    fields.push_back(field.field);
    whole_fields = whole_fields && count == static_cast<ptrdiff_t>(leaves.size());
  }
  if (!whole_fields) {
    ARROW_ASSIGN_OR_RAISE(auto pruned, Guarded("pruning the schema", [&] {
                            return PrunedSchema(*impl_, projection.leaves);
                          }));
    fields = pruned->fields();
  }
  projection.arrow_schema = arrow::schema(std::move(fields), impl_->arrow_schema->metadata());
  return projection;
}

Result<int> Schema::KeyLeaf(std::string_view path) const {
  ARROW_ASSIGN_OR_RAISE(auto match, ResolvePath(*impl_, path));
  if (!match.is_leaf || match.leaves.size() != 1) {
    return InvalidArgument("a group cannot be a key, only a column in it", "column", path);
  }
  const int leaf = *match.leaves.begin();
  if (leaf_is_repeated(leaf)) {
    return InvalidArgument("a column inside a list or map cannot be a key", "column", path);
  }
  return leaf;
}

}  // namespace grebe::pq

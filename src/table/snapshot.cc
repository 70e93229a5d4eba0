#include "table/snapshot.h"

#include <arrow/scalar.h>
#include <arrow/util/value_parsing.h>

#include <algorithm>
#include <cstdio>

#include "base/hash.h"
#include "store/uri.h"

namespace grebe::table {
namespace {

constexpr std::string_view kHiveNull = "__HIVE_DEFAULT_PARTITION__";

bool HasParquetSuffix(std::string_view name) {
  return name.ends_with(".parquet") || name.ends_with(".parq") || name.ends_with(".pq");
}

template <class Visit>
void ForEachComponent(std::string_view path, const Visit& visit) {
  while (true) {
    const size_t slash = path.find('/');
    visit(path.substr(0, slash), slash == std::string_view::npos);
    if (slash == std::string_view::npos) return;
    path.remove_prefix(slash + 1);
  }
}

bool IsHidden(std::string_view path) {
  bool hidden = false;
  ForEachComponent(path, [&](std::string_view part, bool is_last) {
    const bool odd = part.empty() || part.front() == '_' || part.front() == '.';
    if (odd && (is_last || part.find('=') == std::string_view::npos)) hidden = true;
  });
  return hidden;
}

// Iceberg keeps metadata/*.metadata.json, Delta _delta_log/.
Status RefuseTableFormats(std::string_view relative) {
  if (relative.starts_with("_delta_log/")) {
    return Unsupported("this is a Delta table: its folder also holds removed rows", "path",
                       relative);
  }
  if (relative.starts_with("metadata/") && relative.ends_with(".metadata.json")) {
    return Unsupported("this is an Iceberg table: its folder also holds removed rows", "path",
                       relative);
  }
  return Status::OK();
}

std::shared_ptr<arrow::DataType> NarrowestType(const std::vector<std::string>& values) {
  const auto all = [&](const std::shared_ptr<arrow::DataType>& type) {
    return std::all_of(values.begin(), values.end(), [&](const std::string& value) {
      if (type->id() == arrow::Type::INT64) {
        int64_t parsed;
        return arrow::internal::ParseValue<arrow::Int64Type>(value.data(), value.size(), &parsed);
      }
      int32_t days;
      return arrow::internal::ParseValue<arrow::Date32Type>(value.data(), value.size(), &days);
    });
  };
  if (values.empty()) return arrow::utf8();
  if (all(arrow::int64())) return arrow::int64();
  if (all(arrow::date32())) return arrow::date32();
  return arrow::utf8();
}

// TABLE is one file: its folder is the root.
Result<Snapshot> SingleFile(const store::Location& table) {
  auto found = table.store->Stat(table.path);
  if (!found.ok()) {
    if (!IsKind(found.status(), ErrorKind::kNotFound)) return found.status();
    return NotFound("no such table, or an empty folder", "path", store::DisplayUri(table));
  }
  const size_t slash = table.path.rfind('/');
  Snapshot snapshot;
  snapshot.root.store = table.store;
  snapshot.root.path = slash == std::string::npos ? "" : table.path.substr(0, slash);
  snapshot.single_file = slash == std::string::npos ? table.path : table.path.substr(slash + 1);
  store::Object file = *std::move(found);
  file.path = snapshot.single_file;
  snapshot.files.push_back(std::move(file));
  return snapshot;
}

}  // namespace

std::string SnapshotId(const std::vector<store::Object>& files) {
  std::string all;
  for (const store::Object& file : files) {
    all += file.path + '\0' + file.identity.tag + '\0' +
           std::to_string(file.identity.size_bytes) + '\n';
  }
  char hex[17];
  std::snprintf(hex, sizeof(hex), "%016llx", static_cast<unsigned long long>(Checksum(all)));
  return hex;
}

bool LooksLikeFile(std::string_view path) { return HasParquetSuffix(path); }

Result<std::vector<PartitionValue>> ParsePartitions(std::string_view path) {
  std::vector<PartitionValue> out;
  ForEachComponent(path, [&](std::string_view part, bool is_last) {
    const size_t equals = part.find('=');
    if (is_last || equals == std::string_view::npos || equals == 0) return;
    PartitionValue value;
    value.name = store::PercentDecode(part.substr(0, equals));
    const std::string_view text = part.substr(equals + 1);
    if (text != kHiveNull) value.value = store::PercentDecode(text);
    out.push_back(std::move(value));
  });
  for (size_t i = 0; i < out.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (out[i].name == out[j].name) {
        return InvalidArgument("a partition column occurs twice in one path", "column", out[i].name,
                               "path", path);
      }
    }
  }
  return out;
}

Result<PartitionScheme> InferPartitions(const std::vector<std::string_view>& paths) {
  std::vector<std::string> names;
  std::vector<std::vector<std::string>> values;
  std::string_view last_folder;
  for (std::string_view path : paths) {
    const std::string_view folder = path.substr(0, path.rfind('/') + 1);
    if (!last_folder.empty() && folder == last_folder) continue;   // neighbours share a folder
    last_folder = folder;
    ARROW_ASSIGN_OR_RAISE(std::vector<PartitionValue> parts, ParsePartitions(path));
    for (PartitionValue& part : parts) {
      size_t at = std::find(names.begin(), names.end(), part.name) - names.begin();
      if (at == names.size()) {
        names.push_back(part.name);
        values.emplace_back();
      }
      if (part.value) values[at].push_back(*std::move(part.value));
    }
  }
  arrow::FieldVector fields;
  for (size_t i = 0; i < names.size(); ++i) {
    fields.push_back(arrow::field(names[i], NarrowestType(values[i])));
  }
  return PartitionScheme{arrow::schema(std::move(fields))};
}

Result<std::shared_ptr<arrow::Scalar>> PartitionScalar(const arrow::Field& field,
                                                       std::string_view path) {
  ARROW_ASSIGN_OR_RAISE(std::vector<PartitionValue> parts, ParsePartitions(path));
  for (const PartitionValue& part : parts) {
    if (part.name != field.name()) continue;
    if (!part.value) break;
    return arrow::Scalar::Parse(field.type(), *part.value);
  }
  return arrow::MakeNullScalar(field.type());
}

Result<Snapshot> ReadSnapshot(const store::Location& table) {
  const std::string prefix = table.path.empty() ? "" : table.path + "/";
  ARROW_ASSIGN_OR_RAISE(std::vector<store::Object> listed, table.store->List(prefix));
  Snapshot snapshot;
  if (listed.empty()) {
    ARROW_ASSIGN_OR_RAISE(snapshot, SingleFile(table));
  } else {
    snapshot.root = table;
    for (store::Object& object : listed) {
      std::string relative = object.path.substr(prefix.size());
      ARROW_RETURN_NOT_OK(RefuseTableFormats(relative));
      if (!HasParquetSuffix(relative) || IsHidden(relative)) continue;
      object.path = std::move(relative);
      snapshot.files.push_back(std::move(object));
    }
    std::vector<std::string_view> paths(snapshot.files.size());
    std::transform(snapshot.files.begin(), snapshot.files.end(), paths.begin(),
                   [](const store::Object& file) { return std::string_view(file.path); });
    ARROW_ASSIGN_OR_RAISE(snapshot.partitions, InferPartitions(paths));
  }
  if (snapshot.partitions.schema == nullptr) snapshot.partitions.schema = arrow::schema({});
  snapshot.kind = snapshot.partitions.empty() ? "plain" : "hive";
  snapshot.id = SnapshotId(snapshot.files);
  return snapshot;
}

}  // namespace grebe::table

// The manifest's JSON. docs/format/manifest.md describes it; ManifestLog is in manifest_log.cc.
#include "index/manifest.h"

#include <arrow/util/base64.h>
#include <sys/random.h>

#include <chrono>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/coding.h"
#include "base/hash.h"

namespace grebe::index {
namespace {

using Json = nlohmann::json;

// The text ends with this tail in every format version: a damaged byte anywhere is found before
// anything is interpreted.
constexpr std::string_view kTailStart = ",\n\"checksum\":\"";
constexpr std::string_view kTailEnd = "\"}\n";
constexpr size_t kChecksumDigits = 16;
constexpr size_t kTailBytes = kTailStart.size() + kChecksumDigits + kTailEnd.size();
// The deepest value is manifest > array > object > bytes object.
constexpr int kDepthMax = 5;

std::string Hex64(uint64_t value) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text(16, '0');
  for (int i = 15; i >= 0; --i, value >>= 4) text[i] = kDigits[value & 15];
  return text;
}

bool ParseHex64(std::string_view text, uint64_t* value) {
  if (text.size() != 16) return false;
  uint64_t result = 0;
  for (const char c : text) {
    int digit;
    if (c >= '0' && c <= '9') {
      digit = c - '0';
    } else if (c >= 'a' && c <= 'f') {
      digit = c - 'a' + 10;
    } else {
      return false;
    }
    result = result << 4 | static_cast<uint64_t>(digit);
  }
  *value = result;
  return true;
}

// Well-formed UTF-8: no overlong forms, no surrogates, at most U+10FFFF.
bool IsUtf8(std::string_view text) {
  const auto* at = reinterpret_cast<const uint8_t*>(text.data());
  const uint8_t* const end = at + text.size();
  while (at < end) {
    const uint8_t lead = *at++;
    if (lead < 0x80) continue;
    if (lead < 0xc2 || lead > 0xf4) return false;
    const int more = lead < 0xe0 ? 1 : lead < 0xf0 ? 2 : 3;
    if (end - at < more) return false;
    uint8_t low = 0x80, high = 0xbf;
    if (lead == 0xe0) low = 0xa0;
    if (lead == 0xed) high = 0x9f;
    if (lead == 0xf0) low = 0x90;
    if (lead == 0xf4) high = 0x8f;
    for (int i = 0; i < more; ++i, ++at, low = 0x80, high = 0xbf) {
      if (*at < low || *at > high) return false;
    }
  }
  return true;
}

// A string as it is, or, when JSON cannot hold its bytes, {"base64": ...}. One form per value.
Json StringJson(const std::string& text) {
  if (IsUtf8(text)) return Json(text);
  return Json{{"base64", arrow::util::base64_encode(text)}};
}

Json IdentityJson(const store::Identity& identity) {
  return Json{{"size_bytes", identity.size_bytes}, {"tag", StringJson(identity.tag)}};
}

// ---- Reading: every member must be asked for, once, with its type.

class ObjectReader {
 public:
  ObjectReader(const Json& json, std::string where) : json_(json), where_(std::move(where)) {
    if (!json.is_object()) Fail("manifest member is not an object", where_);
  }

  const Status& status() const { return status_; }
  bool ok() const { return status_.ok(); }

  void Fail(std::string_view what, const std::string& member) {
    if (status_.ok()) status_ = Corrupt(what, "member", member.empty() ? "(all)" : member);
  }
  void Take(const Status& status) {
    if (status_.ok()) status_ = status;
  }

  std::string Where(std::string_view name) const {
    return where_.empty() ? std::string(name) : where_ + "." + std::string(name);
  }

  const Json* Member(std::string_view name) {
    if (!ok()) return nullptr;
    const auto found = json_.find(name);
    if (found == json_.end()) {
      Fail("manifest member is missing", Where(name));
      return nullptr;
    }
    ++taken_;
    return &*found;
  }

  void Int(std::string_view name, int64_t low, int64_t high, int64_t* out) {
    const Json* value = Member(name);
    if (value == nullptr) return;
    const bool too_big = value->is_number_unsigned() &&
                         value->get<uint64_t>() > uint64_t{std::numeric_limits<int64_t>::max()};
    if (!value->is_number_integer()) return Fail("manifest member is not an integer", Where(name));
    if (too_big || value->get<int64_t>() < low || value->get<int64_t>() > high) {
      return Fail("manifest member is out of range", Where(name));
    }
    *out = value->get<int64_t>();
  }

  void Bool(std::string_view name, bool* out) {
    const Json* value = Member(name);
    if (value == nullptr) return;
    if (!value->is_boolean()) return Fail("manifest member is not true or false", Where(name));
    *out = value->get<bool>();
  }

  void String(std::string_view name, std::string* out) {
    const Json* value = Member(name);
    if (value != nullptr) StringValue(*value, Where(name), out);
  }

  void StringValue(const Json& value, const std::string& where, std::string* out) {
    if (value.is_string()) {
      *out = value.get_ref<const std::string&>();
      return;
    }
    if (!value.is_object()) return Fail("manifest member is not a string", where);
    ObjectReader inner(value, where);
    inner.Base64("base64", out);
    inner.Finish();
    Take(inner.status());
    if (ok() && IsUtf8(*out)) Fail("manifest member is text written as bytes", where);
  }

  void Base64(std::string_view name, std::string* out) {
    const Json* value = Member(name);
    if (value == nullptr) return;
    if (!value->is_string()) return Fail("manifest member is not a string", Where(name));
    const std::string& text = value->get_ref<const std::string&>();
    auto decoded = arrow::util::base64_decode(text);
    if (!decoded.ok() || arrow::util::base64_encode(*decoded) != text) {
      return Fail("manifest member is not base64", Where(name));
    }
    *out = std::move(*decoded);
  }

  void Hex(std::string_view name, uint64_t* out) {
    const Json* value = Member(name);
    if (value == nullptr) return;
    if (!value->is_string() || !ParseHex64(value->get_ref<const std::string&>(), out)) {
      Fail("manifest member is not 16 hexadecimal digits", Where(name));
    }
  }

  void Identity(std::string_view name, store::Identity* out) {
    const Json* value = Member(name);
    if (value == nullptr) return;
    ObjectReader inner(*value, Where(name));
    inner.Int("size_bytes", -1, std::numeric_limits<int64_t>::max(), &out->size_bytes);
    inner.String("tag", &out->tag);
    inner.Finish();
    Take(inner.status());
  }

  // Calls each(reader of the element) for every element of an array of objects.
  template <class Each>
  void Objects(std::string_view name, const Each& each) {
    const Json* value = Member(name);
    if (value == nullptr) return;
    if (!value->is_array()) return Fail("manifest member is not an array", Where(name));
    for (size_t i = 0; i < value->size() && ok(); ++i) {
      ObjectReader inner((*value)[i], Where(name) + "[" + std::to_string(i) + "]");
      if (inner.ok()) each(inner);
      inner.Finish();
      Take(inner.status());
    }
  }

  void Strings(std::string_view name, std::vector<std::string>* out) {
    const Json* value = Member(name);
    if (value == nullptr) return;
    if (!value->is_array()) return Fail("manifest member is not an array", Where(name));
    for (size_t i = 0; i < value->size() && ok(); ++i) {
      StringValue((*value)[i], Where(name) + "[" + std::to_string(i) + "]", &out->emplace_back());
    }
  }

  // Every member must have been taken (names are distinct: Parse refuses duplicates).
  void Finish() {
    if (ok() && taken_ != json_.size()) Fail("unknown manifest member in", where_);
  }

 private:
  const Json& json_;
  std::string where_;
  Status status_;
  size_t taken_ = 0;
};

constexpr int64_t kIntMax = std::numeric_limits<int64_t>::max();

void ReadFragment(ObjectReader& reader, FragmentInfo* fragment) {
  reader.String("path", &fragment->path);
  reader.Int("size_bytes", 0, kIntMax, &fragment->size_bytes);
  reader.Int("head_begin", 0, kIntMax, &fragment->head.begin);
  reader.Int("head_end", 0, kIntMax, &fragment->head.end);
  reader.Hex("head_checksum", &fragment->head_checksum);
  reader.Int("row_count", 0, kIntMax, &fragment->row_count);
  reader.Int("key_count", 0, kIntMax, &fragment->key_count);
  reader.Int("file_count", 0, std::numeric_limits<uint32_t>::max(), &fragment->file_count);
}

void ReadMembers(ObjectReader& reader, Manifest* manifest) {
  reader.Int("version", 1, kIntMax, &manifest->version);
  reader.String("index_id", &manifest->index_id);
  reader.Objects("key", [&](ObjectReader& inner) {
    auto& column = manifest->key.emplace_back();
    inner.String("name", &column.name);
    inner.String("type", &column.type);
  });
  reader.Strings("covering", &manifest->covering);
  reader.Base64("covering_schema", &manifest->covering_schema);
  reader.Bool("sorted", &manifest->sorted);
  reader.String("table_uri", &manifest->table_uri);
  reader.String("table_kind", &manifest->table_kind);
  reader.String("snapshot_id", &manifest->snapshot_id);
  reader.String("created_at", &manifest->created_at);
  reader.String("writer", &manifest->writer);
  reader.String("commit_id", &manifest->commit_id);
  reader.Bool("dropped", &manifest->dropped);
  reader.Objects("fragments", [&](ObjectReader& inner) {
    ReadFragment(inner, &manifest->fragments.emplace_back());
  });
  reader.Objects("dead_files", [&](ObjectReader& inner) {
    auto& dead = manifest->dead_files.emplace_back();
    int64_t file = 0;
    inner.String("fragment", &dead.fragment);
    inner.Int("file", 0, std::numeric_limits<uint32_t>::max(), &file);
    dead.file = static_cast<uint32_t>(file);
    inner.Int("row_count", 0, std::numeric_limits<int64_t>::max(), &dead.row_count);
  });
  reader.Objects("skipped_files", [&](ObjectReader& inner) {
    auto& skipped = manifest->skipped_files.emplace_back();
    inner.String("path", &skipped.path);
    inner.Identity("identity", &skipped.identity);
    inner.String("reason", &skipped.reason);
  });
}

// Parses the text, refusing what a JSON object in memory would hide: duplicate names and nesting
// deeper than any manifest's.
Result<Json> ParseJson(std::string_view text) {
  std::vector<std::set<std::string>> names;
  bool too_deep = false;
  std::string duplicate;
  const auto on_event = [&](int depth, Json::parse_event_t event, Json& parsed) {
    if (depth > kDepthMax) {
      too_deep = true;
      return false;
    }
    if (event == Json::parse_event_t::object_start) names.emplace_back();
    if (event == Json::parse_event_t::object_end && !names.empty()) names.pop_back();
    if (event == Json::parse_event_t::key && !names.empty()) {
      const auto& name = parsed.get_ref<const std::string&>();
      if (!names.back().insert(name).second && duplicate.empty()) duplicate = name;
    }
    return true;
  };
  Json json = Json::parse(text.begin(), text.end(), on_event, /*allow_exceptions=*/false);
  if (too_deep) return Corrupt("manifest is nested too deeply", "member", "(all)");
  if (!duplicate.empty()) return Corrupt("manifest member occurs twice", "member", duplicate);
  if (json.is_discarded()) return Corrupt("manifest is not JSON", "member", "(all)");
  return json;
}

Status CheckTail(std::string_view text) {
  if (text.size() < kTailBytes) return Corrupt("manifest is cut short", "member", "checksum");
  const std::string_view tail = text.substr(text.size() - kTailBytes);
  uint64_t expected = 0;
  if (tail.substr(0, kTailStart.size()) != kTailStart ||
      tail.substr(kTailBytes - kTailEnd.size()) != kTailEnd ||
      !ParseHex64(tail.substr(kTailStart.size(), kChecksumDigits), &expected)) {
    return Corrupt("manifest does not end in its checksum", "member", "checksum");
  }
  const uint64_t got = Checksum(text.substr(0, text.size() - kTailBytes));
  if (got != expected) {
    return Corrupt("manifest checksum differs", "member", "checksum", "expected", Hex64(expected),
                   "got", Hex64(got));
  }
  return Status::OK();
}

bool IsFragmentPath(std::string_view path) {
  constexpr std::string_view kFolder = "fragment/", kEnding = ".gfx";
  if (!path.starts_with(kFolder) || !path.ends_with(kEnding)) return false;
  const std::string_view name = path.substr(kFolder.size());
  if (name.size() <= kEnding.size() || name.front() == '.') return false;
  for (const char c : name) {
    const bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                       c == '-' || c == '_' || c == '.';
    if (!plain) return false;
  }
  return true;
}

// Appends `"name":[` elements, one a line, `]`.
void AppendArray(const char* name, const Json& elements, std::string* out) {
  out->append(",\n\"").append(name).append("\":[");
  const char* between = "\n";
  for (const Json& element : elements) {
    out->append(between).append(element.dump());
    between = ",\n";
  }
  out->push_back(']');
}

void AppendMember(const char* name, const Json& value, std::string* out) {
  out->append(",\n\"").append(name).append("\":").append(value.dump());
}

}  // namespace

std::string SerializeManifest(const Manifest& manifest) {
  Json covering = Json::array(), dead_files = Json::array(), fragments = Json::array(),
       key = Json::array(), skipped_files = Json::array();
  for (const std::string& path : manifest.covering) covering.push_back(StringJson(path));
  for (const Manifest::DeadFile& dead : manifest.dead_files) {
    dead_files.push_back({{"file", dead.file},
                          {"fragment", StringJson(dead.fragment)},
                          {"row_count", dead.row_count}});
  }
  for (const FragmentInfo& fragment : manifest.fragments) {
    fragments.push_back({{"path", StringJson(fragment.path)},
                         {"size_bytes", fragment.size_bytes},
                         {"head_begin", fragment.head.begin},
                         {"head_end", fragment.head.end},
                         {"head_checksum", Hex64(fragment.head_checksum)},
                         {"row_count", fragment.row_count},
                         {"key_count", fragment.key_count},
                         {"file_count", fragment.file_count}});
  }
  for (const KeyColumnSpec& column : manifest.key) {
    key.push_back({{"name", StringJson(column.name)}, {"type", StringJson(column.type)}});
  }
  for (const Manifest::SkippedFile& skipped : manifest.skipped_files) {
    skipped_files.push_back({{"path", StringJson(skipped.path)},
                             {"identity", IdentityJson(skipped.identity)},
                             {"reason", StringJson(skipped.reason)}});
  }
  std::string out = "{\n\"commit_id\":" + StringJson(manifest.commit_id).dump();
  AppendArray("covering", covering, &out);
  AppendMember("covering_schema", arrow::util::base64_encode(manifest.covering_schema), &out);
  AppendMember("created_at", StringJson(manifest.created_at), &out);
  AppendArray("dead_files", dead_files, &out);
  AppendMember("dropped", manifest.dropped, &out);
  AppendMember("format_version", Manifest::kFormatVersion, &out);
  AppendArray("fragments", fragments, &out);
  AppendMember("index_id", StringJson(manifest.index_id), &out);
  AppendArray("key", key, &out);
  AppendArray("skipped_files", skipped_files, &out);
  AppendMember("snapshot_id", StringJson(manifest.snapshot_id), &out);
  AppendMember("sorted", manifest.sorted, &out);
  AppendMember("table_kind", StringJson(manifest.table_kind), &out);
  AppendMember("table_uri", StringJson(manifest.table_uri), &out);
  AppendMember("version", manifest.version, &out);
  AppendMember("writer", StringJson(manifest.writer), &out);
  const uint64_t checksum = Checksum(out);
  out.append(kTailStart).append(Hex64(checksum)).append(kTailEnd);
  return out;
}

namespace {

Result<Manifest> ParseOrThrow(std::string_view text) {
  ARROW_RETURN_NOT_OK(CheckTail(text));
  ARROW_ASSIGN_OR_RAISE(const Json json, ParseJson(text));
  ObjectReader reader(json, "");
  int64_t format_version = 0;
  reader.Int("format_version", 1, kIntMax, &format_version);
  ARROW_RETURN_NOT_OK(reader.status());
  // Before anything else is looked at: later versions may have any other members.
  if (format_version != Manifest::kFormatVersion) {
    return Unsupported("manifest of an unknown format version", "format_version", format_version,
                       "known", int{Manifest::kFormatVersion});
  }
  Manifest manifest;
  ReadMembers(reader, &manifest);
  std::string checksum;
  reader.String("checksum", &checksum);
  reader.Finish();
  ARROW_RETURN_NOT_OK(reader.status());
  ARROW_RETURN_NOT_OK(CheckManifest(manifest));
  return manifest;
}

std::string UuidText(uint8_t (&bytes)[16], int version) {
  static constexpr char kDigits[] = "0123456789abcdef";
  bytes[6] = static_cast<uint8_t>((bytes[6] & 0x0f) | version << 4);
  bytes[8] = static_cast<uint8_t>((bytes[8] & 0x3f) | 0x80);
  std::string text;
  for (int i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text.push_back('-');
    text.push_back(kDigits[bytes[i] >> 4]);
    text.push_back(kDigits[bytes[i] & 15]);
  }
  return text;
}

// From the kernel, so that forked processes differ.
void FillRandom(uint8_t (&bytes)[16]) {
  size_t filled = 0;
  while (filled < sizeof(bytes)) {
    const ssize_t got = getrandom(bytes + filled, sizeof(bytes) - filled, 0);
    if (got > 0) filled += static_cast<size_t>(got);
  }
}

}  // namespace

Result<Manifest> ParseManifest(std::string_view json) {
  try {
    return ParseOrThrow(json);
  } catch (const std::exception& error) {
    return Corrupt("manifest cannot be parsed", "reason", error.what());
  }
}

Status CheckManifest(const Manifest& manifest) {
  const auto bad = [](std::string_view what, std::string_view array, size_t i, const char* name) {
    return Corrupt(what, "member",
                   std::string(array) + "[" + std::to_string(i) + "]." + name);
  };
  if (manifest.version < 1) return Corrupt("manifest version is not positive", "member", "version");
  if (manifest.index_id.empty()) return Corrupt("manifest member is empty", "member", "index_id");
  if (manifest.key.empty()) return Corrupt("manifest member is empty", "member", "key");
  if (manifest.dropped && !manifest.fragments.empty()) {
    return Corrupt("a dropped index has fragments", "member", "fragments");
  }
  std::unordered_map<std::string_view, int64_t> file_counts, live_rows;
  for (size_t i = 0; i < manifest.fragments.size(); ++i) {
    const FragmentInfo& fragment = manifest.fragments[i];
    if (!IsFragmentPath(fragment.path)) return bad("not a fragment's path", "fragments", i, "path");
    live_rows.emplace(fragment.path, fragment.row_count);
    if (!file_counts.emplace(fragment.path, fragment.file_count).second) {
      return bad("fragment occurs twice", "fragments", i, "path");
    }
    if (fragment.size_bytes < 0 || fragment.head.begin < 0 ||
        fragment.head.begin > fragment.head.end || fragment.head.end > fragment.size_bytes) {
      return bad("fragment head is outside its object", "fragments", i, "head_end");
    }
    if (fragment.row_count < 0 || fragment.key_count < 0 || fragment.file_count < 0) {
      return bad("fragment count is negative", "fragments", i, "row_count");
    }
  }
  std::set<std::pair<std::string_view, uint32_t>> dead_files;
  for (size_t i = 0; i < manifest.dead_files.size(); ++i) {
    const Manifest::DeadFile& dead = manifest.dead_files[i];
    const auto found = file_counts.find(dead.fragment);
    if (found == file_counts.end()) return bad("no such fragment", "dead_files", i, "fragment");
    if (dead.file >= found->second) return bad("no such file", "dead_files", i, "file");
    if (!dead_files.emplace(dead.fragment, dead.file).second) {
      return bad("dead file occurs twice", "dead_files", i, "file");
    }
    if (dead.row_count < 0 || (live_rows[dead.fragment] -= dead.row_count) < 0) {
      return bad("dead files have more rows than their fragment", "dead_files", i, "row_count");
    }
  }
  return Status::OK();
}

std::string NewIndexId() {
  uint8_t bytes[16];
  FillRandom(bytes);
  return UuidText(bytes, 4);
}

std::string NewFragmentPath() {
  uint8_t bytes[16];
  FillRandom(bytes);
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto now_ms = std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
  for (int i = 0; i < 6; ++i) bytes[i] = static_cast<uint8_t>(now_ms >> (40 - 8 * i));
  return "fragment/" + UuidText(bytes, 7) + ".gfx";
}

}  // namespace grebe::index

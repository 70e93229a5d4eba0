#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "base/hash.h"
#include "base/rng.h"
#include "index/manifest.h"
#include "testing/source_folder.h"

namespace grebe::index {
namespace {

FragmentInfo FragmentAt(std::string path, int64_t file_count) {
  FragmentInfo fragment;
  fragment.path = std::move(path);
  fragment.file_count = file_count;
  return fragment;
}

Manifest Full() {
  Manifest manifest;
  manifest.version = 42;
  manifest.index_id = "5f0e2f2c-0000-4000-8000-000000000001";
  manifest.key = {{"user_id", "int"}, {"a.b \"quoted\"", "string"}};
  manifest.covering = {"price", "x.y"};
  manifest.covering_schema = std::string("\x00\xff\x10ipc", 6);
  manifest.table_uri = "s3://bucket/a table/with%20percent";
  manifest.table_kind = "hive";
  manifest.snapshot_id = "snap";
  manifest.created_at = "2026-11-30T02:00:00.000000Z";
  manifest.writer = "grebe 0.1.0";
  manifest.commit_id = "c";
  manifest.fragments = {{.path = "fragment/a-1.gfx",
                         .size_bytes = int64_t{1} << 53,
                         .head = {(int64_t{1} << 53) - 1000, int64_t{1} << 53},
                         .head_checksum = 0xfedcba9876543210,
                         .row_count = 1000000,
                         .key_count = 31250,
                         .file_count = 100},
                        FragmentAt("fragment/b.gfx", 2)};
  manifest.dead_files = {{"fragment/a-1.gfx", 99, 400}, {"fragment/b.gfx", 0, 0}};
  manifest.skipped_files = {{"bad\xff\xfe.parquet", {123, "etag-\"x\""}, "no footer: \xc3\xa9"},
                            {std::string("nul\0 and \t", 10), {-1, ""}, ""}};
  return manifest;
}

// A manifest text with its checksum made right, whatever else is wrong with it.
std::string Sealed(std::string body) {
  static constexpr char kDigits[] = "0123456789abcdef";
  uint64_t checksum = Checksum(body);
  std::string digits(16, '0');
  for (int i = 15; i >= 0; --i, checksum >>= 4) digits[i] = kDigits[checksum & 15];
  return body + ",\n\"checksum\":\"" + digits + "\"}\n";
}

std::string BodyOf(const std::string& text) {
  return text.substr(0, text.rfind(",\n\"checksum\""));
}

// Full() as JSON, changed, sealed again.
template <class Change>
std::string Changed(const Change& change) {
  auto json = nlohmann::json::parse(SerializeManifest(Full()));
  json.erase("checksum");
  change(json);
  const std::string text = json.dump();
  return Sealed(text.substr(0, text.size() - 1));
}

TEST(ManifestTest, EveryMemberSurvives) {
  const Manifest manifest = Full();
  const std::string text = SerializeManifest(manifest);
  const auto parsed = ParseManifest(text);
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(*parsed, manifest);
  EXPECT_EQ(SerializeManifest(*parsed), text);
}

TEST(ManifestTest, IsJsonWithSortedNamesAndTheChecksumLast) {
  const std::string text = SerializeManifest(Full());
  const auto json = nlohmann::ordered_json::parse(text);
  std::vector<std::string> names;
  for (const auto& item : json.items()) names.push_back(item.key());
  ASSERT_FALSE(names.empty());
  EXPECT_EQ(names.back(), "checksum");
  names.pop_back();
  EXPECT_TRUE(std::is_sorted(names.begin(), names.end()));
}

TEST(ManifestTest, StringsOfAnyBytesSurvive) {
  Rng rng(3);
  for (int round = 0; round < 2000; ++round) {
    Manifest manifest = Full();
    std::string odd;
    const uint64_t size = rng.Below(12);
    for (uint64_t i = 0; i < size; ++i) {
      // Mostly lead and continuation bytes, so that near-UTF-8 is met often.
      odd.push_back(static_cast<char>(rng.Chance(0.7) ? 0x80 | rng.Below(128) : rng.Below(128)));
    }
    manifest.skipped_files[0].path = odd;
    manifest.key[0].name = odd;
    manifest.table_uri = odd;
    const auto parsed = ParseManifest(SerializeManifest(manifest));
    ASSERT_TRUE(parsed.ok()) << parsed.status() << " round " << round;
    ASSERT_EQ(*parsed, manifest);
  }
}

TEST(ManifestTest, EveryFlippedBitIsCorrupt) {
  const std::string text = SerializeManifest(Full());
  for (size_t i = 0; i < text.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = text;
      damaged[i] = static_cast<char>(damaged[i] ^ (1 << bit));
      const auto parsed = ParseManifest(damaged);
      ASSERT_FALSE(parsed.ok()) << "byte " << i << " bit " << bit;
      ASSERT_TRUE(IsKind(parsed.status(), ErrorKind::kCorrupt)) << parsed.status();
    }
  }
}

TEST(ManifestTest, EveryCutIsCorrupt) {
  const std::string text = SerializeManifest(Full());
  for (size_t size = 0; size < text.size(); ++size) {
    const auto parsed = ParseManifest(std::string_view(text).substr(0, size));
    ASSERT_TRUE(IsKind(parsed.status(), ErrorKind::kCorrupt)) << size;
  }
  EXPECT_TRUE(IsKind(ParseManifest(text + "\n").status(), ErrorKind::kCorrupt));
}

TEST(ManifestTest, UnknownFormatVersionIsUnsupportedWhateverElseItHolds) {
  for (const int version : {2, 99}) {
    const std::string text = Changed([&](auto& json) {
      json["format_version"] = version;
      json["novelty"] = true;
      json.erase("fragments");
    });
    const Status status = ParseManifest(text).status();
    EXPECT_TRUE(IsKind(status, ErrorKind::kUnsupported)) << status;
  }
}

using nlohmann::json;

struct BadCase {
  const char* name;
  const char* member;  // the message names it
  void (*change)(json&);
};

const BadCase kBadCases[] = {
    {"UnknownMember", "(all)", [](json& j) { j["extra"] = 1; }},
    {"UnknownMemberInside", "fragments[0]", [](json& j) { j["fragments"][0]["extra"] = 1; }},
    {"MissingMember", "writer", [](json& j) { j.erase("writer"); }},
    {"MissingMemberInside", "key[1].type", [](json& j) { j["key"][1].erase("type"); }},
    {"NoFormatVersion", "format_version", [](json& j) { j.erase("format_version"); }},
    {"FormatVersionZero", "format_version", [](json& j) { j["format_version"] = 0; }},
    {"VersionZero", "version", [](json& j) { j["version"] = 0; }},
    {"VersionText", "version", [](json& j) { j["version"] = "42"; }},
    {"VersionFraction", "version", [](json& j) { j["version"] = 42.5; }},
    {"VersionWholeFloat", "version", [](json& j) { j["version"] = 42.0; }},
    {"VersionNull", "version", [](json& j) { j["version"] = nullptr; }},
    {"VersionBeyond63Bits", "version", [](json& j) { j["version"] = uint64_t{1} << 63; }},
    {"SortedNumber", "sorted", [](json& j) { j["sorted"] = 1; }},
    {"KeyObject", "key", [](json& j) { j["key"] = json::object(); }},
    {"KeyEmpty", "key", [](json& j) { j["key"] = json::array(); }},
    {"KeyOfText", "key[0]", [](json& j) { j["key"][0] = "user_id"; }},
    {"IndexIdEmpty", "index_id", [](json& j) { j["index_id"] = ""; }},
    {"IndexIdNumber", "index_id", [](json& j) { j["index_id"] = 7; }},
    {"CoveringNumber", "covering[1]", [](json& j) { j["covering"][1] = 7; }},
    {"CoveringSchemaNotBase64", "covering_schema", [](json& j) { j["covering_schema"] = "%%%"; }},
    {"CoveringSchemaLooseBase64", "covering_schema", [](json& j) { j["covering_schema"] = "QQ"; }},
    {"BytesThatAreText", "writer", [](json& j) { j["writer"] = {{"base64", "QUJD"}}; }},
    {"BytesWithMore", "writer",
     [](json& j) { j["writer"] = {{"base64", "/w=="}, {"more", 1}}; }},
    {"NegativeSize", "fragments[1].size_bytes",
     [](json& j) { j["fragments"][1]["size_bytes"] = -1; }},
    {"HeadBackwards", "fragments[0]",
     [](json& j) { j["fragments"][0]["head_begin"] = 9007199254740993; }},
    {"HeadOutside", "fragments[1]", [](json& j) { j["fragments"][1]["head_end"] = 1; }},
    {"ChecksumNumber", "fragments[0].head_checksum",
     [](json& j) { j["fragments"][0]["head_checksum"] = 5; }},
    {"ChecksumUpperCase", "fragments[0].head_checksum",
     [](json& j) { j["fragments"][0]["head_checksum"] = "FEDCBA9876543210"; }},
    {"FragmentTwice", "fragments[1].path",
     [](json& j) { j["fragments"][1]["path"] = "fragment/a-1.gfx"; }},
    {"FragmentElsewhere", "fragments[0].path",
     [](json& j) { j["fragments"][0]["path"] = "fragment/../../secret.gfx"; }},
    {"FragmentAbsolute", "fragments[0].path",
     [](json& j) { j["fragments"][0]["path"] = "/etc/passwd"; }},
    {"FragmentHidden", "fragments[0].path",
     [](json& j) { j["fragments"][0]["path"] = "fragment/.gfx"; }},
    {"FileCountBeyond32Bits", "fragments[0].file_count",
     [](json& j) { j["fragments"][0]["file_count"] = int64_t{1} << 32; }},
    {"DeadFileOfNoFragment", "dead_files[0].fragment",
     [](json& j) { j["dead_files"][0]["fragment"] = "fragment/z.gfx"; }},
    {"DeadFileOutside", "dead_files[0].file", [](json& j) { j["dead_files"][0]["file"] = 100; }},
    {"DeadFileOfMoreRows", "dead_files[0].row_count",
     [](json& j) { j["dead_files"][0]["row_count"] = 1000001; }},
    {"DeadFileTwice", "dead_files[1].file",
     [](json& j) { j["dead_files"][1] = j["dead_files"][0]; }},
    {"IdentityText", "skipped_files[0].identity",
     [](json& j) { j["skipped_files"][0]["identity"] = "x"; }},
    {"IdentitySize", "skipped_files[0].identity.size_bytes",
     [](json& j) { j["skipped_files"][0]["identity"]["size_bytes"] = -2; }},
    {"TombstoneWithFragments", "fragments", [](json& j) { j["dropped"] = true; }},
};

class ManifestBadTest : public ::testing::TestWithParam<BadCase> {};

TEST_P(ManifestBadTest, IsCorruptAndNamesTheMember) {
  const Status status = ParseManifest(Changed(GetParam().change)).status();
  ASSERT_TRUE(IsKind(status, ErrorKind::kCorrupt)) << status;
  EXPECT_NE(status.message().find(std::string("member=") + GetParam().member), std::string::npos)
      << status;
}

INSTANTIATE_TEST_SUITE_P(All, ManifestBadTest, ::testing::ValuesIn(kBadCases),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(ManifestTest, TextThatIsNotJsonIsCorrupt) {
  const std::string good = BodyOf(SerializeManifest(Full()));
  std::string deep;
  for (int i = 0; i < 1000000; ++i) deep.push_back('[');
  const std::string bodies[] = {
      "", "{", "[]", "null", "{\"version\":NaN", "{\"version\":1e999", "{\"version\":01",
      "{\"a\":\"\xff\"", "{\"a\":\"\xed\xa0\x80\"", "{\"a\":\"\xc0\x80\"", good + "}", good + ",",
      "{\"a\":" + deep, "{\"a\":" + deep + std::string(deep.size(), ']'),
      "{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":1}}}}}}",
  };
  for (const std::string& body : bodies) {
    const Status status = ParseManifest(Sealed(body)).status();
    EXPECT_TRUE(IsKind(status, ErrorKind::kCorrupt)) << body.substr(0, 40) << " " << status;
  }
}

TEST(ManifestTest, DuplicateNamesAreCorrupt) {
  const std::string good = BodyOf(SerializeManifest(Full()));
  const std::string bodies[] = {good + ",\"writer\":\"grebe 0.1.0\"",
                                good + ",\"checksum\":\"0000000000000000\"",
                                good + ",\"\\u0077riter\":\"grebe 0.1.0\""};
  for (const std::string& body : bodies) {
    const Status status = ParseManifest(Sealed(body)).status();
    EXPECT_TRUE(IsKind(status, ErrorKind::kCorrupt)) << status;
    EXPECT_NE(status.message().find("twice"), std::string::npos) << status;
  }
}

// The example of docs/format/manifest.md: manifests of this format version open for ever.
TEST(ManifestTest, TheExampleOfTheFormatPageIsReadAndWrittenByteForByte) {
  std::ifstream page(testing::SourceFolder() + "/docs/format/manifest.md");
  const std::string text((std::istreambuf_iterator<char>(page)), std::istreambuf_iterator<char>());
  const std::string fence = "```json\n";
  const size_t begin = text.find(fence) + fence.size();
  ASSERT_GT(begin, fence.size());
  const std::string example = text.substr(begin, text.find("```", begin) - begin);
  const auto parsed = ParseManifest(example);
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->version, 2);
  EXPECT_EQ(parsed->skipped_files[0].path, "bad\xff.parquet");
  EXPECT_EQ(SerializeManifest(*parsed), example);
}

TEST(ManifestTest, NewIdsDifferAndFragmentPathsAreAccepted) {
  EXPECT_NE(NewIndexId(), NewIndexId());
  Manifest manifest = Full();
  manifest.fragments.push_back(FragmentAt(NewFragmentPath(), 0));
  manifest.fragments.push_back(FragmentAt(NewFragmentPath(), 0));
  EXPECT_TRUE(CheckManifest(manifest).ok()) << CheckManifest(manifest);
}

}  // namespace
}  // namespace grebe::index

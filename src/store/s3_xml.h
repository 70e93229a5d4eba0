// The few XML answers of S3 and STS. Pure functions; hostile input gives an error or nothing,
// never more than its own size of memory.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "store/store.h"

namespace grebe::store {

// The text of the first element of that name at any depth, entities decoded. None: nullopt.
std::optional<std::string> XmlText(std::string_view xml, std::string_view name);

// "&lt;&#x41;" -> "<A". Unknown entities stay as they are.
std::string XmlUnescape(std::string_view text);
std::string XmlEscape(std::string_view text);

struct ListPage {
  std::vector<Object> objects;       // keys as they are, identities with ETags
  std::string continuation_token;    // empty: the last page
};

// A ListObjectsV2 answer. Errors: Corrupt for what is none.
Result<ListPage> ParseListPage(std::string_view xml);

// The body of CompleteMultipartUpload: parts numbered from 1.
std::string CompleteUploadXml(const std::vector<std::string>& part_etags);

// The value of "name" in a flat JSON object of strings (credential endpoints). None: nullopt.
std::optional<std::string> JsonStringField(std::string_view json, std::string_view name);

}  // namespace grebe::store

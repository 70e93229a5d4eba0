#include "store/s3_xml.h"

#include <charconv>
#include <cstdint>

#include "store/uri.h"

namespace grebe::store {
namespace {

void AppendUtf8(std::string* out, uint32_t code) {
  if (code < 0x80) {
    out->push_back(static_cast<char>(code));
  } else if (code < 0x800) {
    out->push_back(static_cast<char>(0xc0 | (code >> 6)));
    out->push_back(static_cast<char>(0x80 | (code & 0x3f)));
  } else if (code < 0x10000) {
    out->push_back(static_cast<char>(0xe0 | (code >> 12)));
    out->push_back(static_cast<char>(0x80 | ((code >> 6) & 0x3f)));
    out->push_back(static_cast<char>(0x80 | (code & 0x3f)));
  } else {
    out->push_back(static_cast<char>(0xf0 | (code >> 18)));
    out->push_back(static_cast<char>(0x80 | ((code >> 12) & 0x3f)));
    out->push_back(static_cast<char>(0x80 | ((code >> 6) & 0x3f)));
    out->push_back(static_cast<char>(0x80 | (code & 0x3f)));
  }
}

// The content of the first <name ...>...</name> at or after *at; moves *at behind it.
// Elements of one name never nest in these answers.
std::optional<std::string_view> NextElement(std::string_view xml, std::string_view name,
                                            size_t* at) {
  const std::string close = "</" + std::string(name) + ">";
  while (true) {
    const size_t open = xml.find('<', *at);
    if (open == std::string_view::npos) return std::nullopt;
    std::string_view rest = xml.substr(open + 1);
    if (!rest.starts_with(name) || rest.size() <= name.size() ||
        std::string_view("> \t\r\n/").find(rest[name.size()]) == std::string_view::npos) {
      *at = open + 1;
      continue;
    }
    const size_t tag_end = xml.find('>', open);
    if (tag_end == std::string_view::npos) return std::nullopt;
    if (xml[tag_end - 1] == '/') {
      *at = tag_end + 1;
      return std::string_view();
    }
    const size_t end = xml.find(close, tag_end);
    if (end == std::string_view::npos) return std::nullopt;
    *at = end + close.size();
    return xml.substr(tag_end + 1, end - tag_end - 1);
  }
}

std::string WithoutQuotes(std::string text) {
  if (text.size() >= 2 && text.front() == '"' && text.back() == '"') {
    text = text.substr(1, text.size() - 2);
  }
  return text;
}

}  // namespace

std::string XmlUnescape(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '&') {
      out.push_back(text[i]);
      continue;
    }
    const size_t end = text.find(';', i);
    const std::string_view name =
        end == std::string_view::npos || end - i > 12 ? "" : text.substr(i + 1, end - i - 1);
    if (name == "lt") {
      out.push_back('<');
    } else if (name == "gt") {
      out.push_back('>');
    } else if (name == "amp") {
      out.push_back('&');
    } else if (name == "quot") {
      out.push_back('"');
    } else if (name == "apos") {
      out.push_back('\'');
    } else if (name.starts_with('#') && name.size() > 1) {
      const bool hex = name[1] == 'x' || name[1] == 'X';
      const std::string_view digits = name.substr(hex ? 2 : 1);
      uint32_t code = 0;
      const auto [at, error] =
          std::from_chars(digits.data(), digits.data() + digits.size(), code, hex ? 16 : 10);
      if (error != std::errc() || at != digits.data() + digits.size() || code > 0x10ffff) {
        out.push_back('&');
        continue;
      }
      AppendUtf8(&out, code);
    } else {
      out.push_back('&');
      continue;
    }
    i = end;
  }
  return out;
}

std::string XmlEscape(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '&': out += "&amp;"; break;
      case '"': out += "&quot;"; break;
      default: out.push_back(c);
    }
  }
  return out;
}

std::optional<std::string> XmlText(std::string_view xml, std::string_view name) {
  size_t at = 0;
  const std::optional<std::string_view> content = NextElement(xml, name, &at);
  if (!content) return std::nullopt;
  return XmlUnescape(*content);
}

Result<ListPage> ParseListPage(std::string_view xml) {
  size_t at = 0;
  const std::optional<std::string_view> body = NextElement(xml, "ListBucketResult", &at);
  if (!body) return Corrupt("not a listing");
  ListPage page;
  const bool encoded = XmlText(*body, "EncodingType").value_or("") == "url";
  at = 0;
  while (const std::optional<std::string_view> entry = NextElement(*body, "Contents", &at)) {
    std::optional<std::string> key = XmlText(*entry, "Key");
    const std::string size = XmlText(*entry, "Size").value_or("");
    Object object;
    const auto [end, error] = std::from_chars(size.data(), size.data() + size.size(),
                                              object.identity.size_bytes);
    if (!key || error != std::errc() || end != size.data() + size.size() ||
        object.identity.size_bytes < 0) {
      return Corrupt("a malformed entry in a listing");
    }
    object.path = encoded ? PercentDecode(*key, /*plus_is_space=*/true) : std::move(*key);
    object.identity.tag = WithoutQuotes(XmlText(*entry, "ETag").value_or(""));
    page.objects.push_back(std::move(object));
  }
  if (XmlText(*body, "IsTruncated").value_or("false") == "true") {
    page.continuation_token = XmlText(*body, "NextContinuationToken").value_or("");
    if (page.continuation_token.empty()) return Corrupt("a cut listing without continuation");
  }
  return page;
}

std::string CompleteUploadXml(const std::vector<std::string>& part_etags) {
  std::string xml =
      "<CompleteMultipartUpload xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">";
  for (size_t i = 0; i < part_etags.size(); ++i) {
    xml += "<Part><PartNumber>" + std::to_string(i + 1) + "</PartNumber><ETag>&quot;" +
           XmlEscape(part_etags[i]) + "&quot;</ETag></Part>";
  }
  return xml + "</CompleteMultipartUpload>";
}

std::optional<std::string> JsonStringField(std::string_view json, std::string_view name) {
  const std::string quoted = "\"" + std::string(name) + "\"";
  constexpr std::string_view kSpace = " \t\r\n";
  for (size_t at = json.find(quoted); at != std::string_view::npos;
       at = json.find(quoted, at + 1)) {
    size_t i = json.find_first_not_of(kSpace, at + quoted.size());
    if (i == std::string_view::npos || json[i] != ':') continue;
    i = json.find_first_not_of(kSpace, i + 1);
    if (i == std::string_view::npos || json[i] != '"') return std::nullopt;
    std::string value;
    for (++i; i < json.size() && json[i] != '"'; ++i) {
      if (json[i] == '\\' && i + 1 < json.size()) {
        ++i;
        if (json[i] == 'u') return std::nullopt;  // no credential has such a character
      }
      value.push_back(json[i]);
    }
    if (i >= json.size()) return std::nullopt;
    return value;
  }
  return std::nullopt;
}

}  // namespace grebe::store

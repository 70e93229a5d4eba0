#include "layout/layout_spec.h"

#include <algorithm>
#include <charconv>
#include <set>

namespace grebe::layout {
namespace {

constexpr int kBucketsMax = 1 << 16;
constexpr int kBitsMax = 16;

std::string_view Trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

// All of the text as a number; -1: it is none.
int NumberOf(std::string_view text) {
  int number = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? number : -1;
}

// Takes a name in double quotes, in which quotes are doubled, from the text's beginning.
bool ReadQuoted(std::string_view* text, std::string* name) {
  size_t at = 1;
  while (true) {
    const size_t end = text->find('"', at);
    if (end == std::string_view::npos) return false;
    name->append(text->substr(at, end - at));
    at = end + 1;
    if (at == text->size() || (*text)[at] != '"') break;
    *name += '"';
    ++at;
  }
  text->remove_prefix(at);
  return true;
}

// As ReadQuoted takes it, where the name needs it.
std::string Quoted(const std::string& name) {
  if (name.find_first_of(", ():\"") == std::string::npos) return name;
  std::string out = "\"";
  for (const char c : name) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + "\"";
}

// "a, b.c, "x,y", d:2" -> names and the numbers after them, 0 where there is none. False for an
// unclosed quote, an empty name, or a number that is none.
bool SplitNames(std::string_view text, std::vector<std::string>* names,
                std::vector<int>* numbers) {
  while (true) {
    text = Trim(text);
    std::string name;
    if (!text.empty() && text.front() == '"') {
      if (!ReadQuoted(&text, &name)) return false;
      text = Trim(text);
    } else {
      const size_t end = std::min(text.find_first_of(",:"), text.size());
      name = Trim(text.substr(0, end));
      text = text.substr(end);
    }
    if (name.empty()) return false;
    names->push_back(std::move(name));
    numbers->push_back(0);
    if (!text.empty() && text.front() == ':') {
      const size_t end = std::min(text.find(','), text.size());
      numbers->back() = NumberOf(Trim(text.substr(1, end - 1)));
      if (numbers->back() < 1) return false;
      text = text.substr(end);
    }
    if (text.empty()) return true;
    if (text.front() != ',') return false;
    text.remove_prefix(1);
  }
}

std::string_view NameOf(LayoutKind kind) {
  switch (kind) {
    case LayoutKind::kSort: return "sort";
    case LayoutKind::kZOrder: return "zorder";
    case LayoutKind::kHilbert: return "hilbert";
    case LayoutKind::kBucket: return "bucket";
    case LayoutKind::kTree: return "tree";
  }
  return "sort";
}

Status Malformed(std::string_view text, std::string_view why) {
  return InvalidArgument(
      "not a layout: sort(a,b), zorder(a,b), hilbert(a,b), bucket(16,k) or tree(LOG)", "why", why,
      "text", text);
}

}  // namespace

std::string LayoutSpec::ToString() const {
  std::string out(NameOf(kind));
  if (kind == LayoutKind::kTree) return out;
  out += '(';
  if (kind == LayoutKind::kBucket) out += std::to_string(bucket_count) + ',';
  for (size_t i = 0; i < columns.size(); ++i) {
    if (i > 0) out += ',';
    out += Quoted(columns[i]);
    if (!bits_max.empty() && bits_max[i] > 0) out += ":" + std::to_string(bits_max[i]);
  }
  return out + ')';
}

Result<LayoutSpec> ParseLayout(std::string_view text) {
  const std::string_view whole = Trim(text);
  const size_t open = whole.find('(');
  if (open == std::string_view::npos || whole.back() != ')') {
    return Malformed(text, "a name and parentheses are needed");
  }
  const std::string_view name = Trim(whole.substr(0, open));
  const std::string_view inside = whole.substr(open + 1, whole.size() - open - 2);
  LayoutSpec spec;
  bool known = false;
  for (const LayoutKind kind : {LayoutKind::kSort, LayoutKind::kZOrder, LayoutKind::kHilbert,
                                LayoutKind::kBucket, LayoutKind::kTree}) {
    if (name != NameOf(kind)) continue;
    spec.kind = kind;
    known = true;
  }
  if (!known) return Malformed(text, "no such layout");
  if (spec.kind == LayoutKind::kTree) {
    spec.log = Trim(inside);   // any path, so nothing in it is taken apart
    if (spec.log.empty()) return Malformed(text, "tree takes the path of a query log");
    return spec;
  }
  if (!SplitNames(inside, &spec.columns, &spec.bits_max)) {
    return Malformed(text, "columns are needed");
  }
  const int bits_most = *std::max_element(spec.bits_max.begin(), spec.bits_max.end());
  if (bits_most == 0) spec.bits_max.clear();
  if (bits_most > kBitsMax || (bits_most > 0 && spec.kind != LayoutKind::kZOrder)) {
    return Malformed(text, "only columns of a zorder take bits, 1 to 16, as in zorder(a,b:2)");
  }
  if (spec.kind == LayoutKind::kBucket) {
    spec.bucket_count = NumberOf(spec.columns.front());
    if (spec.bucket_count < 1 || spec.bucket_count > kBucketsMax || spec.columns.size() != 2) {
      return Malformed(text, "bucket takes a number from 1 to 65536 and one column");
    }
    spec.columns.erase(spec.columns.begin());
  }
  const std::set<std::string> distinct(spec.columns.begin(), spec.columns.end());
  if (distinct.size() != spec.columns.size()) return Malformed(text, "a column is named twice");
  return spec;
}

}  // namespace grebe::layout

// Describing one Parquet file, as JSON or as text for people.
#include <iomanip>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/status.h"
#include "engine/table_context.h"
#include "grebe/output.h"
#include "parquet/inspect.h"
#include "store/store.h"

namespace grebe {
namespace {

using Json = nlohmann::ordered_json;

std::string JoinWords(const std::vector<std::string>& words) {
  std::string joined;
  for (const std::string& word : words) joined += (joined.empty() ? "" : ",") + word;
  return joined;
}

Json PageJson(const pq::PageDescription& page) {
  Json json = {{"type", page.type},
               {"offset_bytes", page.bytes.begin},
               {"size_bytes", page.bytes.size_bytes()},
               {"header_bytes", page.header_bytes},
               {"uncompressed_bytes", page.uncompressed_bytes},
               {"values", page.value_count},
               {"encoding", page.encoding},
               {"crc", page.has_crc}};
  if (page.rows) {
    json["first_row"] = page.rows->begin;
    json["rows"] = page.rows->row_count();
    json["begins_mid_row"] = page.begins_mid_row;
  }
  return json;
}

Json ChunkJson(const pq::LeafDescription& leaf, const pq::ChunkDescription& chunk, bool pages) {
  Json json = {{"column", leaf.path},
               {"codec", chunk.codec},
               {"encodings", chunk.encodings},
               {"values", chunk.value_count},
               {"compressed_bytes", chunk.compressed_bytes},
               {"uncompressed_bytes", chunk.uncompressed_bytes},
               {"data_pages", chunk.data_page_count},
               {"dictionary_bytes", chunk.dictionary_bytes},
               {"offset_index", chunk.has_offset_index},
               {"column_index", chunk.has_column_index},
               {"bloom_filter", chunk.has_bloom_filter},
               {"statistics", chunk.has_statistics}};
  if (pages) {
    json["pages"] = Json::array();
    for (const auto& page : chunk.pages) json["pages"].push_back(PageJson(page));
  }
  return json;
}

std::string ToJsonText(const pq::FileDescription& file, bool pages) {
  Json columns = Json::array(), row_groups = Json::array();
  for (const auto& leaf : file.leaves) {
    columns.push_back({{"path", leaf.path},
                       {"physical", leaf.physical_type},
                       {"logical", leaf.logical_type},
                       {"arrow", leaf.arrow_type},
                       {"max_definition_level", leaf.definition_level_max},
                       {"max_repetition_level", leaf.repetition_level_max},
                       {"can_be_key", leaf.can_be_key}});
  }
  for (const auto& row_group : file.row_groups) {
    Json chunks = Json::array();
    for (size_t i = 0; i < row_group.chunks.size(); ++i) {
      chunks.push_back(ChunkJson(file.leaves[i], row_group.chunks[i], pages));
    }
    row_groups.push_back({{"rows", row_group.row_count}, {"chunks", std::move(chunks)}});
  }
  const Json json = {{"path", file.path},
                     {"size_bytes", file.size_bytes},
                     {"footer_bytes", file.footer_bytes},
                     {"page_map_bytes", file.page_map_bytes},
                     {"created_by", file.created_by},
                     {"rows", file.row_count},
                     {"columns", std::move(columns)},
                     {"row_groups", std::move(row_groups)}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

void PrintPages(const pq::ChunkDescription& chunk, std::ostream& out) {
  for (const auto& page : chunk.pages) {
    out << "      " << std::left << std::setw(10) << page.type << std::right << " at "
        << std::setw(11) << page.bytes.begin << "  " << std::setw(8) << page.bytes.size_bytes()
        << " -> " << std::setw(8) << page.uncompressed_bytes << " bytes  " << page.value_count
        << " values  " << page.encoding;
    if (page.rows) out << "  rows " << page.rows->begin << ".." << page.rows->end;
    if (page.begins_mid_row) out << " (begins in the middle of a row)";
    out << (page.has_crc ? "  crc\n" : "\n");
  }
}

std::string ToText(const pq::FileDescription& file, bool pages) {
  std::ostringstream out;
  out << file.path << "\n"
      << file.row_count << " rows, " << file.row_groups.size() << " row groups, "
      << file.leaves.size() << " columns, " << file.size_bytes << " bytes (footer "
      << file.footer_bytes << ", page map " << file.page_map_bytes << ")\n"
      << "written by " << file.created_by << "\n\n";
  for (const auto& leaf : file.leaves) {
    out << leaf.path << "  " << leaf.physical_type << "  " << leaf.logical_type << "  "
        << leaf.arrow_type << (leaf.can_be_key ? "\n" : "  (cannot be a key)\n");
  }
  for (size_t g = 0; g < file.row_groups.size(); ++g) {
    const auto& row_group = file.row_groups[g];
    out << "\nrow group " << g << ": " << row_group.row_count << " rows\n";
    for (size_t i = 0; i < row_group.chunks.size(); ++i) {
      const auto& chunk = row_group.chunks[i];
      out << "    " << file.leaves[i].path << ": " << chunk.codec << "  "
          << JoinWords(chunk.encodings) << "  " << chunk.data_page_count << " pages  "
          << chunk.compressed_bytes << " -> " << chunk.uncompressed_bytes << " bytes"
          << (chunk.dictionary_bytes > 0 ? "  dictionary" : "")
          << (chunk.has_offset_index ? "  offset index" : "")
          << (chunk.has_column_index ? "  column index" : "")
          << (chunk.has_bloom_filter ? "  bloom filter" : "") << "\n";
      if (pages) PrintPages(chunk, out);
    }
  }
  return out.str();
}

}  // namespace

Result<std::string> InspectFile(const std::string& uri, bool pages, bool json,
                                const ConnectOptions& connect) {
  ARROW_ASSIGN_OR_RAISE(auto location,
                        store::OpenLocation(uri, engine::ToStoreOptions(connect)));
  ARROW_ASSIGN_OR_RAISE(store::Object object, location.store->Stat(location.path));
  ARROW_ASSIGN_OR_RAISE(auto footer,
                        pq::Footer::Read(*location.store, std::make_shared<store::Object>(object)));
  ARROW_ASSIGN_OR_RAISE(auto file, pq::DescribeFile(*location.store, *footer, pages));
  return json ? ToJsonText(file, pages) : ToText(file, pages);
}

}  // namespace grebe

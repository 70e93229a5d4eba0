#include "parquet/inspect.h"

#include <arrow/util/compression.h>
#include <arrow/util/key_value_metadata.h>
#include <parquet/schema.h>
#include <parquet/types.h>

#include <algorithm>

#include "parquet/footer_internal.h"
#include "parquet/guard.h"
#include "parquet/page_walk.h"
#include "parquet/schema_internal.h"

namespace grebe::pq {
namespace {

std::string PageTypeName(PageType type) {
  switch (type) {
    case PageType::kData: return "data";
    case PageType::kDataV2: return "data v2";
    case PageType::kDictionary: return "dictionary";
    case PageType::kIndex: return "index";
    case PageType::kOther: break;
  }
  return "other";
}

LeafDescription DescribeLeaf(const Schema& schema, int leaf) {
  const auto& column = *schema.impl().descriptor->Column(leaf);
  LeafDescription out;
  out.path = schema.leaf_path(leaf);
  out.physical_type = ::parquet::TypeToString(column.physical_type());
  if (column.physical_type() == ::parquet::Type::FIXED_LEN_BYTE_ARRAY) {
    out.physical_type += "(" + std::to_string(column.type_length()) + ")";
  }
  out.logical_type = column.logical_type() ? column.logical_type()->ToString() : "None";
  const auto& fields = schema.impl().manifest.column_index_to_field;
  const auto field = fields.find(leaf);
  if (field != fields.end()) out.arrow_type = field->second->field->type()->ToString();
  out.definition_level_max = column.max_definition_level();
  out.repetition_level_max = column.max_repetition_level();
  out.can_be_key = !schema.leaf_is_repeated(leaf);
  return out;
}

ChunkDescription DescribeChunk(const ::parquet::ColumnChunkMetaData& chunk,
                               const ChunkPages& pages) {
  ChunkDescription out;
  out.codec = arrow::util::Codec::GetCodecAsString(chunk.compression());
  std::ranges::transform(out.codec, out.codec.begin(), [](char c) {
    return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  });
  for (const auto encoding : chunk.encodings()) {
    out.encodings.push_back(::parquet::EncodingToString(encoding));
  }
  out.value_count = pages.info.value_count;
  out.compressed_bytes = chunk.total_compressed_size();
  out.uncompressed_bytes = chunk.total_uncompressed_size();
  out.data_page_count = pages.info.page_count;
  out.dictionary_bytes = pages.info.dictionary ? pages.info.dictionary->size_bytes() : 0;
  out.has_offset_index = chunk.GetOffsetIndexLocation().has_value();
  out.has_column_index = chunk.GetColumnIndexLocation().has_value();
  out.has_bloom_filter = chunk.bloom_filter_offset().has_value();
  out.has_statistics = chunk.is_stats_set();
  return out;
}

PageDescription DescribePage(const PageHeader& header, int64_t offset_bytes,
                             const ChunkPages& pages) {
  PageDescription out;
  out.type = PageTypeName(header.type);
  out.bytes = {offset_bytes, offset_bytes + header.page_bytes()};
  out.header_bytes = header.header_bytes;
  out.uncompressed_bytes = header.uncompressed_bytes;
  out.value_count = header.value_count;
  out.has_crc = header.crc.has_value();
  if (header.encoding >= 0) {
    out.encoding =
        ::parquet::EncodingToString(static_cast<::parquet::Encoding::type>(header.encoding));
  }
  const auto known = std::ranges::lower_bound(
      pages.pages, offset_bytes, {}, [](const PageLocation& page) { return page.bytes.begin; });
  if (known != pages.pages.end() && known->bytes.begin == offset_bytes) {
    out.rows = known->rows;
    out.begins_mid_row = known->begins_mid_row;
  }
  return out;
}

// Walks every header of every chunk, in file order of the description.
Status DescribePages(store::Store& store, const Footer::Impl& footer, const FilePages& pages,
                     const ReadLimits& limits, FileDescription* out) {
  std::vector<PageWalk> walks;
  for (size_t group = 0; group < pages.row_groups.size(); ++group) {
    for (int leaf = 0; leaf < footer.leaf_count(); ++leaf) {
      const ChunkMeta& meta = footer.chunk(static_cast<int>(group), leaf);
      if (meta.value_count == 0) continue;
      const auto index = static_cast<size_t>(leaf);
      const ChunkPages& chunk = pages.row_groups[group].chunks[index];
      auto* described = &out->row_groups[group].chunks[index].pages;
      walks.push_back(
          PageWalk::OverHeaders(meta, footer.schema->leaf_is_repeated(leaf), limits));
      walks.back().set_on_header([described, &chunk](const PageHeader& header, int64_t at) {
        described->push_back(DescribePage(header, at, chunk));
      });
    }
  }
  size_t failed = 0;
  return RunWalks(store, footer, walks, &failed);
}

Result<FileDescription> Describe(store::Store& store, const Footer& footer, bool with_pages,
                                 const ReadLimits& limits) {
  ARROW_ASSIGN_OR_RAISE(const FilePages pages, FindPages(store, footer, limits));
  ARROW_ASSIGN_OR_RAISE(const std::string packed, PackPageMap(pages));
  const Footer::Impl& impl = footer.impl();
  FileDescription out;
  out.path = footer.object().path;
  out.size_bytes = footer.object().identity.size_bytes;
  out.footer_bytes = out.size_bytes - 8 - impl.footer_begin;
  out.created_by = footer.created_by();
  out.row_count = footer.row_count();
  out.page_map_bytes = static_cast<int64_t>(packed.size());
  for (int leaf = 0; leaf < impl.leaf_count(); ++leaf) {
    out.leaves.push_back(DescribeLeaf(*footer.schema(), leaf));
  }
  for (int group = 0; group < footer.row_group_count(); ++group) {
    const auto metadata = impl.metadata->RowGroup(group);
    RowGroupDescription described;
    described.row_count = footer.row_group_row_count(group);
    described.claimed_row_count = metadata->num_rows();
    for (int leaf = 0; leaf < impl.leaf_count(); ++leaf) {
      described.chunks.push_back(DescribeChunk(
          *metadata->ColumnChunk(leaf),
          pages.row_groups[static_cast<size_t>(group)].chunks[static_cast<size_t>(leaf)]));
    }
    out.row_groups.push_back(std::move(described));
  }
  if (const auto& metadata = impl.metadata->key_value_metadata()) {
    for (int64_t i = 0; i < metadata->size(); ++i) {
      out.metadata.emplace_back(metadata->key(i), metadata->value(i));
    }
  }
  if (with_pages) ARROW_RETURN_NOT_OK(DescribePages(store, impl, pages, limits, &out));
  return out;
}

}  // namespace

Result<FileDescription> DescribeFile(store::Store& store, const Footer& footer, bool with_pages,
                                     const ReadLimits& limits) {
  auto out = Guarded("describing the file",
                     [&] { return Describe(store, footer, with_pages, limits); });
  if (!out.ok()) return AddContext(out.status(), "path", footer.object().path);
  return out;
}

}  // namespace grebe::pq

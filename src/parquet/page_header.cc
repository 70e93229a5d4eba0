#include "parquet/page_header.h"

#include <algorithm>

#include "parquet/thrift.h"

namespace grebe::pq {
namespace {

// The header as read, before any of it is believed.
struct RawHeader {
  std::optional<int32_t> type, uncompressed, compressed;
  std::optional<int32_t> values, encoding;             // of the sub-header that was read
  std::optional<int32_t> nulls, rows, definition_bytes, repetition_bytes;
  bool has_data = false, has_dictionary = false, has_v2 = false;
};

// Reads a struct's fields; `on_field` reads the field it knows (returns false on failure) or asks
// for it to be skipped by setting *known = false.
template <class OnField>
bool ReadStruct(ThriftReader* in, OnField&& on_field) {
  int previous_id = 0;
  ThriftReader::Field field;
  while (in->ReadField(&previous_id, &field)) {
    if (field.type == ThriftReader::kStop) return true;
    bool known = true;
    if (!on_field(field, &known)) return false;
    // A boolean field's value is its type: there is nothing to skip.
    if (!known && !ThriftReader::IsBool(field.type) && !in->Skip(field.type)) return false;
  }
  return false;
}

bool ReadInt(ThriftReader* in, std::optional<int32_t>* out) {
  int32_t value = 0;
  if (!in->ReadI32(&value)) return false;
  *out = value;
  return true;
}

// v1 and dictionary sub-headers share their first two fields.
bool ReadDataHeader(ThriftReader* in, RawHeader* raw, PageHeader* header) {
  raw->has_data = true;
  return ReadStruct(in, [&](const ThriftReader::Field& field, bool* known) {
    if (ThriftReader::IsInt(field.type)) {
      switch (field.id) {
        case 1: return ReadInt(in, &raw->values);
        case 2: return ReadInt(in, &raw->encoding);
        case 3: return in->ReadI32(&header->definition_level_encoding);
        case 4: return in->ReadI32(&header->repetition_level_encoding);
        default: break;
      }
    }
    *known = false;
    return true;
  });
}

bool ReadDictionaryHeader(ThriftReader* in, RawHeader* raw) {
  raw->has_dictionary = true;
  return ReadStruct(in, [&](const ThriftReader::Field& field, bool* known) {
    if (ThriftReader::IsInt(field.type)) {
      if (field.id == 1) return ReadInt(in, &raw->values);
      if (field.id == 2) return ReadInt(in, &raw->encoding);
    }
    *known = false;
    return true;
  });
}

bool ReadDataHeaderV2(ThriftReader* in, RawHeader* raw, PageHeader* header) {
  raw->has_v2 = true;
  return ReadStruct(in, [&](const ThriftReader::Field& field, bool* known) {
    if (ThriftReader::IsInt(field.type)) {
      switch (field.id) {
        case 1: return ReadInt(in, &raw->values);
        case 2: return ReadInt(in, &raw->nulls);
        case 3: return ReadInt(in, &raw->rows);
        case 4: return ReadInt(in, &raw->encoding);
        case 5: return ReadInt(in, &raw->definition_bytes);
        case 6: return ReadInt(in, &raw->repetition_bytes);
        default: break;
      }
    } else if (field.id == 7 && ThriftReader::IsBool(field.type)) {
      header->is_compressed = field.type == ThriftReader::kTrue;
      return true;
    }
    *known = false;
    return true;
  });
}

bool ReadHeader(ThriftReader* in, RawHeader* raw, PageHeader* header) {
  return ReadStruct(in, [&](const ThriftReader::Field& field, bool* known) {
    if (ThriftReader::IsInt(field.type)) {
      switch (field.id) {
        case 1: return ReadInt(in, &raw->type);
        case 2: return ReadInt(in, &raw->uncompressed);
        case 3: return ReadInt(in, &raw->compressed);
        case 4: {
          // Some writers store the unsigned number in a wider varint.
          int64_t crc = 0;
          if (!in->ReadI64(&crc)) return false;
          header->crc = static_cast<uint32_t>(crc);
          return true;
        }
        default: break;
      }
    } else if (field.type == ThriftReader::kStruct) {
      if (field.id == 5) return ReadDataHeader(in, raw, header);
      if (field.id == 7) return ReadDictionaryHeader(in, raw);
      if (field.id == 8) return ReadDataHeaderV2(in, raw, header);
    }
    *known = false;
    return true;
  });
}

Status CheckSizes(const RawHeader& raw, const PagePlace& place, const ReadLimits& limits,
                  PageHeader* header) {
  if (!raw.type || !raw.compressed || !raw.uncompressed) {
    return Corrupt("page header lacks a required field");
  }
  if (*raw.compressed < 0 || *raw.uncompressed < 0) {
    return Corrupt("page header has a negative size", "compressed_bytes", *raw.compressed,
                   "uncompressed_bytes", *raw.uncompressed);
  }
  header->compressed_bytes = *raw.compressed;
  header->uncompressed_bytes = *raw.uncompressed;
  if (header->page_bytes() > place.bytes_left) {
    return Corrupt("page is larger than what is left of its chunk", "page_bytes",
                   header->page_bytes(), "bytes_left", place.bytes_left);
  }
  if (header->compressed_bytes > limits.page_bytes_max ||
      header->uncompressed_bytes > limits.page_bytes_max) {
    return LimitExceeded("page is larger than the limit", "compressed_bytes",
                         header->compressed_bytes, "uncompressed_bytes",
                         header->uncompressed_bytes, "page_bytes_max", limits.page_bytes_max);
  }
  if ((header->uncompressed_bytes - (1 << 20)) / limits.decompress_ratio_max >
      header->compressed_bytes) {
    return LimitExceeded("page would decompress to more than the ratio limit", "compressed_bytes",
                         header->compressed_bytes, "uncompressed_bytes",
                         header->uncompressed_bytes, "ratio_max", limits.decompress_ratio_max);
  }
  return Status::OK();
}

Status CheckDataPage(const RawHeader& raw, const PagePlace& place, PageHeader* header) {
  const bool v2 = header->type == PageType::kDataV2;
  if (!(v2 ? raw.has_v2 : raw.has_data) || !raw.values || !raw.encoding) {
    return Corrupt("data page header lacks a required field");
  }
  if (*raw.values < 0) {
    return Corrupt("data page has a negative value count", "values", *raw.values);
  }
  if (place.values_left >= 0 && *raw.values > place.values_left) {
    return Corrupt("data page has more values than are left of its chunk", "values", *raw.values,
                   "values_left", place.values_left);
  }
  header->value_count = *raw.values;
  header->encoding = *raw.encoding;
  if (!v2) return Status::OK();
  if (!raw.rows || !raw.nulls || !raw.definition_bytes || !raw.repetition_bytes) {
    return Corrupt("data page header lacks a required field");
  }
  header->null_count = *raw.nulls;
  header->row_count = *raw.rows;
  header->definition_level_bytes = *raw.definition_bytes;
  header->repetition_level_bytes = *raw.repetition_bytes;
  if (header->null_count < 0 || header->row_count < 0) {
    return Corrupt("data page has a negative count", "nulls", header->null_count, "rows",
                   header->row_count);
  }
  const int64_t levels = header->definition_level_bytes + header->repetition_level_bytes;
  if (header->definition_level_bytes < 0 || header->repetition_level_bytes < 0 ||
      levels > header->compressed_bytes || levels > header->uncompressed_bytes) {
    return Corrupt("data page's levels do not fit the page", "definition_level_bytes",
                   header->definition_level_bytes, "repetition_level_bytes",
                   header->repetition_level_bytes, "compressed_bytes", header->compressed_bytes,
                   "uncompressed_bytes", header->uncompressed_bytes);
  }
  return Status::OK();
}

Status CheckDictionaryPage(const RawHeader& raw, PageHeader* header) {
  if (!raw.has_dictionary || !raw.values || !raw.encoding) {
    return Corrupt("dictionary page header lacks a required field");
  }
  // Every entry takes a byte at least, so this bounds what a decoder allocates for entries.
  if (*raw.values < 0 || *raw.values > header->uncompressed_bytes) {
    return Corrupt("dictionary page cannot hold its entries", "entries", *raw.values,
                   "uncompressed_bytes", header->uncompressed_bytes);
  }
  header->value_count = *raw.values;
  header->encoding = *raw.encoding;
  return Status::OK();
}

}  // namespace

Result<std::optional<PageHeader>> ParsePageHeader(std::span<const uint8_t> bytes,
                                                  const PagePlace& place,
                                                  const ReadLimits& limits) {
  const int64_t bytes_max = std::min(place.bytes_left, kPageHeaderBytesMax);
  if (static_cast<int64_t>(bytes.size()) > bytes_max) {
    bytes = bytes.first(static_cast<size_t>(std::max<int64_t>(bytes_max, 0)));
  }
  ThriftReader in(bytes);
  RawHeader raw;
  PageHeader header;
  if (!ReadHeader(&in, &raw, &header)) {
    if (in.state() == ThriftReader::State::kMalformed) {
      return Corrupt("not a page header");
    }
    if (static_cast<int64_t>(bytes.size()) < bytes_max) return std::nullopt;
    return Corrupt("page header runs past its place", "bytes_left", place.bytes_left,
                   "header_bytes_max", kPageHeaderBytesMax);
  }
  header.header_bytes = in.consumed_bytes();
  ARROW_RETURN_NOT_OK(CheckSizes(raw, place, limits, &header));
  switch (*raw.type) {
    case 0:
    case 3:
      header.type = static_cast<PageType>(*raw.type);
      ARROW_RETURN_NOT_OK(CheckDataPage(raw, place, &header));
      break;
    case 1: header.type = PageType::kIndex; break;
    case 2:
      header.type = PageType::kDictionary;
      ARROW_RETURN_NOT_OK(CheckDictionaryPage(raw, &header));
      break;
    default: break;
  }
  return header;
}

}  // namespace grebe::pq

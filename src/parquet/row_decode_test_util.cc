#include "parquet/row_decode_test_util.h"

#include <arrow/extension_type.h>
#include <arrow/io/memory.h>
#include <arrow/util/decimal.h>
#include <arrow/util/float16.h>
#include <parquet/arrow/writer.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "parquet/guard.h"
#include "parquet/schema_internal.h"
#include "store/memory_store.h"

namespace grebe::pq::testing {
namespace {

using arrow::Type;

class Randomizer {
 public:
  Randomizer(const RandomOptions& options, Rng* rng) : options_(options), rng_(rng) {}

  Status Append(const arrow::Field& field, arrow::ArrayBuilder* builder) {
    if (field.nullable() && rng_->Chance(options_.null_chance)) return builder->AppendNull();
    return AppendValue(*field.type(), builder);
  }

 private:
  uint64_t Value() {
    const uint64_t value = rng_->Next();
    return options_.distinct > 0 ? (value % static_cast<uint64_t>(options_.distinct)) *
                                       0x9e3779b97f4a7c15ull
                                 : value;
  }
  std::string Bytes() {
    Rng rng(Value());
    std::string bytes(rng.Below(static_cast<uint64_t>(options_.string_bytes_max) + 1), ' ');
    for (char& byte : bytes) byte = static_cast<char>('a' + rng.Below(26));
    return bytes;
  }

  template <class T>
  Status As(arrow::ArrayBuilder* builder, typename T::c_type value) {
    return static_cast<typename arrow::TypeTraits<T>::BuilderType*>(builder)->Append(value);
  }

  template <class Builder>
  Status AppendList(const arrow::Field& item, int64_t length, Builder* builder) {
    ARROW_RETURN_NOT_OK(builder->Append());
    for (int64_t i = 0; i < length; ++i) {
      ARROW_RETURN_NOT_OK(Append(item, builder->value_builder()));
    }
    return Status::OK();
  }
  int64_t Length() {
    return static_cast<int64_t>(
        rng_->Below(static_cast<uint64_t>(options_.list_length_max) + 1));
  }

  Status AppendValue(const arrow::DataType& type, arrow::ArrayBuilder* builder) {
    if (arrow::is_nested(type.id())) return AppendNested(type, builder);
    const uint64_t value = Value();
    switch (type.id()) {
      case Type::NA: return builder->AppendNull();
      case Type::BOOL:
        return static_cast<arrow::BooleanBuilder*>(builder)->Append((value & 1) != 0);
      case Type::INT8: return As<arrow::Int8Type>(builder, static_cast<int8_t>(value));
      case Type::UINT8: return As<arrow::UInt8Type>(builder, static_cast<uint8_t>(value));
      case Type::INT16: return As<arrow::Int16Type>(builder, static_cast<int16_t>(value));
      case Type::UINT16: return As<arrow::UInt16Type>(builder, static_cast<uint16_t>(value));
      case Type::INT32: return As<arrow::Int32Type>(builder, static_cast<int32_t>(value));
      case Type::UINT32: return As<arrow::UInt32Type>(builder, static_cast<uint32_t>(value));
      case Type::INT64: return As<arrow::Int64Type>(builder, static_cast<int64_t>(value));
      case Type::UINT64: return As<arrow::UInt64Type>(builder, value);
      case Type::FLOAT:
        return As<arrow::FloatType>(builder, value % 7 == 0 ? -0.0f : float(value % 1000) / 3);
      case Type::DOUBLE:
        return As<arrow::DoubleType>(builder, value % 7 == 0 ? NAN : double(value % 1000) / 3);
      case Type::HALF_FLOAT:
        return As<arrow::HalfFloatType>(builder, static_cast<uint16_t>(value % 30000));
      case Type::DATE32:
        return As<arrow::Date32Type>(builder, static_cast<int32_t>(value % 40000) - 20000);
      case Type::DATE64:
        return As<arrow::Date64Type>(builder, int64_t(value % 40000) * 86400000);
      case Type::TIME32:
        return As<arrow::Time32Type>(builder, static_cast<int32_t>(value % 86400000));
      case Type::TIME64: return As<arrow::Time64Type>(builder, int64_t(value % 86400000000));
      case Type::TIMESTAMP:
        return As<arrow::TimestampType>(builder, int64_t(value % 1800000000000000000));
      case Type::DURATION: return As<arrow::DurationType>(builder, static_cast<int64_t>(value));
      default: return AppendBytes(type, builder);
    }
  }

  Status AppendBytes(const arrow::DataType& type, arrow::ArrayBuilder* builder) {
    switch (type.id()) {
      case Type::STRING: return static_cast<arrow::StringBuilder*>(builder)->Append(Bytes());
      case Type::BINARY: return static_cast<arrow::BinaryBuilder*>(builder)->Append(Bytes());
      case Type::LARGE_STRING:
        return static_cast<arrow::LargeStringBuilder*>(builder)->Append(Bytes());
      case Type::LARGE_BINARY:
        return static_cast<arrow::LargeBinaryBuilder*>(builder)->Append(Bytes());
      case Type::STRING_VIEW:
        return static_cast<arrow::StringViewBuilder*>(builder)->Append(Bytes());
      case Type::BINARY_VIEW:
        return static_cast<arrow::BinaryViewBuilder*>(builder)->Append(Bytes());
      case Type::DICTIONARY:
        return static_cast<arrow::StringDictionary32Builder*>(builder)->Append(Bytes());
      case Type::FIXED_SIZE_BINARY: {
        std::string bytes = Bytes();
        bytes.resize(static_cast<size_t>(
            static_cast<const arrow::FixedSizeBinaryType&>(type).byte_width()));
        return static_cast<arrow::FixedSizeBinaryBuilder*>(builder)->Append(bytes);
      }
      case Type::DECIMAL128:
        return static_cast<arrow::Decimal128Builder*>(builder)->Append(
            arrow::Decimal128(static_cast<int64_t>(Value() % 200000000) - 100000000));
      case Type::DECIMAL256:
        return static_cast<arrow::Decimal256Builder*>(builder)->Append(
            arrow::Decimal256(static_cast<int64_t>(Value()) / 8));
      default: return Unsupported("no random values of this type", "type", type.ToString());
    }
  }

  Status AppendNested(const arrow::DataType& type, arrow::ArrayBuilder* builder) {
    switch (type.id()) {
      case Type::LIST:
        return AppendList(*type.field(0), Length(), static_cast<arrow::ListBuilder*>(builder));
      case Type::LARGE_LIST:
        return AppendList(*type.field(0), Length(),
                          static_cast<arrow::LargeListBuilder*>(builder));
      case Type::FIXED_SIZE_LIST:
        return AppendList(*type.field(0),
                          static_cast<const arrow::FixedSizeListType&>(type).list_size(),
                          static_cast<arrow::FixedSizeListBuilder*>(builder));
      case Type::MAP: {
        auto* map = static_cast<arrow::MapBuilder*>(builder);
        const auto& map_type = static_cast<const arrow::MapType&>(type);
        ARROW_RETURN_NOT_OK(map->Append());
        for (int64_t i = Length(); i > 0; --i) {
          ARROW_RETURN_NOT_OK(Append(*map_type.key_field(), map->key_builder()));
          ARROW_RETURN_NOT_OK(Append(*map_type.item_field(), map->item_builder()));
        }
        return Status::OK();
      }
      case Type::STRUCT: {
        auto* struct_builder = static_cast<arrow::StructBuilder*>(builder);
        ARROW_RETURN_NOT_OK(struct_builder->Append());
        for (int i = 0; i < type.num_fields(); ++i) {
          ARROW_RETURN_NOT_OK(Append(*type.field(i), struct_builder->field_builder(i)));
        }
        return Status::OK();
      }
      default: return Unsupported("no random values of this type", "type", type.ToString());
    }
  }

  const RandomOptions& options_;
  Rng* rng_;
};

}  // namespace

std::shared_ptr<arrow::Schema> EveryType() {
  using arrow::field;
  const auto required_item = field("item", arrow::int32(), false);
  const auto point = arrow::struct_({field("x", arrow::int32()), field("y", arrow::utf8(), false)});
  const auto deep = arrow::struct_(
      {field("x", arrow::int64()),
       field("y", arrow::list(arrow::struct_({field("z", arrow::utf8()),
                                              field("w", arrow::float64(), false)})))});
  return arrow::schema({
      field("bool", arrow::boolean()), field("i8", arrow::int8()), field("u8", arrow::uint8()),
      field("i16", arrow::int16()), field("u16", arrow::uint16()), field("i32", arrow::int32()),
      field("u32", arrow::uint32()), field("i64", arrow::int64()), field("u64", arrow::uint64()),
      field("f16", arrow::float16()), field("f32", arrow::float32()),
      field("f64", arrow::float64()), field("i64_required", arrow::int64(), false),
      field("date32", arrow::date32()), field("date64", arrow::date64()),
      field("time32", arrow::time32(arrow::TimeUnit::MILLI)),
      field("time64us", arrow::time64(arrow::TimeUnit::MICRO)),
      field("time64ns", arrow::time64(arrow::TimeUnit::NANO)),
      field("ts_ms", arrow::timestamp(arrow::TimeUnit::MILLI)),
      field("ts_us", arrow::timestamp(arrow::TimeUnit::MICRO, "Europe/Paris")),
      field("ts_ns", arrow::timestamp(arrow::TimeUnit::NANO)),
      field("duration", arrow::duration(arrow::TimeUnit::MICRO)),
      field("string", arrow::utf8()), field("string_required", arrow::utf8(), false),
      field("binary", arrow::binary()), field("large_string", arrow::large_utf8()),
      field("large_binary", arrow::large_binary()), field("string_view", arrow::utf8_view()),
      field("binary_view", arrow::binary_view()), field("fsb", arrow::fixed_size_binary(5)),
      field("dec9", arrow::decimal128(9, 2)), field("dec18", arrow::decimal128(18, 4)),
      field("dec38", arrow::decimal128(38, 10)), field("dec60", arrow::decimal256(60, 3)),
      field("dictionary", arrow::dictionary(arrow::int32(), arrow::utf8())),
      field("null", arrow::null()),
      field("struct", point), field("struct_required", point, false),
      field("struct_deep", arrow::struct_({field("p", point, false), field("q", point),
                                           field("l", arrow::list(arrow::int32()))})),
      field("list", arrow::list(arrow::int32())),
      field("list_required", arrow::list(required_item)),
      field("list_not_null", arrow::list(arrow::utf8()), false),
      field("large_list", arrow::large_list(arrow::utf8())),
      field("list_list", arrow::list(arrow::list(arrow::int16()))),
      field("list_struct", arrow::list(point)), field("list_deep", arrow::list(deep)),
      field("map", arrow::map(arrow::utf8(), arrow::int32())),
      field("map_struct", arrow::map(arrow::int32(), point)),
      field("fixed_list", arrow::fixed_size_list(arrow::int32(), 3), false),
  });
}

Result<std::shared_ptr<arrow::Table>> RandomTable(const std::shared_ptr<arrow::Schema>& schema,
                                                  int64_t rows, const RandomOptions& options,
                                                  Rng* rng) {
  Randomizer randomizer(options, rng);
  arrow::ArrayVector columns;
  for (const auto& field : schema->fields()) {
    std::unique_ptr<arrow::ArrayBuilder> builder;
    if (field->type()->id() == Type::DICTIONARY) {
      builder = std::make_unique<arrow::StringDictionary32Builder>();
    } else {
      ARROW_RETURN_NOT_OK(
          arrow::MakeBuilder(arrow::default_memory_pool(), field->type(), &builder));
    }
    for (int64_t i = 0; i < rows; ++i) {
      ARROW_RETURN_NOT_OK(randomizer.Append(*field, builder.get()));
    }
    ARROW_ASSIGN_OR_RAISE(auto column, builder->Finish());
    columns.push_back(std::move(column));
  }
  return arrow::Table::Make(schema, std::move(columns), rows);
}

Result<std::string> WriteFile(const arrow::Table& table, FileOptions* options) {
  return Guarded("writing a test file", [&]() -> Result<std::string> {
    ::parquet::ArrowWriterProperties::Builder arrow_properties;
    arrow_properties.store_schema();
    if (options->int96) arrow_properties.enable_deprecated_int96_timestamps();
    ARROW_ASSIGN_OR_RAISE(auto out, arrow::io::BufferOutputStream::Create());
    ARROW_RETURN_NOT_OK(::parquet::arrow::WriteTable(
        table, arrow::default_memory_pool(), out, options->row_group_rows,
        options->properties.build(), arrow_properties.build()));
    ARROW_ASSIGN_OR_RAISE(auto buffer, out->Finish());
    return buffer->ToString();
  });
}

Result<Subject> Subject::Open(std::string bytes, const ReadLimits& limits) {
  Subject subject;
  subject.store = store::MakeMemoryStore();
  ARROW_RETURN_NOT_OK(subject.store->Put("f.parquet", bytes, store::PutMode::kOverwrite));
  ARROW_ASSIGN_OR_RAISE(store::Object object, subject.store->Stat("f.parquet"));
  subject.object = std::make_shared<const store::Object>(std::move(object));
  ARROW_ASSIGN_OR_RAISE(subject.footer, Footer::Read(*subject.store, subject.object, limits));
  subject.schema = subject.footer->schema();
  ARROW_ASSIGN_OR_RAISE(subject.pages, FindPages(*subject.store, *subject.footer, limits));
  ARROW_ASSIGN_OR_RAISE(std::string packed, PackPageMap(subject.pages));
  ARROW_ASSIGN_OR_RAISE(subject.map, PageMap::Open(arrow::Buffer::FromString(packed)));
  return subject;
}

namespace {

// Rows as ranges, by row group.
std::vector<std::vector<RowRange>> RangesOf(const PageMap& map, std::span<const int64_t> rows) {
  std::vector<std::vector<RowRange>> ranges(static_cast<size_t>(map.row_group_count()));
  for (const int64_t row : rows) {
    const int group = map.FindRowGroup(RowIndex{row});
    const int64_t in_group = row - map.row_group_rows(group).begin;
    auto& of_group = ranges[static_cast<size_t>(group)];
    if (!of_group.empty() && of_group.back().end == in_group) {
      ++of_group.back().end;
    } else {
      of_group.push_back({in_group, in_group + 1});
    }
  }
  return ranges;
}

Result<std::shared_ptr<const LeafSlice>> ReadChunk(const Subject& subject, int group, int leaf,
                                                   std::span<const RowRange> rows,
                                                   const DecodeOptions& options,
                                                   ReadCount* count) {
  ARROW_ASSIGN_OR_RAISE(const ChunkRead read,
                        PlanChunk(*subject.map, 1, group, leaf, rows, options.cache));
  std::vector<store::ReadRequest> requests;
  for (size_t i = 0; i < read.pages.size(); ++i) {
    if (read.page_needed[i]) requests.push_back({subject.object, read.pages[i].bytes});
  }
  if (read.dictionary_needed) requests.push_back({subject.object, *read.info.dictionary});
  ARROW_ASSIGN_OR_RAISE(auto buffers, subject.store->Read(requests));
  ChunkBytes bytes;
  size_t next = 0;
  for (size_t i = 0; i < read.pages.size(); ++i) {
    bytes.pages.push_back(read.page_needed[i] ? buffers[next++] : nullptr);
  }
  if (count != nullptr) {
    count->pages += static_cast<int64_t>(next);
    count->dictionaries += read.dictionary_needed;
  }
  if (read.dictionary_needed) bytes.dictionary = buffers[next];
  return DecodeChunk(*subject.schema, read, bytes, options);
}

}  // namespace

Result<std::shared_ptr<arrow::RecordBatch>> ReadRows(const Subject& subject,
                                                     const Projection& projection,
                                                     std::span<const int64_t> rows,
                                                     const DecodeOptions& options,
                                                     ReadCount* count) {
  const auto ranges = RangesOf(*subject.map, rows);
  std::vector<std::vector<std::shared_ptr<const LeafSlice>>> slices(projection.leaves.size());
  for (size_t i = 0; i < projection.leaves.size(); ++i) {
    for (size_t group = 0; group < ranges.size(); ++group) {
      if (ranges[group].empty()) continue;
      ARROW_ASSIGN_OR_RAISE(auto slice,
                            ReadChunk(subject, static_cast<int>(group), projection.leaves[i],
                                      ranges[group], options, count));
      slices[i].push_back(std::move(slice));
    }
  }
  return Assemble(*subject.schema, projection, slices, options.pool);
}

Result<std::shared_ptr<arrow::Table>> ReadWhole(const std::string& bytes,
                                                const std::vector<int>& leaves) {
  return Guarded("reading with libparquet", [&]() -> Result<std::shared_ptr<arrow::Table>> {
    ::parquet::ReaderProperties reader_properties;
    reader_properties.set_page_checksum_verification(true);
    ::parquet::arrow::FileReaderBuilder builder;
    ARROW_RETURN_NOT_OK(builder.Open(std::make_shared<arrow::io::BufferReader>(
        std::make_shared<arrow::Buffer>(bytes)), reader_properties));
    ::parquet::ArrowReaderProperties properties = ArrowProperties();
    properties.set_pre_buffer(false);
    builder.properties(properties);
    ARROW_ASSIGN_OR_RAISE(auto reader, builder.Build());
    ARROW_ASSIGN_OR_RAISE(auto table, reader->ReadTable(leaves));
    return table;
  });
}

Result<std::shared_ptr<arrow::RecordBatch>> TakeRows(const arrow::Table& table,
                                                     std::span<const int64_t> rows) {
  std::vector<std::shared_ptr<arrow::Table>> pieces{table.Slice(0, 0)};
  for (size_t i = 0; i < rows.size();) {
    size_t end = i + 1;
    while (end < rows.size() && rows[end] == rows[end - 1] + 1) ++end;
    pieces.push_back(table.Slice(rows[i], static_cast<int64_t>(end - i)));
    i = end;
  }
  ARROW_ASSIGN_OR_RAISE(auto joined,
                        arrow::ConcatenateTables(
                            pieces, [] {
                              auto options = arrow::ConcatenateTablesOptions::Defaults();
                              options.unify_schemas = false;
                              return options;
                            }()));
  return joined->CombineChunksToBatch();
}

namespace {

bool SameDictionaryValues(const arrow::Array& expected, const arrow::Array& got) {
  for (int64_t i = 0; i < expected.length(); ++i) {
    auto a = expected.GetScalar(i), b = got.GetScalar(i);
    if (!a.ok() || !b.ok()) return false;
    if ((*a)->is_valid != (*b)->is_valid) return false;
    if (!(*a)->is_valid) continue;
    auto x = static_cast<const arrow::DictionaryScalar&>(**a).GetEncodedValue();
    auto y = static_cast<const arrow::DictionaryScalar&>(**b).GetEncodedValue();
    if (!x.ok() || !y.ok() || !(*x)->Equals(**y)) return false;
  }
  return true;
}

}  // namespace

std::string Difference(const arrow::RecordBatch& expected, const arrow::RecordBatch& got) {
  if (expected.num_rows() != got.num_rows()) {
    return "rows: " + std::to_string(expected.num_rows()) + " against " +
           std::to_string(got.num_rows());
  }
  if (!expected.schema()->Equals(*got.schema(), false)) {
    return "schema: " + expected.schema()->ToString() + "\nagainst\n" + got.schema()->ToString();
  }
  const auto options = arrow::EqualOptions::Defaults().nans_equal(true).signed_zeros_equal(false);
  for (int i = 0; i < expected.num_columns(); ++i) {
    const arrow::Array& a = *expected.column(i);
    const arrow::Array& b = *got.column(i);
    const bool same = a.type_id() == Type::DICTIONARY
                          ? a.length() == b.length() && SameDictionaryValues(a, b)
                          : a.Equals(b, options);
    if (!same) {
      return "column " + expected.schema()->field(i)->ToString() + ": " + a.ToString() +
             "\nagainst\n" + b.ToString();
    }
  }
  return {};
}

std::vector<int64_t> PickRows(int64_t row_count, int64_t count, Rng* rng) {
  std::set<int64_t> rows;
  count = std::min(count, row_count);
  while (static_cast<int64_t>(rows.size()) < count) {
    // Runs as well as single rows.
    int64_t row = static_cast<int64_t>(rng->Below(static_cast<uint64_t>(row_count)));
    int64_t run = rng->Chance(0.3) ? static_cast<int64_t>(rng->Below(20)) : 1;
    for (; run > 0 && row < row_count && static_cast<int64_t>(rows.size()) < count; --run) {
      rows.insert(row++);
    }
  }
  return {rows.begin(), rows.end()};
}

}  // namespace grebe::pq::testing

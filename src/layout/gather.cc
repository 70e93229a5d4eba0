#include "layout/gather.h"

#include <arrow/array/concatenate.h>
#include <arrow/array/util.h>
#include <arrow/array/data.h>
#include <arrow/buffer.h>
#include <arrow/extension_type.h>
#include <arrow/type_traits.h>
#include <arrow/util/bit_util.h>
#include <arrow/util/byte_size.h>

#include <cstring>
#include <limits>

#include "base/take_rows.h"

namespace grebe::layout {
namespace {

using ArrayData = arrow::ArrayData;

const arrow::DataType& StorageType(const arrow::DataType& type) {
  if (type.id() != arrow::Type::EXTENSION) return type;
  return StorageType(*static_cast<const arrow::ExtensionType&>(type).storage_type());
}

// How values are copied.
enum class Copy { kFixed, kBits, kText, kLargeText, kList, kLargeList, kFixedList, kStruct,
                  kByKernel };

Copy CopyOf(const arrow::DataType& type) {
  switch (type.id()) {
    case arrow::Type::BOOL: return Copy::kBits;
    case arrow::Type::STRING:
    case arrow::Type::BINARY: return Copy::kText;
    case arrow::Type::LARGE_STRING:
    case arrow::Type::LARGE_BINARY: return Copy::kLargeText;
    case arrow::Type::LIST:
    case arrow::Type::MAP: return Copy::kList;
    case arrow::Type::LARGE_LIST: return Copy::kLargeList;
    case arrow::Type::FIXED_SIZE_LIST: return Copy::kFixedList;
    case arrow::Type::STRUCT: return Copy::kStruct;
    case arrow::Type::DICTIONARY: return Copy::kByKernel;
    default: break;
  }
  return arrow::is_fixed_width(type.id()) ? Copy::kFixed : Copy::kByKernel;
}

using Sources = std::vector<std::shared_ptr<ArrayData>>;

Result<std::shared_ptr<ArrayData>> GatherData(const Sources& sources, std::span<const RowRef> rows,
                                              arrow::MemoryPool* pool);

// One column of all batches, or the children of one.
class ColumnGather {
 public:
  ColumnGather(const Sources& sources, std::span<const RowRef> rows, arrow::MemoryPool* pool)
      : type_(sources[0]->type), sources_(sources), rows_(rows), pool_(pool) {
    for (const auto& source : sources) any_null_ = any_null_ || source->GetNullCount() != 0;
  }

  Result<std::shared_ptr<ArrayData>> Run() {
    const arrow::DataType& storage = StorageType(*type_);
    if (CopyOf(storage) == Copy::kByKernel) return ByKernel();
    std::vector<std::shared_ptr<arrow::Buffer>> buffers;
    Sources children;
    int64_t null_count = 0;
    ARROW_ASSIGN_OR_RAISE(auto validity, Validity(&null_count));
    buffers.push_back(std::move(validity));
    switch (CopyOf(storage)) {
      case Copy::kFixed: {
        ARROW_ASSIGN_OR_RAISE(auto values, Fixed(storage.byte_width()));
        buffers.push_back(std::move(values));
        break;
      }
      case Copy::kBits: {
        ARROW_ASSIGN_OR_RAISE(auto values, Bits());
        buffers.push_back(std::move(values));
        break;
      }
      case Copy::kText:
        ARROW_RETURN_NOT_OK(Text<int32_t>(&buffers));
        break;
      case Copy::kLargeText:
        ARROW_RETURN_NOT_OK(Text<int64_t>(&buffers));
        break;
      case Copy::kList:
        ARROW_RETURN_NOT_OK(List<int32_t>(&buffers, &children));
        break;
      case Copy::kLargeList:
        ARROW_RETURN_NOT_OK(List<int64_t>(&buffers, &children));
        break;
      case Copy::kFixedList:
        ARROW_RETURN_NOT_OK(FixedList(
            static_cast<const arrow::FixedSizeListType&>(storage).list_size(), &children));
        break;
      case Copy::kStruct:
        ARROW_RETURN_NOT_OK(Struct(&children));
        break;
      case Copy::kByKernel: break;
    }
    return ArrayData::Make(type_, static_cast<int64_t>(rows_.size()), std::move(buffers),
                           std::move(children), null_count);
  }

 private:
  Result<std::shared_ptr<arrow::Buffer>> Validity(int64_t* null_count) {
    if (!any_null_) return nullptr;
    ARROW_ASSIGN_OR_RAISE(std::shared_ptr<arrow::Buffer> out,
                          arrow::AllocateEmptyBitmap(static_cast<int64_t>(rows_.size()), pool_));
    uint8_t* bits = out->mutable_data();
    int64_t nulls = 0;
    for (size_t i = 0; i < rows_.size(); ++i) {
      const ArrayData& source = *sources_[rows_[i].batch];
      const bool valid = source.IsValid(rows_[i].row);
      if (valid) arrow::bit_util::SetBit(bits, static_cast<int64_t>(i));
      nulls += valid ? 0 : 1;
    }
    *null_count = nulls;
    if (nulls == 0) return nullptr;
    return out;
  }

  template <int kWidth>
  void CopyFixed(uint8_t* out) const {
    std::vector<const uint8_t*> bases;
    for (const auto& source : sources_) {
      bases.push_back(source->buffers[1]->data() + source->offset * kWidth);
    }
    for (const RowRef ref : rows_) {
      std::memcpy(out, bases[ref.batch] + static_cast<int64_t>(ref.row) * kWidth, kWidth);
      out += kWidth;
    }
  }

  Result<std::shared_ptr<arrow::Buffer>> Fixed(int width) const {
    ARROW_ASSIGN_OR_RAISE(
        std::shared_ptr<arrow::Buffer> out,
        arrow::AllocateBuffer(static_cast<int64_t>(rows_.size()) * width, pool_));
    uint8_t* to = out->mutable_data();
    switch (width) {
      case 1: CopyFixed<1>(to); return out;
      case 2: CopyFixed<2>(to); return out;
      case 4: CopyFixed<4>(to); return out;
      case 8: CopyFixed<8>(to); return out;
      case 16: CopyFixed<16>(to); return out;
      default: break;
    }
    for (const RowRef ref : rows_) {
      const ArrayData& source = *sources_[ref.batch];
      std::memcpy(to, source.buffers[1]->data() + (source.offset + ref.row) * width,
                  static_cast<size_t>(width));
      to += width;
    }
    return out;
  }

  Result<std::shared_ptr<arrow::Buffer>> Bits() const {
    ARROW_ASSIGN_OR_RAISE(std::shared_ptr<arrow::Buffer> out,
                          arrow::AllocateEmptyBitmap(static_cast<int64_t>(rows_.size()), pool_));
    uint8_t* bits = out->mutable_data();
    for (size_t i = 0; i < rows_.size(); ++i) {
      const ArrayData& source = *sources_[rows_[i].batch];
      if (arrow::bit_util::GetBit(source.buffers[1]->data(), source.offset + rows_[i].row)) {
        arrow::bit_util::SetBit(bits, static_cast<int64_t>(i));
      }
    }
    return out;
  }

  template <class Offset>
  Status Text(std::vector<std::shared_ptr<arrow::Buffer>>* buffers) const {
    struct Base {
      const Offset* offsets;
      const uint8_t* bytes;
    };
    static constexpr uint8_t kNone = 0;
    std::vector<Base> bases;
    for (const auto& source : sources_) {
      bases.push_back({source->GetValues<Offset>(1),
                       source->buffers[2] ? source->buffers[2]->data() : &kNone});
    }
    ARROW_ASSIGN_OR_RAISE(
        std::shared_ptr<arrow::Buffer> offsets,
        arrow::AllocateBuffer((static_cast<int64_t>(rows_.size()) + 1) *
                              static_cast<int64_t>(sizeof(Offset)), pool_));
    auto* ends = reinterpret_cast<Offset*>(offsets->mutable_data());
    int64_t total = 0;
    ends[0] = 0;
    for (size_t i = 0; i < rows_.size(); ++i) {
      const Offset* at = bases[rows_[i].batch].offsets + rows_[i].row;
      total += at[1] - at[0];
      ends[i + 1] = static_cast<Offset>(total);
    }
    if (total > std::numeric_limits<Offset>::max()) {
      return LimitExceeded("text of a column in one batch", "bytes", total);
    }
    ARROW_ASSIGN_OR_RAISE(std::shared_ptr<arrow::Buffer> bytes,
                          arrow::AllocateBuffer(total, pool_));
    uint8_t* to = bytes->mutable_data();
    for (size_t i = 0; i < rows_.size(); ++i) {
      const Base& base = bases[rows_[i].batch];
      std::memcpy(to + ends[i], base.bytes + base.offsets[rows_[i].row],
                  static_cast<size_t>(ends[i + 1] - ends[i]));
    }
    buffers->push_back(std::move(offsets));
    buffers->push_back(std::move(bytes));
    return Status::OK();
  }

  // The lists' items are rows of the children, gathered in their turn.
  template <class Offset>
  Status List(std::vector<std::shared_ptr<arrow::Buffer>>* buffers, Sources* children) const {
    ARROW_ASSIGN_OR_RAISE(
        std::shared_ptr<arrow::Buffer> offsets,
        arrow::AllocateBuffer((static_cast<int64_t>(rows_.size()) + 1) *
                              static_cast<int64_t>(sizeof(Offset)), pool_));
    auto* ends = reinterpret_cast<Offset*>(offsets->mutable_data());
    std::vector<RowRef> items;
    ends[0] = 0;
    for (size_t i = 0; i < rows_.size(); ++i) {
      const RowRef ref = rows_[i];
      const ArrayData& source = *sources_[ref.batch];
      const Offset* at = source.GetValues<Offset>(1) + ref.row;
      // What lies under a null is not a value.
      const Offset end = source.IsNull(ref.row) ? at[0] : at[1];
      for (Offset item = at[0]; item < end; ++item) {
        items.push_back({ref.batch, static_cast<uint32_t>(item)});
      }
      ends[i + 1] = static_cast<Offset>(items.size());
    }
    if (items.size() > static_cast<size_t>(std::numeric_limits<Offset>::max())) {
      return LimitExceeded("list items of a column in one batch", "items", items.size());
    }
    buffers->push_back(std::move(offsets));
    return Items(items, children);
  }

  Status FixedList(int32_t size, Sources* children) const {
    std::vector<RowRef> items;
    items.reserve(rows_.size() * static_cast<size_t>(size));
    for (const RowRef ref : rows_) {
      const int64_t first = (sources_[ref.batch]->offset + ref.row) * size;
      for (int32_t i = 0; i < size; ++i) {
        items.push_back({ref.batch, static_cast<uint32_t>(first + i)});
      }
    }
    return Items(items, children);
  }

  Status Items(std::span<const RowRef> items, Sources* children) const {
    Sources sources;
    for (const auto& source : sources_) sources.push_back(source->child_data[0]);
    ARROW_ASSIGN_OR_RAISE(auto child, GatherData(sources, items, pool_));
    children->push_back(std::move(child));
    return Status::OK();
  }

  Status Struct(Sources* children) const {
    for (size_t member = 0; member < sources_[0]->child_data.size(); ++member) {
      Sources sources;
      for (const auto& source : sources_) {
        const auto& child = source->child_data[member];
        const bool whole = source->offset == 0 && child->length == source->length;
        sources.push_back(whole ? child : child->Slice(source->offset, source->length));
      }
      ARROW_ASSIGN_OR_RAISE(auto child, GatherData(sources, rows_, pool_));
      children->push_back(std::move(child));
    }
    return Status::OK();
  }

  // Rare types: the sources joined, then Arrow's Take.
  Result<std::shared_ptr<ArrayData>> ByKernel() const {
    arrow::ArrayVector parts;
    std::vector<int64_t> bases;
    int64_t row_count = 0;
    for (const auto& source : sources_) {
      parts.push_back(arrow::MakeArray(source));
      bases.push_back(row_count);
      row_count += source->length;
    }
    std::shared_ptr<arrow::Array> joined = parts[0];
    if (parts.size() > 1) {
      ARROW_ASSIGN_OR_RAISE(joined, arrow::Concatenate(parts, pool_));
    }
    std::vector<int64_t> positions;
    positions.reserve(rows_.size());
    for (const RowRef ref : rows_) positions.push_back(bases[ref.batch] + ref.row);
    const auto schema = arrow::schema({arrow::field("", type_)});
    ARROW_ASSIGN_OR_RAISE(
        auto taken, TakeRows(arrow::RecordBatch::Make(schema, row_count, {joined}), positions));
    return taken->column_data(0);
  }

  const std::shared_ptr<arrow::DataType> type_;
  const Sources& sources_;
  const std::span<const RowRef> rows_;
  arrow::MemoryPool* pool_;
  bool any_null_ = false;
};

Result<std::shared_ptr<ArrayData>> GatherData(const Sources& sources, std::span<const RowRef> rows,
                                              arrow::MemoryPool* pool) {
  return ColumnGather(sources, rows, pool).Run();
}

}  // namespace

Result<std::shared_ptr<arrow::RecordBatch>> Gather(const Batches& batches,
                                                   std::span<const RowRef> rows,
                                                   arrow::MemoryPool* pool) {
  if (batches.empty()) return InvalidArgument("no batches to gather from");
  const auto& schema = batches[0]->schema();
  arrow::ArrayVector columns;
  for (int column = 0; column < schema->num_fields(); ++column) {
    Sources sources;
    for (const auto& batch : batches) sources.push_back(batch->column_data(column));
    ARROW_ASSIGN_OR_RAISE(auto data, GatherData(sources, rows, pool));
    columns.push_back(arrow::MakeArray(std::move(data)));
  }
  return arrow::RecordBatch::Make(schema, static_cast<int64_t>(rows.size()), std::move(columns));
}

Result<Batches> GatherSome(const Batches& batches, std::span<const RowRef> rows,
                           arrow::MemoryPool* pool) {
  auto whole = Gather(batches, rows, pool);
  if (whole.ok()) return Batches{*std::move(whole)};
  if (rows.size() < 2 || !IsKind(whole.status(), ErrorKind::kLimitExceeded)) {
    return whole.status();
  }
  ARROW_ASSIGN_OR_RAISE(Batches out, GatherSome(batches, rows.first(rows.size() / 2), pool));
  ARROW_ASSIGN_OR_RAISE(Batches more, GatherSome(batches, rows.subspan(rows.size() / 2), pool));
  out.insert(out.end(), more.begin(), more.end());
  return out;
}

int64_t BytesOf(const arrow::RecordBatch& batch) {
  const auto bytes = arrow::util::ReferencedBufferSize(batch);
  return bytes.ok() ? *bytes : arrow::util::TotalBufferSize(batch);
}

}  // namespace grebe::layout

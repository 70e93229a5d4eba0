// Rows from slices: leaves as arrays, then lists and structs over them. Lists and structs follow
// libparquet's Arrow reader step by step (the same level conversions, the same choice of the leaf
// whose levels count), so that the result is the same.

#include <arrow/array/array_nested.h>
#include <arrow/array/concatenate.h>
#include <arrow/array/util.h>
#include <arrow/buffer.h>
#include <arrow/extension_type.h>
#include <arrow/util/bit_util.h>

#include <algorithm>
#include <utility>

#include "parquet/guard.h"
#include "parquet/leaf_array.h"
#include "parquet/row_decode.h"
#include "parquet/schema_internal.h"

namespace grebe::pq {
namespace {

using arrow::ArrayData;
using arrow::DataType;
using arrow::Type;
using ArrayDataPtr = std::shared_ptr<ArrayData>;
using BufferPtr = std::shared_ptr<arrow::Buffer>;
using ::parquet::arrow::SchemaField;
using ::parquet::internal::ValidityBitmapInputOutput;
using Slices = std::span<const std::vector<std::shared_ptr<const LeafSlice>>>;

// All levels of one leaf in one piece.
struct Levels {
  std::vector<int16_t> joined_definition, joined_repetition;
  const int16_t* definition = nullptr;
  const int16_t* repetition = nullptr;
  int64_t count = 0;
};

// What a wanted node of the schema becomes.
struct Node {
  const SchemaField* field = nullptr;
  std::shared_ptr<DataType> type;   // pruned to the wanted leaves
  bool nullable = true;
  std::vector<Node> children;       // the wanted ones
  const LeafSlices* leaf = nullptr; // leaves only
  size_t levels_from = 0;           // the leaf (by its place in the projection) whose levels count
  bool repeated = false;            // is or has a list, in every child
};

bool IsList(Type::type id) {
  switch (id) {
    case Type::LIST:
    case Type::LARGE_LIST:
    case Type::FIXED_SIZE_LIST:
    case Type::MAP:
    case Type::LIST_VIEW:
    case Type::LARGE_LIST_VIEW: return true;
    default: return false;
  }
}

const std::shared_ptr<DataType>& StorageOf(const std::shared_ptr<DataType>& type) {
  if (type->id() != Type::EXTENSION) return type;
  return arrow::internal::checked_cast<const arrow::ExtensionType&>(*type).storage_type();
}

class Assembler {
 public:
  Assembler(const Schema& schema, const Projection& projection, Slices slices,
            arrow::MemoryPool* pool)
      : schema_(schema), projection_(projection), pool_(pool) {
    leaves_.reserve(slices.size());
    for (const auto& of_leaf : slices) leaves_.emplace_back(of_leaf);
    levels_.resize(slices.size());
  }

  Result<std::shared_ptr<arrow::RecordBatch>> Run() {
    const int64_t rows = leaves_.empty() ? 0 : leaves_[0].row_count;
    for (size_t i = 0; i < leaves_.size(); ++i) {
      if (leaves_[i].row_count != rows) {
        return Corrupt("columns have different numbers of rows", "column",
                       schema_.leaf_path(projection_.leaves[i]), "expected", rows, "got",
                       leaves_[i].row_count);
      }
    }
    const auto& fields = projection_.arrow_schema->fields();
    std::vector<ArrayDataPtr> columns;
    arrow::FieldVector kept;
    size_t next = 0;
    for (const SchemaField& field : schema_.impl().manifest.schema_fields) {
      if (!Wants(field)) {
        // A group without any leaf has no values to be read: as in libparquet's batches, it is
        // left out.
        next += !HasLeaf(field) && next < fields.size() &&
                fields[next]->name() == field.field->name();
        continue;
      }
      if (next == fields.size()) return Internal("projection lacks a field");
      const auto& wanted = fields[next++];
      ARROW_ASSIGN_OR_RAISE(ArrayDataPtr column, Column(field, *wanted, rows));
      columns.push_back(std::move(column));
      kept.push_back(wanted);
    }
    if (next != fields.size()) return Internal("projection has too many fields");
    auto schema = kept.size() == fields.size()
                      ? projection_.arrow_schema
                      : arrow::schema(kept, projection_.arrow_schema->metadata());
    return arrow::RecordBatch::Make(std::move(schema), rows, std::move(columns));
  }

 private:
  bool Wants(const SchemaField& field) const {
    if (field.is_leaf()) {
      return std::binary_search(projection_.leaves.begin(), projection_.leaves.end(),
                                field.column_index);
    }
    return std::any_of(field.children.begin(), field.children.end(),
                       [&](const SchemaField& child) { return Wants(child); });
  }

  static bool HasLeaf(const SchemaField& field) {
    return field.is_leaf() || std::any_of(field.children.begin(), field.children.end(), HasLeaf);
  }

  size_t PlaceOf(int leaf) const {
    return static_cast<size_t>(
        std::lower_bound(projection_.leaves.begin(), projection_.leaves.end(), leaf) -
        projection_.leaves.begin());
  }

  Result<ArrayDataPtr> Column(const SchemaField& field, const arrow::Field& wanted,
                              int64_t rows) {
    ArrayDataPtr column;
    if (field.is_leaf()) {
      ARROW_ASSIGN_OR_RAISE(
          column, BuildLeafArray(leaves_[PlaceOf(field.column_index)], field.level_info,
                                 StorageOf(wanted.type()), wanted.nullable(), pool_));
    } else {
      ARROW_ASSIGN_OR_RAISE(const Node node, Plan(field, wanted.type(), wanted.nullable()));
      ARROW_ASSIGN_OR_RAISE(column, Build(node, rows));
    }
    if (column->length != rows) {
      return Corrupt("column has another number of rows", "column", wanted.name(), "expected",
                     rows, "got", column->length);
    }
    if (wanted.type()->id() == Type::EXTENSION) column->type = wanted.type();
    return column;
  }

  // The wanted part of the tree below `field`, as the type (pruned alike) shows it.
  Result<Node> Plan(const SchemaField& field, const std::shared_ptr<DataType>& type,
                    bool nullable) {
    Node node;
    node.field = &field;
    node.type = type;
    node.nullable = nullable;
    if (field.is_leaf()) {
      node.levels_from = PlaceOf(field.column_index);
      node.leaf = &leaves_[node.levels_from];
      return node;
    }
    const DataType& storage = *StorageOf(type);
    int next = 0;
    for (const SchemaField& child : field.children) {
      if (!Wants(child)) continue;
      if (next == storage.num_fields()) return Internal("projection lacks a nested field");
      const auto& child_field = storage.field(next++);
      ARROW_ASSIGN_OR_RAISE(Node planned,
                            Plan(child, child_field->type(), child_field->nullable()));
      node.children.push_back(std::move(planned));
    }
    if (node.children.empty()) return Internal("projection holds an empty group");
    // A child that repeats nothing has the fewest levels.
    const auto plain = std::find_if(node.children.begin(), node.children.end(),
                                    [](const Node& child) { return !child.repeated; });
    const bool has_plain = plain != node.children.end();
    node.levels_from = has_plain ? plain->levels_from : node.children[0].levels_from;
    node.repeated = IsList(storage.id()) || !has_plain;
    return node;
  }

  const Levels& LevelsOf(size_t place) {
    Levels& levels = levels_[place];
    const LeafSlices& leaf = leaves_[place];
    if (levels.definition != nullptr || leaf.slices.empty()) return levels;
    levels.count = leaf.level_count;
    if (leaf.slices.size() == 1) {
      levels.definition = leaf.slices[0]->definition_levels.data();
      levels.repetition = leaf.slices[0]->repetition_levels.data();
      return levels;
    }
    levels.joined_definition.reserve(static_cast<size_t>(levels.count));
    levels.joined_repetition.reserve(static_cast<size_t>(levels.count));
    for (const auto& slice : leaf.slices) {
      const auto definition = slice->definition_levels.span();
      const auto repetition = slice->repetition_levels.span();
      levels.joined_definition.insert(levels.joined_definition.end(), definition.begin(),
                                      definition.end());
      levels.joined_repetition.insert(levels.joined_repetition.end(), repetition.begin(),
                                      repetition.end());
    }
    levels.definition = levels.joined_definition.data();
    levels.repetition = levels.joined_repetition.data();
    return levels;
  }

  Result<ArrayDataPtr> Build(const Node& node, int64_t length_max) {
    ArrayDataPtr array;
    const Type::type id = StorageOf(node.type)->id();
    if (node.leaf != nullptr) {
      ARROW_ASSIGN_OR_RAISE(array, BuildLeafArray(*node.leaf, node.field->level_info,
                                                  StorageOf(node.type), node.nullable, pool_));
    } else if (id == Type::STRUCT) {
      ARROW_ASSIGN_OR_RAISE(array, BuildStruct(node, length_max));
    } else if (id == Type::LARGE_LIST || id == Type::LARGE_LIST_VIEW) {
      ARROW_ASSIGN_OR_RAISE(array, BuildList<int64_t>(node, length_max));
    } else if (IsList(id)) {
      ARROW_ASSIGN_OR_RAISE(array, BuildList<int32_t>(node, length_max));
    } else {
      return Unsupported("nested column of this type cannot be assembled", "type",
                         node.type->ToString());
    }
    if (node.type->id() == Type::EXTENSION) array->type = node.type;
    return array;
  }

  Result<std::shared_ptr<arrow::ResizableBuffer>> NewBits(int64_t count) {
    ARROW_ASSIGN_OR_RAISE(auto bits, arrow::AllocateResizableBuffer(
                                         arrow::bit_util::BytesForBits(count), pool_));
    std::memset(bits->mutable_data(), 0, static_cast<size_t>(bits->size()));
    return std::shared_ptr<arrow::ResizableBuffer>(std::move(bits));
  }

  Result<ArrayDataPtr> BuildStruct(const Node& node, int64_t length_max) {
    ValidityBitmapInputOutput io;
    io.values_read_upper_bound = length_max;
    io.values_read = length_max;
    std::shared_ptr<arrow::ResizableBuffer> validity;
    if (node.repeated || node.nullable) {
      ARROW_ASSIGN_OR_RAISE(validity, NewBits(length_max));
      io.valid_bits = validity->mutable_data();
      const Levels& levels = LevelsOf(node.levels_from);
      if (node.repeated) {
        ::parquet::internal::DefRepLevelsToBitmap(levels.definition, levels.repetition,
                                                  levels.count, node.field->level_info, &io);
      } else {
        ::parquet::internal::DefLevelsToBitmap(levels.definition, levels.count,
                                               node.field->level_info, &io);
      }
      ARROW_RETURN_NOT_OK(validity->Resize(arrow::bit_util::BytesForBits(io.values_read)));
    }
    std::vector<ArrayDataPtr> children;
    for (const Node& child : node.children) {
      ARROW_ASSIGN_OR_RAISE(ArrayDataPtr data, Build(child, io.values_read));
      children.push_back(std::move(data));
    }
    if (!node.nullable && !node.repeated) io.values_read = children.front()->length;
    for (const ArrayDataPtr& child : children) {
      if (child->length != io.values_read) {
        return Corrupt("members of a struct have different lengths", "expected", io.values_read,
                       "got", child->length);
      }
    }
    std::vector<BufferPtr> buffers{io.null_count > 0 ? validity : nullptr};
    return ArrayData::Make(StorageOf(node.type), io.values_read, std::move(buffers),
                           std::move(children), io.null_count);
  }

  template <class Offset>
  Result<ArrayDataPtr> BuildList(const Node& node, int64_t length_max) {
    ValidityBitmapInputOutput io;
    io.values_read_upper_bound = length_max;
    std::shared_ptr<arrow::ResizableBuffer> validity;
    if (node.nullable) {
      ARROW_ASSIGN_OR_RAISE(validity, NewBits(length_max));
      io.valid_bits = validity->mutable_data();
    }
    constexpr auto kOffset = static_cast<int64_t>(sizeof(Offset));
    ARROW_ASSIGN_OR_RAISE(std::shared_ptr<arrow::ResizableBuffer> offsets,
                          arrow::AllocateResizableBuffer((length_max + 1) * kOffset, pool_));
    auto* offset = reinterpret_cast<Offset*>(offsets->mutable_data());
    offset[0] = 0;
    const Levels& levels = LevelsOf(node.levels_from);
    ::parquet::internal::DefRepLevelsToList(levels.definition, levels.repetition, levels.count,
                                            node.field->level_info, &io, offset);
    ARROW_ASSIGN_OR_RAISE(ArrayDataPtr child, Build(node.children[0], offset[io.values_read]));
    if (child->length != offset[io.values_read]) {
      return Corrupt("list has another number of items", "expected", offset[io.values_read],
                     "got", child->length);
    }
    ARROW_RETURN_NOT_OK(offsets->Resize((io.values_read + 1) * kOffset));
    if (validity != nullptr) {
      ARROW_RETURN_NOT_OK(validity->Resize(arrow::bit_util::BytesForBits(io.values_read)));
    }
    std::vector<BufferPtr> buffers{io.null_count > 0 ? validity : nullptr, offsets};
    ArrayDataPtr list =
        ArrayData::Make(StorageOf(node.type), io.values_read, std::move(buffers),
                        {std::move(child)}, io.null_count);
    return FinishList<Offset>(std::move(list));
  }

  template <class Offset>
  Result<ArrayDataPtr> FinishList(ArrayDataPtr list) {
    switch (list->type->id()) {
      case Type::MAP:
        ARROW_RETURN_NOT_OK(arrow::MapArray::ValidateChildData(list->child_data));
        return list;
      case Type::FIXED_SIZE_LIST: return FixedSize(std::move(list));
      case Type::LIST_VIEW:
      case Type::LARGE_LIST_VIEW: return AsView<Offset>(std::move(list));
      default: return list;
    }
  }

  template <class Offset>
  Result<ArrayDataPtr> AsView(ArrayDataPtr list) {
    const auto* offset = reinterpret_cast<const Offset*>(list->buffers[1]->data());
    constexpr auto kOffset = static_cast<int64_t>(sizeof(Offset));
    ARROW_ASSIGN_OR_RAISE(std::unique_ptr<arrow::Buffer> sizes,
                          arrow::AllocateBuffer(list->length * kOffset, pool_));
    auto* size = reinterpret_cast<Offset*>(sizes->mutable_data());
    for (int64_t i = 0; i < list->length; ++i) size[i] = offset[i + 1] - offset[i];
    list->buffers[1] = arrow::SliceBuffer(list->buffers[1], 0, list->length * kOffset);
    list->buffers.push_back(std::move(sizes));
    return list;
  }

  // Null lists hold no items in Parquet, but take their places in Arrow.
  Result<ArrayDataPtr> FixedSize(ArrayDataPtr list) {
    const auto& type =
        arrow::internal::checked_cast<const arrow::FixedSizeListType&>(*list->type);
    const auto* offset = reinterpret_cast<const int32_t*>(list->buffers[1]->data());
    const bool has_nulls = list->null_count > 0;
    arrow::ArrayVector pieces;
    for (int64_t i = 0; i < list->length; ++i) {
      const bool valid =
          !has_nulls || arrow::bit_util::GetBit(list->buffers[0]->data(), i);
      const int32_t size = offset[i + 1] - offset[i];
      if (size != (valid ? type.list_size() : 0)) {
        return Corrupt("fixed-size list has another size", "expected", type.list_size(), "got",
                       size);
      }
      if (!has_nulls) continue;
      if (valid) {
        pieces.push_back(arrow::MakeArray(list->child_data[0]->Slice(offset[i], size)));
      } else {
        ARROW_ASSIGN_OR_RAISE(auto nulls, arrow::MakeArrayOfNull(type.value_type(),
                                                                 type.list_size(), pool_));
        pieces.push_back(std::move(nulls));
      }
    }
    if (has_nulls) {
      ARROW_ASSIGN_OR_RAISE(auto items, arrow::Concatenate(pieces, pool_));
      list->child_data[0] = items->data();
    }
    list->buffers.resize(1);
    return list;
  }

  const Schema& schema_;
  const Projection& projection_;
  arrow::MemoryPool* pool_;
  std::vector<LeafSlices> leaves_;  // parallel to projection_.leaves
  std::vector<Levels> levels_;      // the same; filled when asked for
};

}  // namespace

Result<std::shared_ptr<arrow::RecordBatch>> Assemble(
    const Schema& schema, const Projection& projection,
    std::span<const std::vector<std::shared_ptr<const LeafSlice>>> slices,
    arrow::MemoryPool* pool) {
  if (slices.size() != projection.leaves.size()) {
    return InvalidArgument("slices and projection do not fit together", "leaves",
                           projection.leaves.size(), "slices", slices.size());
  }
  for (size_t i = 0; i < slices.size(); ++i) {
    for (const auto& slice : slices[i]) {
      if (slice == nullptr || slice->leaf != projection.leaves[i]) {
        return InvalidArgument("a slice is of another leaf", "leaf", projection.leaves[i]);
      }
    }
  }
  return Guarded("assembling rows", [&] {
    return Assembler(schema, projection, slices,
                     pool != nullptr ? pool : arrow::default_memory_pool())
        .Run();
  });
}

}  // namespace grebe::pq

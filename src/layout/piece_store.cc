#include "layout/piece_store.h"

#include <arrow/buffer.h>
#include <arrow/io/memory.h>
#include <arrow/ipc/dictionary.h>
#include <arrow/ipc/reader.h>
#include <arrow/ipc/writer.h>
#include <arrow/util/compression.h>

namespace grebe::layout {

arrow::ipc::IpcWriteOptions SpillFormat(arrow::MemoryPool* pool) {
  auto options = arrow::ipc::IpcWriteOptions::Defaults();
  options.memory_pool = pool;
  options.use_threads = false;
  options.allow_64bit = true;
  auto codec = arrow::util::Codec::Create(arrow::Compression::LZ4_FRAME);
  if (codec.ok()) options.codec = *std::move(codec);
  return options;
}

PieceStore::PieceStore(size_t partitions, int source_files, std::shared_ptr<arrow::Schema> schema,
                       int64_t memory_bytes_max, std::string spill_folder, arrow::MemoryPool* pool)
    : schema_(std::move(schema)), memory_bytes_max_(memory_bytes_max), pool_(pool),
      write_options_(SpillFormat(pool)), spill_(std::move(spill_folder)),
      partitions_(partitions), excluded_(static_cast<size_t>(source_files)) {}

Status PieceStore::Add(size_t partition, Piece piece) {
  Kept kept;
  kept.size_bytes = BytesOf(*piece.rows);
  if (memory_bytes_.fetch_add(kept.size_bytes) + kept.size_bytes > memory_bytes_max_) {
    memory_bytes_.fetch_sub(kept.size_bytes);
    ARROW_ASSIGN_OR_RAISE(auto bytes,
                          arrow::ipc::SerializeRecordBatch(*piece.rows, write_options_));
    kept.spilled_bytes = bytes->size();
    ARROW_ASSIGN_OR_RAISE(kept.offset_bytes,
                          spill_.Append({reinterpret_cast<const char*>(bytes->data()),
                                         static_cast<size_t>(bytes->size())}));
    piece.rows = nullptr;
  }
  kept.piece = std::move(piece);
  std::lock_guard lock(mutex_);
  partitions_[partition].push_back(std::move(kept));
  return Status::OK();
}

Result<Piece> PieceStore::Load(Kept kept) {
  if (kept.piece.rows != nullptr) {
    memory_bytes_.fetch_sub(kept.size_bytes);
    return std::move(kept.piece);
  }
  ARROW_ASSIGN_OR_RAISE(std::shared_ptr<arrow::Buffer> bytes,
                        arrow::AllocateBuffer(kept.spilled_bytes, pool_));
  ARROW_RETURN_NOT_OK(spill_.Read(kept.offset_bytes, static_cast<size_t>(kept.spilled_bytes),
                                  reinterpret_cast<char*>(bytes->mutable_data())));
  arrow::ipc::IpcReadOptions options;
  options.memory_pool = pool_;
  options.use_threads = false;
  arrow::ipc::DictionaryMemo memo;
  arrow::io::BufferReader reader(bytes);
  ARROW_ASSIGN_OR_RAISE(kept.piece.rows,
                        arrow::ipc::ReadRecordBatch(schema_, &memo, options, &reader));
  return std::move(kept.piece);
}

int64_t PieceStore::row_count(size_t partition) const {
  std::lock_guard lock(mutex_);
  int64_t rows = 0;
  for (const Kept& kept : partitions_[partition]) {
    for (const Piece::Run& run : kept.piece.runs) {
      if (!excluded_[static_cast<size_t>(run.file)]) rows += run.row_count;
    }
  }
  return rows;
}

int64_t PieceStore::size_bytes(size_t partition) const {
  std::lock_guard lock(mutex_);
  int64_t bytes = 0;
  for (const Kept& kept : partitions_[partition]) bytes += kept.size_bytes;
  return bytes;
}

Result<std::vector<Piece>> PieceStore::Take(size_t partition) {
  std::vector<Kept> kept;
  {
    std::lock_guard lock(mutex_);
    kept = std::move(partitions_[partition]);
    partitions_[partition].clear();
  }
  std::vector<Piece> pieces;
  for (Kept& one : kept) {
    ARROW_ASSIGN_OR_RAISE(Piece piece, Load(std::move(one)));
    pieces.push_back(std::move(piece));
  }
  return pieces;
}

}  // namespace grebe::layout

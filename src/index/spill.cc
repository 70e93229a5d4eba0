#include "index/spill.h"

#include <algorithm>

namespace grebe::index {

Status SpillBuffer::Append(std::string_view bytes) {
  memory_.append(bytes);
  if (static_cast<int64_t>(memory_.size()) > memory_bytes_max_) {
    ARROW_RETURN_NOT_OK(file_.Append(memory_).status());
    memory_.clear();
  }
  return Status::OK();
}

Status SpillBuffer::CopyTo(store::Upload& upload) {
  std::string piece;
  for (int64_t at = 0; at < file_.size_bytes(); at += static_cast<int64_t>(piece.size())) {
    piece.resize(static_cast<size_t>(std::min<int64_t>(1 << 20, file_.size_bytes() - at)));
    ARROW_RETURN_NOT_OK(file_.Read(at, piece.size(), piece.data()));
    ARROW_RETURN_NOT_OK(upload.Append(piece));
  }
  return memory_.empty() ? Status::OK() : upload.Append(memory_);
}

Result<BlobStore::Ref> BlobStore::Put(std::string_view bytes) {
  Ref ref;
  ref.size_bytes = static_cast<int64_t>(bytes.size());
  total_bytes_.fetch_add(ref.size_bytes, std::memory_order_relaxed);
  {
    std::lock_guard lock(mutex_);
    if (memory_bytes_ + ref.size_bytes <= memory_bytes_max_) {
      memory_bytes_ += ref.size_bytes;
      ref.memory_index = static_cast<int64_t>(pieces_.size());
      pieces_.emplace_back(bytes);
      return ref;
    }
  }
  ARROW_ASSIGN_OR_RAISE(ref.offset_bytes, file_.Append(bytes));
  return ref;
}

Result<std::string> BlobStore::Take(const Ref& ref) {
  if (ref.memory_index >= 0) {
    std::lock_guard lock(mutex_);
    memory_bytes_ -= ref.size_bytes;
    return std::move(pieces_[static_cast<size_t>(ref.memory_index)]);
  }
  std::string bytes(static_cast<size_t>(ref.size_bytes), '\0');
  ARROW_RETURN_NOT_OK(file_.Read(ref.offset_bytes, bytes.size(), bytes.data()));
  return bytes;
}

}  // namespace grebe::index

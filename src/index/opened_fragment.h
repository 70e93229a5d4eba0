// The fragments of a view, opened together. Private to this room.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "index/fragment.h"
#include "index/index_view.h"
#include "index/manifest.h"
#include "store/store.h"

namespace grebe::index {

struct OpenedFragment {
  static constexpr uint32_t kDead = UINT32_MAX;

  FragmentInfo info;
  std::shared_ptr<const store::Object> object;   // pinned by size
  std::shared_ptr<arrow::Buffer> bytes;          // the whole object; null: read by range
  std::shared_ptr<const Fragment> fragment;
  uint32_t cache_object = 0;                     // BlockCache::ObjectId
  std::vector<uint32_t> view_files;              // per file: its ordinal in the view, or kDead

  bool in_memory() const { return bytes != nullptr; }
  std::string_view whole() const {
    return {reinterpret_cast<const char*>(bytes->data()), static_cast<size_t>(bytes->size())};
  }
};

// Maps the fragments, or reads their heads (small ones whole) as one wave. view_files is left
// empty. Errors: Corrupt, NotFound, Unsupported, the store's.
Result<std::vector<OpenedFragment>> OpenFragments(const store::Location& index_folder,
                                                  const Manifest& manifest,
                                                  const ViewOptions& options);

// A failure to read a fragment, as the view reports it: another size is damage, not staleness.
Status FragmentError(const Status& status, const std::string& path);

// Reads ranges of fragments as one wave into *buffers (parallel to requests); each has exactly the
// size asked for. Errors: of the first request that failed, as FragmentError.
Status ReadWave(store::Store& store, std::span<const store::ReadRequest> requests,
                std::vector<std::shared_ptr<arrow::Buffer>>* buffers);

}  // namespace grebe::index

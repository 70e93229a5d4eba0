// The view's body. Private to this room.
#pragma once

#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include "index/block_cache.h"
#include "index/fragment_filter.h"
#include "index/index_view.h"
#include "index/opened_fragment.h"
#include "index/page_map_shelf.h"

namespace grebe::index {

class IndexViewImpl final : public IndexView {
 public:
  IndexViewImpl(Manifest manifest, std::shared_ptr<store::Store> store,
                std::vector<OpenedFragment> fragments, std::vector<ViewFile> files,
                std::vector<PageMapShelf::Origin> origins, std::shared_ptr<BlockCache> cache,
                const ViewOptions& options)
      : manifest_(std::move(manifest)),
        store_(std::move(store)),
        fragments_(std::move(fragments)),
        files_(std::move(files)),
        cache_(std::move(cache)),
        filter_(fragments_, options.filter_bytes_max),
        shelf_(fragments_, std::move(origins), options) {}

  const Manifest& manifest() const override { return manifest_; }
  const std::vector<ViewFile>& files() const override { return files_; }
  Result<std::vector<FoundRows>> Find(const key::EncodedKeys& keys, const FindOptions& options,
                                      ProbeCounters* counters) override;
  Result<std::vector<FoundRun>> FindRange(const key::OrderedRange& range,
                                          const RangeOptions& options,
                                          ProbeCounters* counters) override;
  Result<int64_t> CountRange(const key::OrderedRange& range, ProbeCounters* counters) override;
  Result<std::shared_ptr<const pq::PageMap>> page_map(uint32_t file) override;

 private:
  class Finder;        // one call of Find: index_view_find.cc
  class RangeFinder;   // one call of FindRange or CountRange: index_view_range.cc

  // Reads ranges as one wave, counting it; none: no wave.
  Status ReadCounted(std::span<const store::ReadRequest> requests, ProbeCounters* counters,
                     std::vector<std::shared_ptr<arrow::Buffer>>* buffers);
  // Loads the page maps of files that are not loaded, as one wave.
  Status LoadMaps(std::vector<PageMapShelf::Unit> units, ProbeCounters* counters);

  const Manifest manifest_;
  const std::shared_ptr<store::Store> store_;
  const std::vector<OpenedFragment> fragments_;
  const std::vector<ViewFile> files_;
  const std::shared_ptr<BlockCache> cache_;
  FragmentFilter filter_;
  std::atomic<int64_t> find_count_{0};
  PageMapShelf shelf_;
};

}  // namespace grebe::index

#include "index/page_map_shelf.h"

#include <utility>

#include "base/hash.h"

namespace grebe::index {

PageMapShelf::PageMapShelf(const std::vector<OpenedFragment>& fragments,
                           std::vector<Origin> origins, const ViewOptions& options)
    : fragments_(fragments),
      origins_(std::move(origins)),
      bytes_max_(options.page_map_bytes_max),
      slots_(fragments.size() + origins_.size()),
      maps_(origins_.size()) {
  by_fragment_.reserve(fragments.size());
  for (size_t i = 0; i < fragments.size(); ++i) {
    const OpenedFragment& opened = fragments[i];
    const ByteRange maps = opened.fragment->page_maps();
    by_fragment_.push_back(opened.in_memory() ||
                           maps.size_bytes() <= options.page_maps_eager_bytes_max);
    if (opened.in_memory()) {
      slots_[i].bytes = arrow::SliceBuffer(opened.bytes, maps.begin, maps.size_bytes());
      slots_[i].pinned = true;
    }
  }
}

PageMapShelf::Unit PageMapShelf::unit_of_file(uint32_t view_file) const {
  const Unit fragment = origins_[view_file].fragment;
  if (by_fragment_[fragment]) return fragment;
  return static_cast<Unit>(fragments_.size()) + view_file;
}

ByteRange PageMapShelf::range(Unit unit) const {
  if (unit < fragments_.size()) return fragments_[unit].fragment->page_maps();
  const Origin& origin = origins_[unit - fragments_.size()];
  return fragments_[origin.fragment].fragment->files()[origin.file].page_map;
}

store::ReadRequest PageMapShelf::request(Unit unit) const {
  const size_t count = fragments_.size();
  const uint32_t fragment = unit < count ? unit : origins_[unit - count].fragment;
  return {fragments_[fragment].object, range(unit)};
}

bool PageMapShelf::Touch(Unit unit) {
  std::lock_guard lock(mutex_);
  Slot& slot = slots_[unit];
  if (slot.bytes == nullptr) return range(unit).empty();
  if (!slot.pinned) by_use_.splice(by_use_.begin(), by_use_, slot.use);
  return true;
}

void PageMapShelf::Drop(Unit unit) {
  Slot& slot = slots_[unit];
  bytes_ -= slot.bytes->size();
  by_use_.erase(slot.use);
  slot.bytes = nullptr;
  for (const uint32_t view_file : slot.opened) maps_[view_file] = nullptr;
  slot.opened.clear();
}

void PageMapShelf::Put(Unit unit, std::shared_ptr<arrow::Buffer> bytes) {
  std::lock_guard lock(mutex_);
  Slot& slot = slots_[unit];
  if (slot.bytes != nullptr) return;  // another lookup was first
  bytes_ += bytes->size();
  slot.bytes = std::move(bytes);
  by_use_.push_front(unit);
  slot.use = by_use_.begin();
  while (bytes_ > bytes_max_ && by_use_.size() > 1) Drop(by_use_.back());
}

Result<std::shared_ptr<const pq::PageMap>> PageMapShelf::Get(uint32_t view_file) {
  const Unit unit = unit_of_file(view_file);
  std::shared_ptr<arrow::Buffer> bytes;
  {
    std::lock_guard lock(mutex_);
    const Slot& slot = slots_[unit];
    if (slot.bytes != nullptr && !slot.pinned) {
      by_use_.splice(by_use_.begin(), by_use_, slot.use);
    }
    if (maps_[view_file] != nullptr) return maps_[view_file];
    bytes = slot.bytes;
  }
  if (bytes == nullptr) {
    if (!range(unit).empty()) return nullptr;
    bytes = std::make_shared<arrow::Buffer>(nullptr, 0);
  }
  return Open(view_file, bytes);
}

Result<std::shared_ptr<const pq::PageMap>> PageMapShelf::Open(
    uint32_t view_file, const std::shared_ptr<arrow::Buffer>& bytes) {
  const Unit unit = unit_of_file(view_file);
  const Origin& origin = origins_[view_file];
  const FragmentFile& file = fragments_[origin.fragment].fragment->files()[origin.file];
  auto packed = arrow::SliceBuffer(bytes, file.page_map.begin - range(unit).begin,
                                   file.page_map.size_bytes());
  const std::string_view text(reinterpret_cast<const char*>(packed->data()),
                              static_cast<size_t>(packed->size()));
  if (Checksum(text) != file.page_map_checksum) {
    return Corrupt("page map checksum differs", "fragment", fragments_[origin.fragment].info.path,
                   "path", file.path, "offset_bytes", file.page_map.begin);
  }
  auto opened = pq::PageMap::Open(std::move(packed));
  if (!opened.ok()) return AddContext(opened.status(), "path", file.path);
  if ((*opened)->row_count() != file.row_count) {
    return Corrupt("page map has another number of rows", "path", file.path, "expected",
                   file.row_count, "got", (*opened)->row_count());
  }
  std::lock_guard lock(mutex_);
  Slot& slot = slots_[unit];
  if (maps_[view_file] == nullptr && slot.bytes == bytes) {
    maps_[view_file] = *opened;
    if (!slot.pinned) slot.opened.push_back(view_file);
  }
  return *opened;
}

}  // namespace grebe::index

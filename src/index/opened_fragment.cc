#include "index/opened_fragment.h"

#include <utility>

namespace grebe::index {
namespace {

std::string Join(const std::string& folder, const std::string& name) {
  return folder.empty() ? name : folder + "/" + name;
}

Result<std::shared_ptr<const Fragment>> OpenHead(const FragmentInfo& info,
                                                 std::shared_ptr<arrow::Buffer> head) {
  auto fragment = Fragment::Open(info, std::move(head));
  if (!fragment.ok()) return FragmentError(fragment.status(), info.path);
  if (static_cast<int64_t>((*fragment)->files().size()) != info.file_count) {
    return Corrupt("fragment has another number of files", "fragment", info.path, "expected",
                   info.file_count, "got", (*fragment)->files().size());
  }
  return fragment;
}

// The whole object is in opened->bytes.
Status OpenWhole(OpenedFragment* opened) {
  const FragmentInfo& info = opened->info;
  if (opened->bytes->size() != info.size_bytes) {
    return Corrupt("fragment has another size", "fragment", info.path, "expected", info.size_bytes,
                   "got", opened->bytes->size());
  }
  ARROW_ASSIGN_OR_RAISE(
      opened->fragment,
      OpenHead(info, arrow::SliceBuffer(opened->bytes, info.head.begin, info.head.size_bytes())));
  return Status::OK();
}

// False when the store cannot map.
Result<bool> MapAll(store::Store& store, std::vector<OpenedFragment>* all) {
  for (OpenedFragment& opened : *all) {
    auto mapped = store.Map(*opened.object);
    if (IsKind(mapped.status(), ErrorKind::kUnsupported)) return false;
    if (!mapped.ok()) return FragmentError(mapped.status(), opened.info.path);
    opened.bytes = std::move(*mapped);
    ARROW_RETURN_NOT_OK(OpenWhole(&opened));
  }
  return true;
}

Status ReadAll(store::Store& store, const ViewOptions& options, std::vector<OpenedFragment>* all) {
  std::vector<store::ReadRequest> requests;
  for (const OpenedFragment& opened : *all) {
    const bool whole = opened.info.size_bytes <= options.whole_fragment_bytes_max;
    requests.push_back({opened.object, whole ? ByteRange{0, opened.info.size_bytes}
                                             : opened.info.head});
  }
  std::vector<std::shared_ptr<arrow::Buffer>> buffers;
  ARROW_RETURN_NOT_OK(ReadWave(store, requests, &buffers));
  for (size_t i = 0; i < requests.size(); ++i) {
    OpenedFragment& opened = (*all)[i];
    if (requests[i].range != opened.info.head) {
      opened.bytes = std::move(buffers[i]);
      ARROW_RETURN_NOT_OK(OpenWhole(&opened));
    } else {
      ARROW_ASSIGN_OR_RAISE(opened.fragment, OpenHead(opened.info, std::move(buffers[i])));
    }
  }
  return Status::OK();
}

}  // namespace

Status FragmentError(const Status& status, const std::string& path) {
  if (IsKind(status, ErrorKind::kStale)) {
    return Corrupt("fragment is not the one of the manifest", "fragment", path, "reason",
                   status.message());
  }
  return AddContext(status, "fragment", path);
}

Result<std::vector<OpenedFragment>> OpenFragments(const store::Location& index_folder,
                                                  const Manifest& manifest,
                                                  const ViewOptions& options) {
  std::vector<OpenedFragment> all(manifest.fragments.size());
  for (size_t i = 0; i < all.size(); ++i) {
    all[i].info = manifest.fragments[i];
    auto object = std::make_shared<store::Object>();
    object->path = Join(index_folder.path, all[i].info.path);
    object->identity.size_bytes = all[i].info.size_bytes;
    all[i].object = std::move(object);
  }
  if (all.empty()) return all;
  store::Store& store = *index_folder.store;
  ARROW_ASSIGN_OR_RAISE(const bool mapped, MapAll(store, &all));
  if (!mapped) ARROW_RETURN_NOT_OK(ReadAll(store, options, &all));
  return all;
}

Status ReadWave(store::Store& store, std::span<const store::ReadRequest> requests,
                std::vector<std::shared_ptr<arrow::Buffer>>* buffers) {
  buffers->assign(requests.size(), nullptr);
  std::vector<Status> statuses(requests.size());
  store.ReadEach(requests, [&](size_t i, Result<std::shared_ptr<arrow::Buffer>> read) {
    statuses[i] = read.status();
    if (!read.ok()) return;
    if ((*read)->size() != requests[i].range.size_bytes()) {
      statuses[i] = Corrupt("store answered another number of bytes", "expected",
                            requests[i].range.size_bytes(), "got", (*read)->size());
      return;
    }
    (*buffers)[i] = std::move(*read);
  });
  for (size_t i = 0; i < statuses.size(); ++i) {
    if (!statuses[i].ok()) return FragmentError(statuses[i], requests[i].object->path);
  }
  return Status::OK();
}

}  // namespace grebe::index

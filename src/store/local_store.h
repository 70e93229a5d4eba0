// Local files. Paths are absolute.
//
// Reads are preads of files kept open. Each wave stats every path it reads once, so a replaced
// file is noticed; the open file is looked at again after its reads, so one that is overwritten
// meanwhile is noticed too, before any of its bytes are handed out.
// Small waves run on the calling thread alone; larger ones are shared with a few threads, so that
// what on_read does runs in parallel. Ranges that are not in the page cache are announced to the
// kernel together before any of them is waited for.
#pragma once

#include <memory>

#include "store/store.h"

namespace grebe::store {

struct LocalStoreOptions {
  int threads = 0;           // 0: one per core
  int open_files_max = 256;  // kept open between waves
};

std::shared_ptr<Store> MakeLocalStore(const LocalStoreOptions& options = {});

}  // namespace grebe::store

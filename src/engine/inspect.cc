// Describing one Parquet file.
#include <arrow/type.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "base/status.h"
#include "engine/table_context.h"
#include "grebe/output.h"
#include "parquet/inspect.h"
#include "store/store.h"

namespace grebe {

Result<std::string> InspectFile(const std::string& uri, bool pages, bool json,
                                const ConnectOptions& connect) {
  ARROW_ASSIGN_OR_RAISE(auto location,
                        store::OpenLocation(uri, engine::ToStoreOptions(connect)));
  ARROW_ASSIGN_OR_RAISE(store::Object object, location.store->Stat(location.path));
  ARROW_ASSIGN_OR_RAISE(auto footer,
                        pq::Footer::Read(*location.store, std::make_shared<store::Object>(object)));
  return Internal("not yet");
}

}  // namespace grebe

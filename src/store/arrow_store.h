// GCS and Azure, for reading only, through Arrow's filesystems.
//
// An identity's tag is the object's time of last change in nanoseconds, which is all that Arrow's
// listings tell. After a wave's reads, and before any of their bytes are handed out, each pinned
// object is looked at again: its time and size must be the pinned ones. So a wave costs two
// dependent round trips, not one; GCS a third (Arrow asks for an object's metadata when it opens
// it).
//
// What is not guaranteed, because Arrow does not offer it:
// - reads carry no condition (no If-Match); the look afterwards stands in for it;
// - Azure keeps times to the second: an object that is replaced twice within one second by others
//   of the same size is not told apart;
// - nothing is written: there are no conditional puts, so an index of a lake in GCS or Azure lies
//   elsewhere (--index-root). Put, StartUpload and Delete give Unsupported.
// Retries are those of Google's and Microsoft's libraries.
//
// Credentials. GCS: Application Default Credentials; with STORAGE_EMULATOR_HOST that endpoint,
// anonymously. Azure: AZURE_STORAGE_CONNECTION_STRING, else AZURE_STORAGE_ACCOUNT with
// AZURE_STORAGE_KEY or AZURE_STORAGE_SAS_TOKEN, else Microsoft's default chain.
#pragma once

#include <memory>
#include <string>

#include "store/aws_config.h"
#include "store/store.h"

namespace grebe::store {

// bucket: "bucket". Errors: Unsupported when this Arrow was built without GCS.
Result<std::shared_ptr<Store>> MakeGcsStore(const std::string& bucket, const StoreOptions& options,
                                            const EnvLookup& env);

// authority: "container@account.dfs.core.windows.net" or "container".
Result<std::shared_ptr<Store>> MakeAzureStore(const std::string& authority,
                                              const StoreOptions& options, const EnvLookup& env);

}  // namespace grebe::store

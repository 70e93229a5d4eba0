// S3, over the own client.
//
// Identities are ETags. Reads of ranges carry If-Match, and the ETag and the total size of the
// answer are compared too, for servers that ignore it. Put with kIfAbsent is a conditional PUT
// (If-None-Match: *); when an answer was lost and the object turns out to exist, its bytes are
// compared with ours to tell our own success from a rival's.
// Cost: one request a range, a whole object, a small put, 1,000 names listed; an upload of more
// than one part (8 MiB, growing) two requests more than parts.
#pragma once

#include <memory>
#include <string>

#include "store/aws_config.h"
#include "store/s3_client.h"
#include "store/store.h"

namespace grebe::store {

// A store for one bucket, as OpenLocation makes it.
Result<std::shared_ptr<Store>> MakeS3Store(const std::string& bucket, const StoreOptions& options,
                                           const EnvLookup& env);

// Over a given client (tests).
std::shared_ptr<Store> MakeS3Store(std::shared_ptr<S3Client> client);

}  // namespace grebe::store

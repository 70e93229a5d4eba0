// Writing one large object to S3 in parts, some of them under way while the next is gathered.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "store/s3_client.h"
#include "store/store.h"

namespace grebe::store {

// Objects smaller than one part are put whole. Threads: one at a time.
class S3Upload final : public Upload {
 public:
  S3Upload(std::shared_ptr<S3Client> client, std::string key);
  // Aborts what is not finished, so that no part stays behind.
  ~S3Upload() override;

  Status Append(std::string_view bytes) override;
  Result<Identity> Finish() override;

 private:
  Status Begin();
  Status SendPart(std::string bytes);
  Result<Identity> PutWhole();
  Result<Identity> Complete();
  void Abort();

  const std::shared_ptr<S3Client> client_;
  const std::string key_;
  std::string pending_;
  int64_t size_bytes_ = 0;
  std::string upload_id_;            // empty: no part has been sent
  std::vector<std::string> etags_;   // by part
  Status failure_;
  bool finished_ = false;
  std::shared_ptr<S3Wave> wave_;
};

// A PUT of a whole object.
Result<Identity> S3PutObject(S3Client* client, const std::string& key, std::string_view bytes,
                             PutMode mode);
// HEAD.
Result<Object> S3HeadObject(S3Client* client, std::string_view key);

}  // namespace grebe::store

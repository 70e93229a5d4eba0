// How tables and indexes are reached: URIs, credentials, limits of the connections.
//
// A URI is a local path ("lake/plays", "/data/plays", "file:///data/plays") or
// "s3://bucket/prefix", "gs://bucket/prefix", "abfs://container@account/prefix".
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace grebe {

// Affects how storage is reached, never what is answered. Unset S3 fields come from the
// environment as the AWS tools read it: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY,
// AWS_SESSION_TOKEN, AWS_REGION, AWS_ENDPOINT_URL_S3, AWS_PROFILE and the shared files, web
// identity, instance metadata.
struct ConnectOptions {
  std::string s3_endpoint;              // "http://127.0.0.1:8333"; default: AWS
  std::string s3_region;                // default us-east-1
  std::optional<bool> s3_path_style;    // default: yes with an endpoint of one's own, else no
  int s3_connections_max = 64;          // raise it when one wave holds more ranges than this
  int retries_max = 5;                  // attempts beyond the first, per request
  int64_t request_timeout_ms = 30000;   // one attempt
  int64_t hedge_after_us = 0;           // 0: off. A read slower than this is asked a second time
  int local_threads = 0;                // 0: one per core
};

}  // namespace grebe

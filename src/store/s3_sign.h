// AWS Signature Version 4. Pure but for a cache of one day's signing key.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace grebe::store {

struct AwsCredentials {
  std::string access_key_id;
  std::string secret_access_key;
  std::string session_token = {};  // empty: none
  int64_t expires_at_s = 0;   // Unix seconds; 0: never
  bool anonymous() const { return access_key_id.empty(); }
};

// Lower-case hex of SHA-256.
std::string Sha256Hex(std::string_view bytes);
// SHA-256 of no bytes, in hex.
extern const std::string_view kEmptySha256Hex;
std::array<uint8_t, 32> HmacSha256(std::string_view key, std::string_view bytes);
std::string Md5Hex(std::string_view bytes);

// "20150830T123600Z" of Unix seconds.
std::string AmzDate(int64_t unix_s);

// What is signed of one request. Headers: lower-case names in byte order, trimmed values; host and
// every x-amz-* header must be there.
struct SignedParts {
  std::string_view method;
  std::string_view path;   // percent-encoded, from '/'
  std::string_view query;  // names and values percent-encoded, sorted by name; empty: none
  std::span<const std::pair<std::string_view, std::string_view>> headers;
  std::string_view payload_sha256_hex;
};

// Signs for one region and service. Threads: safe.
// Cost: about 2 us; the first signature of a day four hashes more.
class Signer {
 public:
  Signer(std::string region, std::string service)
      : region_(std::move(region)), service_(std::move(service)) {}

  const std::string& region() const { return region_; }

  // The value of the Authorization header. amz_date: the request's x-amz-date.
  std::string Authorization(const AwsCredentials& credentials, const SignedParts& parts,
                            std::string_view amz_date) const;

 private:
  struct DayKey {
    std::string day;
    std::string secret;
    std::array<uint8_t, 32> key;
  };
  std::shared_ptr<const DayKey> KeyOf(const AwsCredentials& credentials,
                                      std::string_view day) const;

  const std::string region_;
  const std::string service_;
  mutable std::mutex mutex_;
  mutable std::shared_ptr<const DayKey> day_key_;
};

}  // namespace grebe::store

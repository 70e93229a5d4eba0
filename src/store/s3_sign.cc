#include "store/s3_sign.h"

#include <openssl/evp.h>

#include <cstring>
#include <ctime>

namespace grebe::store {
namespace {

using Digest = std::array<uint8_t, 32>;

// A reused context and an algorithm looked up once: OpenSSL 3 spends most of a small hash's time
// on looking it up.
class Sha256 {
 public:
  Sha256() : context_(EVP_MD_CTX_new()) {}
  ~Sha256() { EVP_MD_CTX_free(context_); }
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;

  void Begin() {
    static EVP_MD* const algorithm = EVP_MD_fetch(nullptr, "SHA256", nullptr);
    EVP_DigestInit_ex2(context_, algorithm, nullptr);
  }
  void Add(const void* bytes, size_t size) { EVP_DigestUpdate(context_, bytes, size); }
  void Add(std::string_view bytes) { Add(bytes.data(), bytes.size()); }
  Digest End() {
    Digest digest;
    unsigned size = 0;
    EVP_DigestFinal_ex(context_, digest.data(), &size);
    return digest;
  }

 private:
  EVP_MD_CTX* const context_;
};

Sha256& ThreadSha256() {
  thread_local Sha256 sha;
  return sha;
}

void AppendHex(std::string* out, const uint8_t* bytes, size_t size) {
  constexpr char kHex[] = "0123456789abcdef";
  for (size_t i = 0; i < size; ++i) {
    out->push_back(kHex[bytes[i] >> 4]);
    out->push_back(kHex[bytes[i] & 15]);
  }
}

std::string_view ViewOf(const Digest& digest) {
  return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

}  // namespace

const std::string_view kEmptySha256Hex =
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

std::string Sha256Hex(std::string_view bytes) {
  Sha256& sha = ThreadSha256();
  sha.Begin();
  sha.Add(bytes);
  const Digest digest = sha.End();
  std::string hex;
  AppendHex(&hex, digest.data(), digest.size());
  return hex;
}

std::array<uint8_t, 32> HmacSha256(std::string_view key, std::string_view bytes) {
  constexpr size_t kBlock = 64;
  Sha256& sha = ThreadSha256();
  std::array<uint8_t, kBlock> pad{};
  if (key.size() > kBlock) {
    sha.Begin();
    sha.Add(key);
    const Digest hashed = sha.End();
    std::memcpy(pad.data(), hashed.data(), hashed.size());
  } else if (!key.empty()) {
    std::memcpy(pad.data(), key.data(), key.size());
  }
  for (uint8_t& byte : pad) byte ^= 0x36;
  sha.Begin();
  sha.Add(pad.data(), pad.size());
  sha.Add(bytes);
  const Digest inner = sha.End();
  for (uint8_t& byte : pad) byte ^= 0x36 ^ 0x5c;
  sha.Begin();
  sha.Add(pad.data(), pad.size());
  sha.Add(ViewOf(inner));
  return sha.End();
}

std::string Md5Hex(std::string_view bytes) {
  uint8_t digest[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  EVP_Digest(bytes.data(), bytes.size(), digest, &size, EVP_md5(), nullptr);
  std::string hex;
  AppendHex(&hex, digest, size);
  return hex;
}

std::string AmzDate(int64_t unix_s) {
  const auto time = static_cast<std::time_t>(unix_s);
  std::tm parts{};
  ::gmtime_r(&time, &parts);
  char text[32];
  const size_t size = std::strftime(text, sizeof(text), "%Y%m%dT%H%M%SZ", &parts);
  return std::string(text, size);
}

std::shared_ptr<const Signer::DayKey> Signer::KeyOf(const AwsCredentials& credentials,
                                                    std::string_view day) const {
  {
    std::lock_guard lock(mutex_);
    if (day_key_ != nullptr && day_key_->day == day &&
        day_key_->secret == credentials.secret_access_key) {
      return day_key_;
    }
  }
  const Digest of_day = HmacSha256("AWS4" + credentials.secret_access_key, day);
  const Digest of_region = HmacSha256(ViewOf(of_day), region_);
  const Digest of_service = HmacSha256(ViewOf(of_region), service_);
  auto made = std::make_shared<DayKey>();
  made->day = day;
  made->secret = credentials.secret_access_key;
  made->key = HmacSha256(ViewOf(of_service), "aws4_request");
  std::lock_guard lock(mutex_);
  day_key_ = made;
  return made;
}

std::string Signer::Authorization(const AwsCredentials& credentials, const SignedParts& parts,
                                  std::string_view amz_date) const {
  const std::string_view day = amz_date.substr(0, 8);
  std::string names;
  for (const auto& [name, value] : parts.headers) {
    if (!names.empty()) names.push_back(';');
    names += name;
  }
  std::string text;
  text.reserve(512);
  const auto line = [&text](std::string_view s) {
    text += s;
    text.push_back('\n');
  };
  line(parts.method);
  line(parts.path);
  line(parts.query);
  for (const auto& [name, value] : parts.headers) {
    text += name;
    text.push_back(':');
    line(value);
  }
  line("");
  line(names);
  text += parts.payload_sha256_hex;
  const std::string request_hash = Sha256Hex(text);

  std::string scope;
  scope.reserve(64);
  scope += day;
  scope += '/';
  scope += region_;
  scope += '/';
  scope += service_;
  scope += "/aws4_request";
  text.clear();
  line("AWS4-HMAC-SHA256");
  line(amz_date);
  line(scope);
  text += request_hash;
  const std::shared_ptr<const DayKey> key = KeyOf(credentials, day);
  const Digest signature = HmacSha256(ViewOf(key->key), text);

  text.clear();
  text += "AWS4-HMAC-SHA256 Credential=";
  text += credentials.access_key_id;
  text += '/';
  text += scope;
  text += ", SignedHeaders=";
  text += names;
  text += ", Signature=";
  AppendHex(&text, signature.data(), signature.size());
  return text;
}

}  // namespace grebe::store

// Where S3 is and who asks, as the AWS tools take it from the environment and the shared files.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "store/http_transport.h"
#include "store/s3_sign.h"
#include "store/store.h"

namespace grebe::store {

// A variable's value; nullopt when it is unset or empty.
using EnvLookup = std::function<std::optional<std::string>(const char* name)>;
EnvLookup ProcessEnv();

// section -> key -> value. A nested block (s3 =\n  addressing_style = path) becomes the key
// "s3.addressing_style". Sections "profile x" of a config file are named as they stand.
using IniFile = std::map<std::string, std::map<std::string, std::string>>;
IniFile ParseIni(std::string_view text);

// The profile in force: of the shared credentials file and, for keys that are not there, of the
// shared config file.
class AwsProfile {
 public:
  // Reads AWS_SHARED_CREDENTIALS_FILE (~/.aws/credentials) and AWS_CONFIG_FILE (~/.aws/config).
  // A missing file is an empty one.
  static AwsProfile Load(const EnvLookup& env);

  const std::string& name() const { return name_; }
  bool exists() const { return exists_; }
  std::optional<std::string> Get(const std::string& key) const;
  // The same key of another profile (source_profile).
  std::optional<std::string> GetOf(const std::string& profile, const std::string& key) const;
  // Of the services section that the profile names: GetService("s3", "endpoint_url").
  std::optional<std::string> GetService(const std::string& service, const std::string& key) const;

 private:
  std::string name_;
  bool exists_ = false;
  IniFile credentials_;
  IniFile config_;
};

struct S3Settings {
  std::string region = "us-east-1";
  std::string endpoint;     // "https://host[:port]" without trailing '/'; empty: AWS itself
  bool path_style = false;
  std::string ca_file;
};

// Options first, then AWS_REGION, AWS_DEFAULT_REGION, AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL,
// AWS_CA_BUNDLE, then the profile. Own endpoints are path style unless told otherwise.
// Errors: InvalidArgument for an endpoint that is no http or https URL.
Result<S3Settings> ResolveS3Settings(const StoreOptions& options, const EnvLookup& env);

// Credentials that are fetched when first needed and again before they run out.
// Threads: safe; one fetches while the others wait.
class CredentialProvider {
 public:
  using Fetch = std::function<Result<AwsCredentials>()>;
  explicit CredentialProvider(Fetch fetch) : fetch_(std::move(fetch)) {}

  Result<std::shared_ptr<const AwsCredentials>> Get();
  // The server said that they ran out. False when fetching again cannot help (they never change).
  bool Refuse(const AwsCredentials& refused);

 private:
  const Fetch fetch_;
  std::mutex mutex_;
  std::shared_ptr<const AwsCredentials> current_;
};

// The chain: options, AWS_ACCESS_KEY_ID and its companions, web identity (variables), the profile
// (keys, web identity, role with source_profile), the container's endpoint, instance metadata
// (IMDSv2; not with AWS_EC2_METADATA_DISABLED=true). What is configured and fails is an error, not
// a reason to go on. Nothing configured at all: anonymous requests.
// A profile with sso_* or credential_process gives Unsupported.
std::unique_ptr<CredentialProvider> MakeCredentialChain(const StoreOptions& options,
                                                        const EnvLookup& env,
                                                        const std::string& region,
                                                        std::shared_ptr<HttpTransport> transport);

}  // namespace grebe::store

// The credential chain of aws_config.h.
#include <ctime>
#include <fstream>
#include <sstream>
#include <utility>

#include "store/aws_config.h"
#include "store/s3_xml.h"
#include "store/uri.h"

namespace grebe::store {
namespace {

// What one link of the chain says: nullopt is "nothing configured here: ask the next".
using Link = Result<std::optional<AwsCredentials>>;

// "2026-11-30T02:10:00Z" (fractions and zones other than Z are not written by AWS).
int64_t ParseIsoTime(const std::string& text) {
  std::tm parts{};
  if (::strptime(text.c_str(), "%Y-%m-%dT%H:%M:%S", &parts) == nullptr) return 0;
  return static_cast<int64_t>(::timegm(&parts));
}

Result<std::string> ReadTokenFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return Permission("cannot read the token file", "path", path);
  std::ostringstream text;
  text << file.rdbuf();
  std::string token = text.str();
  while (!token.empty() && (token.back() == '\n' || token.back() == '\r')) token.pop_back();
  return token;
}

class Chain {
 public:
  Chain(const StoreOptions& options, EnvLookup env, std::string region,
        std::shared_ptr<HttpTransport> transport)
      : options_(options),
        env_(std::move(env)),
        region_(std::move(region)),
        transport_(std::move(transport)) {}

  Result<AwsCredentials> Fetch() {
    using Step = Link (Chain::*)();
    for (const Step step : {&Chain::FromOptions, &Chain::FromVariables, &Chain::FromWebIdentity,
                            &Chain::FromProfile, &Chain::FromContainer, &Chain::FromInstance}) {
      ARROW_ASSIGN_OR_RAISE(std::optional<AwsCredentials> found, (this->*step)());
      if (found) return std::move(*found);
    }
    return AwsCredentials{};
  }

 private:
  Link FromOptions();
  Link FromVariables();
  Link FromWebIdentity();
  Link FromProfile();
  Link FromContainer();
  Link FromInstance();

  Result<AwsCredentials> AssumeWithWebIdentity(const std::string& role, const std::string& session,
                                               const std::string& token_file);
  Result<AwsCredentials> AssumeRole(const std::string& role, const std::string& session,
                                    const std::string& external_id, const AwsCredentials& source);
  Result<AwsCredentials> CallSts(HttpRequest request);
  std::string StsEndpoint() const;
  Result<std::string> Ask(HttpRequest request, const char* whom);
  Result<AwsCredentials> ParseJson(const std::string& json, const char* whom);
  HttpRequest Get(std::string url, int64_t timeout_ms) const;

  const StoreOptions options_;
  const EnvLookup env_;
  const std::string region_;
  const std::shared_ptr<HttpTransport> transport_;
};

HttpRequest Chain::Get(std::string url, int64_t timeout_ms) const {
  HttpRequest request;
  request.method = "GET";
  request.url = std::move(url);
  request.timeout_ms = timeout_ms;
  request.body_bytes_max = 1 << 20;
  return request;
}

Link Chain::FromOptions() {
  if (options_.s3_access_key_id.empty()) return std::nullopt;
  return AwsCredentials{.access_key_id = options_.s3_access_key_id,
                        .secret_access_key = options_.s3_secret_access_key,
                        .session_token = options_.s3_session_token};
}

Link Chain::FromVariables() {
  const std::optional<std::string> key = env_("AWS_ACCESS_KEY_ID");
  const std::optional<std::string> secret = env_("AWS_SECRET_ACCESS_KEY");
  if (!key || !secret) return std::nullopt;
  return AwsCredentials{.access_key_id = *key,
                        .secret_access_key = *secret,
                        .session_token = env_("AWS_SESSION_TOKEN").value_or("")};
}

Link Chain::FromWebIdentity() {
  const std::optional<std::string> file = env_("AWS_WEB_IDENTITY_TOKEN_FILE");
  const std::optional<std::string> role = env_("AWS_ROLE_ARN");
  if (!file || !role) return std::nullopt;
  ARROW_ASSIGN_OR_RAISE(
      AwsCredentials credentials,
      AssumeWithWebIdentity(*role, env_("AWS_ROLE_SESSION_NAME").value_or("grebe"), *file));
  return credentials;
}

Link Chain::FromProfile() {
  const AwsProfile profile = AwsProfile::Load(env_);
  if (!profile.exists()) {
    if (profile.name() == "default") return std::nullopt;
    return InvalidArgument("AWS_PROFILE names no profile", "profile", profile.name());
  }
  const std::string session = profile.Get("role_session_name").value_or("grebe");
  if (const std::optional<std::string> role = profile.Get("role_arn")) {
    if (const std::optional<std::string> file = profile.Get("web_identity_token_file")) {
      ARROW_ASSIGN_OR_RAISE(AwsCredentials credentials,
                            AssumeWithWebIdentity(*role, session, *file));
      return credentials;
    }
    const std::optional<std::string> source = profile.Get("source_profile");
    if (!source) {
      return Unsupported("a role without source_profile or web_identity_token_file", "profile",
                         profile.name());
    }
    AwsCredentials from{
        .access_key_id = profile.GetOf(*source, "aws_access_key_id").value_or(""),
        .secret_access_key = profile.GetOf(*source, "aws_secret_access_key").value_or(""),
        .session_token = profile.GetOf(*source, "aws_session_token").value_or("")};
    if (from.anonymous()) return InvalidArgument("source_profile has no keys", "profile", *source);
    ARROW_ASSIGN_OR_RAISE(
        AwsCredentials credentials,
        AssumeRole(*role, session, profile.Get("external_id").value_or(""), from));
    return credentials;
  }
  const std::optional<std::string> key = profile.Get("aws_access_key_id");
  const std::optional<std::string> secret = profile.Get("aws_secret_access_key");
  if (key && secret) {
    return AwsCredentials{.access_key_id = *key,
                          .secret_access_key = *secret,
                          .session_token = profile.Get("aws_session_token").value_or("")};
  }
  for (const char* kind : {"sso_session", "sso_start_url", "credential_process"}) {
    if (profile.Get(kind)) {
      return Unsupported("this kind of profile; export its keys to the environment instead",
                         "profile", profile.name(), "has", kind);
    }
  }
  return std::nullopt;
}

Link Chain::FromContainer() {
  std::string url;
  if (const auto relative = env_("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI")) {
    url = "http://169.254.170.2" + *relative;
  } else if (const auto full = env_("AWS_CONTAINER_CREDENTIALS_FULL_URI")) {
    url = *full;
  } else {
    return std::nullopt;
  }
  HttpRequest request = Get(url, 5000);
  std::string token = env_("AWS_CONTAINER_AUTHORIZATION_TOKEN").value_or("");
  if (const auto file = env_("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE")) {
    ARROW_ASSIGN_OR_RAISE(token, ReadTokenFile(*file));
  }
  if (token.find_first_of("\r\n") != token.npos) return InvalidArgument("a malformed token");
  if (!token.empty()) request.AddHeader("Authorization", token);
  ARROW_ASSIGN_OR_RAISE(const std::string json, Ask(std::move(request), "container"));
  ARROW_ASSIGN_OR_RAISE(AwsCredentials credentials, ParseJson(json, "container"));
  return credentials;
}

// IMDSv2. No answer within a second: not an instance.
Link Chain::FromInstance() {
  if (env_("AWS_EC2_METADATA_DISABLED").value_or("") == "true") return std::nullopt;
  const std::string base =
      env_("AWS_EC2_METADATA_SERVICE_ENDPOINT").value_or("http://169.254.169.254");
  HttpRequest ask_token = Get(base + "/latest/api/token", 1000);
  ask_token.method = "PUT";
  ask_token.body = std::make_shared<std::string>();
  ask_token.AddHeader("x-aws-ec2-metadata-token-ttl-seconds", "21600");
  const HttpResponse answered = RunHttp(transport_.get(), std::move(ask_token));
  if (!answered.outcome.ok() || answered.status_code != 200) return std::nullopt;
  const std::string token = answered.body->ToString();
  if (token.find_first_of("\r\n") != token.npos) return Corrupt("a malformed metadata token");
  const std::string roles_url = base + "/latest/meta-data/iam/security-credentials/";
  HttpRequest ask_role = Get(roles_url, 1000);
  ask_role.AddHeader("x-aws-ec2-metadata-token", token);
  const HttpResponse role = RunHttp(transport_.get(), std::move(ask_role));
  if (role.outcome.ok() && role.status_code == 404) return std::nullopt;  // no role
  if (!role.outcome.ok() || role.status_code != 200) {
    return Transient("instance metadata gives no role", "status", role.status_code);
  }
  std::string name = role.body->ToString();
  name = name.substr(0, name.find_first_of("\r\n"));
  if (name.empty()) return std::nullopt;
  HttpRequest ask_keys = Get(roles_url + PercentEncode(name, false), 2000);
  ask_keys.AddHeader("x-aws-ec2-metadata-token", token);
  ARROW_ASSIGN_OR_RAISE(const std::string json, Ask(std::move(ask_keys), "instance metadata"));
  ARROW_ASSIGN_OR_RAISE(AwsCredentials credentials, ParseJson(json, "instance metadata"));
  return credentials;
}

Result<std::string> Chain::Ask(HttpRequest request, const char* whom) {
  constexpr int kAttemptsMax = 3;
  Status last;
  for (int attempt = 0; attempt < kAttemptsMax; ++attempt) {
    const HttpResponse response = RunHttp(transport_.get(), request);
    if (response.outcome.ok() && response.status_code == 200) return response.body->ToString();
    if (response.outcome.ok() && response.status_code < 500) {
      return Permission("no credentials", "source", whom, "status", response.status_code, "reason",
                        XmlText(response.error_body, "Message").value_or(""));
    }
    last = Transient("no credentials", "source", whom, "status", response.status_code, "reason",
                     response.outcome.message());
  }
  return last;
}

Result<AwsCredentials> Chain::ParseJson(const std::string& json, const char* whom) {
  AwsCredentials credentials{
      .access_key_id = JsonStringField(json, "AccessKeyId").value_or(""),
      .secret_access_key = JsonStringField(json, "SecretAccessKey").value_or(""),
      .session_token = JsonStringField(json, "Token").value_or(""),
      .expires_at_s = ParseIsoTime(JsonStringField(json, "Expiration").value_or(""))};
  if (credentials.access_key_id.empty() || credentials.secret_access_key.empty()) {
    return Permission("an answer without keys", "source", whom);
  }
  return credentials;
}

std::string Chain::StsEndpoint() const {
  if (const std::optional<std::string> own = env_("AWS_ENDPOINT_URL_STS")) return *own;
  const bool china = region_.starts_with("cn-");
  return "https://sts." + region_ + (china ? ".amazonaws.com.cn" : ".amazonaws.com");
}

Result<AwsCredentials> Chain::CallSts(HttpRequest request) {
  ARROW_ASSIGN_OR_RAISE(const std::string xml, Ask(std::move(request), "sts"));
  AwsCredentials credentials{
      .access_key_id = XmlText(xml, "AccessKeyId").value_or(""),
      .secret_access_key = XmlText(xml, "SecretAccessKey").value_or(""),
      .session_token = XmlText(xml, "SessionToken").value_or(""),
      .expires_at_s = ParseIsoTime(XmlText(xml, "Expiration").value_or(""))};
  if (credentials.access_key_id.empty() || credentials.secret_access_key.empty()) {
    return Permission("an answer without keys", "source", "sts");
  }
  return credentials;
}

Result<AwsCredentials> Chain::AssumeWithWebIdentity(const std::string& role,
                                                    const std::string& session,
                                                    const std::string& token_file) {
  ARROW_ASSIGN_OR_RAISE(const std::string token, ReadTokenFile(token_file));
  HttpRequest request = Get(StsEndpoint() + "/", 10000);
  request.method = "POST";
  request.AddHeader("Content-Type", "application/x-www-form-urlencoded");
  request.body = std::make_shared<std::string>(
      "Action=AssumeRoleWithWebIdentity&Version=2011-06-15&RoleArn=" + PercentEncode(role, false) +
      "&RoleSessionName=" + PercentEncode(session, false) +
      "&WebIdentityToken=" + PercentEncode(token, false));
  return CallSts(std::move(request));
}

Result<AwsCredentials> Chain::AssumeRole(const std::string& role, const std::string& session,
                                         const std::string& external_id,
                                         const AwsCredentials& source) {
  HttpRequest request = Get(StsEndpoint() + "/", 10000);
  request.method = "POST";
  std::string body = "Action=AssumeRole&Version=2011-06-15&RoleArn=" + PercentEncode(role, false) +
                     "&RoleSessionName=" + PercentEncode(session, false);
  if (!external_id.empty()) body += "&ExternalId=" + PercentEncode(external_id, false);
  const std::string host = request.url.substr(request.url.find("://") + 3,
                                              request.url.size() - request.url.find("://") - 4);
  const std::string date = AmzDate(std::time(nullptr));
  std::vector<std::pair<std::string_view, std::string_view>> headers = {{"host", host},
                                                                        {"x-amz-date", date}};
  if (!source.session_token.empty()) {
    headers.emplace_back("x-amz-security-token", source.session_token);
  }
  const std::string hash = Sha256Hex(body);
  const std::string authorization = Signer(region_, "sts").Authorization(
      source,
      {.method = "POST", .path = "/", .query = "", .headers = headers, .payload_sha256_hex = hash},
      date);
  request.AddHeader("Content-Type", "application/x-www-form-urlencoded");
  request.AddHeader("X-Amz-Date", date);
  if (!source.session_token.empty()) {
    request.AddHeader("X-Amz-Security-Token", source.session_token);
  }
  request.AddHeader("Authorization", authorization);
  request.body = std::make_shared<std::string>(std::move(body));
  return CallSts(std::move(request));
}

}  // namespace

std::unique_ptr<CredentialProvider> MakeCredentialChain(const StoreOptions& options,
                                                        const EnvLookup& env,
                                                        const std::string& region,
                                                        std::shared_ptr<HttpTransport> transport) {
  auto chain = std::make_shared<Chain>(options, env, region, std::move(transport));
  return std::make_unique<CredentialProvider>([chain] { return chain->Fetch(); });
}

}  // namespace grebe::store

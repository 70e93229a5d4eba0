#include "store/aws_config.h"

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <utility>

namespace grebe::store {
namespace {

std::string_view Trim(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r";
  const size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

std::string ReadFileOrEmpty(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (file) text << file.rdbuf();
  return text.str();
}

std::string FromHome(const EnvLookup& env, std::string path) {
  if (path.starts_with("~/")) path = env("HOME").value_or("") + path.substr(1);
  return path;
}

std::optional<std::string> Find(const IniFile& file, const std::string& section,
                                const std::string& key) {
  const auto found = file.find(section);
  if (found == file.end()) return std::nullopt;
  const auto value = found->second.find(key);
  if (value == found->second.end() || value->second.empty()) return std::nullopt;
  return value->second;
}

// A config file names its profiles "profile x", but for the default one.
std::string ConfigSection(const std::string& profile) {
  return profile == "default" ? profile : "profile " + profile;
}

bool IsTrue(const std::optional<std::string>& value) {
  return value && (*value == "true" || *value == "TRUE" || *value == "True" || *value == "1");
}

}  // namespace

EnvLookup ProcessEnv() {
  return [](const char* name) -> std::optional<std::string> {
    const char* const value = std::getenv(name);
    if (value == nullptr || *value == '\0') return std::nullopt;
    return std::string(value);
  };
}

IniFile ParseIni(std::string_view text) {
  IniFile file;
  std::string section;
  std::string parent;  // of a nested block
  while (!text.empty()) {
    const size_t newline = text.find('\n');
    const std::string_view line = text.substr(0, newline);
    text = newline == std::string_view::npos ? std::string_view() : text.substr(newline + 1);
    const std::string_view trimmed = Trim(line);
    if (trimmed.empty() || trimmed.front() == '#' || trimmed.front() == ';') continue;
    if (trimmed.front() == '[' && trimmed.back() == ']') {
      std::string_view name = Trim(trimmed.substr(1, trimmed.size() - 2));
      // "profile   x" and 'profile "x"' are the same section.
      std::string plain;
      for (const char c : name) {
        if (c == '"' || (c == ' ' && plain.ends_with(' '))) continue;
        plain.push_back(c == '\t' ? ' ' : c);
      }
      section = plain;
      file[section];
      parent.clear();
      continue;
    }
    const size_t equals = trimmed.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string key(Trim(trimmed.substr(0, equals)));
    const std::string value(Trim(trimmed.substr(equals + 1)));
    const bool nested = line.front() == ' ' || line.front() == '\t';
    if (nested && !parent.empty()) {
      file[section][parent + "." + key] = value;
      continue;
    }
    parent = value.empty() ? key : "";
    file[section][key] = value;
  }
  return file;
}

AwsProfile AwsProfile::Load(const EnvLookup& env) {
  AwsProfile profile;
  profile.name_ = env("AWS_PROFILE").value_or(env("AWS_DEFAULT_PROFILE").value_or("default"));
  profile.credentials_ = ParseIni(ReadFileOrEmpty(
      FromHome(env, env("AWS_SHARED_CREDENTIALS_FILE").value_or("~/.aws/credentials"))));
  profile.config_ = ParseIni(
      ReadFileOrEmpty(FromHome(env, env("AWS_CONFIG_FILE").value_or("~/.aws/config"))));
  profile.exists_ = profile.credentials_.contains(profile.name_) ||
                    profile.config_.contains(ConfigSection(profile.name_));
  return profile;
}

std::optional<std::string> AwsProfile::Get(const std::string& key) const {
  return GetOf(name_, key);
}

std::optional<std::string> AwsProfile::GetOf(const std::string& profile,
                                             const std::string& key) const {
  std::optional<std::string> value = Find(credentials_, profile, key);
  return value ? value : Find(config_, ConfigSection(profile), key);
}

std::optional<std::string> AwsProfile::GetService(const std::string& service,
                                                  const std::string& key) const {
  const std::optional<std::string> services = Get("services");
  if (!services) return std::nullopt;
  return Find(config_, "services " + *services, service + "." + key);
}

Result<S3Settings> ResolveS3Settings(const StoreOptions& options, const EnvLookup& env) {
  const AwsProfile profile = AwsProfile::Load(env);
  const auto first = [](std::initializer_list<std::optional<std::string>> values) {
    for (const std::optional<std::string>& value : values) {
      if (value && !value->empty()) return *value;
    }
    return std::string();
  };
  S3Settings settings;
  const std::string region = first({options.s3_region, env("AWS_REGION"),
                                    env("AWS_DEFAULT_REGION"), profile.Get("region")});
  if (!region.empty()) settings.region = region;
  settings.endpoint = options.s3_endpoint;
  if (settings.endpoint.empty() && !IsTrue(env("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS"))) {
    settings.endpoint = first({env("AWS_ENDPOINT_URL_S3"), env("AWS_ENDPOINT_URL"),
                               profile.GetService("s3", "endpoint_url"),
                               profile.Get("s3.endpoint_url"), profile.Get("endpoint_url")});
  }
  while (settings.endpoint.ends_with('/')) settings.endpoint.pop_back();
  if (!settings.endpoint.empty()) {
    const size_t scheme = settings.endpoint.find("://");
    const std::string_view text = settings.endpoint;
    if ((!text.starts_with("http://") && !text.starts_with("https://")) ||
        text.size() == scheme + 3 || text.find_first_of("/?#@ ", scheme + 3) != text.npos) {
      return InvalidArgument("an S3 endpoint is http://host[:port] or https://host[:port]",
                             "endpoint", settings.endpoint);
    }
  }
  const std::string style = profile.Get("s3.addressing_style").value_or("auto");
  settings.path_style = !settings.endpoint.empty();
  if (style == "path") settings.path_style = true;
  if (style == "virtual") settings.path_style = false;
  if (options.s3_path_style) settings.path_style = *options.s3_path_style;
  settings.ca_file = first({env("AWS_CA_BUNDLE"), profile.Get("ca_bundle")});
  return settings;
}

Result<std::shared_ptr<const AwsCredentials>> CredentialProvider::Get() {
  constexpr int64_t kEarlyS = 300;  // asked for again this long before they run out
  std::lock_guard lock(mutex_);
  const int64_t now_s = std::chrono::duration_cast<std::chrono::seconds>(
                            std::chrono::system_clock::now().time_since_epoch())
                            .count();
  if (current_ != nullptr &&
      (current_->expires_at_s == 0 || now_s < current_->expires_at_s - kEarlyS)) {
    return current_;
  }
  Result<AwsCredentials> fetched = fetch_();
  if (!fetched.ok()) {
    // Still good for a few minutes: the source may recover meanwhile.
    if (current_ != nullptr && now_s < current_->expires_at_s) return current_;
    return fetched.status();
  }
  current_ = std::make_shared<AwsCredentials>(std::move(*fetched));
  return current_;
}

bool CredentialProvider::Refuse(const AwsCredentials& refused) {
  std::lock_guard lock(mutex_);
  if (refused.expires_at_s == 0) return false;
  if (current_ != nullptr && current_->access_key_id == refused.access_key_id &&
      current_->session_token == refused.session_token) {
    current_ = nullptr;
  }
  return true;
}

}  // namespace grebe::store

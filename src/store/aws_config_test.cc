#include "store/aws_config.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "store/s3_xml.h"
#include "testing/fake_http_server.h"

namespace grebe::store {
namespace {

using testing::FakeHttpServer;
using testing::FakeReply;
using testing::FakeRequest;

class AwsConfigTest : public ::testing::Test {
 protected:
  AwsConfigTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "grebe_aws_XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
    env_["AWS_SHARED_CREDENTIALS_FILE"] = folder_ + "/credentials";
    env_["AWS_CONFIG_FILE"] = folder_ + "/config";
    env_["AWS_EC2_METADATA_DISABLED"] = "true";
  }
  ~AwsConfigTest() override { std::filesystem::remove_all(folder_); }

  void WriteFile(const std::string& name, const std::string& text) {
    std::ofstream(folder_ + "/" + name) << text;
  }
  EnvLookup Env() const {
    return [env = env_](const char* name) -> std::optional<std::string> {
      const auto found = env.find(name);
      if (found == env.end() || found->second.empty()) return std::nullopt;
      return found->second;
    };
  }
  Result<AwsCredentials> Fetch(const StoreOptions& options = {}) {
    ARROW_ASSIGN_OR_RAISE(const auto transport, MakeCurlTransport({}));
    ARROW_ASSIGN_OR_RAISE(const auto keys,
                          MakeCredentialChain(options, Env(), "us-west-2", transport)->Get());
    return *keys;
  }
  void Serve(FakeHttpServer::Handler handler) {
    server_ = *FakeHttpServer::Start(std::move(handler));
  }

  std::string folder_;
  std::map<std::string, std::string> env_;
  std::unique_ptr<FakeHttpServer> server_;
};

constexpr char kConfig[] =
    "[default]\nregion = eu-west-1\n# a comment\n\n[profile  dev]\nregion=ap-south-1\n"
    "endpoint_url = http://profile:1\nservices = local\ns3 =\n  addressing_style = virtual\n"
    "  endpoint_url = http://nested:2\n[services local]\ns3 =\n  endpoint_url = "
    "http://services:3/\n";

TEST_F(AwsConfigTest, SettingsComeFromOptionsThenVariablesThenTheProfile) {
  WriteFile("config", kConfig);
  EXPECT_EQ(ResolveS3Settings({}, Env())->region, "eu-west-1");
  EXPECT_EQ(ResolveS3Settings({}, Env())->endpoint, "");
  EXPECT_FALSE(ResolveS3Settings({}, Env())->path_style);
  env_["AWS_PROFILE"] = "dev";
  EXPECT_EQ(ResolveS3Settings({}, Env())->region, "ap-south-1");
  EXPECT_EQ(ResolveS3Settings({}, Env())->endpoint, "http://services:3");
  EXPECT_FALSE(ResolveS3Settings({}, Env())->path_style);
  env_["AWS_ENDPOINT_URL"] = "https://general";
  env_["AWS_DEFAULT_REGION"] = "d";
  EXPECT_EQ(ResolveS3Settings({}, Env())->endpoint, "https://general");
  EXPECT_EQ(ResolveS3Settings({}, Env())->region, "d");
  env_["AWS_ENDPOINT_URL_S3"] = "https://s3only";
  env_["AWS_REGION"] = "e";
  EXPECT_EQ(ResolveS3Settings({}, Env())->endpoint, "https://s3only");
  EXPECT_EQ(ResolveS3Settings({}, Env())->region, "e");
  StoreOptions options;
  options.s3_endpoint = "http://option:9/";
  options.s3_region = "f";
  options.s3_path_style = true;
  EXPECT_EQ(ResolveS3Settings(options, Env())->endpoint, "http://option:9");
  EXPECT_EQ(ResolveS3Settings(options, Env())->region, "f");
  EXPECT_TRUE(ResolveS3Settings(options, Env())->path_style);
}

TEST_F(AwsConfigTest, WithoutAnythingTheDefaultsHold) {
  EXPECT_EQ(ResolveS3Settings({}, Env())->region, "us-east-1");
  env_["AWS_ENDPOINT_URL"] = "http://own";
  EXPECT_TRUE(ResolveS3Settings({}, Env())->path_style);
  EXPECT_TRUE(Fetch()->anonymous());
}

TEST_F(AwsConfigTest, TheChainsOrder) {
  WriteFile("credentials",
            "[default]\naws_access_key_id = file\naws_secret_access_key=s\n"
            "[dev]\naws_access_key_id=dev\naws_secret_access_key=s\naws_session_token=t\n");
  EXPECT_EQ(Fetch()->access_key_id, "file");
  env_["AWS_PROFILE"] = "dev";
  EXPECT_EQ(Fetch()->access_key_id, "dev");
  EXPECT_EQ(Fetch()->session_token, "t");
  env_["AWS_PROFILE"] = "nosuch";
  EXPECT_TRUE(IsKind(Fetch().status(), ErrorKind::kInvalidArgument));
  env_["AWS_ACCESS_KEY_ID"] = "variable";
  env_["AWS_SECRET_ACCESS_KEY"] = "s";
  EXPECT_EQ(Fetch()->access_key_id, "variable");
  StoreOptions options;
  options.s3_access_key_id = "option";
  EXPECT_EQ(Fetch(options)->access_key_id, "option");
}

TEST_F(AwsConfigTest, ProfilesWeCannotServeAreSaidSo) {
  WriteFile("config", "[default]\nsso_start_url = https://x\n");
  EXPECT_TRUE(IsKind(Fetch().status(), ErrorKind::kUnsupported));
}

constexpr char kStsAnswer[] =
    "<AssumeRoleResponse><AssumeRoleResult><Credentials><AccessKeyId>AKIA</AccessKeyId>"
    "<SecretAccessKey>s/+&amp;</SecretAccessKey><SessionToken>tok</SessionToken>"
    "<Expiration>2030-01-01T00:00:00Z</Expiration></Credentials></AssumeRoleResult>"
    "</AssumeRoleResponse>";

TEST_F(AwsConfigTest, WebIdentityAsksSts) {
  Serve([](const FakeRequest& r) {
    FakeReply reply;
    reply.body = kStsAnswer;
    return reply;
  });
  WriteFile("token", "the.token\n");
  env_["AWS_WEB_IDENTITY_TOKEN_FILE"] = folder_ + "/token";
  env_["AWS_ROLE_ARN"] = "arn:aws:iam::1:role/x";
  env_["AWS_ENDPOINT_URL_STS"] = server_->url();
  const auto keys = Fetch();
  ASSERT_TRUE(keys.ok()) << keys.status();
  EXPECT_EQ(keys->access_key_id, "AKIA");
  EXPECT_EQ(keys->secret_access_key, "s/+&");
  EXPECT_EQ(keys->session_token, "tok");
  EXPECT_EQ(keys->expires_at_s, 1893456000);
  const FakeRequest asked = server_->requests().at(0);
  EXPECT_EQ(asked.method, "POST");
  EXPECT_NE(asked.body.find("WebIdentityToken=the.token"), std::string::npos);
  EXPECT_NE(asked.body.find("RoleArn=arn%3Aaws%3Aiam%3A%3A1%3Arole%2Fx"), std::string::npos);
  env_["AWS_WEB_IDENTITY_TOKEN_FILE"] = folder_ + "/missing";
  EXPECT_TRUE(IsKind(Fetch().status(), ErrorKind::kPermission));
}

TEST_F(AwsConfigTest, ARoleOfAProfileIsAssumedWithItsSource) {
  Serve([](const FakeRequest& r) {
    FakeReply reply;
    reply.body = kStsAnswer;
    return reply;
  });
  WriteFile("credentials", "[base]\naws_access_key_id=b\naws_secret_access_key=s\n");
  WriteFile("config", "[profile r]\nrole_arn=arn:x\nsource_profile=base\nexternal_id=e\n");
  env_["AWS_PROFILE"] = "r";
  env_["AWS_ENDPOINT_URL_STS"] = server_->url();
  const auto keys = Fetch();
  ASSERT_TRUE(keys.ok()) << keys.status();
  EXPECT_EQ(keys->access_key_id, "AKIA");
  const FakeRequest asked = server_->requests().at(0);
  EXPECT_NE(asked.Header("authorization").find("Credential=b/"), std::string::npos);
  EXPECT_NE(asked.Header("authorization").find("/us-west-2/sts/"), std::string::npos);
  EXPECT_NE(asked.body.find("&ExternalId=e"), std::string::npos);
}

TEST_F(AwsConfigTest, ContainersAndInstances) {
  const std::string json =
      R"({ "Code" : "Success", "AccessKeyId" : "C", "SecretAccessKey" : "s\/x",
          "Token":"t","Expiration":"2030-01-01T00:00:00Z" })";
  Serve([json](const FakeRequest& r) {
    FakeReply reply;
    if (r.path == "/latest/api/token") {
      reply.body = r.method == "PUT" ? "imds-token" : "";
    } else if (r.path == "/latest/meta-data/iam/security-credentials/") {
      reply.body = "role";
    } else {
      reply.body = json;
    }
    return reply;
  });
  env_["AWS_CONTAINER_CREDENTIALS_FULL_URI"] = server_->url() + "/creds";
  env_["AWS_CONTAINER_AUTHORIZATION_TOKEN"] = "auth\r\nX: y";
  EXPECT_FALSE(Fetch().ok());
  env_["AWS_CONTAINER_AUTHORIZATION_TOKEN"] = "auth";
  const auto keys = Fetch();
  ASSERT_TRUE(keys.ok()) << keys.status();
  EXPECT_EQ(keys->secret_access_key, "s/x");
  EXPECT_EQ(server_->requests().back().Header("authorization"), "auth");
  env_.erase("AWS_CONTAINER_CREDENTIALS_FULL_URI");
  env_.erase("AWS_EC2_METADATA_DISABLED");
  env_["AWS_EC2_METADATA_SERVICE_ENDPOINT"] = server_->url();
  const auto instance = Fetch();
  ASSERT_TRUE(instance.ok()) << instance.status();
  EXPECT_EQ(instance->access_key_id, "C");
  EXPECT_EQ(server_->requests().back().path, "/latest/meta-data/iam/security-credentials/role");
  EXPECT_EQ(server_->requests().back().Header("x-aws-ec2-metadata-token"), "imds-token");
}

TEST(CredentialProviderTest, FetchesOnceAndAgainBeforeTheyRunOut) {
  int fetches = 0;
  int64_t expires = 0;
  CredentialProvider provider([&]() -> Result<AwsCredentials> {
    ++fetches;
    return AwsCredentials{.access_key_id = "k", .secret_access_key = "s", .session_token = "",
                          .expires_at_s = expires};
  });
  const auto now = static_cast<int64_t>(std::time(nullptr));
  expires = now + 100;  // within the margin
  ASSERT_TRUE(provider.Get().ok());
  expires = now + 3600;
  ASSERT_TRUE(provider.Get().ok());
  ASSERT_TRUE(provider.Get().ok());
  EXPECT_EQ(fetches, 2);
  EXPECT_TRUE(provider.Refuse(**provider.Get()));
  ASSERT_TRUE(provider.Get().ok());
  EXPECT_EQ(fetches, 3);
}

TEST(S3XmlTest, TextEntitiesAndFields) {
  EXPECT_EQ(XmlText("<a><Code x=\"1\">A&amp;B&#x41;&#66;&bogus;&</Code></a>", "Code"),
            "A&BAB&bogus;&");
  EXPECT_EQ(XmlText("<CodeX>n</CodeX><Code/>", "Code"), "");
  EXPECT_EQ(XmlText("<Code>open", "Code"), std::nullopt);
  EXPECT_EQ(XmlText("", "Code"), std::nullopt);
  EXPECT_EQ(XmlUnescape("&#xe9;&#x20ac;&#x1f426;"), "\xc3\xa9\xe2\x82\xac\xf0\x9f\x90\xa6");
  EXPECT_EQ(JsonStringField(R"({"a":"\"","b" : "x"})", "b"), "x");
  EXPECT_EQ(JsonStringField(R"({"a":1,"b":")", "b"), std::nullopt);
  EXPECT_EQ(JsonStringField(R"({"b":1})", "b"), std::nullopt);
}

TEST(S3XmlTest, ListPages) {
  const auto page = ParseListPage(
      "<ListBucketResult><IsTruncated>true</IsTruncated><Contents><Key>a&amp;b</Key><ETag>"
      "&quot;e1&quot;</ETag><Size>12</Size></Contents><Contents><ETag>\"e2\"</ETag><Size>0</Size>"
      "<Key>c%20d</Key></Contents><NextContinuationToken>n+1</NextContinuationToken>"
      "</ListBucketResult>");
  ASSERT_TRUE(page.ok()) << page.status();
  ASSERT_EQ(page->objects.size(), 2u);
  EXPECT_EQ(page->objects[0], (Object{"a&b", {12, "e1"}}));
  EXPECT_EQ(page->objects[1].path, "c%20d");
  EXPECT_EQ(page->continuation_token, "n+1");
}

TEST(HttpRequestTest, AHeadersValueCannotStartAnother) {
  HttpRequest request;
  request.AddHeader("A", std::string("b\r\nX-Evil: 1\0c", 14));
  EXPECT_EQ(request.headers, std::string("A: b  X-Evil: 1 c\0", 18));
}

}  // namespace
}  // namespace grebe::store

// Against the examples that AWS publishes: its Signature Version 4 test suite, and the worked
// examples of the S3 documentation.
#include "store/s3_sign.h"

#include <gtest/gtest.h>

#include <vector>

namespace grebe::store {
namespace {

using Headers = std::vector<std::pair<std::string_view, std::string_view>>;

std::string SignatureOf(const std::string& authorization) {
  return authorization.substr(authorization.rfind('=') + 1);
}

struct SuiteCase {
  const char* name;
  const char* method;
  const char* path;
  const char* query;
  Headers headers;
  const char* body;
  const char* signature;
};

// Service "service", region us-east-1, 2015-08-30T12:36:00Z.
TEST(S3SignTest, AwsTestSuite) {
  const AwsCredentials credentials{.access_key_id = "AKIDEXAMPLE",
                                   .secret_access_key = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"};
  const std::string_view date = "20150830T123600Z";
  const Headers plain = {{"host", "example.amazonaws.com"}, {"x-amz-date", date}};
  const std::vector<SuiteCase> cases = {
      {"get-vanilla", "GET", "/", "", plain, "",
       "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"},
      {"get-vanilla-query-order-key-case", "GET", "/", "Param1=value1&Param2=value2", plain, "",
       "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500"},
      {"get-unreserved", "GET",
       "/-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz", "", plain, "",
       "07ef7494c76fa4850883e2b006601f940f8a34d404d0cfa977f52a65bbf5f24f"},
      {"get-utf8", "GET", "/%E1%88%B4", "", plain, "",
       "8318018e0b0f223aa2bbf98705b62bb787dc9c0e678f255a891fd03141be5d85"},
      {"post-vanilla", "POST", "/", "", plain, "",
       "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"},
      {"post-vanilla-query", "POST", "/", "Param1=value1", plain, "",
       "28038455d6de14eafc1f9222cf5aa6f1a96197d7deb8263271d420d138af7f11"},
      {"post-header-key-sort", "POST", "/", "",
       {{"host", "example.amazonaws.com"}, {"my-header1", "value1"}, {"x-amz-date", date}}, "",
       "c5410059b04c1ee005303aed430f6e6645f61f4dc9e1461ec8f8916fdf18852c"},
      {"post-x-www-form-urlencoded", "POST", "/", "",
       {{"content-type", "application/x-www-form-urlencoded"},
        {"host", "example.amazonaws.com"},
        {"x-amz-date", date}},
       "Param1=value1",
       "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a"},
  };
  const Signer signer("us-east-1", "service");
  for (const SuiteCase& c : cases) {
    const std::string hash = Sha256Hex(c.body);
    const std::string authorization = signer.Authorization(
        credentials,
        {.method = c.method, .path = c.path, .query = c.query, .headers = c.headers,
         .payload_sha256_hex = hash},
        date);
    EXPECT_EQ(SignatureOf(authorization), c.signature) << c.name;
    EXPECT_TRUE(authorization.starts_with(
        "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, "
        "SignedHeaders="));
  }
}

// "Examples: Signature Calculations in AWS Signature Version 4", Amazon S3 API reference.
TEST(S3SignTest, S3DocumentationExamples) {
  const AwsCredentials credentials{
      .access_key_id = "AKIAIOSFODNN7EXAMPLE",
      .secret_access_key = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"};
  const Signer signer("us-east-1", "s3");
  const std::string_view date = "20130524T000000Z";
  const std::string_view host = "examplebucket.s3.amazonaws.com";
  const auto sign = [&](std::string_view method, std::string_view path, std::string_view query,
                        const Headers& headers, std::string_view hash) {
    return SignatureOf(signer.Authorization(credentials,
                                            {.method = method, .path = path, .query = query,
                                             .headers = headers, .payload_sha256_hex = hash},
                                            date));
  };
  EXPECT_EQ(sign("GET", "/test.txt", "",
                 {{"host", host},
                  {"range", "bytes=0-9"},
                  {"x-amz-content-sha256", kEmptySha256Hex},
                  {"x-amz-date", date}},
                 kEmptySha256Hex),
            "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
  const std::string body_hash = Sha256Hex("Welcome to Amazon S3.");
  EXPECT_EQ(sign("PUT", "/test%24file.text", "",
                 {{"date", "Fri, 24 May 2013 00:00:00 GMT"},
                  {"host", host},
                  {"x-amz-content-sha256", body_hash},
                  {"x-amz-date", date},
                  {"x-amz-storage-class", "REDUCED_REDUNDANCY"}},
                 body_hash),
            "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd");
  const Headers plain = {
      {"host", host}, {"x-amz-content-sha256", kEmptySha256Hex}, {"x-amz-date", date}};
  EXPECT_EQ(sign("GET", "/", "lifecycle=", plain, kEmptySha256Hex),
            "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");
  EXPECT_EQ(sign("GET", "/", "max-keys=2&prefix=J", plain, kEmptySha256Hex),
            "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
}

TEST(S3SignTest, TheDaysKeyFollowsDayAndSecret) {
  const Signer signer("us-east-1", "s3");
  const Headers headers = {{"host", "h"}};
  const auto sign = [&](const char* secret, std::string_view date) {
    return SignatureOf(
        signer.Authorization({.access_key_id = "A", .secret_access_key = secret},
                             {.method = "GET", .path = "/", .query = "", .headers = headers,
                              .payload_sha256_hex = kEmptySha256Hex},
                             date));
  };
  const std::string first = sign("s1", "20260101T000000Z");
  EXPECT_NE(sign("s2", "20260101T000000Z"), first);
  EXPECT_NE(sign("s1", "20260102T000000Z"), first);
  EXPECT_EQ(sign("s1", "20260101T000000Z"), first);
}

TEST(S3SignTest, Hashes) {
  EXPECT_EQ(Sha256Hex(""), kEmptySha256Hex);
  EXPECT_EQ(Md5Hex("abc"), "900150983cd24fb0d6963f7d28e17f72");
  // RFC 4231, case 6: a key longer than a block.
  const auto mac = HmacSha256(std::string(131, '\xaa'),
                              "Test Using Larger Than Block-Size Key - Hash Key First");
  EXPECT_EQ(mac[0], 0x60);
  EXPECT_EQ(mac[31], 0x54);
  EXPECT_EQ(AmzDate(1440938160), "20150830T123600Z");
}

}  // namespace
}  // namespace grebe::store

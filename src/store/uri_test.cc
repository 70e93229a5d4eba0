#include "store/uri.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "store/store.h"

namespace grebe::store {
namespace {

TEST(UriTest, PlainPathsBecomeAbsolute) {
  const std::string here = std::filesystem::current_path().string();
  EXPECT_EQ(ParseUri("lake/plain/")->path, here + "/lake/plain");
  EXPECT_EQ(ParseUri("./a/../b")->path, here + "/b");
  EXPECT_EQ(ParseUri("/a//b/./c/")->path, "/a/b/c");
  EXPECT_EQ(ParseUri("/")->path, "/");
  EXPECT_EQ(ParseUri("/a%20b")->path, "/a%20b");
  EXPECT_EQ(ParseUri("file:///a%20b/")->path, "/a b");
  EXPECT_EQ(ParseUri("file:/a/b")->path, "/a/b");
  EXPECT_EQ(ParseUri("file://localhost/a")->path, "/a");
  EXPECT_EQ(ParseUri("a:b")->path, here + "/a:b");
}

TEST(UriTest, RemoteUrisKeepTheirKeys) {
  const auto s3 = ParseUri("s3a://bucket/a%20b//../c=1/");
  ASSERT_TRUE(s3.ok());
  EXPECT_EQ(s3->scheme, Scheme::kS3);
  EXPECT_EQ(s3->authority, "bucket");
  EXPECT_EQ(s3->path, "a%20b//../c=1");
  EXPECT_EQ(ParseUri("s3://bucket")->path, "");
  EXPECT_EQ(ParseUri("abfss://c@acct.dfs.core.windows.net/p/q")->authority,
            "c@acct.dfs.core.windows.net");
  EXPECT_EQ(ParseUri("gs://b/x")->scheme, Scheme::kGcs);
}

TEST(UriTest, MalformedUrisAreRefused) {
  for (const char* uri : {"", "s3://", "s3:///key", "ftp://host/x", "file://host/x"}) {
    const auto parsed = ParseUri(uri);
    ASSERT_FALSE(parsed.ok()) << uri;
    EXPECT_EQ(KindOf(parsed.status()), ErrorKind::kInvalidArgument);
  }
}

TEST(UriTest, PercentCodingRoundTrips) {
  EXPECT_EQ(PercentEncode("a b/\xc3\xa9+%~", true), "a%20b/%C3%A9%2B%25~");
  EXPECT_EQ(PercentEncode("a/b", false), "a%2Fb");
  EXPECT_EQ(PercentDecode("a%20b%2fc%"), "a b/c%");
  EXPECT_EQ(PercentDecode("%4"), "%4");
  EXPECT_EQ(PercentDecode("%zz+"), "%zz+");
  EXPECT_EQ(PercentDecode("a+b", true), "a b");
}

TEST(LocationTest, LocationsShareStoresAndShowUris) {
  const auto a = OpenLocation("memory://uri_test/x/y/");
  const auto b = OpenLocation("memory://uri_test");
  ASSERT_TRUE(a.ok() && b.ok());
  EXPECT_EQ(a->store, b->store);
  EXPECT_EQ(DisplayUri(*a), "memory://uri_test/x/y");
  const auto file = OpenLocation("/tmp/");
  const auto other = OpenLocation("file:///usr");
  ASSERT_TRUE(file.ok() && other.ok());
  EXPECT_EQ(file->store, other->store);
  EXPECT_EQ(file->store->kind(), "file");
  EXPECT_EQ(DisplayUri(*file), "/tmp");
}

}  // namespace
}  // namespace grebe::store

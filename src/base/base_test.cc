#include <gtest/gtest.h>

#include <cerrno>
#include <utility>

#include "base/coding.h"
#include "base/hash.h"
#include "base/rng.h"
#include "base/spill_file.h"
#include "base/status.h"
#include "grebe/system_error.h"

namespace grebe {
namespace {

TEST(StatusTest, KindSurvivesContextAndMapsArrowCodes) {
  const Status status = Corrupt("bad header", "offset_bytes", 12);
  EXPECT_EQ(KindOf(status), ErrorKind::kCorrupt);
  EXPECT_EQ(status.message(), "bad header offset_bytes=12");
  const Status more = AddContext(status, "path", "a.parquet");
  EXPECT_EQ(KindOf(more), ErrorKind::kCorrupt);
  EXPECT_EQ(more.message(), "bad header offset_bytes=12 path=a.parquet");
  EXPECT_EQ(KindOf(Status::OutOfMemory("x")), ErrorKind::kLimitExceeded);
}

TEST(StatusTest, SystemErrorsAreTheKindToActOn) {
  const std::pair<int, ErrorKind> cases[] = {
      {ENOENT, ErrorKind::kNotFound},        {ENOTDIR, ErrorKind::kInvalidArgument},
      {EISDIR, ErrorKind::kInvalidArgument}, {EACCES, ErrorKind::kPermission},
      {EROFS, ErrorKind::kPermission},       {ENOSPC, ErrorKind::kLimitExceeded},
      {EDQUOT, ErrorKind::kLimitExceeded},   {EFBIG, ErrorKind::kLimitExceeded},
      {EIO, ErrorKind::kTransient}};
  for (const auto& [error_number, kind] : cases) {
    const Status status = ErrnoStatus(error_number, "cannot write", "a/b");
    EXPECT_EQ(KindOf(status), kind) << error_number;
    EXPECT_NE(status.message().find("path=a/b "), std::string::npos) << status.message();
  }
}

TEST(SpillFileTest, AFolderThatIsNoneIsNamed) {
  for (const auto& [folder, kind] : {std::pair("/nonexistent/x", ErrorKind::kNotFound),
                                     std::pair("/dev/null", ErrorKind::kInvalidArgument)}) {
    SpillFile file(folder);
    const Status status = file.Append("bytes").status();
    EXPECT_TRUE(IsKind(status, kind)) << status.ToString();
    EXPECT_NE(status.message().find(folder), std::string::npos) << status.message();
  }
}

TEST(CodingTest, VarintsRoundTripAndRefuseTruncation) {
  Rng rng(7);
  for (int i = 0; i < 10000; ++i) {
    const uint64_t value = rng.Next() >> rng.Below(64);
    std::string bytes;
    PutVarint(&bytes, value);
    uint64_t got = 0;
    ByteReader whole(bytes);
    ASSERT_TRUE(whole.ReadVarint(&got));
    EXPECT_EQ(got, value);
    EXPECT_EQ(whole.remaining_bytes(), 0u);
    ByteReader cut(bytes.data(), bytes.size() - 1);
    EXPECT_FALSE(cut.ReadVarint(&got));
    EXPECT_EQ(UnZigZag(ZigZag(static_cast<int64_t>(value))), static_cast<int64_t>(value));
  }
}

TEST(CodingTest, VarintOfMoreThan64BitsIsRefused) {
  const std::string bytes = std::string(9, '\xff') + '\x02';
  uint64_t value = 0;
  ByteReader reader(bytes);
  EXPECT_FALSE(reader.ReadVarint(&value));
}

TEST(HashTest, MixIsABijection) {
  Rng rng(11);
  for (int i = 0; i < 100000; ++i) {
    const uint64_t x = rng.Next();
    ASSERT_EQ(Unmix64(Mix64(x)), x);
  }
}

}  // namespace
}  // namespace grebe

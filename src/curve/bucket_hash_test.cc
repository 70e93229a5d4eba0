// Bucket hashes: the vectors of the specifications and of the systems that cut buckets by them.
#include "curve/bucket_hash.h"

#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <string>

namespace grebe::curve {
namespace {

__extension__ typedef __int128 Int128;

std::array<uint64_t, 2> WordsOf(Int128 value) {
  return {static_cast<uint64_t>(value), static_cast<uint64_t>(value >> 64)};
}

Int128 PowerOf10(int exponent) {
  Int128 power = 1;
  while (exponent-- > 0) power *= 10;
  return power;
}

// The table of appendix B of Iceberg's table spec.
TEST(IcebergHash, SpecVectors) {
  EXPECT_EQ(IcebergHash::Long(34), 2017239379);
  EXPECT_EQ(IcebergHash::Decimal(WordsOf(1420)), -500754589);
  EXPECT_EQ(IcebergHash::Long(17486), -653330422);                // date 2017-11-16
  EXPECT_EQ(IcebergHash::Long(81068000000), -662762989);          // time 22:31:08
  EXPECT_EQ(IcebergHash::Long(1510871468000000), -2047944441);    // 2017-11-16T22:31:08
  EXPECT_EQ(IcebergHash::Long(1510871468000001), -1207196810);    // and 1 us
  EXPECT_EQ(IcebergHash::Bytes("iceberg"), 1210000089);
  EXPECT_EQ(IcebergHash::Bytes("\xf7\x9c\x3e\x09\x67\x7c\x4b\xbd\xa4\x79\x3f\x34\x9c\xb7\x85\xe7"),
            1488055340);
  EXPECT_EQ(IcebergHash::Bytes(std::string("\0\1\2\3", 4)), -188683207);
}

// As Iceberg's Java and Python have it: 22:31:08.000001 and 22:31:08.000001001 are in one bucket.
TEST(IcebergHash, NanosecondsHashAsTheirMicroseconds) {
  EXPECT_EQ(IcebergHash::TimestampNs(1510871468000001000), -1207196810);
  EXPECT_EQ(IcebergHash::TimestampNs(1510871468000001001), -1207196810);
  EXPECT_EQ(IcebergHash::TimestampNs(-1), IcebergHash::Long(-1));
  EXPECT_EQ(IcebergHash::TimestampNs(-1000), IcebergHash::Long(-1));
  EXPECT_EQ(IcebergHash::TimestampNs(-1001), IcebergHash::Long(-2));
}

TEST(IcebergHash, Buckets) {
  EXPECT_EQ(IcebergHash::Bucket(2017239379, 100), 79);
  EXPECT_EQ(IcebergHash::Bucket(-500754589, 100), 59);
  EXPECT_EQ(IcebergHash::Bucket(std::numeric_limits<int32_t>::min(), 16), 0);
}

// Computed by a second implementation, in Python, from the definition: shortest two's complement
// of the unscaled value, murmur3 with seed 0 (Iceberg), and Spark's with seed 42.
struct DecimalCase {
  Int128 value;
  int32_t spark;
  int32_t iceberg;
};

TEST(BucketHash, DecimalsAsTheirShortestBytes) {
  const Int128 two_64 = static_cast<Int128>(1) << 64;
  const DecimalCase cases[] = {
      {0, -783713497, 1364076727},
      {-1, 1398487324, -43192051},
      {127, 1185089389, 1435096473},
      {128, -544401882, 1544076949},
      {-128, 775851899, 267099677},
      {-129, -771458971, -435537839},
      {255, 1246198977, -582037868},
      {PowerOf10(18), 981769809, 2047002357},
      {PowerOf10(19), 645599275, -1055393309},
      {-PowerOf10(19), -651938147, -1650505114},
      {PowerOf10(37), 216387744, 2139453790},
      {two_64, 1074617613, -471894935},
      {-two_64, -1195937909, -638249275},
  };
  for (const DecimalCase& c : cases) {
    EXPECT_EQ(SparkHash::Decimal(WordsOf(c.value), 38), c.spark);
    EXPECT_EQ(IcebergHash::Decimal(WordsOf(c.value)), c.iceberg);
  }
  // One word or four: the same number.
  const std::array<uint64_t, 4> minus_129 = {static_cast<uint64_t>(-129), ~0ULL, ~0ULL, ~0ULL};
  EXPECT_EQ(IcebergHash::Decimal(minus_129), -435537839);
  EXPECT_EQ(IcebergHash::Decimal(std::array<uint64_t, 1>{255}), -582037868);
}

TEST(BucketHash, TextsWhoseLengthIsNoMultipleOfFour) {
  struct Case {
    const char* text;
    int32_t spark;
    int32_t iceberg;
  };
  const Case cases[] = {
      {"x", -80340190, 1050319643},          {"xy", -444330832, -611208968},
      {"xyz", 753084083, 709566417},         {"ä", 1085608887, 2117259732},
      {"Grüße", 1598803708, 1791607040},     {"日本", -336983209, -992347838},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(SparkHash::Bytes(c.text), c.spark) << c.text;
    EXPECT_EQ(IcebergHash::Bytes(c.text), c.iceberg) << c.text;
  }
}

// What Spark itself prints for hash(..): its documentation and the tests of engines that copy it.
TEST(SparkHash, ValuesThatSparkPrints) {
  EXPECT_EQ(SparkHash::Int(0), 933211791);
  EXPECT_EQ(SparkHash::Int(1), -559580957);  // boolean true too
  EXPECT_EQ(SparkHash::Int(2), 1765031574);
  EXPECT_EQ(SparkHash::Int(4), -397064898);
  EXPECT_EQ(SparkHash::Int(-1), -1604776387);
  EXPECT_EQ(SparkHash::Long(0), -1670924195);
  EXPECT_EQ(SparkHash::Long(1), -1712319331);
  EXPECT_EQ(SparkHash::Long(-1), -939490007);
  EXPECT_EQ(SparkHash::Long(std::numeric_limits<int64_t>::max()), -1604625029);
  EXPECT_EQ(SparkHash::Long(std::numeric_limits<int64_t>::min()), -853646085);
  EXPECT_EQ(SparkHash::Long(12345678), 1402875301);  // timestamp 1970-01-01 00:00:12.345678
  EXPECT_EQ(SparkHash::Bytes("Spark"), 228093765);
  EXPECT_EQ(SparkHash::Bytes(""), 142593372);
  EXPECT_EQ(SparkHash::Bytes("abcdefghijklmnopqrstuvwxyz"), -1990933474);
  EXPECT_EQ(SparkHash::Bytes("12345678"), 2036199019);
  EXPECT_EQ(SparkHash::Decimal(WordsOf(12345678), 38), -277285195);
  EXPECT_EQ(SparkHash::Decimal(WordsOf(-12345678), 38), -1198355617);
  EXPECT_EQ(SparkHash::Decimal(WordsOf(12345678), 18), SparkHash::Long(12345678));
}

TEST(SparkHash, FloatsAsSparkPrintsThem) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(SparkHash::Double(0.0), -1670924195);
  EXPECT_EQ(SparkHash::Double(-0.0), -1670924195);
  EXPECT_EQ(SparkHash::Double(1), -460888942);
  EXPECT_EQ(SparkHash::Double(kNan), -1281358385);
  EXPECT_EQ(SparkHash::Double(-kNan), -1281358385);
  EXPECT_EQ(SparkHash::Double(kInf), 833680482);
  EXPECT_EQ(SparkHash::Double(-kInf), 461104036);
  EXPECT_EQ(SparkHash::Float(0.0f), 933211791);
  EXPECT_EQ(SparkHash::Float(-0.0f), 933211791);
  EXPECT_EQ(SparkHash::Float(1), -466301895);
  EXPECT_EQ(SparkHash::Float(static_cast<float>(kNan)), -349261430);
  EXPECT_EQ(SparkHash::Float(static_cast<float>(kInf)), 2026854605);
  EXPECT_EQ(SparkHash::Float(static_cast<float>(-kInf)), 427440766);
}

// hash('Spark', array(123), 2) of Spark's documentation; nulls leave the hash as it is.
TEST(SparkHash, ColumnsOneAfterAnother) {
  EXPECT_EQ(SparkHash::Int(2, SparkHash::Int(123, SparkHash::Bytes("Spark"))), -1321691492);
  EXPECT_EQ(SparkHash::Int(0, SparkHash::Bytes("")), 1143746540);
}

// pmod(hash, buckets), as HashPartitioning has it.
TEST(SparkHash, BucketsAreNeverNegative) {
  EXPECT_EQ(SparkHash::Bucket(-559580957, 100), 43);
  EXPECT_EQ(SparkHash::Bucket(-100, 100), 0);
  EXPECT_EQ(SparkHash::Bucket(SparkHash::kSeed, 16), 10);  // null
}

}  // namespace
}  // namespace grebe::curve

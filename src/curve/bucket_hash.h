// The hashes that other systems cut tables into buckets by, bit for bit.
//
// IcebergHash: Iceberg's bucket transform (table spec, appendix B): murmur3 x86 32 bits, seed 0.
// SparkHash: Spark's hash() and bucketBy: murmur3 with seed 42, whose trailing bytes are mixed one
// by one, as Spark has always done. Equal numbers of different widths hash alike under Iceberg and
// not under Spark.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace grebe::curve {

struct IcebergHash {
  // int, long, date (days), time (us), timestamp and timestamptz (us).
  static int32_t Long(int64_t value);
  // timestamp_ns, timestamptz_ns: as their microseconds, rounded towards the past, so that a
  // column promoted to nanoseconds keeps its buckets.
  static int32_t TimestampNs(int64_t value);
  // string (UTF-8), fixed, binary; a uuid as its 16 bytes.
  static int32_t Bytes(std::string_view value);
  // The unscaled value in two's complement, lowest word first, 1 to 4 words. Scale does not count.
  static int32_t Decimal(std::span<const uint64_t> words);

  // Nulls are in no bucket of Iceberg's: the partition value is null. REQUIRES: buckets > 0.
  static int32_t Bucket(int32_t hash, int32_t buckets) { return (hash & 0x7fffffff) % buckets; }
};

// Each call gives the hash so far, for a key of several columns: begin with kSeed, give each
// column's hash to the next; a null leaves it as it is.
struct SparkHash {
  static constexpr int32_t kSeed = 42;

  // byte, short, int, date (days); boolean as 0 or 1.
  static int32_t Int(int32_t value, int32_t seed = kSeed);
  // long, timestamp (us).
  static int32_t Long(int64_t value, int32_t seed = kSeed);
  // -0.0 as 0.0, any NaN as one.
  static int32_t Float(float value, int32_t seed = kSeed);
  static int32_t Double(double value, int32_t seed = kSeed);
  // string (UTF-8), binary.
  static int32_t Bytes(std::string_view value, int32_t seed = kSeed);
  // By the column's precision: up to 18 digits as a long, else as bytes.
  static int32_t Decimal(std::span<const uint64_t> words, int precision, int32_t seed = kSeed);

  // REQUIRES: buckets > 0.
  static int32_t Bucket(int32_t hash, int32_t buckets) {
    const int32_t rest = hash % buckets;
    return rest < 0 ? rest + buckets : rest;
  }
};

}  // namespace grebe::curve

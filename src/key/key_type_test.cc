#include <arrow/extension/uuid.h>
#include <gtest/gtest.h>

#include <vector>

#include "key/key.h"

namespace grebe::key {
namespace {

KeyType Of(const std::shared_ptr<arrow::DataType>& type) {
  return KeyType::FromArrow(*type).ValueOrDie();
}
KeyType Named(std::string_view text) { return KeyType::Parse(text).ValueOrDie(); }

TEST(KeyTypeTest, EveryArrowTypeHasOneName) {
  struct Case {
    std::shared_ptr<arrow::DataType> type;
    std::string name;
    bool word;
  };
  const std::vector<Case> cases = {
      {arrow::int8(), "int", true},
      {arrow::int16(), "int", true},
      {arrow::int32(), "int", true},
      {arrow::int64(), "int", true},
      {arrow::uint8(), "int", true},
      {arrow::uint16(), "int", true},
      {arrow::uint32(), "int", true},
      {arrow::uint64(), "uint64", true},
      {arrow::decimal32(9, 0), "int", true},
      {arrow::decimal64(18, 0), "int", true},
      {arrow::decimal128(18, 0), "int", true},
      {arrow::decimal128(19, 0), "decimal", false},
      {arrow::decimal128(10, -3), "int", true},
      {arrow::decimal128(18, -3), "decimal", false},
      {arrow::decimal128(9, 2), "decimal64(2)", true},
      {arrow::decimal128(18, 18), "decimal64(18)", true},
      {arrow::decimal128(19, 2), "decimal", false},
      {arrow::decimal256(5, 2), "decimal64(2)", true},
      {arrow::decimal256(76, 38), "decimal", false},
      {arrow::utf8(), "string", false},
      {arrow::large_utf8(), "string", false},
      {arrow::utf8_view(), "string", false},
      {arrow::binary(), "binary", false},
      {arrow::large_binary(), "binary", false},
      {arrow::binary_view(), "binary", false},
      {arrow::fixed_size_binary(3), "binary", false},
      {arrow::fixed_size_binary(16), "uuid", false},
      {arrow::extension::uuid(), "uuid", false},
      {arrow::date32(), "date", true},
      {arrow::date64(), "date", true},
      {arrow::time32(arrow::TimeUnit::SECOND), "time(s)", true},
      {arrow::time32(arrow::TimeUnit::MILLI), "time(ms)", true},
      {arrow::time64(arrow::TimeUnit::MICRO), "time(us)", true},
      {arrow::time64(arrow::TimeUnit::NANO), "time(ns)", true},
      {arrow::timestamp(arrow::TimeUnit::SECOND), "timestamp(s)", true},
      {arrow::timestamp(arrow::TimeUnit::NANO), "timestamp(ns)", true},
      {arrow::timestamp(arrow::TimeUnit::MICRO, "UTC"), "timestamp(us,utc)", true},
      {arrow::timestamp(arrow::TimeUnit::MICRO, "Asia/Tokyo"), "timestamp(us,utc)", true},
      {arrow::duration(arrow::TimeUnit::MILLI), "duration(ms)", true},
      {arrow::boolean(), "bool", true},
      {arrow::float16(), "float(16)", true},
      {arrow::float32(), "float(32)", true},
      {arrow::float64(), "float", true},
      {arrow::dictionary(arrow::int8(), arrow::utf8()), "string", false},
      {arrow::dictionary(arrow::int32(), arrow::decimal128(9, 2)), "decimal64(2)", true},
  };
  for (const Case& c : cases) {
    const KeyType type = Of(c.type);
    EXPECT_EQ(type.ToString(), c.name) << c.type->ToString();
    EXPECT_EQ(type.fits_word(), c.word) << c.name;
    EXPECT_EQ(Named(c.name), type) << c.name;
    // Values that users write are of the same kind of key.
    EXPECT_TRUE(KeyType::Unify(type, Of(type.value_type())).ok()) << c.name;
  }
}

TEST(KeyTypeTest, MixedTimestampsHaveNamesToo) {
  for (const char* name : {"timestamp(mixed)", "timestamp(mixed,utc)"}) {
    EXPECT_EQ(Named(name).ToString(), name);
    EXPECT_FALSE(Named(name).fits_word());
  }
}

TEST(KeyTypeTest, TypesWithoutEqualityAreUnsupported) {
  const std::vector<std::shared_ptr<arrow::DataType>> types = {
      arrow::null(),
      arrow::list(arrow::int32()),
      arrow::struct_({arrow::field("a", arrow::int32())}),
      arrow::map(arrow::utf8(), arrow::int32()),
      arrow::month_interval(),
      arrow::day_time_interval(),
      arrow::month_day_nano_interval(),
      arrow::dictionary(arrow::int8(), arrow::list(arrow::int8())),
  };
  for (const auto& type : types) {
    EXPECT_TRUE(IsKind(KeyType::FromArrow(*type).status(), ErrorKind::kUnsupported))
        << type->ToString();
  }
}

TEST(KeyTypeTest, OtherTextsAreNoKeyTypes) {
  for (const char* text :
       {"", "int64", "INT", "int ", "int()", "int(1)", "decimal64", "decimal64()", "decimal64(0)",
        "decimal64(02)", "decimal64(-1)", "decimal64(2", "decimal64(99999999999)", "decimal(2)",
        "timestamp", "timestamp(us,UTC)", "timestamp(us,)", "timestamp(,utc)", "timestamp(utc)",
        "time(us,utc)", "time(mixed)", "float(64)", "float(8)", "string(1)", "none", "(", ")",
        "()", "duration(m)"}) {
    EXPECT_TRUE(IsKind(KeyType::Parse(text).status(), ErrorKind::kInvalidArgument)) << text;
  }
}

TEST(KeyTypeTest, UnifyHoldsBoth) {
  struct Case {
    const char* a;
    const char* b;
    const char* both;   // null: none
  };
  const std::vector<Case> cases = {
      {"int", "int", "int"},
      {"int", "uint64", "decimal"},
      {"int", "decimal64(2)", "decimal"},
      {"decimal64(2)", "decimal64(3)", "decimal"},
      {"decimal64(2)", "decimal", "decimal"},
      {"string", "binary", "binary"},
      {"uuid", "binary", "binary"},
      {"uuid", "string", "binary"},
      {"timestamp(us)", "timestamp(ns)", "timestamp(mixed)"},
      {"timestamp(ms,utc)", "timestamp(us,utc)", "timestamp(mixed,utc)"},
      {"timestamp(us)", "timestamp(mixed)", "timestamp(mixed)"},
      {"timestamp(us)", "timestamp(us,utc)", nullptr},
      {"timestamp(mixed)", "timestamp(us,utc)", nullptr},
      {"time(ms)", "time(ns)", "time(ns)"},
      {"duration(s)", "duration(us)", "duration(us)"},
      {"float(16)", "float", "float"},
      {"float(16)", "float(32)", "float(32)"},
      {"string", "int", nullptr},
      {"bool", "int", nullptr},
      {"float", "int", nullptr},
      {"date", "timestamp(us)", nullptr},
      {"time(us)", "duration(us)", nullptr},
  };
  for (const Case& c : cases) {
    for (const bool swapped : {false, true}) {
      const KeyType a = Named(swapped ? c.b : c.a), b = Named(swapped ? c.a : c.b);
      const auto both = KeyType::Unify(a, b);
      if (c.both == nullptr) {
        EXPECT_TRUE(IsKind(both.status(), ErrorKind::kUnsupported)) << c.a << ' ' << c.b;
      } else {
        ASSERT_TRUE(both.ok()) << c.a << ' ' << c.b;
        EXPECT_EQ(both->ToString(), c.both) << c.a << ' ' << c.b;
      }
    }
  }
}

TEST(KeyTypeTest, SameFormIsForTypesWhoseKeysMayBeCompared) {
  EXPECT_TRUE(KeyType::SameForm(Named("float(32)"), Named("float")));
  EXPECT_TRUE(KeyType::SameForm(Named("uuid"), Named("binary")));
  EXPECT_TRUE(KeyType::SameForm(Named("string"), Named("binary")));
  EXPECT_TRUE(KeyType::SameForm(Named("int"), Named("int")));
  EXPECT_FALSE(KeyType::SameForm(Named("int"), Named("uint64")));
  EXPECT_FALSE(KeyType::SameForm(Named("int"), Named("decimal")));
  EXPECT_FALSE(KeyType::SameForm(Named("decimal64(2)"), Named("decimal")));
  EXPECT_FALSE(KeyType::SameForm(Named("time(ms)"), Named("time(us)")));
  EXPECT_FALSE(KeyType::SameForm(Named("timestamp(us)"), Named("timestamp(mixed)")));
}

}  // namespace
}  // namespace grebe::key

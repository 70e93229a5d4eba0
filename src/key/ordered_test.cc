// Ordered forms: order as values do for every key type, and ranges against comparing one by one.
#include "key/ordered.h"

#include <arrow/array/util.h>
#include <arrow/builder.h>
#include <arrow/scalar.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "base/rng.h"
#include "base/status.h"
#include "testing/seed.h"

namespace grebe::key {
namespace {

using ArrayPtr = std::shared_ptr<arrow::Array>;

KeyType Named(std::string_view text) { return KeyType::Parse(text).ValueOrDie(); }

// One row of a value as people write it; "null" is null.
ArrayPtr Value(const KeyType& type, const std::string& text) {
  std::vector<std::shared_ptr<arrow::Scalar>> scalars(1);
  if (text != "null") scalars[0] = ParseValue(*type.value_type(), text).ValueOrDie();
  return MakeQueryColumn(*type.value_type(), scalars).ValueOrDie();
}

std::string Form(const std::vector<KeyType>& types, const arrow::ArrayVector& values) {
  EncodedKeys encoded;
  EXPECT_TRUE(KeyCodec(types).Encode(values, &encoded).ok());
  OrderedKeys ordered;
  EXPECT_TRUE(OrderKeys(types, encoded, &ordered).ok());
  EXPECT_EQ(ordered.count(), 1);
  return std::string(ordered.view(0));
}

std::string Form(const KeyType& type, const std::string& text) {
  return Form({type}, {Value(type, text)});
}

struct TypeCase {
  const char* type;
  std::vector<std::string> ascending;
};

const TypeCase kTypes[] = {
    {"int", {"null", "-9223372036854775808", "-300", "-1", "0", "1", "255", "256",
             "9223372036854775807"}},
    {"uint64", {"null", "0", "1", "9223372036854775808", "18446744073709551615"}},
    {"decimal64(2)", {"null", "-100", "-1.5", "-0.01", "0", "0.01", "1.5", "99.99", "100"}},
    {"decimal",
     {"null", "-1e30", "-123456789012345678901", "-10", "-9.99", "-9.9", "-1", "-0.5", "-0.05",
      "-0.0000001", "0", "0.0000001", "0.05", "0.5", "0.50001", "0.51", "1", "9", "9.9", "9.99",
      "10", "11", "99", "100", "123456789012345678901", "123456789012345678902", "1e30"}},
    {"string", {"null", "", "a", "a\x01", "aa", "ab", "b", "https://a", "https://b", "\xc3\xa4"}},
    {"binary", {"null", "0x", "0x00", "0x0000", "0x0001", "0x00ff", "0x01", "0xff", "0xff00",
                "0xffff"}},
    {"uuid", {"null", "00000000-0000-0000-0000-000000000000",
              "00112233-4455-6677-8899-aabbccddeeff", "ffffffff-ffff-ffff-ffff-ffffffffffff"}},
    {"date", {"null", "0001-01-01", "1969-12-31", "1970-01-01", "2024-02-29", "9999-12-31"}},
    {"time(us)", {"null", "00:00:00", "00:00:00.000001", "12:00", "23:59:59.999999"}},
    {"timestamp(us,utc)", {"null", "1677-01-01", "1969-12-31T23:59:59.999999", "1970-01-01",
                           "2024-02-29T12:00:00Z", "9999-12-31"}},
    {"timestamp(mixed)", {"null", "0001-01-01", "1969-12-31T23:59:59.5", "1970-01-01",
                          "1970-01-01T00:00:00.000000001", "9999-12-31"}},
    {"bool", {"null", "false", "true"}},
    {"float", {"null", "-inf", "-1e300", "-1.5", "-1e-300", "0", "1e-300", "1.5", "1e300", "inf",
               "nan"}},
};

TEST(OrderedKeys, OrderAsValuesDo) {
  for (const TypeCase& c : kTypes) {
    const KeyType type = Named(c.type);
    std::string before;
    for (const std::string& text : c.ascending) {
      const std::string form = Form(type, text);
      EXPECT_LT(before, form) << c.type << " " << text;
      before = form;
    }
  }
  EXPECT_EQ(Form(Named("float"), "-0.0"), Form(Named("float"), "0"));
  EXPECT_EQ(Form(Named("decimal"), "1.50"), Form(Named("decimal"), "1.5"));
}

// All bounds on all types, against the values' places in their list.
TEST(OrderedKeys, RangesHoldWhatTheirBoundsSay) {
  for (const TypeCase& c : kTypes) {
    const KeyType type = Named(c.type);
    const auto size = static_cast<int>(c.ascending.size());
    std::vector<std::string> forms;
    for (const std::string& text : c.ascending) forms.push_back(Form(type, text));
    const auto bound = [&](int i, bool inclusive) -> std::optional<RangeBound> {
      if (i < 0) return std::nullopt;
      return RangeBound{Value(type, c.ascending[i]), inclusive};
    };
    for (int low = -1; low < size; ++low) {
      for (int high = -1; high < size; ++high) {
        for (int flags = 0; flags < 4; ++flags) {
          if (low == 0 || high == 0 || (low < 0 && high < 0)) continue;
          const bool low_in = flags & 1, high_in = flags & 2;
          const auto range = OrderRange({&type, 1}, {{}, bound(low, low_in), bound(high, high_in)});
          ASSERT_TRUE(range.ok()) << range.status().ToString();
          for (int i = 0; i < size; ++i) {
            const auto is_nan = [&](int at) { return at >= 0 && c.ascending[at] == "nan"; };
            const bool expected = i > 0 && !is_nan(i) && !is_nan(low) && !is_nan(high) &&
                                  (low < 0 || i > low || (low_in && i == low)) &&
                                  (high < 0 || i < high || (high_in && i == high));
            EXPECT_EQ(range->Contains(forms[i]), expected)
                << c.type << " " << c.ascending[i] << " low " << low << " high " << high;
          }
        }
      }
    }
    // Equal to a value, null and NaN among them.
    for (int at = 0; at < size; ++at) {
      const auto range = OrderRange({&type, 1}, {{Value(type, c.ascending[at])}, {}, {}});
      ASSERT_TRUE(range.ok());
      for (int i = 0; i < size; ++i) EXPECT_EQ(range->Contains(forms[i]), i == at);
    }
    const auto all = OrderRange({&type, 1}, {});
    for (const std::string& form : forms) EXPECT_TRUE(all->Contains(form));
  }
}

// Bounds that no key can equal lie between keys.
TEST(OrderedKeys, BoundsBetweenKeys) {
  struct Case {
    const char* type;
    std::vector<std::string> keys;
    const char* bound;
    size_t below;   // keys below the bound
  };
  const Case cases[] = {
      {"int", {"-8", "-7", "7", "8"}, "7.5", 3},
      {"int", {"-8", "-7", "7", "8"}, "-7.5", 1},
      {"int", {"-8", "-7", "7", "8"}, "1e40", 4},
      {"int", {"-9223372036854775808", "8"}, "-1e40", 0},
      {"int", {"-1", "0", "1"}, "-0.0001", 1},
      {"int", {"-1", "0", "1"}, "1e-90", 2},
      {"uint64", {"0", "18446744073709551615"}, "-1", 0},
      {"uint64", {"0", "18446744073709551615"}, "18446744073709551616", 2},
      {"decimal64(2)", {"-1.51", "-1.50", "1.50", "1.51"}, "1.505", 3},
      {"decimal64(2)", {"-1.51", "-1.50", "1.50", "1.51"}, "-1.505", 1},
      {"timestamp(ns)", {"1678-01-01", "2261-01-01"}, "9999-12-31", 2},
      {"timestamp(ns)", {"1678-01-01", "2261-01-01"}, "0001-01-01", 0},
      {"timestamp(s)", {"1970-01-01T00:00:01", "1970-01-01T00:00:02"}, "1970-01-01T00:00:01.5", 1},
      {"timestamp(s)", {"1969-12-31T23:59:58", "1969-12-31T23:59:59"}, "1969-12-31T23:59:58.5", 1},
      {"time(ms)", {"00:00:00.001", "00:00:00.002"}, "00:00:00.0015", 1},
      {"timestamp(us)", {"9999-12-31T23:59:59", "9999-12-31T23:59:59.999999"},
       "9999-12-31T23:59:59.999998999", 1},
      {"float", {"-inf", "-1.7e308", "1.7e308", "inf"}, "1e400", 3},
      {"float", {"-inf", "-1.7e308", "1.7e308", "inf"}, "-1e400", 1},
  };
  for (const Case& c : cases) {
    const KeyType type = Named(c.type);
    for (const bool inclusive : {false, true}) {
      const RangeBound bound{Value(type, c.bound), inclusive};
      const auto above = OrderRange({&type, 1}, {{}, bound, {}});
      const auto below = OrderRange({&type, 1}, {{}, {}, bound});
      ASSERT_TRUE(above.ok() && below.ok()) << above.status().ToString();
      for (size_t i = 0; i < c.keys.size(); ++i) {
        const std::string form = Form(type, c.keys[i]);
        EXPECT_EQ(below->Contains(form), i < c.below) << c.type << " " << c.keys[i];
        EXPECT_EQ(above->Contains(form), i >= c.below) << c.type << " " << c.keys[i];
      }
    }
    EXPECT_TRUE(OrderRange({&type, 1}, {{Value(type, c.bound)}, {}, {}})->empty());
  }
}

// Doubles as bounds of an int key, infinite and tiny ones among them.
TEST(OrderedKeys, DoublesBoundIntegers) {
  Rng rng(testing::Seed("double bounds"));
  const KeyType type = Named("int");
  for (int round = 0; round < 2000; ++round) {
    double bound = std::ldexp(rng.Fraction() - 0.5, static_cast<int>(rng.Below(12)));
    if (round == 0) bound = std::numeric_limits<double>::infinity();
    if (round == 1) bound = -std::numeric_limits<double>::infinity();
    if (round == 2) bound = std::numeric_limits<double>::denorm_min();
    if (round == 3) bound = -std::numeric_limits<double>::denorm_min();
    if (round == 4) bound = std::numeric_limits<double>::quiet_NaN();
    const bool inclusive = rng.Chance(0.5);
    const auto value = arrow::MakeArrayFromScalar(arrow::DoubleScalar(bound), 1).ValueOrDie();
    const auto lower = OrderRange({&type, 1}, {{}, RangeBound{value, inclusive}, {}});
    const auto upper = OrderRange({&type, 1}, {{}, {}, RangeBound{value, inclusive}});
    ASSERT_TRUE(lower.ok() && upper.ok()) << lower.status().ToString();
    for (int64_t key = -40; key <= 40; ++key) {
      const auto k = static_cast<double>(key);
      const std::string form = Form(type, std::to_string(key));
      ASSERT_EQ(lower->Contains(form), k > bound || (inclusive && k == bound)) << bound;
      ASSERT_EQ(upper->Contains(form), k < bound || (inclusive && k == bound)) << bound;
    }
  }
}

// Keys of an int and a string, equal on the first and bounded on the second.
TEST(OrderedKeys, CompositeKeysOrderColumnByColumn) {
  Rng rng(testing::Seed("composite"));
  const std::vector<KeyType> types = {Named("int"), Named("string")};
  const std::vector<std::string> ints = {"null", "-1", "0", "256"};
  const std::vector<std::string> texts = {"null", "", "a", "aa", "b"};
  struct Key {
    size_t a, b;
    std::string form;
  };
  std::vector<Key> keys;
  for (size_t a = 0; a < ints.size(); ++a) {
    for (size_t b = 0; b < texts.size(); ++b) {
      keys.push_back({a, b, Form(types, {Value(types[0], ints[a]), Value(types[1], texts[b])})});
    }
  }
  for (size_t i = 1; i < keys.size(); ++i) EXPECT_LT(keys[i - 1].form, keys[i].form);
  for (size_t a = 0; a < ints.size(); ++a) {
    const ArrayPtr first = Value(types[0], ints[a]);
    const auto whole = OrderRange(types, {{first}, {}, {}});
    const RangeBound above_a{Value(types[1], "a"), false}, to_b{Value(types[1], "b")};
    const auto bounded = OrderRange(types, {{first}, above_a, to_b});
    const auto open = OrderRange(types, {{first}, {}, RangeBound{Value(types[1], "aa"), false}});
    for (const Key& key : keys) {
      EXPECT_EQ(whole->Contains(key.form), key.a == a);
      EXPECT_EQ(bounded->Contains(key.form), key.a == a && key.b >= 3);
      EXPECT_EQ(open->Contains(key.form), key.a == a && (key.b == 1 || key.b == 2));
    }
  }
}

TEST(OrderedKeys, RandomDecimalsOrderAsTheirValues) {
  Rng rng(testing::Seed("decimals"));
  const KeyType type = Named("decimal");
  std::vector<std::pair<int64_t, std::string>> values;   // times 10^6
  for (int i = 0; i < 2000; ++i) {
    auto value = static_cast<int64_t>(rng.Next() >> (1 + rng.Below(60)));
    if (rng.Chance(0.5)) value = value / 1000 * 1000;
    if (rng.Chance(0.5)) value = -value;
    const arrow::Decimal128 decimal(value);
    const auto array = arrow::MakeArrayFromScalar(
        arrow::Decimal128Scalar(decimal, arrow::decimal128(38, 6)), 1).ValueOrDie();
    values.emplace_back(value, Form({type}, {array}));
  }
  std::sort(values.begin(), values.end());
  for (size_t i = 1; i < values.size(); ++i) {
    ASSERT_EQ(values[i - 1].first == values[i].first, values[i - 1].second == values[i].second);
    ASSERT_LE(values[i - 1].second, values[i].second);
  }
}

TEST(OrderedKeys, BadQueriesAreRefused) {
  const KeyType ints = Named("int");
  const ArrayPtr one = Value(ints, "1"), null = Value(ints, "null");
  const ArrayPtr text = Value(Named("string"), "x");
  const RangeQuery bad[] = {
      {{one}, RangeBound{one}, {}},
      {{one, one}, {}, {}},
      {{}, RangeBound{null}, {}},
      {{}, RangeBound{nullptr}, {}},
  };
  for (const RangeQuery& query : bad) {
    EXPECT_TRUE(IsKind(OrderRange({&ints, 1}, query).status(), ErrorKind::kInvalidArgument));
  }
  EXPECT_TRUE(IsKind(OrderRange({&ints, 1}, {{}, RangeBound{text}, {}}).status(),
                     ErrorKind::kUnsupported));
  OrderedKeys ordered;
  EncodedKeys damaged;
  damaged.is_word = false;
  damaged.bytes = "\x05" "ab";
  damaged.offsets = {0, 3};
  const KeyType strings = Named("string");
  EXPECT_TRUE(IsKind(OrderKeys({&strings, 1}, damaged, &ordered), ErrorKind::kCorrupt));
}

}  // namespace
}  // namespace grebe::key

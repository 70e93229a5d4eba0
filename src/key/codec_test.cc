#include <arrow/array.h>
#include <arrow/array/builder_base.h>
#include <arrow/array/concatenate.h>
#include <arrow/array/util.h>
#include <arrow/builder.h>
#include <arrow/extension/uuid.h>
#include <arrow/scalar.h>
#include <arrow/util/float16.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <iostream>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "base/rng.h"
#include "key/key.h"

namespace grebe::key {
namespace {

using ArrayPtr = std::shared_ptr<arrow::Array>;
using TypePtr = std::shared_ptr<arrow::DataType>;

uint64_t Seed() {
  static const uint64_t seed = [] {
    const char* given = std::getenv("GREBE_TEST_SEED");
    const uint64_t value = given != nullptr ? std::strtoull(given, nullptr, 10) : 20261130;
    std::cout << "seed " << value << " (GREBE_TEST_SEED)\n";
    return value;
  }();
  return seed;
}

ArrayPtr One(const std::shared_ptr<arrow::Scalar>& scalar) {
  return arrow::MakeArrayFromScalar(*scalar, 1).ValueOrDie();
}

// The canonical form of row 0, printable: "word <hex>", "null" (word form) or the bytes.
std::string FormOf(const EncodedKeys& keys, int64_t i = 0) {
  if (!keys.is_word) return "bytes " + std::string(keys.view(i));
  if (keys.is_null(i)) return "null";
  return "word " + std::to_string(keys.words[i]);
}

std::string Form(const KeyType& type, const ArrayPtr& array) {
  EncodedKeys keys;
  const Status status = KeyCodec({type}).Encode(std::vector<ArrayPtr>{array}, &keys);
  if (!status.ok()) return "error " + status.ToString();
  return FormOf(keys);
}

KeyType Named(std::string_view text) { return KeyType::Parse(text).ValueOrDie(); }

// Every pair of values: equal if and only if their canonical forms are.
struct Sample {
  std::string identity;   // equal identities mean equal values
  ArrayPtr array;
};

void CheckEqualIffEqual(const KeyType& type, const std::vector<Sample>& samples) {
  std::map<std::string, std::string> form_of, identity_of;
  for (const Sample& sample : samples) {
    const std::string form = Form(type, sample.array);
    ASSERT_FALSE(form.starts_with("error")) << form;
    const auto by_identity = form_of.emplace(sample.identity, form).first;
    EXPECT_EQ(by_identity->second, form)
        << sample.identity << " as " << sample.array->ToString() << " differs from its other forms";
    const auto by_form = identity_of.emplace(form, sample.identity).first;
    EXPECT_EQ(by_form->second, sample.identity)
        << sample.array->ToString() << " has the form of another value";
  }
}

std::string NumberIdentity(__int128 unscaled, int scale) {
  if (unscaled == 0) return "0";
  while (unscaled % 10 == 0) {
    unscaled /= 10;
    --scale;
  }
  return arrow::Decimal128(static_cast<int64_t>(unscaled >> 64), static_cast<uint64_t>(unscaled))
             .ToIntegerString() +
         "e" + std::to_string(-scale);
}

// unscaled * 10^-scale in every physical form that holds it.
void AddNumberForms(__int128 unscaled, int scale, Rng* rng, std::vector<Sample>* samples) {
  const std::string identity = NumberIdentity(unscaled, scale);
  const arrow::Decimal128 wide(static_cast<int64_t>(unscaled >> 64),
                               static_cast<uint64_t>(unscaled));
  const arrow::Decimal256 wider{arrow::BasicDecimal256(wide)};
  const auto add = [&](const std::shared_ptr<arrow::Scalar>& scalar) {
    samples->push_back({identity, One(scalar)});
  };
  if (wide.FitsInPrecision(38)) {
    add(std::make_shared<arrow::Decimal128Scalar>(wide, arrow::decimal128(38, scale)));
  }
  add(std::make_shared<arrow::Decimal256Scalar>(wider, arrow::decimal256(76, scale)));
  const int up = static_cast<int>(rng->Below(30));
  const auto raised = arrow::Decimal256(wider.IncreaseScaleBy(up));
  add(std::make_shared<arrow::Decimal256Scalar>(raised, arrow::decimal256(76, scale + up)));
  if (wide.FitsInPrecision(9)) {
    add(std::make_shared<arrow::Decimal32Scalar>(arrow::Decimal32(static_cast<int32_t>(unscaled)),
                                                 arrow::decimal32(9, scale)));
  }
  if (wide.FitsInPrecision(18)) {
    add(std::make_shared<arrow::Decimal64Scalar>(arrow::Decimal64(static_cast<int64_t>(unscaled)),
                                                 arrow::decimal64(18, scale)));
  }
  if (scale != 0) return;
  const auto add_if_fits = [&]<class T, class ScalarType>() {
    if (unscaled >= std::numeric_limits<T>::min() && unscaled <= std::numeric_limits<T>::max()) {
      add(std::make_shared<ScalarType>(static_cast<T>(unscaled)));
    }
  };
  add_if_fits.operator()<int8_t, arrow::Int8Scalar>();
  add_if_fits.operator()<int16_t, arrow::Int16Scalar>();
  add_if_fits.operator()<int32_t, arrow::Int32Scalar>();
  add_if_fits.operator()<int64_t, arrow::Int64Scalar>();
  add_if_fits.operator()<uint8_t, arrow::UInt8Scalar>();
  add_if_fits.operator()<uint16_t, arrow::UInt16Scalar>();
  add_if_fits.operator()<uint32_t, arrow::UInt32Scalar>();
  add_if_fits.operator()<uint64_t, arrow::UInt64Scalar>();
}

__int128 RandomUnscaled(Rng* rng) {
  const auto high = static_cast<__int128>(static_cast<int64_t>(rng->Next()));
  __int128 value = (high << 64) | rng->Next();
  value >>= rng->Below(127);
  if (rng->Chance(0.3)) value = static_cast<__int128>(rng->Below(2000)) - 1000;
  if (rng->Chance(0.2)) value = (value >> 16) * 1000;
  return value;
}

TEST(CodecTest, NumbersAreEqualAcrossPhysicalForms) {
  Rng rng(Seed());
  std::vector<Sample> samples;
  for (int i = 0; i < 3000; ++i) {
    AddNumberForms(RandomUnscaled(&rng), static_cast<int>(rng.Below(4)), &rng, &samples);
  }
  for (const __int128 edge : {__int128{0}, __int128{1}, __int128{-1}, __int128{127},
                              __int128{-128}, __int128{255}, __int128{256}, __int128{-256},
                              __int128{INT64_MAX}, __int128{INT64_MIN}, __int128{UINT64_MAX},
                              __int128{UINT64_MAX} + 1, __int128{INT64_MIN} - 1}) {
    for (const int scale : {0, 1, 2, 18, 37}) AddNumberForms(edge, scale, &rng, &samples);
  }
  CheckEqualIffEqual(Named("decimal"), samples);
}

TEST(CodecTest, WordNumbersAreEqualAcrossPhysicalForms) {
  Rng rng(Seed());
  for (const auto& [name, scale, digits] :
       std::vector<std::tuple<const char*, int, int>>{{"int", 0, 18},
                                                      {"decimal64(2)", 2, 18},
                                                      {"decimal64(5)", 5, 18}}) {
    std::vector<Sample> samples;
    for (int i = 0; i < 2000; ++i) {
      const auto value =
          static_cast<int64_t>(rng.Next()) / (int64_t{10} << rng.Below(60)) + (i == 0 ? 7 : 0);
      AddNumberForms(value, scale, &rng, &samples);
      if (scale > 0 && std::abs(value) < int64_t{1} << 40) {
        AddNumberForms(value / 10 * 10 / 10, scale - 1, &rng, &samples);
        AddNumberForms(value / 100000, 0, &rng, &samples);
      }
    }
    CheckEqualIffEqual(Named(name), samples);
  }
}

TEST(CodecTest, SeventySixDigitsAreExact) {
  // Neighbours that no double or 128-bit integer tells apart, at several scales.
  const std::string digits(75, '9');
  std::vector<Sample> samples;
  for (const std::string& text : {digits + "8", digits + "9", "-" + digits + "8", "1" + digits,
                                  std::string("1") + std::string(75, '0')}) {
    for (const int scale : {0, 10, 76}) {
      const auto value = arrow::Decimal256::FromString(text).ValueOrDie();
      std::string identity = text;
      int exponent = -scale;
      while (identity.ends_with('0')) {
        identity.pop_back();
        ++exponent;
      }
      samples.push_back({identity + "e" + std::to_string(exponent),
                         One(std::make_shared<arrow::Decimal256Scalar>(
                             value, arrow::decimal256(76, scale)))});
    }
  }
  const auto one = arrow::Decimal128(1);
  samples.push_back({"1e75", One(std::make_shared<arrow::Decimal128Scalar>(
                                 one, arrow::decimal128(1, -75)))});
  CheckEqualIffEqual(Named("decimal"), samples);
}

TEST(CodecTest, InstantsAreEqualAcrossUnitsAndZones) {
  Rng rng(Seed());
  static constexpr int64_t kPerSecond[] = {1, 1000, 1000000, 1000000000};
  std::vector<Sample> samples, zoned;
  std::vector<std::pair<int64_t, int64_t>> instants = {
      {0, 0}, {-1, 999999999}, {-1, 0}, {253402300799, 0}, {253402300799, 999999000},
      {-62135596800, 0}, {INT64_MAX, 0}, {INT64_MIN, 0}, {9223372036, 854775807},
      {-9223372037, 145224192}, {-9223372037, 145224000}, {9223372036854, 775000000}};
  for (int i = 0; i < 2000; ++i) {
    const int64_t seconds = static_cast<int64_t>(rng.Next()) >> rng.Below(63);
    int64_t grain = 1000;
    for (const double chance : {0.5, 0.3}) grain *= rng.Chance(chance) ? 1000 : 1;
    instants.emplace_back(seconds, static_cast<int64_t>(rng.Below(1000000000)) / grain * grain);
  }
  for (const auto& [seconds, nanoseconds] : instants) {
    const std::string identity = std::to_string(seconds) + "." + std::to_string(nanoseconds);
    for (int unit = 0; unit < 4; ++unit) {
      const int64_t per_unit = kPerSecond[3] / kPerSecond[unit];
      if (nanoseconds % per_unit != 0) continue;
      const __int128 value =
          static_cast<__int128>(seconds) * kPerSecond[unit] + nanoseconds / per_unit;
      if (value != static_cast<int64_t>(value)) continue;
      for (const char* zone : {"", "UTC", "America/New_York"}) {
        const auto type = arrow::timestamp(static_cast<arrow::TimeUnit::type>(unit), zone);
        (*zone ? zoned : samples)
            .push_back({identity, One(std::make_shared<arrow::TimestampScalar>(
                                      static_cast<int64_t>(value), type))});
      }
    }
  }
  CheckEqualIffEqual(Named("timestamp(mixed)"), samples);
  CheckEqualIffEqual(Named("timestamp(mixed,utc)"), zoned);
}

TEST(CodecTest, AnotherUnitIsExactOrAnError) {
  const auto stamp = [](int64_t value, arrow::TimeUnit::type unit) {
    return One(std::make_shared<arrow::TimestampScalar>(value, arrow::timestamp(unit)));
  };
  const KeyType us = Named("timestamp(us)");
  EXPECT_EQ(Form(us, stamp(7000, arrow::TimeUnit::NANO)), "word 7");
  EXPECT_EQ(Form(us, stamp(-1, arrow::TimeUnit::SECOND)),
            "word " + std::to_string(static_cast<uint64_t>(-1000000)));
  EXPECT_TRUE(Form(us, stamp(7001, arrow::TimeUnit::NANO)).starts_with("error"));
  EXPECT_TRUE(Form(us, stamp(INT64_MAX, arrow::TimeUnit::MILLI)).starts_with("error"));
  EXPECT_TRUE(Form(us, stamp(INT64_MIN, arrow::TimeUnit::SECOND)).starts_with("error"));
  EXPECT_TRUE(Form(Named("timestamp(us,utc)"), stamp(7, arrow::TimeUnit::MICRO))
                  .starts_with("error"));
}

TEST(CodecTest, TimesAndDatesAreEqualAcrossPhysicalForms) {
  std::vector<Sample> times, dates;
  for (const int64_t seconds : {0, 1, 3599, 86399}) {
    const std::string identity = std::to_string(seconds);
    const auto narrow = [&](int64_t value, arrow::TimeUnit::type unit) {
      times.push_back({identity, One(std::make_shared<arrow::Time32Scalar>(
                                     static_cast<int32_t>(value), arrow::time32(unit)))});
    };
    const auto wide = [&](int64_t value, arrow::TimeUnit::type unit) {
      times.push_back(
          {identity, One(std::make_shared<arrow::Time64Scalar>(value, arrow::time64(unit)))});
    };
    narrow(seconds, arrow::TimeUnit::SECOND);
    narrow(seconds * 1000, arrow::TimeUnit::MILLI);
    wide(seconds * 1000000, arrow::TimeUnit::MICRO);
    wide(seconds * 1000000000, arrow::TimeUnit::NANO);
  }
  CheckEqualIffEqual(Named("time(ns)"), times);
  for (const int64_t days : {0, 1, -1, 19782, -719164, INT32_MAX, INT32_MIN}) {
    dates.push_back({std::to_string(days),
                     One(std::make_shared<arrow::Date32Scalar>(static_cast<int32_t>(days)))});
    dates.push_back({std::to_string(days),
                     One(std::make_shared<arrow::Date64Scalar>(days * 86400000))});
  }
  CheckEqualIffEqual(Named("date"), dates);
  EXPECT_TRUE(Form(Named("date"), One(std::make_shared<arrow::Date64Scalar>(1)))
                  .starts_with("error"));
}

TEST(CodecTest, FloatsAreEqualAcrossWidths) {
  std::vector<Sample> samples;
  const auto add = [&](double value) {
    std::string identity = std::isnan(value) ? "nan" : std::to_string(value) + "/";
    if (!std::isnan(value)) {
      char exact[64];
      std::snprintf(exact, sizeof(exact), "%a", value == 0 ? 0.0 : value);
      identity = exact;
    }
    samples.push_back({identity, One(std::make_shared<arrow::DoubleScalar>(value))});
    const auto single = static_cast<float>(value);
    if (std::isnan(value) || single == value) {
      samples.push_back({identity, One(std::make_shared<arrow::FloatScalar>(single))});
    }
    const arrow::util::Float16 half(value);
    if (std::isnan(value) || half.ToDouble() == value) {
      samples.push_back({identity, One(std::make_shared<arrow::HalfFloatScalar>(half))});
    }
  };
  Rng rng(Seed());
  for (const double value :
       {0.0, -0.0, 1.0, -1.0, 0.5, 0.1, static_cast<double>(0.1F), 65504.0, 1e300, 5e-324,
        std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity(),
        std::numeric_limits<double>::quiet_NaN(), -std::numeric_limits<double>::quiet_NaN(),
        std::nan("7"), std::numeric_limits<double>::signaling_NaN(), 0x1p-14, 0x1p-24}) {
    add(value);
  }
  for (int i = 0; i < 2000; ++i) {
    add(std::bit_cast<double>(rng.Next()));
    add(std::bit_cast<float>(static_cast<uint32_t>(rng.Next())));
    add(arrow::util::Float16::FromBits(static_cast<uint16_t>(rng.Next())).ToDouble());
  }
  CheckEqualIffEqual(Named("float"), samples);
}

TEST(CodecTest, BytesAreEqualAcrossPhysicalForms) {
  Rng rng(Seed());
  std::vector<Sample> samples;
  for (int i = 0; i < 600; ++i) {
    std::string value(rng.Chance(0.3) ? 16 : rng.Below(i % 10 == 0 ? 300 : 6), '\0');
    for (char& c : value) c = static_cast<char>(rng.Chance(0.5) ? rng.Below(3) : rng.Below(256));
    const auto buffer = arrow::Buffer::FromString(value);
    const auto add = [&](std::shared_ptr<arrow::Scalar> scalar) {
      samples.push_back({value, One(scalar)});
    };
    add(std::make_shared<arrow::StringScalar>(buffer));
    add(std::make_shared<arrow::LargeStringScalar>(buffer));
    add(std::make_shared<arrow::StringViewScalar>(buffer));
    add(std::make_shared<arrow::BinaryScalar>(buffer));
    add(std::make_shared<arrow::LargeBinaryScalar>(buffer));
    add(std::make_shared<arrow::BinaryViewScalar>(buffer));
    const auto fixed = std::make_shared<arrow::FixedSizeBinaryScalar>(
        buffer, arrow::fixed_size_binary(static_cast<int32_t>(value.size())));
    add(fixed);
    if (value.size() == 16) {
      samples.push_back({value, arrow::ExtensionType::WrapArray(arrow::extension::uuid(),
                                                                One(fixed))});
    }
  }
  CheckEqualIffEqual(Named("binary"), samples);
  CheckEqualIffEqual(Named("string"), samples);
  CheckEqualIffEqual(Named("uuid"), samples);
}

// Random rows of an int, a string, a decimal and a bool column, nulls among them.
std::vector<ArrayPtr> RandomColumns(Rng* rng, int64_t rows) {
  arrow::Int64Builder ints;
  arrow::BinaryBuilder strings;
  arrow::Decimal128Builder decimals(arrow::decimal128(30, 3));
  arrow::BooleanBuilder bools;
  for (int64_t i = 0; i < rows; ++i) {
    const auto null = [&] { return rng->Chance(0.2); };
    EXPECT_TRUE((null() ? ints.AppendNull() : ints.Append(rng->Below(2))).ok());
    std::string text(rng->Below(4), '\0');
    for (char& c : text) c = static_cast<char>(rng->Below(3));
    EXPECT_TRUE((null() ? strings.AppendNull() : strings.Append(text)).ok());
    const arrow::Decimal128 decimal(static_cast<int64_t>(rng->Below(3)) * 1000);
    EXPECT_TRUE((null() ? decimals.AppendNull() : decimals.Append(decimal)).ok());
    EXPECT_TRUE((null() ? bools.AppendNull() : bools.Append(rng->Chance(0.5))).ok());
  }
  return {ints.Finish().ValueOrDie(), strings.Finish().ValueOrDie(),
          decimals.Finish().ValueOrDie(), bools.Finish().ValueOrDie()};
}

TEST(CodecTest, CompositeKeysAreEqualIffAllPartsAre) {
  Rng rng(Seed());
  constexpr int64_t kRows = 3000;
  const std::vector<ArrayPtr> columns = RandomColumns(&rng, kRows);
  std::vector<KeyType> types;
  for (const ArrayPtr& column : columns) {
    types.push_back(KeyType::FromArrow(*column->type()).ValueOrDie());
  }
  const KeyCodec codec(types);
  ASSERT_FALSE(codec.is_word());
  EncodedKeys keys;
  ASSERT_TRUE(codec.Encode(columns, &keys).ok());
  ASSERT_EQ(keys.count(), kRows);
  std::map<std::string, std::string> tuple_of, form_of;
  for (int64_t i = 0; i < kRows; ++i) {
    std::string tuple;
    for (const ArrayPtr& column : columns) {
      const auto scalar = column->GetScalar(i).ValueOrDie();
      std::string part = scalar->is_valid ? "v" : "n";
      if (scalar->is_valid) {
        part += scalar->type->id() == arrow::Type::BINARY
                    ? static_cast<const arrow::BinaryScalar&>(*scalar).value->ToHexString()
                    : scalar->ToString();
      }
      tuple += part + "|";
    }
    const std::string form(keys.view(i));
    EXPECT_EQ(tuple_of.emplace(form, tuple).first->second, tuple);
    EXPECT_EQ(form_of.emplace(tuple, form).first->second, form);
  }
  EXPECT_GT(tuple_of.size(), 300u);
}

ArrayPtr Dictionary(const ArrayPtr& values, const std::vector<int>& indices) {
  arrow::Int16Builder builder;
  for (const int index : indices) {
    EXPECT_TRUE((index < 0 ? builder.AppendNull() : builder.Append(index)).ok());
  }
  const auto type = arrow::dictionary(arrow::int16(), values->type());
  return arrow::DictionaryArray::FromArrays(type, builder.Finish().ValueOrDie(), values)
      .ValueOrDie();
}

TEST(CodecTest, DictionariesAndSlicesAreWhatTheyStandFor) {
  Rng rng(Seed());
  for (const ArrayPtr& values : RandomColumns(&rng, 40)) {
    std::vector<int> indices;
    arrow::ArrayVector plain_rows;
    for (int i = 0; i < 200; ++i) {
      const int index = static_cast<int>(rng.Below(41)) - 1;
      indices.push_back(index);
      plain_rows.push_back(index < 0 ? arrow::MakeArrayOfNull(values->type(), 1).ValueOrDie()
                                     : values->Slice(index, 1));
    }
    const ArrayPtr plain = arrow::Concatenate(plain_rows).ValueOrDie();
    const ArrayPtr dictionary = Dictionary(values, indices);
    const KeyCodec codec({KeyType::FromArrow(*values->type()).ValueOrDie()});
    EncodedKeys a, b, c;
    ASSERT_TRUE(codec.Encode(std::vector<ArrayPtr>{plain}, &a).ok());
    ASSERT_TRUE(codec.Encode(std::vector<ArrayPtr>{dictionary}, &b).ok());
    for (int64_t i = 0; i < plain->length(); ++i) {
      EXPECT_EQ(FormOf(a, i), FormOf(b, i)) << i;
      EXPECT_EQ(a.is_word && a.is_null(i), a.is_word && plain->IsNull(i));
      EXPECT_EQ(!a.is_word && a.view(i) == std::string_view("\0", 1),
                !a.is_word && plain->IsNull(i));
    }
    for (const ArrayPtr& whole : {plain, dictionary}) {
      const ArrayPtr slice = whole->Slice(37, 101);
      ASSERT_TRUE(codec.Encode(std::vector<ArrayPtr>{slice}, &c).ok());
      for (int64_t i = 0; i < slice->length(); ++i) EXPECT_EQ(FormOf(c, i), FormOf(a, i + 37));
    }
  }
}

TEST(CodecTest, NullRowsHaveWordZero) {
  // A null slot may hold any bits, and they must not show.
  const int64_t raw[] = {1, 2, 3};
  const uint8_t bits[] = {0b101};
  const auto data = arrow::ArrayData::Make(
      arrow::int64(), 3, {arrow::Buffer::Wrap(bits, 1), arrow::Buffer::Wrap(raw, 3)}, 1);
  EncodedKeys keys;
  ASSERT_TRUE(KeyCodec({Named("int")})
                  .Encode(std::vector<ArrayPtr>{arrow::MakeArray(data)}, &keys).ok());
  EXPECT_EQ(keys.words, (std::vector<uint64_t>{1, 0, 3}));
  EXPECT_EQ(keys.null_rows, (std::vector<uint8_t>{0, 1, 0}));
}

TEST(CodecTest, ColumnsOfTypeNullAreAllNull) {
  const ArrayPtr nulls = arrow::MakeArrayOfNull(arrow::null(), 2).ValueOrDie();
  EncodedKeys keys;
  ASSERT_TRUE(KeyCodec({Named("int")}).Encode(std::vector<ArrayPtr>{nulls}, &keys).ok());
  EXPECT_TRUE(keys.is_null(0) && keys.is_null(1));
  ASSERT_TRUE(KeyCodec({Named("string")}).Encode(std::vector<ArrayPtr>{nulls}, &keys).ok());
  EXPECT_EQ(keys.view(1), std::string_view("\0", 1));
}

TEST(CodecTest, EmptyColumnsGiveNoKeys) {
  for (const TypePtr& type : {arrow::int32(), arrow::utf8(), arrow::boolean(), arrow::float16(),
                              arrow::decimal256(50, 2), arrow::utf8_view(), arrow::date64()}) {
    const ArrayPtr empty = arrow::MakeEmptyArray(type).ValueOrDie();
    EncodedKeys keys;
    const KeyCodec codec({KeyType::FromArrow(*type).ValueOrDie()});
    ASSERT_TRUE(codec.Encode(std::vector<ArrayPtr>{empty}, &keys).ok()) << type->ToString();
    EXPECT_EQ(keys.count(), 0) << type->ToString();
    EXPECT_EQ(keys.is_word, codec.is_word());
  }
}

struct QueryCase {
  const char* key_type;
  std::shared_ptr<arrow::Scalar> asked;
  bool absent;
  std::shared_ptr<arrow::Scalar> same_as;   // when not absent
};

TEST(CodecTest, QueriesThatNoRowCanHaveAreAbsent) {
  const auto i64 = [](int64_t v) { return std::make_shared<arrow::Int64Scalar>(v); };
  const auto u64 = [](uint64_t v) { return std::make_shared<arrow::UInt64Scalar>(v); };
  const auto f64 = [](double v) { return std::make_shared<arrow::DoubleScalar>(v); };
  const auto dec = [](const char* text) -> std::shared_ptr<arrow::Scalar> {
    arrow::Decimal256 value;
    int32_t precision = 0, scale = 0;
    EXPECT_TRUE(
        arrow::Decimal256::FromString(std::string_view(text), &value, &precision, &scale).ok());
    return std::make_shared<arrow::Decimal256Scalar>(value, arrow::decimal256(76, scale));
  };
  const std::vector<QueryCase> cases = {
      {"int", f64(7.5), true, nullptr},
      {"int", f64(7.0), false, i64(7)},
      {"int", f64(-0.0), false, i64(0)},
      {"int", f64(0x1p63), true, nullptr},
      {"int", f64(-0x1p63), false, i64(INT64_MIN)},
      {"int", f64(std::nan("")), true, nullptr},
      {"int", f64(INFINITY), true, nullptr},
      {"int", f64(1e300), true, nullptr},
      {"int", dec("1180591620717411303424"), true, nullptr},
      {"int", dec("7.50"), true, nullptr},
      {"int", dec("7.00"), false, i64(7)},
      {"int", u64(UINT64_MAX), true, nullptr},
      {"int", u64(INT64_MAX), false, i64(INT64_MAX)},
      {"uint64", i64(-1), true, nullptr},
      {"uint64", f64(0x1p64), true, nullptr},
      {"uint64", dec("18446744073709551615"), false, u64(UINT64_MAX)},
      {"uint64", dec("18446744073709551616"), true, nullptr},
      {"uint64", dec("1e19"), false, u64(10000000000000000000ULL)},
      {"uint64", dec("2e19"), true, nullptr},
      {"decimal64(2)", dec("1.005"), true, nullptr},
      {"decimal64(2)", dec("1.5"), false, dec("1.50")},
      {"decimal64(2)", f64(1.25), false, dec("1.25")},
      {"decimal64(2)", f64(0.1), true, nullptr},   // the double is not 0.1
      {"decimal64(2)", i64(INT64_MAX), true, nullptr},
      {"decimal", f64(0.5), false, dec("0.5")},
      {"decimal", f64(0x1p250), false,
       dec("1809251394333065553493296640760748560207343510400633813116524750123642650624")},
      {"decimal", f64(1e300), true, nullptr},
      {"decimal", f64(5e-324), true, nullptr},
      {"float", i64(7), false, f64(7)},
      {"float", i64((int64_t{1} << 53) + 1), true, nullptr},
      {"float", i64(int64_t{1} << 53), false, f64(0x1p53)},
      {"float", u64(UINT64_MAX), true, nullptr},
      {"float", dec("0.1"), true, nullptr},
      {"float", dec("0.375"), false, f64(0.375)},
      {"float", dec("1e75"), true, nullptr},
  };
  for (const QueryCase& c : cases) {
    const KeyCodec codec({Named(c.key_type)});
    EncodedKeys asked, expected;
    std::vector<bool> absent;
    const Status status = codec.EncodeQuery(std::vector<ArrayPtr>{One(c.asked)}, &asked, &absent);
    ASSERT_TRUE(status.ok()) << status;
    ASSERT_EQ(absent.size(), 1u);
    EXPECT_EQ(absent[0], c.absent) << c.key_type << ' ' << c.asked->ToString();
    if (c.absent || absent[0]) continue;
    ASSERT_TRUE(codec.Encode(std::vector<ArrayPtr>{One(c.same_as)}, &expected).ok());
    EXPECT_EQ(FormOf(asked), FormOf(expected)) << c.key_type << ' ' << c.asked->ToString();
  }
}

TEST(CodecTest, OneAbsentPartMakesACompositeKeyAbsent) {
  const KeyCodec codec({Named("int"), Named("int")});
  arrow::DoubleBuilder a, b;
  ASSERT_TRUE(a.AppendValues({1, 1.5, 2}).ok());
  ASSERT_TRUE(b.AppendValues({1, 1, 2.5}).ok());
  EncodedKeys keys;
  std::vector<bool> absent;
  const std::vector<ArrayPtr> columns = {*a.Finish(), *b.Finish()};
  ASSERT_TRUE(codec.EncodeQuery(columns, &keys, &absent).ok());
  EXPECT_EQ(absent, (std::vector<bool>{false, true, true}));
}

TEST(CodecTest, WrongColumnsAreErrors) {
  EncodedKeys keys;
  std::vector<bool> absent;
  const ArrayPtr one = One(std::make_shared<arrow::Int64Scalar>(1));
  const ArrayPtr text = One(std::make_shared<arrow::StringScalar>("1"));
  const ArrayPtr two = arrow::MakeArrayFromScalar(arrow::Int64Scalar(1), 2).ValueOrDie();
  EXPECT_TRUE(IsKind(KeyCodec({}).Encode({}, &keys), ErrorKind::kInvalidArgument));
  const KeyCodec pair({Named("int"), Named("int")});
  EXPECT_TRUE(IsKind(pair.Encode(std::vector<ArrayPtr>{one}, &keys), ErrorKind::kInvalidArgument));
  EXPECT_TRUE(IsKind(pair.Encode(std::vector<ArrayPtr>{one, two}, &keys),
                     ErrorKind::kInvalidArgument));
  EXPECT_TRUE(IsKind(pair.Encode(std::vector<ArrayPtr>{one, text}, &keys),
                     ErrorKind::kUnsupported));
  EXPECT_TRUE(IsKind(pair.EncodeQuery(std::vector<ArrayPtr>{one, text}, &keys, &absent),
                     ErrorKind::kUnsupported));
  // Numbers of another kind are for queries only: a double column is no int column.
  const ArrayPtr real = One(std::make_shared<arrow::DoubleScalar>(1));
  EXPECT_TRUE(IsKind(KeyCodec({Named("int")}).Encode(std::vector<ArrayPtr>{real}, &keys),
                     ErrorKind::kUnsupported));
}

TEST(CodecTest, ADictionaryIndexOutOfRangeIsCorrupt) {
  const ArrayPtr values = One(std::make_shared<arrow::StringScalar>("a"));
  const int8_t raw[] = {0, 5};
  const auto data = arrow::ArrayData::Make(arrow::dictionary(arrow::int8(), arrow::utf8()), 2,
                                           {nullptr, arrow::Buffer::Wrap(raw, 2)}, 0);
  data->dictionary = values->data();
  EncodedKeys keys;
  EXPECT_TRUE(IsKind(KeyCodec({Named("string")})
                         .Encode(std::vector<ArrayPtr>{arrow::MakeArray(data)}, &keys),
                     ErrorKind::kCorrupt));
}

}  // namespace
}  // namespace grebe::key

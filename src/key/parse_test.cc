#include <arrow/array.h>
#include <arrow/scalar.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <sstream>

#include "key/key.h"
#include "testing/source_folder.h"

namespace grebe::key {
namespace {

using TypePtr = std::shared_ptr<arrow::DataType>;

struct GoodCase {
  TypePtr type;
  const char* text;
  const char* value;         // as Arrow shows the scalar
  TypePtr got = nullptr;     // when not the type asked for
};

std::vector<GoodCase> GoodCases() {
  using arrow::TimeUnit;
  const auto ts = [](TimeUnit::type unit, const char* zone = "") {
    return arrow::timestamp(unit, zone);
  };
  return {
      {arrow::int64(), "42", "42"},
      {arrow::int64(), "-42", "-42"},
      {arrow::int64(), "+7", "7"},
      {arrow::int64(), "007", "7"},
      {arrow::int64(), "7.0", "7"},
      {arrow::int64(), "7e3", "7000"},
      {arrow::int64(), "-9223372036854775808", "-9223372036854775808"},
      {arrow::int64(), "9223372036854775808", "9223372036854775808", arrow::decimal256(76, 0)},
      {arrow::int64(), "7.5", "7.5", arrow::decimal256(76, 1)},
      {arrow::int64(), "1e30", "1E+30", arrow::decimal256(76, -30)},
      {arrow::int8(), "127", "127"},
      {arrow::int8(), "128", "128", arrow::decimal256(76, 0)},
      {arrow::uint8(), "-1", "-1", arrow::decimal256(76, 0)},
      {arrow::uint32(), "4000000000", "4000000000"},
      {arrow::uint64(), "18446744073709551615", "18446744073709551615"},
      {arrow::decimal32(9, 2), "-1.50", "-1.50"},
      {arrow::decimal64(18, 2), "1.5", "1.50"},
      {arrow::decimal128(18, 2), "1.5", "1.50"},
      {arrow::decimal128(38, 0), "99999999999999999999999999999999999999",
       "99999999999999999999999999999999999999"},
      {arrow::decimal128(4, 2), "100", "1E+2", arrow::decimal256(76, -2)},
      {arrow::decimal128(4, 2), "1.005", "1.005", arrow::decimal256(76, 3)},
      {arrow::decimal256(76, 2), "-0", "0.00"},
      {arrow::utf8(), "a\0b", "a"},
      {arrow::large_utf8(), "\xc3\xa9", "\xc3\xa9"},
      {arrow::utf8_view(), "x", "x"},
      {arrow::date32(), "2024-02-29", "2024-02-29"},
      {arrow::date32(), "1969-12-31", "1969-12-31"},
      {arrow::date64(), "2000-02-29", "2000-02-29"},
      {arrow::time32(TimeUnit::SECOND), "23:59", "23:59:00"},
      {arrow::time32(TimeUnit::MILLI), "00:00:00.25", "00:00:00.250"},
      {arrow::time64(TimeUnit::NANO), "12:00:00.123456789", "12:00:00.123456789"},
      {arrow::time32(TimeUnit::MILLI), "12:00:00.123456", "12:00:00.123456",
       arrow::time64(TimeUnit::MICRO)},
      {ts(TimeUnit::MICRO), "2024-02-29T12:00:00", "2024-02-29 12:00:00.000000"},
      {ts(TimeUnit::MICRO), "2024-02-29 12:00:00Z", "2024-02-29 12:00:00.000000"},
      {ts(TimeUnit::MILLI), "2024-02-29", "2024-02-29 00:00:00.000"},
      {ts(TimeUnit::MILLI), "2024-02-29T12:00:00.000001", "2024-02-29 12:00:00.000001000",
       ts(TimeUnit::NANO)},
      {ts(TimeUnit::NANO), "9999-12-31", "9999-12-31 00:00:00.000000", ts(TimeUnit::MICRO)},
      {ts(TimeUnit::NANO), "1677-09-21T00:12:43.145224192", "1677-09-21 00:12:43.145224192"},
      {ts(TimeUnit::MICRO), "9999-12-31T23:59:59.999999999", "253402300799.999999999",
       arrow::decimal256(76, 9)},
      {ts(TimeUnit::SECOND, "UTC"), "2024-02-29T12:00:00+0230", "2024-02-29 09:30:00Z"},
      {ts(TimeUnit::SECOND, "UTC"), "2024-02-29T12:00:00-05", "2024-02-29 17:00:00Z"},
      {ts(TimeUnit::SECOND, "UTC"), "2024-02-29T12:00:00", "2024-02-29 12:00:00Z"},
      {arrow::duration(TimeUnit::MICRO), "-5", "-5"},
      {arrow::boolean(), "True", "true"},
      {arrow::boolean(), "0", "false"},
      {arrow::float64(), "1e-3", "0.001"},
      {arrow::float64(), "-.5", "-0.5"},
      {arrow::float64(), "nan", "nan"},
      {arrow::float64(), "-Infinity", "-inf"},
      {arrow::float64(), "1e-400", "0"},
      {arrow::float32(), "1e39", "1e+39", arrow::float64()},
      {arrow::float32(), "-1e-50", "-0"},
      {arrow::float32(), "0.1", "0.1"},
      {arrow::float16(), "0.5", "0.5"},
      {arrow::float16(), "1e6", "1000000", arrow::float64()},
      {arrow::dictionary(arrow::int8(), arrow::int32()), "5", "5", arrow::int32()},
  };
}

TEST(ParseValueTest, ReadsWhatPeopleWrite) {
  for (const GoodCase& c : GoodCases()) {
    const auto scalar = ParseValue(*c.type, c.text);
    ASSERT_TRUE(scalar.ok()) << c.text << ": " << scalar.status();
    const TypePtr& expected = c.got != nullptr ? c.got : c.type;
    EXPECT_TRUE((*scalar)->type->Equals(*expected))
        << c.text << " gave " << (*scalar)->type->ToString();
    EXPECT_EQ((*scalar)->ToString(), c.value) << c.type->ToString() << ' ' << c.text;
  }
}

TEST(ParseValueTest, NumbersBeyondTheDoublesAreDecimals) {
  for (const TypePtr& type : {arrow::float16(), arrow::float32(), arrow::float64()}) {
    const auto scalar = ParseValue(*type, "-1.5e400");
    ASSERT_TRUE(scalar.ok()) << scalar.status();
    ASSERT_TRUE((*scalar)->type->Equals(arrow::decimal256(76, -399)));
    EXPECT_EQ(static_cast<const arrow::Decimal256Scalar&>(**scalar).value, arrow::Decimal256(-15));
  }
}

TEST(ParseValueTest, ReadsBytes) {
  struct Case {
    TypePtr type;
    const char* text;
    std::string hex;
  };
  const std::string uuid = "00112233445566778899AABBCCDDEEFF";
  const std::vector<Case> cases = {
      {arrow::binary(), "0x", ""},
      {arrow::binary(), "0x00fF", "00FF"},
      {arrow::binary(), "base64:", ""},
      {arrow::binary(), "base64:AP8=", "00FF"},
      {arrow::large_binary(), "0x41", "41"},
      {arrow::binary_view(), "0x41", "41"},
      {arrow::fixed_size_binary(2), "0x0001", "0001"},
      {arrow::fixed_size_binary(2), "0x000102", "000102"},   // in no row
      {arrow::fixed_size_binary(16), "00112233-4455-6677-8899-aabbccddeeff", uuid},
      {arrow::fixed_size_binary(16), "{00112233-4455-6677-8899-aabbccddeeff}", uuid},
      {arrow::fixed_size_binary(16), "00112233445566778899aabbccddeeff", uuid},
      {arrow::fixed_size_binary(16), "0x00112233445566778899aabbccddeeff", uuid},
      {arrow::fixed_size_binary(16), "base64:ABEiM0RVZneImaq7zN3u/w==", uuid},
  };
  for (const Case& c : cases) {
    const auto scalar = ParseValue(*c.type, c.text);
    ASSERT_TRUE(scalar.ok()) << c.text << ": " << scalar.status();
    EXPECT_EQ(static_cast<const arrow::BaseBinaryScalar&>(**scalar).value->ToHexString(), c.hex)
        << c.text;
  }
}

TEST(ParseValueTest, RefusesWhatIsNoValue) {
  const TypePtr ts = arrow::timestamp(arrow::TimeUnit::MICRO);
  const TypePtr utc = arrow::timestamp(arrow::TimeUnit::MICRO, "UTC");
  const std::string long_number(77, '7');
  const std::vector<std::pair<TypePtr, std::string>> cases = {
      {arrow::int64(), ""},
      {arrow::int64(), "x"},
      {arrow::int64(), " 1"},
      {arrow::int64(), "1 "},
      {arrow::int64(), "1,000"},
      {arrow::int64(), "--1"},
      {arrow::int64(), "."},
      {arrow::int64(), "1e"},
      {arrow::int64(), "1e999999999999999999999"},
      {arrow::int64(), "0x10"},
      {arrow::int64(), "nan"},
      {arrow::int64(), "true"},
      {arrow::int64(), long_number},
      {arrow::decimal128(9, 2), "1.2.3"},
      {arrow::boolean(), "yes"},
      {arrow::boolean(), ""},
      {arrow::float64(), ""},
      {arrow::float64(), "nan(1)"},
      {arrow::float64(), "+-1"},
      {arrow::float64(), "0x1p3"},
      {arrow::date32(), "2023-02-29"},
      {arrow::date32(), "2024-13-01"},
      {arrow::date32(), "2024-00-01"},
      {arrow::date32(), "2024-01-00"},
      {arrow::date32(), "2024-1-1"},
      {arrow::date32(), "24-01-01"},
      {arrow::date32(), "20240101"},
      {arrow::date32(), "2024-01-01T00:00:00"},
      {arrow::time64(arrow::TimeUnit::MICRO), "24:00:00"},
      {arrow::time64(arrow::TimeUnit::MICRO), "12:60"},
      {arrow::time64(arrow::TimeUnit::MICRO), "12:00:60"},
      {arrow::time64(arrow::TimeUnit::MICRO), "12:00:00."},
      {arrow::time64(arrow::TimeUnit::MICRO), "12:00:00.0000000001"},
      {ts, "2024-01-01T"},
      {ts, "2024-01-01T12"},
      {ts, "2024-01-01T12:00:00+01:00"},   // no zone to convert from
      {ts, "1709208000"},
      {ts, "2024-01-01T12:00:00Zx"},
      {utc, "2024-01-01T12:00:00+25:00"},
      {utc, "2024-01-01T12:00:00+01:"},
      {utc, "999999999999-01-01"},
      {arrow::binary(), "abc"},
      {arrow::binary(), "\\xFF"},
      {arrow::binary(), "0xF"},
      {arrow::binary(), "0xGG"},
      {arrow::binary(), "base64:?"},
      {arrow::fixed_size_binary(16), "00112233-4455-6677-8899-aabbccddeef"},
      {arrow::fixed_size_binary(16), "0011223-34455-6677-8899-aabbccddeeff"},
      {arrow::fixed_size_binary(8), "0011223344556677"},
      {arrow::duration(arrow::TimeUnit::MICRO), "1.5"},
  };
  for (const auto& [type, text] : cases) {
    const Status status = ParseValue(*type, text).status();
    EXPECT_TRUE(IsKind(status, ErrorKind::kInvalidArgument)) << type->ToString() << ' ' << text;
    EXPECT_NE(status.message().find(type->ToString()), std::string::npos) << status;
  }
  EXPECT_TRUE(IsKind(ParseValue(*arrow::list(arrow::int8()), "1").status(),
                     ErrorKind::kUnsupported));
}

using Texts = std::vector<std::optional<std::string>>;

// Encodes texts, one vector per key column, as the command line does.
Status EncodeTexts(const KeyCodec& codec, const std::vector<Texts>& texts, EncodedKeys* keys,
                   std::vector<bool>* absent) {
  std::vector<std::shared_ptr<arrow::Array>> columns;
  for (size_t c = 0; c < texts.size(); ++c) {
    const TypePtr type = codec.types()[c].value_type();
    std::vector<std::shared_ptr<arrow::Scalar>> values;
    for (const auto& text : texts[c]) {
      values.emplace_back();
      if (!text) continue;
      ARROW_ASSIGN_OR_RAISE(values.back(), ParseValue(*type, *text));
    }
    ARROW_ASSIGN_OR_RAISE(auto column, MakeQueryColumn(*type, values));
    columns.push_back(std::move(column));
  }
  return codec.EncodeQuery(columns, keys, absent);
}

TEST(QueryColumnTest, ValuesThatNeedTypesOfTheirOwnGoTogether) {
  struct Case {
    const char* key_type;
    Texts texts;
    std::vector<bool> absent;
  };
  const std::vector<Case> cases = {
      {"int", {"1", "7.5", "1e40", std::nullopt, "-3"}, {false, true, true, false, false}},
      {"uint64", {"-1", "18446744073709551615"}, {true, false}},
      {"decimal64(2)", {"1.00", "1.005", "1e30"}, {false, true, true}},
      {"decimal", {"1.00", "1e-30", "1e30"}, {false, false, false}},
      {"timestamp(us)", {"9999-12-31", "2024-01-01T00:00:00.000000001"}, {false, true}},
      {"timestamp(ns)", {"9999-12-31", "2024-01-01T00:00:00.000000001"}, {true, false}},
      {"timestamp(us)", {"9999-12-31", "9999-12-31T23:59:59.999999999"}, {false, true}},
      {"timestamp(mixed)",
       {"9999-12-31", "2024-01-01T00:00:00.000000001", std::nullopt,
        "9999-12-31T23:59:59.999999999"},
       {false, false, false, false}},
      {"timestamp(s,utc)", {"2024-01-01T00:00:00Z", "2024-01-01T00:00:00.5Z"}, {false, true}},
      {"time(ms)", {"12:00", "12:00:00.000001"}, {false, true}},
      {"date", {"2024-02-29", "9999999-01-01"}, {false, false}},
      {"float(16)", {"0.5", "1e6"}, {false, false}},
      {"float", {"1e400"}, {true}},
      {"uuid", {"00112233445566778899aabbccddeeff", "0x00"}, {false, false}},
  };
  for (const Case& c : cases) {
    const KeyCodec codec({KeyType::Parse(c.key_type).ValueOrDie()});
    EncodedKeys together, alone;
    std::vector<bool> absent, absent_alone;
    const Status status = EncodeTexts(codec, {c.texts}, &together, &absent);
    ASSERT_TRUE(status.ok()) << c.key_type << status;
    EXPECT_EQ(absent, c.absent) << c.key_type;
    for (size_t i = 0; i < c.texts.size(); ++i) {
      ASSERT_TRUE(EncodeTexts(codec, {{c.texts[i]}}, &alone, &absent_alone).ok());
      EXPECT_EQ(absent_alone[0], c.absent[i]) << c.key_type << ' ' << i;
      if (absent_alone[0]) continue;
      if (together.is_word) {
        EXPECT_EQ(together.words[i], alone.words[0]) << c.key_type << ' ' << i;
        EXPECT_EQ(together.is_null(i), alone.is_null(0)) << c.key_type << ' ' << i;
      } else {
        EXPECT_EQ(together.view(i), alone.view(0)) << c.key_type << ' ' << i;
      }
    }
  }
}

TEST(QueryColumnTest, NumbersTooFarApartAreAnError) {
  const KeyCodec codec({KeyType::Parse("decimal").ValueOrDie()});
  EncodedKeys keys;
  std::vector<bool> absent;
  EXPECT_TRUE(IsKind(EncodeTexts(codec, {{"1e50", "1e-50"}}, &keys, &absent),
                     ErrorKind::kInvalidArgument));
  const KeyCodec floats({KeyType::Parse("float").ValueOrDie()});
  EXPECT_TRUE(IsKind(EncodeTexts(floats, {{"1.5", "1e400"}}, &keys, &absent),
                     ErrorKind::kInvalidArgument));
}

// The cells of the rows of the table under "Worked examples".
std::vector<std::vector<std::string>> WorkedExamples() {
  const auto page = testing::SourceFolder() + "/docs/format/key.md";
  std::ifstream in(page);
  std::vector<std::vector<std::string>> rows;
  bool within = false;
  for (std::string line; std::getline(in, line);) {
    within = within || line == "## Worked examples";
    if (!within || !line.starts_with("| `")) continue;
    std::vector<std::string> cells;
    std::istringstream cut(line.substr(2));
    for (std::string cell; std::getline(cut, cell, '|');) cells.push_back(cell);
    rows.push_back(cells);
  }
  return rows;
}

// "`a`, null" to texts.
std::vector<std::optional<std::string>> Items(const std::string& cell) {
  std::vector<std::optional<std::string>> items;
  for (size_t at = 0; at < cell.size(); ++at) {
    if (cell.compare(at, 4, "null") == 0) {
      items.emplace_back(std::nullopt);
      at += 4;
    } else if (cell[at] == '`') {
      const size_t end = cell.find('`', at + 1);
      items.emplace_back(cell.substr(at + 1, end - at - 1));
      at = end;
    }
  }
  return items;
}

std::string Shown(const EncodedKeys& keys) {
  if (keys.is_word && keys.is_null(0)) return "null";
  char hex[17];
  if (keys.is_word) {
    std::snprintf(hex, sizeof(hex), "%016llx", static_cast<unsigned long long>(keys.words[0]));
    return hex;
  }
  std::string shown;
  for (const char c : keys.view(0)) {
    std::snprintf(hex, sizeof(hex), "%02x", static_cast<unsigned>(static_cast<unsigned char>(c)));
    shown += hex;
  }
  return shown;
}

TEST(KeyFormatTest, TheWorkedExamplesOfTheFormatPageHold) {
  const auto rows = WorkedExamples();
  ASSERT_GE(rows.size(), 35u);
  for (const auto& cells : rows) {
    ASSERT_GE(cells.size(), 3u);
    std::vector<KeyType> types;
    for (const auto& name : Items(cells[0])) types.push_back(KeyType::Parse(*name).ValueOrDie());
    std::vector<Texts> texts;
    for (const auto& value : Items(cells[1])) texts.push_back({value});
    std::string expected;
    const auto form = Items(cells[2])[0];
    for (const char c : form.value_or("null")) {
      if (c != ' ') expected += c;
    }
    EncodedKeys keys;
    std::vector<bool> absent;
    const Status status = EncodeTexts(KeyCodec(types), texts, &keys, &absent);
    ASSERT_TRUE(status.ok()) << cells[1] << status;
    EXPECT_FALSE(absent[0]) << cells[1];
    EXPECT_EQ(Shown(keys), expected) << cells[0] << cells[1];
  }
}

}  // namespace
}  // namespace grebe::key

#include "key/column.h"

#include <arrow/array/array_dict.h>
#include <arrow/extension_type.h>
#include <arrow/util/bit_util.h>
#include <arrow/util/float16.h>

#include <array>
#include <charconv>
#include <limits>
#include <optional>
#include <utility>

#include "base/coding.h"
#include "key/kinds_internal.h"
#include "key/number.h"

namespace grebe::key::internal {

namespace {

constexpr int64_t kUnitsPerSecond[] = {1, 1000, 1000000, 1000000000};

Status Mismatch(const KeyType& type, const arrow::DataType& got) {
  return Unsupported("column does not compare with the key", "key_type", type.ToString(), "got",
                     got.ToString());
}

void MarkBad(Column* column, int64_t row) {
  if (column->bad.empty()) column->bad.resize(static_cast<size_t>(column->count()), 0);
  column->bad[row] = 1;
}

void CopyNulls(const arrow::Array& array, Column* column) {
  if (array.null_count() == 0) return;
  column->nulls.resize(static_cast<size_t>(array.length()));
  const uint8_t* bitmap = array.null_bitmap_data();
  for (int64_t i = 0; i < array.length(); ++i) {
    const bool valid =
        bitmap != nullptr ? arrow::bit_util::GetBit(bitmap, array.offset() + i) : array.IsValid(i);
    column->nulls[i] = !valid;
  }
}

// Fills words from a function of the row; rows that are null keep 0. The function returns
// uint64_t, or std::optional<uint64_t> where a value may not be representable.
template <class Of>
void FillWords(const arrow::Array& array, Column* column, Of&& word_of) {
  const int64_t count = array.length();
  column->words.resize(static_cast<size_t>(count));
  uint64_t* words = column->words.data();
  const uint8_t* nulls = column->nulls.empty() ? nullptr : column->nulls.data();
  for (int64_t i = 0; i < count; ++i) {
    if (nulls != nullptr && nulls[i]) continue;
    if constexpr (std::is_same_v<decltype(word_of(i)), uint64_t>) {
      words[i] = word_of(i);
    } else {
      const std::optional<uint64_t> word = word_of(i);
      if (word) {
        words[i] = *word;
      } else {
        MarkBad(column, i);
      }
    }
  }
}

template <class T>
const T* RawValues(const arrow::Array& array) {
  return array.data()->GetValues<T>(1);
}

// Sign-extends (or zero-extends) each value to 64 bits.
template <class T>
void CopyWords(const arrow::Array& array, Column* column) {
  const T* values = RawValues<T>(array);
  const auto count = static_cast<size_t>(array.length());
  if constexpr (sizeof(T) == 8) {
    const auto* raw = reinterpret_cast<const uint64_t*>(values);
    column->words.assign(raw, raw + count);
  } else {
    column->words.resize(count);
    for (size_t i = 0; i < count; ++i) {
      column->words[i] = static_cast<uint64_t>(static_cast<int64_t>(values[i]));
    }
  }
  for (size_t i = 0; i < column->nulls.size(); ++i) {
    if (column->nulls[i]) column->words[i] = 0;
  }
}

// Calls visitor with a function row -> value, for every numeric type: int64_t, uint64_t,
// __int128 (and a scale), Decimal256 (and a scale) or double.
template <class Visitor>
Status VisitNumbers(const arrow::Array& array, Visitor&& visit) {
  const auto values = [&]<class T>(std::type_identity<T>) {
    const T* raw = RawValues<T>(array);
    using Wide = std::conditional_t<std::is_same_v<T, uint64_t>, uint64_t, int64_t>;
    visit([raw](int64_t i) { return static_cast<Wide>(raw[i]); }, 0);
    return Status::OK();
  };
  const auto decimals = [&]<int kWidth>(std::integral_constant<int, kWidth>) {
    const uint8_t* raw = array.data()->buffers[1] == nullptr
                             ? nullptr
                             : array.data()->buffers[1]->data() + array.offset() * kWidth;
    const int scale = static_cast<const arrow::DecimalType&>(*array.type()).scale();
    if constexpr (kWidth == 32) {
      visit([raw](int64_t i) {
        return arrow::Decimal256(LoadLe<std::array<uint64_t, 4>>(raw + i * kWidth));
      }, scale);
    } else {
      using Stored = std::conditional_t<kWidth == 4, int32_t,
                                        std::conditional_t<kWidth == 8, int64_t, __int128>>;
      visit([raw](int64_t i) -> __int128 { return LoadLe<Stored>(raw + i * kWidth); }, scale);
    }
    return Status::OK();
  };
  switch (array.type_id()) {
    case arrow::Type::INT8: return values(std::type_identity<int8_t>{});
    case arrow::Type::INT16: return values(std::type_identity<int16_t>{});
    case arrow::Type::INT32: return values(std::type_identity<int32_t>{});
    case arrow::Type::INT64: return values(std::type_identity<int64_t>{});
    case arrow::Type::UINT8: return values(std::type_identity<uint8_t>{});
    case arrow::Type::UINT16: return values(std::type_identity<uint16_t>{});
    case arrow::Type::UINT32: return values(std::type_identity<uint32_t>{});
    case arrow::Type::UINT64: return values(std::type_identity<uint64_t>{});
    case arrow::Type::DECIMAL32: return decimals(std::integral_constant<int, 4>{});
    case arrow::Type::DECIMAL64: return decimals(std::integral_constant<int, 8>{});
    case arrow::Type::DECIMAL128: return decimals(std::integral_constant<int, 16>{});
    case arrow::Type::DECIMAL256: return decimals(std::integral_constant<int, 32>{});
    case arrow::Type::HALF_FLOAT: {
      const uint16_t* raw = RawValues<uint16_t>(array);
      visit([raw](int64_t i) { return arrow::util::Float16::FromBits(raw[i]).ToDouble(); }, 0);
      return Status::OK();
    }
    case arrow::Type::FLOAT: {
      const float* raw = RawValues<float>(array);
      visit([raw](int64_t i) { return static_cast<double>(raw[i]); }, 0);
      return Status::OK();
    }
    case arrow::Type::DOUBLE: {
      const double* raw = RawValues<double>(array);
      visit([raw](int64_t i) { return raw[i]; }, 0);
      return Status::OK();
    }
    default:
      return Unsupported("not a number", "got", array.type()->ToString());
  }
}

template <class Value>
std::optional<Number> ToNumber(Value value, int32_t scale) {
  if constexpr (std::is_same_v<Value, double>) {
    return NumberOfDouble(value);
  } else if constexpr (std::is_same_v<Value, arrow::Decimal256>) {
    return NumberOf(value, scale);
  } else {
    return NumberOf(static_cast<__int128>(value), scale);
  }
}

template <class Value>
std::optional<uint64_t> NumberWord(const KeyType& type, Value value, int32_t scale) {
  if constexpr (std::is_same_v<Value, double> || std::is_same_v<Value, arrow::Decimal256>) {
    const std::optional<Number> number = ToNumber(value, scale);
    if (!number) return std::nullopt;
    if (type.kind == kUInt64) return ToUInt64(*number);
    const std::optional<int64_t> word = ToInt64(*number, type.param);
    if (!word) return std::nullopt;
    return static_cast<uint64_t>(*word);
  } else if constexpr (std::is_same_v<Value, uint64_t>) {
    if (type.kind == kUInt64) return value;
    const auto word = Rescale128(static_cast<__int128>(value), 0, type.param);
    if (!word) return std::nullopt;
    return static_cast<uint64_t>(*word);
  } else {
    if (type.kind == kUInt64) return ToUInt64(NumberOf(static_cast<__int128>(value), scale));
    const auto wide = static_cast<__int128>(value);
    if (scale == type.param && wide == static_cast<int64_t>(wide)) {
      return static_cast<uint64_t>(wide);
    }
    const auto word = Rescale128(wide, scale, type.param);
    if (!word) return std::nullopt;
    return static_cast<uint64_t>(*word);
  }
}

Status EncodeNumberWords(const KeyType& type, const arrow::Array& array, Column* column) {
  const arrow::Type::type id = array.type_id();
  if (type.kind == kInt) {
    switch (id) {
      case arrow::Type::INT64: CopyWords<int64_t>(array, column); return Status::OK();
      case arrow::Type::INT32: CopyWords<int32_t>(array, column); return Status::OK();
      case arrow::Type::INT16: CopyWords<int16_t>(array, column); return Status::OK();
      case arrow::Type::INT8: CopyWords<int8_t>(array, column); return Status::OK();
      case arrow::Type::UINT32: CopyWords<uint32_t>(array, column); return Status::OK();
      case arrow::Type::UINT16: CopyWords<uint16_t>(array, column); return Status::OK();
      case arrow::Type::UINT8: CopyWords<uint8_t>(array, column); return Status::OK();
      default: break;
    }
  }
  if (type.kind == kUInt64 && id == arrow::Type::UINT64) {
    CopyWords<uint64_t>(array, column);
    return Status::OK();
  }
  return VisitNumbers(array, [&](auto value_of, int32_t scale) {
    FillWords(array, column, [&](int64_t i) { return NumberWord(type, value_of(i), scale); });
  });
}

double NearestDouble(const Number& number) {
  const std::string text =
      number.coefficient.ToIntegerString() + "e" + std::to_string(number.exponent);
  double nearest = std::numeric_limits<double>::quiet_NaN();
  std::from_chars(text.data(), text.data() + text.size(), nearest);
  return nearest;
}

Status EncodeFloats(const arrow::Array& array, Column* column) {
  return VisitNumbers(array, [&](auto value_of, int32_t scale) {
    using Value = decltype(value_of(0));
    if constexpr (std::is_same_v<Value, double>) {
      FillWords(array, column, [&](int64_t i) { return CanonicalDouble(value_of(i)); });
    } else {
      // Only queries come here: a number that no double equals is absent.
      FillWords(array, column, [&](int64_t i) -> std::optional<uint64_t> {
        const std::optional<Number> number = ToNumber(value_of(i), scale);
        const double nearest = NearestDouble(*number);
        const std::optional<Number> back = NumberOfDouble(nearest);
        if (!back || back->coefficient != number->coefficient ||
            back->exponent != number->exponent) {
          return std::nullopt;
        }
        return CanonicalDouble(nearest);
      });
    }
  });
}

// Ends the arena: turns its offsets into views.
void AdoptArena(std::string arena, const std::vector<size_t>& ends, Column* column) {
  auto held = std::make_shared<const std::string>(std::move(arena));
  column->payloads.resize(ends.size());
  size_t begin = 0;
  for (size_t i = 0; i < ends.size(); ++i) {
    column->payloads[i] = std::string_view(*held).substr(begin, ends[i] - begin);
    begin = ends[i];
  }
  column->arena = std::move(held);
}

Status EncodeDecimals(const arrow::Array& array, Column* column) {
  column->is_word = false;
  std::string arena;
  size_t used = 0;
  std::vector<size_t> ends(static_cast<size_t>(array.length()));
  column->payloads.resize(ends.size());
  ARROW_RETURN_NOT_OK(VisitNumbers(array, [&](auto value_of, int32_t scale) {
    using Value = decltype(value_of(0));
    for (int64_t i = 0; i < array.length(); ++i) {
      if (column->nulls.empty() || !column->nulls[i]) {
        if (arena.size() < used + kPayloadBytesMax) {
          arena.resize(arena.size() * 2 + ends.size() * 8 + kPayloadBytesMax);
        }
        auto* const begin = reinterpret_cast<uint8_t*>(arena.data());
        if constexpr (std::is_same_v<Value, double> || std::is_same_v<Value, arrow::Decimal256>) {
          const std::optional<Number> number = ToNumber(value_of(i), scale);
          if (number) {
            used = static_cast<size_t>(PutPayload(*number, begin + used) - begin);
          } else {
            MarkBad(column, i);
          }
        } else {
          used = static_cast<size_t>(
              PutPayload(static_cast<__int128>(value_of(i)), scale, begin + used) - begin);
        }
      }
      ends[i] = used;
    }
  }));
  arena.resize(used);
  AdoptArena(std::move(arena), ends, column);
  return Status::OK();
}

template <class ArrayType>
void TakeViews(const std::shared_ptr<arrow::Array>& array, Column* column) {
  const auto& typed = static_cast<const ArrayType&>(*array);
  column->is_word = false;
  column->held = array;
  column->payloads.resize(static_cast<size_t>(array->length()));
  for (int64_t i = 0; i < array->length(); ++i) {
    if (column->nulls.empty() || !column->nulls[i]) column->payloads[i] = typed.GetView(i);
  }
}

Status EncodeBytes(const std::shared_ptr<arrow::Array>& array, Column* column) {
  switch (array->type_id()) {
    case arrow::Type::STRING:
    case arrow::Type::BINARY:
      TakeViews<arrow::BinaryArray>(array, column);
      return Status::OK();
    case arrow::Type::LARGE_STRING:
    case arrow::Type::LARGE_BINARY:
      TakeViews<arrow::LargeBinaryArray>(array, column);
      return Status::OK();
    case arrow::Type::STRING_VIEW:
    case arrow::Type::BINARY_VIEW:
      TakeViews<arrow::BinaryViewArray>(array, column);
      return Status::OK();
    case arrow::Type::FIXED_SIZE_BINARY:
      TakeViews<arrow::FixedSizeBinaryArray>(array, column);
      return Status::OK();
    default:
      return Unsupported("not bytes", "got", array->type()->ToString());
  }
}

void EncodeDates(const arrow::Array& array, Column* column) {
  if (array.type_id() == arrow::Type::DATE32) return CopyWords<int32_t>(array, column);
  constexpr int64_t kMsPerDay = 86400000;
  const int64_t* raw = RawValues<int64_t>(array);
  FillWords(array, column, [&](int64_t i) -> std::optional<uint64_t> {
    if (raw[i] % kMsPerDay != 0) return std::nullopt;
    return static_cast<uint64_t>(raw[i] / kMsPerDay);
  });
}

// Queries only: decimals as seconds since 1970.
Status EncodeSeconds(const KeyType& type, const arrow::Array& array, Column* column) {
  constexpr int32_t kDigits[] = {0, 3, 6, 9};
  column->is_word = type.kind == kTimestamp;
  std::string arena;
  std::vector<size_t> ends(static_cast<size_t>(array.length()));
  (column->is_word ? column->words.resize(ends.size()) : column->payloads.resize(ends.size()));
  ARROW_RETURN_NOT_OK(VisitNumbers(array, [&](auto value_of, int32_t scale) {
    for (int64_t i = 0; i < array.length(); ++i) {
      ends[i] = arena.size();
      if (!column->nulls.empty() && column->nulls[i]) continue;
      const std::optional<Number> number = ToNumber(value_of(i), scale);
      const auto units = number && column->is_word ? ToInt64(*number, kDigits[type.param])
                                                   : std::optional<int64_t>();
      const auto parts = number && !column->is_word ? ToSeconds(*number)
                                                    : std::optional<std::pair<int64_t, uint32_t>>();
      if (units) {
        column->words[i] = static_cast<uint64_t>(*units);
      } else if (parts) {
        PutFixed<int64_t>(&arena, parts->first);
        PutFixed<uint32_t>(&arena, parts->second);
        ends[i] = arena.size();
      } else {
        MarkBad(column, i);
      }
    }
  }));
  if (!column->is_word) AdoptArena(std::move(arena), ends, column);
  return Status::OK();
}

// Time, timestamp, duration: from the array's unit to the key's.
void EncodeUnits(const KeyType& type, int unit, const arrow::Array& array, Column* column) {
  const bool narrow = array.type_id() == arrow::Type::TIME32;
  if (unit == type.param) {
    return narrow ? CopyWords<int32_t>(array, column) : CopyWords<int64_t>(array, column);
  }
  const auto value_of = [&](int64_t i) -> int64_t {
    return narrow ? RawValues<int32_t>(array)[i] : RawValues<int64_t>(array)[i];
  };
  const bool finer = type.param > unit;
  const int64_t factor = finer ? kUnitsPerSecond[type.param] / kUnitsPerSecond[unit]
                               : kUnitsPerSecond[unit] / kUnitsPerSecond[type.param];
  FillWords(array, column, [&](int64_t i) -> std::optional<uint64_t> {
    const int64_t value = value_of(i);
    if (!finer) {
      if (value % factor != 0) return std::nullopt;
      return static_cast<uint64_t>(value / factor);
    }
    int64_t scaled = 0;
    if (__builtin_mul_overflow(value, factor, &scaled)) return std::nullopt;
    return static_cast<uint64_t>(scaled);
  });
}

void EncodeInstants(int unit, const arrow::Array& array, Column* column) {
  column->is_word = false;
  const int64_t* raw = RawValues<int64_t>(array);
  const int64_t per_second = kUnitsPerSecond[unit];
  std::string arena;
  std::vector<size_t> ends(static_cast<size_t>(array.length()));
  for (int64_t i = 0; i < array.length(); ++i) {
    if (column->nulls.empty() || !column->nulls[i]) {
      int64_t seconds = raw[i] / per_second;
      int64_t rest = raw[i] % per_second;
      if (rest < 0) {
        rest += per_second;
        --seconds;
      }
      PutFixed<int64_t>(&arena, seconds);
      PutFixed<uint32_t>(&arena, static_cast<uint32_t>(rest * (kUnitsPerSecond[3] / per_second)));
    }
    ends[i] = arena.size();
  }
  AdoptArena(std::move(arena), ends, column);
}

void EncodeBools(const arrow::Array& array, Column* column) {
  const auto& bools = static_cast<const arrow::BooleanArray&>(array);
  FillWords(array, column, [&](int64_t i) { return static_cast<uint64_t>(bools.Value(i)); });
}

Result<Column> EncodeDictionary(const KeyType& type, const arrow::DictionaryArray& array,
                                bool query) {
  ARROW_ASSIGN_OR_RAISE(const Column values, EncodeColumn(type, array.dictionary(), query));
  const int64_t value_count = values.count();
  Column column;
  column.is_word = values.is_word;
  column.held = array.dictionary();
  column.arena = values.arena;
  if (values.held != nullptr) column.held = values.held;
  const auto count = static_cast<size_t>(array.length());
  (column.is_word ? column.words.resize(count) : column.payloads.resize(count));
  CopyNulls(*array.indices(), &column);
  for (int64_t i = 0; i < array.length(); ++i) {
    if (!column.nulls.empty() && column.nulls[i]) continue;
    const int64_t index = array.GetValueIndex(i);
    if (index < 0 || index >= value_count) {
      return Corrupt("dictionary index out of range", "row", i, "index", index, "values",
                     value_count);
    }
    if (!values.nulls.empty() && values.nulls[index]) {
      if (column.nulls.empty()) column.nulls.resize(count, 0);
      column.nulls[i] = 1;
      continue;
    }
    if (!values.bad.empty() && values.bad[index]) MarkBad(&column, i);
    if (column.is_word) {
      column.words[i] = values.words[index];
    } else {
      column.payloads[i] = values.payloads[index];
    }
  }
  return column;
}

// Whether values of `from` may be compared with keys of `type`.
bool Compares(const KeyType& type, const KeyType& from, bool query) {
  if (KeyType::Unify(type, from).ok()) return true;
  if (!query) return false;
  if (IsTimestamp(type)) return from.kind == kDecimal || from.kind == kDecimal64;
  const auto number = [](const KeyType& t) { return IsNumber(t.kind) || t.kind == kFloat; };
  return number(type) && number(from);
}

Column AllNull(const KeyType& type, int64_t count) {
  Column column;
  column.is_word = type.fits_word();
  column.nulls.assign(static_cast<size_t>(count), 1);
  (column.is_word ? column.words.resize(column.nulls.size())
                  : column.payloads.resize(column.nulls.size()));
  return column;
}

}  // namespace

Result<Column> EncodeColumn(const KeyType& type, const std::shared_ptr<arrow::Array>& array,
                            bool query) {
  if (array->type_id() == arrow::Type::NA) return AllNull(type, array->length());
  if (array->type_id() == arrow::Type::EXTENSION) {
    return EncodeColumn(type, static_cast<const arrow::ExtensionArray&>(*array).storage(), query);
  }
  ARROW_ASSIGN_OR_RAISE(const KeyType from, KeyType::FromArrow(*array->type()));
  if (!Compares(type, from, query)) return Mismatch(type, *array->type());
  if (array->type_id() == arrow::Type::DICTIONARY) {
    return EncodeDictionary(type, static_cast<const arrow::DictionaryArray&>(*array), query);
  }
  Column column;
  CopyNulls(*array, &column);
  if (IsTimestamp(type) && !IsTimestamp(from)) {
    ARROW_RETURN_NOT_OK(EncodeSeconds(type, *array, &column));
    return column;
  }
  switch (type.kind) {
    case kInt:
    case kUInt64:
    case kDecimal64:
      ARROW_RETURN_NOT_OK(EncodeNumberWords(type, *array, &column));
      break;
    case kDecimal:
      ARROW_RETURN_NOT_OK(EncodeDecimals(*array, &column));
      break;
    case kFloat:
      ARROW_RETURN_NOT_OK(EncodeFloats(*array, &column));
      break;
    case kString:
    case kBinary:
    case kUuid:
      ARROW_RETURN_NOT_OK(EncodeBytes(array, &column));
      break;
    case kDate:
      EncodeDates(*array, &column);
      break;
    case kTime:
    case kTimestamp:
    case kDuration:
      EncodeUnits(type, from.param, *array, &column);
      break;
    case kTimestampMixed:
      EncodeInstants(from.param, *array, &column);
      break;
    case kBool:
      EncodeBools(*array, &column);
      break;
    default:
      return Mismatch(type, *array->type());
  }
  return column;
}

}  // namespace grebe::key::internal

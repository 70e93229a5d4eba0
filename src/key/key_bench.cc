// Cost of making canonical keys, per row.
#include <arrow/array/builder_binary.h>
#include <arrow/array/builder_decimal.h>
#include <arrow/array/builder_primitive.h>
#include <benchmark/benchmark.h>

#include "base/rng.h"
#include "key/key.h"

namespace grebe::key {
namespace {

constexpr int64_t kRows = 1 << 16;

using Columns = std::vector<std::shared_ptr<arrow::Array>>;

std::shared_ptr<arrow::Array> Int64s() {
  Rng rng(1);
  arrow::Int64Builder builder;
  for (int64_t i = 0; i < kRows; ++i) (void)builder.Append(static_cast<int64_t>(rng.Next()));
  return builder.Finish().ValueOrDie();
}

std::shared_ptr<arrow::Array> Strings() {
  Rng rng(2);
  arrow::StringBuilder builder;
  for (int64_t i = 0; i < kRows; ++i) (void)builder.Append("user-" + std::to_string(rng.Next()));
  return builder.Finish().ValueOrDie();
}

std::shared_ptr<arrow::Array> Decimals(int precision) {
  Rng rng(3);
  arrow::Decimal128Builder builder(arrow::decimal128(precision, 2));
  for (int64_t i = 0; i < kRows; ++i) {
    (void)builder.Append(arrow::Decimal128(static_cast<int64_t>(rng.Below(1ULL << 50))));
  }
  return builder.Finish().ValueOrDie();
}

std::shared_ptr<arrow::Array> Doubles() {
  Rng rng(4);
  arrow::DoubleBuilder builder;
  for (int64_t i = 0; i < kRows; ++i) (void)builder.Append(rng.Fraction());
  return builder.Finish().ValueOrDie();
}

void Run(benchmark::State& state, const Columns& columns) {
  std::vector<KeyType> types;
  for (const auto& column : columns) {
    types.push_back(KeyType::FromArrow(*column->type()).ValueOrDie());
  }
  const KeyCodec codec(types);
  EncodedKeys keys;
  for (auto _ : state) {
    const Status status = codec.Encode(columns, &keys);
    if (!status.ok()) state.SkipWithError(status.ToString().c_str());
    benchmark::DoNotOptimize(keys.words.data());
  }
  state.SetItemsProcessed(state.iterations() * kRows);
}

void EncodeInt64(benchmark::State& state) { Run(state, {Int64s()}); }
void EncodeDouble(benchmark::State& state) { Run(state, {Doubles()}); }
void EncodeDecimalWord(benchmark::State& state) { Run(state, {Decimals(18)}); }
void EncodeDecimalWide(benchmark::State& state) { Run(state, {Decimals(38)}); }
void EncodeString(benchmark::State& state) { Run(state, {Strings()}); }
void EncodeComposite(benchmark::State& state) { Run(state, {Int64s(), Strings()}); }
BENCHMARK(EncodeInt64);
BENCHMARK(EncodeDouble);
BENCHMARK(EncodeDecimalWord);
BENCHMARK(EncodeDecimalWide);
BENCHMARK(EncodeString);
BENCHMARK(EncodeComposite);

}  // namespace
}  // namespace grebe::key

BENCHMARK_MAIN();

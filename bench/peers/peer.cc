#include "bench/peers/peer.h"

#include <arrow/status.h>
#include <time.h>

#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iostream>

namespace grebe::bench {
namespace {

constexpr uint64_t kFnvOffset = 0xCBF29CE484222325;
constexpr uint64_t kFnvPrime = 0x100000001B3;

uint64_t Fnv1a(uint64_t state, const void* data, size_t size) {
  for (const auto* byte = static_cast<const uint8_t*>(data); size > 0; --size, ++byte) {
    state = (state ^ *byte) * kFnvPrime;
  }
  return state;
}

template <typename T>
uint64_t AddFixed(uint64_t state, T value) {
  return Fnv1a(state, &value, sizeof value);
}

uint64_t AddText(uint64_t state, std::string_view text) {
  return Fnv1a(AddFixed(state, static_cast<uint32_t>(text.size())), text.data(), text.size());
}

arrow::Result<uint64_t> AddValue(uint64_t state, const arrow::Array& column, int64_t row) {
  switch (column.type_id()) {
    case arrow::Type::INT64:
    case arrow::Type::TIMESTAMP:  // the lake's are microseconds
      return AddFixed(state, static_cast<const arrow::Int64Array&>(column).Value(row));
    case arrow::Type::INT32:
      return AddFixed(
          state, static_cast<int64_t>(static_cast<const arrow::Int32Array&>(column).Value(row)));
    case arrow::Type::DOUBLE:
      return AddFixed(state, static_cast<const arrow::DoubleArray&>(column).Value(row));
    case arrow::Type::BOOL: {
      bool value = static_cast<const arrow::BooleanArray&>(column).Value(row);
      return AddFixed(state, static_cast<uint8_t>(value));
    }
    case arrow::Type::STRING:
      return AddText(state, static_cast<const arrow::StringArray&>(column).GetView(row));
    case arrow::Type::DICTIONARY: {
      const auto& coded = static_cast<const arrow::DictionaryArray&>(column);
      return AddValue(state, *coded.dictionary(), coded.GetValueIndex(row));
    }
    default:
      return arrow::Status::NotImplemented("no canonical bytes: type=", column.type()->ToString());
  }
}

arrow::Result<nlohmann::json> Answer(const nlohmann::json& request, const Lookup& lookup) {
  bool check = request.value("check", false);
  nlohmann::json lookups = nlohmann::json::array();
  uint64_t sum = 0;
  for (int64_t key : request.at("keys")) {
    int64_t start = MonotonicNs();
    ARROW_ASSIGN_OR_RAISE(auto rows, lookup(key));
    int64_t end = MonotonicNs();
    lookups.push_back({start, end, rows->num_rows()});
    if (check) {
      ARROW_ASSIGN_OR_RAISE(uint64_t rows_sum, RowChecksum(*rows));
      sum += rows_sum;
    }
  }
  char text[17];
  std::snprintf(text, sizeof text, "%016" PRIx64, sum);
  nlohmann::json answer = {{"lookups", lookups}, {"peak_rss_bytes", PeakRssBytes()}};
  answer["checksum"] = check ? nlohmann::json(text) : nlohmann::json(nullptr);
  return answer;
}

}  // namespace

arrow::Result<uint64_t> RowChecksum(const arrow::RecordBatch& rows) {
  uint64_t sum = 0;
  for (int64_t row = 0; row < rows.num_rows(); ++row) {
    uint64_t state = kFnvOffset;
    for (const auto& column : rows.columns()) {
      ARROW_ASSIGN_OR_RAISE(state, AddValue(state, *column, row));
    }
    sum += state;
  }
  return sum;
}

int64_t MonotonicNs() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1'000'000'000LL + now.tv_nsec;
}

int64_t PeakRssBytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("VmHWM:", 0) == 0) return std::stoll(line.substr(6)) * 1024;
  }
  return 0;
}

arrow::Status Serve(const std::string& version, double open_seconds, const Lookup& lookup,
                    const std::function<void(nlohmann::json*)>& extra) {
  nlohmann::json ready = {{"ready", true}, {"version", version}, {"open_seconds", open_seconds}};
  std::cout << ready.dump() << std::endl;
  for (std::string line; std::getline(std::cin, line);) {
    nlohmann::json request = nlohmann::json::parse(line);
    if (request.value("quit", false)) break;
    ARROW_ASSIGN_OR_RAISE(nlohmann::json answer, Answer(request, lookup));
    if (extra) extra(&answer);
    std::cout << answer.dump() << std::endl;
  }
  return arrow::Status::OK();
}

}  // namespace grebe::bench

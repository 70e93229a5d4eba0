// Grebe through its public API, as a peer among peers: `grebe_peer serve CONFIG`.
// CONFIG as in peer.py, and besides: index_root, name, and dictionary_bytes_max and page_bytes_max
// of the caches (defaults: the library's).

#include <cstdlib>
#include <iostream>

#include <arrow/array/builder_primitive.h>
#include <arrow/type.h>

#include "bench/peers/peer.h"
#include "grebe/lookup.h"
#include "grebe/version.h"

namespace {

using grebe::bench::MonotonicNs;

arrow::Result<std::shared_ptr<grebe::Index>> Open(const nlohmann::json& config) {
  grebe::IndexRef ref;
  ref.table_uri = config.at("table");
  ref.index_root = config.value("index_root", "");
  ref.name = config.value("name", "");
  if (config.contains("s3") && !config.at("s3").is_null()) {
    ref.connect.s3_endpoint = config.at("s3").at("endpoint");
    setenv("AWS_ACCESS_KEY_ID", config.at("s3").at("access_key").get<std::string>().c_str(), 1);
    setenv("AWS_SECRET_ACCESS_KEY", config.at("s3").at("secret_key").get<std::string>().c_str(), 1);
  }
  grebe::OpenOptions options;
  options.key = {config.at("key")};
  auto set = [&](const char* name, int64_t* field) { *field = config.value(name, *field); };
  set("dictionary_bytes_max", &options.cache.dictionary_bytes_max);
  set("page_bytes_max", &options.cache.page_bytes_max);
  return grebe::Index::Open(ref, options);
}

// What the lookups of one answer cost, summed, for its means and for where the time goes.
struct Costs {
  int64_t lookups = 0;
  int64_t waves_max = 0;
  grebe::Explain sum;

  void Add(const grebe::Explain& one) {
    ++lookups;
    waves_max = std::max(waves_max, one.waves);
    sum.requests += one.requests;
    sum.bytes_read += one.bytes_read;
    sum.gap_bytes += one.gap_bytes;
    sum.pages += one.pages;
    sum.dictionary_pages += one.dictionary_pages;
    sum.cache_hits += one.cache_hits;
    sum.stage_us.probe += one.stage_us.probe;
    sum.stage_us.plan += one.stage_us.plan;
    sum.stage_us.fetch += one.stage_us.fetch;
    sum.stage_us.decode += one.stage_us.decode;
    sum.stage_us.total += one.stage_us.total;
  }

  void Report(nlohmann::json* answer) const {
    auto mean = [&](int64_t total) {
      return static_cast<double>(total) / std::max<int64_t>(1, lookups);
    };
    (*answer)["explain"] = {
        {"waves_max", waves_max},
        {"requests_mean", mean(sum.requests)},
        {"bytes_mean", mean(sum.bytes_read)},
        {"gap_bytes_mean", mean(sum.gap_bytes)},
        {"pages_mean", mean(sum.pages)},
        {"dictionary_pages_mean", mean(sum.dictionary_pages)},
        {"cache_hits_mean", mean(sum.cache_hits)},
        {"stage_us_mean", {{"probe", mean(sum.stage_us.probe)}, {"plan", mean(sum.stage_us.plan)},
                           {"fetch", mean(sum.stage_us.fetch)},
                           {"decode", mean(sum.stage_us.decode)},
                           {"total", mean(sum.stage_us.total)}}}};
  }
};

arrow::Result<std::shared_ptr<arrow::RecordBatch>> OneKey(const std::string& column, int64_t key) {
  arrow::Int64Builder builder;
  ARROW_RETURN_NOT_OK(builder.Append(key));
  ARROW_ASSIGN_OR_RAISE(auto array, builder.Finish());
  return arrow::RecordBatch::Make(arrow::schema({arrow::field(column, arrow::int64())}), 1,
                                  {std::move(array)});
}

arrow::Status Run(const nlohmann::json& config) {
  int64_t start = MonotonicNs();
  ARROW_ASSIGN_OR_RAISE(auto index, Open(config));
  double open_seconds = (MonotonicNs() - start) / 1e9;
  std::string key_column = config.at("key");
  grebe::GetOptions get;
  get.columns = config.at("columns");
  Costs costs;
  auto lookup = [&](int64_t key) -> arrow::Result<std::shared_ptr<arrow::RecordBatch>> {
    ARROW_ASSIGN_OR_RAISE(auto keys, OneKey(key_column, key));
    ARROW_ASSIGN_OR_RAISE(auto result, index->Get(*keys, get));
    costs.Add(result.explain);
    return result.rows;
  };
  auto extra = [&](nlohmann::json* answer) {
    costs.Report(answer);
    costs = {};
  };
  return grebe::bench::Serve(grebe::Version(), open_seconds, lookup, extra);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3 || std::string(argv[1]) != "serve") {
    std::cerr << "usage: grebe_peer serve CONFIG\n";
    return 2;
  }
  arrow::Status status = Run(nlohmann::json::parse(argv[2]));
  if (!status.ok()) std::cerr << "grebe_peer: " << status.ToString() << "\n";
  return status.ok() ? 0 : 1;
}

// What a GET costs this process: CPU microseconds of ours beside Arrow's S3 filesystem, at 1 to
// 128 in flight. The server's own CPU is not counted; wall time is shown, but depends on it.
//
//   s3_bench [--endpoint URL --access-key K --secret-key S --bucket B] [--tiny]
//            [--in-flight N] [--bytes N] [--ours]
//
// Without an endpoint it starts SeaweedFS itself. Ours: waves of n ranges. Arrow: n threads, each
// with one ReadAt after another (its reads are synchronous), on a file opened with its size known.
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <thread>
#include <vector>

#include "base/rng.h"
#include "store/s3_sign.h"
#include "store/s3_store.h"
#include "testing/weed_server.h"

#ifdef GREBE_HAVE_ARROW_S3
#include <arrow/filesystem/s3fs.h>
#include <arrow/io/interfaces.h>
#endif

namespace grebe::store {
namespace {

constexpr int64_t kObjectBytes = 16 << 20;
constexpr char kKey[] = "bench/object";

struct Usage {
  double user_us = 0;
  double system_us = 0;
  double wall_us = 0;
};

Usage Now() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto us = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) * 1e6 + static_cast<double>(t.tv_usec);
  };
  return {us(usage.ru_utime), us(usage.ru_stime),
          std::chrono::duration<double, std::micro>(Clock::now().time_since_epoch()).count()};
}

struct Cost {
  double cpu_us = 0;
  double user_us = 0;
  double wall_us = 0;
};

// Per request, the least CPU of several rounds: what others do to the machine only adds.
Status Measure(int64_t requests, int rounds, const std::function<Status()>& run, Cost* best) {
  ARROW_RETURN_NOT_OK(run());  // connections, caches
  for (int round = 0; round < rounds; ++round) {
    const Usage before = Now();
    ARROW_RETURN_NOT_OK(run());
    const Usage after = Now();
    const auto n = static_cast<double>(requests);
    const Cost cost{(after.user_us - before.user_us + after.system_us - before.system_us) / n,
                    (after.user_us - before.user_us) / n, (after.wall_us - before.wall_us) / n};
    if (round == 0 || cost.cpu_us < best->cpu_us) *best = cost;
  }
  return Status::OK();
}

std::vector<int64_t> Offsets(int64_t count, int64_t size_bytes) {
  Rng rng(1);
  std::vector<int64_t> offsets;
  for (int64_t i = 0; i < count; ++i) {
    offsets.push_back(
        static_cast<int64_t>(rng.Below(static_cast<uint64_t>(kObjectBytes - size_bytes))));
  }
  return offsets;
}

Status RunOurs(Store* store, const std::shared_ptr<const Object>& object, int in_flight,
               int64_t size_bytes, const std::vector<int64_t>& offsets) {
  std::vector<ReadRequest> wave;
  for (size_t at = 0; at < offsets.size(); at += static_cast<size_t>(in_flight)) {
    wave.clear();
    const size_t end = std::min(offsets.size(), at + static_cast<size_t>(in_flight));
    for (size_t i = at; i < end; ++i) {
      wave.push_back({object, {offsets[i], offsets[i] + size_bytes}});
    }
    std::atomic<int> failed{0};
    store->ReadEach(wave, [&](size_t, Result<std::shared_ptr<arrow::Buffer>> answer) {
      if (!answer.ok()) ++failed;
    });
    if (failed != 0) return Transient("reads failed", "count", failed.load());
  }
  return Status::OK();
}

#ifdef GREBE_HAVE_ARROW_S3
Result<std::shared_ptr<arrow::io::RandomAccessFile>> OpenArrow(const StoreOptions& options,
                                                               const std::string& bucket) {
  arrow::fs::S3GlobalOptions global;
  global.log_level = arrow::fs::S3LogLevel::Off;
  ARROW_RETURN_NOT_OK(arrow::fs::InitializeS3(global));
  ARROW_RETURN_NOT_OK(arrow::io::SetIOThreadPoolCapacity(128));
  arrow::fs::S3Options s3 = arrow::fs::S3Options::FromAccessKey(options.s3_access_key_id,
                                                                options.s3_secret_access_key);
  const size_t scheme = options.s3_endpoint.find("://");
  s3.scheme = options.s3_endpoint.substr(0, scheme);
  s3.endpoint_override = options.s3_endpoint.substr(scheme + 3);
  s3.region = "us-east-1";
  ARROW_ASSIGN_OR_RAISE(const auto filesystem, arrow::fs::S3FileSystem::Make(s3));
  arrow::fs::FileInfo info(bucket + "/" + kKey, arrow::fs::FileType::File);
  info.set_size(kObjectBytes);
  return filesystem->OpenInputFile(info);
}

Status RunArrow(arrow::io::RandomAccessFile* file, int in_flight, int64_t size_bytes,
                const std::vector<int64_t>& offsets) {
  std::atomic<size_t> next{0};
  std::atomic<int> failed{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < in_flight; ++t) {
    threads.emplace_back([&] {
      for (size_t i = next++; i < offsets.size(); i = next++) {
        const auto got = file->ReadAt(offsets[i], size_bytes);
        if (!got.ok() || (*got)->size() != size_bytes) ++failed;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  if (failed != 0) return Transient("Arrow's reads failed", "count", failed.load());
  return Status::OK();
}
#endif

struct Plan {
  bool tiny = false;
  bool ours_only = false;
  std::vector<int> in_flight = {1, 8, 32, 128};
  std::vector<int64_t> sizes = {4 << 10, 64 << 10};
};

Status Run(const StoreOptions& options, const std::string& bucket, const Plan& plan) {
  ARROW_ASSIGN_OR_RAISE(const auto store, MakeS3Store(bucket, options, ProcessEnv()));
  std::string bytes(kObjectBytes, '\0');
  Rng rng(2);
  for (char& c : bytes) c = static_cast<char>(rng.Next());
  ARROW_ASSIGN_OR_RAISE(const Identity identity, store->Put(kKey, bytes, PutMode::kOverwrite));
  const auto object = std::make_shared<Object>(Object{kKey, identity});
#ifdef GREBE_HAVE_ARROW_S3
  std::shared_ptr<arrow::io::RandomAccessFile> arrow_file;
  if (!plan.ours_only) {
    ARROW_ASSIGN_OR_RAISE(arrow_file, OpenArrow(options, bucket));
  }
#endif
  std::printf("| bytes | in flight | ours: CPU us a GET (user) | Arrow: CPU us a GET (user) | "
              "Arrow / ours | ours: wall us | Arrow: wall us |\n|---|---|---|---|---|---|---|\n");
  for (const int64_t size_bytes : plan.sizes) {
    for (const int in_flight : plan.in_flight) {
      const int64_t count = plan.tiny ? in_flight : (in_flight == 1 ? 300 : 1024);
      const int rounds = plan.tiny ? 1 : 3;
      const std::vector<int64_t> offsets = Offsets(count, size_bytes);
      Cost ours;
      ARROW_RETURN_NOT_OK(Measure(
          count, rounds,
          [&] { return RunOurs(store.get(), object, in_flight, size_bytes, offsets); }, &ours));
      Cost theirs;
#ifdef GREBE_HAVE_ARROW_S3
      if (!plan.ours_only) {
        ARROW_RETURN_NOT_OK(Measure(
            count, rounds,
            [&] { return RunArrow(arrow_file.get(), in_flight, size_bytes, offsets); }, &theirs));
      }
#endif
      std::printf("| %lld | %d | %.1f (%.1f) | %.1f (%.1f) | %.1f | %.0f | %.0f |\n",
                  static_cast<long long>(size_bytes), in_flight, ours.cpu_us, ours.user_us,
                  theirs.cpu_us, theirs.user_us, theirs.cpu_us / ours.cpu_us, ours.wall_us,
                  theirs.wall_us);
      std::fflush(stdout);
    }
  }
  return Status::OK();
}

// Seconds of signing, alone.
void MeasureSigning() {
  const AwsCredentials keys{.access_key_id = "AKIDEXAMPLE", .secret_access_key = "secret"};
  const Signer signer("us-east-1", "s3");
  const std::string date = AmzDate(1700000000);
  const std::vector<std::pair<std::string_view, std::string_view>> headers = {
      {"host", "127.0.0.1:8333"}, {"x-amz-content-sha256", kEmptySha256Hex}, {"x-amz-date", date}};
  constexpr int kCount = 20000;
  const Usage before = Now();
  size_t sink = 0;
  for (int i = 0; i < kCount; ++i) {
    sink += signer
                .Authorization(keys,
                               {.method = "GET", .path = "/bucket/bench/object", .query = "",
                                .headers = headers, .payload_sha256_hex = kEmptySha256Hex},
                               date)
                .size();
  }
  const Usage after = Now();
  std::printf("\nsigning: %.2f us a request (%zu)\n", (after.user_us - before.user_us) / kCount,
              sink % 10);
}

int Main(int argc, char** argv) {
  std::map<std::string, std::string> flags;
  Plan plan;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--tiny") == 0) {
      plan.tiny = true;
    } else if (std::strcmp(argv[i], "--ours") == 0) {
      plan.ours_only = true;
    } else if (i + 1 < argc) {
      flags[argv[i]] = argv[i + 1];
      ++i;
    }
  }
  if (flags.contains("--in-flight")) plan.in_flight = {std::atoi(flags["--in-flight"].c_str())};
  if (flags.contains("--bytes")) plan.sizes = {std::atoll(flags["--bytes"].c_str())};
  StoreOptions options;
  options.s3_connections_max = 128;
  std::unique_ptr<testing::WeedServer> weed;
  std::string bucket = "bench";
  if (flags.contains("--endpoint")) {
    options.s3_endpoint = flags["--endpoint"];
    options.s3_access_key_id = flags["--access-key"];
    options.s3_secret_access_key = flags["--secret-key"];
    bucket = flags["--bucket"];
  } else {
    auto started = testing::WeedServer::Start();
    if (!started.ok()) {
      std::fprintf(stderr, "%s\n", started.status().ToString().c_str());
      return IsKind(started.status(), ErrorKind::kNotFound) ? 77 : 1;
    }
    weed = std::move(*started);
    options = weed->AdminOptions();
    options.s3_connections_max = 128;
    if (const Status made = weed->MakeBucket(bucket); !made.ok()) return 1;
  }
  const Status done = Run(options, bucket, plan);
  MeasureSigning();
  if (!done.ok()) std::fprintf(stderr, "%s\n", done.ToString().c_str());
#ifdef GREBE_HAVE_ARROW_S3
  (void)arrow::fs::EnsureS3Finalized();
#endif
  return done.ok() ? 0 : 1;
}

}  // namespace
}  // namespace grebe::store

int main(int argc, char** argv) { return grebe::store::Main(argc, argv); }

#include "testing/weed_server.h"

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>
#include <utility>
#include <vector>

#include "store/s3_client.h"

#ifndef GREBE_SOURCE_DIR
#define GREBE_SOURCE_DIR "."
#endif

namespace grebe::testing {
namespace {

namespace fs = std::filesystem;

constexpr char kConfig[] = R"({"identities": [
  {"name": "admin", "credentials": [{"accessKey": "adminkey", "secretKey": "adminsecret"}],
   "actions": ["Admin", "Read", "List", "Tagging", "Write"]},
  {"name": "reader", "credentials": [{"accessKey": "readerkey", "secretKey": "readersecret"}],
   "actions": ["Read", "List"]}]})";

Result<std::shared_ptr<store::S3Client>> ClientOf(const std::string& bucket,
                                                  const std::string& url) {
  ARROW_ASSIGN_OR_RAISE(auto transport, store::MakeCurlTransport({}));
  auto keys = std::make_unique<store::CredentialProvider>([]() -> Result<store::AwsCredentials> {
    return store::AwsCredentials{.access_key_id = "adminkey", .secret_access_key = "adminsecret"};
  });
  return std::make_shared<store::S3Client>(
      bucket,
      store::S3Settings{.region = "us-east-1", .endpoint = url, .path_style = true, .ca_file = ""},
      store::S3ClientOptions{}, std::move(transport), std::move(keys));
}

}  // namespace

Result<std::unique_ptr<WeedServer>> WeedServer::Start(const Options& options) {
  const char* const given = std::getenv("GREBE_WEED");
  const std::string program = given != nullptr ? given : GREBE_SOURCE_DIR "/.venv/bin/weed";
  if (!fs::exists(program)) return NotFound("no SeaweedFS", "program", program);
  std::unique_ptr<WeedServer> server(new WeedServer);
  std::string pattern = (fs::temp_directory_path() / "grebe_weed_XXXXXX").string();
  server->folder_ = ::mkdtemp(pattern.data());
  ARROW_RETURN_NOT_OK(server->Launch(program, options));
  ARROW_RETURN_NOT_OK(server->WaitUntilUp());
  return server;
}

// A certificate for 127.0.0.1, by the openssl command.
Status WeedServer::MakeCertificate() {
  ca_file_ = folder_ + "/cert.pem";
  const std::string command =
      "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=127.0.0.1 -addext "
      "subjectAltName=IP:127.0.0.1 -keyout " +
      folder_ + "/key.pem -out " + ca_file_ + " >/dev/null 2>&1";
  if (std::system(command.c_str()) != 0) return NotFound("no openssl command");
  return Status::OK();
}

Status WeedServer::Launch(const std::string& program, const Options& options) {
  std::ofstream(folder_ + "/s3.json") << kConfig;
  fs::create_directory(folder_ + "/data");
  const std::vector<int> ports = FreePorts(7);
  port_ = ports[3];
  const auto port = [&](const char* name, size_t i) {
    return std::string("-") + name + "=" + std::to_string(ports[i]);
  };
  std::vector<std::string> words = {program,
                                    "server",
                                    "-dir=" + folder_ + "/data",
                                    "-ip=127.0.0.1",
                                    "-ip.bind=127.0.0.1",
                                    port("master.port", 0),
                                    "-master.telemetry=false",
                                    "-master.volumeSizeLimitMB=128",
                                    port("volume.port", 1),
                                    "-volume.max=40",
                                    port("filer.port", 2),
                                    "-s3",
                                    port("s3.port", 3),
                                    port("s3.port.iceberg", 4),
                                    port("s3.port.lance", 5),
                                    "-s3.config=" + folder_ + "/s3.json"};
  if (options.tls) {
    ARROW_RETURN_NOT_OK(MakeCertificate());
    tls_port_ = ports[6];
    words.push_back(port("s3.port.https", 6));
    words.push_back("-s3.cert.file=" + ca_file_);
    words.push_back("-s3.key.file=" + folder_ + "/key.pem");
  }
  ARROW_ASSIGN_OR_RAISE(process_, ChildProcess::Start(std::move(words), folder_ + "/log"));
  return Status::OK();
}

Status WeedServer::WaitUntilUp() {
  ARROW_ASSIGN_OR_RAISE(const auto transport, store::MakeCurlTransport({}));
  const auto deadline = store::Clock::now() + std::chrono::seconds(60);
  while (store::Clock::now() < deadline) {
    if (!process_->running()) return Transient("SeaweedFS ended by itself");
    if (MakeBucket("warmup").ok()) {
      const auto location = store::OpenLocation("s3://warmup/x", AdminOptions());
      if (location.ok() &&
          location->store->Put("x", "x", store::PutMode::kOverwrite).ok()) {
        return Status::OK();
      }
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
  return Transient("SeaweedFS does not come up");
}

WeedServer::~WeedServer() {
  process_.reset();
  std::error_code ignored;
  if (!folder_.empty()) fs::remove_all(folder_, ignored);
}

store::StoreOptions WeedServer::AdminOptions() const {
  store::StoreOptions options;
  options.s3_endpoint = url();
  options.s3_access_key_id = "adminkey";
  options.s3_secret_access_key = "adminsecret";
  return options;
}

store::StoreOptions WeedServer::ReaderOptions() const {
  store::StoreOptions options = AdminOptions();
  options.s3_access_key_id = "readerkey";
  options.s3_secret_access_key = "readersecret";
  return options;
}

Status WeedServer::MakeBucket(const std::string& bucket) {
  ARROW_ASSIGN_OR_RAISE(const auto client, ClientOf(bucket, url()));
  store::S3Call call;
  call.kind = store::S3Kind::kPut;
  call.method = "PUT";
  call.body = std::make_shared<const std::string>();
  return client->Run(&call).status();
}

}  // namespace grebe::testing

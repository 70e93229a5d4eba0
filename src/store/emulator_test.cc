// GCS and Azure through Arrow, against fake-gcs-server and Azurite. GREBE_FAKE_GCS and
// GREBE_AZURITE name the programs (default: fake-gcs-server and azurite-blob on the PATH).
#include <arrow/filesystem/azurefs.h>
#include <arrow/filesystem/gcsfs.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "store/arrow_store.h"
#include "testing/child_process.h"
#include "testing/store_conformance.h"

namespace grebe::store {
namespace {

using testing::ChildProcess;

// The program's path; "" when it is not installed.
std::string Program(const char* variable, const std::string& name) {
  if (const char* const given = ::getenv(variable)) return given;
  const char* const path = ::getenv("PATH");
  std::string rest = path == nullptr ? "" : path;
  while (!rest.empty()) {
    const size_t colon = std::min(rest.find(':'), rest.size());
    const std::string candidate = rest.substr(0, colon) + "/" + name;
    if (::access(candidate.c_str(), X_OK) == 0) return candidate;
    rest = colon == rest.size() ? "" : rest.substr(colon + 1);
  }
  return "";
}

class EmulatorTest : public ::testing::Test {
 protected:
  EmulatorTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "grebe_emul_XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
  }
  ~EmulatorTest() override {
    process_.reset();
    std::filesystem::remove_all(folder_);
  }

  void StartProgram(std::vector<std::string> words) {
    auto started = ChildProcess::Start(std::move(words), folder_ + "/log");
    ASSERT_TRUE(started.ok()) << started.status();
    process_ = std::move(*started);
  }
  // Writes past the store, which only reads.
  Status Write(const std::string& path, const std::string& bytes) {
    ARROW_ASSIGN_OR_RAISE(const auto out, filesystem_->OpenOutputStream("bucket/" + path));
    ARROW_RETURN_NOT_OK(out->Write(bytes));
    return out->Close();
  }
  void MakeBucket() {
    Status made;
    for (int i = 0; i < 100; ++i) {
      made = filesystem_->CreateDir("bucket");
      if (made.ok()) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
    }
    FAIL() << made;
  }
  void ReadsArePinned();

  std::string folder_;
  std::unique_ptr<ChildProcess> process_;
  std::shared_ptr<arrow::fs::FileSystem> filesystem_;
  std::shared_ptr<Store> store_;
};

void EmulatorTest::ReadsArePinned() {
  const std::string bytes = testing::PatternBytes(300000, 3);
  ASSERT_TRUE(Write("lake/a/1.parquet", bytes).ok());
  ASSERT_TRUE(Write("lake/b", "second").ok());
  ASSERT_TRUE(Write("other", "x").ok());
  const auto listed = store_->List("lake/");
  ASSERT_TRUE(listed.ok()) << listed.status();
  ASSERT_EQ(listed->size(), 2u);
  EXPECT_EQ((*listed)[0].path, "lake/a/1.parquet");
  EXPECT_EQ((*listed)[0].identity.size_bytes, 300000);
  const auto stat = store_->Stat("lake/a/1.parquet");
  ASSERT_TRUE(stat.ok()) << stat.status();
  EXPECT_EQ(*stat, (*listed)[0]);
  EXPECT_TRUE(IsKind(store_->Stat("lake/none").status(), ErrorKind::kNotFound));

  const auto a = std::make_shared<Object>((*listed)[0]);
  const auto b = std::make_shared<Object>((*listed)[1]);
  const auto missing = std::make_shared<Object>(Object{"missing", b->identity});
  const auto unpinned = std::make_shared<Object>(Object{"lake/b", {}});
  const std::vector<ReadRequest> requests = {{a, {100000, 250000}}, {b, {0, 6}},  {a, {5, 6}},
                                             {b, {4, 7}},           {a, {9, 9}},  {missing, {0, 1}},
                                             {unpinned, {3, 6}},    {unpinned, {3, 7}}};
  std::vector<Result<std::shared_ptr<arrow::Buffer>>> got(requests.size(),
                                                          Status::UnknownError("no call"));
  store_->ReadEach(requests, [&](size_t i, auto answer) { got[i] = std::move(answer); });
  ASSERT_TRUE(got[0].ok()) << got[0].status();
  EXPECT_TRUE((*got[0])->ToString() == bytes.substr(100000, 150000));
  ASSERT_TRUE(got[1].ok()) << got[1].status();
  EXPECT_EQ((*got[1])->ToString(), "second");
  ASSERT_TRUE(got[2].ok()) << got[2].status();
  EXPECT_TRUE(IsKind(got[3].status(), ErrorKind::kCorrupt)) << got[3].status();
  ASSERT_TRUE(got[4].ok()) << got[4].status();
  EXPECT_TRUE(IsKind(got[5].status(), ErrorKind::kNotFound)) << got[5].status();
  ASSERT_TRUE(got[6].ok()) << got[6].status();
  EXPECT_EQ((*got[6])->ToString(), "ond");
  EXPECT_TRUE(IsKind(got[7].status(), ErrorKind::kCorrupt)) << got[7].status();

  std::this_thread::sleep_for(std::chrono::milliseconds(1100));  // Azure's clock
  ASSERT_TRUE(Write("lake/b", "SECOND").ok());
  const auto stale = store_->Read(std::span(requests).subspan(1, 1));
  EXPECT_TRUE(IsKind(stale.status(), ErrorKind::kStale)) << stale.status();
  const std::vector<std::string> paths = {"lake/b", "lake/none"};
  const auto whole = store_->ReadWhole(paths);
  ASSERT_TRUE(whole[0].ok()) << whole[0].status();
  EXPECT_EQ(whole[0]->bytes->ToString(), "SECOND");
  EXPECT_TRUE(IsKind(whole[1].status(), ErrorKind::kNotFound)) << whole[1].status();
  EXPECT_TRUE(IsKind(store_->Put("x", "y", PutMode::kIfAbsent).status(),
                     ErrorKind::kUnsupported));
}

TEST_F(EmulatorTest, Gcs) {
  const std::string program = Program("GREBE_FAKE_GCS", "fake-gcs-server");
  if (program.empty()) GTEST_SKIP() << "fake-gcs-server is not installed";
  const std::string port = std::to_string(testing::FreePorts(1)[0]);
  StartProgram({program, "-scheme", "http", "-host", "127.0.0.1", "-port", port, "-backend",
                "memory", "-public-host", "127.0.0.1:" + port});
  arrow::fs::GcsOptions options = arrow::fs::GcsOptions::Anonymous();
  options.scheme = "http";
  options.endpoint_override = "127.0.0.1:" + port;
  options.project_id = "test";
  options.retry_limit_seconds = 2;
  filesystem_ = *arrow::fs::GcsFileSystem::Make(options);
  MakeBucket();
  const EnvLookup env = [&](const char* name) -> std::optional<std::string> {
    if (std::string_view(name) == "STORAGE_EMULATOR_HOST") return "http://127.0.0.1:" + port;
    return std::nullopt;
  };
  StoreOptions quick;
  quick.request_timeout_ms = 3000;
  quick.retries_max = 0;
  store_ = *MakeGcsStore("bucket", quick, env);
  ReadsArePinned();
  EXPECT_EQ(store_->Uri("lake/b"), "gs://bucket/lake/b");
}

TEST_F(EmulatorTest, Azure) {
  const std::string program = Program("GREBE_AZURITE", "azurite-blob");
  if (program.empty()) GTEST_SKIP() << "Azurite is not installed";
  const std::string port = std::to_string(testing::FreePorts(1)[0]);
  StartProgram({program, "--blobHost", "127.0.0.1", "--blobPort", port, "--location", folder_,
                "--silent", "--skipApiVersionCheck"});
  // Azurite's well-known account.
  const std::string key =
      "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";
  arrow::fs::AzureOptions options;
  options.account_name = "devstoreaccount1";
  options.blob_storage_authority = options.dfs_storage_authority = "127.0.0.1:" + port;
  options.blob_storage_scheme = options.dfs_storage_scheme = "http";
  ASSERT_TRUE(options.ConfigureAccountKeyCredential(key).ok());
  filesystem_ = *arrow::fs::AzureFileSystem::Make(options);
  MakeBucket();
  const std::string connection = "AccountName=devstoreaccount1;AccountKey=" + key +
                                 ";BlobEndpoint=http://127.0.0.1:" + port + "/devstoreaccount1;";
  const EnvLookup env = [&](const char* name) -> std::optional<std::string> {
    if (std::string_view(name) == "AZURE_STORAGE_CONNECTION_STRING") return connection;
    return std::nullopt;
  };
  store_ = *MakeAzureStore("bucket", {}, env);
  ReadsArePinned();
  EXPECT_EQ(store_->Uri("lake/b"), "abfs://bucket/lake/b");
}

TEST(AzureStoreTest, MalformedAuthorities) {
  const EnvLookup none = [](const char*) -> std::optional<std::string> { return std::nullopt; };
  EXPECT_TRUE(IsKind(MakeAzureStore("container", {}, none).status(),
                     ErrorKind::kInvalidArgument));
  EXPECT_TRUE(IsKind(MakeAzureStore("c@host.example", {}, none).status(),
                     ErrorKind::kInvalidArgument));
}

}  // namespace
}  // namespace grebe::store

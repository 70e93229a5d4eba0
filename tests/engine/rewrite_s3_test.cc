// A rewrite from S3 to S3 whose every request fails in its turn: a typed error, a source as it was,
// and the same call goes on to the right rows. The store is a fake: tests/rewrite/s3.py has a real
// server.
#include <arrow/compute/api.h>
#include <arrow/compute/initialize.h>
#include <arrow/table.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>

#include "base/status.h"
#include "grebe/rewrite.h"
#include "grebe/scan.h"
#include "testing/fake_s3.h"
#include "testing/table_builder.h"

namespace grebe {
namespace {

using testing::FakeReply;
using testing::FakeRequest;
using testing::FakeS3;

constexpr int kFiles = 3;
constexpr int64_t kRowsPerFile = 400;

class RewriteS3Test : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(arrow::compute::Initialize().ok());
    fake_ = FakeS3::Start();
    ASSERT_NE(fake_, nullptr);
    std::vector<std::shared_ptr<arrow::Table>> tables;
    for (int file = 0; file < kFiles; ++file) {
      tables.push_back(testing::PlayEvents(kRowsPerFile, 30, 100 + static_cast<uint64_t>(file)));
      bytes_.push_back(testing::ParquetBytes(*tables.back()).ValueOrDie());
      fake_->Put(SourceKey(file), bytes_.back());
    }
    expected_ = Sorted(arrow::ConcatenateTables(tables).ValueOrDie());
  }

  static std::string SourceKey(int file) { return "table/f" + std::to_string(file) + ".parquet"; }

  ConnectOptions Connect() const {
    ConnectOptions connect;
    connect.s3_endpoint = fake_->url();
    connect.retries_max = 0;
    return connect;
  }

  Result<RewriteSummary> Rewrite(const std::string& to) const {
    RewriteRequest request;
    request.table_uri = "s3://bucket/table";
    request.to_uri = "s3://bucket/" + to;
    request.connect = Connect();
    request.layout.by = "sort(user_id,ts)";
    request.sizes.target_file_rows = 300;
    request.index_key = {"user_id"};
    request.run.threads = 1;
    return RewriteTable(request);
  }

  static std::shared_ptr<arrow::Table> Sorted(const std::shared_ptr<arrow::Table>& rows) {
    const arrow::compute::SortOptions by({arrow::compute::SortKey("user_id"),
                                          arrow::compute::SortKey("ts"),
                                          arrow::compute::SortKey("title"),
                                          arrow::compute::SortKey("score")});
    const auto order = arrow::compute::SortIndices(arrow::Datum(rows), by).ValueOrDie();
    return arrow::compute::Take(arrow::Datum(rows), arrow::Datum(order)).ValueOrDie().table()
        ->CombineChunks().ValueOrDie();
  }

  void ExpectWhole(const std::string& to) const {
    IndexRef ref;
    ref.table_uri = "s3://bucket/" + to;
    ref.connect = Connect();
    auto scan = Scan::Open(ref);
    ASSERT_TRUE(scan.ok()) << scan.status();
    arrow::RecordBatchVector batches;
    while (true) {
      auto batch = (*scan)->Next();
      ASSERT_TRUE(batch.ok()) << batch.status();
      if (*batch == nullptr) break;
      batches.push_back(*batch);
    }
    const auto rows = arrow::Table::FromRecordBatches((*scan)->schema(), batches).ValueOrDie();
    EXPECT_TRUE(Sorted(rows)->ReplaceSchemaMetadata(nullptr)->Equals(
        *expected_->ReplaceSchemaMetadata(nullptr)));
    const auto index = ShowIndex(ref);
    ASSERT_TRUE(index.ok()) << index.status();
    EXPECT_EQ(index->rows, kFiles * kRowsPerFile);
    for (int file = 0; file < kFiles; ++file) {
      EXPECT_EQ(fake_->Get(SourceKey(file)), bytes_[static_cast<size_t>(file)]);
    }
  }

  // Every request of a rewrite in its turn is answered by 503. done: although it is carried out.
  void FailEveryRequestInTurn(const std::string& prefix, bool done) {
    int failures = 0;
    for (int64_t nth = 1;; ++nth) {
      const std::string to = prefix + std::to_string(nth);
      auto count = std::make_shared<std::atomic<int64_t>>(0);
      fake_->set_fault([=](const FakeRequest&) -> std::optional<FakeS3::Fault> {
        if (count->fetch_add(1) + 1 != nth) return std::nullopt;
        FakeReply reply;
        reply.status = 503;
        return FakeS3::Fault{reply, done};
      });
      const auto summary = Rewrite(to);
      const bool reached = count->load() >= nth;
      fake_->set_fault({});
      if (!summary.ok()) {
        ++failures;
        EXPECT_TRUE(IsKind(summary.status(), ErrorKind::kTransient)) << summary.status();
        const auto again = Rewrite(to);
        // All was there but the last mark: then the folder is a finished table's.
        if (!again.ok()) {
          EXPECT_TRUE(IsKind(again.status(), ErrorKind::kInvalidArgument)) << again.status();
        }
      }
      SCOPED_TRACE("request " + std::to_string(nth) + " failed: " + summary.status().ToString());
      ExpectWhole(to);
      if (HasFailure() || !reached) {
        EXPECT_GT(failures, 20) << "nothing was shown";
        EXPECT_EQ(fake_->open_upload_count(), 0u);
        return;
      }
    }
  }

  std::unique_ptr<FakeS3> fake_;
  std::vector<std::string> bytes_;
  std::shared_ptr<arrow::Table> expected_;
};

TEST_F(RewriteS3Test, GoesOnAfterAnyRequestThatFailed) { FailEveryRequestInTurn("failed", false); }

TEST_F(RewriteS3Test, GoesOnAfterAnyAnswerThatWasLost) { FailEveryRequestInTurn("lost", true); }

}  // namespace
}  // namespace grebe

// An index that another process replaces while it is being opened. The store is a fake S3 whose
// hook lets the other process come between two requests.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>

#include "base/status.h"
#include "grebe/lookup.h"
#include "testing/fake_s3.h"
#include "testing/table_builder.h"

namespace grebe {
namespace {

using testing::FakeReply;
using testing::FakeRequest;
using testing::FakeS3;

class OpenRaceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    fake_ = FakeS3::Start();
    ASSERT_NE(fake_, nullptr);
    rows_ = testing::PlayEvents(500, 20, 7);
    fake_->Put("table/f.parquet", testing::ParquetBytes(*rows_).ValueOrDie());
    ref_.table_uri = "s3://bucket/table";
    ref_.name = "i";
    ref_.connect.s3_endpoint = fake_->url();
    ASSERT_TRUE(Create().ok());
  }

  Status Create() const {
    CreateOptions options;
    options.key = {"user_id"};
    return CreateIndex(ref_, options).status();
  }

  static bool ReadsFragment(const FakeRequest& request) {
    return request.method == "GET" && request.path.find("/fragment/") != std::string::npos;
  }

  std::unique_ptr<FakeS3> fake_;
  std::shared_ptr<arrow::Table> rows_;
  IndexRef ref_;
};

TEST_F(OpenRaceTest, AnIndexMadeAnewMeanwhileIsOpened) {
  std::atomic<int> replaced = 0;
  fake_->set_fault([&](const FakeRequest& request) -> std::optional<FakeS3::Fault> {
    if (ReadsFragment(request) && replaced.fetch_add(1) == 0) {
      EXPECT_TRUE(DropIndex(ref_).ok());
      EXPECT_TRUE(Create().ok());
    }
    return std::nullopt;
  });
  auto index = Index::Open(ref_);
  ASSERT_TRUE(index.ok()) << index.status();
  EXPECT_GT(replaced.load(), 1);
  auto key = (*index)->ParseKey({{"user_id", "7"}});
  ASSERT_TRUE(key.ok()) << key.status();
  auto found = (*index)->Get(**key);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->rows->num_rows(),
            testing::RowsWhere({rows_}, "user_id", 7)->num_rows());
}

TEST_F(OpenRaceTest, ALostFragmentIsNotFound) {
  std::atomic<int> asked = 0;
  fake_->set_fault([&](const FakeRequest& request) -> std::optional<FakeS3::Fault> {
    if (!ReadsFragment(request)) return std::nullopt;
    ++asked;
    FakeReply reply;
    reply.status = 404;
    return FakeS3::Fault{reply};
  });
  const auto index = Index::Open(ref_);
  EXPECT_TRUE(IsKind(index.status(), ErrorKind::kNotFound)) << index.status();
  EXPECT_EQ(asked.load(), 1) << "the same version is not tried again";
}

}  // namespace
}  // namespace grebe

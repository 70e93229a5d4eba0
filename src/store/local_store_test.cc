#include "store/local_store.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/rng.h"
#include "store/local_files.h"
#include "store/work_pool.h"
#include "testing/store_conformance.h"

namespace grebe::store {
namespace {

namespace fs = std::filesystem;

class LocalStoreTest : public ::testing::Test {
 protected:
  LocalStoreTest() {
    std::string pattern = (fs::temp_directory_path() / "grebe_local_XXXXXX").string();
    root_ = ::mkdtemp(pattern.data());
  }
  ~LocalStoreTest() override { fs::remove_all(root_); }

  std::shared_ptr<const Object> Write(const std::string& name, const std::string& bytes) {
    const auto put = store_->Put(root_ + "/" + name, bytes, PutMode::kOverwrite);
    EXPECT_TRUE(put.ok()) << put.status();
    return std::make_shared<Object>(Object{root_ + "/" + name, *put});
  }
  Status ReadStatus(const std::shared_ptr<const Object>& object, ByteRange range) {
    const ReadRequest request{object, range};
    return store_->Read(std::span(&request, 1)).status();
  }

  std::string root_;
  std::shared_ptr<Store> store_ = MakeLocalStore({.threads = 3, .open_files_max = 4});
};

// A clock tick apart, so that the file system shows that the file was written again.
void NextTick() { std::this_thread::sleep_for(std::chrono::milliseconds(15)); }

TEST_F(LocalStoreTest, OverwrittenInPlaceWithTheSameSizeIsStale) {
  const auto object = Write("x", std::string(100, 'a'));
  ASSERT_TRUE(ReadStatus(object, {0, 10}).ok());
  NextTick();
  {
    std::fstream file(object->path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(50);
    file << 'b';
  }
  EXPECT_TRUE(IsKind(ReadStatus(object, {0, 10}), ErrorKind::kStale));
}

TEST_F(LocalStoreTest, RenamedOverIsStaleAlthoughTheOldFileIsStillOpen) {
  const auto object = Write("x", std::string(100, 'a'));
  ASSERT_TRUE(ReadStatus(object, {0, 10}).ok());  // now kept open
  std::ofstream(root_ + "/y") << std::string(100, 'b');
  fs::rename(root_ + "/y", object->path);
  EXPECT_TRUE(IsKind(ReadStatus(object, {0, 10}), ErrorKind::kStale));
}

TEST_F(LocalStoreTest, CutAndRemovedFilesAreTypedErrors) {
  const auto cut = Write("cut", std::string(10000, 'a'));
  fs::resize_file(cut->path, 10);
  EXPECT_TRUE(IsKind(ReadStatus(cut, {5000, 6000}), ErrorKind::kStale));
  const auto removed = Write("removed", "abc");
  ASSERT_TRUE(ReadStatus(removed, {0, 3}).ok());
  fs::remove(removed->path);
  EXPECT_TRUE(IsKind(ReadStatus(removed, {0, 3}), ErrorKind::kNotFound));
  const auto folder = std::make_shared<Object>(Object{root_, {}});
  EXPECT_TRUE(IsKind(ReadStatus(folder, {0, 3}), ErrorKind::kNotFound));
  const auto below_file = std::make_shared<Object>(Object{cut->path + "/x", {}});
  EXPECT_TRUE(IsKind(ReadStatus(below_file, {0, 3}), ErrorKind::kNotFound));
}

// A writer changes the file in place while it is read: an answer is whole and pinned, or Stale.
TEST_F(LocalStoreTest, NoTornReadsWhileAWriterOverwritesInPlace) {
  constexpr int64_t kSize = 1 << 20;
  const std::string path = root_ + "/torn";
  Write("torn", std::string(kSize, 'a'));
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    const int fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
    std::string block(kSize, 'a');
    for (char c = 'b'; !stop; c = c == 'z' ? 'a' : static_cast<char>(c + 1)) {
      block.assign(kSize, c);
      if (::pwrite(fd, block.data(), block.size(), 0) < 0) break;
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    ::close(fd);
  });
  std::atomic<int> whole{0};
  for (int i = 0; i < 200; ++i) {
    const auto stat = store_->Stat(path);
    ASSERT_TRUE(stat.ok());
    const auto object = std::make_shared<Object>(*stat);
    const std::vector<ReadRequest> requests = {{object, {0, 1000}}, {object, {kSize / 2, kSize}}};
    store_->ReadEach(requests, [&](size_t, Result<std::shared_ptr<arrow::Buffer>> answer) {
      if (answer.ok()) {
        ++whole;
      } else {
        EXPECT_TRUE(IsKind(answer.status(), ErrorKind::kStale)) << answer.status();
      }
    });
  }
  stop = true;
  writer.join();
  EXPECT_GT(whole.load(), 0);
}

TEST_F(LocalStoreTest, ColdRangesAreReadToo) {
  const std::string bytes = testing::PatternBytes(4 << 20, 9);
  const auto object = Write("cold", bytes);
  const int fd = ::open(object->path.c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_EQ(::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED), 0);
  ::close(fd);
  Rng rng(4);
  std::vector<ReadRequest> requests;
  for (int i = 0; i < 60; ++i) {
    const auto begin = static_cast<int64_t>(rng.Below(bytes.size() - 70000));
    requests.push_back({object, {begin, begin + 70000}});
  }
  const auto got = store_->Read(requests);
  ASSERT_TRUE(got.ok()) << got.status();
  for (size_t i = 0; i < requests.size(); ++i) {
    EXPECT_TRUE((*got)[i]->ToString() == bytes.substr(requests[i].range.begin, 70000));
  }
}

TEST_F(LocalStoreTest, LinksAreFollowedAndLoopsEnd) {
  Write("lake/a/1", "1");
  Write("elsewhere/2", "22");
  fs::create_directory_symlink(root_ + "/elsewhere", root_ + "/lake/linked");
  fs::create_symlink(root_ + "/elsewhere/2", root_ + "/lake/file_link");
  fs::create_symlink(root_ + "/nowhere", root_ + "/lake/dangling");
  fs::create_directory_symlink(root_ + "/lake", root_ + "/lake/a/loop");
  const auto listed = store_->List(root_ + "/lake/");
  ASSERT_TRUE(listed.ok()) << listed.status();
  std::vector<std::string> names;
  for (const Object& object : *listed) names.push_back(object.path.substr(root_.size() + 6));
  EXPECT_EQ(names, (std::vector<std::string>{"a/1", "file_link", "linked/2"}));
  EXPECT_EQ((*listed)[1].identity.size_bytes, 2);
}

TEST_F(LocalStoreTest, MapGivesTheBytesWithoutReading) {
  const std::string bytes = testing::PatternBytes(100000, 1);
  const auto object = Write("m", bytes);
  const auto mapped = store_->Map(*object);
  ASSERT_TRUE(mapped.ok()) << mapped.status();
  fs::remove(object->path);
  EXPECT_TRUE((*mapped)->ToString() == bytes);
  EXPECT_TRUE(IsKind(store_->Map(*object).status(), ErrorKind::kNotFound));
  const auto empty = Write("e", "");
  ASSERT_TRUE(store_->Map(*empty).ok());
  const Object stale{empty->path, {.size_bytes = 0, .tag = "1-1"}};
  EXPECT_TRUE(IsKind(store_->Map(stale).status(), ErrorKind::kStale));
}

TEST_F(LocalStoreTest, OpenFilesAreBounded) {
  FileCache cache(4);
  for (int i = 0; i < 20; ++i) {
    const auto object = Write("f" + std::to_string(i), "x");
    ASSERT_TRUE(cache.Open(object->path).ok());
    EXPECT_LE(cache.size(), 4u);
  }
  const auto kept = cache.Open(root_ + "/f19");
  ASSERT_TRUE(kept.ok());
  EXPECT_EQ(cache.Open(root_ + "/f19")->file, kept->file);
}

TEST_F(LocalStoreTest, UnreadableIsPermission) {
  if (::geteuid() == 0) GTEST_SKIP() << "root reads everything";
  const auto object = Write("secret", "x");
  ::chmod(object->path.c_str(), 0);
  EXPECT_TRUE(IsKind(ReadStatus(object, {0, 1}), ErrorKind::kPermission));
}

TEST_F(LocalStoreTest, BadPathsForWriting) {
  Write("file", "x");
  EXPECT_FALSE(store_->Put(root_ + "/file/below", "x", PutMode::kIfAbsent).ok());
  EXPECT_TRUE(IsKind(store_->Put(root_ + "/", "x", PutMode::kOverwrite).status(),
                     ErrorKind::kInvalidArgument));
  EXPECT_TRUE(fs::is_regular_file(root_ + "/file"));
  EXPECT_EQ(store_->List(root_ + "/")->size(), 1u);
}

TEST(WorkPoolTest, EveryUnitRunsOnceAlsoWhenThePoolIsBusyOrEmpty) {
  for (const int threads : {0, 1, 4}) {
    WorkPool pool(threads);
    std::vector<std::thread> callers;
    for (int c = 0; c < 4; ++c) {
      callers.emplace_back([&pool] {
        for (const size_t count : {0, 1, 2, 17, 500}) {
          std::vector<std::atomic<int>> runs(count);
          pool.ParallelFor(count, [&](size_t i) { ++runs[i]; });
          for (const auto& n : runs) ASSERT_EQ(n.load(), 1);
        }
      });
    }
    for (std::thread& caller : callers) caller.join();
  }
}

}  // namespace
}  // namespace grebe::store

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <mutex>
#include <set>
#include <thread>

#include "index/manifest.h"
#include "store/local_store.h"
#include "store/memory_store.h"
#include "testing/counting_store.h"
#include "testing/temp_folder.h"

namespace grebe::index {
namespace {

using store::Location;
using store::PutMode;

Manifest Simple(std::string index_id = "index-a") {
  Manifest manifest;
  manifest.index_id = std::move(index_id);
  manifest.key = {{"id", "int"}};
  manifest.table_uri = "memory://t";
  manifest.table_kind = "plain";
  manifest.writer = "grebe test";
  return manifest;
}

FragmentInfo FragmentAt(std::string path) {
  FragmentInfo fragment;
  fragment.path = std::move(path);
  fragment.file_count = 3;
  return fragment;
}

std::string VersionPath(int64_t version) {
  std::string digits = std::to_string(version);
  return "i/manifest/" + std::string(20 - digits.size(), '0') + digits + ".json";
}

// Calls hooks around the requests to another store; a hook's error is the request's answer.
class HookStore final : public store::Store {
 public:
  explicit HookStore(std::shared_ptr<store::Store> wrapped) : wrapped_(std::move(wrapped)) {}

  // Gets what is done ("list", "read", "put", "delete") and to which path.
  using Hook = std::function<Status(const std::string& what, const std::string& path)>;
  Hook before = [](const std::string&, const std::string&) { return Status::OK(); };
  Hook after = [](const std::string&, const std::string&) { return Status::OK(); };

  std::string_view kind() const override { return "memory"; }
  store::ReadCosts read_costs() const override { return wrapped_->read_costs(); }
  void ReadEach(std::span<const store::ReadRequest> requests,
                const store::ReadCallback& on_read) override {
    wrapped_->ReadEach(requests, on_read);
  }
  std::vector<Result<store::WholeObject>> ReadWhole(std::span<const std::string> paths) override {
    std::vector<Result<store::WholeObject>> answers;
    for (const std::string& path : paths) {
      const Status status = before("read", path);
      if (!status.ok()) {
        answers.push_back(status);
        continue;
      }
      answers.push_back(wrapped_->ReadWhole(std::span(&path, 1))[0]);
    }
    return answers;
  }
  Result<std::vector<store::Object>> List(std::string_view prefix,
                                          std::string_view start_after) override {
    ARROW_RETURN_NOT_OK(before("list", std::string(prefix)));
    return wrapped_->List(prefix, start_after);
  }
  Result<store::Object> Stat(std::string_view path) override {
    ADD_FAILURE() << "a HEAD of " << path;
    return wrapped_->Stat(path);
  }
  Result<store::Identity> Put(std::string_view path, std::string_view bytes,
                              PutMode mode) override {
    ARROW_RETURN_NOT_OK(before("put", std::string(path)));
    auto put = wrapped_->Put(path, bytes, mode);
    ARROW_RETURN_NOT_OK(after("put", std::string(path)));
    return put;
  }
  Result<std::unique_ptr<store::Upload>> StartUpload(std::string_view path) override {
    return wrapped_->StartUpload(path);
  }
  Status Delete(std::string_view path) override {
    ARROW_RETURN_NOT_OK(before("delete", std::string(path)));
    const Status deleted = wrapped_->Delete(path);
    ARROW_RETURN_NOT_OK(after("delete", std::string(path)));
    return deleted;
  }

 private:
  const std::shared_ptr<store::Store> wrapped_;
};

class ManifestLogTest : public ::testing::Test {
 protected:
  // Commits n versions on top of the newest.
  void Grow(int64_t n, const std::string& index_id = "index-a") {
    for (int64_t i = 0; i < n; ++i) {
      auto newest = log.ReadNewest();
      ASSERT_TRUE(newest.ok()) << newest.status();
      const int64_t base = newest->has_value() ? (*newest)->version : 0;
      const Status status = log.Commit(base, Simple(index_id));
      ASSERT_TRUE(status.ok()) << status;
    }
  }
  int64_t Newest() {
    auto newest = log.ReadNewest();
    EXPECT_TRUE(newest.ok()) << newest.status();
    return newest.ok() && newest->has_value() ? (*newest)->version : 0;
  }
  std::string Bytes(const std::string& path) {
    auto read = memory->ReadWhole(std::span(&path, 1));
    return read[0].ok() ? read[0]->bytes->ToString() : "absent";
  }
  void Write(const std::string& path, std::string_view bytes) {
    ASSERT_TRUE(memory->Put(path, bytes, PutMode::kOverwrite).ok());
  }

  std::shared_ptr<store::Store> memory = store::MakeMemoryStore();
  ManifestLog log{Location{memory, "i"}};
};

TEST_F(ManifestLogTest, AnEmptyFolderHasNoIndex) {
  EXPECT_EQ(Newest(), 0);
  EXPECT_TRUE(log.ListVersions().ValueOrDie().empty());
  EXPECT_TRUE(IsKind(log.Read(1).status(), ErrorKind::kNotFound));
  EXPECT_TRUE(IsKind(log.Drop(), ErrorKind::kNotFound));
  EXPECT_TRUE(log.FindOrphans().ValueOrDie().empty());
}

TEST_F(ManifestLogTest, VersionsFollowEachOtherAndOldOnesStayReadable) {
  Manifest manifest = Simple();
  manifest.fragments = {FragmentAt("fragment/a.gfx")};
  ASSERT_TRUE(log.Commit(0, manifest).ok());
  manifest.fragments.push_back(FragmentAt("fragment/b.gfx"));
  ASSERT_TRUE(log.Commit(1, manifest).ok());
  EXPECT_EQ(log.ListVersions().ValueOrDie(), (std::vector<int64_t>{1, 2}));
  const Manifest newest = log.ReadNewest().ValueOrDie().value();
  EXPECT_EQ(newest.version, 2);
  EXPECT_EQ(newest.fragments.size(), 2u);
  EXPECT_FALSE(newest.commit_id.empty());
  EXPECT_FALSE(newest.created_at.empty());
  EXPECT_EQ(log.Read(1).ValueOrDie().fragments.size(), 1u);
  EXPECT_EQ(Bytes("i/manifest/hint.json"), Bytes(VersionPath(2)));
}

TEST_F(ManifestLogTest, AStaleBaseIsAConflictAndChangesNothing) {
  Grow(3);
  const std::string before = Bytes(VersionPath(3));
  for (const int64_t base : {0, 1, 2}) {
    EXPECT_TRUE(IsKind(log.Commit(base, Simple()), ErrorKind::kConflict)) << base;
  }
  EXPECT_EQ(Bytes(VersionPath(3)), before);
  EXPECT_EQ(Newest(), 3);
}

TEST_F(ManifestLogTest, ABaseThatDoesNotExistIsRefused) {
  Grow(2);
  EXPECT_TRUE(IsKind(log.Commit(7, Simple()), ErrorKind::kInvalidArgument));
  EXPECT_TRUE(IsKind(log.Commit(-1, Simple()), ErrorKind::kInvalidArgument));
  EXPECT_EQ(log.ListVersions().ValueOrDie(), (std::vector<int64_t>{1, 2}));
}

TEST_F(ManifestLogTest, AManifestThatNoReaderWouldTakeIsRefused) {
  Manifest manifest = Simple();
  manifest.fragments = {FragmentAt("../x.gfx")};
  EXPECT_TRUE(IsKind(log.Commit(0, manifest), ErrorKind::kInvalidArgument));
  manifest = Simple();
  manifest.dropped = true;
  EXPECT_TRUE(IsKind(log.Commit(0, manifest), ErrorKind::kInvalidArgument));
  EXPECT_EQ(Newest(), 0);
}

TEST_F(ManifestLogTest, OpeningIsOneWaveWithACurrentHintAndTwoWithAnother) {
  Grow(3);
  auto counting = std::make_shared<testing::CountingStore>(memory);
  const ManifestLog counted(Location{counting, "i"});
  ASSERT_EQ(counted.ReadNewest().ValueOrDie()->version, 3);
  EXPECT_EQ(counting->counts().lists, 1);
  EXPECT_EQ(counting->counts().waves, 1);  // the hint, beside the listing
  EXPECT_EQ(counting->counts().requests, 1);
  EXPECT_EQ(counting->counts().stats, 0);

  for (const std::string& hint : {Bytes(VersionPath(2)), std::string("damaged"), std::string()}) {
    Write("i/manifest/hint.json", hint);
    counting->Reset();
    ASSERT_EQ(counted.ReadNewest().ValueOrDie()->version, 3);
    EXPECT_EQ(counting->counts().lists, 1);
    EXPECT_EQ(counting->counts().requests, 2);
    EXPECT_EQ(counting->counts().stats, 0);
  }
}

TEST_F(ManifestLogTest, ListingAndHintAreUnderWayTogether) {
  Grow(1);
  auto hooked = std::make_shared<HookStore>(memory);
  std::mutex mutex;
  std::condition_variable both;
  int waiting = 0;
  hooked->before = [&](const std::string&, const std::string&) {
    std::unique_lock lock(mutex);
    ++waiting;
    both.notify_all();
    // Each waits for the other: one after the other would never get past here.
    const bool met = both.wait_for(lock, std::chrono::seconds(20), [&] { return waiting >= 2; });
    return met ? Status::OK() : Transient("alone");
  };
  const auto newest = ManifestLog(Location{hooked, "i"}).ReadNewest();
  ASSERT_TRUE(newest.ok()) << newest.status();
  EXPECT_EQ((*newest)->version, 1);
}

TEST_F(ManifestLogTest, NoHintMakesAnOldVersionTheNewest) {
  Grow(5);
  std::vector<std::string> hints = {"", "{}", Bytes(VersionPath(1)), Bytes(VersionPath(4))};
  Manifest leading = log.Read(5).ValueOrDie();
  leading.version = 6;
  hints.push_back(SerializeManifest(leading));
  std::string damaged = Bytes(VersionPath(5));
  damaged[damaged.size() / 2] ^= 1;
  hints.push_back(damaged);
  for (const std::string& hint : hints) {
    Write("i/manifest/hint.json", hint);
    EXPECT_EQ(Newest(), 5);
  }
  ASSERT_TRUE(memory->Delete("i/manifest/hint.json").ok());
  EXPECT_EQ(Newest(), 5);
}

TEST_F(ManifestLogTest, DamagedNewestIsAnErrorNeverAnOlderVersion) {
  Grow(3);
  Write("i/manifest/hint.json", Bytes(VersionPath(2)));
  std::string damaged = Bytes(VersionPath(3));
  damaged[10] ^= 1;
  Write(VersionPath(3), damaged);
  EXPECT_TRUE(IsKind(log.ReadNewest().status(), ErrorKind::kCorrupt));
  Write(VersionPath(3), Bytes(VersionPath(2)));  // a whole manifest of another version
  EXPECT_TRUE(IsKind(log.ReadNewest().status(), ErrorKind::kCorrupt));
}

TEST_F(ManifestLogTest, StrangeNamesBesideTheManifestsAreNoVersions) {
  Grow(2);
  for (const char* name : {"99.json", "0000000000000000000x.json", "99999999999999999999.json",
                           "00000000000000000000.json", "-0000000000000000009.json", "notes.txt",
                           "sub/00000000000000000009.json", ".00000000000000000009.json.ab.tmp"}) {
    Write(std::string("i/manifest/") + name, "x");
  }
  EXPECT_EQ(Newest(), 2);
  EXPECT_EQ(log.ListVersions().ValueOrDie(), (std::vector<int64_t>{1, 2}));
  const auto orphans = log.FindOrphans().ValueOrDie();
  ASSERT_EQ(orphans.size(), 1u);
  EXPECT_EQ(orphans[0].path, "i/manifest/.00000000000000000009.json.ab.tmp");
}

TEST_F(ManifestLogTest, KeepsTheLastHundredVersions) {
  Grow(130);
  const auto versions = log.ListVersions().ValueOrDie();
  EXPECT_EQ(versions.size(), 100u);
  EXPECT_EQ(versions.front(), 31);
  EXPECT_EQ(versions.back(), 130);
}

TEST_F(ManifestLogTest, ANumberThatWasUsedAndDroppedGivesConflict) {
  Grow(130);
  for (const int64_t base : {0, 1, 3, 28, 29}) {
    EXPECT_TRUE(IsKind(log.Commit(base, Simple()), ErrorKind::kConflict)) << base;
  }
  EXPECT_EQ(log.ListVersions().ValueOrDie().front(), 31);
  EXPECT_EQ(Newest(), 130);
}

TEST_F(ManifestLogTest, AVersionThatOthersBuiltOnBeforeTheCheckIsCommitted) {
  for (const int64_t others : {1, 2, 50, 99}) {
    memory = store::MakeMemoryStore();
    log = ManifestLog(Location{memory, "i"});
    Grow(1);
    auto hooked = std::make_shared<HookStore>(memory);
    hooked->after = [&](const std::string&, const std::string& path) {
      if (path == VersionPath(2)) Grow(others);
      return Status::OK();
    };
    EXPECT_TRUE(ManifestLog(Location{hooked, "i"}).Commit(1, Simple()).ok()) << others;
    EXPECT_EQ(Newest(), 2 + others);
    EXPECT_TRUE(log.Read(2).ok());
    // The hint is the newest's, not the slow writer's.
    EXPECT_EQ(Bytes("i/manifest/hint.json"), Bytes(VersionPath(2 + others)));
  }
}

TEST_F(ManifestLogTest, DropLeavesATombstoneAndNothingElse) {
  Manifest manifest = Simple();
  Write("i/fragment/a.gfx", "a");
  Write("i/fragment/b.gfx", "b");
  manifest.fragments = {FragmentAt("fragment/a.gfx")};
  ASSERT_TRUE(log.Commit(0, manifest).ok());
  manifest.fragments = {FragmentAt("fragment/b.gfx")};
  ASSERT_TRUE(log.Commit(1, manifest).ok());
  ASSERT_TRUE(log.Drop().ok());
  EXPECT_EQ(Newest(), 0);
  const auto left = memory->List("i/").ValueOrDie();
  ASSERT_EQ(left.size(), 1u);
  EXPECT_EQ(left[0].path, VersionPath(3));
  EXPECT_TRUE(log.Read(3).ValueOrDie().dropped);
  EXPECT_TRUE(IsKind(log.Drop(), ErrorKind::kNotFound));
}

TEST_F(ManifestLogTest, AReMadeIndexGoesOnCountingAndOldWritersGetConflict) {
  Grow(10);
  ASSERT_TRUE(log.Drop().ok());
  // A writer that read version 5 of the dropped index: its numbers 6 is free again.
  EXPECT_TRUE(IsKind(log.Commit(5, Simple()), ErrorKind::kConflict));
  EXPECT_EQ(Newest(), 0);
  ASSERT_TRUE(log.Commit(0, Simple("index-b")).ok());
  EXPECT_EQ(Newest(), 12);
  for (const int64_t base : {0, 5, 10, 11}) {
    EXPECT_TRUE(IsKind(log.Commit(base, Simple()), ErrorKind::kConflict)) << base;
  }
  EXPECT_EQ(log.ListVersions().ValueOrDie(), (std::vector<int64_t>{11, 12}));
  EXPECT_EQ(log.ReadNewest().ValueOrDie()->index_id, "index-b");
}

TEST_F(ManifestLogTest, AnOldHintOfADroppedIndexIsNotBelieved) {
  Grow(3);
  const std::string hint = Bytes("i/manifest/hint.json");
  ASSERT_TRUE(log.Drop().ok());
  Write("i/manifest/hint.json", hint);
  EXPECT_EQ(Newest(), 0);
  ASSERT_TRUE(log.Commit(0, Simple("index-b")).ok());
  Write("i/manifest/hint.json", hint);
  EXPECT_EQ(Newest(), 5);
}

TEST_F(ManifestLogTest, DropTakesACommitThatCameFirstWithIt) {
  Grow(1);
  auto hooked = std::make_shared<HookStore>(memory);
  hooked->before = [&](const std::string& what, const std::string& path) {
    if (what == "put" && path == VersionPath(2)) Grow(1);
    return Status::OK();
  };
  EXPECT_TRUE(ManifestLog(Location{hooked, "i"}).Drop().ok());
  EXPECT_EQ(Newest(), 0);
  EXPECT_EQ(log.ListVersions().ValueOrDie(), (std::vector<int64_t>{3}));
}

TEST_F(ManifestLogTest, OfConcurrentCreatesOneWins) {
  for (const bool after_drop : {false, true}) {
    memory = store::MakeMemoryStore();
    log = ManifestLog(Location{memory, "i"});
    if (after_drop) {
      Grow(2);
      ASSERT_TRUE(log.Drop().ok());
    }
    std::atomic<int> committed{0}, conflicts{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; ++i) {
      threads.emplace_back([&, i] {
        const Status status =
            ManifestLog(Location{memory, "i"}).Commit(0, Simple("index-" + std::to_string(i)));
        if (status.ok()) ++committed;
        if (IsKind(status, ErrorKind::kConflict)) ++conflicts;
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(committed, 1);
    EXPECT_EQ(conflicts, 7);
    EXPECT_EQ(Newest(), after_drop ? 4 : 1);
  }
}

TEST_F(ManifestLogTest, OrphansAreWhatNoKeptVersionNames) {
  Manifest manifest = Simple();
  for (const char* name : {"a", "b", "left", ".b.gfx.00ff.tmp"}) {
    Write("i/fragment/" + std::string(name) + (name[0] == '.' ? "" : ".gfx"), "x");
  }
  manifest.fragments = {FragmentAt("fragment/a.gfx")};
  ASSERT_TRUE(log.Commit(0, manifest).ok());
  manifest.fragments = {FragmentAt("fragment/b.gfx")};
  ASSERT_TRUE(log.Commit(1, manifest).ok());
  std::set<std::string> paths;
  for (const auto& object : log.FindOrphans().ValueOrDie()) paths.insert(object.path);
  EXPECT_EQ(paths, (std::set<std::string>{"i/fragment/.b.gfx.00ff.tmp", "i/fragment/left.gfx"}));

  // A kept manifest that cannot be read: what it names must not be called an orphan.
  Write(VersionPath(1), "damaged");
  EXPECT_TRUE(IsKind(log.FindOrphans().status(), ErrorKind::kCorrupt));
}

TEST_F(ManifestLogTest, YoungObjectsAreNoOrphansWhereTheAgeIsKnown) {
  Grow(1);
  Write("i/" + NewFragmentPath(), "young");
  Write("i/fragment/01890a5d-ac96-774b-bcce-b302099a8057.gfx", "of 2023");
  EXPECT_EQ(log.FindOrphans(0).ValueOrDie().size(), 2u);
  const auto old = log.FindOrphans(3600).ValueOrDie();
  ASSERT_EQ(old.size(), 1u);
  EXPECT_EQ(old[0].path, "i/fragment/01890a5d-ac96-774b-bcce-b302099a8057.gfx");
}

// ---- Faults: the n-th request fails, for every n, before or after it did its work.

struct Outcome {
  Status status;
  int64_t requests = 0;
};

TEST_F(ManifestLogTest, AFaultAtAnyRequestGivesTheOldTheNewOrAnError) {
  const std::function<Status(ManifestLog&)> works[] = {
      [](ManifestLog& log) { return log.Commit(103, Simple()); },
      [](ManifestLog& log) { return log.Drop(); },
      [](ManifestLog& log) { return log.ReadNewest().status(); },
      [](ManifestLog& log) { return log.FindOrphans().status(); },
  };
  for (size_t w = 0; w < std::size(works); ++w) {
    for (const bool late : {false, true}) {
      for (int64_t n = 1;; ++n) {
        memory = store::MakeMemoryStore();
        log = ManifestLog(Location{memory, "i"});
        Grow(2);
        // Versions that the commit will have to drop.
        for (const int64_t version : {3, 4, 102, 103}) {
          Manifest manifest = Simple();
          manifest.version = version;
          Write(VersionPath(version), SerializeManifest(manifest));
        }
        auto hooked = std::make_shared<HookStore>(memory);
        std::atomic<int64_t> requests{0};
        const auto fail = [&](const std::string&, const std::string&) -> Status {
          return ++requests == n ? Transient("injected") : Status::OK();
        };
        (late ? hooked->after : hooked->before) = fail;
        ManifestLog faulty(Location{hooked, "i"});
        const Status status = works[w](faulty);
        if (requests < n) break;  // no such request: all were tried
        const int64_t newest = Newest();
        if (w == 0) {
          EXPECT_TRUE(newest == 104 || (newest == 103 && !status.ok())) << n << " " << status;
        } else if (w == 1) {
          EXPECT_TRUE(newest == 0 || (newest == 103 && !status.ok())) << n << " " << status;
          // A second try ends what the first began.
          const Status again = log.Drop();
          EXPECT_TRUE(again.ok() || IsKind(again, ErrorKind::kNotFound)) << again;
          EXPECT_EQ(memory->List("i/").ValueOrDie().size(), 1u) << n;
        } else {
          EXPECT_EQ(newest, 103);
        }
        ASSERT_LT(n, 1000);
      }
    }
  }
}

TEST_F(ManifestLogTest, APutWhoseAnswerWasLostIsRecognised) {
  Grow(1);
  for (const bool as_conflict : {false, true}) {
    const int64_t base = Newest();
    auto hooked = std::make_shared<HookStore>(memory);
    hooked->after = [&](const std::string& what, const std::string& path) -> Status {
      if (what != "put" || path != VersionPath(base + 1)) return Status::OK();
      return as_conflict ? Conflict("injected") : Transient("injected");
    };
    EXPECT_TRUE(ManifestLog(Location{hooked, "i"}).Commit(base, Simple()).ok());
    EXPECT_EQ(Newest(), base + 1);
  }
}

// ---- Many writers: each adds fragments of its own by read, change, commit.

int64_t AddFragments(const Location& folder, const std::string& writer, int count) {
  ManifestLog log(folder);
  int64_t committed = 0;
  for (int i = 0; i < count;) {
    auto newest = log.ReadNewest();
    if (!newest.ok() || !newest->has_value()) return -1;
    Manifest manifest = std::move(**newest);
    manifest.fragments.push_back(
        FragmentAt("fragment/" + writer + "-" + std::to_string(i) + ".gfx"));
    const Status status = log.Commit(manifest.version, manifest);
    if (status.ok()) {
      ++i;
      ++committed;
    } else if (!IsKind(status, ErrorKind::kConflict)) {
      std::fprintf(stderr, "%s\n", status.ToString().c_str());
      return -1;
    }
  }
  return committed;
}

void ExpectAllFragments(const Location& folder, int writers, int count) {
  const ManifestLog log(folder);
  const Manifest newest = log.ReadNewest().ValueOrDie().value();
  EXPECT_EQ(newest.version, 1 + writers * count);
  std::set<std::string> paths;
  for (const FragmentInfo& fragment : newest.fragments) paths.insert(fragment.path);
  EXPECT_EQ(paths.size(), static_cast<size_t>(writers) * count);
  const auto versions = log.ListVersions().ValueOrDie();
  EXPECT_EQ(versions.back(), newest.version);
  EXPECT_LE(versions.size(), 100u);
  // Each version has exactly the fragments of the one before and one more.
  for (size_t i = 1; i < versions.size(); ++i) {
    ASSERT_EQ(versions[i], versions[i - 1] + 1);
    const auto before = log.Read(versions[i - 1]).ValueOrDie().fragments;
    const auto after = log.Read(versions[i]).ValueOrDie().fragments;
    ASSERT_EQ(after.size(), before.size() + 1);
    EXPECT_TRUE(std::equal(before.begin(), before.end(), after.begin()));
  }
}

TEST(ManifestLogWritersTest, EightThreadsLoseNoFragment) {
  grebe::testing::TempFolder temp;
  const Location folder{store::MakeLocalStore(), temp.path() + "/i"};
  ASSERT_TRUE(ManifestLog(folder).Commit(0, Simple()).ok());
  constexpr int kCount = 16;
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      EXPECT_EQ(AddFragments(folder, "t" + std::to_string(i), kCount), kCount);
    });
  }
  for (std::thread& thread : threads) thread.join();
  ExpectAllFragments(folder, 8, kCount);
}

// This program again, as a child that runs one task: a process of its own, with failpoints of its
// own. It does nothing unless its parent asks.
TEST(ManifestLogChild, DoesWhatItsParentAsks) {
  const char* task = std::getenv("GREBE_MANIFEST_TASK");
  if (task == nullptr) return;
  const Location folder{store::MakeLocalStore(), std::getenv("GREBE_MANIFEST_FOLDER")};
  ManifestLog log(folder);
  Status status;
  if (std::string(task) == "commit") {
    status = log.Commit(log.ReadNewest().ValueOrDie()->version, Simple());
  } else if (std::string(task) == "drop") {
    status = log.Drop();
  } else {
    const bool done = AddFragments(folder, task, 16) == 16;
    status = done ? Status::OK() : Internal("not all committed");
  }
  ASSERT_TRUE(status.ok()) << status;
}

pid_t StartChild(const std::string& task, const std::string& folder, const std::string& failpoint) {
  const pid_t child = ::fork();
  if (child != 0) return child;
  ::setenv("GREBE_MANIFEST_TASK", task.c_str(), 1);
  ::setenv("GREBE_MANIFEST_FOLDER", folder.c_str(), 1);
  ::setenv("GREBE_FAILPOINTS", failpoint.c_str(), 1);
  ::unsetenv("GTEST_FILTER");
  // Its results are its own: not those of the test that started it.
  ::unsetenv("GTEST_OUTPUT");
  ::execl("/proc/self/exe", "manifest_test",
          "--gtest_filter=ManifestLogChild.DoesWhatItsParentAsks", "--gtest_brief=1", nullptr);
  ::_exit(127);
}

int WaitFor(pid_t child) {
  int state = 0;
  EXPECT_EQ(::waitpid(child, &state, 0), child);
  return state;
}

TEST(ManifestLogWritersTest, EightProcessesLoseNoFragment) {
  grebe::testing::TempFolder temp;
  const std::string path = temp.path() + "/i";
  const Location folder{store::MakeLocalStore(), path};
  ASSERT_TRUE(ManifestLog(folder).Commit(0, Simple()).ok());
  std::vector<pid_t> children;
  for (int i = 0; i < 8; ++i) {
    children.push_back(StartChild("p" + std::to_string(i), path, ""));
  }
  for (const pid_t child : children) EXPECT_EQ(WaitFor(child), 0);
  ExpectAllFragments(folder, 8, 16);
}

struct KillCase {
  const char* task;
  const char* failpoint;
  int64_t newest_after;  // 0: no index
};

class ManifestLogKillTest : public ::testing::TestWithParam<KillCase> {};

TEST_P(ManifestLogKillTest, LosesNothing) {
  const KillCase& kill_case = GetParam();
  grebe::testing::TempFolder temp;
  const std::string path = temp.path() + "/i";
  const Location folder{store::MakeLocalStore(), path};
  ManifestLog log(folder);
  Manifest manifest = Simple();
  for (const char* name : {"a", "b"}) {
    const std::string fragment = "fragment/" + std::string(name) + ".gfx";
    ASSERT_TRUE(folder.store->Put(path + "/" + fragment, "x", PutMode::kOverwrite).ok());
    manifest.fragments.push_back(FragmentAt(fragment));
  }
  ASSERT_TRUE(log.Commit(0, manifest).ok());
  const int state = WaitFor(
      StartChild(kill_case.task, path, std::string(kill_case.failpoint) + "=kill"));
  ASSERT_TRUE(WIFSIGNALED(state) && WTERMSIG(state) == SIGKILL) << state;

  const auto newest = log.ReadNewest();
  ASSERT_TRUE(newest.ok()) << newest.status();
  EXPECT_EQ(newest->has_value() ? (*newest)->version : 0, kill_case.newest_after);
  if (kill_case.newest_after > 0) {
    ASSERT_TRUE(log.Commit((*newest)->version, manifest).ok());
    EXPECT_EQ(log.ReadNewest().ValueOrDie()->version, kill_case.newest_after + 1);
  } else {
    // What the killed drop left are orphans; a second drop removes them.
    EXPECT_FALSE(log.FindOrphans().ValueOrDie().empty());
    ASSERT_TRUE(log.Drop().ok());
    ASSERT_TRUE(log.Commit(0, Simple("index-b")).ok());
    EXPECT_EQ(log.ReadNewest().ValueOrDie()->version, 3);
  }
  EXPECT_TRUE(log.FindOrphans().ValueOrDie().empty());
}

INSTANTIATE_TEST_SUITE_P(
    All, ManifestLogKillTest,
    ::testing::Values(KillCase{"commit", "commit.before_put", 1},
                      KillCase{"commit", "commit.after_put", 2},
                      KillCase{"commit", "commit.after_hint", 2},
                      KillCase{"drop", "drop.after_tombstone", 0},
                      KillCase{"drop", "drop.mid_delete", 0}),
    [](const auto& info) {
      std::string name = info.param.failpoint;
      std::replace(name.begin(), name.end(), '.', '_');
      return name;
    });

}  // namespace
}  // namespace grebe::index

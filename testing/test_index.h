// Small indexes for tests, with what they must answer.
#pragma once

#include <arrow/array.h>
#include <arrow/record_batch.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "index/index_view.h"
#include "store/store.h"

namespace grebe::index::testing {

// Row i of a file has key keys[i]; kNull stands for a null key.
constexpr int64_t kNull = INT64_MIN;

struct TestFile {
  std::string path;
  std::vector<int64_t> keys;
};

struct TestOptions {
  bool word_keys = true;
  bool sorted = false;       // word keys only
  bool covering = false;     // one column "cover" int64: file number * 1e6 + row
  int64_t page_rows = 10;    // rows of each page of the (made up) page map
};

// An index in a folder of a store, made of real fragments.
class TestIndex {
 public:
  TestIndex(store::Location folder, TestOptions options);

  // Adds a fragment of these files; a file may be marked dead later.
  Status AddFragment(const std::vector<TestFile>& files);
  void Kill(const std::string& path);

  const Manifest& manifest() const { return manifest_; }
  Manifest* mutable_manifest() { return &manifest_; }
  Result<std::shared_ptr<IndexView>> Open(const ViewOptions& options = {}) const;

  key::EncodedKeys Encode(const std::vector<int64_t>& keys) const;
  // (path, row) of every live row with the key, sorted.
  using Rows = std::vector<std::pair<std::string, int64_t>>;
  Rows Expected(int64_t key) const;
  // (path, row) of every live row with a key from `least` to `most`, by key, then path and row.
  Rows ExpectedRange(int64_t least, int64_t most) const;
  // The same from an answer; also checks that runs are sorted and not empty.
  static Rows RowsOf(const IndexView& view, const FoundRows& found);
  // The covering values that an answer must have, in its order.
  std::vector<int64_t> ExpectedCovering(int64_t key) const;

  store::Location folder;
  store::Location table;

 private:
  int64_t CoverOf(const std::string& path, int64_t row) const;

  TestOptions options_;
  Manifest manifest_;
  std::string schema_;
  std::map<std::string, TestFile> live_;
  std::map<std::string, int64_t> numbers_;
};

// The packed page map of a file of so many rows: two leaves, pages of page_rows rows.
std::string TestPageMap(int64_t rows, int64_t page_rows);

// Random files "f00001.parquet" ...: keys in [0, key_range), some null, some in runs.
std::vector<TestFile> RandomFiles(uint64_t seed, int first, int count, int64_t rows,
                                  int64_t key_range);

}  // namespace grebe::index::testing

// Tables of keys for the fragment's tests: rows in files, an oracle, and building from them.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/rng.h"
#include "index/fragment.h"
#include "store/memory_store.h"

#define ASSERT_OK(expression)                                \
  do {                                                       \
    const ::grebe::Status _status = (expression);            \
    ASSERT_TRUE(_status.ok()) << _status.ToString();         \
  } while (false)
#define EXPECT_KIND(kind, expression) \
  EXPECT_EQ(::grebe::index::KindText(expression), ::grebe::KindName(kind))

namespace grebe::index {

// The kind of a failed status; "OK" otherwise.
inline std::string KindText(const Status& status) {
  return status.ok() ? "OK" : std::string(KindName(KindOf(status)));
}

// A key of either form; no value: the null key (word form only).
struct TestKey {
  bool null = false;
  uint64_t word = 0;
  std::string bytes;
  auto operator<=>(const TestKey&) const = default;
};
inline TestKey NullKey() { return {true, 0, {}}; }
inline TestKey WordKey(uint64_t word) { return {false, word, {}}; }
inline TestKey BytesKey(std::string bytes) { return {false, 0, std::move(bytes)}; }

inline key::EncodedKeys Encode(bool word_keys, std::span<const TestKey> keys) {
  key::EncodedKeys encoded;
  encoded.is_word = word_keys;
  if (!word_keys) encoded.offsets.push_back(0);
  for (const TestKey& key : keys) {
    if (word_keys) {
      encoded.words.push_back(key.word);
      encoded.null_rows.push_back(key.null ? 1 : 0);
    } else {
      encoded.bytes += key.bytes;
      encoded.offsets.push_back(encoded.bytes.size());
    }
  }
  return encoded;
}

// A row of a table: (file path, row).
using TestRow = std::pair<std::string, int64_t>;

struct TestFile {
  std::string path;
  std::vector<TestKey> keys;   // of its rows
};

struct TestTable {
  bool word_keys = true;
  std::vector<TestFile> files;

  std::map<TestKey, std::vector<TestRow>> Oracle() const {
    std::map<TestKey, std::vector<TestRow>> rows;
    for (const TestFile& file : files) {
      for (size_t i = 0; i < file.keys.size(); ++i) {
        rows[file.keys[i]].emplace_back(file.path, static_cast<int64_t>(i));
      }
    }
    return rows;
  }
};

// A fragment in a memory store, with its bytes.
struct BuiltFragment {
  std::shared_ptr<store::Store> store;
  FragmentInfo info;
  store::ReadRequest whole;
  std::string object;

  Result<std::shared_ptr<const Fragment>> Open() const { return Open(object); }
  Result<std::shared_ptr<const Fragment>> Open(const std::string& bytes) const {
    return Fragment::Open(info, arrow::Buffer::FromString(bytes.substr(
                                    static_cast<size_t>(info.head.begin))));
  }
};

inline Result<BuiltFragment> Finish(
    const std::function<Result<FragmentInfo>(store::Upload&)>& write) {
  BuiltFragment built;
  built.store = store::MakeMemoryStore();
  ARROW_ASSIGN_OR_RAISE(auto upload, built.store->StartUpload("f.gfx"));
  ARROW_ASSIGN_OR_RAISE(built.info, write(*upload));
  built.info.path = "f.gfx";
  ARROW_RETURN_NOT_OK(upload->Finish().status());
  ARROW_ASSIGN_OR_RAISE(store::Object object, built.store->Stat("f.gfx"));
  built.whole.object = std::make_shared<store::Object>(object);
  built.whole.range = {0, built.info.size_bytes};
  ARROW_ASSIGN_OR_RAISE(auto buffers, built.store->Read({&built.whole, 1}));
  built.object = buffers[0]->ToString();
  return built;
}

inline std::string PageMapOf(const std::string& path) { return "page map of " + path; }

// Builds a table's fragment, adding rows in batches of random size.
inline Result<BuiltFragment> Build(
    const TestTable& table, const FragmentOptions& options, Rng* rng,
    const std::function<std::shared_ptr<arrow::RecordBatch>(const TestFile&, int64_t, int64_t)>&
        covering = nullptr) {
  ARROW_ASSIGN_OR_RAISE(auto builder, FragmentBuilder::Make(options));
  ARROW_ASSIGN_OR_RAISE(const uint32_t schema, builder->AddSchema("a schema"));
  for (const TestFile& file : table.files) {
    FragmentFile entry;
    entry.path = file.path;
    entry.identity = {static_cast<int64_t>(file.keys.size()) * 10, "tag-" + file.path};
    entry.row_count = static_cast<int64_t>(file.keys.size());
    entry.schema = schema;
    ARROW_ASSIGN_OR_RAISE(const FileId id, builder->AddFile(entry, PageMapOf(file.path)));
    const auto rows = static_cast<int64_t>(file.keys.size());
    for (int64_t at = 0; at < rows;) {
      const uint64_t most = rng->Chance(0.5) ? 100 : 100000;
      const int64_t count = std::min(rows - at, 1 + static_cast<int64_t>(rng->Below(most)));
      const auto encoded = Encode(table.word_keys, std::span(file.keys).subspan(at, count));
      std::shared_ptr<arrow::RecordBatch> batch;
      if (covering) batch = covering(file, at, count);
      ARROW_RETURN_NOT_OK(builder->AddRows(id, RowIndex{at}, encoded, batch.get()));
      at += count;
    }
  }
  return Finish([&](store::Upload& upload) { return builder->Write(upload); });
}

inline std::string_view Slice(std::string_view object, ByteRange range) {
  return object.substr(static_cast<size_t>(range.begin), static_cast<size_t>(range.size_bytes()));
}

// The rows of postings, in order.
inline std::vector<TestRow> RowsOf(const Fragment& fragment, std::span<const Posting> postings) {
  std::vector<TestRow> rows;
  for (const Posting& posting : postings) {
    for (int64_t i = 0; i < posting.row_count; ++i) {
      rows.emplace_back(fragment.files()[posting.file.value].path, posting.first_row.value + i);
    }
  }
  return rows;
}

}  // namespace grebe::index

#include "testing/test_index.h"

#include <arrow/builder.h>
#include <arrow/util/base64.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/rng.h"
#include "parquet/footer.h"
#include "store/memory_store.h"

namespace grebe::index::testing {
namespace {

// A Parquet file of one row and two int64 columns, "id" and "v" (written by pyarrow).
constexpr char kFileBase64[] =
    "UEFSMRUAFRwVHCwVAhUAFQYVBhwAAAACAAAAAgEBAAAAAAAAABUAFRwVHCwVAhUAFQYVBhwAAAACAAAAAgEBAAAA"
    "AAAAABUEGTw1ABgGc2NoZW1hFQQAFQQlAhgCaWQAFQQlAhgBdgAWAhkcGSwmABwVBBklBgAZGAJpZBUAFgIWQhZC"
    "JghJHBUAFQAVAgA8KQYZJgACAAAAJgAcFQQZJQYAGRgBdhUAFgIWQhZCJkpJHBUAFQAVAgA8KQYZJgACAAAAFoQB"
    "FgImCBaEAQAoIHBhcnF1ZXQtY3BwLWFycm93IHZlcnNpb24gMjYuMC4xGSwcAAAcAAAAswAAAFBBUjE=";

std::string MakeSchemaBytes() {
  auto store = store::MakeMemoryStore();
  const std::string file = arrow::util::base64_decode(kFileBase64).ValueOrDie();
  EXPECT_TRUE(store->Put("x", file, store::PutMode::kOverwrite).ok());
  const auto object = std::make_shared<store::Object>(store->Stat("x").ValueOrDie());
  return pq::Footer::Read(*store, object).ValueOrDie()->schema()->Serialize();
}

const std::string& SchemaBytes() {
  static const std::string bytes = MakeSchemaBytes();
  return bytes;
}

std::shared_ptr<arrow::Schema> CoveringSchema() {
  return arrow::schema({arrow::field("cover", arrow::int64())});
}

std::string TextKey(int64_t key) { return "a key of some length " + std::to_string(key); }

}  // namespace

std::string TestPageMap(int64_t rows, int64_t page_rows) {
  pq::RowGroupPages group;
  group.row_count = rows;
  int64_t at = 4;
  for (int leaf = 0; leaf < 2; ++leaf) {
    pq::ChunkPages chunk;
    chunk.info.value_count = rows;
    for (int64_t row = 0; row < rows; row += page_rows) {
      const int64_t size = 100 + leaf;
      chunk.pages.push_back({{at, at + size}, {row, std::min(rows, row + page_rows)}, false});
      at += size;
    }
    chunk.info.page_count = static_cast<int32_t>(chunk.pages.size());
    group.chunks.push_back(std::move(chunk));
  }
  pq::FilePages pages;
  pages.row_groups.push_back(std::move(group));
  return pq::PackPageMap(pages).ValueOrDie();
}

std::vector<TestFile> RandomFiles(uint64_t seed, int first, int count, int64_t rows,
                                  int64_t key_range) {
  Rng rng(seed);
  std::vector<TestFile> files;
  for (int i = first; i < first + count; ++i) {
    TestFile file;
    std::string digits = std::to_string(i);
    file.path = "f" + std::string(5 - digits.size(), '0') + digits + ".parquet";
    while (static_cast<int64_t>(file.keys.size()) < rows) {
      const int64_t key = rng.Chance(0.02)
                              ? kNull
                              : static_cast<int64_t>(rng.Below(static_cast<uint64_t>(key_range)));
      const uint64_t run = rng.Chance(0.2) ? 1 + rng.Below(5) : 1;
      for (uint64_t r = 0; r < run && static_cast<int64_t>(file.keys.size()) < rows; ++r) {
        file.keys.push_back(key);
      }
    }
    files.push_back(std::move(file));
  }
  return files;
}

TestIndex::TestIndex(store::Location at, TestOptions options)
    : folder(std::move(at)), table{folder.store, "/table"}, options_(options) {
  manifest_.version = 1;
  manifest_.index_id = "test";
  manifest_.key = {{"id", options.word_keys ? "int" : "string"}};
  manifest_.table_uri = "memory://table";
  manifest_.table_kind = "plain";
  manifest_.sorted = options.sorted;
  if (options.covering) manifest_.covering = {"cover"};
}

int64_t TestIndex::CoverOf(const std::string& path, int64_t row) const {
  return numbers_.at(path) * 1000000 + row;
}

Status TestIndex::AddFragment(const std::vector<TestFile>& files) {
  FragmentOptions options;
  options.word_keys = options_.word_keys;
  options.threads = 1;
  if (options_.sorted) options.sorted = {key::KeyType::Parse("int").ValueOrDie()};
  if (options_.covering) options.covering = CoveringSchema();
  ARROW_ASSIGN_OR_RAISE(const std::unique_ptr<FragmentBuilder> builder,
                        FragmentBuilder::Make(options));
  ARROW_ASSIGN_OR_RAISE(const uint32_t schema, builder->AddSchema(SchemaBytes()));
  for (const TestFile& file : files) {
    const auto rows = static_cast<int64_t>(file.keys.size());
    FragmentFile entry;
    entry.path = file.path;
    entry.identity = {1000 + rows, "tag-" + file.path};
    entry.row_count = rows;
    entry.schema = schema;
    ARROW_ASSIGN_OR_RAISE(const FileId id,
                          builder->AddFile(entry, TestPageMap(rows, options_.page_rows)));
    numbers_.emplace(file.path, static_cast<int64_t>(numbers_.size()));
    std::shared_ptr<arrow::RecordBatch> covering;
    if (options_.covering) {
      arrow::Int64Builder values;
      for (int64_t row = 0; row < rows; ++row) {
        ARROW_RETURN_NOT_OK(values.Append(CoverOf(file.path, row)));
      }
      ARROW_ASSIGN_OR_RAISE(const auto column, values.Finish());
      covering = arrow::RecordBatch::Make(CoveringSchema(), rows, {column});
    }
    ARROW_RETURN_NOT_OK(builder->AddRows(id, RowIndex{0}, Encode(file.keys), covering.get()));
    live_[file.path] = file;
  }
  const std::string path = NewFragmentPath();
  ARROW_ASSIGN_OR_RAISE(const std::unique_ptr<store::Upload> upload,
                        folder.store->StartUpload(folder.path + "/" + path));
  ARROW_ASSIGN_OR_RAISE(FragmentInfo info, builder->Write(*upload));
  ARROW_RETURN_NOT_OK(upload->Finish().status());
  info.path = path;
  manifest_.fragments.push_back(std::move(info));
  return CheckManifest(manifest_);
}

void TestIndex::Kill(const std::string& path) {
  live_.erase(path);
  for (const FragmentInfo& info : manifest_.fragments) {
    auto object = std::make_shared<store::Object>();
    object->path = folder.path + "/" + info.path;
    const store::ReadRequest head{object, info.head};
    const auto bytes = folder.store->Read(std::span(&head, 1)).ValueOrDie();
    const auto fragment = Fragment::Open(info, bytes[0]).ValueOrDie();
    for (uint32_t i = 0; i < fragment->files().size(); ++i) {
      if (fragment->files()[i].path == path) manifest_.dead_files.push_back({info.path, i});
    }
  }
}

Result<std::shared_ptr<IndexView>> TestIndex::Open(const ViewOptions& options) const {
  return IndexView::Open(table, folder, manifest_, options);
}

key::EncodedKeys TestIndex::Encode(const std::vector<int64_t>& keys) const {
  key::EncodedKeys encoded;
  encoded.is_word = options_.word_keys;
  if (options_.word_keys) {
    const bool has_null = std::find(keys.begin(), keys.end(), kNull) != keys.end();
    for (const int64_t key : keys) {
      encoded.words.push_back(key == kNull ? 0 : static_cast<uint64_t>(key));
      if (has_null) encoded.null_rows.push_back(key == kNull ? 1 : 0);
    }
    return encoded;
  }
  encoded.offsets.push_back(0);
  for (const int64_t key : keys) {
    encoded.bytes += key == kNull ? std::string(1, '\0') : TextKey(key);
    encoded.offsets.push_back(encoded.bytes.size());
  }
  return encoded;
}

TestIndex::Rows TestIndex::ExpectedRange(int64_t least, int64_t most) const {
  std::map<int64_t, Rows> by_key;
  for (const auto& [path, file] : live_) {
    for (size_t row = 0; row < file.keys.size(); ++row) {
      const int64_t key = file.keys[row];
      if (key != kNull && key >= least && key <= most) {
        by_key[key].emplace_back(path, static_cast<int64_t>(row));
      }
    }
  }
  Rows rows;
  for (auto& [key, some] : by_key) rows.insert(rows.end(), some.begin(), some.end());
  return rows;
}

TestIndex::Rows TestIndex::Expected(int64_t key) const {
  Rows rows;
  for (const auto& [path, file] : live_) {
    for (size_t row = 0; row < file.keys.size(); ++row) {
      if (file.keys[row] == key) rows.emplace_back(path, static_cast<int64_t>(row));
    }
  }
  return rows;
}

std::vector<int64_t> TestIndex::ExpectedCovering(int64_t key) const {
  std::vector<int64_t> values;
  for (const auto& [path, row] : Expected(key)) values.push_back(CoverOf(path, row));
  return values;
}

TestIndex::Rows TestIndex::RowsOf(const IndexView& view, const FoundRows& found) {
  Rows rows;
  for (size_t i = 0; i < found.runs.size(); ++i) {
    const FoundRun& run = found.runs[i];
    EXPECT_GT(run.row_count, 0);
    if (i > 0) {
      const FoundRun& before = found.runs[i - 1];
      EXPECT_TRUE(before.file < run.file ||
                  (before.file == run.file &&
                   before.first_row.value + before.row_count <= run.first_row.value));
    }
    for (int64_t row = 0; row < run.row_count; ++row) {
      rows.emplace_back(view.files()[run.file].path, run.first_row.value + row);
    }
  }
  return rows;
}

}  // namespace grebe::index::testing

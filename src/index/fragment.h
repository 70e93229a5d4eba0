// A fragment: the immutable part of an index that covers some data files. docs/format/fragment.md.
//
// Sections, in order: page maps | hash blocks | posting lists | covering blocks | sorted blocks |
// fence blocks | head. The head
// (file table, schemas, hash directory, checksums) is one range at the object's end whose place the
// manifest knows, so opening a fragment is one range read and a probe one more.
#pragma once

#include <arrow/record_batch.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/stop.h"
#include "base/types.h"
#include "key/key.h"
#include "store/store.h"

namespace grebe::index {

struct SortedDirectory;   // sorted_section.h

// One run of rows of one key in one file.
struct Posting {
  FileId file;            // within its fragment
  RowIndex first_row;
  int64_t row_count = 0;
  auto operator<=>(const Posting&) const = default;
};

struct FragmentFile {
  std::string path;              // relative to the table
  store::Identity identity;
  int64_t row_count = 0;
  uint32_t schema = 0;           // ordinal among the fragment's schemas
  ByteRange page_map;            // within the fragment object
  uint64_t page_map_checksum = 0;   // Checksum() of its bytes: check it before opening them
};

// What the manifest keeps of a fragment.
struct FragmentInfo {
  std::string path;              // relative to the index folder: "fragment/<uuid>.gfx"
  int64_t size_bytes = 0;
  ByteRange head;                // within the object
  uint64_t head_checksum = 0;
  int64_t row_count = 0;         // rows indexed (null keys included)
  int64_t key_count = 0;         // distinct keys
  int64_t file_count = 0;
  bool operator==(const FragmentInfo&) const = default;
};

struct FragmentOptions {
  bool word_keys = true;
  std::shared_ptr<arrow::Schema> covering;   // null: none
  std::vector<key::KeyType> sorted;          // the key's types, for a sorted part; empty: none
  int64_t memory_bytes_max = 256 << 20;      // buffers of the builder; beyond it spills
  std::string spill_folder;                  // empty: the system's temporary folder
  int threads = 0;                           // 0: one per core
  const StopToken* stop = nullptr;
};

// Builds one fragment in one pass, in bounded memory (partitioned by hash, spilled).
// Threads: AddSchema, AddFile and AddRows are safe; rows of one file must be added in row order
// by one thread at a time. Errors leave nothing behind (spill files are removed).
class FragmentBuilder {
 public:
  static Result<std::unique_ptr<FragmentBuilder>> Make(const FragmentOptions& options);
  virtual ~FragmentBuilder() = default;

  // Equal bytes, equal ordinal.
  virtual Result<uint32_t> AddSchema(std::string_view serialized) = 0;
  virtual Result<FileId> AddFile(const FragmentFile& file, std::string_view packed_page_map) = 0;
  virtual Status AddRows(FileId file, RowIndex first_row, const key::EncodedKeys& keys,
                         const arrow::RecordBatch* covering) = 0;
  // Writes the fragment; the caller finishes the upload. info->path is left to the caller.
  virtual Result<FragmentInfo> Write(store::Upload& upload) = 0;
};

// An opened fragment: its head in memory. Threads: immutable, safe.
class Fragment {
 public:
  static Result<std::shared_ptr<const Fragment>> Open(const FragmentInfo& info,
                                                      std::shared_ptr<arrow::Buffer> head);
  virtual ~Fragment() = default;

  virtual const std::vector<FragmentFile>& files() const = 0;
  virtual const std::vector<std::string>& schemas() const = 0;
  virtual bool word_keys() const = 0;
  virtual ByteRange page_maps() const = 0;     // all page maps, one contiguous range
  virtual int64_t memory_bytes() const = 0;
  // Where ranges of keys are; null when the fragment has no sorted part.
  virtual const SortedDirectory* sorted() const = 0;

  // Where the postings of key i can be: one contiguous range (of a block or a hot list); empty
  // when the fragment certainly does not have the key. `covering`: likewise the covering block.
  struct Place {
    ByteRange block;
    ByteRange covering;
    bool hot = false;
  };
  virtual Place Locate(const key::EncodedKeys& keys, int64_t i) const = 0;

  // Finds key i in the bytes of its place; appends its postings in (file, row) order. When
  // exact is false, the postings are candidates: the rows' keys must be compared. `block` is
  // checksummed on the first use (the caller passes verify = true once per loaded block).
  // covering_rows (may be null) gets the rows' positions in the covering block, in order.
  // Errors: Corrupt.
  virtual Status Find(const key::EncodedKeys& keys, int64_t i, const Place& place,
                      std::string_view block, bool verify, std::vector<Posting>* postings,
                      bool* exact, std::vector<int64_t>* covering_rows) const = 0;

  // Many keys over a fragment wholly in memory (mapped): found[i] postings of key i end at
  // ends[i]. Prefetches across keys. Cost: below 125 ns a key on one core, cached.
  virtual Status FindMany(const key::EncodedKeys& keys, std::string_view object,
                          std::vector<Posting>* postings, std::vector<uint64_t>* ends,
                          bool* exact) const = 0;

  // The covering rows of a covering block's bytes.
  virtual Result<std::shared_ptr<arrow::RecordBatch>> OpenCovering(
      std::string_view block) const = 0;
};

// Merges fragments into one, dropping the files that `live` says are gone (live[f][file]).
// Reads fragments only, never data. Bounded memory. In BYTES form keys are known by their hash
// only, which is enough: postings keep their hash.
struct MergeInput {
  std::shared_ptr<const Fragment> fragment;
  store::ReadRequest whole;               // the object, [0, size)
  std::vector<bool> live;                 // per file
};
Result<FragmentInfo> MergeFragments(store::Store& store, std::span<const MergeInput> inputs,
                                    const FragmentOptions& options, store::Upload& upload);

// Checks every section's checksums and the order of every block. Errors: Corrupt (naming where).
Status VerifyFragment(store::Store& store, const FragmentInfo& info,
                      const store::ReadRequest& whole);

}  // namespace grebe::index

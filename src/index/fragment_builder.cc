// Building a fragment. First pass (AddRows): each batch's keys, as runs, packed into records in
// arrival order; only then is the keys' domain known, and with it the hash. Second pass (Write):
// the records are hashed and scattered, see posting_sorter.h.
#include <algorithm>
#include <memory>
#include <mutex>
#include <new>
#include <thread>
#include <unordered_map>

#include "base/coding.h"
#include "base/failpoint.h"
#include "base/hash.h"
#include "index/covering.h"
#include "index/fragment.h"
#include "index/fragment_writer.h"
#include "index/posting_sorter.h"

namespace grebe::index {

int ThreadCount(int threads) {
  if (threads > 0) return threads;
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

std::vector<uint64_t> FileBases(const std::vector<FragmentFile>& files) {
  std::vector<uint64_t> bases;
  uint64_t rows = 0;
  for (const FragmentFile& file : files) {
    if (file.row_count > 0) bases.push_back(rows);
    rows += static_cast<uint64_t>(file.row_count);
  }
  return bases;
}

Result<FragmentInfo> WriteFragment(SpillBuffer* page_maps, PostingSorter* sorter,
                                   const SortedSource& sorted, const FragmentOptions& options,
                                   FragmentHead head, store::Upload& upload) {
  GREBE_FAILPOINT("fragment.before_write");
  ARROW_RETURN_NOT_OK(upload.Append({kFragmentMagic, sizeof(kFragmentMagic)}));
  ARROW_RETURN_NOT_OK(page_maps->CopyTo(upload));
  GREBE_FAILPOINT("fragment.mid_write");
  ARROW_RETURN_NOT_OK(sorter->Write(upload, &head));
  int64_t head_begin = static_cast<int64_t>(sizeof(kFragmentMagic)) + page_maps->size_bytes();
  for (const uint64_t size : head.block_sizes) head_begin += static_cast<int64_t>(size);
  for (const ListEntry& list : head.lists) head_begin += static_cast<int64_t>(list.size_bytes);
  for (const uint64_t size : head.covering_sizes) head_begin += static_cast<int64_t>(size);
  if (sorted != nullptr) {
    GREBE_FAILPOINT("fragment.before_sorted");
    SortedWriter writer(upload, head_begin, FileBases(head.files), options.spill_folder);
    ARROW_RETURN_NOT_OK(sorted([&](std::string_view key, uint64_t row, uint64_t count) {
      return writer.Add(key, row, count);
    }));
    ARROW_RETURN_NOT_OK(writer.Finish(&head.sorted));
    if (writer.row_count() != head.indexed_rows) {
      return Internal("the sorted part has other rows than the hash part", "expected",
                      head.indexed_rows, "got", writer.row_count());
    }
    head.has_sorted = true;
    for (const Fence& fence : head.sorted.fences) {
      head_begin += fence.data.size_bytes() + fence.bytes.size_bytes();
    }
  }
  if (!head.Place(head_begin)) return Internal("fragment sections do not add up");
  const std::string bytes = SerializeHead(head);
  ARROW_RETURN_NOT_OK(upload.Append(bytes));
  GREBE_FAILPOINT("fragment.before_finish");
  FragmentInfo info;
  info.head = {head_begin, head_begin + static_cast<int64_t>(bytes.size())};
  info.size_bytes = info.head.end;
  info.head_checksum = Checksum(bytes);
  info.row_count = static_cast<int64_t>(head.indexed_rows);
  info.key_count = static_cast<int64_t>(head.key_count);
  info.file_count = static_cast<int64_t>(head.files.size());
  return info;
}

namespace {

constexpr int64_t kRecordRowsMax = 64 << 10;
constexpr size_t kPageBytes = 1 << 20;

// Before a record's arrays: words (word_bytes each, less base_word), run lengths (4 bytes each,
// when has_lengths), null marks (1 byte each, when has_nulls).
struct RecordHeader {
  uint64_t row = 0;            // global row of the first run
  uint64_t base_word = 0;
  uint32_t run_count = 0;
  uint8_t word_bytes = 0;
  uint8_t has_lengths = 0;
  uint8_t has_nulls = 0;
  uint8_t has_covering = 0;
  BlobStore::Ref covering;

  size_t body_bytes() const {
    return static_cast<size_t>(run_count) *
           (word_bytes + (has_lengths != 0 ? 4u : 0u) + (has_nulls != 0 ? 1u : 0u));
  }
};

// Records, one after another; in memory or in the spill file.
struct Page {
  std::string bytes;
  int64_t offset_bytes = 0;
  size_t size_bytes = 0;
  bool spilled = false;
};

// The runs of one batch.
struct Runs {
  std::vector<uint64_t> words;
  std::vector<uint32_t> lengths;
  std::vector<uint8_t> nulls;
  bool any_length = false, any_null = false;
};

// Smallest range of words that holds all seen, as unsigned or as signed numbers, whichever is
// narrower: [base, base + span], wrapping.
struct Domain {
  uint64_t low = UINT64_MAX, high = 0;
  int64_t signed_low = INT64_MAX, signed_high = INT64_MIN;
  bool empty() const { return low > high; }
  void Add(uint64_t word) {
    low = std::min(low, word);
    high = std::max(high, word);
    signed_low = std::min(signed_low, static_cast<int64_t>(word));
    signed_high = std::max(signed_high, static_cast<int64_t>(word));
  }
  void Add(const Domain& other) {
    low = std::min(low, other.low);
    high = std::max(high, other.high);
    signed_low = std::min(signed_low, other.signed_low);
    signed_high = std::max(signed_high, other.signed_high);
  }
  HashSpace Space() const {
    if (empty()) return HashSpace::OfWords(0, 0);
    const uint64_t signed_span =
        static_cast<uint64_t>(signed_high) - static_cast<uint64_t>(signed_low);
    if (signed_span < high - low) {
      return HashSpace::OfWords(static_cast<uint64_t>(signed_low), signed_span);
    }
    return HashSpace::OfWords(low, high - low);
  }
};

class BuilderImpl final : public FragmentBuilder {
 public:
  explicit BuilderImpl(const FragmentOptions& options)
      : options_(Shared(options)),
        pages_file_(options_.spill_folder),
        page_maps_(options_.spill_folder, options_.memory_bytes_max / 16),
        covering_(options_.spill_folder, options_.memory_bytes_max / 8) {
    if (options.sorted.empty()) return;
    sorted_keys_ = std::make_unique<KeySorter>(options.memory_bytes_max - options_.memory_bytes_max,
                                               options.spill_folder, options.stop);
  }

  Result<uint32_t> AddSchema(std::string_view serialized) override;
  Result<FileId> AddFile(const FragmentFile& file, std::string_view packed_page_map) override;
  Status AddRows(FileId file, RowIndex first_row, const key::EncodedKeys& keys,
                 const arrow::RecordBatch* covering) override;
  Result<FragmentInfo> Write(store::Upload& upload) override;

 private:
  // What is left for the hash part: a third of the memory is for sorting keys.
  static FragmentOptions Shared(FragmentOptions options) {
    if (!options.sorted.empty()) options.memory_bytes_max -= options.memory_bytes_max / 3;
    return options;
  }
  Result<FragmentInfo> WriteOnce(store::Upload& upload);
  Status CheckRows(FileId file, RowIndex first_row, const key::EncodedKeys& keys,
                   const arrow::RecordBatch* covering, uint64_t* global_row);
  void CollectRuns(const key::EncodedKeys& keys, int64_t begin, int64_t end, Runs* runs,
                   Domain* domain) const;
  Status AddRecord(uint64_t row, const Runs& runs, const Domain& domain, const BlobStore::Ref* ref);
  Status ScatterAll(PostingSorter* sorter);
  Status ScatterPages(PostingSorter* sorter, std::atomic<size_t>* next);
  Status ScatterPage(std::string_view bytes, PostingSorter::Feeder* feeder);
  Status ScatterCovering(const RecordHeader& header, const std::vector<uint64_t>& hashes,
                         const uint8_t* lengths, const uint8_t* nulls,
                         PostingSorter::Feeder* feeder);

  const FragmentOptions options_;
  std::mutex mutex_;
  std::vector<std::string> schemas_;
  std::unordered_map<std::string, uint32_t> schema_ordinals_;
  std::vector<FragmentFile> files_;
  std::vector<uint64_t> bases_;        // global row of each file's first row
  std::vector<uint64_t> next_rows_;    // per file: where its next rows may begin
  uint64_t row_count_ = 0;             // of all files
  uint64_t indexed_rows_ = 0;
  uint64_t run_count_ = 0;
  bool any_length_ = false;
  Domain domain_;
  bool written_ = false;

  std::vector<Page> pages_;
  int64_t page_bytes_ = 0;             // of pages in memory
  SpillFile pages_file_;
  SpillBuffer page_maps_;
  BlobStore covering_;
  std::unique_ptr<KeySorter> sorted_keys_;   // null: no sorted part
};

Result<uint32_t> BuilderImpl::AddSchema(std::string_view serialized) {
  std::lock_guard lock(mutex_);
  const auto [at, fresh] = schema_ordinals_.emplace(std::string(serialized),
                                                    static_cast<uint32_t>(schemas_.size()));
  if (fresh) schemas_.emplace_back(serialized);
  return at->second;
}

Result<FileId> BuilderImpl::AddFile(const FragmentFile& file, std::string_view packed_page_map) {
  std::lock_guard lock(mutex_);
  if (file.row_count < 0 || static_cast<uint64_t>(file.row_count) > kRowsMax - row_count_) {
    return LimitExceeded("rows of a fragment", "path", file.path, "rows", file.row_count);
  }
  if (file.schema >= schemas_.size()) {
    return InvalidArgument("no such schema", "path", file.path, "schema", file.schema);
  }
  if (files_.size() >= UINT32_MAX) return LimitExceeded("files of a fragment");
  ARROW_RETURN_NOT_OK(page_maps_.Append(packed_page_map));
  FragmentFile added = file;
  added.page_map = {0, static_cast<int64_t>(packed_page_map.size())};
  added.page_map_checksum = Checksum(packed_page_map);
  files_.push_back(std::move(added));
  bases_.push_back(row_count_);
  next_rows_.push_back(0);
  row_count_ += static_cast<uint64_t>(file.row_count);
  return FileId{static_cast<uint32_t>(files_.size() - 1)};
}

Status BuilderImpl::CheckRows(FileId file, RowIndex first_row, const key::EncodedKeys& keys,
                              const arrow::RecordBatch* covering, uint64_t* global_row) {
  if (keys.is_word != options_.word_keys) {
    return InvalidArgument("keys are not of the fragment's form", "word", options_.word_keys);
  }
  if ((covering != nullptr) != (options_.covering != nullptr) ||
      (covering != nullptr && (covering->num_rows() != keys.count() ||
                               !covering->schema()->Equals(*options_.covering, false)))) {
    return InvalidArgument("covering rows do not match the keys");
  }
  const auto count = static_cast<uint64_t>(keys.count());
  std::lock_guard lock(mutex_);
  if (written_) return InvalidArgument("the fragment has been written");
  if (file.value >= files_.size()) return InvalidArgument("no such file", "file", file.value);
  const auto file_rows = static_cast<uint64_t>(files_[file.value].row_count);
  const auto first = static_cast<uint64_t>(first_row.value);
  uint64_t& next = next_rows_[file.value];
  if (first_row.value < 0 || first < next || first > file_rows || count > file_rows - first) {
    return InvalidArgument("rows out of order or outside their file", "path",
                           files_[file.value].path, "first_row", first, "rows", count, "expected",
                           next, "file_rows", file_rows);
  }
  next = first + count;
  indexed_rows_ += count;
  *global_row = bases_[file.value] + first;
  return Status::OK();
}

void BuilderImpl::CollectRuns(const key::EncodedKeys& keys, int64_t begin, int64_t end, Runs* runs,
                              Domain* domain) const {
  runs->words.clear();
  runs->lengths.clear();
  runs->nulls.clear();
  runs->any_length = runs->any_null = false;
  for (int64_t i = begin; i < end; ++i) {
    const bool null = keys.is_word && keys.is_null(i);
    const uint64_t word = null           ? 0
                          : keys.is_word ? keys.words[static_cast<size_t>(i)]
                                         : HashBytes(keys.view(i));
    // Two different byte keys of one 64-bit hash become one run: they are candidates anyway.
    if (!runs->words.empty() && runs->words.back() == word && (runs->nulls.back() != 0) == null) {
      ++runs->lengths.back();
      runs->any_length = true;
      continue;
    }
    runs->words.push_back(word);
    runs->lengths.push_back(1);
    runs->nulls.push_back(null ? 1 : 0);
    if (null) {
      runs->any_null = true;
    } else {
      domain->Add(word);
    }
  }
}

Status BuilderImpl::AddRecord(uint64_t row, const Runs& runs, const Domain& domain,
                              const BlobStore::Ref* ref) {
  RecordHeader header;
  header.row = row;
  header.run_count = static_cast<uint32_t>(runs.words.size());
  header.has_lengths = runs.any_length ? 1 : 0;
  header.has_nulls = runs.any_null ? 1 : 0;
  const HashSpace space = domain.Space();
  header.base_word = space.base;
  header.word_bytes = static_cast<uint8_t>(BytesOfBits(static_cast<uint64_t>(space.bits)));
  if (ref != nullptr) {
    header.has_covering = 1;
    header.covering = *ref;
  }
  std::string bytes(sizeof(header) + header.body_bytes() + 8, '\0');
  char* at = bytes.data();
  StoreLe(at, header);
  at += sizeof(header);
  for (const uint64_t word : runs.words) {
    StoreLe(at, word - header.base_word);   // a null's bytes are never looked at
    at += header.word_bytes;
  }
  if (runs.any_length) {
    std::memcpy(at, runs.lengths.data(), runs.lengths.size() * 4);
    at += runs.lengths.size() * 4;
  }
  if (runs.any_null) std::memcpy(at, runs.nulls.data(), runs.nulls.size());
  bytes.resize(sizeof(header) + header.body_bytes());

  std::lock_guard lock(mutex_);
  run_count_ += runs.words.size();
  any_length_ |= runs.any_length;
  domain_.Add(domain);
  if (pages_.empty() || pages_.back().spilled || pages_.back().bytes.size() >= kPageBytes) {
    if (!pages_.empty() && page_bytes_ > options_.memory_bytes_max / 2) {
      // The newest full page goes: those before it stay where they are.
      Page& full = pages_.back();
      ARROW_ASSIGN_OR_RAISE(full.offset_bytes, pages_file_.Append(full.bytes));
      full.spilled = true;
      page_bytes_ -= static_cast<int64_t>(full.size_bytes);
      std::string().swap(full.bytes);
    }
    pages_.emplace_back();
    pages_.back().bytes.reserve(kPageBytes + bytes.size());
  }
  Page& page = pages_.back();
  page.bytes.append(bytes);
  page.size_bytes = page.bytes.size();
  page_bytes_ += static_cast<int64_t>(bytes.size());
  return Status::OK();
}

Status BuilderImpl::AddRows(FileId file, RowIndex first_row, const key::EncodedKeys& keys,
                            const arrow::RecordBatch* covering) {
  if (options_.stop != nullptr) ARROW_RETURN_NOT_OK(options_.stop->Check());
  uint64_t row = 0;
  ARROW_RETURN_NOT_OK(CheckRows(file, first_row, keys, covering, &row));
  if (sorted_keys_ != nullptr) {
    key::OrderedKeys ordered;
    ARROW_RETURN_NOT_OK(key::OrderKeys(options_.sorted, keys, &ordered));
    ARROW_RETURN_NOT_OK(sorted_keys_->Add(ordered, row));
  }
  Runs runs;
  for (int64_t begin = 0; begin < keys.count(); begin += kRecordRowsMax) {
    const int64_t end = std::min(begin + kRecordRowsMax, keys.count());
    Domain domain;
    CollectRuns(keys, begin, end, &runs, &domain);
    BlobStore::Ref ref;
    if (covering != nullptr) {
      ARROW_ASSIGN_OR_RAISE(const std::string bytes,
                            SerializeBatch(*covering->Slice(begin, end - begin)));
      ARROW_ASSIGN_OR_RAISE(ref, covering_.Put(bytes));
    }
    ARROW_RETURN_NOT_OK(AddRecord(row + static_cast<uint64_t>(begin), runs, domain,
                                  covering != nullptr ? &ref : nullptr));
  }
  return Status::OK();
}

Status BuilderImpl::ScatterCovering(const RecordHeader& header,
                                    const std::vector<uint64_t>& hashes, const uint8_t* lengths,
                                    const uint8_t* nulls, PostingSorter::Feeder* feeder) {
  std::vector<uint64_t> rows, row_hashes;
  std::vector<uint8_t> row_nulls;
  uint64_t row = header.row;
  for (uint32_t i = 0; i < header.run_count; ++i) {
    const uint32_t length = lengths == nullptr ? 1 : LoadLe<uint32_t>(lengths + 4 * size_t{i});
    for (uint32_t j = 0; j < length; ++j) {
      rows.push_back(row++);
      row_hashes.push_back(hashes[i]);
      row_nulls.push_back(nulls == nullptr ? 0 : nulls[i]);
    }
  }
  ARROW_ASSIGN_OR_RAISE(std::string bytes, covering_.Take(header.covering));
  ARROW_ASSIGN_OR_RAISE(auto batch, ParseBatch(std::move(bytes), options_.covering));
  return feeder->AddCovering(batch, rows, row_hashes, row_nulls);
}

Status BuilderImpl::ScatterPage(std::string_view bytes, PostingSorter::Feeder* feeder) {
  const HashSpace space = options_.word_keys ? domain_.Space() : HashSpace::OfBytes(run_count_);
  std::vector<uint64_t> hashes;
  while (!bytes.empty()) {
    const auto header = LoadLe<RecordHeader>(bytes.data());
    const auto* words = reinterpret_cast<const uint8_t*>(bytes.data()) + sizeof(header);
    const size_t words_bytes = size_t{header.run_count} * header.word_bytes;
    const uint8_t* lengths = header.has_lengths != 0 ? words + words_bytes : nullptr;
    const uint8_t* nulls =
        header.has_nulls != 0
            ? words + words_bytes + (lengths != nullptr ? size_t{header.run_count} * 4 : 0)
            : nullptr;
    const uint64_t mask = LowMask(header.word_bytes * 8);
    hashes.resize(header.run_count);
    for (uint32_t i = 0; i < header.run_count; ++i) {
      const uint64_t word =
          header.base_word +
          (LoadWord(words, bytes.size() - sizeof(header), size_t{i} * header.word_bytes) & mask);
      if (space.word_keys) {
        space.HashWord(word, &hashes[i]);
      } else {
        hashes[i] = space.Truncate(word);
      }
    }
    uint64_t row = header.row;
    for (uint32_t i = 0; i < header.run_count; ++i) {
      const uint64_t length = lengths == nullptr ? 1 : LoadLe<uint32_t>(lengths + 4 * size_t{i});
      if (nulls != nullptr && nulls[i] != 0) {
        feeder->AddNull(row, length);
      } else {
        feeder->Add(hashes[i], row, length);
      }
      row += length;
    }
    if (header.has_covering != 0) {
      ARROW_RETURN_NOT_OK(ScatterCovering(header, hashes, lengths, nulls, feeder));
    }
    bytes.remove_prefix(sizeof(header) + header.body_bytes());
  }
  return Status::OK();
}

Status BuilderImpl::ScatterPages(PostingSorter* sorter, std::atomic<size_t>* next) {
  auto feeder = sorter->NewFeeder();
  std::string bytes;
  for (size_t i = next->fetch_add(1); i < pages_.size(); i = next->fetch_add(1)) {
    if (options_.stop != nullptr) ARROW_RETURN_NOT_OK(options_.stop->Check());
    Page& page = pages_[i];
    if (page.spilled) {
      bytes.resize(page.size_bytes);
      ARROW_RETURN_NOT_OK(pages_file_.Read(page.offset_bytes, bytes.size(), bytes.data()));
    } else {
      bytes = std::move(page.bytes);
      page.bytes = std::string();
      sorter->reserved_bytes().fetch_sub(static_cast<int64_t>(page.size_bytes));
    }
    ARROW_RETURN_NOT_OK(ScatterPage(bytes, feeder.get()));
  }
  return feeder->Finish();
}

Status BuilderImpl::ScatterAll(PostingSorter* sorter) {
  sorter->reserved_bytes() = page_bytes_;
  std::atomic<size_t> next{0};
  const auto count =
      std::min<size_t>(static_cast<size_t>(ThreadCount(options_.threads)), pages_.size());
  std::vector<Status> statuses(std::max<size_t>(count, 1));
  std::vector<std::thread> threads;
  const auto work = [&](size_t i) {
    try {
      statuses[i] = ScatterPages(sorter, &next);
    } catch (const std::bad_alloc&) {
      statuses[i] = LimitExceeded("out of memory while building a fragment");
    }
  };
  for (size_t i = 1; i < count; ++i) threads.emplace_back(work, i);
  work(0);
  for (std::thread& thread : threads) thread.join();
  for (const Status& status : statuses) ARROW_RETURN_NOT_OK(status);
  pages_.clear();
  return Status::OK();
}

Result<FragmentInfo> BuilderImpl::WriteOnce(store::Upload& upload) {
  {
    std::lock_guard lock(mutex_);
    if (written_) return InvalidArgument("the fragment has been written");
    written_ = true;
  }
  PostingSorter::Options sorting;
  sorting.space = options_.word_keys ? domain_.Space() : HashSpace::OfBytes(run_count_);
  sorting.file_bases = FileBases(files_);
  sorting.row_count = row_count_;
  sorting.entry_count = run_count_;
  sorting.has_lengths = any_length_;
  sorting.memory_bytes_max = options_.memory_bytes_max;
  sorting.spill_folder = options_.spill_folder;
  sorting.threads = ThreadCount(options_.threads);
  sorting.stop = options_.stop;
  sorting.covering = options_.covering;
  sorting.covering_bytes = covering_.size_bytes();
  PostingSorter sorter(std::move(sorting));
  ARROW_RETURN_NOT_OK(ScatterAll(&sorter));
  FragmentHead head;
  head.schemas = std::move(schemas_);
  head.files = std::move(files_);
  head.indexed_rows = indexed_rows_;
  if (options_.covering != nullptr) {
    ARROW_ASSIGN_OR_RAISE(head.covering_schema, SerializeSchema(*options_.covering));
  }
  SortedSource sorted;
  if (sorted_keys_ != nullptr) {
    sorted = [this](const EntrySink& sink) { return sorted_keys_->Drain(sink); };
  }
  return WriteFragment(&page_maps_, &sorter, sorted, options_, std::move(head), upload);
}

Result<FragmentInfo> BuilderImpl::Write(store::Upload& upload) {
  try {
    return WriteOnce(upload);
  } catch (const std::bad_alloc&) {
    return LimitExceeded("out of memory while writing a fragment");
  }
}

}  // namespace

Result<std::unique_ptr<FragmentBuilder>> FragmentBuilder::Make(const FragmentOptions& options) {
  if (options.memory_bytes_max <= 0) {
    return InvalidArgument("no memory to build with", "memory_bytes_max",
                           options.memory_bytes_max);
  }
  if (options.covering != nullptr) ARROW_RETURN_NOT_OK(CheckCoveringSchema(*options.covering));
  return std::make_unique<BuilderImpl>(options);
}

}  // namespace grebe::index

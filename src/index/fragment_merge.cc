// Merging fragments: the postings of every input are read back, renumbered, and sorted anew as a
// build would. Word keys are had back from their hash and hashed in the joint domain; byte keys
// keep as many bits of their hash as the coarsest input has.
#include <algorithm>
#include <new>

#include "base/coding.h"
#include "base/hash.h"
#include "base/take_rows.h"
#include "index/covering.h"
#include "index/fragment.h"
#include "index/fragment_reader.h"
#include "index/fragment_writer.h"
#include "index/posting_sorter.h"

namespace grebe::index {
namespace {

constexpr int64_t kReadBytes = 4 << 20;

struct Input {
  const MergeInput* input = nullptr;
  const FragmentReader* reader = nullptr;
  std::vector<uint64_t> new_bases;   // per file: its global row in the result; dead: UINT64_MAX
};
constexpr uint64_t kDead = UINT64_MAX;

Result<std::shared_ptr<arrow::Buffer>> ReadRange(store::Store& store, const MergeInput& input,
                                                 ByteRange range) {
  store::ReadRequest request{input.whole.object, {input.whole.range.begin + range.begin,
                                                  input.whole.range.begin + range.end}};
  ARROW_ASSIGN_OR_RAISE(auto buffers, store.Read({&request, 1}));
  if (buffers[0]->size() != range.size_bytes()) return Corrupt("fragment is cut short");
  return buffers[0];
}

std::string_view ViewOf(const arrow::Buffer& buffer) {
  return {reinterpret_cast<const char*>(buffer.data()), static_cast<size_t>(buffer.size())};
}

// The runs of an input's sorted part that live on, renumbered.
class LiveRuns final : public EntryStream {
 public:
  LiveRuns(store::Store& store, const Input& input, int64_t read_bytes)
      : store_(store),
        input_(input),
        read_bytes_(read_bytes),
        tops_(input.reader->head().sorted.fences) {}

  Result<bool> Next() override {
    const FileFinder& finder = input_.reader->finder();
    while (true) {
      while (!entries_.Next()) {
        if (entries_.damaged()) return Corrupt("bad sorted block");
        ARROW_ASSIGN_OR_RAISE(const bool more, OpenBlock());
        if (!more) return false;
      }
      const uint32_t file = finder.FileOf(entries_.row());
      if (entries_.count() > finder.base(file + 1) - entries_.row()) {
        return Corrupt("a run leaves its file");
      }
      const uint64_t base = input_.new_bases[file];
      if (base == kDead) continue;
      row_ = base + (entries_.row() - finder.base(file));
      return true;
    }
  }
  std::string_view key() const override { return entries_.key(); }
  uint64_t row() const override { return row_; }
  uint64_t count() const override { return entries_.count(); }

 private:
  Result<bool> OpenBlock() {
    while (block_ == blocks_.size()) {
      if (top_ == tops_.size()) return false;
      ARROW_ASSIGN_OR_RAISE(auto bytes, ReadRange(store_, *input_.input, tops_[top_].bytes));
      ARROW_ASSIGN_OR_RAISE(blocks_, ReadFenceBlock(ViewOf(*bytes), tops_[top_++]));
      block_ = 0;
    }
    const ByteRange range = blocks_[block_++].bytes;
    if (buffer_ == nullptr || range.end > buffered_.end) {
      // This block and those after it, as many as a read takes.
      buffered_ = range;
      for (size_t i = block_; i < blocks_.size() && buffered_.size_bytes() < read_bytes_; ++i) {
        buffered_.end = blocks_[i].bytes.end;
      }
      ARROW_ASSIGN_OR_RAISE(buffer_, ReadRange(store_, *input_.input, buffered_));
    }
    const auto bytes = ViewOf(*buffer_).substr(static_cast<size_t>(range.begin - buffered_.begin),
                                               static_cast<size_t>(range.size_bytes()));
    ARROW_ASSIGN_OR_RAISE(const std::string_view entries, OpenSortedBlock(bytes));
    entries_ = EntryReader(entries, input_.reader->head().file_rows);
    return true;
  }

  store::Store& store_;
  const Input& input_;
  const int64_t read_bytes_;
  const std::vector<Fence>& tops_;
  std::vector<Fence> blocks_;             // of the fence block before top_
  size_t top_ = 0, block_ = 0;
  std::shared_ptr<arrow::Buffer> buffer_;
  ByteRange buffered_;
  EntryReader entries_;
  uint64_t row_ = 0;
};

class Merger {
 public:
  Merger(store::Store& store, std::span<const MergeInput> inputs, const FragmentOptions& options)
      : store_(store),
        options_(options),
        page_maps_(options.spill_folder, options.memory_bytes_max / 16) {
    for (const MergeInput& input : inputs) inputs_.push_back({&input, nullptr, {}});
  }

  Result<FragmentInfo> Run(store::Upload& upload);

 private:
  Status Open();
  HashSpace JointSpace() const;
  Status AddFiles(Input* input);
  Status CopyPageMaps(const Input& input);
  Status FeedBlocks(const Input& input, PostingSorter::Feeder* feeder);
  Status FeedBlock(const Input& input, uint64_t block, std::string_view bytes,
                   PostingSorter::Feeder* feeder);
  Status FeedLists(const Input& input, PostingSorter::Feeder* feeder);
  // Feeds the runs of keys; hashes are of the input's space. item: of the covering block.
  Status FeedKeys(const Input& input, const KeyRuns& keys, bool null_keys, uint64_t item,
                  PostingSorter::Feeder* feeder);
  uint64_t NewHash(const HashSpace& from, uint64_t hash) const;
  Status MergeSorted(const EntrySink& sink) const;
  Status CheckStop() const {
    return options_.stop == nullptr ? Status::OK() : options_.stop->Check();
  }

  store::Store& store_;
  const FragmentOptions& options_;
  std::vector<Input> inputs_;
  SpillBuffer page_maps_;
  FragmentHead head_;
  HashSpace space_;
  bool covers_ = false;
};

Status Merger::Open() {
  for (size_t i = 0; i < inputs_.size(); ++i) {
    Input& input = inputs_[i];
    input.reader = dynamic_cast<const FragmentReader*>(input.input->fragment.get());
    if (input.reader == nullptr) return InvalidArgument("not an opened fragment", "input", i);
    const FragmentHead& head = input.reader->head();
    if (input.input->live.size() != head.files.size()) {
      return InvalidArgument("live does not match the files", "input", i);
    }
    if (head.space.word_keys != options_.word_keys) {
      return InvalidArgument("inputs are of different key forms", "input", i);
    }
    if (!options_.sorted.empty() && !head.has_sorted) {
      return InvalidArgument("an input has no sorted part", "input", i);
    }
    const bool has_covering = options_.covering != nullptr;
    if (head.has_covering != has_covering) {
      return InvalidArgument("inputs differ in covering columns", "input", i);
    }
    if (!has_covering) continue;
    ARROW_ASSIGN_OR_RAISE(auto schema, ParseSchema(head.covering_schema));
    if (!schema->Equals(*options_.covering, false)) {
      return InvalidArgument("inputs differ in covering columns", "input", i);
    }
  }
  covers_ = options_.covering != nullptr;
  return Status::OK();
}

HashSpace Merger::JointSpace() const {
  HashSpace joint = inputs_.empty() ? HashSpace::OfWords(0, 0) : inputs_[0].reader->head().space;
  if (inputs_.empty() && !options_.word_keys) return HashSpace::OfBytes(0);
  for (const Input& input : inputs_) {
    const HashSpace& space = input.reader->head().space;
    if (!joint.word_keys) {
      joint.bits = std::min(joint.bits, space.bits);
      continue;
    }
    // An input without word keys has no say.
    const FragmentHead& head = input.reader->head();
    const bool only_nulls = head.blocks.empty() &&
                            std::all_of(head.lists.begin(), head.lists.end(),
                                        [](const ListEntry& list) { return list.null_keys; });
    if (only_nulls) {
      if (&input == &inputs_[0]) joint.bits = -1;
      continue;
    }
    if (joint.bits < 0) {
      joint = space;
      continue;
    }
    // The narrower of the two ways round that hold both.
    const uint64_t from_joint = std::max(joint.span, space.base - joint.base + space.span);
    const uint64_t from_space = std::max(space.span, joint.base - space.base + joint.span);
    const bool joint_wraps = space.base - joint.base > UINT64_MAX - space.span;
    const bool space_wraps = joint.base - space.base > UINT64_MAX - joint.span;
    if (joint_wraps && space_wraps) {
      joint = HashSpace::OfWords(joint.base, UINT64_MAX);
    } else if (space_wraps || (!joint_wraps && from_joint <= from_space)) {
      joint = HashSpace::OfWords(joint.base, from_joint);
    } else {
      joint = HashSpace::OfWords(space.base, from_space);
    }
  }
  return joint.bits < 0 ? HashSpace::OfWords(0, 0) : joint;
}

Status Merger::AddFiles(Input* input) {
  const FragmentHead& head = input->reader->head();
  std::vector<uint32_t> schema_of;
  for (const std::string& schema : head.schemas) {
    const auto at = std::find(head_.schemas.begin(), head_.schemas.end(), schema);
    schema_of.push_back(static_cast<uint32_t>(at - head_.schemas.begin()));
    if (at == head_.schemas.end()) head_.schemas.push_back(schema);
  }
  for (size_t f = 0; f < head.files.size(); ++f) {
    if (!input->input->live[f]) {
      input->new_bases.push_back(kDead);
      continue;
    }
    FragmentFile file = head.files[f];
    file.schema = schema_of[file.schema];
    input->new_bases.push_back(head_.file_rows);
    head_.file_rows += static_cast<uint64_t>(file.row_count);
    if (head_.file_rows > kRowsMax) return LimitExceeded("rows of a fragment");
    head_.files.push_back(std::move(file));
  }
  return CopyPageMaps(*input);
}

// Copies the page maps of live files, neighbours together.
Status Merger::CopyPageMaps(const Input& input) {
  const std::vector<FragmentFile>& files = input.reader->head().files;
  for (size_t f = 0; f < files.size();) {
    if (!input.input->live[f]) {
      ++f;
      continue;
    }
    size_t end = f + 1;
    while (end < files.size() && input.input->live[end] &&
           files[end].page_map.end - files[f].page_map.begin <= kReadBytes) {
      ++end;
    }
    const ByteRange range{files[f].page_map.begin, files[end - 1].page_map.end};
    if (!range.empty()) {
      ARROW_ASSIGN_OR_RAISE(auto buffer, ReadRange(store_, *input.input, range));
      for (size_t i = f; i < end; ++i) {
        const auto bytes = ViewOf(*buffer).substr(
            static_cast<size_t>(files[i].page_map.begin - range.begin),
            static_cast<size_t>(files[i].page_map.size_bytes()));
        if (Checksum(bytes) != files[i].page_map_checksum) {
          return Corrupt("page map checksum", "path", files[i].path);
        }
      }
      ARROW_RETURN_NOT_OK(page_maps_.Append(ViewOf(*buffer)));
    }
    f = end;
  }
  return Status::OK();
}

uint64_t Merger::NewHash(const HashSpace& from, uint64_t hash) const {
  if (!space_.word_keys) return hash >> (from.bits - space_.bits);
  uint64_t mixed = 0;
  space_.HashWord(from.WordOf(hash), &mixed);
  return mixed;
}

Status Merger::FeedKeys(const Input& input, const KeyRuns& keys, bool null_keys, uint64_t item,
                        PostingSorter::Feeder* feeder) {
  const HashSpace& from = input.reader->head().space;
  const FileFinder& finder = input.reader->finder();
  std::vector<int64_t> kept;            // rows of the covering block that live on
  std::vector<uint64_t> rows, hashes;
  std::vector<uint8_t> nulls;
  int64_t position = 0;
  uint64_t run = 0;
  for (size_t key = 0; key < keys.ends.size(); ++key) {
    const uint64_t hash = null_keys ? 0 : NewHash(from, keys.hashes[key]);
    for (; run < keys.ends[key]; ++run) {
      const RowRun& old = keys.runs[run];
      const uint32_t file = finder.FileOf(old.row);
      if (old.count > finder.base(file + 1) - old.row) return Corrupt("a run leaves its file");
      const uint64_t base = input.new_bases[file];
      if (base != kDead) {
        const uint64_t row = base + (old.row - finder.base(file));
        if (null_keys) {
          feeder->AddNull(row, old.count);
        } else {
          feeder->Add(hash, row, old.count);
        }
        head_.indexed_rows += old.count;
        for (uint64_t i = 0; covers_ && i < old.count; ++i) {
          kept.push_back(position + static_cast<int64_t>(i));
          rows.push_back(row + i);
          hashes.push_back(hash);
          nulls.push_back(null_keys ? 1 : 0);
        }
      }
      position += static_cast<int64_t>(old.count);
    }
  }
  if (!covers_ || kept.empty()) return Status::OK();
  ARROW_ASSIGN_OR_RAISE(auto bytes,
                        ReadRange(store_, *input.input, input.reader->covering_range(item)));
  ARROW_ASSIGN_OR_RAISE(auto batch, input.input->fragment->OpenCovering(ViewOf(*bytes)));
  if (batch->num_rows() != position) return Corrupt("covering block has the wrong rows");
  ARROW_ASSIGN_OR_RAISE(batch, TakeRows(batch, kept));
  return feeder->AddCovering(batch, rows, hashes, nulls);
}

Status Merger::FeedBlock(const Input& input, uint64_t block, std::string_view bytes,
                         PostingSorter::Feeder* feeder) {
  if (bytes.empty()) return Status::OK();
  if (!CheckBlock(bytes)) return Corrupt("hash block checksum", "block", block);
  KeyRuns keys;
  ARROW_RETURN_NOT_OK(DecodeBlock(bytes, input.reader->scope(block), &keys));
  return FeedKeys(input, keys, false, block, feeder);
}

Status Merger::FeedBlocks(const Input& input, PostingSorter::Feeder* feeder) {
  const uint64_t block_count = input.reader->head().block_sizes.size();
  for (uint64_t begin = 0; begin < block_count;) {
    ARROW_RETURN_NOT_OK(CheckStop());
    ByteRange range = input.reader->block_range(begin);
    uint64_t end = begin + 1;
    for (; end < block_count && range.size_bytes() < kReadBytes; ++end) {
      range.end = input.reader->block_range(end).end;
    }
    if (!range.empty()) {
      ARROW_ASSIGN_OR_RAISE(auto buffer, ReadRange(store_, *input.input, range));
      for (uint64_t block = begin; block < end; ++block) {
        const ByteRange at = input.reader->block_range(block);
        ARROW_RETURN_NOT_OK(FeedBlock(
            input, block,
            ViewOf(*buffer).substr(static_cast<size_t>(at.begin - range.begin),
                                   static_cast<size_t>(at.size_bytes())),
            feeder));
      }
    }
    begin = end;
  }
  return Status::OK();
}

Status Merger::FeedLists(const Input& input, PostingSorter::Feeder* feeder) {
  const FragmentHead& head = input.reader->head();
  for (uint64_t i = 0; i < head.lists.size(); ++i) {
    ARROW_RETURN_NOT_OK(CheckStop());
    const ListEntry& list = head.lists[i];
    ARROW_ASSIGN_OR_RAISE(auto buffer,
                          ReadRange(store_, *input.input, input.reader->list_range(i)));
    if (Checksum(ViewOf(*buffer)) != list.checksum) {
      return Corrupt("posting list checksum", "list", i);
    }
    KeyRuns keys;
    ARROW_RETURN_NOT_OK(DecodeList(ViewOf(*buffer), list.run_count, head.file_rows, &keys.runs));
    keys.hashes.push_back(list.hash);
    keys.ends.push_back(keys.runs.size());
    ARROW_RETURN_NOT_OK(
        FeedKeys(input, keys, list.null_keys, head.block_sizes.size() + i, feeder));
  }
  return Status::OK();
}

// Inputs' files come one input after another, so runs of one key are in row order still.
Status Merger::MergeSorted(const EntrySink& sink) const {
  const int64_t read_bytes = std::clamp<int64_t>(
      options_.memory_bytes_max / 4 / static_cast<int64_t>(inputs_.size() + 1), 64 << 10,
      kReadBytes);
  std::vector<std::unique_ptr<EntryStream>> streams;
  for (const Input& input : inputs_) {
    streams.push_back(std::make_unique<LiveRuns>(store_, input, read_bytes));
  }
  return MergeStreams(std::move(streams), options_.stop, sink);
}

Result<FragmentInfo> Merger::Run(store::Upload& upload) {
  ARROW_RETURN_NOT_OK(Open());
  space_ = JointSpace();
  PostingSorter::Options sorting;
  for (Input& input : inputs_) {
    ARROW_RETURN_NOT_OK(AddFiles(&input));
    const FragmentHead& head = input.reader->head();
    sorting.entry_count += head.run_count;
    sorting.has_lengths |= head.has_lengths;
    sorting.covering_bytes += 4 * head.covering.size_bytes();   // compressed there
  }
  sorting.space = space_;
  sorting.file_bases = FileBases(head_.files);
  sorting.row_count = head_.file_rows;
  sorting.memory_bytes_max = options_.memory_bytes_max;
  sorting.spill_folder = options_.spill_folder;
  sorting.threads = ThreadCount(options_.threads);
  sorting.stop = options_.stop;
  sorting.covering = options_.covering;
  PostingSorter sorter(std::move(sorting));
  auto feeder = sorter.NewFeeder();
  for (const Input& input : inputs_) {
    ARROW_RETURN_NOT_OK(FeedBlocks(input, feeder.get()));
    ARROW_RETURN_NOT_OK(FeedLists(input, feeder.get()));
  }
  ARROW_RETURN_NOT_OK(feeder->Finish());
  feeder.reset();
  if (covers_) {
    ARROW_ASSIGN_OR_RAISE(head_.covering_schema, SerializeSchema(*options_.covering));
  }
  SortedSource sorted;
  if (!options_.sorted.empty()) {
    sorted = [this](const EntrySink& sink) { return MergeSorted(sink); };
  }
  return WriteFragment(&page_maps_, &sorter, sorted, options_, std::move(head_), upload);
}

}  // namespace

Result<FragmentInfo> MergeFragments(store::Store& store, std::span<const MergeInput> inputs,
                                    const FragmentOptions& options, store::Upload& upload) {
  try {
    return Merger(store, inputs, options).Run(upload);
  } catch (const std::bad_alloc&) {
    return LimitExceeded("out of memory while merging fragments");
  }
}

}  // namespace grebe::index

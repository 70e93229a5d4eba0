// Fuzzes the reading of fragments: the input is a head, with the bytes of the sections before it.
//
// Input: u16 little-endian size of the sections, the sections, then a head body (without its root).
// The root, the block checksums' use and the manifest's checksum are made valid, so that the
// fuzzer gets past them.
#include <arrow/buffer.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/coding.h"
#include "base/hash.h"
#include "index/fragment.h"
#include "index/fragment_format.h"
#include "index/fragment_reader.h"
#include "index/hash_block.h"
#include "index/sorted_section.h"

namespace {

using grebe::ByteRange;
using grebe::index::Fragment;
using grebe::index::FragmentInfo;
using grebe::index::FragmentReader;
using grebe::index::Posting;

grebe::key::EncodedKeys Keys(bool word_keys, uint64_t base, uint64_t span) {
  grebe::key::EncodedKeys keys;
  keys.is_word = word_keys;
  for (uint64_t i = 0; i < 64; ++i) {
    const uint64_t word = base + (span == UINT64_MAX ? i << 57 : i * (span / 64 + 1));
    keys.words.push_back(word);
    keys.null_rows.push_back(i == 63 ? 1 : 0);
    if (i == 0) keys.offsets.push_back(0);
    keys.bytes += std::to_string(i);
    keys.offsets.push_back(keys.bytes.size());
  }
  return keys;
}

// Makes the checksums of the blocks that lie within the object valid.
void Reseal(const FragmentReader& reader, std::string* object) {
  for (uint64_t block = 0; block < reader.head().block_sizes.size(); ++block) {
    const ByteRange range = reader.block_range(block);
    if (range.size_bytes() < 4) continue;
    const std::string_view bytes = std::string_view(*object).substr(
        static_cast<size_t>(range.begin) + 4, static_cast<size_t>(range.size_bytes()) - 4);
    grebe::StoreLe(object->data() + range.begin, static_cast<uint32_t>(grebe::Checksum(bytes)));
  }
}

std::string_view Slice(std::string_view object, ByteRange range) {
  return object.substr(static_cast<size_t>(range.begin), static_cast<size_t>(range.size_bytes()));
}

// Makes the checksum of a fence block or sorted block valid.
std::string Resealed(std::string_view bytes) {
  std::string out(bytes);
  if (out.size() < 4) return out;
  const uint64_t sum = grebe::Checksum(std::string_view(out).substr(4));
  grebe::StoreLe(out.data(), static_cast<uint32_t>(sum));
  return out;
}

// Reads the whole sorted part; runs must stay within the fragment's rows.
void ReadSorted(const Fragment& fragment, const FragmentReader& reader, std::string_view object) {
  if (fragment.sorted() == nullptr) return;
  std::vector<Posting> postings;
  for (const auto& top : fragment.sorted()->fences) {
    const auto fences = grebe::index::ReadFenceBlock(Resealed(Slice(object, top.bytes)), top);
    if (!fences.ok()) continue;
    for (const auto& fence : *fences) {
      const std::string block = Resealed(Slice(object, fence.bytes));
      const auto bytes = grebe::index::OpenSortedBlock(block);
      if (!bytes.ok()) continue;
      grebe::index::EntryReader runs(*bytes, reader.head().file_rows);
      while (runs.Next()) {
        postings.clear();
        (void)reader.finder().ToPosting(runs.row(), runs.count(), &postings);
      }
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t sections = std::min<size_t>(grebe::LoadLe<uint16_t>(data), size - 2);
  std::string object(grebe::index::kFragmentMagic, sizeof(grebe::index::kFragmentMagic));
  object += input.substr(2, sections);
  const std::string_view body = input.substr(2 + sections);
  FragmentInfo info;
  info.head.begin = static_cast<int64_t>(object.size());
  std::string head(body);
  const grebe::index::Root root{body.size() + sizeof(root), grebe::Checksum(body),
                                grebe::index::kFragmentVersion, grebe::index::kRootMagic};
  grebe::PutFixed(&head, root);
  object += head;
  info.head.end = info.size_bytes = static_cast<int64_t>(object.size());
  info.head_checksum = grebe::Checksum(head);
  auto opened = Fragment::Open(info, arrow::Buffer::FromString(head));
  if (!opened.ok()) return 0;
  const Fragment& fragment = **opened;
  const auto& reader = dynamic_cast<const FragmentReader&>(fragment);
  Reseal(reader, &object);

  ReadSorted(fragment, reader, object);

  const auto& space = reader.head().space;
  const auto keys = Keys(fragment.word_keys(), space.base, space.span);
  std::vector<Posting> postings;
  bool exact = false;
  for (int64_t i = 0; i < keys.count(); ++i) {
    const Fragment::Place place = fragment.Locate(keys, i);
    const std::string block = object.substr(static_cast<size_t>(place.block.begin),
                                            static_cast<size_t>(place.block.size_bytes()));
    postings.clear();
    std::vector<int64_t> rows;
    (void)fragment.Find(keys, i, place, block, i % 2 == 0, &postings, &exact,
                        i % 4 == 0 ? &rows : nullptr);
  }
  std::vector<uint64_t> ends;
  (void)fragment.FindMany(keys, object, &postings, &ends, &exact);
  for (uint64_t block = 0; block < reader.head().block_sizes.size(); ++block) {
    const ByteRange range = reader.block_range(block);
    grebe::index::KeyRuns decoded;
    (void)grebe::index::DecodeBlock(
        std::string_view(object).substr(static_cast<size_t>(range.begin),
                                        static_cast<size_t>(range.size_bytes())),
        reader.scope(block), &decoded);
  }
  return 0;
}

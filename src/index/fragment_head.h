// The head of a fragment as a plain struct, and its bytes. fragment_format.h says the layout.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/types.h"
#include "index/fragment.h"
#include "index/key_hash.h"
#include "index/sorted_section.h"

namespace grebe::index {

struct ListEntry {
  bool null_keys = false;
  uint64_t hash = 0;          // 0 for null keys
  uint64_t size_bytes = 0;
  uint64_t run_count = 0;
  uint64_t checksum = 0;
};

struct FragmentHead {
  HashSpace space;
  bool has_lengths = false;
  bool has_covering = false;
  bool has_sorted = false;
  uint64_t indexed_rows = 0;
  uint64_t key_count = 0;
  uint64_t run_count = 0;
  std::vector<std::string> schemas;
  std::vector<FragmentFile> files;          // page_map ranges are absolute
  std::vector<uint64_t> block_sizes;        // at least one
  std::vector<ListEntry> lists;
  std::string covering_schema;
  std::vector<uint64_t> covering_sizes;     // per block, then per list
  SortedDirectory sorted;                   // ranges are absolute

  // Derived when parsed or finished: the sections within the object.
  ByteRange page_maps, blocks, list_section, covering, sorted_blocks, fence_blocks;
  uint64_t file_rows = 0;                   // rows of all files

  // Computes the derived parts and every file's page_map range from its size. False when the
  // sizes do not add up to the bytes before head_begin.
  [[nodiscard]] bool Place(int64_t head_begin);
};

// REQUIRES: sizes and counts are set. The result ends with the root.
std::string SerializeHead(const FragmentHead& head);

// Errors: Corrupt, Unsupported for an unknown version. head_begin: where the head lies.
Result<FragmentHead> ParseHead(std::string_view bytes, int64_t head_begin);

}  // namespace grebe::index

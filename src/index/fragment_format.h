// The bytes of a fragment. docs/format/fragment.md tells the same with a worked example.
//
//   offset          section
//   0               magic "GREBEGFX"
//   8               page maps, packed, one after another in file order
//   page_maps.end   hash blocks, one after another in hash order
//   blocks.end      posting lists (the null keys first, then the hot keys in hash order)
//   lists.end       covering blocks (of the hash blocks, then of the lists); absent: empty
//   covering.end    sorted blocks, in key order; absent: empty
//   sorted.end      fence blocks, in key order; absent: empty
//   head.begin      head, up to the object's end; its last 24 bytes are the root
//
// All integers are little-endian; "varint" is LEB128; packed bits go least significant first.
//
//   HEAD              size   meaning
//   magic             4      "GFXH"
//   version           2      1, or 2 with a sorted part
//   key form          1      0 word, 1 bytes
//   hash bits         1      word: width of the domain; bytes: precision of the fingerprint
//   domain base       8      word form: smallest key of the (wrapping) domain, else 0
//   domain span       8      word form: largest key - base, else 0
//   flags             1      1: some runs are longer than one row; 2: has covering blocks;
//                            4: has a sorted part (version 2 only)
//   rows indexed      varint null keys included
//   key count         varint distinct keys; a null key counts as one
//   run count         varint postings in blocks and lists
//   schemas           varint count, then per schema: varint size, bytes
//   files             varint count, then per file (below)
//   blocks            varint count, then per block: varint size (0: no keys in that range)
//   lists             varint count, then per list (below)
//   covering schema   varint size, Arrow IPC schema message (flag 2 only)
//   covering sizes    per block, then per list: varint size (flag 2 only)
//
//   sorted part       (flag 4 only) varint size + least bytes of a key, varint size + bytes above
//                     every key, varint count of fence blocks, then per fence block: varint bytes
//                     shared with the fence before, varint size + rest of the fence, varint size,
//                     varint size of its sorted blocks, varint rows
//
//   FILE: varint bytes shared with the path before, varint size + rest of the path,
//         varint object size + 1 (0: not known), varint size + identity tag, varint rows,
//         varint schema, varint page map size, 8 bytes XXH3 of the page map
//   LIST: 1 byte kind (0 null keys, 1 hot), varint hash - hash of the list before,
//         varint size, varint runs, 8 bytes XXH3 of the list
//
//   ROOT    size   meaning
//   size    8      bytes of the head, the root included
//   sum     8      XXH3 of the head before the root
//   version 4      as the head's
//   magic   4      "GFXR"
//
//   HASH BLOCK       size   meaning
//   checksum         4      low half of the XXH3 of what follows
//   key count        4      at least 1
//   run count        4      at least key count
//   low bits         1      of the keys' remainders
//   extra low bits   1      of the extra run counts; 255: every key has one run
//   length bits      1      of the runs' lengths; 0: every run is one row
//   reserved         1      0
//   keys             ..     Elias-Fano of hash - first hash of the block: upper part, low parts
//   extra runs       ..     Elias-Fano of (runs of keys 0..k) - (k + 1), unless 255
//   rows             ..     packed: first global row of each run
//   lengths          ..     packed: rows of each run - 1
//
//   LIST: groups of 128 runs (the last may be shorter): 1 byte gap bits, 1 byte length bits,
//         packed gaps from the end of the run before, packed lengths - 1
//
//   SORTED BLOCK: 4 bytes low half of the XXH3 of what follows, entries. Keys are ordered forms
//   SORTED ENTRY: varint 4 * gap + 2 if the run is longer than one row + 1 if it begins a key; of a
//         key: 1 byte, 16 * bytes shared with the key before (15: 15 and a varint more) + size of
//         the rest (likewise), the varints, the rest; of a long run: varint rows - 2.
//         gap: from the end of the run before; zigzag when the run begins a key
//   FENCE BLOCK: 4 bytes low half of the XXH3 of what follows, varint count, then per sorted block:
//         varint bytes shared with the fence before, varint size + rest of the fence, varint size
//         of the block, varint rows
//
//   COVERING BLOCK: 8 bytes XXH3 of what follows, an Arrow IPC stream (zstd)
#pragma once

#include <cstddef>
#include <cstdint>

namespace grebe::index {

constexpr char kFragmentMagic[8] = {'G', 'R', 'E', 'B', 'E', 'G', 'F', 'X'};
constexpr uint32_t kHeadMagic = 0x48584647;  // "GFXH"
constexpr uint32_t kRootMagic = 0x52584647;  // "GFXR"
constexpr uint16_t kFragmentVersion = 1;
constexpr uint16_t kFragmentVersionSorted = 2;
constexpr uint8_t kFlagLengths = 1;
constexpr uint8_t kFlagCovering = 2;
constexpr uint8_t kFlagSorted = 4;

constexpr uint8_t kNoExtraCounts = 255;

// A key with more runs than this has a list of its own.
constexpr uint64_t kHotRuns = 2048;
constexpr int64_t kBlockTargetBytes = 4096;
// A sorted block, and a fence block, ends with the first entry that makes it as large as this.
constexpr size_t kSortedBlockBytes = 8 << 10;
constexpr size_t kFenceBlockBytes = 16 << 10;
// Rows of one fragment's files, and rows of one run while it is being sorted.
constexpr uint64_t kRowsMax = uint64_t{1} << 40;

#pragma pack(push, 1)
struct BlockHeader {
  uint32_t checksum;
  uint32_t key_count;
  uint32_t run_count;
  uint8_t low_bits;
  uint8_t extra_low_bits;
  uint8_t length_bits;
  uint8_t reserved;
};
struct Root {
  uint64_t head_size_bytes;
  uint64_t checksum;
  uint32_t version;
  uint32_t magic;
};
#pragma pack(pop)
static_assert(sizeof(BlockHeader) == 16 && sizeof(Root) == 24);

}  // namespace grebe::index

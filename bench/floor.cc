// The floors that the goals are set against, on one thread with the files in the page cache:
//
//   floor KEYS FILE.parquet...
// KEYS: JSON lines such as {"user_id": 42}; the key is an int64 column
//
// decode      CPU seconds to decode the key column of every file (best of three): an index build
//             cannot do without. CPU, since it cannot be stretched by what else runs
// pages       per key, the time to pread and decompress each page that its rows lie in once, over
//             all columns, with and without the dictionaries: a lookup without a page cache cannot
//             do without. The pages come from the OffsetIndex, the rows from the scan above.
//
// Prints one JSON object. zstd files only.

#include <fcntl.h>
#include <parquet/column_reader.h>
#include <parquet/file_reader.h>
#include <parquet/metadata.h>
#include <parquet/page_index.h>
#include <time.h>
#include <unistd.h>
#include <zstd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include <nlohmann/json.hpp>

#include "bench/peers/peer.h"

namespace {

using grebe::bench::MonotonicNs;

int64_t ThreadCpuNs() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return now.tv_sec * 1'000'000'000LL + now.tv_nsec;
}

struct Range {
  int64_t offset = 0;
  int64_t size = 0;
  bool operator<(const Range& other) const { return offset < other.offset; }
};
struct FilePages {
  int file = 0;
  std::set<Range> data, dictionary;
};
struct Spot {  // a row
  int file = 0;
  int row_group = 0;
  int64_t row = 0;  // of the row group
};
using Spots = std::unordered_map<int64_t, std::vector<Spot>>;  // by key

struct File {
  std::string path;
  std::unique_ptr<parquet::ParquetFileReader> reader;
  int fd = -1;
};

// Decodes the key column; where `spots` is given, notes the rows of its keys.
int64_t DecodeKeys(std::vector<File>& files, int key_column, Spots* spots) {
  constexpr int64_t kBatch = 64 << 10;
  std::vector<int64_t> values(kBatch);
  std::vector<int16_t> levels(kBatch);
  int64_t rows = 0;
  for (size_t file = 0; file < files.size(); ++file) {
    // Opened anew, as a build has to: the footer is part of the work.
    auto reader = parquet::ParquetFileReader::OpenFile(files[file].path, false);
    for (int group = 0; group < reader->metadata()->num_row_groups(); ++group) {
      auto column = std::static_pointer_cast<parquet::Int64Reader>(
          reader->RowGroup(group)->Column(key_column));
      int64_t row = 0;
      while (column->HasNext()) {
        int64_t count = 0;
        column->ReadBatch(kBatch, levels.data(), nullptr, values.data(), &count);
        for (int64_t i = 0; spots != nullptr && i < count; ++i) {
          auto found = spots->find(values[i]);
          if (found != spots->end()) {
            found->second.push_back({static_cast<int>(file), group, row + i});
          }
        }
        row += count;
      }
      rows += row;
    }
  }
  return rows;
}

// Adds the pages that one row lies in.
void AddPages(const File& file, const Spot& spot, FilePages* out) {
  auto metadata = file.reader->metadata();
  auto group = metadata->RowGroup(spot.row_group);
  auto indexes = file.reader->GetPageIndexReader()->RowGroup(spot.row_group);
  for (int column = 0; column < metadata->num_columns(); ++column) {
    const auto pages = indexes->GetOffsetIndex(column)->page_locations();
    auto page = std::upper_bound(
        pages.begin(), pages.end(), spot.row,
        [](int64_t row, const parquet::PageLocation& p) { return row < p.first_row_index; });
    --page;
    out->data.insert({page->offset, page->compressed_page_size});
    auto chunk = group->ColumnChunk(column);
    if (chunk->has_dictionary_page()) {
      int64_t offset = chunk->dictionary_page_offset();
      out->dictionary.insert({offset, chunk->data_page_offset() - offset});
    }
  }
}

class Decompressor {
 public:
  Decompressor() : context_(ZSTD_createDCtx()) {}
  ~Decompressor() { ZSTD_freeDCtx(context_); }

  // Reads a page and decompresses it. The payload begins at the frame's magic number: the header
  // before it is a few dozen bytes.
  void Read(int fd, const Range& range) {
    if (static_cast<int64_t>(page_.size()) < range.size) page_.resize(range.size);
    if (pread(fd, page_.data(), range.size, range.offset) != range.size) {
      throw std::runtime_error("short read");
    }
    static const char kMagic[] = "\x28\xB5\x2F\xFD";
    auto begin = std::search(page_.begin(), page_.begin() + std::min<int64_t>(range.size, 256),
                             kMagic, kMagic + 4);
    size_t size = range.size - (begin - page_.begin());
    size_t needed = ZSTD_getFrameContentSize(&*begin, size);
    if (needed > (64 << 20)) throw std::runtime_error("not a zstd page");
    if (out_.size() < needed) out_.resize(needed);
    size_t got = ZSTD_decompressDCtx(context_, out_.data(), out_.size(), &*begin, size);
    if (ZSTD_isError(got)) throw std::runtime_error(ZSTD_getErrorName(got));
    bytes_in += range.size;
    bytes_out += static_cast<int64_t>(got);
    ++pages;
  }

  int64_t bytes_in = 0, bytes_out = 0, pages = 0;

 private:
  ZSTD_DCtx* context_;
  std::vector<char> page_, out_;
};

nlohmann::json Measure(const std::vector<File>& files,
                       const std::vector<std::vector<FilePages>>& keys, bool dictionaries) {
  Decompressor work;
  std::vector<int64_t> times;
  for (int round = 0; round < 3; ++round) {
    for (const auto& key : keys) {
      int64_t start = MonotonicNs();
      for (const FilePages& pages : key) {
        for (const Range& range : pages.data) work.Read(files[pages.file].fd, range);
        if (!dictionaries) continue;
        for (const Range& range : pages.dictionary) work.Read(files[pages.file].fd, range);
      }
      if (round > 0) times.push_back(MonotonicNs() - start);  // round 0 warms up
    }
  }
  std::sort(times.begin(), times.end());
  double lookups = 3.0 * keys.size();
  return {{"p50_us", times[times.size() / 2] / 1e3},
          {"pages_mean", work.pages / lookups},
          {"bytes_mean", work.bytes_in / lookups},
          {"decompressed_bytes_mean", work.bytes_out / lookups}};
}

void Run(const std::string& keys_path, std::vector<File> files) {
  Spots spots;
  std::vector<int64_t> order;
  std::string key_name;
  std::ifstream keys_file(keys_path);
  for (std::string line; std::getline(keys_file, line) && order.size() < 200;) {
    auto key = nlohmann::json::parse(line);
    key_name = key.begin().key();
    order.push_back(key.begin().value());
    spots[order.back()];
  }
  int key_column = files[0].reader->metadata()->schema()->ColumnIndex(key_name);
  DecodeKeys(files, key_column, &spots);
  int64_t best_ns = INT64_MAX, rows = 0;
  for (int round = 0; round < 3; ++round) {
    int64_t start = ThreadCpuNs();
    rows = DecodeKeys(files, key_column, nullptr);
    best_ns = std::min(best_ns, ThreadCpuNs() - start);
  }
  std::vector<std::vector<FilePages>> keys;
  for (int64_t key : order) {
    std::map<int, FilePages> by_file;
    for (const Spot& spot : spots[key]) {
      FilePages& pages = by_file[spot.file];
      pages.file = spot.file;
      AddPages(files[spot.file], spot, &pages);
    }
    auto& list = keys.emplace_back();
    for (auto& [file, pages] : by_file) list.push_back(std::move(pages));
  }
  std::cout << nlohmann::json{{"decode_seconds", best_ns / 1e9}, {"rows", rows},
                              {"pages", Measure(files, keys, true)},
                              {"pages_dictionaries_cached", Measure(files, keys, false)}}
                   .dump()
            << std::endl;
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 3) {
    std::cerr << "usage: floor KEYS FILE.parquet...\n";
    return 2;
  }
  std::vector<File> files;
  for (int i = 2; i < argc; ++i) {
    files.push_back({argv[i], parquet::ParquetFileReader::OpenFile(argv[i], false),
                     open(argv[i], O_RDONLY | O_CLOEXEC)});
  }
  Run(argv[1], std::move(files));
  return 0;
} catch (const std::exception& error) {
  std::cerr << "floor: " << error.what() << "\n";
  return 1;
}

// RocksDB as the key-value copy that an index on the lake replaces: one entry per row, keyed by
// (user_id, row number), the row packed as its value; a lookup is a prefix scan.
// `rocksdb_peer copy CONFIG` loads the Parquet files, `rocksdb_peer serve CONFIG` answers.
// CONFIG as in peer.py; the lake's eight columns, in its order, are compiled in.
//
// Its set-up: bulk load, then one full compaction; zstd, 10-bit Bloom filters on whole keys'
// prefixes, index and filters in memory, a block cache of 512 MiB, files kept open.

#include <arrow/api.h>
#include <arrow/io/file.h>
#include <parquet/arrow/reader.h>
#include <rocksdb/db.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/options.h>
#include <rocksdb/slice_transform.h>
#include <rocksdb/table.h>
#include <rocksdb/version.h>

#include <cstring>
#include <filesystem>
#include <iostream>

#include "bench/peers/peer.h"

namespace {

using grebe::bench::MonotonicNs;
using grebe::bench::PeakRssBytes;

arrow::Status ToArrow(const rocksdb::Status& status) {
  return status.ok() ? arrow::Status::OK() : arrow::Status::IOError(status.ToString());
}

rocksdb::Options DbOptions(bool loading) {
  rocksdb::Options options;
  options.create_if_missing = loading;
  options.IncreaseParallelism(2);
  options.compression = rocksdb::kZSTD;
  options.prefix_extractor.reset(rocksdb::NewFixedPrefixTransform(8));
  options.max_open_files = -1;
  rocksdb::BlockBasedTableOptions table;
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
  table.block_cache = rocksdb::NewLRUCache(512 << 20);
  table.format_version = 5;
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  if (loading) options.PrepareForBulkLoad();
  return options;
}

// Big-endian with the sign bit flipped: bytes sort as the numbers do.
std::string PrefixOf(int64_t key) {
  uint64_t bits = __builtin_bswap64(static_cast<uint64_t>(key) ^ (1ULL << 63));
  return std::string(reinterpret_cast<const char*>(&bits), 8);
}

template <typename T>
void Put(std::string* out, T value) {
  out->append(reinterpret_cast<const char*>(&value), sizeof value);
}
template <typename T>
T Take(const char** at) {
  T value;
  std::memcpy(&value, *at, sizeof value);
  *at += sizeof value;
  return value;
}
void PutText(std::string* out, std::string_view text) {
  Put(out, static_cast<uint16_t>(text.size()));
  out->append(text);
}
std::string_view TakeText(const char** at) {
  auto size = Take<uint16_t>(at);
  std::string_view text(*at, size);
  *at += size;
  return text;
}

// ts, ms_played, volume, skipped, then the three strings.
std::string PackRow(const arrow::RecordBatch& batch, int64_t row) {
  std::string out;
  Put(&out, static_cast<const arrow::TimestampArray&>(*batch.column(1)).Value(row));
  Put(&out, static_cast<const arrow::Int32Array&>(*batch.column(4)).Value(row));
  Put(&out, static_cast<const arrow::DoubleArray&>(*batch.column(6)).Value(row));
  Put(&out, static_cast<const arrow::BooleanArray&>(*batch.column(7)).Value(row));
  for (int column : {2, 3, 5}) {
    PutText(&out, static_cast<const arrow::StringArray&>(*batch.column(column)).GetView(row));
  }
  return out;
}

class RowsBuilder {
 public:
  arrow::Status Add(int64_t key, rocksdb::Slice value) {
    const char* at = value.data();
    ARROW_RETURN_NOT_OK(user_.Append(key));
    ARROW_RETURN_NOT_OK(ts_.Append(Take<int64_t>(&at)));
    ARROW_RETURN_NOT_OK(ms_.Append(Take<int32_t>(&at)));
    ARROW_RETURN_NOT_OK(volume_.Append(Take<double>(&at)));
    ARROW_RETURN_NOT_OK(skipped_.Append(Take<bool>(&at)));
    ARROW_RETURN_NOT_OK(track_.Append(TakeText(&at)));
    ARROW_RETURN_NOT_OK(session_.Append(TakeText(&at)));
    return country_.Append(TakeText(&at));
  }

  arrow::Result<std::shared_ptr<arrow::RecordBatch>> Finish() {
    static const auto schema = arrow::schema(
        {arrow::field("user_id", arrow::int64()),
         arrow::field("ts", arrow::timestamp(arrow::TimeUnit::MICRO)),
         arrow::field("track_uri", arrow::utf8()), arrow::field("session", arrow::utf8()),
         arrow::field("ms_played", arrow::int32()), arrow::field("country", arrow::utf8()),
         arrow::field("volume", arrow::float64()), arrow::field("skipped", arrow::boolean())});
    std::vector<std::shared_ptr<arrow::Array>> columns;
    for (arrow::ArrayBuilder* builder :
         std::initializer_list<arrow::ArrayBuilder*>{&user_, &ts_, &track_, &session_, &ms_,
                                                     &country_, &volume_, &skipped_}) {
      ARROW_ASSIGN_OR_RAISE(auto column, builder->Finish());
      columns.push_back(std::move(column));
    }
    return arrow::RecordBatch::Make(schema, columns[0]->length(), columns);
  }

 private:
  arrow::Int64Builder user_;
  arrow::TimestampBuilder ts_{arrow::timestamp(arrow::TimeUnit::MICRO),
                              arrow::default_memory_pool()};
  arrow::StringBuilder track_, session_, country_;
  arrow::Int32Builder ms_;
  arrow::DoubleBuilder volume_;
  arrow::BooleanBuilder skipped_;
};

arrow::Status LoadFile(rocksdb::DB* db, const std::string& path, uint32_t* row_number) {
  ARROW_ASSIGN_OR_RAISE(auto file, arrow::io::ReadableFile::Open(path));
  ARROW_ASSIGN_OR_RAISE(auto reader,
                        parquet::arrow::OpenFile(file, arrow::default_memory_pool()));
  ARROW_ASSIGN_OR_RAISE(auto batches, reader->GetRecordBatchReader());
  rocksdb::WriteOptions write;
  write.disableWAL = true;
  while (true) {
    ARROW_ASSIGN_OR_RAISE(auto batch, batches->Next());
    if (batch == nullptr) return arrow::Status::OK();
    const auto& users = static_cast<const arrow::Int64Array&>(*batch->column(0));
    rocksdb::WriteBatch rows;
    for (int64_t row = 0; row < batch->num_rows(); ++row) {
      std::string key = PrefixOf(users.Value(row));
      Put(&key, __builtin_bswap32((*row_number)++));
      rows.Put(key, PackRow(*batch, row));
    }
    ARROW_RETURN_NOT_OK(ToArrow(db->Write(write, &rows)));
  }
}

arrow::Status Copy(const nlohmann::json& config) {
  int64_t start = MonotonicNs();
  std::string path = config.at("copy");
  rocksdb::DB* raw = nullptr;
  ARROW_RETURN_NOT_OK(ToArrow(rocksdb::DB::Open(DbOptions(true), path, &raw)));
  std::unique_ptr<rocksdb::DB> db(raw);
  uint32_t row_number = 0;
  for (std::string file : config.at("files")) {
    ARROW_RETURN_NOT_OK(LoadFile(db.get(), file, &row_number));
  }
  ARROW_RETURN_NOT_OK(ToArrow(db->Flush({})));
  ARROW_RETURN_NOT_OK(ToArrow(db->CompactRange({}, nullptr, nullptr)));
  db.reset();
  int64_t bytes = 0;
  for (const auto& entry : std::filesystem::directory_iterator(path)) {
    if (entry.is_regular_file()) bytes += entry.file_size();
  }
  std::cout << nlohmann::json{{"seconds", (MonotonicNs() - start) / 1e9}, {"bytes", bytes},
                              {"peak_rss_bytes", PeakRssBytes()}}
                   .dump()
            << std::endl;
  return arrow::Status::OK();
}

arrow::Status ServeCopy(const nlohmann::json& config) {
  int64_t start = MonotonicNs();
  rocksdb::DB* raw = nullptr;
  ARROW_RETURN_NOT_OK(
      ToArrow(rocksdb::DB::OpenForReadOnly(DbOptions(false), config.at("copy"), &raw)));
  std::unique_ptr<rocksdb::DB> db(raw);
  double open_seconds = (MonotonicNs() - start) / 1e9;
  auto lookup = [&](int64_t key) -> arrow::Result<std::shared_ptr<arrow::RecordBatch>> {
    rocksdb::ReadOptions read;
    read.prefix_same_as_start = true;
    std::unique_ptr<rocksdb::Iterator> entry(db->NewIterator(read));
    RowsBuilder rows;
    for (entry->Seek(PrefixOf(key)); entry->Valid(); entry->Next()) {
      ARROW_RETURN_NOT_OK(rows.Add(key, entry->value()));
    }
    ARROW_RETURN_NOT_OK(ToArrow(entry->status()));
    return rows.Finish();
  };
  std::string version = std::to_string(ROCKSDB_MAJOR) + "." + std::to_string(ROCKSDB_MINOR) + "." +
                        std::to_string(ROCKSDB_PATCH);
  return grebe::bench::Serve(version, open_seconds, lookup);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: rocksdb_peer copy|serve CONFIG\n";
    return 2;
  }
  nlohmann::json config = nlohmann::json::parse(argv[2]);
  arrow::Status status = std::string(argv[1]) == "copy" ? Copy(config) : ServeCopy(config);
  if (!status.ok()) std::cerr << "rocksdb_peer: " << status.ToString() << "\n";
  return status.ok() ? 0 : 1;
}

// Writes an Arrow IPC file as Parquet through FileWriter, for the tests and benchmarks in Python.
//
//   write_file_tool IN.arrow OUT.parquet OPTIONS-AS-JSON|@FILE
//
// Options: row_group_rows, aligned, boundaries (rows of the table), preset, codec, codec_level,
// page_bytes_max, page_rows_max, dictionary (off, on, auto), dictionary_bytes_max,
// dictionary_distinct_share_max, bloom_columns, bloom_false_share_max, sorting_columns,
// bound_bytes_max, threads, repeat. Each record batch is a row group unless row_group_rows is
// given. Prints JSON: write_s (the fastest of the repeats), cpu_s, size_bytes, pages.
#include <arrow/io/file.h>
#include <arrow/io/memory.h>
#include <arrow/ipc/reader.h>
#include <arrow/table.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "parquet/write_preset.h"

namespace {

using grebe::Result;
using grebe::Status;
using nlohmann::json;
namespace pq = grebe::pq;

pq::Codec CodecOf(const std::string& name) {
  if (name == "none") return pq::Codec::kNone;
  if (name == "snappy") return pq::Codec::kSnappy;
  if (name == "gzip") return pq::Codec::kGzip;
  if (name == "brotli") return pq::Codec::kBrotli;
  if (name == "lz4") return pq::Codec::kLz4;
  return pq::Codec::kZstd;
}

pq::DictionaryPolicy PolicyOf(const std::string& name) {
  if (name == "off") return pq::DictionaryPolicy::kOff;
  return name == "on" ? pq::DictionaryPolicy::kOn : pq::DictionaryPolicy::kAuto;
}

struct Task {
  pq::WritePreset preset = pq::AnalyticsPreset();
  bool batches = true;                // each record batch is a row group
  std::vector<int64_t> boundaries;    // rows of the table
  int repeat = 1;
};

Task Parse(const json& in) {
  Task task;
  if (in.contains("preset")) {
    task.preset = pq::PresetOf(in["preset"].get<std::string>()).value();
    task.batches = false;
  }
  pq::WriteOptions& options = task.preset.options;
  if (in.contains("codec")) options.codec = CodecOf(in["codec"]);
  if (in.contains("dictionary")) options.dictionary = PolicyOf(in["dictionary"]);
  if (in.contains("row_group_rows")) {
    task.preset.row_group_rows = in["row_group_rows"];
    task.batches = false;
  }
  const auto take = [&](const char* name, auto* out) {
    if (in.contains(name)) in[name].get_to(*out);
  };
  take("aligned", &task.preset.aligned_pages);
  take("boundaries", &task.boundaries);
  take("repeat", &task.repeat);
  take("codec_level", &options.codec_level);
  take("page_bytes_max", &options.page_bytes_max);
  take("page_rows_max", &options.page_rows_max);
  take("dictionary_bytes_max", &options.dictionary_bytes_max);
  take("dictionary_distinct_share_max", &options.dictionary_distinct_share_max);
  take("bloom_columns", &options.bloom_columns);
  take("bloom_false_share_max", &options.bloom_false_share_max);
  take("bound_bytes_max", &options.bound_bytes_max);
  take("threads", &options.threads);
  if (in.contains("sorting_columns")) {
    for (const auto& column : in["sorting_columns"]) options.sorting_columns.push_back({column});
  }
  return task;
}

Status WriteGroup(const Task& task, const arrow::Table& rows, int64_t first_row,
                  pq::FileWriter* writer) {
  std::vector<int64_t> ends;
  if (task.preset.aligned_pages) {
    std::vector<int64_t> boundaries;
    const int64_t last_row = first_row + rows.num_rows();
    for (const int64_t row : task.boundaries) {
      if (row > first_row && row <= last_row) boundaries.push_back(row - first_row);
    }
    ARROW_ASSIGN_OR_RAISE(ends, pq::SharedPageEnds(rows, boundaries, task.preset.options));
  }
  return writer->WriteRowGroup(rows, ends);
}

Result<pq::WrittenFile> Write(const Task& task,
                              const std::vector<std::shared_ptr<arrow::Table>>& groups,
                              const std::shared_ptr<arrow::Schema>& schema,
                              const std::shared_ptr<arrow::io::OutputStream>& sink) {
  ARROW_ASSIGN_OR_RAISE(auto writer,
                        pq::FileWriter::Open(sink, schema, nullptr, task.preset.options));
  int64_t row = 0;
  for (const auto& group : groups) {
    ARROW_RETURN_NOT_OK(WriteGroup(task, *group, row, writer.get()));
    row += group->num_rows();
  }
  return writer->Finish();
}

Status Run(const std::string& in, const std::string& out, const Task& task) {
  ARROW_ASSIGN_OR_RAISE(auto file,
                        arrow::io::MemoryMappedFile::Open(in, arrow::io::FileMode::READ));
  ARROW_ASSIGN_OR_RAISE(auto reader, arrow::ipc::RecordBatchFileReader::Open(file));
  ARROW_ASSIGN_OR_RAISE(auto batches, reader->ToRecordBatches());
  std::vector<std::shared_ptr<arrow::Table>> groups;
  if (task.batches) {
    for (const auto& batch : batches) {
      groups.push_back(arrow::Table::Make(batch->schema(), batch->columns(), batch->num_rows()));
    }
  } else {
    ARROW_ASSIGN_OR_RAISE(auto table, arrow::Table::FromRecordBatches(reader->schema(), batches));
    for (int64_t row = 0; row < table->num_rows(); row += task.preset.row_group_rows) {
      groups.push_back(table->Slice(row, task.preset.row_group_rows));
    }
  }
  double best_s = 0;
  double best_cpu_s = 0;
  pq::WrittenFile written;
  std::shared_ptr<arrow::Buffer> bytes;
  for (int i = 0; i < task.repeat; ++i) {
    ARROW_ASSIGN_OR_RAISE(auto sink, arrow::io::BufferOutputStream::Create(1 << 24));
    const auto begin = std::chrono::steady_clock::now();
    const std::clock_t cpu_begin = std::clock();
    ARROW_ASSIGN_OR_RAISE(written, Write(task, groups, reader->schema(), sink));
    const double took =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    const double cpu = static_cast<double>(std::clock() - cpu_begin) / CLOCKS_PER_SEC;
    best_s = i == 0 ? took : std::min(best_s, took);
    best_cpu_s = i == 0 ? cpu : std::min(best_cpu_s, cpu);
    ARROW_ASSIGN_OR_RAISE(bytes, sink->Finish());
  }
  std::ofstream stream(out, std::ios::binary);
  stream.write(reinterpret_cast<const char*>(bytes->data()), bytes->size());
  int64_t pages = 0;
  for (const auto& group : written.pages.row_groups) {
    for (const auto& chunk : group.chunks) pages += chunk.info.page_count;
  }
  const json answer = {{"write_s", best_s}, {"cpu_s", best_cpu_s},
                       {"size_bytes", written.size_bytes}, {"pages", pages}};
  std::puts(answer.dump().c_str());
  return Status::OK();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fputs("write_file_tool IN.arrow OUT.parquet OPTIONS-AS-JSON\n", stderr);
    return 2;
  }
  const std::string options = argv[3];
  std::ifstream file(options.starts_with('@') ? options.substr(1) : "");
  const json parsed = file.is_open() ? json::parse(file) : json::parse(options);
  const Status status = Run(argv[1], argv[2], Parse(parsed));
  if (!status.ok()) std::fputs((status.ToString() + "\n").c_str(), stderr);
  return status.ok() ? 0 : 1;
}

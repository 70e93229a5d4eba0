// What the C++ peers share with peers/peer.py: the protocol over a pipe, the row checksum, and the
// canonical bytes of a value. See peer.py for the protocol.
#pragma once

#include <arrow/array.h>
#include <arrow/record_batch.h>
#include <arrow/result.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include <nlohmann/json.hpp>

namespace grebe::bench {

// The rows of one key. Called once per key, timed.
using Lookup = std::function<arrow::Result<std::shared_ptr<arrow::RecordBatch>>(int64_t key)>;

// Sum over rows of FNV-1a of the row's canonical bytes, columns in the batch's order; the order of
// rows does not matter. Errors: NotImplemented for a column type the lake does not have.
arrow::Result<uint64_t> RowChecksum(const arrow::RecordBatch& rows);

int64_t MonotonicNs();
int64_t PeakRssBytes();

// Prints the ready line, then answers requests until stdin ends. `extra` adds a peer's own facts to
// each answer (may be null).
arrow::Status Serve(const std::string& version, double open_seconds, const Lookup& lookup,
                    const std::function<void(nlohmann::json*)>& extra = nullptr);

}  // namespace grebe::bench

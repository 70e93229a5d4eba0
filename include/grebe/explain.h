// The cost record: what one call read and where its time went.
#pragma once

#include <cstdint>
#include <string>

namespace grebe {

struct Explain {
  // Waves: groups of reads issued together, none waiting for another. With the index in memory
  // or on local disk a lookup has one; an answer from the index alone has none.
  int64_t waves = 0;
  int64_t requests = 0;          // range reads, after coalescing
  int64_t bytes_read = 0;        // index blocks, pages, dictionaries, and bridged gaps
  int64_t gap_bytes = 0;         // of those: read only because bridging a gap was cheaper
  int64_t pages = 0;             // data pages the rows lie in (cached ones too)
  int64_t dictionary_pages = 0;  // dictionary pages fetched
  int64_t files = 0;             // data files the rows lie in
  int64_t fragments_probed = 0;  // index fragments that may hold the key
  int64_t postings = 0;          // runs of rows found, before comparing keys
  int64_t rows = 0;              // rows of the answer
  int64_t cache_hits = 0;        // blocks, dictionaries and pages found in memory
  int64_t verified_rows = 0;     // rows whose key was read and compared
  int64_t rejected_rows = 0;     // of those: fingerprint matches that were not the key
  struct StageUs {
    int64_t open = 0;            // finding and opening the index (once per Index)
    int64_t probe = 0;
    int64_t plan = 0;
    int64_t fetch = 0;           // reading; decoding that overlaps it is counted here
    int64_t decode = 0;          // after the last byte came: assembling the rows
    int64_t total = 0;
  } stage_us;

  // One JSON object, in the order above.
  std::string ToJson() const;
  // A few aligned lines for people.
  std::string ToText() const;
};

}  // namespace grebe

// Comparing the keys that rows hold with the keys that were asked for.
#pragma once

#include <arrow/record_batch.h>

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "key/key.h"

namespace grebe::lookup {

// The keys of all rows in canonical form. key_columns: names or dotted paths, in key order.
// `absent` gets the rows whose value the key types cannot represent: they match no key.
Status EncodeRowKeys(const key::KeyCodec& codec, const std::vector<std::string>& key_columns,
                     const arrow::RecordBatch& rows, key::EncodedKeys* keys,
                     std::vector<bool>* absent);

// Whether key i of a equals key j of b. REQUIRES: both of one codec.
inline bool SameKey(const key::EncodedKeys& a, int64_t i, const key::EncodedKeys& b, int64_t j) {
  if (!a.is_word) return a.view(i) == b.view(j);
  return a.is_null(i) == b.is_null(j) && a.words[i] == b.words[j];
}

}  // namespace grebe::lookup

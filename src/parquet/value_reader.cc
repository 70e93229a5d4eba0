#include "parquet/value_reader.h"

#include <algorithm>
#include <array>

#include "base/coding.h"

namespace grebe::pq {
namespace {

// parquet::Encoding as the format's Thrift numbers it.
constexpr int32_t kPlain = 0, kPlainDictionary = 2, kRle = 3, kRleDictionary = 8,
                  kByteStreamSplit = 9;

// How far to decompress ahead when walking byte arrays.
constexpr int64_t kAheadBytes = 32 << 10;

Status TooFew() { return Corrupt("page has fewer values than its levels say"); }

}  // namespace

Status ValueReader::Open(const Source& source) {
  source_ = source;
  library_.reset();
  position_ = 0;
  at_bytes_ = source.begin_bytes;
  const LeafShape& shape = source.shape;
  const int32_t encoding = source.page->header().encoding;
  switch (encoding) {
    case kPlain:
      if (shape.type == ::parquet::Type::BOOLEAN) {
        kind_ = Kind::kBits;
        count_ = std::min(size_bytes() * 8, source.value_count_max);
      } else if (shape.width == 0) {
        kind_ = Kind::kByteArrays;
      } else {
        kind_ = Kind::kFixed;
        count_ = size_bytes() / shape.width;
      }
      return Status::OK();
    case kPlainDictionary:
    case kRleDictionary: return OpenDictionary();
    case kRle: return OpenRuns();
    case kByteStreamSplit: return OpenSplit();
    default: return OpenLibrary();
  }
}

Status ValueReader::OpenDictionary() {
  kind_ = Kind::kDictionary;
  if (source_.dictionary == nullptr || !source_.dictionary->present()) {
    return Corrupt("page is dictionary-encoded, but its chunk has no dictionary");
  }
  ARROW_RETURN_NOT_OK(source_.page->Ensure(source_.page->size_bytes()));
  if (size_bytes() == 0) {  // a page of nulls only
    runs_ = RunReader();
    return Status::OK();
  }
  const uint8_t* data = source_.page->data() + source_.begin_bytes;
  const int bit_width = data[0];
  if (bit_width > 32) return Corrupt("dictionary index is too wide", "bits", bit_width);
  runs_ = RunReader(data + 1, size_bytes() - 1, bit_width, source_.value_count_max);
  return Status::OK();
}

Status ValueReader::OpenRuns() {
  kind_ = Kind::kRuns;
  if (source_.shape.type != ::parquet::Type::BOOLEAN) {
    return Unsupported("RLE values are of another type than boolean");
  }
  ARROW_RETURN_NOT_OK(source_.page->Ensure(source_.page->size_bytes()));
  if (size_bytes() == 0) {  // a page of nulls only
    runs_ = RunReader();
    return Status::OK();
  }
  const uint8_t* data = source_.page->data() + source_.begin_bytes;
  if (size_bytes() < 4 || LoadLe<uint32_t>(data) > size_bytes() - 4) {
    return Corrupt("RLE booleans run past their page");
  }
  runs_ = RunReader(data + 4, LoadLe<uint32_t>(data), 1, source_.value_count_max);
  return Status::OK();
}

Status ValueReader::OpenSplit() {
  kind_ = Kind::kSplit;
  const int32_t width = source_.shape.width;
  if (width == 0 || source_.shape.type == ::parquet::Type::BOOLEAN ||
      source_.shape.type == ::parquet::Type::INT96) {
    return Unsupported("BYTE_STREAM_SPLIT does not exist for this type");
  }
  ARROW_RETURN_NOT_OK(source_.page->Ensure(source_.page->size_bytes()));
  if (size_bytes() % width != 0) {
    return Corrupt("BYTE_STREAM_SPLIT page is no multiple of the value's width", "bytes",
                   size_bytes(), "width", width);
  }
  count_ = size_bytes() / width;
  return Status::OK();
}

Status ValueReader::OpenLibrary() {
  kind_ = Kind::kLibrary;
  ARROW_RETURN_NOT_OK(source_.page->Ensure(source_.page->size_bytes()));
  ARROW_ASSIGN_OR_RAISE(
      library_, MakeLibraryDecoder(source_.page->header().encoding, source_.descriptor,
                                   {source_.page->data() + source_.begin_bytes,
                                    static_cast<size_t>(size_bytes())},
                                   source_.value_count_max, source_.limits->page_bytes_max,
                                   source_.pool));
  return Status::OK();
}

Status ValueReader::Skip(int64_t count) {
  if (count == 0) return Status::OK();
  switch (kind_) {
    case Kind::kFixed:
    case Kind::kBits:
    case Kind::kSplit:
      if (count > count_ - position_) return TooFew();
      position_ += count;
      return Status::OK();
    case Kind::kByteArrays: return SkipByteArrays(count);
    case Kind::kDictionary:
    case Kind::kRuns: return runs_.Skip(count) ? Status::OK() : TooFew();
    case Kind::kLibrary: return library_->Skip(count);
  }
  return Internal("unknown kind of values");
}

Status ValueReader::Take(int64_t count, LeafSlice* out) {
  if (count == 0) return Status::OK();
  out->value_count += count;
  switch (kind_) {
    case Kind::kFixed: return TakeFixed(count, out);
    case Kind::kBits: return TakeBits(count, out);
    case Kind::kSplit: return TakeSplit(count, out);
    case Kind::kByteArrays: return TakeByteArrays(count, out);
    case Kind::kDictionary: return TakeDictionary(count, out);
    case Kind::kRuns: return TakeRuns(count, out);
    case Kind::kLibrary: return library_->Take(count, out);
  }
  return Internal("unknown kind of values");
}

Status ValueReader::TakeFixed(int64_t count, LeafSlice* out) {
  if (count > count_ - position_) return TooFew();
  const int64_t width = source_.shape.width;
  const int64_t begin = source_.begin_bytes + position_ * width;
  ARROW_RETURN_NOT_OK(source_.page->Ensure(begin + count * width));
  position_ += count;
  return out->values.Append(source_.page->data() + begin, count * width);
}

Status ValueReader::TakeBits(int64_t count, LeafSlice* out) {
  if (count > count_ - position_) return TooFew();
  ARROW_RETURN_NOT_OK(
      source_.page->Ensure(source_.begin_bytes + (position_ + count + 7) / 8));
  uint8_t* to = nullptr;
  ARROW_RETURN_NOT_OK(out->values.Grow(count, &to));
  const uint8_t* bits = source_.page->data() + source_.begin_bytes;
  for (int64_t i = 0; i < count; ++i, ++position_) {
    to[i] = (bits[position_ >> 3] >> (position_ & 7)) & 1;
  }
  return Status::OK();
}

Status ValueReader::TakeSplit(int64_t count, LeafSlice* out) {
  if (count > count_ - position_) return TooFew();
  const int64_t width = source_.shape.width;
  uint8_t* to = nullptr;
  ARROW_RETURN_NOT_OK(out->values.Grow(count * width, &to));
  const uint8_t* from = source_.page->data() + source_.begin_bytes + position_;
  for (int64_t byte = 0; byte < width; ++byte) {
    for (int64_t i = 0; i < count; ++i) to[i * width + byte] = from[byte * count_ + i];
  }
  position_ += count;
  return Status::OK();
}

Status ValueReader::TakeRuns(int64_t count, LeafSlice* out) {
  uint8_t* to = nullptr;
  ARROW_RETURN_NOT_OK(out->values.Grow(count, &to));
  return runs_.Read(count, 1, to) ? Status::OK() : TooFew();
}

Status ValueReader::SkipByteArrays(int64_t count) {
  PageBytes& page = *source_.page;
  const int64_t size = page.size_bytes();
  if (source_.cached != nullptr && count > CachedPage::kMarkStep) {
    const auto& marks = source_.cached->Marks(source_.begin_bytes);
    const int64_t mark = std::min((position_ + count) / CachedPage::kMarkStep,
                                  static_cast<int64_t>(marks.size()) - 1);
    if (const int64_t ahead = mark * CachedPage::kMarkStep - position_; ahead > 0) {
      at_bytes_ = marks[static_cast<size_t>(mark)];
      position_ += ahead;
      count -= ahead;
    }
  }
  position_ += count;
  int64_t at = at_bytes_;
  while (count > 0) {
    const uint8_t* data = page.data();
    const int64_t last = page.available_bytes() - 4;
    for (; count > 0 && at <= last; --count) {
      at += 4 + static_cast<int64_t>(LoadLe<uint32_t>(data + at));
    }
    if (at > size) return Corrupt("byte array runs past its page", "page_bytes", size);
    if (count == 0) break;
    ARROW_RETURN_NOT_OK(page.Ensure(at + kAheadBytes));
    if (at + 4 > page.available_bytes()) return TooFew();
  }
  at_bytes_ = at;
  return Status::OK();
}

Status ValueReader::TakeByteArrays(int64_t count, LeafSlice* out) {
  const int64_t begin = at_bytes_;
  ARROW_RETURN_NOT_OK(SkipByteArrays(count));
  ARROW_RETURN_NOT_OK(source_.page->Ensure(at_bytes_));
  return out->values.Append(source_.page->data() + begin, at_bytes_ - begin);
}

Status ValueReader::TakeDictionary(int64_t count, LeafSlice* out) {
  DictionaryReader& dictionary = *source_.dictionary;
  if (dictionary.count() == 0) return Corrupt("dictionary index into an empty dictionary");
  const auto index_max = static_cast<uint32_t>(dictionary.count() - 1);
  std::array<uint32_t, 1024> indexes;
  while (count > 0) {
    const int64_t batch = std::min<int64_t>(count, indexes.size());
    if (!runs_.Read(batch, index_max, indexes.data())) {
      return Corrupt("dictionary indexes end early or point past the dictionary", "entries",
                     dictionary.count());
    }
    ARROW_RETURN_NOT_OK(TakeEntries({indexes.data(), static_cast<size_t>(batch)}, out));
    count -= batch;
  }
  return Status::OK();
}

Status ValueReader::TakeEntries(std::span<const uint32_t> indexes, LeafSlice* out) {
  ARROW_ASSIGN_OR_RAISE(const Dictionary* dictionary,
                        source_.dictionary->Get(*std::ranges::max_element(indexes)));
  const uint8_t* from = dictionary->bytes->data();
  if (dictionary->width == 0) {
    for (const uint32_t index : indexes) {
      const uint8_t* value = from + dictionary->offsets[index];
      ARROW_RETURN_NOT_OK(
          out->values.Append(value, 4 + static_cast<int64_t>(LoadLe<uint32_t>(value))));
    }
    return Status::OK();
  }
  const int64_t width = dictionary->width;
  uint8_t* to = nullptr;
  ARROW_RETURN_NOT_OK(out->values.Grow(static_cast<int64_t>(indexes.size()) * width, &to));
  for (const uint32_t index : indexes) {
    std::memcpy(to, from + index * width, static_cast<size_t>(width));
    to += width;
  }
  return Status::OK();
}

}  // namespace grebe::pq

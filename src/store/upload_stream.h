// An arrow::io::OutputStream over an Upload, for writers that want one.
#pragma once

#include <arrow/io/interfaces.h>

#include <memory>

#include "store/store.h"

namespace grebe::store {

// Bytes go straight to the upload. Close publishes nothing: the owner of the upload calls Finish.
// Threads: one at a time.
class UploadStream final : public arrow::io::OutputStream {
 public:
  // The upload must outlive the stream's last Write.
  explicit UploadStream(Upload* upload) : upload_(upload) {}

  Status Close() override {
    closed_ = true;
    return Status::OK();
  }
  bool closed() const override { return closed_; }
  Result<int64_t> Tell() const override { return position_; }
  Status Write(const void* data, int64_t size_bytes) override {
    if (closed_) return Internal("write to a closed stream");
    ARROW_RETURN_NOT_OK(upload_->Append(
        {static_cast<const char*>(data), static_cast<size_t>(size_bytes)}));
    position_ += size_bytes;
    return Status::OK();
  }
  using arrow::io::OutputStream::Write;

 private:
  Upload* upload_;
  int64_t position_ = 0;
  bool closed_ = false;
};

}  // namespace grebe::store

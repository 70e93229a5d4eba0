// Prints the rows of one key: consumer TABLE COLUMN VALUE
#include <arrow/record_batch.h>
#include <grebe/lookup.h>
#include <grebe/version.h>

#include <iostream>

namespace {

arrow::Status PrintRows(const char* table, const char* column, const char* value) {
  grebe::IndexRef ref;
  ref.table_uri = table;
  grebe::OpenOptions options;
  options.key = {column};
  ARROW_ASSIGN_OR_RAISE(auto index, grebe::Index::Open(ref, options));
  ARROW_ASSIGN_OR_RAISE(auto key, index->ParseKey({{column, value}}));
  ARROW_ASSIGN_OR_RAISE(auto result, index->Get(*key));
  std::cout << result.rows->ToString() << "waves=" << result.explain.waves << "\n";
  return arrow::Status::OK();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::cerr << "grebe " << grebe::Version() << ": usage: consumer TABLE COLUMN VALUE\n";
    return 2;
  }
  const arrow::Status status = PrintRows(argv[1], argv[2], argv[3]);
  if (!status.ok()) std::cerr << status.ToString() << "\n";
  return status.ok() ? 0 : 1;
}

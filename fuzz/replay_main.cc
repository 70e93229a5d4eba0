// Runs a fuzz program's entry point on stored inputs, without libFuzzer: every file of the folders
// given, once. A ctest in the ordinary presets, so that old finds stay fixed and the programs
// keep compiling.
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size_bytes);

int main(int argc, char** argv) {
  int count = 0;
  for (int i = 1; i < argc; ++i) {
    if (!std::filesystem::is_directory(argv[i])) continue;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(argv[i])) {
      if (!entry.is_regular_file()) continue;
      std::ifstream in(entry.path(), std::ios::binary);
      const std::string bytes{std::istreambuf_iterator<char>(in), {}};
      std::cout << entry.path().string() << std::endl;  // flushed: names the input that crashes
      // A copy of the exact size, so that a read past the end is one for AddressSanitizer too.
      const std::vector<uint8_t> input(bytes.begin(), bytes.end());
      LLVMFuzzerTestOneInput(input.data(), input.size());
      ++count;
    }
  }
  // An empty input is always one of them.
  const uint8_t nothing = 0;
  LLVMFuzzerTestOneInput(&nothing, 0);
  std::cout << "replayed " << count + 1 << " inputs\n";
  return 0;
}

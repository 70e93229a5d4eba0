// The fuzz harness's own check: a planted bug that libFuzzer must find within seconds. run.sh fails
// when it does not, since then the other programs' silence means nothing.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size_bytes) {
  if (size_bytes < 6 || std::memcmp(data, "GREBE", 5) != 0) return 0;
  // A count read from the file and trusted: the kind of bug that the real targets look for.
  const size_t count = data[5];
  std::vector<uint8_t> rows(16);
  volatile uint8_t last = rows.data()[count];
  return last == 0 ? 0 : -1;
}

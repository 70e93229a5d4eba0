// What this machine's CPU can do, asked once.
#pragma once

#if defined(__x86_64__) && defined(__GNUC__)
#define GREBE_X86 1
#endif

namespace grebe::curve {

// Whether pdep is there and fast: the first two Zen generations run it as a loop.
bool CpuHasFastPdep();
bool CpuHasAvx2();

}  // namespace grebe::curve

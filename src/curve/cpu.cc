#include "curve/cpu.h"

namespace grebe::curve {

bool CpuHasFastPdep() {
#ifdef GREBE_X86
  static const bool fast = __builtin_cpu_supports("bmi2") && !__builtin_cpu_is("znver1") &&
                           !__builtin_cpu_is("znver2");
  return fast;
#else
  return false;
#endif
}

bool CpuHasAvx2() {
#ifdef GREBE_X86
  static const bool has = __builtin_cpu_supports("avx2");
  return has;
#else
  return false;
#endif
}

}  // namespace grebe::curve

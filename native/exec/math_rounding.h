// The host's rounding mode, for a while.  Files that use it are compiled with -frounding-math.
#pragma once

#if defined(__SSE2__)
#include <xmmintrin.h>
#else
#include <cfenv>
#endif

namespace va {

#if defined(__SSE2__)
// fesetround also switches the x87 unit, which takes sixteen times as long.
constexpr unsigned kModes = 0x6000;
constexpr unsigned kNearest = 0x0000, kDown = 0x2000, kUp = 0x4000, kZero = 0x6000;
static inline unsigned switch_mode(unsigned mode) {
  unsigned old = _mm_getcsr();
  _mm_setcsr((old & ~kModes) | mode);
  return old & kModes;
}
#else
constexpr unsigned kNearest = FE_TONEAREST, kDown = FE_DOWNWARD, kUp = FE_UPWARD;
constexpr unsigned kZero = FE_TOWARDZERO;
static inline unsigned switch_mode(unsigned mode) {
  int old = fegetround();
  fesetround(static_cast<int>(mode));
  return static_cast<unsigned>(old);
}
#endif

class Rounding {
 public:
  explicit Rounding(unsigned mode) : old_(switch_mode(mode)) { fence(); }
  ~Rounding() {
    fence();
    switch_mode(old_);
  }
  Rounding(const Rounding &) = delete;
  Rounding &operator=(const Rounding &) = delete;

 private:
  static void fence() { asm volatile("" ::: "memory"); }
  unsigned old_;
};

}  // namespace va

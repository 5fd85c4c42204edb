// What an access leaves behind, and whether it happens before another.
#pragma once

#include "check_state.h"

namespace va::check {

enum MarkFlag : uint8_t {
  kMarkWrite = 1,
  kMarkStrong = 2,   // a volatile, relaxed or stronger access, or an atomic
  kMarkVolatile = 4,
  kMarkCtaScope = 8, // strong among the threads of its CTA only
  kMarkCopy = 16,    // a cp.async nobody has waited for
  kMarkAtomic = 32
};

struct Mark {
  uint64_t cta = 0;    // the CTA's serial; 0: no mark
  uint32_t index = 0;  // the CTA's place in the grid
  uint32_t epoch = 0;
  uint32_t mask = 0;   // lanes
  uint32_t site = 0;
  uint16_t warp = 0;
  uint8_t flags = 0;

  bool empty() const { return mask == 0; }
  bool writes() const { return flags & kMarkWrite; }
};

// Whether what lane `other_lane` of the mark did is ordered before lane `lane` of a warp, now.
bool happens_before(const CtaState &c, const va_warp *w, uint32_t lane, const Mark &m,
                    uint32_t other_lane);
// Whether a fence after what the lane has read would have ordered them.
bool lacks_acquire(const CtaState &c, const va_warp *w, uint32_t lane, const Mark &m,
                   uint32_t other_lane);
void forget_order();

}  // namespace va::check

// What machine code takes for granted about va_warp; src/va100/jit/abi.py holds the same numbers.
#include <cstddef>

#include "worker.h"

static_assert(offsetof(va_warp, clock) == 128);
static_assert(offsetof(va_warp, params) == 0);
static_assert(offsetof(va_warp, shared) == 8);
static_assert(offsetof(va_warp, local) == 16);
static_assert(offsetof(va_warp, counters) == 24);
static_assert(offsetof(va_warp, globals) == 32);
static_assert(offsetof(va_warp, ctaid) == 40);
static_assert(offsetof(va_warp, warp_id) == 52);
static_assert(offsetof(va_warp, nctaid) == 56);
static_assert(offsetof(va_warp, live) == 68);
static_assert(offsetof(va_warp, smid) == 72);
static_assert(offsetof(va_warp, shared_bytes) == 76);
static_assert(offsetof(va_warp, dynamic_bytes) == 80);
static_assert(offsetof(va_warp, local_stride) == 84);
static_assert(offsetof(va_warp, gridid) == 88);
static_assert(offsetof(va_warp, envreg12) == 96);
static_assert(offsetof(va_warp, more) == 112);
static_assert(offsetof(va_warp, stack_limit) == 120);
static_assert(offsetof(va_warp, regions) == 136);
static_assert(offsetof(va_warp, observed) == 144);
static_assert(sizeof(va_region) == 32);
static_assert(offsetof(va::Warp, view) == 0, "machine code's pointer is also the scheduler's");

extern "C" VA_EXPORT uint64_t va_exec_layout(void);

// Sizes of what Python and machine code share, so that a build of other sources is noticed.
uint64_t va_exec_layout(void) {
  return uint64_t{sizeof(va_launch)} << 32 | sizeof(va_variant) << 16 | sizeof(va_warp);
}

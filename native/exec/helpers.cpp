// The names machine code may call, in one place, and the small helpers that fit nowhere else.
#include <cmath>
#include <cstring>
#include <string>
#include <unordered_map>

#include "worker.h"

extern "C" {
uint32_t va_h_bar_sync(va_warp *, uint32_t, uint32_t, uint32_t, uint32_t);
void va_h_bar_arrive(va_warp *, uint32_t, uint32_t, uint32_t);
void va_h_spin(va_warp *);
void va_h_check(va_warp *, uint64_t, uint64_t, uint64_t, uint64_t);
void va_h_fault(va_warp *, uint32_t site, uint32_t kind, uint32_t mask, const char *text);
void va_h_shfl(va_warp *, uint32_t mode, uint32_t mask, const uint32_t *a, const uint32_t *b,
               const uint32_t *c, uint32_t *out, uint32_t *inside);
uint32_t va_h_match_any(uint32_t mask, uint32_t members, const uint64_t *value, uint32_t *out);
uint32_t va_h_match_all(uint32_t mask, uint32_t members, const uint64_t *value, uint32_t *out);
}

namespace va {

extern const HelperEntry kAccessHelpers[];
extern const HelperEntry kMathHelpers[];
extern const HelperEntry kRuntimeHelpers[];

namespace {

#define VA_ADDRESS(f) reinterpret_cast<const void *>(&f)

const HelperEntry kCoreHelpers[] = {{"va_h_bar_sync", VA_ADDRESS(va_h_bar_sync)},
                                    {"va_h_bar_arrive", VA_ADDRESS(va_h_bar_arrive)},
                                    {"va_h_spin", VA_ADDRESS(va_h_spin)},
                                    {"va_h_check", VA_ADDRESS(va_h_check)},
                                    {"va_h_fault", VA_ADDRESS(va_h_fault)},
                                    {"va_h_shfl", VA_ADDRESS(va_h_shfl)},
                                    {"va_h_match_any", VA_ADDRESS(va_h_match_any)},
                                    {"va_h_match_all", VA_ADDRESS(va_h_match_all)},
                                    {nullptr, nullptr}};

const std::unordered_map<std::string, const void *> &table() {
  static const auto *all = [] {
    auto *map = new std::unordered_map<std::string, const void *>;
    for (const HelperEntry *list : {kCoreHelpers, kAccessHelpers, kMathHelpers, kRuntimeHelpers})
      for (const HelperEntry *e = list; e->name; e++) (*map)[e->name] = e->address;
    return map;
  }();
  return *all;
}

}  // namespace
}  // namespace va

extern "C" {

uint64_t va_exec_helper(const char *name) {
  auto found = va::table().find(name);
  return found == va::table().end() ? 0 : reinterpret_cast<uint64_t>(found->second);
}

void va_h_fault(va_warp *w, uint32_t site, uint32_t kind, uint32_t mask, const char *text) {
  uint32_t lane = mask ? static_cast<uint32_t>(__builtin_ctz(mask)) : 0;
  va::fault(w, kind, site, lane, 0, 0, 0, false, text);
}

// mode: 0 up, 1 down, 2 bfly, 3 idx.  A lane that reads one outside `mask` keeps its own value.
void va_h_shfl(va_warp *, uint32_t mode, uint32_t mask, const uint32_t *a, const uint32_t *b,
               const uint32_t *c, uint32_t *out, uint32_t *inside) {
  uint32_t predicate = 0;
  for (uint32_t m = mask; m; m &= m - 1) {
    uint32_t lane = static_cast<uint32_t>(__builtin_ctz(m));
    uint32_t bval = b[lane] & 31, cval = c[lane] & 31, segment = (c[lane] >> 8) & 31;
    uint32_t max_lane = (lane & segment) | (cval & ~segment);
    uint32_t min_lane = lane & segment;
    uint32_t j = lane;
    bool ok = true;
    switch (mode) {
      case 0: j = lane - bval; ok = static_cast<int32_t>(j) >= static_cast<int32_t>(max_lane); break;
      case 1: j = lane + bval; ok = j <= max_lane; break;
      case 2: j = lane ^ bval; ok = j <= max_lane; break;
      default: j = min_lane | (bval & ~segment); ok = j <= max_lane; break;
    }
    if (!ok) j = lane;
    if (!(mask >> (j & 31) & 1)) j = lane;
    out[lane] = a[j & 31];
    predicate |= static_cast<uint32_t>(ok) << lane;
  }
  *inside = predicate;
}

uint32_t va_h_match_any(uint32_t mask, uint32_t, const uint64_t *value, uint32_t *out) {
  for (uint32_t m = mask; m; m &= m - 1) {
    uint32_t lane = static_cast<uint32_t>(__builtin_ctz(m));
    uint32_t same = 0;
    for (uint32_t n = mask; n; n &= n - 1) {
      uint32_t other = static_cast<uint32_t>(__builtin_ctz(n));
      same |= static_cast<uint32_t>(value[other] == value[lane]) << other;
    }
    out[lane] = same;
  }
  return mask;
}

uint32_t va_h_match_all(uint32_t mask, uint32_t, const uint64_t *value, uint32_t *out) {
  uint32_t first = static_cast<uint32_t>(__builtin_ctz(mask));
  bool all = true;
  for (uint32_t m = mask; m; m &= m - 1)
    all = all && value[__builtin_ctz(m)] == value[first];
  for (uint32_t m = mask; m; m &= m - 1) out[__builtin_ctz(m)] = all ? mask : 0;
  return all ? mask : 0;
}

}  // extern "C"

// The names machine code may call, in one place, and the small helpers that fit nowhere else.
#include <cmath>
#include <cstring>
#include <string>
#include <unordered_map>

#include "mma_kernels.h"
#include "worker.h"

extern "C" {
void va_h_bar_wait(va_warp *, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t);
uint32_t va_h_bar_sync(va_warp *, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t);
void va_h_bar_arrive(va_warp *, uint32_t, uint32_t, uint32_t);
void va_h_spin(va_warp *, uint32_t);
void va_h_check(va_warp *, uint64_t, uint64_t, uint64_t, uint64_t);
uint32_t va_h_span(va_warp *, uint64_t, uint64_t, uint64_t, uint64_t);
void va_h_fault(va_warp *, uint32_t site, uint32_t kind, uint32_t mask, const char *text);
void va_h_shfl(va_warp *, uint32_t mode, uint32_t mask, const uint32_t *a, const uint32_t *b,
               const uint32_t *c, uint32_t *out, uint32_t *inside);
uint32_t va_h_match_any(uint32_t mask, const uint32_t *members, const uint64_t *value,
                        uint32_t *out);
uint32_t va_h_match_all(uint32_t mask, const uint32_t *members, const uint64_t *value,
                        uint32_t *out);
int64_t va_h_next(const uint64_t *words, uint32_t count, uint32_t from);
void va_h_stuck(va_warp *w, uint32_t site);
void va_h_bad_call(va_warp *w, uint32_t mask, uint64_t target);
void va_h_stack(va_warp *w, uint32_t site, uint32_t mask);
}

namespace va {

extern const HelperEntry kAccessHelpers[];
extern const HelperEntry kAsyncHelpers[];
extern const HelperEntry kMathHelpers[];
extern const HelperEntry kDirectedHelpers[];
extern const HelperEntry kHalfHelpers[];
extern const HelperEntry kConvertHelpers[];
extern const HelperEntry kRuntimeHelpers[];
extern const HelperEntry kMatrixHelpers[];
extern const HelperEntry kCheckHelpers[];
extern const HelperEntry kTextureHelpers[];
extern const HelperEntry kSurfaceHelpers[];
extern const HelperEntry kChildHelpers[];
extern const HelperEntry kChunkHelpers[];
extern const HelperEntry kHeapHelpers[];
extern const HelperEntry kObserveHelpers[];

namespace {

struct RAdd {
  static uint32_t apply(uint32_t a, uint32_t b) { return a + b; }
};
struct RAnd {
  static uint32_t apply(uint32_t a, uint32_t b) { return a & b; }
};
struct ROr {
  static uint32_t apply(uint32_t a, uint32_t b) { return a | b; }
};
struct RXor {
  static uint32_t apply(uint32_t a, uint32_t b) { return a ^ b; }
};
template <typename T>
struct RMin {
  static uint32_t apply(uint32_t a, uint32_t b) {
    return static_cast<T>(a) < static_cast<T>(b) ? a : b;
  }
};
template <typename T>
struct RMax {
  static uint32_t apply(uint32_t a, uint32_t b) {
    return static_cast<T>(a) > static_cast<T>(b) ? a : b;
  }
};

// redux.sync of converged lanes that name different groups.
template <typename Op>
void redux(const uint32_t *members, const uint32_t *value, uint32_t *out) {
  for (uint32_t lane = 0; lane < VA_LANES; lane++) {
    uint32_t group = members[lane];
    if (!group) continue;
    uint32_t total = value[__builtin_ctz(group)];
    for (uint32_t n = group & (group - 1); n; n &= n - 1)
      total = Op::apply(total, value[__builtin_ctz(n)]);
    out[lane] = total;
  }
}

#define VA_ADDRESS(...) reinterpret_cast<const void *>(&__VA_ARGS__)

const HelperEntry kCoreHelpers[] = {{"va_h_bar_sync", VA_ADDRESS(va_h_bar_sync)},
                                    {"va_h_bar_wait", VA_ADDRESS(va_h_bar_wait)},
                                    {"va_h_bar_arrive", VA_ADDRESS(va_h_bar_arrive)},
                                    {"va_h_spin", VA_ADDRESS(va_h_spin)},
                                    {"va_h_check", VA_ADDRESS(va_h_check)},
                                    {"va_h_span", VA_ADDRESS(va_h_span)},
                                    {"va_h_fault", VA_ADDRESS(va_h_fault)},
                                    {"va_h_shfl", VA_ADDRESS(va_h_shfl)},
                                    {"va_h_match_any", VA_ADDRESS(va_h_match_any)},
                                    {"va_h_match_all", VA_ADDRESS(va_h_match_all)},
                                    {"va_h_next", VA_ADDRESS(va_h_next)},
                                    {"va_h_stuck", VA_ADDRESS(va_h_stuck)},
                                    {"va_h_bad_call", VA_ADDRESS(va_h_bad_call)},
                                    {"va_h_stack", VA_ADDRESS(va_h_stack)},
                                    {"va_h_redux_add", VA_ADDRESS(va::redux<va::RAdd>)},
                                    {"va_h_redux_and", VA_ADDRESS(va::redux<va::RAnd>)},
                                    {"va_h_redux_or", VA_ADDRESS(va::redux<va::ROr>)},
                                    {"va_h_redux_xor", VA_ADDRESS(va::redux<va::RXor>)},
                                    {"va_h_redux_smin", VA_ADDRESS(va::redux<va::RMin<int32_t>>)},
                                    {"va_h_redux_smax", VA_ADDRESS(va::redux<va::RMax<int32_t>>)},
                                    {"va_h_redux_umin", VA_ADDRESS(va::redux<va::RMin<uint32_t>>)},
                                    {"va_h_redux_umax", VA_ADDRESS(va::redux<va::RMax<uint32_t>>)},
                                    {nullptr, nullptr}};

const std::unordered_map<std::string, const void *> &table() {
  static const auto *all = [] {
    auto *map = new std::unordered_map<std::string, const void *>;
    for (const HelperEntry *list : {kCoreHelpers, kAccessHelpers, kMathHelpers, kDirectedHelpers,
                                    kHalfHelpers, kConvertHelpers, kMatrixHelpers, kRuntimeHelpers, kCheckHelpers})
      for (const HelperEntry *e = list; e->name; e++) (*map)[e->name] = e->address;
    for (const HelperEntry *e = mma::build().helpers; e->name; e++) (*map)[e->name] = e->address;
    for (const HelperEntry *list : {kAsyncHelpers, kTextureHelpers, kSurfaceHelpers, kChildHelpers,
                                    kChunkHelpers, kHeapHelpers, kObserveHelpers})
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

uint32_t va_h_match_any(uint32_t mask, const uint32_t *members, const uint64_t *value,
                        uint32_t *out) {
  for (uint32_t m = mask; m; m &= m - 1) {
    uint32_t lane = static_cast<uint32_t>(__builtin_ctz(m));
    uint32_t same = 0;
    for (uint32_t n = mask & members[lane]; n; n &= n - 1) {
      uint32_t other = static_cast<uint32_t>(__builtin_ctz(n));
      same |= static_cast<uint32_t>(value[other] == value[lane]) << other;
    }
    out[lane] = same;
  }
  return mask;
}

// Returns the lanes whose whole group agrees.
uint32_t va_h_match_all(uint32_t mask, const uint32_t *members, const uint64_t *value,
                        uint32_t *out) {
  uint32_t agreed = 0;
  for (uint32_t m = mask; m; m &= m - 1) {
    uint32_t lane = static_cast<uint32_t>(__builtin_ctz(m));
    uint32_t group = mask & members[lane];
    bool all = true;
    for (uint32_t n = group; n; n &= n - 1) all = all && value[__builtin_ctz(n)] == value[lane];
    out[lane] = all ? group : 0;
    agreed |= static_cast<uint32_t>(all) << lane;
  }
  return agreed;
}

// Lowest pending block from `from` on; -1 when there is none.
int64_t va_h_next(const uint64_t *words, uint32_t count, uint32_t from) {
  for (uint32_t i = from / 64; i < count; i++) {
    uint64_t word = words[i];
    if (i == from / 64) word &= ~uint64_t{0} << (from % 64);
    if (word) return static_cast<int64_t>(i) * 64 + __builtin_ctzll(word);
  }
  return -1;
}

void va_h_stuck(va_warp *w, uint32_t site) {
  va::fault(w, VA_FAULT_DEADLOCK, site, 0, 0, 0, 0, false,
            "deadlock inside a warp: lanes wait at a barrier or a *.sync instruction for lanes "
            "of the same warp that wait elsewhere");
}

void va_h_bad_call(va_warp *w, uint32_t mask, uint64_t target) {
  char text[128];
  snprintf(text, sizeof text, "indirect call to 0x%llx, which is no function of the module",
           static_cast<unsigned long long>(target));
  va::fault(w, VA_FAULT_ILLEGAL_INSTRUCTION, 0xffffffffu,
            static_cast<uint32_t>(__builtin_ctz(mask ? mask : 1)), target, 8, 0, false, text);
}

void va_h_stack(va_warp *w, uint32_t site, uint32_t mask) {
  va::fault(w, VA_FAULT_STACK, site, static_cast<uint32_t>(__builtin_ctz(mask ? mask : 1)), 0, 0,
            0, false, "stack overflow: calls are nested too deeply");
}

}  // extern "C"

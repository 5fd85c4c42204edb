// Memory accesses of a warp whose lanes go to different places, checked lane by lane.
//
// Fast shapes (one address, or consecutive ones) are emitted inline by the compiler; everything
// else comes here.  `info` packs what stays constant at a site: the instruction's index in bits
// 0-31, the elements of a vector access in bits 32-35, its space and whether it writes in bits
// 36-39, the slot of its region in bits 40-59, how indices are scaled and extended in bits 60-63.
#include <cstring>
#include <type_traits>

#include "math_lanes.h"
#include "math_half_format.h"
#include "worker.h"

namespace va {
namespace {

enum Space : uint32_t { kGeneric = 0, kGlobal = 1, kShared = 2, kLocal = 3 };

constexpr uint32_t site_of(uint64_t info) { return static_cast<uint32_t>(info); }
constexpr uint32_t count_of(uint64_t info) { return static_cast<uint32_t>(info >> 32) & 15; }
constexpr uint32_t slot_of(uint64_t info) { return static_cast<uint32_t>(info >> 40) & 0xfffff; }

constexpr uint64_t kMissesRemembered = 8;  // then only one in so many: pointers of many places
constexpr uint64_t kMissesBetween = 16;
constexpr uint64_t kLargestLane = 16;  // bytes a lane may access at once

// Keep the allocation around a legal access of `span` bytes for the next one from the same place.
void remember(va_warp *w, uint32_t slot, uint64_t address, uint64_t span, uint64_t lane_bytes) {
  Worker *worker = warp_of(w)->cta->worker;
  if (worker->launch->request->variant->flags & VA_FREES) return;
  va_region *r = &w->regions[slot];
  uint64_t miss = r->misses++;
  if (miss >= kMissesRemembered && miss % kMissesBetween) return;
  uint64_t base = 0, bytes = 0;
  if (!va_arena_range(address, &base, &bytes)) return;
  uint64_t low = (base + kLargestLane - 1) & ~(kLargestLane - 1);
  if (low - base >= bytes || bytes - (low - base) < span) return;
  r->low = low;
  r->room = ((bytes - (low - base) - span) / lane_bytes) + 1;
}

inline bool owned(uint64_t address) {
  uint64_t t = address - VA_ARENA_BASE;
  if (__builtin_expect(t >> VA_ARENA_SHIFT, 0)) return false;
  return *reinterpret_cast<const uint8_t *>(VA_SHADOW_BASE + (t >> VA_GRANULE_SHIFT)) != 0;
}

[[noreturn]] __attribute__((noinline, cold)) void refuse(va_warp *w, uint64_t info, uint32_t lane,
                                                         uint64_t address, uint32_t bytes,
                                                         uint32_t space, bool write) {
  bool misaligned = address & (bytes - 1);
  fault(w, misaligned ? VA_FAULT_MISALIGNED : VA_FAULT_ILLEGAL_ADDRESS, site_of(info), lane,
        address, bytes, space, write, nullptr);
}

// Where lane's access of `bytes` bytes lands in host memory; faults when it may not.
template <Space S>
inline uint8_t *resolve(va_warp *w, uint64_t info, uint32_t lane, uint64_t address,
                        uint32_t bytes, bool write) {
  if (__builtin_expect(address & (bytes - 1), 0)) refuse(w, info, lane, address, bytes, S, write);
  if constexpr (S == kShared) {
    uint64_t end = (address & 0xffffffffu) + bytes;
    if (__builtin_expect(end > w->shared_bytes || address >> 32, 0))
      refuse(w, info, lane, address, bytes, S, write);
    return w->shared + address;
  } else if constexpr (S == kLocal) {
    if (__builtin_expect(address + bytes > w->local_stride || address > w->local_stride, 0))
      refuse(w, info, lane, address, bytes, S, write);
    return w->local + uint64_t{w->local_stride} * lane + address;
  } else {
    if (__builtin_expect(!owned(address), 0) && !va_arena_accessible(address, bytes))
      refuse(w, info, lane, address, bytes, S, write);
    return reinterpret_cast<uint8_t *>(address);
  }
}

// ------------------------------------------------------------------ whole warps, one element

// A warp without idle lanes goes by groups of eight: checks without branches, then the moves, one
// for a group whose addresses follow one another.  False: something is unusual, go lane by lane.

constexpr uint32_t kAllLanes = 0xffffffffu;
constexpr uint32_t kGroup = 8;
const bool kFast = has_fast_lanes();

template <typename T>
VA_INLINE bool consecutive(const uint64_t *address) {
  uint64_t differ = 0;
  for (uint32_t i = 0; i < kGroup; i++) differ |= address[i] ^ (address[0] + i * sizeof(T));
  return differ == 0;
}

template <typename T>
VA_INLINE bool lane_owned(uint64_t address) {
  return !(address & (sizeof(T) - 1)) && owned(address);
}

template <typename T>
VA_INLINE bool group_owned(const uint64_t *address) {
  uint64_t granule[kGroup], wild = 0;
  for (uint32_t i = 0; i < kGroup; i++) {
    uint64_t t = address[i] - VA_ARENA_BASE;
    wild |= t >> VA_ARENA_SHIFT | (t & (sizeof(T) - 1));
    granule[i] = t >> VA_GRANULE_SHIFT;
  }
  if (__builtin_expect(wild != 0, 0)) return false;
  const auto *shadow = reinterpret_cast<const uint8_t *>(VA_SHADOW_BASE);
  uint8_t all = shadow[granule[0]];
#pragma GCC unroll 8
  for (uint32_t i = 1; i < kGroup; i++) all &= shadow[granule[i]];
  return all != 0;
}

template <typename T>
VA_INLINE bool warp_in_shared(const va_warp *w, const uint64_t *address) {
  if (w->shared_bytes < sizeof(T)) return false;
  uint64_t last = w->shared_bytes - sizeof(T), wild = 0;
  for (uint32_t i = 0; i < VA_LANES; i++)
    wild |= (last - address[i]) >> 63 | (address[i] & (sizeof(T) - 1)) | address[i] >> 63;
  return wild == 0;
}

template <typename T>
VA_INLINE T at(uint64_t place) {
  T value;
  std::memcpy(&value, reinterpret_cast<const void *>(place), sizeof value);
  return value;
}

// Eight places into one register and out at once: machine code reads whole registers back, which
// would wait for eight small stores.
template <typename T>
VA_INLINE void gather(uint64_t base, const uint64_t *a, T *out) {
  typedef T Pack __attribute__((vector_size(kGroup * sizeof(T))));
  Pack pack = {at<T>(base + a[0]), at<T>(base + a[1]), at<T>(base + a[2]), at<T>(base + a[3]),
               at<T>(base + a[4]), at<T>(base + a[5]), at<T>(base + a[6]), at<T>(base + a[7])};
  std::memcpy(out, &pack, sizeof pack);
}

template <typename T, Space S>
VA_INLINE bool group_allowed(const uint64_t *a, bool run) {
  if (S == kShared) return true;
  return run ? lane_owned<T>(a[0]) && lane_owned<T>(a[kGroup - 1]) : group_owned<T>(a);
}

template <typename T, Space S>
VA_INLINE bool load_whole(const va_warp *w, const uint64_t *address, T *out) {
  if (S == kLocal || (S == kShared && !warp_in_shared<T>(w, address))) return false;
  uint64_t base = S == kShared ? reinterpret_cast<uint64_t>(w->shared) : 0;
  for (uint32_t g = 0; g < VA_LANES; g += kGroup) {
    const uint64_t *a = address + g;
    bool run = consecutive<T>(a);
    if (!group_allowed<T, S>(a, run)) return false;
    if (run)
      std::memcpy(&out[g], reinterpret_cast<const void *>(base + a[0]), kGroup * sizeof(T));
    else
      gather<T>(base, a, &out[g]);
  }
  return true;
}

template <typename T, Space S>
VA_INLINE bool store_whole(const va_warp *w, const uint64_t *address, const T *in) {
  if (S == kLocal || (S == kShared && !warp_in_shared<T>(w, address))) return false;
  uint64_t base = S == kShared ? reinterpret_cast<uint64_t>(w->shared) : 0;
  for (uint32_t g = 0; g < VA_LANES; g += kGroup) {
    const uint64_t *a = address + g;
    bool run = consecutive<T>(a);
    if (!group_allowed<T, S>(a, run)) return false;
    if (run) {
      std::memcpy(reinterpret_cast<void *>(base + a[0]), &in[g], kGroup * sizeof(T));
    } else {
      for (uint32_t i = 0; i < kGroup; i++)
        std::memcpy(reinterpret_cast<void *>(base + a[i]), &in[g + i], sizeof(T));
    }
  }
  return true;
}

template <typename T>
VA_FAST bool warp_in_shared_fast(const va_warp *w, const uint64_t *address) {
  return warp_in_shared<T>(w, address);
}

template <typename T, Space S>
VA_FAST bool load_whole_fast(const va_warp *w, const uint64_t *address, T *out) {
  return load_whole<T, S>(w, address, out);
}

template <typename T, Space S>
VA_FAST bool store_whole_fast(const va_warp *w, const uint64_t *address, const T *in) {
  return store_whole<T, S>(w, address, in);
}

// b128, which only moves.
struct Quad {
  uint64_t low, high;
};

template <typename T, Space S>
void load(va_warp *w, uint64_t info, uint32_t mask, const uint64_t *address, T *out) {
  uint32_t n = count_of(info);
  if constexpr (!std::is_same_v<T, Quad>) {
    if (mask == kAllLanes && n == 1 &&
        (kFast ? load_whole_fast<T, S>(w, address, out) : load_whole<T, S>(w, address, out)))
      return;
  }
  for (uint32_t m = mask; m; m &= m - 1) {
    uint32_t lane = static_cast<uint32_t>(__builtin_ctz(m));
    const uint8_t *p =
        resolve<S>(w, info, lane, address[lane], static_cast<uint32_t>(sizeof(T)) * n, false);
    for (uint32_t e = 0; e < n; e++)
      std::memcpy(&out[e * VA_LANES + lane], p + e * sizeof(T), sizeof(T));
  }
}

template <typename T, Space S>
void store(va_warp *w, uint64_t info, uint32_t mask, const uint64_t *address, const T *in) {
  uint32_t n = count_of(info);
  if constexpr (!std::is_same_v<T, Quad>) {
    if (mask == kAllLanes && n == 1 &&
        (kFast ? store_whole_fast<T, S>(w, address, in) : store_whole<T, S>(w, address, in)))
      return;
  }
  for (uint32_t m = mask; m; m &= m - 1) {
    uint32_t lane = static_cast<uint32_t>(__builtin_ctz(m));
    uint8_t *p =
        resolve<S>(w, info, lane, address[lane], static_cast<uint32_t>(sizeof(T)) * n, true);
    for (uint32_t e = 0; e < n; e++)
      std::memcpy(p + e * sizeof(T), &in[e * VA_LANES + lane], sizeof(T));
  }
}

// ------------------------------------------------------------------ atomics

template <typename T>
struct Bits {
  using type = T;
};
template <>
struct Bits<float> {
  using type = uint32_t;
};
template <>
struct Bits<double> {
  using type = uint64_t;
};

template <typename To, typename From>
To recast(From from) {
  To to;
  static_assert(sizeof to == sizeof from);
  std::memcpy(&to, &from, sizeof to);
  return to;
}

float flush(float x) {
  uint32_t bits = recast<uint32_t>(x);
  return (bits & 0x7f800000u) ? x : recast<float>(bits & 0x80000000u);
}

template <typename T>
T canonical(T x) {
  if constexpr (std::is_same_v<T, float>)
    if (x != x) return recast<float>(0x7fffffffu);
  return x;
}

struct Add {
  template <typename T>
  static T apply(T old, T a, T, bool ftz) {
    if constexpr (std::is_same_v<T, float>) {
      if (ftz) return canonical(flush(flush(old) + flush(a)));
      return canonical(old + a);
    } else if constexpr (std::is_same_v<T, double>) {
      return old + a;
    } else {
      return static_cast<T>(std::make_unsigned_t<T>(old) + std::make_unsigned_t<T>(a));
    }
  }
};
struct Min {
  template <typename T>
  static T apply(T old, T a, T, bool) { return a < old ? a : old; }
};
struct Max {
  template <typename T>
  static T apply(T old, T a, T, bool) { return a > old ? a : old; }
};
struct And {
  template <typename T>
  static T apply(T old, T a, T, bool) { return old & a; }
};
struct Or {
  template <typename T>
  static T apply(T old, T a, T, bool) { return old | a; }
};
struct Xor {
  template <typename T>
  static T apply(T old, T a, T, bool) { return old ^ a; }
};
struct Exch {
  template <typename T>
  static T apply(T, T a, T, bool) { return a; }
};
struct Cas {
  template <typename T>
  static T apply(T old, T compare, T value, bool) { return old == compare ? value : old; }
};
struct Inc {
  template <typename T>
  static T apply(T old, T a, T, bool) { return old >= a ? 0 : old + 1; }
};
struct Dec {
  template <typename T>
  static T apply(T old, T a, T, bool) { return old == 0 || old > a ? a : old - 1; }
};
// f16 addition: f32 holds the sum of two f16 so well that rounding it once more is harmless.
struct AddHalf {
  static uint16_t one(uint16_t a, uint16_t b) { 
    return nearest_f16(widen<F16>(a) + widen<F16>(b));
   }
  template <typename T>
  static T apply(T old, T a, T, bool) {
    if constexpr (sizeof(T) == 2) {
      return one(old, a);
    } else {
      uint32_t low = one(static_cast<uint16_t>(old), static_cast<uint16_t>(a));
      uint32_t high = one(static_cast<uint16_t>(old >> 16), static_cast<uint16_t>(a >> 16));
      return high << 16 | low;
    }
  }
};

template <typename T, typename Op>
T update(uint8_t *place, T a, T b, bool ftz) {
  using U = typename Bits<T>::type;
  auto *p = reinterpret_cast<U *>(place);
  if constexpr (std::is_same_v<Op, Add> && std::is_integral_v<T>) {
    return static_cast<T>(__atomic_fetch_add(p, static_cast<U>(a), __ATOMIC_SEQ_CST));
  } else if constexpr (std::is_same_v<Op, Exch>) {
    return recast<T>(__atomic_exchange_n(p, recast<U>(a), __ATOMIC_SEQ_CST));
  } else {
    U old = __atomic_load_n(p, __ATOMIC_RELAXED);
    for (;;) {
      U next = recast<U>(Op::template apply<T>(recast<T>(old), a, b, ftz));
      if (__atomic_compare_exchange_n(p, &old, next, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
        return recast<T>(old);
    }
  }
}

template <typename T, typename Op>
T update_plain(uint8_t *place, T a, T b, bool ftz) {
  T old;
  std::memcpy(&old, place, sizeof old);
  T next = Op::template apply<T>(old, a, b, ftz);
  std::memcpy(place, &next, sizeof next);
  return old;
}

// A CTA never leaves its worker, so shared memory needs no locked operation.
template <typename T, typename Op, Space S>
void atomic(va_warp *w, uint64_t info, uint32_t mask, const uint64_t *address, const T *a,
            const T *b, T *out) {
  if (S == kShared && mask == kAllLanes &&
      (kFast ? warp_in_shared_fast<T>(w, address) : warp_in_shared<T>(w, address))) {
    uint8_t *shared = w->shared;  // the updates below may alias the view itself
    for (uint32_t lane = 0; lane < VA_LANES; lane++)
      out[lane] = update_plain<T, Op>(shared + address[lane], a[lane], b[lane], false);
    return;
  }
  for (uint32_t m = mask; m; m &= m - 1) {
    uint32_t lane = static_cast<uint32_t>(__builtin_ctz(m));
    uint8_t *p = resolve<S>(w, info, lane, address[lane], sizeof(T), true);
    bool in_shared = S == kShared || S == kLocal ||
                     (S == kGeneric && static_cast<uint64_t>(p - w->shared) < w->shared_bytes);
    out[lane] = in_shared ? update_plain<T, Op>(p, a[lane], b[lane], false)
                          : update<T, Op>(p, a[lane], b[lane], true);
  }
}

}  // namespace
}  // namespace va

#include "indexed.h"

extern "C" {

// An access of consecutive or equal addresses, [low, low+bytes), failed the quick check: it is
// legal all the same when it lies in registered host memory.
void va_h_check(va_warp *w, uint64_t info, uint64_t low, uint64_t bytes, uint64_t lane_bytes);

void va_h_check(va_warp *w, uint64_t info, uint64_t low, uint64_t bytes, uint64_t lane_bytes) {
  uint32_t space = static_cast<uint32_t>(info >> 36) & 7;
  bool write = info >> 39 & 1;
  uint64_t stride = bytes > lane_bytes ? lane_bytes : 0;
  for (uint32_t lane = 0; lane < VA_LANES; lane++) {
    uint64_t address = low + stride * lane;
    if (stride * lane + lane_bytes > bytes) break;
    uint32_t n = static_cast<uint32_t>(lane_bytes);
    if (address & (n - 1)) va::refuse(w, info, lane, address, n, space, write);
    if (space == va::kShared) {
      if (address >> 32 || address + n > w->shared_bytes)
        va::refuse(w, info, lane, address, n, space, write);
    } else if (!va_arena_accessible(address, n)) {
      va::refuse(w, info, lane, address, n, space, write);
    }
    if (!stride) break;
  }
  if (space != va::kShared) va::remember(w, va::slot_of(info), low, bytes, lane_bytes);
}

// A span of several accesses failed the quick check: 1 when all of it may be accessed.
uint32_t va_h_span(va_warp *w, uint64_t info, uint64_t low, uint64_t bytes, uint64_t align);

uint32_t va_h_span(va_warp *w, uint64_t info, uint64_t low, uint64_t bytes, uint64_t align) {
  if (low & (align - 1) || !va_arena_accessible(low, bytes)) return 0;
  va::remember(w, va::slot_of(info), low, bytes, align);
  return 1;
}

}  // extern "C"

namespace va {


#define VA_ADDRESS(...) reinterpret_cast<const void *>(&__VA_ARGS__)
#define VA_ACCESS(bits, T)                                                 \
  {"va_h_ld_generic_" #bits, VA_ADDRESS(load<T, kGeneric>)},               \
      {"va_h_ld_global_" #bits, VA_ADDRESS(load<T, kGlobal>)},             \
      {"va_h_ld_shared_" #bits, VA_ADDRESS(load<T, kShared>)},             \
      {"va_h_ld_local_" #bits, VA_ADDRESS(load<T, kLocal>)},               \
      {"va_h_st_generic_" #bits, VA_ADDRESS(store<T, kGeneric>)},          \
      {"va_h_st_global_" #bits, VA_ADDRESS(store<T, kGlobal>)},            \
      {"va_h_st_shared_" #bits, VA_ADDRESS(store<T, kShared>)},            \
      {"va_h_st_local_" #bits, VA_ADDRESS(store<T, kLocal>)},
#define VA_PICK(name, ...)                                            \
  has_fast_lanes() ? reinterpret_cast<const void *>(&name##_fast<__VA_ARGS__>) \
                   : reinterpret_cast<const void *>(&name<__VA_ARGS__>)
#define VA_INDEXED_SPACE(space, Space, bits, T)                         \
  {"va_h_xld_" #space "_" #bits, VA_PICK(load_at, T, Space)},           \
      {"va_h_xst_" #space "_" #bits, VA_PICK(store_at, T, Space)},
#define VA_INDEXED(bits, T)                  \
  VA_INDEXED_SPACE(generic, kGlobal, bits, T)  \
  VA_INDEXED_SPACE(global, kGlobal, bits, T)   \
  VA_INDEXED_SPACE(shared, kShared, bits, T)
#define VA_REDUCTION(op, Op, type, T)                                  \
  {"va_h_xred_shared_" #op "_" #type, VA_PICK(reduce_at, T, Op)},      \
      {"va_h_xreds_shared_" #op "_" #type, VA_PICK(reduce_same_at, T, Op)},
#define VA_ATOMIC(op, Op, type, T)                                               \
  {"va_h_atom_generic_" #op "_" #type, VA_ADDRESS(atomic<T, Op, kGeneric>)},     \
      {"va_h_atom_global_" #op "_" #type, VA_ADDRESS(atomic<T, Op, kGlobal>)},   \
      {"va_h_atom_shared_" #op "_" #type, VA_ADDRESS(atomic<T, Op, kShared>)},

extern const HelperEntry kAccessHelpers[] = {
    VA_ACCESS(8, uint8_t)
    VA_ACCESS(16, uint16_t)
    VA_ACCESS(32, uint32_t)
    VA_ACCESS(64, uint64_t)
    VA_INDEXED(8, uint8_t)
    VA_INDEXED(16, uint16_t)
    VA_INDEXED(32, uint32_t)
    VA_INDEXED(64, uint64_t)
    VA_REDUCTION(add, Add, u32, uint32_t)
    VA_REDUCTION(add, Add, s32, int32_t)
    VA_REDUCTION(add, Add, u64, uint64_t)
    VA_REDUCTION(min, Min, u32, uint32_t)
    VA_REDUCTION(min, Min, s32, int32_t)
    VA_REDUCTION(max, Max, u32, uint32_t)
    VA_REDUCTION(max, Max, s32, int32_t)
    VA_REDUCTION(and, And, b32, uint32_t)
    VA_REDUCTION(or, Or, b32, uint32_t)
    VA_REDUCTION(xor, Xor, b32, uint32_t)
    VA_ACCESS(128, Quad)
    VA_ATOMIC(add, Add, u32, uint32_t)
    VA_ATOMIC(add, Add, s32, int32_t)
    VA_ATOMIC(add, Add, u64, uint64_t)
    VA_ATOMIC(add, Add, s64, int64_t)
    VA_ATOMIC(add, Add, f32, float)
    VA_ATOMIC(add, Add, f64, double)
    VA_ATOMIC(min, Min, u32, uint32_t)
    VA_ATOMIC(min, Min, s32, int32_t)
    VA_ATOMIC(min, Min, u64, uint64_t)
    VA_ATOMIC(min, Min, s64, int64_t)
    VA_ATOMIC(max, Max, u32, uint32_t)
    VA_ATOMIC(max, Max, s32, int32_t)
    VA_ATOMIC(max, Max, u64, uint64_t)
    VA_ATOMIC(max, Max, s64, int64_t)
    VA_ATOMIC(and, And, b32, uint32_t)
    VA_ATOMIC(and, And, b64, uint64_t)
    VA_ATOMIC(or, Or, b32, uint32_t)
    VA_ATOMIC(or, Or, b64, uint64_t)
    VA_ATOMIC(xor, Xor, b32, uint32_t)
    VA_ATOMIC(xor, Xor, b64, uint64_t)
    VA_ATOMIC(exch, Exch, b32, uint32_t)
    VA_ATOMIC(exch, Exch, b64, uint64_t)
    VA_ATOMIC(cas, Cas, b16, uint16_t)
    VA_ATOMIC(cas, Cas, b32, uint32_t)
    VA_ATOMIC(cas, Cas, b64, uint64_t)
    VA_ATOMIC(inc, Inc, u32, uint32_t)
    VA_ATOMIC(dec, Dec, u32, uint32_t)
    VA_ATOMIC(add, AddHalf, f16, uint16_t)
    VA_ATOMIC(add, AddHalf, f16x2, uint32_t)
    {nullptr, nullptr}};

}  // namespace va

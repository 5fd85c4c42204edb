// Accesses whose 32 addresses are one base and 32-bit indices times a power of two, as compilers
// compute them: checked by the range of the indices, against the allocation the site hit last.
//
// Included by access.cpp, whose lane-by-lane functions take over wherever something is unusual.
#pragma once

// Vectors are only passed between functions that are always inlined.
#pragma GCC diagnostic ignored "-Wpsabi"

namespace va {
namespace {

typedef int32_t Group __attribute__((vector_size(32)));  // indices of eight lanes
typedef int32_t LooseGroup __attribute__((vector_size(32), aligned(4), may_alias));
constexpr uint32_t kGroups = VA_LANES / kGroup;

constexpr uint32_t scale_shift_of(uint64_t info) { return static_cast<uint32_t>(info >> 60) & 7; }
constexpr uint32_t space_of(uint64_t info) { return static_cast<uint32_t>(info >> 36) & 7; }
constexpr bool signed_index(uint64_t info) { return info >> 63; }

VA_INLINE Group splat(int32_t x) { return x + Group{}; }

// Legal indices.  Unsigned ones count as signed: those beyond 2^31 go the slow way.
struct IndexRange {
  bool known;
  int32_t low, high;
};

// [first, last]: byte distances from the base at which an access may begin.
VA_INLINE IndexRange index_range(int64_t first, int64_t last, uint32_t shift, bool is_signed) {
  int64_t low = (first + (int64_t{1} << shift) - 1) >> shift;
  int64_t high = last >> shift;
  int64_t least = is_signed ? INT32_MIN : 0;
  low = low < least ? least : low;
  high = high > INT32_MAX ? INT32_MAX : high;
  return {low <= high, static_cast<int32_t>(low), static_cast<int32_t>(high)};
}

template <typename T, Space S>
VA_INLINE IndexRange legal(const va_warp *w, uint64_t info, uint64_t base, uint32_t shift) {
  IndexRange none{false, 0, 0};
  if (base & (sizeof(T) - 1)) return none;
  if constexpr (S == kShared) {
    if (w->shared_bytes < sizeof(T) || base >> 32) return none;
    auto first = -static_cast<int64_t>(base);
    return index_range(first, first + w->shared_bytes - static_cast<int64_t>(sizeof(T)), shift,
                       signed_index(info));
  } else {
    const va_region &r = w->regions[slot_of(info)];
    if (!r.room) return none;
    auto first = static_cast<int64_t>(r.low - base);
    return index_range(first, first + static_cast<int64_t>((r.room - 1) * sizeof(T)), shift,
                       signed_index(info));
  }
}

struct Indices {
  Group group[kGroups];
};

VA_INLINE Group lanes_of(uint32_t mask, uint32_t g) {
  constexpr Group kBits = {1, 2, 4, 8, 16, 32, 64, 128};
  return (splat(static_cast<int32_t>(mask >> (g * kGroup))) & kBits) == kBits;
}

// Idle lanes take the index of one that is not, so that they change nothing.
VA_INLINE Indices active_indices(const int32_t *index, uint32_t mask) {
  Indices v;
  // By registers: a copy by parts would have to be waited for.
  for (uint32_t g = 0; g < kGroups; g++)
    v.group[g] = *reinterpret_cast<const LooseGroup *>(index + g * kGroup);
  if (mask != kAllLanes) {
    Group stand_in = splat(index[__builtin_ctz(mask)]);
    for (uint32_t g = 0; g < kGroups; g++) {
      Group on = lanes_of(mask, g);
      v.group[g] = (v.group[g] & on) | (stand_in & ~on);
    }
  }
  return v;
}

VA_INLINE bool any(Group g) {
  int64_t words[4];
  std::memcpy(words, &g, sizeof words);
  return (words[0] | words[1] | words[2] | words[3]) != 0;
}

// Whether all lie in the range, and lead to aligned places.
template <typename T>
VA_INLINE bool within(const Indices &v, IndexRange range, uint32_t shift) {
  Group low = splat(range.low), high = splat(range.high), out = splat(0), bits = splat(0);
  for (uint32_t g = 0; g < kGroups; g++) {
    out |= (v.group[g] < low) | (v.group[g] > high);
    bits |= v.group[g];
  }
  auto odd = static_cast<int32_t>((sizeof(T) - 1) >> shift);
  if (odd) out |= bits & splat(odd);
  return !any(out);
}

// Whether eight lanes go to places side by side.
template <typename T>
VA_INLINE bool is_run(Group g, uint32_t shift) {
  constexpr Group kSteps = {0, 1, 2, 3, 4, 5, 6, 7};
  auto step = static_cast<int32_t>(sizeof(T) >> shift);
  return step << shift == static_cast<int32_t>(sizeof(T)) &&
         !any((g - splat(g[0])) ^ (kSteps * splat(step)));
}

// Whether every eight lanes do: one question for most warps.
template <typename T>
VA_INLINE bool are_runs(const Indices &v, uint32_t shift) {
  constexpr Group kSteps = {0, 1, 2, 3, 4, 5, 6, 7};
  auto step = static_cast<int32_t>(sizeof(T) >> shift);
  Group steps = kSteps * splat(step), differ = splat(0);
  for (uint32_t g = 0; g < kGroups; g++) differ |= (v.group[g] - splat(v.group[g][0])) ^ steps;
  return step << shift == static_cast<int32_t>(sizeof(T)) && !any(differ);
}

template <typename T>
VA_INLINE T *lane_place(uint64_t base, int32_t index, uint32_t shift) {
  return reinterpret_cast<T *>(base + static_cast<uint64_t>(int64_t{index} << shift));
}

template <typename T>
VA_INLINE T lane_read(uint64_t base, int32_t index, uint32_t shift) {
  T value;
  std::memcpy(&value, lane_place<T>(base, index, shift), sizeof value);
  return value;
}

#define VA_EIGHT(T) \
  {lane_read<T>(base, i[0], shift), lane_read<T>(base, i[1], shift), \
   lane_read<T>(base, i[2], shift), lane_read<T>(base, i[3], shift), \
   lane_read<T>(base, i[4], shift), lane_read<T>(base, i[5], shift), \
   lane_read<T>(base, i[6], shift), lane_read<T>(base, i[7], shift)}

// Eight places at once, into one register: machine code reads whole registers back.
template <typename T>
VA_INLINE void gather_group(uint64_t base, const int32_t *i, uint32_t shift, T *out) {
  typedef T Pack __attribute__((vector_size(kGroup * sizeof(T)), may_alias));
  *reinterpret_cast<Pack *>(out) = Pack VA_EIGHT(T);
}
#undef VA_EIGHT

template <typename T>
VA_INLINE void copy_group(T *to, const T *from) {
  typedef T Pack __attribute__((vector_size(kGroup * sizeof(T)), aligned(sizeof(T)), may_alias));
  *reinterpret_cast<Pack *>(to) = *reinterpret_cast<const Pack *>(from);
}

template <typename T, Space S>
VA_INLINE bool load_scaled(const va_warp *w, uint64_t info, uint32_t mask, uint64_t base,
                           const int32_t *index, T *out, uint32_t shift) {
  IndexRange range = legal<T, S>(w, info, base, shift);
  if (!range.known) return false;
  Indices v = active_indices(index, mask);
  if (!within<T>(v, range, shift)) return false;
  if (S == kShared) base += reinterpret_cast<uint64_t>(w->shared);
  if (are_runs<T>(v, shift)) {
    for (uint32_t g = 0; g < kGroups; g++)
      copy_group(&out[g * kGroup], lane_place<T>(base, v.group[g][0], shift));
    return true;
  }
  alignas(32) int32_t lane[VA_LANES];
  for (uint32_t g = 0; g < kGroups; g++)
    *reinterpret_cast<LooseGroup *>(&lane[g * kGroup]) = v.group[g];
  for (uint32_t g = 0; g < kGroups; g++) {
    const int32_t *i = &lane[g * kGroup];
    if (is_run<T>(v.group[g], shift))
      copy_group(&out[g * kGroup], lane_place<T>(base, i[0], shift));
    else
      gather_group<T>(base, i, shift, &out[g * kGroup]);
  }
  return true;
}

template <typename T, Space S>
VA_INLINE bool store_scaled(const va_warp *w, uint64_t info, uint32_t mask, uint64_t base,
                            const int32_t *index, const T *in, uint32_t shift) {
  IndexRange range = legal<T, S>(w, info, base, shift);
  if (!range.known) return false;
  Indices v = active_indices(index, mask);
  if (!within<T>(v, range, shift)) return false;
  if (S == kShared) base += reinterpret_cast<uint64_t>(w->shared);
  if (mask != kAllLanes) {
    for (uint32_t m = mask; m; m &= m - 1) {
      auto lane = static_cast<uint32_t>(__builtin_ctz(m));
      std::memcpy(lane_place<T>(base, index[lane], shift), &in[lane], sizeof(T));
    }
    return true;
  }
  if (are_runs<T>(v, shift)) {
    for (uint32_t g = 0; g < kGroups; g++)
      copy_group(lane_place<T>(base, v.group[g][0], shift), &in[g * kGroup]);
    return true;
  }
  for (uint32_t g = 0; g < kGroups; g++) {
    const int32_t *i = &index[g * kGroup];
    if (is_run<T>(v.group[g], shift)) {
      copy_group(lane_place<T>(base, i[0], shift), &in[g * kGroup]);
      continue;
    }
    for (uint32_t k = 0; k < kGroup; k++)
      std::memcpy(lane_place<T>(base, i[k], shift), &in[g * kGroup + k], sizeof(T));
  }
  return true;
}

template <typename T>
struct Same {
  T value;
  __attribute__((always_inline)) T operator[](uint32_t) const { return value; }
};

// Shared memory of a whole warp, nobody reading the old values.
template <typename T, typename Op, typename Amounts>
VA_INLINE bool reduce_scaled(const va_warp *w, uint64_t info, uint32_t mask, uint64_t base,
                             const int32_t *index, Amounts a, uint32_t shift) {
  if (mask != kAllLanes) return false;
  IndexRange range = legal<T, kShared>(w, info, base, shift);
  if (!range.known) return false;
  Indices v = active_indices(index, mask);
  if (!within<T>(v, range, shift)) return false;
  base += reinterpret_cast<uint64_t>(w->shared);
#pragma GCC unroll 32
  for (uint32_t lane = 0; lane < VA_LANES; lane++)
    update_plain<T, Op>(lane_place<uint8_t>(base, index[lane], shift), a[lane], a[lane], false);
  return true;
}

// The scale of nearly all accesses is known while this is compiled: elements in global memory,
// bytes in shared.
constexpr uint32_t log2_of(size_t bytes) { return bytes == 1 ? 0 : 1 + log2_of(bytes / 2); }
#define VA_BY_SCALE(f, S, last)                                                       \
  constexpr uint32_t kUsual = S == kShared ? 0 : log2_of(sizeof(T));                  \
  uint32_t shift = scale_shift_of(info);                                              \
  if (shift == kUsual) return f(w, info, mask, base, index, last, kUsual);            \
  return f(w, info, mask, base, index, last, shift);

template <typename T, Space S>
VA_INLINE bool load_indexed(const va_warp *w, uint64_t info, uint32_t mask, uint64_t base,
                            const int32_t *index, T *out) {
  VA_BY_SCALE((load_scaled<T, S>), S, out)
}

template <typename T, Space S>
VA_INLINE bool store_indexed(const va_warp *w, uint64_t info, uint32_t mask, uint64_t base,
                             const int32_t *index, const T *in) {
  VA_BY_SCALE((store_scaled<T, S>), S, in)
}

template <typename T, typename Op, typename Amounts>
VA_INLINE bool reduce_indexed(const va_warp *w, uint64_t info, uint32_t mask, uint64_t base,
                              const int32_t *index, Amounts a) {
  VA_BY_SCALE((reduce_scaled<T, Op>), kShared, a)
}
#undef VA_BY_SCALE

struct Addresses {
  uint64_t lane[VA_LANES];
};

Addresses spread(uint64_t info, uint64_t base, const int32_t *index) {
  Addresses all;
  for (uint32_t lane = 0; lane < VA_LANES; lane++) {
    int64_t wide = signed_index(info) ? int64_t{index[lane]}
                                      : int64_t{static_cast<uint32_t>(index[lane])};
    all.lane[lane] = base + static_cast<uint64_t>(wide << scale_shift_of(info));
  }
  return all;
}

// After all lanes were found legal the slow way: the next time is to be quick.
template <typename T, Space S>
void remember_lanes(va_warp *w, uint64_t info, uint32_t mask, const Addresses &all) {
  if (S != kShared && mask)
    remember(w, slot_of(info), all.lane[__builtin_ctz(mask)], sizeof(T), sizeof(T));
}

template <typename T, Space S>
__attribute__((noinline, cold)) void load_slowly(va_warp *w, uint64_t info, uint32_t mask,
                                                 uint64_t base, const int32_t *index, T *out) {
  Addresses all = spread(info, base, index);
  if (space_of(info) == kGeneric)
    load<T, kGeneric>(w, info, mask, all.lane, out);
  else
    load<T, S>(w, info, mask, all.lane, out);
  remember_lanes<T, S>(w, info, mask, all);
}

template <typename T, Space S>
__attribute__((noinline, cold)) void store_slowly(va_warp *w, uint64_t info, uint32_t mask,
                                                  uint64_t base, const int32_t *index,
                                                  const T *in) {
  Addresses all = spread(info, base, index);
  if (space_of(info) == kGeneric)
    store<T, kGeneric>(w, info, mask, all.lane, in);
  else
    store<T, S>(w, info, mask, all.lane, in);
  remember_lanes<T, S>(w, info, mask, all);
}

template <typename T, typename Op>
__attribute__((noinline, cold)) void reduce_slowly(va_warp *w, uint64_t info, uint32_t mask,
                                                   uint64_t base, const int32_t *index,
                                                   const T *a) {
  T old[VA_LANES];
  atomic<T, Op, kShared>(w, info, mask, spread(info, base, index).lane, a, a, old);
}

// Each entry is compiled for any machine and for AVX2, as the arithmetic is; generic and global
// memory share theirs.

#define VA_TWICE(head, name, types, ...)                      \
  template <typename T, head>                                 \
  void name types __VA_ARGS__                                 \
  template <typename T, head>                                 \
  VA_FAST void name##_fast types __VA_ARGS__

VA_TWICE(Space S, load_at,
         (va_warp *w, uint64_t info, uint32_t mask, uint64_t base, const int32_t *index, T *out), {
           if (!mask || !load_indexed<T, S>(w, info, mask, base, index, out))
             load_slowly<T, S>(w, info, mask, base, index, out);
         })
VA_TWICE(Space S, store_at,
         (va_warp *w, uint64_t info, uint32_t mask, uint64_t base, const int32_t *index,
          const T *in), {
           if (!mask || !store_indexed<T, S>(w, info, mask, base, index, in))
             store_slowly<T, S>(w, info, mask, base, index, in);
         })
VA_TWICE(typename Op, reduce_at,
         (va_warp *w, uint64_t info, uint32_t mask, uint64_t base, const int32_t *index,
          const T *a), {
           if (!reduce_indexed<T, Op>(w, info, mask, base, index, a))
             reduce_slowly<T, Op>(w, info, mask, base, index, a);
         })
// The same amount in every lane.
VA_TWICE(typename Op, reduce_same_at,
         (va_warp *w, uint64_t info, uint32_t mask, uint64_t base, const int32_t *index, T a), {
           T all[VA_LANES];
           if (reduce_indexed<T, Op>(w, info, mask, base, index, Same<T>{a})) return;
           for (T &one : all) one = a;
           reduce_slowly<T, Op>(w, info, mask, base, index, all);
         })
#undef VA_TWICE

}  // namespace
}  // namespace va

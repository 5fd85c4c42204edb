// What the elementwise arithmetic shares: running a function of one lane over a warp, and the bit
// patterns of f32.  No PTX semantics here.
//
// Each function is compiled twice, for any x86-64 and for AVX2 with FMA; the machine at hand
// chooses when the tables of names are filled, unless VA100_PORTABLE_LANES asks for the plain one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "worker.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#define VA_INLINE static inline __attribute__((always_inline))
#if defined(__x86_64__)
#define VA_FAST __attribute__((target("avx2,fma,f16c")))
#else
#define VA_FAST
#endif

namespace va {

using Helper = void (*)(const void *a, const void *b, const void *c, void *out);

template <typename To, typename From>
VA_INLINE To bits_as(From from) {
  static_assert(sizeof(To) == sizeof(From), "same width");
  To to;
  __builtin_memcpy(&to, &from, sizeof to);
  return to;
}

VA_INLINE bool has_fast_lanes() {
#if defined(__x86_64__) && !defined(VA100_PORTABLE_LANES)
  unsigned a = 0, b = 0, c = 0, d = 0;
  bool f16c = __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);  // not every compiler's own list
  __builtin_cpu_init();
  return f16c && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
  return false;
#endif
}

// Arguments are arrays of F's parameter types, the result one of its result type.
template <auto F, int Count, typename R, typename... A, size_t... I>
VA_INLINE void each(R (*)(A...), std::index_sequence<I...>, const void *const *in,
                    R *__restrict out) {
  for (int i = 0; i < Count; i++) out[i] = F(static_cast<const A *>(in[I])[i]...);
}

template <auto F, int Count, typename R, typename... A>
VA_INLINE void map(R (*f)(A...), const void *a, const void *b, const void *c, void *out) {
  const void *const in[] = {a, b, c};
  each<F, Count>(f, std::index_sequence_for<A...>{}, in, static_cast<R *>(out));
}

template <auto F, int Count>
__attribute__((noinline)) void plain_lanes(const void *a, const void *b, const void *c,
                                           void *out) {
  map<F, Count>(F, a, b, c, out);
}

template <auto F, int Count>
__attribute__((noinline)) VA_FAST void fast_lanes(const void *a, const void *b, const void *c,
                                                  void *out) {
  map<F, Count>(F, a, b, c, out);
}

// Count is 64 for the packed types: their halves are lanes of their own.
template <auto F, int Count = VA_LANES>
const void *helper() {
  Helper f = has_fast_lanes() ? fast_lanes<F, Count> : plain_lanes<F, Count>;
  return reinterpret_cast<const void *>(f);
}

// ------------------------------------------------------------------ f32

constexpr uint32_t kSign32 = 0x80000000u;
constexpr uint32_t kInfinity32 = 0x7f800000u;
constexpr uint32_t kNan32 = 0x7fffffffu;

VA_INLINE bool is_nan(float x) { return x != x; }

VA_INLINE uint32_t canonical(float x) { return is_nan(x) ? kNan32 : bits_as<uint32_t>(x); }

VA_INLINE uint32_t magnitude32(uint32_t bits) { return bits & ~kSign32; }

// Subnormals to zero of their sign.
VA_INLINE uint32_t flush32(uint32_t bits) {
  return magnitude32(bits) < 0x00800000u ? bits & kSign32 : bits;
}

// Rounded to odd: cut off, the last bit set when something was lost.  Rounding the result again
// to fewer bits (22 or less), in any mode, is as good as rounding x itself.
VA_INLINE float to_odd(double x) {
  float near = static_cast<float>(x);
  double back = static_cast<double>(near);
  uint32_t bits = bits_as<uint32_t>(near);
  uint32_t step = __builtin_fabs(back) < __builtin_fabs(x) ? 1u : ~0u;
  uint32_t odd = (bits & 1) ? bits : bits + step;
  return bits_as<float>(back == x ? bits : odd);
}

}  // namespace va

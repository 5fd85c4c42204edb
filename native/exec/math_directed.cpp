// Arithmetic rounded toward zero, down or up, and integers to f32 and f64 in every rounding.
// The host's rounding mode is changed around the loop; nothing here is to be evaluated at compile
// time or moved out of the guard, hence this file's own compiler flags and the fences.
#include "math_lanes.h"
#include "math_rounding.h"

namespace va {
namespace {

VA_INLINE float result(float x) { return bits_as<float>(canonical(x)); }
VA_INLINE double result(double x) { return x; }

VA_INLINE float fused(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
VA_INLINE double fused(double a, double b, double c) { return __builtin_fma(a, b, c); }
VA_INLINE float root(float a) { return __builtin_sqrtf(a); }
VA_INLINE double root(double a) { return __builtin_sqrt(a); }

template <typename T>
VA_INLINE T add(T a, T b) { return result(a + b); }
template <typename T>
VA_INLINE T sub(T a, T b) { return result(a - b); }
template <typename T>
VA_INLINE T mul(T a, T b) { return result(a * b); }
template <typename T>
VA_INLINE T fma3(T a, T b, T c) { return result(fused(a, b, c)); }
template <typename T>
VA_INLINE T div2(T a, T b) { return result(a / b); }
template <typename T>
VA_INLINE T rcp(T a) { return result(T{1} / a); }
template <typename T>
VA_INLINE T sqrt1(T a) { return result(root(a)); }
template <typename T, typename Integer>
VA_INLINE T convert(Integer a) { return static_cast<T>(a); }
VA_INLINE float narrow(double a) { return result(static_cast<float>(a)); }

template <auto F, unsigned Mode, bool Fast>
void directed(const void *a, const void *b, const void *c, void *out) {
  Rounding guard(Mode);
  if (Fast)
    fast_lanes<F, VA_LANES>(a, b, c, out);
  else
    plain_lanes<F, VA_LANES>(a, b, c, out);
}

template <auto F, unsigned Mode>
const void *rounded() {
  Helper f = has_fast_lanes() ? directed<F, Mode, true> : directed<F, Mode, false>;
  return reinterpret_cast<const void *>(f);
}

}  // namespace

#define VA_ARITHMETIC_ROW(name, F, mode, M)                              \
  {"va_m_" name "_" mode "_f32", rounded<F<float>, M>()},                \
      {"va_m_" name "_" mode "_f64", rounded<F<double>, M>()},
#define VA_ARITHMETIC(name, F)                         \
  VA_ARITHMETIC_ROW(name, F, "rz", kZero)      \
  VA_ARITHMETIC_ROW(name, F, "rm", kDown)        \
  VA_ARITHMETIC_ROW(name, F, "rp", kUp)
#define VA_INTEGER_ROW(mode, M)                                                      \
  {"va_m_cvt_" mode "_f32_u64", rounded<convert<float, uint64_t>, M>()},             \
      {"va_m_cvt_" mode "_f32_s64", rounded<convert<float, int64_t>, M>()},          \
      {"va_m_cvt_" mode "_f64_u64", rounded<convert<double, uint64_t>, M>()},        \
      {"va_m_cvt_" mode "_f64_s64", rounded<convert<double, int64_t>, M>()},

extern const HelperEntry kDirectedHelpers[];
const HelperEntry kDirectedHelpers[] = {
    VA_ARITHMETIC("add", add)
    VA_ARITHMETIC("sub", sub)
    VA_ARITHMETIC("mul", mul)
    VA_ARITHMETIC("fma", fma3)
    VA_ARITHMETIC("div", div2)
    VA_ARITHMETIC("rcp", rcp)
    VA_ARITHMETIC("sqrt", sqrt1)
    VA_INTEGER_ROW("rn", kNearest)
    VA_INTEGER_ROW("rz", kZero)
    VA_INTEGER_ROW("rm", kDown)
    VA_INTEGER_ROW("rp", kUp)
    {"va_m_cvt_rz_f32_f64", rounded<narrow, kZero>()},
    {"va_m_cvt_rm_f32_f64", rounded<narrow, kDown>()},
    {"va_m_cvt_rp_f32_f64", rounded<narrow, kUp>()},
    {nullptr, nullptr}};

}  // namespace va

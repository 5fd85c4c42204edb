// The approximate functions, and what else is too long to emit inline.  Definitions are those of
// va100.numerics.approx: the documented sm_80 scaling around a core taken as correctly rounded.
// Directed roundings are in math_directed.cpp, half precision in math_half.cpp.
#include "math_f64.h"

namespace va {
namespace {

constexpr float kTiny = 0x1p-126f;
constexpr float kHuge = 0x1p126f;

// ------------------------------------------------------------------ cores

VA_INLINE double rcp_f64(double x) { return 1.0 / x; }
VA_INLINE double sqrt_f64(double x) { return __builtin_sqrt(x); }
VA_INLINE double rsqrt_f64(double x) { return 1.0 / __builtin_sqrt(x); }

// Subnormals are zero on both sides.
template <double (*F)(double)>
VA_INLINE float core(float x) {
  double exact = static_cast<double>(bits_as<float>(flush32(bits_as<uint32_t>(x))));
  return bits_as<float>(flush32(canonical(static_cast<float>(F(exact)))));
}

// ------------------------------------------------------------------ instructions

VA_INLINE float flushed(float x) { return bits_as<float>(flush32(bits_as<uint32_t>(x))); }
VA_INLINE bool tiny(float x) { return __builtin_fabsf(x) < kTiny; }
VA_INLINE bool huge(float x) { return __builtin_fabsf(x) > kHuge; }

VA_INLINE uint32_t ex2(float x) {
  bool far = x < -126.0f;
  float y = core<ex2_f64>(x * (far ? 0.5f : 1.0f));
  return canonical(far ? y * y : y);
}
VA_INLINE uint32_t lg2(float x) {
  float y = core<lg2_f64>(x * (tiny(x) ? 0x1p24f : 1.0f));
  return canonical(tiny(x) ? y - 24.0f : y);
}
VA_INLINE uint32_t rcp(float x) {
  float scale = tiny(x) ? 0x1p24f : huge(x) ? 0.25f : 1.0f;
  return canonical(core<rcp_f64>(x * scale) * scale);
}
VA_INLINE uint32_t rsqrt(float x) {
  return canonical(core<rsqrt_f64>(x * (tiny(x) ? 0x1p24f : 1.0f)) * (tiny(x) ? 4096.0f : 1.0f));
}
VA_INLINE uint32_t sqrt1(float x) {
  return canonical(core<sqrt_f64>(x * (tiny(x) ? 0x1p24f : 1.0f)) *
                   (tiny(x) ? 0x1p-12f : 1.0f));
}
VA_INLINE uint32_t tanh1(float x) {
  return canonical(static_cast<float>(tanh_f64(static_cast<double>(x))));
}

// x / 2 pi rounded toward zero: the argument in turns.
VA_INLINE float turns(float x) {
  double exact = static_cast<double>(x) * static_cast<double>(bits_as<float>(0x3E22F983u));
  float near = static_cast<float>(exact);
  bool over = __builtin_fabs(static_cast<double>(near)) > __builtin_fabs(exact);
  return bits_as<float>(bits_as<uint32_t>(near) - (over ? 1u : 0u));
}

template <double (*F)(double), bool Ftz>
VA_INLINE uint32_t circular(float x) {
  return canonical(core<F>(turns(Ftz ? flushed(x) : x)));
}

template <double (*F)(double)>
VA_INLINE uint32_t bare(float x) {
  return canonical(core<F>(x));
}

template <bool Full, bool Ftz>
VA_INLINE uint32_t quotient(float a, float b) {
  if (Ftz) a = flushed(a), b = flushed(b);
  float scale = Full && huge(b) ? 0.25f : !Ftz && tiny(b) ? 0x1p24f : 1.0f;
  a *= scale, b *= scale;
  if (Ftz) a = flushed(a), b = flushed(b);
  uint32_t result = canonical(core<rcp_f64>(b) * a);
  return Ftz ? flush32(result) : result;
}

// ------------------------------------------------------------------ f64

VA_INLINE uint64_t upper_word(uint64_t bits) {
  bits &= 0xffffffff00000000ull;
  bool small = (bits & 0x7ff0000000000000ull) == 0;
  return small ? bits & 0x8000000000000000ull : bits;
}

// Only the upper words of operand and result take part.
template <double (*F)(double)>
VA_INLINE uint64_t coarse(double x) {
  double y = F(bits_as<double>(upper_word(bits_as<uint64_t>(x))));
  bool nan = x != x || y != y;
  return nan ? 0x7fffffff00000000ull : upper_word(bits_as<uint64_t>(y));
}

// ------------------------------------------------------------------ fns

// Position of the |offset|-th set bit from base, up or down.
VA_INLINE uint32_t fns(uint32_t mask, uint32_t base, int32_t offset) {
  constexpr uint32_t kNone = ~0u;
  if (base > 31) return kNone;
  if (offset == 0) return (mask >> base & 1) ? base : kNone;
  uint32_t left = offset > 0 ? static_cast<uint32_t>(offset) : 0u - static_cast<uint32_t>(offset);
  if (left > 32) return kNone;
  uint32_t rest = offset > 0 ? mask & (~0u << base) : mask & (~0u >> (31 - base));
  for (; left > 1 && rest; left--)
    rest &= offset > 0 ? rest - 1 : ~(kSign32 >> __builtin_clz(rest));
  if (!rest) return kNone;
  auto position = offset > 0 ? __builtin_ctz(rest) : 31 - __builtin_clz(rest);
  return static_cast<uint32_t>(position);
}

}  // namespace

#define VA_FUNCTION(name, F)                     \
  {"va_m_" #name "_f32", helper<F>()},           \
      {"va_m_" #name "_ftz_f32", helper<bare<name##_f64>>()},
#define VA_CIRCULAR(name)                                         \
  {"va_m_" #name "_f32", helper<circular<name##_f64, false>>()},  \
      {"va_m_" #name "_ftz_f32", helper<circular<name##_f64, true>>()},

extern const HelperEntry kMathHelpers[];
const HelperEntry kMathHelpers[] = {
    VA_FUNCTION(ex2, ex2)
    VA_FUNCTION(lg2, lg2)
    VA_FUNCTION(rcp, rcp)
    VA_FUNCTION(rsqrt, rsqrt)
    VA_FUNCTION(sqrt, sqrt1)
    VA_CIRCULAR(sin)
    VA_CIRCULAR(cos)
    {"va_m_sin_2pi_ftz_f32", helper<bare<sin_f64>>()},
    {"va_m_cos_2pi_ftz_f32", helper<bare<cos_f64>>()},
    {"va_m_tanh_f32", helper<tanh1>()},
    {"va_m_div_approx_f32", helper<quotient<false, false>>()},
    {"va_m_div_approx_ftz_f32", helper<quotient<false, true>>()},
    {"va_m_div_full_f32", helper<quotient<true, false>>()},
    {"va_m_div_full_ftz_f32", helper<quotient<true, true>>()},
    {"va_m_rcp_ftz_f64", helper<coarse<rcp_f64>>()},
    {"va_m_rsqrt_ftz_f64", helper<coarse<rsqrt_f64>>()},
    {"va_m_rsqrt_f64", helper<rsqrt_f64>()},
    {"va_m_fns", helper<fns>()},
    {nullptr, nullptr}};

}  // namespace va

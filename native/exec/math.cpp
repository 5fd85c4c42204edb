// Elementwise arithmetic that is too long to emit inline: the approximate functions, and the
// directed roundings.  Definitions are those of va100.numerics.approx: the documented sm_80
// scaling around a core that is the correctly rounded value of the real function.
//
// Every function takes 32 lanes and computes them all; the caller keeps what it wants.
#include <cfenv>
#include <cmath>
#include <cstring>

#include "worker.h"

namespace va {
namespace {

float from_bits(uint32_t bits) {
  float x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

float canonical(float x) { return x != x ? from_bits(0x7fffffffu) : x; }

constexpr float kTiny = 0x1p-126f;

float core_ex2(float x) { return static_cast<float>(std::exp2(static_cast<double>(x))); }
float core_lg2(float x) { return static_cast<float>(std::log2(static_cast<double>(x))); }
float core_rcp(float x) { return static_cast<float>(1.0 / static_cast<double>(x)); }
float core_rsqrt(float x) { return static_cast<float>(1.0 / std::sqrt(static_cast<double>(x))); }
float core_sqrt(float x) { return static_cast<float>(std::sqrt(static_cast<double>(x))); }

constexpr double kTwoPi = 6.283185307179586476925286766559;

// Argument in turns, as the range reduction leaves it.
float core_sin(float turns) {
  return static_cast<float>(std::sin(kTwoPi * static_cast<double>(turns)));
}
float core_cos(float turns) {
  return static_cast<float>(std::cos(kTwoPi * static_cast<double>(turns)));
}

float turns_of(float x) {
  // x / 2pi rounded toward zero.
  double exact = static_cast<double>(x) * static_cast<double>(from_bits(0x3E22F983u));
  float rounded = static_cast<float>(exact);
  if (std::fabs(static_cast<double>(rounded)) > std::fabs(exact))
    rounded = std::nextafterf(rounded, 0.0f);
  return rounded;
}

float approx_ex2(float x) {
  if (x < -126.0f) {
    float y = core_ex2(x * 0.5f);
    return y * y;
  }
  return core_ex2(x);
}
float approx_lg2(float x) {
  return std::fabs(x) < kTiny ? core_lg2(x * 0x1p24f) - 24.0f : core_lg2(x);
}
float approx_rcp(float x) {
  float scale = std::fabs(x) < kTiny ? 0x1p24f : std::fabs(x) > 0x1p126f ? 0.25f : 1.0f;
  return core_rcp(x * scale) * scale;
}
float approx_rsqrt(float x) {
  return std::fabs(x) < kTiny ? core_rsqrt(x * 0x1p24f) * 4096.0f : core_rsqrt(x);
}
float approx_sqrt(float x) {
  return std::fabs(x) < kTiny ? core_sqrt(x * 0x1p24f) * 0x1p-12f : core_sqrt(x);
}
float approx_sin(float x) { return core_sin(turns_of(x)); }
float approx_cos(float x) { return core_cos(turns_of(x)); }
float approx_tanh(float x) { return static_cast<float>(std::tanh(static_cast<double>(x))); }

template <float (*F)(float)>
void map1(const float *a, const float *, const float *, float *out) {
  for (int i = 0; i < VA_LANES; i++) out[i] = canonical(F(a[i]));
}

// ------------------------------------------------------------------ directed rounding

struct Rounding {
  explicit Rounding(int mode) : old(fegetround()) { fesetround(mode); }
  ~Rounding() { fesetround(old); }
  int old;
};

template <typename T>
T add(T a, T b, T) { return a + b; }
template <typename T>
T sub(T a, T b, T) { return a - b; }
template <typename T>
T mul(T a, T b, T) { return a * b; }
template <typename T>
T fma3(T a, T b, T c) { return std::fma(a, b, c); }
template <typename T>
T div2(T a, T b, T) { return a / b; }
template <typename T>
T rcp1(T a, T, T) { return T{1} / a; }
template <typename T>
T sqrt1(T a, T, T) { return std::sqrt(a); }

// The mode must be in force while F runs: volatile keeps the compiler from moving or folding it.
template <typename T, T (*F)(T, T, T), int Mode>
void directed(const T *a, const T *b, const T *c, T *out) {
  Rounding guard(Mode);
  for (int i = 0; i < VA_LANES; i++) {
    volatile T x = a[i], y = b[i], z = c[i];
    volatile T r = F(x, y, z);
    if constexpr (sizeof(T) == 4)
      out[i] = canonical(r);
    else
      out[i] = r;
  }
}

template <typename T, int Mode>
void to_float_u64(const uint64_t *a, const T *, const T *, T *out) {
  Rounding guard(Mode);
  for (int i = 0; i < VA_LANES; i++) {
    volatile uint64_t x = a[i];
    volatile T r = static_cast<T>(x);
    out[i] = r;
  }
}
template <typename T, int Mode>
void to_float_s64(const int64_t *a, const T *, const T *, T *out) {
  Rounding guard(Mode);
  for (int i = 0; i < VA_LANES; i++) {
    volatile int64_t x = a[i];
    volatile T r = static_cast<T>(x);
    out[i] = r;
  }
}
template <int Mode>
void narrow(const double *a, const float *, const float *, float *out) {
  Rounding guard(Mode);
  for (int i = 0; i < VA_LANES; i++) {
    volatile double x = a[i];
    volatile float r = static_cast<float>(x);
    out[i] = canonical(r);
  }
}

void rem_u64(const uint64_t *a, const uint64_t *b, const uint64_t *, uint64_t *out) {
  for (int i = 0; i < VA_LANES; i++) out[i] = b[i] ? a[i] % b[i] : a[i];
}
void div_u64(const uint64_t *a, const uint64_t *b, const uint64_t *, uint64_t *out) {
  for (int i = 0; i < VA_LANES; i++) out[i] = b[i] ? a[i] / b[i] : ~uint64_t{0};
}

void approx_rcp_f64(const double *a, const double *, const double *, double *out) {
  for (int i = 0; i < VA_LANES; i++) {
    uint64_t bits;
    double x = a[i];
    std::memcpy(&bits, &x, 8);
    bits &= 0xffffffff00000000ull;
    if ((bits & 0x7ff0000000000000ull) == 0) bits &= 0x8000000000000000ull;
    std::memcpy(&x, &bits, 8);
    double r = 1.0 / x;
    std::memcpy(&bits, &r, 8);
    bits = r != r ? 0x7fffffff00000000ull : bits & 0xffffffff00000000ull;
    if ((bits & 0x7ff0000000000000ull) == 0) bits &= 0x8000000000000000ull;
    std::memcpy(&out[i], &bits, 8);
  }
}
void approx_rsqrt_f64(const double *a, const double *, const double *, double *out) {
  for (int i = 0; i < VA_LANES; i++) {
    uint64_t bits;
    double x = a[i];
    std::memcpy(&bits, &x, 8);
    bits &= 0xffffffff00000000ull;
    if ((bits & 0x7ff0000000000000ull) == 0) bits &= 0x8000000000000000ull;
    std::memcpy(&x, &bits, 8);
    double r = 1.0 / std::sqrt(x);
    std::memcpy(&bits, &r, 8);
    bits = r != r ? 0x7fffffff00000000ull : bits & 0xffffffff00000000ull;
    std::memcpy(&out[i], &bits, 8);
  }
}

}  // namespace

#define VA_ADDRESS(...) reinterpret_cast<const void *>(&__VA_ARGS__)
#define VA_DIRECTED(name, F)                                                              \
  {"va_m_" #name "_rz_f32", VA_ADDRESS(directed<float, F<float>, FE_TOWARDZERO>)},        \
      {"va_m_" #name "_rm_f32", VA_ADDRESS(directed<float, F<float>, FE_DOWNWARD>)},      \
      {"va_m_" #name "_rp_f32", VA_ADDRESS(directed<float, F<float>, FE_UPWARD>)},        \
      {"va_m_" #name "_rz_f64", VA_ADDRESS(directed<double, F<double>, FE_TOWARDZERO>)},  \
      {"va_m_" #name "_rm_f64", VA_ADDRESS(directed<double, F<double>, FE_DOWNWARD>)},    \
      {"va_m_" #name "_rp_f64", VA_ADDRESS(directed<double, F<double>, FE_UPWARD>)},
#define VA_FROM_INT(mode, Mode)                                                           \
  {"va_m_cvt_" #mode "_f32_u64", VA_ADDRESS(to_float_u64<float, Mode>)},                  \
      {"va_m_cvt_" #mode "_f32_s64", VA_ADDRESS(to_float_s64<float, Mode>)},              \
      {"va_m_cvt_" #mode "_f64_u64", VA_ADDRESS(to_float_u64<double, Mode>)},             \
      {"va_m_cvt_" #mode "_f64_s64", VA_ADDRESS(to_float_s64<double, Mode>)},             \
      {"va_m_cvt_" #mode "_f32_f64", VA_ADDRESS(narrow<Mode>)},

extern const HelperEntry kMathHelpers[] = {
    {"va_m_ex2_f32", VA_ADDRESS(map1<approx_ex2>)},
    {"va_m_lg2_f32", VA_ADDRESS(map1<approx_lg2>)},
    {"va_m_sin_f32", VA_ADDRESS(map1<approx_sin>)},
    {"va_m_cos_f32", VA_ADDRESS(map1<approx_cos>)},
    {"va_m_tanh_f32", VA_ADDRESS(map1<approx_tanh>)},
    {"va_m_rcp_f32", VA_ADDRESS(map1<approx_rcp>)},
    {"va_m_rsqrt_f32", VA_ADDRESS(map1<approx_rsqrt>)},
    {"va_m_sqrt_f32", VA_ADDRESS(map1<approx_sqrt>)},
    {"va_m_ex2_ftz_f32", VA_ADDRESS(map1<core_ex2>)},
    {"va_m_rcp_ftz_f32", VA_ADDRESS(map1<core_rcp>)},
    {"va_m_rcp_f64", VA_ADDRESS(approx_rcp_f64)},
    {"va_m_rsqrt_f64", VA_ADDRESS(approx_rsqrt_f64)},
    {"va_m_rem_u64", VA_ADDRESS(rem_u64)},
    {"va_m_div_u64", VA_ADDRESS(div_u64)},
    VA_DIRECTED(add, add)
    VA_DIRECTED(sub, sub)
    VA_DIRECTED(mul, mul)
    VA_DIRECTED(fma, fma3)
    VA_DIRECTED(div, div2)
    VA_DIRECTED(rcp, rcp1)
    VA_DIRECTED(sqrt, sqrt1)
    VA_FROM_INT(rn, FE_TONEAREST)
    VA_FROM_INT(rz, FE_TOWARDZERO)
    VA_FROM_INT(rm, FE_DOWNWARD)
    VA_FROM_INT(rp, FE_UPWARD)
    {nullptr, nullptr}};

}  // namespace va

// Conversions with an f16, bf16 or tf32 side.  Names carry the modifiers that matter: `ftz` where
// the source is f32, `sat` where the destination is floating point (into integers all saturate).
#include <cmath>
#include <limits>
#include <type_traits>

#include "math_half_format.h"

namespace va {
namespace {

enum class Clamp { kNone, kSat, kRelu, kFinite, kReluFinite };

template <typename Format, Clamp C>
VA_INLINE uint16_t clamped(uint16_t bits) {
  if constexpr (C == Clamp::kFinite || C == Clamp::kReluFinite)
    bits = static_cast<uint16_t>(bits - (magnitude16(bits) == Format::kInfinity ? 1 : 0));
  if constexpr (C == Clamp::kSat) return saturated16<Format>(bits);
  if constexpr (C == Clamp::kRelu || C == Clamp::kReluFinite) return rectified16<Format>(bits);
  return bits;
}

// ------------------------------------------------------------------ into 16 bits

template <typename Format, Mode M, bool Ftz, Clamp C>
VA_INLINE uint16_t from_f32(uint32_t a) {
  return clamped<Format, C>(narrow<Format, M>(bits_as<float>(Ftz ? flush32(a) : a)));
}

template <Mode M, Clamp C>
VA_INLINE uint16_t from_f64(double a) {
  return clamped<F16, C>(narrow<F16, M>(to_odd(a)));
}

// Past 2**20 every integer is too large for f16, and below it exact in f32.
template <typename T, Mode M, Clamp C>
VA_INLINE uint16_t from_integer(T a) {
  if constexpr (sizeof(T) > 2) {
    constexpr T kMost = T{1} << 20;
    a = a > kMost ? kMost : a;
    if constexpr (std::is_signed_v<T>) a = a < -kMost ? -kMost : a;
  }
  return clamped<F16, C>(narrow<F16, M>(static_cast<float>(static_cast<int32_t>(a))));
}

// The first operand goes to the upper half.
template <typename Format, Mode M, Clamp C>
VA_INLINE uint32_t pack(uint32_t a, uint32_t b) {
  uint32_t upper = from_f32<Format, M, false, C>(a), lower = from_f32<Format, M, false, C>(b);
  return upper << 16 | lower;
}

// ------------------------------------------------------------------ out of 16 bits

template <Mode M>
VA_INLINE float integral(float x) {
  if constexpr (M == Mode::kNearest) return __builtin_rintf(x);
  if constexpr (M == Mode::kDown) return __builtin_floorf(x);
  if constexpr (M == Mode::kUp) return __builtin_ceilf(x);
  return __builtin_truncf(x);
}

template <Mode M, Clamp C>
VA_INLINE uint16_t round_f16(uint16_t a) {
  return clamped<F16, C>(narrow<F16, Mode::kNearest>(integral<M>(widen<F16>(a))));
}
template <Clamp C>
VA_INLINE uint16_t copy_f16(uint16_t a) {
  return clamped<F16, C>(a);
}

// Saturates; a NaN gives 0, but the top bit alone in 64 bits.
template <typename T, Mode M>
VA_INLINE T to_integer(uint16_t a) {
  constexpr T kLow = std::numeric_limits<T>::min(), kHigh = std::numeric_limits<T>::max();
  constexpr T kNan = sizeof(T) < 8 ? T{0} : static_cast<T>(uint64_t{1} << 63);
  bool finite = magnitude16(a) < F16::kInfinity;
  auto whole = static_cast<int32_t>(integral<M>(finite ? widen<F16>(a) : 0.0f));
  // No finite f16 reaches 70000.
  constexpr int32_t kLeast = std::is_unsigned_v<T> ? 0 : sizeof(T) < 4 ? int32_t(kLow) : -70000;
  constexpr int32_t kMost = sizeof(T) < 4 ? int32_t(kHigh) : 70000;
  whole = whole < kLeast ? kLeast : whole;
  T result = static_cast<T>(whole > kMost ? kMost : whole);
  T infinite = (a & kSign16) ? kLow : kHigh;
  T odd = is_nan16<F16>(a) ? kNan : infinite;
  return finite ? result : odd;
}

template <bool Sat>
VA_INLINE uint32_t f32_from_f16(uint16_t a) {
  uint32_t wide = canonical(widen<F16>(a));
  if (!Sat) return wide;
  uint32_t most = wide < 0x3f800000u ? wide : 0x3f800000u;
  return (wide & kSign32) || wide == kNan32 ? 0u : most;
}
VA_INLINE uint32_t f32_from_bf16(uint16_t a) { return static_cast<uint32_t>(a) << 16; }

template <bool Sat>
VA_INLINE double f64_from_f16(uint16_t a) {
  return static_cast<double>(bits_as<float>(f32_from_f16<Sat>(a)));
}

// ------------------------------------------------------------------ tf32

// Nearest, ties away, as sm_80's two integer operations do; a finite value may become infinite.
template <bool Finite>
VA_INLINE uint32_t tf32(uint32_t a) {
  uint32_t raised = magnitude32(a) < kInfinity32 ? a + 0x1000u : a;
  uint32_t rounded = raised & 0xffffe000u;
  bool over = Finite && magnitude32(rounded) >= kInfinity32;
  return over ? rounded - 0x2000u : rounded;
}

}  // namespace

#define VA_ROUNDED(VA_ROW, ...)            \
  VA_ROW("_rn", Mode::kNearest, __VA_ARGS__) \
  VA_ROW("_rz", Mode::kZero, __VA_ARGS__)    \
  VA_ROW("_rm", Mode::kDown, __VA_ARGS__)    \
  VA_ROW("_rp", Mode::kUp, __VA_ARGS__)
#define VA_INTEGERS(VA_ROW)  \
  VA_ROW("u8", uint8_t)      \
  VA_ROW("u16", uint16_t)    \
  VA_ROW("u32", uint32_t)    \
  VA_ROW("u64", uint64_t)    \
  VA_ROW("s8", int8_t)       \
  VA_ROW("s16", int16_t)     \
  VA_ROW("s32", int32_t)     \
  VA_ROW("s64", int64_t)

#define VA_FROM_INTEGER_ROW(mode, M, name, T)                                             \
  {"va_m_cvt_f16_" name mode, helper<from_integer<T, M, Clamp::kNone>>()},                \
      {"va_m_cvt_f16_" name mode "_sat", helper<from_integer<T, M, Clamp::kSat>>()},
#define VA_FROM_INTEGER(name, T) VA_ROUNDED(VA_FROM_INTEGER_ROW, name, T)
#define VA_TO_INTEGER(name, T)                                                         \
  {"va_m_cvt_" name "_f16_rni", helper<to_integer<T, Mode::kNearest>>()},              \
      {"va_m_cvt_" name "_f16_rzi", helper<to_integer<T, Mode::kZero>>()},             \
      {"va_m_cvt_" name "_f16_rmi", helper<to_integer<T, Mode::kDown>>()},             \
      {"va_m_cvt_" name "_f16_rpi", helper<to_integer<T, Mode::kUp>>()},
#define VA_FROM_F32_ROW(mode, M, unused)                                                     \
  {"va_m_cvt_f16_f32" mode, helper<from_f32<F16, M, false, Clamp::kNone>>()},                \
      {"va_m_cvt_f16_f32" mode "_ftz", helper<from_f32<F16, M, true, Clamp::kNone>>()},      \
      {"va_m_cvt_f16_f32" mode "_sat", helper<from_f32<F16, M, false, Clamp::kSat>>()},      \
      {"va_m_cvt_f16_f32" mode "_ftz_sat", helper<from_f32<F16, M, true, Clamp::kSat>>()},
#define VA_FROM_F64_ROW(mode, M, unused)                                      \
  {"va_m_cvt_f16_f64" mode, helper<from_f64<M, Clamp::kNone>>()},             \
      {"va_m_cvt_f16_f64" mode "_sat", helper<from_f64<M, Clamp::kSat>>()},
#define VA_INTEGRAL_ROW(mode, M, unused)                                       \
  {"va_m_cvt_f16_f16" mode "i", helper<round_f16<M, Clamp::kNone>>()},         \
      {"va_m_cvt_f16_f16" mode "i_sat", helper<round_f16<M, Clamp::kSat>>()},
#define VA_CLAMPED(VA_ROW, type, Format, mode, M)      \
  VA_ROW(type, Format, mode, M, "_relu", kRelu)        \
  VA_ROW(type, Format, mode, M, "_satfinite", kFinite) \
  VA_ROW(type, Format, mode, M, "_relu_satfinite", kReluFinite)
#define VA_SCALAR_ROW(type, Format, mode, M, suffix, clamp) \
  {"va_m_cvt_" type "_f32" mode suffix, helper<from_f32<Format, M, false, Clamp::clamp>>()},
#define VA_PACKED_ROW(type, Format, mode, M, suffix, clamp) \
  {"va_m_cvt_" type "x2_f32" mode suffix, helper<pack<Format, M, Clamp::clamp>>()},
#define VA_FROM_F32(type, Format, mode, M)                    \
  VA_CLAMPED(VA_SCALAR_ROW, type, Format, mode, M)            \
  VA_CLAMPED(VA_PACKED_ROW, type, Format, mode, M)            \
  VA_PACKED_ROW(type, Format, mode, M, "", kNone)

extern const HelperEntry kConvertHelpers[];
const HelperEntry kConvertHelpers[] = {
    VA_INTEGERS(VA_FROM_INTEGER)
    VA_INTEGERS(VA_TO_INTEGER)
    VA_ROUNDED(VA_FROM_F32_ROW, )
    VA_ROUNDED(VA_FROM_F64_ROW, )
    VA_ROUNDED(VA_INTEGRAL_ROW, )
    VA_FROM_F32("f16", F16, "_rn", Mode::kNearest)
    VA_FROM_F32("f16", F16, "_rz", Mode::kZero)
    VA_FROM_F32("bf16", BF16, "_rn", Mode::kNearest)
    VA_FROM_F32("bf16", BF16, "_rz", Mode::kZero)
    VA_SCALAR_ROW("bf16", BF16, "_rn", Mode::kNearest, "", kNone)
    VA_SCALAR_ROW("bf16", BF16, "_rz", Mode::kZero, "", kNone)
    {"va_m_cvt_f16_f16", helper<copy_f16<Clamp::kNone>>()},
    {"va_m_cvt_f16_f16_sat", helper<copy_f16<Clamp::kSat>>()},
    {"va_m_cvt_f32_f16", helper<f32_from_f16<false>>()},
    {"va_m_cvt_f32_f16_sat", helper<f32_from_f16<true>>()},
    {"va_m_cvt_f64_f16", helper<f64_from_f16<false>>()},
    {"va_m_cvt_f64_f16_sat", helper<f64_from_f16<true>>()},
    {"va_m_cvt_f32_bf16", helper<f32_from_bf16>()},
    {"va_m_cvt_tf32_f32_rna", helper<tf32<false>>()},
    {"va_m_cvt_tf32_f32_rna_satfinite", helper<tf32<true>>()},
    {nullptr, nullptr}};

}  // namespace va

// f16 and bf16 arithmetic, one or two to a register; each result is rounded once.
// Conversions are in math_convert.cpp.
#include <cstddef>
#include <type_traits>

#include "math_f64.h"
#include "math_half_f16c.h"
#include "math_half_format.h"

namespace va {
namespace {

// ------------------------------------------------------------------ operations

// f32 has more than twice f16's precision, so rounding twice is rounding once.
template <typename Format>
VA_INLINE uint16_t add(uint16_t a, uint16_t b) {
  return narrow<Format, Mode::kNearest>(widen<Format>(a) + widen<Format>(b));
}
template <typename Format>
VA_INLINE uint16_t sub(uint16_t a, uint16_t b) {
  return narrow<Format, Mode::kNearest>(widen<Format>(a) - widen<Format>(b));
}
template <typename Format>
VA_INLINE uint16_t mul(uint16_t a, uint16_t b) {
  return narrow<Format, Mode::kNearest>(widen<Format>(a) * widen<Format>(b));
}

// Add, rounded to odd, by the error of the rounded sum.
template <typename T, typename Bits>
VA_INLINE T add_to_odd(T x, T y) {
  T sum = x + y;
  T shadow = sum - x;
  T error = (x - (sum - shadow)) + (y - shadow);
  Bits bits = bits_as<Bits>(sum);
  // Toward the error: away from zero when it has the sum's sign.  That of an infinity is NaN.
  Bits apart = (bits ^ bits_as<Bits>(error)) >> (8 * sizeof(Bits) - 1);
  Bits step = error > 0 || error < 0 ? 1 - 2 * apart : 0;
  return bits_as<T>(bits & 1 ? bits : bits + step);
}

// The product of two f16 is exact in f32, of two bf16 in f64.
template <typename Format>
VA_INLINE uint16_t fma3(uint16_t a, uint16_t b, uint16_t c) {
  float x = widen<Format>(a), y = widen<Format>(b), z = widen<Format>(c);
  if constexpr (Format::kLeast == 1) {
    double product = static_cast<double>(x) * static_cast<double>(y);
    double sum = add_to_odd<double, uint64_t>(product, static_cast<double>(z));
    return narrow<Format, Mode::kNearest>(to_odd(sum));
  } else {
    return narrow<Format, Mode::kNearest>(add_to_odd<float, uint32_t>(x * y, z));
  }
}

// sm_80 adds -0, so a NaN becomes canonical.
template <typename Format>
VA_INLINE uint16_t neg(uint16_t a) {
  return canonical16<Format>(static_cast<uint16_t>(a ^ kSign16));
}
template <typename Format>
VA_INLINE uint16_t absolute(uint16_t a) {
  return canonical16<Format>(static_cast<uint16_t>(magnitude16(a)));
}

// Integers in the order of the values, -0 below +0.
VA_INLINE int32_t ordered(uint16_t bits) {
  int32_t size = static_cast<int32_t>(magnitude16(bits));
  return (bits & kSign16) ? ~size : size;
}

// A lone NaN loses to a number, or wins with `.NaN`.
template <typename Format, bool Larger, bool Nan>
VA_INLINE uint16_t extreme(uint16_t a, uint16_t b) {
  bool ahead = ordered(a) >= ordered(b);
  bool a_nan = is_nan16<Format>(a), b_nan = is_nan16<Format>(b);
  uint32_t chosen = ahead == Larger ? a : b;
  if (!Nan) chosen = a_nan ? b : b_nan ? a : chosen;
  bool nan = Nan ? a_nan | b_nan : a_nan & b_nan;
  return static_cast<uint16_t>(nan ? kNan16 : chosen);
}

// The cores are those of f32, rounded once.
template <double (*F)(double)>
VA_INLINE uint16_t approximate(uint16_t a) {
  return narrow<F16, Mode::kNearest>(to_odd(F(static_cast<double>(widen<F16>(a)))));
}

// ------------------------------------------------------------------ modifiers

enum class Clamp { kNone, kSat, kRelu };

template <typename Format, auto F, bool Ftz, Clamp C, typename Signature = decltype(F)>
struct Modified;

template <typename Format, auto F, bool Ftz, Clamp C, typename... A>
struct Modified<Format, F, Ftz, C, uint16_t (*)(A...)> {
  VA_INLINE uint16_t apply(A... a) {
    uint16_t result = Ftz ? flush16<Format>(F(flush16<Format>(a)...)) : F(a...);
    if constexpr (C == Clamp::kSat) result = saturated16<Format>(result);
    if constexpr (C == Clamp::kRelu) result = rectified16<Format>(result);
    return result;
  }
};

// The twin that uses the processor's own conversions; null where there is none.
template <auto F>
constexpr std::nullptr_t kTwin = nullptr;
#if defined(VA100_HAS_F16C)
template <>
constexpr auto kTwin<add<F16>> = wide::add;
template <>
constexpr auto kTwin<sub<F16>> = wide::sub;
template <>
constexpr auto kTwin<mul<F16>> = wide::mul;
template <>
constexpr auto kTwin<fma3<F16>> = wide::fma3;
#endif

template <typename Format, auto F, bool Ftz, Clamp C, int Count>
const void *half() {
#if defined(VA100_HAS_F16C)
  if constexpr (!std::is_null_pointer_v<std::remove_cv_t<decltype(kTwin<F>)>>) {
    Helper wide = wide::lanes<kTwin<F>, Ftz, C == Clamp::kSat, C == Clamp::kRelu, Count>;
    if (has_fast_lanes()) return reinterpret_cast<const void *>(wide);
  }
#endif
  return helper<&Modified<Format, F, Ftz, C>::apply, Count>();
}

}  // namespace

// Both widths of one form.
#define VA_FORM(name, type, suffix, Format, F, ftz, clamp)                                     \
  {"va_m_" name "_" type suffix, half<Format, F, ftz, Clamp::clamp, 32>()},                    \
      {"va_m_" name "_" type "x2" suffix, half<Format, F, ftz, Clamp::clamp, 64>()},
#define VA_F16(name, F, suffix, clamp)                       \
  VA_FORM(name, "f16", suffix, F16, F, false, clamp)         \
  VA_FORM(name, "f16", "_ftz" suffix, F16, F, true, clamp)
#define VA_BF16(name, F, suffix, clamp) VA_FORM(name, "bf16", suffix, BF16, F, false, clamp)
#define VA_SIGN(name, F)            \
  VA_F16(name, F<F16>, "", kNone)   \
  VA_BF16(name, F<BF16>, "", kNone)
#define VA_ARITHMETIC(name, F)         \
  VA_F16(name, F<F16>, "", kNone)      \
  VA_F16(name, F<F16>, "_sat", kSat)
#define VA_EXTREME(name, larger)                                      \
  VA_F16(name, (extreme<F16, larger, false>), "", kNone)              \
  VA_F16(name, (extreme<F16, larger, true>), "_NaN", kNone)           \
  VA_BF16(name, (extreme<BF16, larger, false>), "", kNone)            \
  VA_BF16(name, (extreme<BF16, larger, true>), "_NaN", kNone)

extern const HelperEntry kHalfHelpers[];
const HelperEntry kHalfHelpers[] = {
    VA_ARITHMETIC("add", add)
    VA_ARITHMETIC("sub", sub)
    VA_ARITHMETIC("mul", mul)
    VA_ARITHMETIC("fma", fma3)
    VA_F16("fma", fma3<F16>, "_relu", kRelu)
    VA_BF16("fma", fma3<BF16>, "", kNone)
    VA_BF16("fma", fma3<BF16>, "_relu", kRelu)
    VA_SIGN("neg", neg)
    VA_SIGN("abs", absolute)
    VA_EXTREME("min", false)
    VA_EXTREME("max", true)
    VA_FORM("tanh", "f16", "", F16, approximate<tanh_f64>, false, kNone)
    VA_FORM("ex2", "f16", "", F16, approximate<ex2_f64>, false, kNone)
    {nullptr, nullptr}};

}  // namespace va

// f16 and bf16 as bit patterns: widening, rounding, clamping.  Mirrors va100.numerics.formats.
#pragma once

#include "math_lanes.h"

namespace va {

enum class Mode { kNearest, kZero, kDown, kUp };

struct F16 {
  static constexpr int kPrecision = 11;
  static constexpr int kLeast = 113;  // f32 exponent field of the smallest normal number
  static constexpr uint32_t kInfinity = 0x7c00;
  static constexpr uint32_t kSmallest = 0x0400;
  static constexpr uint32_t kOne = 0x3c00;
};
struct BF16 {
  static constexpr int kPrecision = 8;
  static constexpr int kLeast = 1;
  static constexpr uint32_t kInfinity = 0x7f80;
  static constexpr uint32_t kSmallest = 0x0080;
  static constexpr uint32_t kOne = 0x3f80;
};

constexpr uint32_t kSign16 = 0x8000u;
constexpr uint32_t kNan16 = 0x7fffu;

VA_INLINE uint32_t magnitude16(uint32_t bits) { return bits & 0x7fffu; }

template <typename Format>
VA_INLINE bool is_nan16(uint32_t bits) {
  return magnitude16(bits) > Format::kInfinity;
}

// Exact; a NaN stays some NaN.
template <typename Format>
VA_INLINE float widen(uint16_t bits) {
  uint32_t sign = (bits & kSign16) << 16, size = magnitude16(bits);
  if constexpr (Format::kLeast == 1) {
    return bits_as<float>(static_cast<uint32_t>(bits) << 16);
  } else {
    uint32_t bias = size >= Format::kInfinity ? 224u << 23 : 112u << 23;
    uint32_t normal = (size << 13) + bias;
    float tiny = static_cast<float>(static_cast<int32_t>(size)) * 0x1p-24f;
    return bits_as<float>(sign | (size < Format::kSmallest ? bits_as<uint32_t>(tiny) : normal));
  }
}

template <Mode M>
VA_INLINE uint32_t rounds_up(uint32_t negative, uint32_t rest) {
  uint32_t inexact = rest != 0;
  if constexpr (M == Mode::kDown) return inexact & negative;
  if constexpr (M == Mode::kUp) return inexact & (negative ^ 1);
  return 0;
}

// Magnitude of a result that is too large.
template <typename Format, Mode M>
VA_INLINE uint32_t overflowed(uint32_t negative) {
  if constexpr (M == Mode::kDown) return Format::kInfinity - 1 + negative;
  if constexpr (M == Mode::kUp) return Format::kInfinity - negative;
  return Format::kInfinity - 1;
}

// f32 to the nearest f16.  Adding a power of two whose last place is the result's lets the adder
// round; what was added is the result's leading digits.
VA_INLINE uint16_t nearest_f16(float x) {
  uint32_t bits = bits_as<uint32_t>(x), size = magnitude32(bits);
  uint32_t near = size < 0x47800000u ? size : 0x47800000u;  // from 2**16 on it is infinite
  uint32_t power = near & kInfinity32;
  power = (power > 113u << 23 ? power : 113u << 23) + (13u << 23);
  uint32_t sum = bits_as<uint32_t>(bits_as<float>(near) + bits_as<float>(power));
  uint32_t result = (power >> 13) - (126u << 10) + (sum - power);
  result = (result < F16::kInfinity ? result : F16::kInfinity) | (bits >> 16 & kSign16);
  return static_cast<uint16_t>(size > kInfinity32 ? kNan16 : result);
}

// f32 to the nearest bf16, which is its upper half.
VA_INLINE uint16_t nearest_bf16(float x) {
  uint32_t bits = bits_as<uint32_t>(x);
  uint32_t result = (bits + 0x7fffu + (bits >> 16 & 1)) >> 16;
  return static_cast<uint16_t>(magnitude32(bits) > kInfinity32 ? kNan16 : result);
}

// f32 to a 16-bit format, rounded once; a NaN becomes canonical.
template <typename Format, Mode M>
VA_INLINE uint16_t narrow(float x) {
  if constexpr (M == Mode::kNearest) return Format::kLeast == 1 ? nearest_bf16(x) : nearest_f16(x);
  constexpr int kDrop = 24 - Format::kPrecision;
  uint32_t bits = bits_as<uint32_t>(x);
  uint32_t negative = bits >> 31, size = magnitude32(bits);
  int32_t field = static_cast<int32_t>(size >> 23);
  uint32_t significand = (size & 0x7fffffu) | (field > 0 ? 0x800000u : 0u);
  field = field > 0 ? field : 1;
  int32_t deep = Format::kLeast > field ? Format::kLeast - field : 0;
  uint32_t shift = static_cast<uint32_t>(deep < 31 - kDrop ? kDrop + deep : 31);
  uint32_t kept = significand >> shift;
  uint32_t rest = significand & ((1u << shift) - 1);
  uint32_t exponent = static_cast<uint32_t>(field > Format::kLeast ? field - Format::kLeast : 0);
  uint32_t result = (exponent << (Format::kPrecision - 1)) + kept +
                    rounds_up<M>(negative, rest);
  result = result >= Format::kInfinity ? overflowed<Format, M>(negative) : result;
  result = size == kInfinity32 ? Format::kInfinity : result;
  result |= negative << 15;
  return static_cast<uint16_t>(size > kInfinity32 ? kNan16 : result);
}

template <typename Format>
VA_INLINE uint16_t flush16(uint16_t bits) {
  uint32_t zero = bits & kSign16;
  return static_cast<uint16_t>(magnitude16(bits) < Format::kSmallest ? zero : bits);
}

template <typename Format>
VA_INLINE uint16_t canonical16(uint16_t bits) {
  return static_cast<uint16_t>(is_nan16<Format>(bits) ? kNan16 : bits);
}

// `.sat`: into [0, 1]; NaN, negative values and -0 give +0.
template <typename Format>
VA_INLINE uint16_t saturated16(uint16_t bits) {
  uint32_t most = bits < Format::kOne ? bits : Format::kOne;
  bool low = is_nan16<Format>(bits) || (bits & kSign16);
  return static_cast<uint16_t>(low ? 0 : most);
}

// `.relu`: negative values and -0 give +0, NaN the canonical one.
template <typename Format>
VA_INLINE uint16_t rectified16(uint16_t bits) {
  uint32_t floor = (bits & kSign16) ? 0 : bits;
  return static_cast<uint16_t>(is_nan16<Format>(bits) ? kNan16 : floor);
}

}  // namespace va

// Included by mma_fast.cpp and mma_plain.cpp: raw bits to the numbers that mma_block.h adds.
#pragma once

#include "math_half_format.h"
#include "mma_block.h"

namespace va {
namespace mma {

// What a number is beside the ordinary ones; all arguments are raw bits without the sign.
VA_INLINE float special_of(uint32_t magnitude, uint32_t infinity) {
  float number = magnitude ? 1.0f : 0.0f;
  float beyond = magnitude > infinity ? __builtin_nanf("") : __builtin_inff();
  return magnitude >= infinity ? beyond : number;
}

VA_INLINE float signed_as(float magnitude, uint32_t sign) {
  return bits_as<float>(bits_as<uint32_t>(magnitude) | (sign & kSign32));
}

struct HalfBits {
  using Raw = uint16_t;

  // Returns whether the narrow way is closed.
  VA_INLINE uint32_t narrow(Raw raw, float *value, int32_t *exponent) {
    uint32_t magnitude = raw & 0x7fffu, sign = (raw & 0x8000u) << 16;
    // As the upper bits of an f32, 112 too small in exponent: subnormals, too, come out exact.
    *value = bits_as<float>(magnitude << 13 | sign) * 0x1p112f;
    int32_t field = static_cast<int32_t>(magnitude >> 10);
    int32_t e = (field > 1 ? field : 1) - 15;
    *exponent = magnitude ? e : kZeroExponent;
    return magnitude >= 0x7c00u;
  }
  VA_INLINE void wide(Raw raw, float *significand, float *special) {
    uint32_t magnitude = raw & 0x7fffu, sign = static_cast<uint32_t>(raw) << 16;
    uint32_t hidden = magnitude >= 0x400u ? 0x400u : 0u;
    auto whole = static_cast<int32_t>((magnitude & 0x3ffu) | hidden);
    *significand = signed_as(static_cast<float>(whole) * 0x1p-10f, sign);
    *special = signed_as(special_of(magnitude, 0x7c00u), sign);
  }
};

VA_INLINE uint32_t narrow32(uint32_t word, float *value, int32_t *exponent) {
  uint32_t magnitude = word & ~kSign32;
  *value = bits_as<float>(word);
  int32_t field = static_cast<int32_t>(magnitude >> 23);
  int32_t e = (field > 1 ? field : 1) - 127;
  *exponent = magnitude ? e : kZeroExponent;
  uint32_t above = static_cast<uint32_t>(field - (127 - kNarrow));
  return magnitude != 0 && above >= 2 * kNarrow;
}

VA_INLINE void wide32(uint32_t word, float *significand, float *special) {
  uint32_t magnitude = word & ~kSign32;
  uint32_t hidden = magnitude >= 0x800000u ? 0x800000u : 0u;
  auto whole = static_cast<int32_t>((magnitude & 0x7fffffu) | hidden);
  *significand = signed_as(static_cast<float>(whole) * 0x1p-23f, word);
  *special = signed_as(special_of(magnitude, kInfinity32), word);
}

struct BrainBits {
  using Raw = uint16_t;
  VA_INLINE uint32_t word(Raw raw) { return static_cast<uint32_t>(raw) << 16; }
  VA_INLINE uint32_t narrow(Raw raw, float *value, int32_t *exponent) {
    return narrow32(word(raw), value, exponent);
  }
  VA_INLINE void wide(Raw raw, float *significand, float *special) {
    wide32(word(raw), significand, special);
  }
};

// The lowest 13 bits of the register are not read, not even of a NaN.
struct Tf32Bits {
  using Raw = uint32_t;
  static constexpr uint32_t kRead = 0xffffe000u;
  VA_INLINE uint32_t narrow(Raw raw, float *value, int32_t *exponent) {
    return narrow32(raw & kRead, value, exponent);
  }
  VA_INLINE void wide(Raw raw, float *significand, float *special) {
    wide32(raw & kRead, significand, special);
  }
};

// Returns whether these numbers need the wide way, which is then prepared.
template <typename Bits>
bool unpack(const typename Bits::Raw *__restrict raw, size_t count, Terms to) {
  float *__restrict value = to.value;
  int32_t *__restrict exponent = to.exponent;
  uint32_t closed = 0;
  for (size_t i = 0; i < count; i++) closed |= Bits::narrow(raw[i], value + i, exponent + i);
  return closed != 0;
}

template <typename Bits>
void unpack_wide(const typename Bits::Raw *__restrict raw, size_t count, Terms to) {
  float *__restrict significand = to.significand;
  float *__restrict special = to.special;
  for (size_t i = 0; i < count; i++) Bits::wide(raw[i], significand + i, special + i);
}

// ------------------------------------------------------------------ kinds

template <typename OperandBits, typename SumRule, int Products>
struct Aligned {
  using Bits = OperandBits;
  using Raw = typename Bits::Raw;
  using Sum = SumRule;
  static constexpr int kBlock = Products;
  static constexpr bool kHalfSum = Sum::kHalf;
};

using HalfToSingle = Aligned<HalfBits, Sum32, 8>;
using HalfToHalf = Aligned<HalfBits, Sum16, 8>;
using BrainToSingle = Aligned<BrainBits, Sum32, 8>;
using Tf32ToSingle = Aligned<Tf32Bits, Sum32, 4>;

// `count` rows of a, `stride` numbers apart, against eight columns of b; sums in rows of eight.
template <typename Kind, bool Wide>
VA_INLINE void rows(const Terms &a, size_t stride, const Terms &b, const uint32_t *index, size_t count,
                    size_t depth, float *sums) {
  for (size_t i = 0; i < count; i++) {
    F8 sum = load(sums + kColumns * i);
    Terms x = from(a, i * stride);
    if (index)
      sum = row<typename Kind::Sum, Kind::kBlock, Wide>(x, b, index + i * stride, depth, sum);
    else
      sum = row<typename Kind::Sum, Kind::kBlock, Wide>(x, b, nullptr, depth, sum);
    store(sums + kColumns * i, sum);
  }
}

}  // namespace mma
}  // namespace va

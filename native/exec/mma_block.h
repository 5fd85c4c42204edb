// Included by mma_fast.cpp and mma_plain.cpp, after they chose the processor to compile for.
//
// One block of an A100 tensor core's sum, for eight columns at a time, to the bit.
//
// The terms of a block are moved to their largest exponent, `top`, cut off below 24 fraction bits and
// added exactly: as integers that count units of 2**(top - 24).  A conversion to integer cuts off,
// so a term costs a product, a scaling and a conversion.  Sums stay below 2**30.
//
// Two ways give the same bits.  The narrow one takes a product as one float.  That is exact as long
// as both factors are zero or have exponents in [-50, 49] (every finite f16 does): the product has
// at most 22 bits and an exponent in [-100, 99], so it and its scale are normal numbers.  The wide
// one, for all that is, keeps significands and exponents apart and follows infinities and NaNs by
// a third number.  Which way a row goes is seen when it is unpacked.
#pragma once

#include "math_lanes.h"
#include "mma_terms.h"

namespace va {
namespace mma {

typedef float F8 __attribute__((vector_size(32)));
typedef int32_t I8 __attribute__((vector_size(32)));
typedef uint32_t U8 __attribute__((vector_size(32)));

constexpr int kColumns = 8;
constexpr int kZeroExponent = -0x4000;  // of a zero: below everything, even twice
constexpr int kNarrow = 50;

VA_INLINE F8 load(const float *from) {
  F8 v;
  __builtin_memcpy(&v, from, sizeof v);
  return v;
}
VA_INLINE I8 load(const int32_t *from) {
  I8 v;
  __builtin_memcpy(&v, from, sizeof v);
  return v;
}
VA_INLINE void store(float *to, F8 v) { __builtin_memcpy(to, &v, sizeof v); }

VA_INLINE F8 splat(float x) { return F8{} + x; }
VA_INLINE I8 splat(int32_t x) { return I8{} + x; }
VA_INLINE I8 bits(F8 v) { return reinterpret_cast<I8>(v); }
VA_INLINE F8 floats(I8 v) { return reinterpret_cast<F8>(v); }
VA_INLINE I8 larger(I8 a, I8 b) { return a > b ? a : b; }
VA_INLINE I8 smaller(I8 a, I8 b) { return a < b ? a : b; }
VA_INLINE I8 size(I8 v) { return v & 0x7fffffff; }
VA_INLINE I8 absolute(I8 v) { return v < 0 ? -v : v; }
VA_INLINE I8 add(I8 a, I8 b) {  // wraps: sums of infinities' garbage are not looked at
  return reinterpret_cast<I8>(reinterpret_cast<U8>(a) + reinterpret_cast<U8>(b));
}
VA_INLINE I8 cut(F8 v) { return __builtin_convertvector(v, I8); }

// 2**e as a float, for e in [-126, 127].
VA_INLINE F8 power(I8 e) { return floats((e + 127) << 23); }

// v * 2**e where one power of two may be out of range; exact unless the result is subnormal.
VA_INLINE F8 scaled(F8 v, I8 e) {
  I8 half = e >> 1;
  return v * power(half) * power(e - half);
}

VA_INLINE Terms from(const Terms &t, size_t i) {
  return {t.value + i, t.exponent + i, t.significand + i, t.special + i};
}

// f32 sums are cut off; an f16 sum is kept as the float it is equal to.
struct Sum32 {
  static constexpr int kLeast = -132;
  static constexpr bool kHalf = false;
};
struct Sum16 {
  static constexpr int kLeast = -20;
  static constexpr bool kHalf = true;
};

// Exponent of a finite accumulator; that of an infinity or NaN is 128.
template <typename Sum>
VA_INLINE I8 exponent_of(F8 sum) {
  I8 field = size(bits(sum)) >> 23;
  I8 least = splat(Sum::kHalf ? -14 : -126);
  I8 e = larger(field - 127, least);
  return sum == 0.0f ? splat(Sum::kLeast) : e;
}

// The integer as a float, cut off to 24 bits: taking the upper bits of the magnitude away from where
// the dropped ones are clears half of a last place, so that nothing rounds up.
VA_INLINE F8 cut_to_24_bits(I8 total) {
  I8 magnitude = absolute(total);
  magnitude &= ~(magnitude >> 24);
  return __builtin_convertvector(total < 0 ? -magnitude : magnitude, F8);
}

// total * 2**unit to the nearest f16, ties to even.
VA_INLINE F8 nearest_half(I8 total, I8 unit) {
  I8 magnitude = absolute(total);
  // Of more than 24 bits the lowest six become one that tells whether any was set.
  I8 sticky = (magnitude & ~63) | (((magnitude & 63) + 63) & 64);
  F8 exact = __builtin_convertvector(magnitude > 0xffffff ? sticky : magnitude, F8) * power(unit);
  I8 leading = larger(bits(exact) & 0x7f800000, splat(113 << 23));
  F8 shifter = floats(leading + (13 << 23));  // its last place is the result's
  F8 rounded = (exact + shifter) - shifter;
  rounded = rounded >= 65536.0f ? splat(__builtin_inff()) : rounded;
  I8 sign = rounded == 0.0f ? I8{} : total & static_cast<int32_t>(kSign32);
  return floats(bits(rounded) | sign);
}

// An accumulator that is no number stays what it is.
VA_INLINE F8 keep_special(F8 sum, F8 result) {
  I8 magnitude = size(bits(sum));
  I8 special = magnitude > 0x7f800000 ? splat(static_cast<int32_t>(kNan32)) : bits(sum);
  return magnitude >= 0x7f800000 ? floats(special) : result;
}

// Where the row of b begins that element l meets.
VA_INLINE uint32_t column(const uint32_t *index, int l) {
  return kColumns * (index ? index[l] : static_cast<uint32_t>(l));
}

template <typename Sum, int Block>
VA_INLINE F8 narrow_block(const Terms &a, const Terms &b, const uint32_t *index, F8 sum) {
  I8 top = exponent_of<Sum>(sum);
  for (int l = 0; l < Block; l++) top = larger(top, a.exponent[l] + load(b.exponent + column(index, l)));
  // Below -100 all products are zero.
  F8 scale = power(24 - larger(top, splat(-100)));
  I8 total = cut(sum * scale);
  for (int l = 0; l < Block; l++) {
    F8 product = a.value[l] * load(b.value + column(index, l));
    total = add(total, cut(product * scale));
  }
  if constexpr (Sum::kHalf) return keep_special(sum, nearest_half(total, top - 24));
  F8 result = cut_to_24_bits(total) * power(larger(top, splat(-100)) - 24);
  result = top < -100 ? sum + 0.0f : result;  // +0 for -0
  return keep_special(sum, result);
}

template <typename Sum, int Block>
VA_INLINE F8 wide_block(const Terms &a, const Terms &b, const uint32_t *index, F8 sum) {
  I8 top = larger(exponent_of<Sum>(sum), splat(Sum::kLeast));
  for (int l = 0; l < Block; l++) top = larger(top, a.exponent[l] + load(b.exponent + column(index, l)));
  I8 total = cut(scaled(sum, 24 - top));
  F8 special = size(bits(sum)) >= 0x7f800000 ? sum : F8{};
  for (int l = 0; l < Block; l++) {
    I8 shift = a.exponent[l] + load(b.exponent + column(index, l)) - top + 24;
    F8 product = a.significand[l] * load(b.significand + column(index, l));
    total = add(total, cut(product * power(larger(shift, splat(-127)))));  // -127: times zero
    special += a.special[l] * load(b.special + column(index, l));
  }
  F8 result;
  if constexpr (Sum::kHalf) {
    result = nearest_half(total, top - 24);
  } else {
    I8 below = larger(-125 - top, I8{});  // bits below the smallest subnormal
    I8 magnitude = absolute(total) >> below;
    result = scaled(cut_to_24_bits(total < 0 ? -magnitude : magnitude), top + below - 24);
  }
  // A sum of numbers is a number; anything else is the result.
  return keep_special(size(bits(special)) >= 0x7f800000 ? special : F8{}, result);
}

// A row of a against eight columns of b.
template <typename Sum, int Block, bool Wide>
VA_INLINE F8 row(const Terms &a, const Terms &b, const uint32_t *index, size_t count, F8 sum) {
  for (size_t k = 0; k < count; k += Block) {
    Terms x = from(a, k), y = index ? b : from(b, kColumns * k);
    const uint32_t *at = index ? index + k : nullptr;
    sum = Wide ? wide_block<Sum, Block>(x, y, at, sum) : narrow_block<Sum, Block>(x, y, at, sum);
  }
  return sum;
}

}  // namespace mma
}  // namespace va

// Included by mma_fast.cpp and mma_plain.cpp: the kinds that need no alignment.  f64 and the Volta
// shape are IEEE operations in a given order, integers and bits exact sums.
#pragma once

#include "math_half_format.h"
#include "math_rounding.h"
#include "mma_block.h"

namespace va {
namespace mma {
namespace {

constexpr uint64_t kNan64 = 0x7ff8000000000000ull;

VA_INLINE uint32_t half_bits(float sum) {
  return is_nan(sum) ? kNan16 : narrow<F16, Mode::kNearest>(sum);
}

VA_INLINE double canonical64(double x) { return x == x ? x : bits_as<double>(kNan64); }

// b and sums are in rows of eight columns.
template <unsigned Mode>
void double_rows(const double *a, size_t stride, const double *b, size_t count, size_t depth,
                 double *sums) {
  Rounding guard(Mode);
  for (size_t i = 0; i < count; i++) {
    double sum[kColumns];
    __builtin_memcpy(sum, sums + kColumns * i, sizeof sum);
    for (size_t k = 0; k < depth; k++)
      for (int n = 0; n < kColumns; n++)
        sum[n] = __builtin_fma(a[i * stride + k], b[kColumns * k + n], sum[n]);
    for (int n = 0; n < kColumns; n++) sums[kColumns * i + n] = canonical64(sum[n]);
  }
}

// Four products a step, each step as compilers write it; with an f16 sum, rounded to it.
template <bool Half>
VA_INLINE float volta_step(const float *a, const float *b, float c) {
  const auto y = [&](int k) { return b[kColumns * k]; };
  if constexpr (Half) {
    float p = __builtin_fmaf(a[1], y(1), a[0] * y(0));
    float q = __builtin_fmaf(a[3], y(3), a[2] * y(2));
    return widen<F16>(static_cast<uint16_t>(half_bits((c + p) + q)));
  } else {
    float t = __builtin_fmaf(a[0], y(0), 0.0f);
    for (int k = 1; k < 4; k++) t = __builtin_fmaf(a[k], y(k), t);
    return c + t;
  }
}

template <bool Half>
void volta_rows(const float *a, size_t stride, const float *b, size_t count, size_t depth,
                float *sums) {
  for (size_t i = 0; i < count; i++)
    for (size_t k = 0; k < depth; k += 4)
      for (int n = 0; n < kColumns; n++) {
        float *sum = sums + kColumns * i + n;
        *sum = volta_step<Half>(a + i * stride + k, b + kColumns * k + n, *sum);
      }
}

VA_INLINE I8 saturated_sum(I8 a, I8 b) {
  I8 sum = add(a, b);
  I8 limit = a < 0 ? splat(INT32_MIN) : splat(INT32_MAX);
  return ((a ^ sum) & (b ^ sum)) < 0 ? limit : sum;
}

// The products of a step sum to less than 2**22, exactly in f32, in any order.
template <bool Sat>
void integer_rows(const float *a, size_t stride, const float *b, const uint32_t *index, size_t count,
                  size_t depth, size_t step, int32_t *sums) {
  for (size_t i = 0; i < count; i++) {
    I8 sum = load(sums + kColumns * i);
    const uint32_t *at = index ? index + i * stride : nullptr;
    for (size_t start = 0; start < depth; start += step) {
      F8 even{}, odd{};
      size_t stop = start + step < depth ? start + step : depth;
      for (size_t k = start; k < stop; k += 2) {
        size_t k0 = at ? at[k] : k, k1 = at ? at[k + 1] : k + 1;
        even += a[i * stride + k] * load(b + kColumns * k0);
        odd += a[i * stride + k + 1] * load(b + kColumns * k1);
      }
      I8 part = cut(even + odd);
      sum = Sat ? saturated_sum(sum, part) : add(sum, part);
    }
    __builtin_memcpy(sums + kColumns * i, &sum, sizeof sum);
  }
}

template <bool And>
void bit_rows(const uint64_t *a, const uint64_t *b, size_t count, size_t words, int32_t *sums) {
  for (size_t i = 0; i < count; i++)
    for (size_t n = 0; n < kColumns; n++) {
      uint32_t ones = 0;
      for (size_t w = 0; w < words; w++) {
        uint64_t x = a[i * words + w], y = b[n * words + w];
        ones += static_cast<uint32_t>(__builtin_popcountll(And ? x & y : x ^ y));
      }
      int32_t *sum = sums + kColumns * i + n;
      *sum = static_cast<int32_t>(static_cast<uint32_t>(*sum) + ones);
    }
}

}  // namespace
}  // namespace mma
}  // namespace va

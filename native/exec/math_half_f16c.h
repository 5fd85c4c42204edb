// f16 arithmetic eight lanes at a time, where the processor converts f16 itself.  The same results
// as math_half.cpp's own, which says why each is rounded once.
#pragma once

#include "math_half_format.h"

#if defined(__x86_64__) && !defined(VA100_PORTABLE_LANES)
#define VA100_HAS_F16C 1
#include <immintrin.h>

#define VA_WIDE static inline VA_FAST __attribute__((always_inline))

namespace va {
namespace wide {

VA_WIDE __m256 add(__m256 x, __m256 y, __m256) { return _mm256_add_ps(x, y); }
VA_WIDE __m256 sub(__m256 x, __m256 y, __m256) { return _mm256_sub_ps(x, y); }
VA_WIDE __m256 mul(__m256 x, __m256 y, __m256) { return _mm256_mul_ps(x, y); }

// The product is exact, the sum rounded to odd: its last bit is set toward the error.
VA_WIDE __m256 fma3(__m256 x, __m256 y, __m256 z) {
  __m256 product = _mm256_mul_ps(x, y);
  __m256 sum = _mm256_add_ps(product, z);
  __m256 shadow = _mm256_sub_ps(sum, product);
  __m256 error = _mm256_add_ps(_mm256_sub_ps(product, _mm256_sub_ps(sum, shadow)),
                               _mm256_sub_ps(z, shadow));
  // The error of an infinite sum is NaN, and takes no part.
  __m256i inexact = _mm256_castps_si256(_mm256_cmp_ps(error, _mm256_setzero_ps(), _CMP_NEQ_OQ));
  __m256i bits = _mm256_castps_si256(sum), one = _mm256_set1_epi32(1);
  __m256i apart = _mm256_srai_epi32(_mm256_xor_si256(bits, _mm256_castps_si256(error)), 31);
  __m256i even = _mm256_sub_epi32(_mm256_and_si256(bits, one), one);
  __m256i step = _mm256_and_si256(_mm256_or_si256(apart, one), _mm256_and_si256(inexact, even));
  return _mm256_castsi256_ps(_mm256_add_epi32(bits, step));
}

VA_WIDE __m128i halves(uint32_t bits) { return _mm_set1_epi16(static_cast<int16_t>(bits)); }

VA_WIDE __m128i magnitude(__m128i h) { return _mm_and_si128(h, halves(0x7fff)); }

VA_WIDE __m128i flush(__m128i h) {
  __m128i small = _mm_cmplt_epi16(magnitude(h), halves(F16::kSmallest));
  return _mm_andnot_si128(_mm_and_si128(small, halves(0x7fff)), h);
}

// Eight halves of an operand.
template <bool Ftz>
VA_WIDE __m256 load(const void *from, int at) {
  __m128i h = _mm_loadu_si128(
      reinterpret_cast<const __m128i *>(static_cast<const uint16_t *>(from) + at));
  return _mm256_cvtph_ps(Ftz ? flush(h) : h);
}

// A NaN becomes canonical; `.sat` turns it, as all that is negative, into +0.
template <bool Ftz, bool Sat, bool Relu>
VA_WIDE __m128i narrow(__m256 value) {
  __m128i h = _mm256_cvtps_ph(value, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  __m128i nan = _mm_cmpgt_epi16(magnitude(h), halves(F16::kInfinity));
  if (Ftz) h = flush(h);
  h = _mm_blendv_epi8(h, halves(Sat ? 0 : kNan16), nan);
  if (Sat) h = _mm_min_epi16(h, halves(F16::kOne));
  if (Sat || Relu) h = _mm_max_epi16(h, _mm_setzero_si128());
  return h;
}

template <auto F, bool Ftz, bool Sat, bool Relu, int Count>
VA_FAST void lanes(const void *a, const void *b, const void *c, void *out) {
  for (int i = 0; i < Count; i += 8) {
    __m256 value = F(load<Ftz>(a, i), load<Ftz>(b, i), load<Ftz>(c, i));
    _mm_storeu_si128(reinterpret_cast<__m128i *>(static_cast<uint16_t *>(out) + i),
                     narrow<Ftz, Sat, Relu>(value));
  }
}

}  // namespace wide
}  // namespace va
#endif

// What the two builds of the matrix kernels offer: one for AVX2 with FMA, one for any processor.
#pragma once

#include <cstddef>

#include "mma.h"
#include "worker.h"

namespace va {
namespace mma {

struct Terms;

// Rows of a: `count` of them, `stride` numbers apart; b and sums in rows of eight columns.  With
// `index`, element k of row i meets row index[i * stride + k] of b.
struct Kernels {
  // Takes raw bits apart; returns whether they need the wide way, which `prepare` then readies.
  bool (*unpack)(uint32_t kind, const void *raw, size_t count, const Terms &to);
  void (*prepare)(uint32_t kind, const void *raw, size_t count, const Terms &to);
  void (*rows)(uint32_t kind, bool wide, const Terms &a, size_t stride, const Terms &b,
               const uint32_t *index, size_t count, size_t depth, float *sums);
  void (*double_rows)(uint32_t flags, const double *a, size_t stride, const double *b, size_t count,
                      size_t depth, double *sums);
  void (*integer_rows)(bool sat, const float *a, size_t stride, const float *b,
                       const uint32_t *index, size_t count, size_t depth, size_t step,
                       int32_t *sums);
  void (*bit_rows)(bool conjunction, const uint64_t *a, const uint64_t *b, size_t count,
                   size_t words, int32_t *sums);
  void (*volta_rows)(bool half, const float *a, size_t stride, const float *b, size_t count,
                     size_t depth, float *sums);
  void (*widen_halves)(const uint16_t *from, size_t count, float *to);
  void (*narrow_halves)(const float *from, size_t count, uint16_t *to);
};

struct Build {
  Kernels kernels;
  const HelperEntry *helpers;
};

extern const Build kFastBuild, kPlainBuild;

// The one for this processor.
const Build &build();

}  // namespace mma
}  // namespace va

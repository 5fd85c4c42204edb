// Arithmetic of reductions, element by element, each step rounded to the type as NCCL rounds it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "nccl_types.h"

namespace va::nccl {

// What is done to one rank's input before it meets others, and to the result.
struct Scaling {
  bool multiply = false;  // inputs times `factor`, an element of the type
  uint64_t factor = 0;    // its bits
  uint64_t divide_by = 0; // integers, truncated; 0: not
};

// to[i] = inputs[0][i] op inputs[1][i] op ..., in this order.  `to` may be one of the inputs.
void reduce(int type, ReduceOp op, const void *const *inputs, size_t input_count, void *to,
            size_t count, uint64_t divide_by);
// to[i] = from[i] * factor
void scale(int type, const void *from, void *to, size_t count, uint64_t factor);
// The bits of 1 / ranks.
uint64_t reciprocal(int type, int ranks);
constexpr bool is_float(int type) {
  return type == kFloat16 || type == kFloat32 || type == kFloat64 || type == kBfloat16;
}

} // namespace va::nccl

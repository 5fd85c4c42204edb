// Numbers of a tensor core's operand taken apart, as the kernels read them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace va {
namespace mma {

// Rows of a, or rows of eight columns of b.  `significand` and `special` are only filled for the
// wide way (mma_block.h): a signed significand in [0, 2) that is not normalised, and zero, one, an
// infinity or a NaN.
struct Terms {
  float *value;
  int32_t *exponent;
  float *significand;
  float *special;
};

}  // namespace mma
}  // namespace va

// The matrix kernels for any processor, and the choice between the two builds.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "math_half_format.h"
#include "math_rounding.h"
#include "mma_kernels.h"
#include "mma_table.h"

namespace va {
namespace mma {

extern const Build kPlainBuild;
const Build kPlainBuild = {kKernels, kHelpers};

const Build &build() {
  static const Build &chosen = has_fast_lanes() ? kFastBuild : kPlainBuild;
  return chosen;
}

}  // namespace mma
}  // namespace va

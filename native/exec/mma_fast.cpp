// The matrix kernels for AVX2 with FMA.  All but the standard library's part comes after the
// pragma, so nothing another file might share is compiled for these processors.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "math_half_format.h"
#include "math_rounding.h"
#include "mma_kernels.h"

#if defined(__x86_64__)
#pragma GCC target("avx2,fma,f16c,popcnt")
#endif

#include "mma_table.h"

namespace va {
namespace mma {

extern const Build kFastBuild;
const Build kFastBuild = {kKernels, kHelpers};

}  // namespace mma
}  // namespace va

// The table behind cuGetProcAddress: the shape of the generated rows.
#pragma once

#include <stddef.h>

namespace va {

struct Proc {
  const char *base_name;
  int version; // first CUDA version with this signature
  const void *function;
  const void *per_thread; // twin for per-thread default streams, or the function itself
};

// Ordered by base name, then newest version first.
extern const Proc kProcs[];
extern const size_t kProcCount;

} // namespace va

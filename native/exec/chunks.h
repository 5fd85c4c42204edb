// How a running warp gets code that is not compiled yet.
#pragma once

#include <cstdint>

#include "va100/exec.h"

namespace va {

struct Launch;

// The address of a chunk, compiled first; a fault of the warp when it cannot be.  The thread that
// launched compiles: it alone is sure to get the interpreter's lock, which it may hold.
uint64_t demand_chunk(va_warp *w, uint32_t function, uint32_t number);

}  // namespace va

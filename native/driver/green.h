// Which streams belong to a green context.
#pragma once

#include "objects.h"

namespace va {

// A stream made while a green context is current is one of that context's.
void join_green(Stream &stream, CUcontext current);

} // namespace va

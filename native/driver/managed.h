// Advice that was given about managed memory.
#pragma once

#include "blocks.h"

namespace va {

// The range was freed.
void forget_advice(uint64_t address, uint64_t bytes);

} // namespace va

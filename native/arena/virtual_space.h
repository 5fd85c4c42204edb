// What the arena asks of the reserved addresses behind its regions.  Nothing of clients.
#pragma once

#include "va100/virtual.h"

namespace va {

// Whether the arena's ranges are there, and whether their pages must be made writable piece by piece.
struct ArenaMode {
  bool open, lazy;
};
ArenaMode arena_mode();

// The run of open granules around an address, as va_arena_find and va_arena_range tell it.
bool virtual_find(uint64_t address, va_allocation *out);
// How far the nearest run is; UINT64_MAX when there is none.
uint64_t virtual_nearest(uint64_t address, va_allocation *out);
void virtual_reset();

} // namespace va

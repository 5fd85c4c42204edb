// What grids do to the card while they run: known once launches like them were priced.
#pragma once

#include <cstdint>

#include "va100/activity.h"

namespace va {

// False while it is not known.
bool known_activity(uint64_t variant_id, uint64_t ctas, va_activity *out);
// A grid whose activity is not known ran for so long on a node that is watched.
void ran_unknown(uint64_t ns);
// Have launches priced once such grids took long enough for somebody to see it.  No lock is held.
void settle_activity();

} // namespace va

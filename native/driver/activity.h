// What grids do to the card while they run: known once launches like them were priced.
#pragma once

#include <cstdint>
#include <vector>

#include "va100/activity.h"

namespace va {

// Memory of another GPU that a grid reaches through its arguments.
struct Reach {
  int device;          // as this process numbers it
  int gpu;             // its place in the node
  double share;        // of all that the grid reaches
  double bytes_per_s;  // between here and there
};
// The next launch that this thread logs reaches so far.
void log_reach(std::vector<Reach> reach);
std::vector<Reach> take_reach();

// False while it is not known.
bool known_activity(uint64_t variant_id, uint64_t ctas, va_activity *out);
// A grid whose activity is not known ran for so long on a node that is watched.
void ran_unknown(uint64_t ns);
// Have launches priced once such grids took long enough for somebody to see it.  No lock is held.
void settle_activity();

} // namespace va

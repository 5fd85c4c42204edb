// Transfers whose time somebody else worked out, in a stream's virtual time.
#pragma once

#include "timeline.h"

namespace va {

void log_transfer_lasting(const std::shared_ptr<Track> &track, int device, uint64_t bytes, Way way,
                          double seconds);

} // namespace va

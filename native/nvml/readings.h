// A GPU's readings at the moment of the call.
#pragma once

#include "session.h"
#include "telemetry.h"

namespace va::nvml {

// Settles what processes that are gone left, and the temperature's starting point.
node::Reading reading_of(const Device &device);
uint64_t unix_us_now();

} // namespace va::nvml

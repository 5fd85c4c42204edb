// What other queries ask of NVLink.
#pragma once

#include "session.h"

namespace va::nvml {

bool is_link_up(const Device &device, unsigned link);

struct LinkBytes {
  uint64_t tx, rx;
};
// Of one link, or with -1 of all, since the node came up.
LinkBytes bytes_of(const Device &device, int link);

} // namespace va::nvml

// What is written down when a kernel faults, if the client asked for it.
#pragma once

#include <string>

#include "objects.h"

namespace va {

// Write the dump of a fault as the context's attributes have it; ends the process if they say so.
void dump_fault(const Context &context, const std::string &report);

} // namespace va

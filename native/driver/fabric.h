// What joins the node's GPUs, and how long a copy between two of them takes.
#pragma once

#include <cstdint>

namespace va {

// From one device to another, as this process numbers them.
double peer_copy_s(int from, int to, uint64_t bytes);

} // namespace va

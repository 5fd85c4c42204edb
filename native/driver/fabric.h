// What joins the node's GPUs, and how long a copy between two of them takes.
#pragma once

#include <cstdint>

#include "joined.h"

namespace va {

using NodeLinks = node::Joined;

// A bit for each NVLink of a GPU over which it talks to a peer, by place in the node.
uint32_t links_between(int gpu, int peer);
// Bytes a second between two GPUs, by place in the node, and how long a copy takes.
double peer_bytes_per_s(int from, int to);
double peer_copy_s(int from, int to, uint64_t bytes);

// Memory of another process, mapped here: where in the node it lies.  Forgotten when unmapped.
void note_foreign(uint64_t base, uint64_t bytes, int gpu);
// Place in the node of the GPU that holds an address, which here belongs to a device.
int gpu_holding(uint64_t address, int device);

} // namespace va

// Which NVLinks of a node's GPUs work, and which of them lead where.
#pragma once

#include <array>
#include <cstdint>

#include "state.h"
#include "topology.h"

namespace va::node {

struct Joined {
  uint32_t board = kUnlinked;
  int gpus = 0;
  uint32_t pcie_generation = 4;              // of the machine
  uint32_t switches_down = 0;                // a bit a switch
  std::array<uint32_t, kMostDevices> down{}; // by GPU, a bit a link that failed
  std::array<bool, kMostDevices> alone{};    // GPUs that talk to no peer: lost ones, those in MIG mode
};

Joined joined_of(const NodeState &state);
// A bit for each link of a GPU that is up.
uint32_t links_up(const Joined &joined, int gpu);
// A bit for each link of a GPU over which it talks to a peer.  Where switches are between, the fabric
// manager takes a GPU with a broken link out of the fabric, which is its default.
uint32_t links_to(const Joined &joined, int gpu, int peer);
// The GPU at a link's other end; -1: a switch, or nothing.
int peer_at(const Joined &joined, int gpu, int link);

} // namespace va::node

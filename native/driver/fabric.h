// What joins the node's GPUs, and how long a copy between two of them takes.
#pragma once

#include <array>
#include <cstdint>

namespace va {

// How the node's GPUs are joined, as native/node numbers it.
enum Joined : uint32_t { kUnlinked, kSwitched, kMeshed, kBridged };

struct NodeLinks {
  uint32_t board = kUnlinked;
  int gpus = 0;
  std::array<uint32_t, 16> down{}; // by GPU, a bit a link that failed
  std::array<bool, 16> alone{};    // GPUs that talk to no peer: lost ones, and those in MIG mode
};

// From one GPU to another, by place in the node.
double peer_copy_s(int from, int to, uint64_t bytes);

// Memory of another process, mapped here: where in the node it lies.  Forgotten when unmapped.
void note_foreign(uint64_t base, uint64_t bytes, int gpu);
// Place in the node of the GPU that holds an address, which here belongs to a device.
int gpu_holding(uint64_t address, int device);

} // namespace va

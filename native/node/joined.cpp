#include "joined.h"

#include <algorithm>

#include "fabric_facts.h"
#include "models.h"

namespace va::node {
namespace {

constexpr int kLinks = facts::kLinksPerGpu;
constexpr uint32_t kAllLinks = (1u << kLinks) - 1;
constexpr int kMeshPeers = 3; // in a mesh one third of a GPU's links go to each

// Links into switches that failed: the same of every GPU.
uint32_t dead_switches(const Joined &j) {
  uint32_t links = 0;
  for (int link = 0; j.board == kSwitched && link < kLinks; ++link)
    links |= (j.switches_down >> (link / facts::kLinksPerSwitch) & 1) << link;
  return links;
}

// Links of a GPU that end at a peer, whole or broken, in the order of the peers.
uint32_t wired(const Joined &j, int gpu, int peer) {
  constexpr int kEach = kLinks / kMeshPeers;
  const int place = peer < gpu ? peer : peer - 1;
  switch (j.board) {
  case kSwitched:
    return kAllLinks;
  case kMeshed:
    return place < kMeshPeers ? ((1u << kEach) - 1) << (kEach * place) : 0;
  case kBridged:
    return (gpu ^ 1) == peer ? kAllLinks : 0;
  default:
    return 0;
  }
}

bool is_there(const Joined &j, int gpu) {
  return gpu >= 0 && gpu < j.gpus && !j.alone[static_cast<size_t>(gpu)];
}

uint32_t down(const Joined &j, int gpu) { return j.down[static_cast<size_t>(gpu)]; }

} // namespace

Joined joined_of(const NodeState &state) {
  Joined j;
  j.board = state.board;
  if (const Kind *const kind = kind_named(state.kind))
    j.pcie_generation = kind->pcie_generation;
  j.gpus = static_cast<int>(std::min<uint32_t>(state.device_count, kMostDevices));
  j.switches_down = state.switches_down;
  for (size_t i = 0; i < static_cast<size_t>(j.gpus); ++i) {
    j.down[i] = state.devices[i].faults.links_down;
    j.alone[i] = state.devices[i].mig || state.devices[i].faults.lost;
  }
  return j;
}

int peer_at(const Joined &j, int gpu, int link) {
  for (int peer = 0; j.board != kSwitched && peer < j.gpus; ++peer)
    if (peer != gpu && (wired(j, gpu, peer) >> link & 1))
      return peer;
  return -1;
}

uint32_t links_up(const Joined &j, int gpu) {
  if (!is_there(j, gpu))
    return 0;
  if (j.board == kSwitched)
    return kAllLinks & ~down(j, gpu) & ~dead_switches(j);
  uint32_t up = 0;
  for (int peer = 0; peer < j.gpus; ++peer)
    up |= links_to(j, gpu, peer);
  return up;
}

uint32_t links_to(const Joined &j, int gpu, int peer) {
  if (gpu == peer || !is_there(j, gpu) || !is_there(j, peer))
    return 0;
  if (j.board == kSwitched)
    return down(j, gpu) || down(j, peer) ? 0 : kAllLinks & ~dead_switches(j);
  // A link fails with both its ends; the ends have the same place among those of the pair.
  const uint32_t here = wired(j, gpu, peer), there = wired(j, peer, gpu);
  if (!here || !there)
    return 0;
  const uint32_t theirs = (down(j, peer) & there) >> __builtin_ctz(there) << __builtin_ctz(here);
  return here & ~down(j, gpu) & ~theirs;
}

} // namespace va::node

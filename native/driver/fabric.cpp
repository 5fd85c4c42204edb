#include "fabric.h"

#include <atomic>
#include <cstring>
#include <map>
#include <mutex>

#include "blocks.h"
#include "board.h"
#include "fabric_facts.h"
#include "settings.h"
#include "va100/outside.h"

namespace va {
namespace {

constexpr int kSeat = 85; // CU_DEVICE_ATTRIBUTE_MULTI_GPU_BOARD_GROUP_ID, which is the card's place

constexpr int kMeshShare = 3; // of a GPU's links in a mesh, one third go to each of three peers

// Cards in slots have bridges over neighbours; modules sit on a board with switches.
NodeLinks guessed_links() {
  NodeLinks found;
  found.gpus = settings().device_count;
  if (found.gpus > 1)
    found.board = strcasestr(settings().model->key, "pcie") ? kBridged : kSwitched;
  return found;
}

NodeLinks node_links() {
  static std::mutex *const mutex = new std::mutex;
  static NodeLinks known = guessed_links();
  static uint64_t generation = UINT64_MAX;
  const std::lock_guard<std::mutex> lock(*mutex);
  read_links(&known, &generation);
  return known;
}

int count_of(uint32_t bits) { return __builtin_popcount(bits); }

// Which of a GPU's links go to a peer, in a mesh: in the order of the peers.
uint32_t mesh_links(int gpu, int peer) {
  constexpr int kEach = facts::kLinksPerGpu / kMeshShare;
  const int place = peer < gpu ? peer : peer - 1;
  return ((1u << kEach) - 1) << (kEach * place);
}

bool is_linked(const NodeLinks &n, int gpu) {
  return gpu >= 0 && gpu < n.gpus && !n.alone[static_cast<size_t>(gpu)];
}

// A link fails with both its ends.  Where switches are between, the fabric manager takes a GPU with
// a broken link out of the fabric, which is its default.
int links_between(const NodeLinks &n, int gpu, int peer) {
  if (gpu == peer || !is_linked(n, gpu) || !is_linked(n, peer))
    return 0;
  const uint32_t mine = n.down[static_cast<size_t>(gpu)];
  const uint32_t theirs = n.down[static_cast<size_t>(peer)];
  switch (n.board) {
  case kSwitched:
    return mine || theirs ? 0 : facts::kLinksPerGpu;
  case kMeshed: {
    const uint32_t here = mesh_links(gpu, peer), there = mesh_links(peer, gpu);
    const uint32_t broken =
        (mine & here) >> __builtin_ctz(here) | (theirs & there) >> __builtin_ctz(there);
    return facts::kLinksPerGpu / kMeshShare - count_of(broken);
  }
  case kBridged:
    return (gpu ^ 1) == peer ? facts::kLinksPerGpu - count_of(mine | theirs) : 0;
  default:
    return 0;
  }
}

int links_of(const NodeLinks &n, int gpu) {
  if (!is_linked(n, gpu))
    return 0;
  if (n.board == kSwitched)
    return n.down[static_cast<size_t>(gpu)] ? 0 : facts::kLinksPerGpu;
  int sum = 0;
  for (int peer = 0; peer < n.gpus; ++peer)
    sum += links_between(n, gpu, peer);
  return sum;
}

struct Foreign {
  std::mutex mutex;
  std::map<uint64_t, std::pair<uint64_t, int>> by_base; // bytes and GPU
};

Foreign &foreign() {
  static Foreign *const instance = new Foreign;
  return *instance;
}

std::atomic<bool> any_foreign{false};

} // namespace

void note_foreign(uint64_t base, uint64_t bytes, int gpu) {
  const std::lock_guard<std::mutex> lock(foreign().mutex);
  foreign().by_base[base] = {bytes, gpu};
  any_foreign = true;
}

int gpu_holding(uint64_t address, int device) {
  Block block;
  if (!any_foreign.load(std::memory_order_relaxed) || !find_block(address, &block) ||
      block.origin != Origin::kImported)
    return va_fabric_gpu(device);
  const std::lock_guard<std::mutex> lock(foreign().mutex);
  const auto found = foreign().by_base.find(block.base);
  return found == foreign().by_base.end() ? va_fabric_gpu(device) : found->second.second;
}

double peer_copy_s(int from, int to, uint64_t bytes) {
  const int links = va_fabric_links(from, to);
  const double rate = links ? links * facts::kPeerLinkBytesPerSecond
                            : facts::kPeerPciGen4BytesPerSecond *
                                  (1 << va_fabric_pcie_generation()) / 16.0;
  return facts::kPeerFloorSeconds + static_cast<double>(bytes) / rate;
}

} // namespace va

using namespace va;

extern "C" int va_fabric_gpus(void) { return node_links().gpus; }

extern "C" int va_fabric_bridged(void) { return node_links().board == kBridged; }

extern "C" int va_fabric_pcie_generation(void) { return 4; }

extern "C" int va_fabric_gpu_links(int gpu) { return links_of(node_links(), gpu); }

extern "C" int va_fabric_links(int gpu, int peer) {
  return links_between(node_links(), gpu, peer);
}

extern "C" int va_fabric_gpu(int device) {
  const Driver &d = driver();
  if (!d.initialised.load() || device < 0 || static_cast<size_t>(device) >= d.devices.size())
    return -1;
  return d.devices[static_cast<size_t>(device)]->attribute(kSeat);
}

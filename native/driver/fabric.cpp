#include "fabric.h"

#include <algorithm>
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

// Cards in slots have bridges over neighbours; modules sit on a board with switches.
NodeLinks guessed_links() {
  NodeLinks found;
  found.gpus = settings().device_count;
  if (found.gpus > 1)
    found.board = strcasestr(settings().model->key, "pcie") ? node::kBridged : node::kSwitched;
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

int links_of(const NodeLinks &n, int gpu) {
  const uint32_t up = node::links_up(n, gpu);
  // A GPU that the fabric manager took out has links that are up and lead nowhere.
  return n.board == node::kSwitched && n.down[static_cast<size_t>(std::max(gpu, 0))] ? 0 : count_of(up);
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

uint32_t links_between(int gpu, int peer) { return node::links_to(node_links(), gpu, peer); }

double peer_bytes_per_s(int from, int to) {
  const int links = va_fabric_links(from, to);
  return links ? links * facts::kPeerLinkBytesPerSecond
               : facts::kPeerPciGen4BytesPerSecond * (1 << va_fabric_pcie_generation()) / 16.0;
}

double peer_copy_s(int from, int to, uint64_t bytes) {
  return facts::kPeerFloorSeconds + static_cast<double>(bytes) / peer_bytes_per_s(from, to);
}

} // namespace va

using namespace va;

extern "C" int va_fabric_gpus(void) { return node_links().gpus; }

extern "C" int va_fabric_bridged(void) {
  return node_links().board == node::kBridged;
}

extern "C" int va_fabric_pcie_generation(void) {
  return static_cast<int>(node_links().pcie_generation);
}

extern "C" int va_fabric_gpu_links(int gpu) { return links_of(node_links(), gpu); }

extern "C" int va_fabric_links(int gpu, int peer) {
  return count_of(node::links_to(node_links(), gpu, peer));
}

extern "C" int va_fabric_gpu(int device) {
  const Driver &d = driver();
  if (!d.initialised.load() || device < 0 || static_cast<size_t>(device) >= d.devices.size())
    return -1;
  return d.devices[static_cast<size_t>(device)]->attribute(kSeat);
}

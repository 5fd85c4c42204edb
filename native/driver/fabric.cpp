#include "fabric.h"

#include <atomic>
#include <cstring>
#include <map>
#include <mutex>

#include "blocks.h"
#include "fabric_facts.h"
#include "settings.h"
#include "va100/outside.h"

namespace va {
namespace {

constexpr int kSeat = 85; // CU_DEVICE_ATTRIBUTE_MULTI_GPU_BOARD_GROUP_ID, which is the card's place

// Cards in slots have bridges over neighbours; modules sit on a board with switches.
bool is_card() {
  static const bool card = strcasestr(settings().model->key, "pcie") != nullptr;
  return card;
}

bool is_bridged(int gpu) { return (gpu ^ 1) < settings().device_count; }

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

extern "C" int va_fabric_gpus(void) { return settings().device_count; }

extern "C" int va_fabric_bridged(void) { return is_card(); }

extern "C" int va_fabric_pcie_generation(void) { return 4; }

extern "C" int va_fabric_gpu_links(int gpu) {
  if (gpu < 0 || gpu >= va_fabric_gpus() || va_fabric_gpus() == 1)
    return 0;
  return !is_card() || is_bridged(gpu) ? facts::kLinksPerGpu : 0;
}

extern "C" int va_fabric_links(int gpu, int peer) {
  if (gpu == peer || gpu < 0 || peer < 0 || gpu >= va_fabric_gpus() || peer >= va_fabric_gpus())
    return 0;
  return !is_card() || (gpu ^ 1) == peer ? facts::kLinksPerGpu : 0;
}

extern "C" int va_fabric_gpu(int device) {
  const Driver &d = driver();
  if (!d.initialised.load() || device < 0 || static_cast<size_t>(device) >= d.devices.size())
    return -1;
  return d.devices[static_cast<size_t>(device)]->attribute(kSeat);
}

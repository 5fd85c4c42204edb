#include "fabric.h"

#include <cstring>

#include "fabric_facts.h"
#include "objects.h"
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

} // namespace

double peer_copy_s(int from, int to, uint64_t bytes) {
  const int links = va_fabric_links(va_fabric_gpu(from), va_fabric_gpu(to));
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

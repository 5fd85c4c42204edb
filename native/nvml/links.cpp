// NVLink, peers, and how near two GPUs are.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <vector>

#include "joined.h"
#include "links.h"
#include "nvml_api.h"
#include "session.h"
#include "telemetry.h"
#include "topology.h"

namespace va::nvml {
namespace {

constexpr unsigned kVersion3 = 5; // NVML_NVLINK_VERSION_3_0
enum : unsigned { kRemoteGpu = 0, kRemoteSwitch = 2 };
enum : unsigned { kSame = 0, kMultiple = 20, kSystem = 50 };

unsigned device_count() {
  unsigned count = 0;
  store().read([&](const node::NodeState &state) { count = state.device_count; });
  return count;
}

Device linked(nvmlDevice_t handle, unsigned link) {
  const Device device = gpu_of(handle);
  if (link >= device.model().links)
    fail(NVML_ERROR_INVALID_ARGUMENT);
  return device;
}

node::Joined joined() {
  node::Joined found;
  store().read([&](const node::NodeState &state) { found = node::joined_of(state); });
  return found;
}

void fill_pci(const DeviceState &d, nvmlPciInfo_t *pci) {
  nvmlDevice_t none = gpu_handle(static_cast<int>(d.minor));
  api::nvmlDeviceGetPciInfo_v3(none, pci);
}

// The PCIe function of a switch: behind the GPUs on an HGX board.
void fill_switch(unsigned number, nvmlPciInfo_t *pci) {
  constexpr unsigned kFirstBus = 0xC4;
  std::memset(pci, 0, sizeof *pci);
  pci->bus = kFirstBus + number;
  pci->pciDeviceId = 0x1AF110DE;
  pci->pciSubSystemId = 0x000010DE;
  snprintf(pci->busId, sizeof pci->busId, "00000000:%02X:00.0", pci->bus);
  snprintf(pci->busIdLegacy, sizeof pci->busIdLegacy, "0000:%02X:00.0", pci->bus);
}

} // namespace

bool is_link_up(const Device &device, unsigned link) {
  return node::links_up(joined(), device.index) >> link & 1;
}

LinkBytes bytes_of(const Device &device, int link) {
  store().reap();
  const DeviceState d = store().device(device.index);
  LinkBytes sum{};
  const node::File &file = store().file();
  for (int l = 0; l < node::kMostLinks; ++l) {
    if (link >= 0 && l != link)
      continue;
    sum.tx += d.link_tx_bytes[l];
    sum.rx += d.link_rx_bytes[l];
    for (uint32_t i = 0; i < file.most_slots.load(std::memory_order_acquire); ++i) {
      if (!file.slots[i].pid.load())
        continue;
      sum.tx += file.slots[i].devices[device.index].link_tx_bytes[l].load();
      sum.rx += file.slots[i].devices[device.index].link_rx_bytes[l].load();
    }
  }
  return sum;
}

namespace {

unsigned links_between(const Device &a, const Device &b) {
  return static_cast<unsigned>(__builtin_popcount(node::links_to(joined(), a.index, b.index)));
}

} // namespace

namespace api {

nvmlReturn_t nvmlDeviceGetNvLinkState(nvmlDevice_t handle, unsigned int link,
                                      nvmlEnableState_t *isActive) {
  *isActive = is_link_up(linked(handle, link), link);
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetNvLinkVersion(nvmlDevice_t handle, unsigned int link,
                                        unsigned int *version) {
  linked(handle, link);
  *version = kVersion3;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetNvLinkCapability(nvmlDevice_t handle, unsigned int link,
                                           nvmlNvLinkCapability_t capability,
                                           unsigned int *capResult) {
  constexpr unsigned kCapabilities = 6, kValid = 5;
  const Device device = linked(handle, link);
  if (capability >= kCapabilities)
    return NVML_ERROR_INVALID_ARGUMENT;
  *capResult = capability == kValid || is_link_up(device, link);
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetNvLinkErrorCounter(nvmlDevice_t handle, unsigned int link,
                                             nvmlNvLinkErrorCounter_t counter,
                                             unsigned long long *counterValue) {
  constexpr unsigned kReplay = 0, kRecovery = 1, kCounters = 5;
  const Device device = linked(handle, link);
  if (counter >= kCounters)
    return NVML_ERROR_INVALID_ARGUMENT;
  const bool down = !(node::links_up(joined(), device.index) >> link & 1) && !device.state.mig;
  *counterValue = down && (counter == kReplay || counter == kRecovery);
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceResetNvLinkErrorCounters(nvmlDevice_t handle, unsigned int link) {
  linked(handle, link);
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetNvLinkRemoteDeviceType(nvmlDevice_t handle, unsigned int link,
                                                 nvmlIntNvLinkDeviceType_t *type) {
  if (!is_link_up(linked(handle, link), link))
    return NVML_ERROR_NOT_SUPPORTED;
  *type = joined().board == node::kSwitched ? kRemoteSwitch : kRemoteGpu;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo_v2(nvmlDevice_t handle, unsigned int link,
                                                 nvmlPciInfo_t *pci) {
  const Device device = linked(handle, link);
  if (!is_link_up(device, link))
    return NVML_ERROR_NOT_SUPPORTED;
  if (joined().board == node::kSwitched) {
    fill_switch(link / 2, pci);
    return NVML_SUCCESS;
  }
  fill_pci(store().device(node::peer_at(joined(), device.index, static_cast<int>(link))), pci);
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo(nvmlDevice_t handle, unsigned int link,
                                              nvmlPciInfo_t *pci) {
  nvmlPciInfo_t whole;
  const nvmlReturn_t code = nvmlDeviceGetNvLinkRemotePciInfo_v2(handle, link, &whole);
  if (code == NVML_SUCCESS) {
    std::memcpy(pci, &whole, offsetof(nvmlPciInfo_t, busId));
    std::memset(reinterpret_cast<char *>(pci) + offsetof(nvmlPciInfo_t, busId), 0, 16);
  }
  return code;
}

nvmlReturn_t nvmlDeviceGetP2PStatus(nvmlDevice_t device1, nvmlDevice_t device2,
                                    nvmlGpuP2PCapsIndex_t p2pIndex, nvmlGpuP2PStatus_t *p2pStatus) {
  enum : unsigned { kRead = 0, kWrite = 1, kNvlink = 2, kAtomics = 3, kPci = 4, kProp = 5 };
  enum : unsigned { kOk = 0, kNotSupported = 5 };
  if (p2pIndex > kProp)
    return NVML_ERROR_INVALID_ARGUMENT;
  const Device a = gpu_of(device1), b = gpu_of(device2);
  const bool apart = a.state.mig || b.state.mig;
  const bool near = a.index == b.index || links_between(a, b) > 0;
  const bool pcie = !apart;
  const bool good = p2pIndex == kNvlink || p2pIndex == kAtomics ? near && !apart
                    : p2pIndex == kPci || p2pIndex == kProp     ? pcie
                                                                : !apart;
  *p2pStatus = good ? kOk : kNotSupported;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetTopologyCommonAncestor(nvmlDevice_t device1, nvmlDevice_t device2,
                                                 nvmlGpuTopologyLevel_t *pathInfo) {
  const DeviceState a = gpu_of(device1).state, b = gpu_of(device2).state;
  // GPUs beside one processor sit behind one group of PCIe switches.
  *pathInfo = a.minor == b.minor ? kSame : a.numa != b.numa ? kSystem : kMultiple;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetTopologyNearestGpus(nvmlDevice_t handle, nvmlGpuTopologyLevel_t level,
                                              unsigned int *count, nvmlDevice_t *deviceArray) {
  const Device device = gpu_of(handle);
  std::vector<nvmlDevice_t> near;
  for (unsigned i = 0; i < device_count(); ++i) {
    if (static_cast<int>(i) == device.index)
      continue;
    unsigned at = 0;
    const nvmlDevice_t other = gpu_handle(static_cast<int>(i));
    nvmlDeviceGetTopologyCommonAncestor(handle, other, &at);
    if (at == level)
      near.push_back(other);
  }
  const unsigned room = deviceArray ? *count : 0;
  *count = static_cast<unsigned>(near.size());
  if (deviceArray)
    std::copy_n(near.begin(), std::min<size_t>(room, near.size()), deviceArray);
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetC2cModeInfoV(nvmlDevice_t handle, nvmlC2cModeInfo_v1_t *c2cModeInfo) {
  gpu_of(handle);
  c2cModeInfo->isC2cEnabled = 0;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetGpuFabricInfo(nvmlDevice_t handle, nvmlGpuFabricInfo_t *info) {
  gpu_of(handle);
  *info = {}; // state 0: not supported; fabrics that GPUs register with came later
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetGpuFabricInfoV(nvmlDevice_t handle, nvmlGpuFabricInfoV_t *info) {
  constexpr size_t kSecondBytes = offsetof(nvmlGpuFabricInfoV_t, healthSummary);
  constexpr unsigned kSecond = static_cast<unsigned>(kSecondBytes) | 2u << 24;
  const bool third = info->version == version_of<nvmlGpuFabricInfoV_t>(3);
  if (!third && info->version != kSecond)
    return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  gpu_of(handle);
  const unsigned version = info->version;
  std::memset(info, 0, third ? sizeof *info : kSecondBytes);
  info->version = version;
  return NVML_SUCCESS;
}

} // namespace api
} // namespace va::nvml

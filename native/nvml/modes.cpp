// Modes: persistence, compute mode, what is off on a data-centre card, PCIe.
#include <algorithm>

#include "joined.h"
#include "nvml_api.h"
#include "readings.h"

namespace va::nvml {
namespace {

enum : unsigned { kDefaultMode = 0, kExclusiveThread = 1, kProhibited = 2, kExclusiveProcess = 3 };

// What a card's link runs at in the machine that it sits in.
unsigned link_generation(const Device &device) {
  unsigned host = 0;
  store().read([&](const node::NodeState &state) { host = node::joined_of(state).pcie_generation; });
  return std::min(host, device.model().pcie_generation);
}

} // namespace

namespace api {

nvmlReturn_t nvmlDeviceGetPersistenceMode(nvmlDevice_t handle, nvmlEnableState_t *mode) {
  *mode = gpu_of(handle).state.persistence;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceSetPersistenceMode(nvmlDevice_t handle, nvmlEnableState_t mode) {
  const Device device = gpu_of(handle);
  if (mode > 1)
    return NVML_ERROR_INVALID_ARGUMENT;
  change(device.index, [&](DeviceState &d) {
    d.persistence = static_cast<uint8_t>(mode);
    return NVML_SUCCESS;
  });
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetComputeMode(nvmlDevice_t handle, nvmlComputeMode_t *mode) {
  *mode = gpu_of(handle).state.compute_mode;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceSetComputeMode(nvmlDevice_t handle, nvmlComputeMode_t mode) {
  const Device device = gpu_of(handle);
  if (mode > kExclusiveProcess)
    return NVML_ERROR_INVALID_ARGUMENT;
  if (mode == kExclusiveThread || (device.state.mig && mode == kExclusiveProcess))
    return NVML_ERROR_NOT_SUPPORTED;
  change(device.index, [&](DeviceState &d) {
    d.compute_mode = static_cast<uint8_t>(mode);
    return NVML_SUCCESS;
  });
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetDisplayMode(nvmlDevice_t handle, nvmlEnableState_t *display) {
  gpu_of(handle);
  *display = 1; // as these cards say, though they have no connector
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetDisplayActive(nvmlDevice_t handle, nvmlEnableState_t *isActive) {
  gpu_of(handle);
  *isActive = 0;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetVirtualizationMode(nvmlDevice_t handle,
                                             nvmlGpuVirtualizationMode_t *pVirtualMode) {
  gpu_of(handle);
  *pVirtualMode = 0; // none: bare metal
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetAPIRestriction(nvmlDevice_t handle, nvmlRestrictedAPI_t apiType,
                                         nvmlEnableState_t *isRestricted) {
  constexpr unsigned kApplicationClocks = 0, kAutoBoost = 1;
  gpu_of(handle);
  if (apiType == kAutoBoost)
    return NVML_ERROR_NOT_SUPPORTED;
  if (apiType != kApplicationClocks)
    return NVML_ERROR_INVALID_ARGUMENT;
  *isRestricted = 0;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetAddressingMode(nvmlDevice_t handle, nvmlDeviceAddressingMode_t *mode) {
  constexpr unsigned kNoneOfThem = 0; // 1 is HMM, 2 ATS
  if (mode->version != version_of<nvmlDeviceAddressingMode_t>(1))
    return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  gpu_of(handle);
  mode->value = kNoneOfThem; // host memory has to be registered or managed
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetCapabilities(nvmlDevice_t handle, nvmlDeviceCapabilities_t *caps) {
  if (caps->version != version_of<nvmlDeviceCapabilities_t>(1))
    return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  gpu_of(handle);
  caps->capMask = 0;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlGpmQueryDeviceSupport(nvmlDevice_t handle, nvmlGpmSupport_t *gpmSupport) {
  if (gpmSupport->version != version_of<nvmlGpmSupport_t>(1) && gpmSupport->version != 1)
    return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  device_of(handle);
  gpmSupport->isSupportedDevice = 0; // from Hopper on
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMaxPcieLinkGeneration(nvmlDevice_t handle, unsigned int *maxLinkGen) {
  *maxLinkGen = link_generation(gpu_of(handle)); // of the card in this machine
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetGpuMaxPcieLinkGeneration(nvmlDevice_t handle,
                                                   unsigned int *maxLinkGenDevice) {
  *maxLinkGenDevice = gpu_of(handle).model().pcie_generation;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetCurrPcieLinkGeneration(nvmlDevice_t handle, unsigned int *currLinkGen) {
  return nvmlDeviceGetMaxPcieLinkGeneration(handle, currLinkGen);
}

nvmlReturn_t nvmlDeviceGetMaxPcieLinkWidth(nvmlDevice_t handle, unsigned int *maxLinkWidth) {
  *maxLinkWidth = gpu_of(handle).model().pcie_lanes;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetCurrPcieLinkWidth(nvmlDevice_t handle, unsigned int *currLinkWidth) {
  return nvmlDeviceGetMaxPcieLinkWidth(handle, currLinkWidth);
}

nvmlReturn_t nvmlDeviceGetPcieSpeed(nvmlDevice_t handle, unsigned int *pcieSpeed) {
  *pcieSpeed = 1000u << link_generation(gpu_of(handle)); // megatransfers a second, 16000 of generation 4
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetPcieLinkMaxSpeed(nvmlDevice_t handle, unsigned int *maxSpeed) {
  constexpr unsigned k16000 = 5;
  gpu_of(handle);
  *maxSpeed = k16000;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetPcieReplayCounter(nvmlDevice_t handle, unsigned int *value) {
  *value = gpu_of(handle).state.faults.pcie_replays;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetPcieThroughput(nvmlDevice_t handle, nvmlPcieUtilCounter_t counter,
                                         unsigned int *value) {
  enum : unsigned { kTx = 0, kRx = 1 };
  const Device device = gpu_of(handle);
  if (counter > kRx)
    return NVML_ERROR_INVALID_ARGUMENT;
  const node::Reading r = reading_of(device);
  *value = static_cast<unsigned>(counter == kTx ? r.pcie_tx_kib_s : r.pcie_rx_kib_s);
  return NVML_SUCCESS;
}

} // namespace api
} // namespace va::nvml

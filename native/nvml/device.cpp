// Devices: how many, which, what they are called, where they sit, what they are made of.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>
#include <strings.h>
#include <vector>

#include "identity.h"
#include "nvml_api.h"
#include "release.h"
#include "session.h"

namespace va::nvml {
namespace {

constexpr unsigned kBrandNvidia = 14, kAmpere = 7, kBusPcie = 2;

unsigned device_count() {
  unsigned count = 0;
  store().read([&](const node::NodeState &state) { count = state.device_count; });
  return count;
}

std::string bus_id(const DeviceState &d) {
  char text[32];
  snprintf(text, sizeof text, "%08X:%02X:%02X.0", d.domain, d.bus, d.slot);
  return text;
}

void fill(const Device &device, nvmlPciInfo_t *pci) {
  const DeviceState &d = device.state;
  std::memset(pci, 0, sizeof *pci);
  snprintf(pci->busIdLegacy, sizeof pci->busIdLegacy, "%04X:%02X:%02X.0", d.domain & 0xFFFF,
           d.bus & 0xFF, d.slot & 0xFF);
  snprintf(pci->busId, sizeof pci->busId, "%s", bus_id(d).c_str());
  pci->domain = d.domain;
  pci->bus = d.bus;
  pci->device = d.slot;
  pci->pciDeviceId = device.model().pci_device;
  pci->pciSubSystemId = device.model().pci_subsystem;
}

// Whether a bus ID that is spelled with a shorter domain, or without one, means a device.
bool means(const std::string &spelled, const DeviceState &d) {
  unsigned domain = 0, bus = 0, slot = 0, function = 0;
  char rest = 0;
  const bool whole =
      sscanf(spelled.c_str(), "%x:%x:%x.%x%c", &domain, &bus, &slot, &function, &rest) == 4 ||
      sscanf(spelled.c_str(), "%x:%x:%x%c", &domain, &bus, &slot, &rest) == 3;
  if (!whole) {
    domain = 0;
    if (sscanf(spelled.c_str(), "%x:%x.%x%c", &bus, &slot, &function, &rest) != 3 &&
        sscanf(spelled.c_str(), "%x:%x%c", &bus, &slot, &rest) != 2)
      return false;
  }
  return domain == d.domain && bus == d.bus && slot == d.slot && !function;
}

nvmlReturn_t by_uuid(const std::string &uuid, nvmlDevice_t *device) {
  for (unsigned i = 0; i < device_count(); ++i) {
    const DeviceState d = store().device(static_cast<int>(i));
    if (!strcasecmp(node::uuid_text("GPU-", d.uuid).c_str(), uuid.c_str())) {
      if (d.faults.lost)
        return NVML_ERROR_GPU_IS_LOST;
      *device = gpu_handle(static_cast<int>(i));
      return NVML_SUCCESS;
    }
    for (const node::GpuInstance &gi : d.instances)
      for (const node::ComputeInstance &ci : gi.compute)
        if (gi.used && ci.used &&
            !strcasecmp(node::uuid_text("MIG-", ci.uuid).c_str(), uuid.c_str())) {
          *device = mig_handle(static_cast<int>(i), gi, ci);
          return NVML_SUCCESS;
        }
  }
  return NVML_ERROR_NOT_FOUND;
}

void fill_affinity(int numa, unsigned words, unsigned long *set) {
  std::memset(set, 0, words * sizeof *set);
  std::string path = "/sys/devices/system/node/node" + std::to_string(numa) + "/cpumap";
  std::FILE *file = numa < 0 ? nullptr : std::fopen(path.c_str(), "re");
  if (!file)
    file = std::fopen("/sys/devices/system/node/node0/cpumap", "re");
  char text[1024] = {};
  if (!file || !std::fgets(text, sizeof text, file)) { // every processor that may be there
    std::memset(set, 0xFF, words * sizeof *set);
  } else {
    // Groups of 32 bits, the highest first, with commas between.
    std::string digits = text;
    unsigned at = 0;
    for (size_t end = digits.find_last_not_of("\n \0") + 1; end > 0 && at / 2 < words; ++at) {
      const size_t comma = digits.rfind(',', end - 1);
      const size_t begin = comma == std::string::npos ? 0 : comma + 1;
      const unsigned long group = std::strtoul(digits.substr(begin, end - begin).c_str(), nullptr, 16);
      set[at / 2] |= group << (at % 2 ? 32 : 0);
      end = comma == std::string::npos ? 0 : comma;
    }
  }
  if (file)
    std::fclose(file);
}

} // namespace

namespace api {

nvmlReturn_t nvmlDeviceGetCount(unsigned int *deviceCount) {
  *deviceCount = device_count();
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *deviceCount) {
  return nvmlDeviceGetCount(deviceCount);
}

nvmlReturn_t nvmlDeviceGetHandleByIndex(unsigned int index, nvmlDevice_t *device) {
  if (index >= device_count())
    return NVML_ERROR_INVALID_ARGUMENT;
  if (store().device(static_cast<int>(index)).faults.lost)
    return NVML_ERROR_GPU_IS_LOST;
  *device = gpu_handle(static_cast<int>(index));
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device) {
  return nvmlDeviceGetHandleByIndex(index, device);
}

nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device) {
  return by_uuid(uuid, device);
}

nvmlReturn_t nvmlDeviceGetHandleByUUIDV(const nvmlUUID_t *uuid, nvmlDevice_t *device) {
  constexpr unsigned kText = 1, kBytes = 2;
  if (uuid->version != version_of<nvmlUUID_t>(1))
    return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  if (uuid->type == kText)
    return by_uuid(std::string(uuid->value.str, strnlen(uuid->value.str, sizeof uuid->value.str)),
                   device);
  if (uuid->type != kBytes)
    return NVML_ERROR_INVALID_ARGUMENT;
  node::Uuid wanted;
  std::memcpy(wanted.bytes, uuid->value.bytes, sizeof wanted.bytes);
  const nvmlReturn_t found = by_uuid(node::uuid_text("GPU-", wanted), device);
  return found == NVML_ERROR_NOT_FOUND ? by_uuid(node::uuid_text("MIG-", wanted), device) : found;
}

nvmlReturn_t nvmlDeviceGetHandleBySerial(const char *serial, nvmlDevice_t *device) {
  for (unsigned i = 0; i < device_count(); ++i)
    if (!std::strcmp(store().device(static_cast<int>(i)).serial, serial)) {
      *device = gpu_handle(static_cast<int>(i));
      return NVML_SUCCESS;
    }
  return NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t nvmlDeviceGetHandleByPciBusId(const char *pciBusId, nvmlDevice_t *device) {
  for (unsigned i = 0; i < device_count(); ++i) {
    const DeviceState d = store().device(static_cast<int>(i));
    if (!means(pciBusId, d))
      continue;
    if (d.faults.lost)
      return NVML_ERROR_GPU_IS_LOST;
    *device = gpu_handle(static_cast<int>(i));
    return NVML_SUCCESS;
  }
  return NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *pciBusId, nvmlDevice_t *device) {
  return nvmlDeviceGetHandleByPciBusId(pciBusId, device);
}

nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t handle, char *name, unsigned int length) {
  const Device device = device_of(handle);
  std::string text = device.model().name;
  if (device.mig)
    for (const node::GpuInstance &gi : device.state.instances)
      if (gi.used && gi.id == device.gpu_instance)
        for (const node::ComputeInstance &ci : gi.compute)
          if (ci.used && ci.id == device.compute_instance) {
            const node::MigProfile &profile = device.model().profiles[gi.profile];
            text += " MIG ";
            if (ci.slices != profile.compute_slices)
              text += std::to_string(ci.slices) + "c.";
            text += profile.name;
          }
  put(text.c_str(), name, length);
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t handle, char *uuid, unsigned int length) {
  const Device device = device_of(handle);
  if (!device.mig) {
    put(node::uuid_text("GPU-", device.state.uuid).c_str(), uuid, length);
    return NVML_SUCCESS;
  }
  const node::Uuid own = node::mig_uuid(device.state.uuid, device.gpu_instance, device.compute_instance);
  put(node::uuid_text("MIG-", own).c_str(), uuid, length);
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t handle, unsigned int *index) {
  const Device device = device_of(handle);
  *index = static_cast<unsigned>(device.index);
  if (!device.mig)
    return NVML_SUCCESS;
  *index = 0; // among the MIG devices of its GPU
  for (const node::GpuInstance &gi : device.state.instances)
    for (const node::ComputeInstance &ci : gi.compute)
      if (gi.used && ci.used &&
          (gi.id < device.gpu_instance ||
           (gi.id == device.gpu_instance && ci.id < device.compute_instance)))
        ++*index;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetSerial(nvmlDevice_t handle, char *serial, unsigned int length) {
  put(gpu_of(handle).state.serial, serial, length);
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMinorNumber(nvmlDevice_t handle, unsigned int *minorNumber) {
  *minorNumber = gpu_of(handle).state.minor;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetModuleId(nvmlDevice_t handle, unsigned int *moduleId) {
  const Device device = gpu_of(handle);
  if (!device.model().sxm)
    return NVML_ERROR_NOT_SUPPORTED;
  *moduleId = device.state.minor + 1;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetBoardId(nvmlDevice_t handle, unsigned int *boardId) {
  const Device device = gpu_of(handle);
  *boardId = device.state.domain << 16 | device.state.bus << 8 | device.state.slot;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMultiGpuBoard(nvmlDevice_t handle, unsigned int *multiGpuBool) {
  gpu_of(handle);
  *multiGpuBool = 0;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceOnSameBoard(nvmlDevice_t device1, nvmlDevice_t device2, int *onSameBoard) {
  *onSameBoard = gpu_of(device1).index == gpu_of(device2).index;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetBoardPartNumber(nvmlDevice_t handle, char *partNumber,
                                          unsigned int length) {
  gpu_of(handle);
  put(kPartNumber, partNumber, length);
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetBrand(nvmlDevice_t handle, nvmlBrandType_t *type) {
  device_of(handle);
  *type = kBrandNvidia;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetArchitecture(nvmlDevice_t handle, nvmlDeviceArchitecture_t *arch) {
  device_of(handle);
  *arch = kAmpere;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetBusType(nvmlDevice_t handle, nvmlBusType_t *type) {
  gpu_of(handle);
  *type = kBusPcie;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t handle, int *major, int *minor) {
  device_of(handle);
  *major = 8;
  *minor = 0;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetNumGpuCores(nvmlDevice_t handle, unsigned int *numCores) {
  *numCores = gpu_of(handle).model().cores;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMemoryBusWidth(nvmlDevice_t handle, unsigned int *busWidth) {
  *busWidth = gpu_of(handle).model().bus_bits;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetIrqNum(nvmlDevice_t handle, unsigned int *irqNum) {
  *irqNum = 128 + gpu_of(handle).state.minor;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t handle, nvmlPciInfo_t *pci) {
  fill(gpu_of(handle), pci);
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetPciInfo_v2(nvmlDevice_t handle, nvmlPciInfo_t *pci) {
  // Version 2 ends after the subsystem and four reserved words.
  nvmlPciInfo_t whole;
  fill(gpu_of(handle), &whole);
  std::memcpy(pci, &whole, offsetof(nvmlPciInfo_t, busId));
  std::memset(reinterpret_cast<char *>(pci) + offsetof(nvmlPciInfo_t, busId), 0, 16);
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetPciInfo(nvmlDevice_t handle, nvmlPciInfo_t *pci) {
  return nvmlDeviceGetPciInfo_v2(handle, pci);
}

nvmlReturn_t nvmlDeviceGetPciInfoExt(nvmlDevice_t handle, nvmlPciInfoExt_t *pci) {
  constexpr unsigned kDisplayController = 3, k3D = 2;
  if (pci->version != version_of<nvmlPciInfoExt_t>(1))
    return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  nvmlPciInfo_t plain;
  fill(gpu_of(handle), &plain);
  pci->domain = plain.domain;
  pci->bus = plain.bus;
  pci->device = plain.device;
  pci->pciDeviceId = plain.pciDeviceId;
  pci->pciSubSystemId = plain.pciSubSystemId;
  pci->baseClass = kDisplayController;
  pci->subClass = k3D;
  std::memcpy(pci->busId, plain.busId, sizeof pci->busId);
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetVbiosVersion(nvmlDevice_t handle, char *version, unsigned int length) {
  gpu_of(handle);
  put(kVbios, version, length);
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetInforomImageVersion(nvmlDevice_t handle, char *version,
                                              unsigned int length) {
  gpu_of(handle);
  put(kInforomImage, version, length);
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetInforomVersion(nvmlDevice_t handle, nvmlInforomObject_t object,
                                         char *version, unsigned int length) {
  constexpr unsigned kOem = 0, kEcc = 1, kPower = 2;
  gpu_of(handle);
  if (object == kPower)
    return NVML_ERROR_NOT_SUPPORTED;
  if (object != kOem && object != kEcc)
    return NVML_ERROR_INVALID_ARGUMENT;
  put(object == kOem ? kInforomOem : kInforomEcc, version, length);
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetInforomConfigurationChecksum(nvmlDevice_t handle, unsigned int *checksum) {
  const Device device = gpu_of(handle);
  *checksum = 0x811C9DC5;
  for (const uint8_t byte : device.state.uuid.bytes)
    *checksum = (*checksum ^ byte) * 0x01000193;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceValidateInforom(nvmlDevice_t handle) {
  gpu_of(handle);
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetGspFirmwareVersion(nvmlDevice_t handle, char *version) {
  gpu_of(handle);
  put(kDriverVersion, version, 64);
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetGspFirmwareMode(nvmlDevice_t handle, unsigned int *isEnabled,
                                          unsigned int *defaultMode) {
  gpu_of(handle);
  *isEnabled = *defaultMode = 1;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetNumaNodeId(nvmlDevice_t handle, unsigned int *) {
  gpu_of(handle);
  return NVML_ERROR_NOT_SUPPORTED; // memory that is a NUMA node of the machine: Grace only
}

nvmlReturn_t nvmlDeviceGetCpuAffinity(nvmlDevice_t handle, unsigned int cpuSetSize,
                                      unsigned long *cpuSet) {
  if (!cpuSetSize)
    return NVML_ERROR_INVALID_ARGUMENT;
  fill_affinity(gpu_of(handle).state.numa, cpuSetSize, cpuSet);
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetCpuAffinityWithinScope(nvmlDevice_t handle, unsigned int cpuSetSize,
                                                 unsigned long *cpuSet, nvmlAffinityScope_t scope) {
  return scope > 1 ? NVML_ERROR_INVALID_ARGUMENT
                   : nvmlDeviceGetCpuAffinity(handle, cpuSetSize, cpuSet);
}

nvmlReturn_t nvmlDeviceGetMemoryAffinity(nvmlDevice_t handle, unsigned int nodeSetSize,
                                         unsigned long *nodeSet, nvmlAffinityScope_t scope) {
  const Device device = gpu_of(handle);
  if (!nodeSetSize || scope > 1)
    return NVML_ERROR_INVALID_ARGUMENT;
  std::memset(nodeSet, 0, nodeSetSize * sizeof *nodeSet);
  const unsigned numa = device.state.numa < 0 ? 0 : static_cast<unsigned>(device.state.numa);
  if (numa / 64 < nodeSetSize)
    nodeSet[numa / 64] |= 1UL << numa % 64;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlSystemGetTopologyGpuSet(unsigned int cpuNumber, unsigned int *count,
                                         nvmlDevice_t *deviceArray) {
  constexpr unsigned kMostCpus = 4096;
  if (cpuNumber >= kMostCpus)
    return NVML_ERROR_INVALID_ARGUMENT;
  std::vector<nvmlDevice_t> near;
  for (int i = 0; i < static_cast<int>(device_count()); ++i) {
    unsigned long set[kMostCpus / 64];
    fill_affinity(store().device(i).numa, kMostCpus / 64, set);
    if (set[cpuNumber / 64] >> cpuNumber % 64 & 1)
      near.push_back(gpu_handle(i));
  }
  const unsigned room = *count;
  *count = static_cast<unsigned>(near.size());
  if (!deviceArray)
    return NVML_SUCCESS;
  if (room < near.size())
    return NVML_ERROR_INSUFFICIENT_SIZE;
  std::copy(near.begin(), near.end(), deviceArray);
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceSetCpuAffinity(nvmlDevice_t handle) {
  gpu_of(handle);
  return NVML_SUCCESS; // the machine's processors are all as near
}

nvmlReturn_t nvmlDeviceClearCpuAffinity(nvmlDevice_t handle) {
  gpu_of(handle);
  return NVML_SUCCESS;
}

} // namespace api
} // namespace va::nvml

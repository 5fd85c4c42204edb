// Devices: what cuDeviceGet* tells of them.
#include <algorithm>
#include <cstring>
#include <strings.h>

#include "arrays.h"
#include "driver_api.h"
#include "objects.h"

namespace va {
namespace {

void copy_text(const std::string &text, char *to, int capacity) {
  if (capacity <= 0)
    fail(CUDA_ERROR_INVALID_VALUE);
  const size_t room = static_cast<size_t>(capacity) - 1;
  const size_t bytes = std::min(text.size(), room);
  std::memcpy(to, text.data(), bytes);
  to[bytes] = 0;
}

} // namespace

namespace api {

CUresult cuDeviceGet(CUdevice *device, int ordinal) {
  *device = device_of(ordinal).ordinal;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int *count) {
  *count = static_cast<int>(started().devices.size());
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char *name, int capacity, CUdevice device) {
  copy_text(device_of(device).model->name, name, capacity);
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice device) {
  *uuid = device_of(device).uuid;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device) { return cuDeviceGetUuid(uuid, device); }

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device) {
  *bytes = device_of(device).model->memory_bytes;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device) {
  const Device &d = device_of(device);
  if (attribute <= 0 || attribute >= kAttributeLimit)
    return CUDA_ERROR_INVALID_VALUE;
  // Attributes newer than the chip's own list are features it does not have.
  *value = d.attribute(attribute);
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetProperties(CUdevprop *properties, CUdevice device) {
  const Device &d = device_of(device);
  for (int i = 0; i < 3; ++i) {
    properties->max_threads_dim[i] = d.attribute(2 + i);
    properties->max_grid_size[i] = d.attribute(5 + i);
  }
  properties->max_threads_per_block = d.attribute(1);
  properties->shared_mem_per_block = d.attribute(8);
  properties->total_constant_memory = d.attribute(9);
  properties->simd_width = d.attribute(10);
  properties->mem_pitch = d.attribute(11);
  properties->regs_per_block = d.attribute(12);
  properties->clock_rate = d.attribute(13);
  properties->texture_align = d.attribute(14);
  return CUDA_SUCCESS;
}

CUresult cuDeviceComputeCapability(int *major, int *minor, CUdevice device) {
  const Device &d = device_of(device);
  *major = d.attribute(75);
  *minor = d.attribute(76);
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetPCIBusId(char *text, int capacity, CUdevice device) {
  copy_text(device_of(device).bus_id, text, capacity);
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetByPCIBusId(CUdevice *device, const char *text) {
  // "domain:bus:slot.function", the domain of four or eight digits, all but bus and slot optional
  for (const auto &d : started().devices) {
    const std::string full = "0000" + d->bus_id, wanted = text;
    for (const std::string &tail : {std::string("."), std::string(".0"), std::string()}) {
      const std::string spelled = tail == "." ? wanted : wanted + tail;
      if (spelled.size() > full.size() || spelled.size() < 5)
        continue;
      if (!strcasecmp(full.c_str() + full.size() - spelled.size(), spelled.c_str())) {
        *device = d->ordinal;
        return CUDA_SUCCESS;
      }
    }
  }
  return CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer) {
  *can = device_of(device).ordinal != device_of(peer).ordinal;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetP2PAttribute(int *value, CUdevice_P2PAttribute attribute, CUdevice from,
                                 CUdevice to) {
  enum { kRank = 1, kAccess = 2, kAtomics = 3, kArrays = 4, kPartialAtomics = 5 };
  if (&device_of(from) == &device_of(to))
    return CUDA_ERROR_INVALID_DEVICE;
  switch (attribute) {
  case kRank:
  case kArrays:
  case kPartialAtomics:
    *value = 0;
    return CUDA_SUCCESS;
  case kAccess:
  case kAtomics:
    *value = 1;
    return CUDA_SUCCESS;
  default:
    return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult cuDeviceGetTexture1DLinearMaxWidth(size_t *width, CUarray_format format,
                                            unsigned int channels, CUdevice device) {
  constexpr int kTexture1DLinearWidth = 69;
  const Device &d = device_of(device);
  const bool counted = channels == 1 || channels == 2 || channels == 4;
  if (!counted || !channel_bytes_of(static_cast<unsigned>(format)))
    return CUDA_ERROR_INVALID_VALUE;
  *width = static_cast<size_t>(d.attribute(kTexture1DLinearWidth));
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetHostAtomicCapabilities(unsigned int *capabilities,
                                           const CUatomicOperation *operations, unsigned int count,
                                           CUdevice device) {
  constexpr int kOperations = 13;
  device_of(device);
  for (unsigned i = 0; i < count; ++i)
    if (operations[i] < 0 || operations[i] >= kOperations)
      return CUDA_ERROR_INVALID_VALUE;
  std::fill_n(capabilities, count, 0u); // PCIe carries none
  return count ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuFlushGPUDirectRDMAWrites(CUflushGPUDirectRDMAWritesTarget target,
                                    CUflushGPUDirectRDMAWritesScope scope) {
  constexpr int kToOwner = 100, kToAllDevices = 200;
  current_context();
  return target || (scope != kToOwner && scope != kToAllDevices) ? CUDA_ERROR_INVALID_VALUE
                                                                 : CUDA_SUCCESS;
}

CUresult cuDeviceGetExecAffinitySupport(int *value, CUexecAffinityType, CUdevice device) {
  device_of(device);
  *value = 0; // only under MPS
  return CUDA_SUCCESS;
}

} // namespace api
} // namespace va

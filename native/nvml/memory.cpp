// Memory: how much is used, and what went wrong in it.
#include <algorithm>

#include "nvml_api.h"
#include "session.h"
#include "telemetry.h"

namespace va::nvml {
namespace {

struct Amounts {
  uint64_t total, reserved, used, free;
};

constexpr uint64_t kMib = 1 << 20;

const node::MigProfile &profile_of(const Device &device) {
  for (const node::GpuInstance &gi : device.state.instances)
    if (gi.used && gi.id == device.gpu_instance)
      return device.model().profiles[gi.profile];
  fail(NVML_ERROR_NOT_FOUND);
}

// What processes use of a GPU, or of one GPU instance; shared by its compute instances.
uint64_t used_of(const Device &device) {
  store().reap();
  const node::File &file = store().file();
  uint64_t used = 0;
  for (uint32_t i = 0; i < file.most_slots.load(std::memory_order_acquire); ++i) {
    const node::DeviceUse &use = file.slots[i].devices[device.index];
    if (!file.slots[i].pid.load() || !use.contexts.load())
      continue;
    if (!device.mig || use.gpu_instance.load() == device.gpu_instance)
      used += node::used_bytes(use);
  }
  return used;
}

Amounts amounts_of(const Device &device) {
  const NodeModel &model = device.model();
  Amounts a{};
  a.total = device.mig ? profile_of(device).memory_bytes : model.memory_bytes;
  a.reserved = device.mig ? 0 : model.reserved_bytes;
  // Without a node that was chosen, each process has its cards to itself: together they may hold
  // more than there is.
  a.used = std::min(used_of(device), a.total - a.reserved);
  a.free = a.total - a.reserved - a.used;
  return a;
}

enum : unsigned { kCorrected = 0, kUncorrected = 1 };
enum : unsigned { kVolatile = 0, kAggregate = 1 };

const node::EccCounts &counts_of(const Device &device, nvmlEccCounterType_t counter) {
  if (counter > kAggregate)
    fail(NVML_ERROR_INVALID_ARGUMENT);
  if (!device.state.ecc)
    fail(NVML_ERROR_NOT_SUPPORTED);
  return counter == kVolatile ? device.state.faults.ecc_volatile
                              : device.state.faults.ecc_aggregate;
}

void require_kind(nvmlMemoryErrorType_t kind) {
  if (kind > kUncorrected)
    fail(NVML_ERROR_INVALID_ARGUMENT);
}

} // namespace

namespace api {

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t handle, nvmlMemory_t *memory) {
  const Amounts a = amounts_of(device_of(handle));
  *memory = nvmlMemory_t{a.total, a.free, a.used + a.reserved};
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t handle, nvmlMemory_v2_t *memory) {
  if (memory->version != version_of<nvmlMemory_v2_t>(2))
    return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  const Amounts a = amounts_of(device_of(handle));
  *memory = nvmlMemory_v2_t{memory->version, a.total, a.reserved, a.free, a.used};
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetBAR1MemoryInfo(nvmlDevice_t handle, nvmlBAR1Memory_t *bar1Memory) {
  const Device device = device_of(handle);
  const NodeModel &model = device.model();
  uint64_t total = model.bar1_bytes;
  if (device.mig) // eighths, by memory slices, less the last MiB but in the whole GPU's instance
    total = total * profile_of(device).memory_slices / node::kMemorySlices - kMib;
  const uint64_t used = device.mig ? 0 : kMib;
  *bar1Memory = nvmlBAR1Memory_t{total, total - used, used};
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetConfComputeMemSizeInfo(nvmlDevice_t handle,
                                                 nvmlConfComputeMemSizeInfo_t *) {
  gpu_of(handle);
  return NVML_ERROR_NOT_SUPPORTED;
}

nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t handle, nvmlMemoryErrorType_t errorType,
                                         nvmlEccCounterType_t counterType,
                                         unsigned long long *eccCounts) {
  require_kind(errorType);
  const Device device = gpu_of(handle);
  const node::EccCounts &c = counts_of(device, counterType);
  *eccCounts = errorType == kCorrected ? c.sram_corrected + c.dram_corrected
                                       : c.sram_uncorrected + c.dram_uncorrected;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetDetailedEccErrors(nvmlDevice_t handle, nvmlMemoryErrorType_t errorType,
                                            nvmlEccCounterType_t counterType,
                                            nvmlEccErrorCounts_t *eccCounts) {
  require_kind(errorType);
  const Device device = gpu_of(handle);
  const node::EccCounts &c = counts_of(device, counterType);
  *eccCounts = {};
  eccCounts->deviceMemory = errorType == kCorrected ? c.dram_corrected : c.dram_uncorrected;
  eccCounts->l2Cache = errorType == kCorrected ? c.sram_corrected : c.sram_uncorrected;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMemoryErrorCounter(nvmlDevice_t handle, nvmlMemoryErrorType_t errorType,
                                             nvmlEccCounterType_t counterType,
                                             nvmlMemoryLocation_t locationType,
                                             unsigned long long *count) {
  constexpr unsigned kL2 = 1, kDram = 2, kSram = 7, kLocations = 8;
  require_kind(errorType);
  const Device device = gpu_of(handle);
  const node::EccCounts &c = counts_of(device, counterType);
  if (locationType >= kLocations)
    return NVML_ERROR_INVALID_ARGUMENT;
  if (locationType == kDram)
    *count = errorType == kCorrected ? c.dram_corrected : c.dram_uncorrected;
  else if (locationType == kSram || locationType == kL2)
    *count = errorType == kCorrected ? c.sram_corrected : c.sram_uncorrected;
  else
    return NVML_ERROR_NOT_SUPPORTED;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetSramEccErrorStatus(nvmlDevice_t handle, nvmlEccSramErrorStatus_t *status) {
  if (status->version != version_of<nvmlEccSramErrorStatus_t>(1))
    return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  const Device device = gpu_of(handle);
  const node::EccCounts now = counts_of(device, kVolatile), ever = counts_of(device, kAggregate);
  const unsigned version = status->version;
  *status = {};
  status->version = version;
  status->volatileCor = now.sram_corrected;
  status->volatileUncSecDed = now.sram_uncorrected;
  status->aggregateCor = ever.sram_corrected;
  status->aggregateUncSecDed = status->aggregateUncBucketL2 = ever.sram_uncorrected;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceClearEccErrorCounts(nvmlDevice_t handle, nvmlEccCounterType_t counterType) {
  const Device device = gpu_of(handle);
  counts_of(device, counterType);
  change(device.index, [&](DeviceState &d) {
    (counterType == kVolatile ? d.faults.ecc_volatile : d.faults.ecc_aggregate) = {};
    return NVML_SUCCESS;
  });
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetEccMode(nvmlDevice_t handle, nvmlEnableState_t *current,
                                  nvmlEnableState_t *pending) {
  const Device device = gpu_of(handle);
  *current = device.state.ecc;
  *pending = device.state.ecc_pending;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetDefaultEccMode(nvmlDevice_t handle, nvmlEnableState_t *defaultMode) {
  gpu_of(handle);
  *defaultMode = 1;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceSetEccMode(nvmlDevice_t handle, nvmlEnableState_t ecc) {
  const Device device = gpu_of(handle);
  if (ecc > 1)
    return NVML_ERROR_INVALID_ARGUMENT;
  change(device.index, [&](DeviceState &d) {
    d.ecc_pending = static_cast<uint8_t>(ecc); // in force after a reset
    return NVML_SUCCESS;
  });
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetRemappedRows(nvmlDevice_t handle, unsigned int *corrRows,
                                       unsigned int *uncRows, unsigned int *isPending,
                                       unsigned int *failureOccurred) {
  const node::Faults faults = gpu_of(handle).state.faults;
  *corrRows = faults.remapped_corrected;
  *uncRows = faults.remapped_uncorrected;
  *isPending = faults.remap_pending;
  *failureOccurred = faults.remap_failed;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetRowRemapperHistogram(nvmlDevice_t handle,
                                               nvmlRowRemapperHistogramValues_t *values) {
  constexpr unsigned kBanks = 640, kRowsOfBank = 8;
  const node::Faults faults = gpu_of(handle).state.faults;
  // Each remapped row is in a bank of its own until a card has more of them than banks.
  const unsigned rows = faults.remapped_corrected + faults.remapped_uncorrected;
  const unsigned touched = std::min(rows, kBanks);
  *values = nvmlRowRemapperHistogramValues_t{};
  values->none = faults.remap_failed ? 1 : 0; // a bank without rows to spare
  values->high = touched > values->none ? touched - values->none : 0;
  values->max = kBanks - values->high - values->none;
  static_assert(kRowsOfBank > 1, "one row taken leaves a bank high");
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetRetiredPages(nvmlDevice_t handle, nvmlPageRetirementCause_t,
                                       unsigned int *, unsigned long long *) {
  gpu_of(handle);
  return NVML_ERROR_NOT_SUPPORTED; // this memory remaps rows instead
}

nvmlReturn_t nvmlDeviceGetRetiredPages_v2(nvmlDevice_t handle, nvmlPageRetirementCause_t,
                                          unsigned int *, unsigned long long *,
                                          unsigned long long *) {
  gpu_of(handle);
  return NVML_ERROR_NOT_SUPPORTED;
}

} // namespace api
} // namespace va::nvml

// Clocks: what they are, what they may be, what slows them down.
#include <algorithm>

#include "nvml_api.h"
#include "readings.h"

namespace va::nvml {
namespace {

enum : unsigned { kGraphics = 0, kSm = 1, kMemory = 2, kVideo = 3 };
enum : unsigned { kCurrent = 0, kAppTarget = 1, kAppDefault = 2, kCustomerBoost = 3 };
enum : unsigned long long {
  kIdleReason = 0x1,
  kApplicationClocks = 0x2,
  kPowerCap = 0x4,
  kHardwareSlowdown = 0x8,
  kSyncBoost = 0x10,
  kThermalSoftware = 0x20,
  kThermalHardware = 0x40,
  kPowerBrake = 0x80,
  kDisplayClocks = 0x100,
};

void require_domain(nvmlClockType_t type) {
  if (type > kVideo)
    fail(NVML_ERROR_INVALID_ARGUMENT);
}

unsigned most_of(const NodeModel &model, nvmlClockType_t type) {
  return type == kMemory ? model.memory_mhz : type == kVideo ? model.video_mhz : model.boost_mhz;
}

unsigned application_of(const Device &device, nvmlClockType_t type, bool default_only) {
  if (type == kVideo)
    fail(NVML_ERROR_NOT_SUPPORTED);
  if (type == kMemory)
    return device.model().memory_mhz;
  const unsigned set = default_only ? 0 : device.state.application_clock_mhz;
  return set ? set : device.model().application_mhz;
}

bool is_step(const NodeModel &model, unsigned mhz) {
  return mhz >= model.idle_mhz && mhz <= model.boost_mhz &&
         (mhz - model.idle_mhz) % model.step_mhz == 0;
}

unsigned long long reasons_of(const Device &device) {
  const node::Reading r = reading_of(device);
  const DeviceState &d = device.state;
  unsigned long long reasons = 0;
  if (!r.clocks_up)
    reasons |= kIdleReason;
  if (d.faults.thermal)
    reasons |= kHardwareSlowdown | kThermalHardware;
  if (d.faults.power_brake)
    reasons |= kHardwareSlowdown | kPowerBrake;
  if (r.capped && !d.faults.thermal && !d.faults.power_brake && !d.clock_high_mhz)
    reasons |= kPowerCap;
  if (r.clocks_up && d.application_clock_mhz && d.application_clock_mhz < device.model().boost_mhz)
    reasons |= kApplicationClocks;
  return reasons;
}

} // namespace

namespace api {

nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t handle, nvmlClockType_t type,
                                    unsigned int *clock) {
  require_domain(type);
  const node::Reading r = reading_of(gpu_of(handle));
  *clock = type == kMemory ? r.memory_mhz : type == kVideo ? r.video_mhz : r.sm_mhz;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMaxClockInfo(nvmlDevice_t handle, nvmlClockType_t type,
                                       unsigned int *clock) {
  require_domain(type);
  *clock = most_of(gpu_of(handle).model(), type);
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMaxCustomerBoostClock(nvmlDevice_t handle, nvmlClockType_t clockType,
                                                unsigned int *clockMHz) {
  return nvmlDeviceGetMaxClockInfo(handle, clockType, clockMHz);
}

nvmlReturn_t nvmlDeviceGetApplicationsClock(nvmlDevice_t handle, nvmlClockType_t clockType,
                                            unsigned int *clockMHz) {
  require_domain(clockType);
  *clockMHz = application_of(gpu_of(handle), clockType, false);
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetDefaultApplicationsClock(nvmlDevice_t handle, nvmlClockType_t clockType,
                                                   unsigned int *clockMHz) {
  require_domain(clockType);
  *clockMHz = application_of(gpu_of(handle), clockType, true);
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetClock(nvmlDevice_t handle, nvmlClockType_t clockType,
                                nvmlClockId_t clockId, unsigned int *clockMHz) {
  switch (clockId) {
  case kCurrent:
    return nvmlDeviceGetClockInfo(handle, clockType, clockMHz);
  case kAppTarget:
    return nvmlDeviceGetApplicationsClock(handle, clockType, clockMHz);
  case kAppDefault:
    return nvmlDeviceGetDefaultApplicationsClock(handle, clockType, clockMHz);
  case kCustomerBoost:
    return nvmlDeviceGetMaxCustomerBoostClock(handle, clockType, clockMHz);
  default:
    return NVML_ERROR_INVALID_ARGUMENT;
  }
}

nvmlReturn_t nvmlDeviceSetApplicationsClocks(nvmlDevice_t handle, unsigned int memClockMHz,
                                             unsigned int graphicsClockMHz) {
  const Device device = gpu_of(handle);
  if (memClockMHz != device.model().memory_mhz || !is_step(device.model(), graphicsClockMHz))
    return NVML_ERROR_INVALID_ARGUMENT;
  change(device.index, [&](DeviceState &d) {
    d.application_clock_mhz = graphicsClockMHz;
    d.clock_high_mhz = graphicsClockMHz; // work runs no faster
    return NVML_SUCCESS;
  });
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceResetApplicationsClocks(nvmlDevice_t handle) {
  change(gpu_of(handle).index, [](DeviceState &d) {
    if (d.clock_high_mhz == d.application_clock_mhz)
      d.clock_high_mhz = 0;
    d.application_clock_mhz = 0;
    return NVML_SUCCESS;
  });
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceSetGpuLockedClocks(nvmlDevice_t handle, unsigned int minGpuClockMHz,
                                          unsigned int maxGpuClockMHz) {
  const Device device = gpu_of(handle);
  const NodeModel &model = device.model();
  if (minGpuClockMHz > maxGpuClockMHz || !maxGpuClockMHz)
    return NVML_ERROR_INVALID_ARGUMENT;
  // Down to the next step; what lies outside the card's range moves to its end.
  const auto snapped = [&](unsigned mhz) {
    const unsigned inside = std::min(std::max(mhz, model.idle_mhz), model.boost_mhz);
    return inside - (inside - model.idle_mhz) % model.step_mhz;
  };
  change(device.index, [&](DeviceState &d) {
    d.clock_low_mhz = snapped(minGpuClockMHz);
    d.clock_high_mhz = snapped(maxGpuClockMHz);
    return NVML_SUCCESS;
  });
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceResetGpuLockedClocks(nvmlDevice_t handle) {
  change(gpu_of(handle).index, [](DeviceState &d) {
    d.clock_low_mhz = d.clock_high_mhz = 0;
    return NVML_SUCCESS;
  });
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceSetMemoryLockedClocks(nvmlDevice_t handle, unsigned int minMemClockMHz,
                                             unsigned int maxMemClockMHz) {
  const Device device = gpu_of(handle);
  const bool only = minMemClockMHz <= device.model().memory_mhz &&
                    maxMemClockMHz >= device.model().memory_mhz;
  return only ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT; // there is one memory clock
}

nvmlReturn_t nvmlDeviceResetMemoryLockedClocks(nvmlDevice_t handle) {
  gpu_of(handle);
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetSupportedMemoryClocks(nvmlDevice_t handle, unsigned int *count,
                                                unsigned int *clocksMHz) {
  const Device device = gpu_of(handle);
  const unsigned room = clocksMHz ? *count : 0;
  *count = 1;
  if (!room)
    return NVML_ERROR_INSUFFICIENT_SIZE;
  clocksMHz[0] = device.model().memory_mhz;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetSupportedGraphicsClocks(nvmlDevice_t handle, unsigned int memoryClockMHz,
                                                  unsigned int *count, unsigned int *clocksMHz) {
  const Device device = gpu_of(handle);
  const NodeModel &model = device.model();
  if (memoryClockMHz != model.memory_mhz)
    return NVML_ERROR_NOT_FOUND;
  const unsigned wanted = (model.boost_mhz - model.idle_mhz) / model.step_mhz + 1;
  const unsigned room = clocksMHz ? *count : 0;
  *count = wanted;
  if (room < wanted)
    return NVML_ERROR_INSUFFICIENT_SIZE;
  for (unsigned i = 0; i < wanted; ++i)
    clocksMHz[i] = model.boost_mhz - i * model.step_mhz;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetCurrentClocksEventReasons(nvmlDevice_t handle,
                                                    unsigned long long *clocksEventReasons) {
  *clocksEventReasons = reasons_of(gpu_of(handle));
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetCurrentClocksThrottleReasons(nvmlDevice_t handle,
                                                       unsigned long long *clocksThrottleReasons) {
  return nvmlDeviceGetCurrentClocksEventReasons(handle, clocksThrottleReasons);
}

nvmlReturn_t nvmlDeviceGetSupportedClocksEventReasons(nvmlDevice_t handle,
                                                      unsigned long long *supported) {
  gpu_of(handle);
  *supported = kIdleReason | kApplicationClocks | kPowerCap | kHardwareSlowdown | kSyncBoost |
               kThermalSoftware | kThermalHardware | kPowerBrake | kDisplayClocks;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetSupportedClocksThrottleReasons(nvmlDevice_t handle,
                                                         unsigned long long *supported) {
  return nvmlDeviceGetSupportedClocksEventReasons(handle, supported);
}

nvmlReturn_t nvmlDeviceGetPerformanceState(nvmlDevice_t handle, nvmlPstates_t *pState) {
  gpu_of(handle);
  *pState = 0; // this card knows no other while its driver is loaded
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetPowerState(nvmlDevice_t handle, nvmlPstates_t *pState) {
  return nvmlDeviceGetPerformanceState(handle, pState);
}

nvmlReturn_t nvmlDeviceGetSupportedPerformanceStates(nvmlDevice_t handle, nvmlPstates_t *pstates,
                                                     unsigned int size) {
  constexpr unsigned kUnknown = 32;
  gpu_of(handle);
  if (size < sizeof *pstates)
    return NVML_ERROR_INSUFFICIENT_SIZE;
  for (unsigned i = 0; i < size / sizeof *pstates; ++i)
    pstates[i] = i ? kUnknown : 0;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMinMaxClockOfPState(nvmlDevice_t handle, nvmlClockType_t type,
                                              nvmlPstates_t pstate, unsigned int *minClockMHz,
                                              unsigned int *maxClockMHz) {
  constexpr unsigned kLastState = 15;
  require_domain(type);
  const Device device = gpu_of(handle);
  if (pstate > kLastState)
    return NVML_ERROR_INVALID_ARGUMENT;
  if (pstate)
    return NVML_ERROR_NOT_SUPPORTED;
  const NodeModel &model = device.model();
  *maxClockMHz = most_of(model, type);
  *minClockMHz = type == kMemory  ? model.memory_mhz // its one clock
                 : type == kVideo ? model.idle_video_mhz
                                  : model.idle_mhz;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetDynamicPstatesInfo(nvmlDevice_t handle,
                                             nvmlGpuDynamicPstatesInfo_t *info) {
  const Device device = gpu_of(handle);
  if (device.state.mig)
    return NVML_ERROR_NOT_SUPPORTED;
  const node::Reading r = reading_of(device);
  *info = nvmlGpuDynamicPstatesInfo_t{};
  const unsigned percents[] = {r.gpu_percent, r.memory_percent, 0, 0}; // then video, and the bus
  for (unsigned i = 0; i < 4; ++i)
    info->utilization[i] = {1, percents[i], 0, 0};
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t handle, nvmlUtilization_t *utilization) {
  const Device device = gpu_of(handle);
  if (device.state.mig)
    return NVML_ERROR_NOT_SUPPORTED;
  const node::Reading r = reading_of(device);
  *utilization = nvmlUtilization_t{r.gpu_percent, r.memory_percent};
  return NVML_SUCCESS;
}

namespace {

constexpr unsigned kSampleUs = 175'000;

nvmlReturn_t idle_engine(nvmlDevice_t handle, unsigned *utilization, unsigned *samplingPeriodUs) {
  if (gpu_of(handle).state.mig)
    return NVML_ERROR_NOT_SUPPORTED;
  *utilization = 0; // no work for it reaches a virtual card
  *samplingPeriodUs = kSampleUs;
  return NVML_SUCCESS;
}

} // namespace

nvmlReturn_t nvmlDeviceGetEncoderUtilization(nvmlDevice_t handle, unsigned int *utilization,
                                             unsigned int *samplingPeriodUs) {
  return idle_engine(handle, utilization, samplingPeriodUs);
}

nvmlReturn_t nvmlDeviceGetDecoderUtilization(nvmlDevice_t handle, unsigned int *utilization,
                                             unsigned int *samplingPeriodUs) {
  return idle_engine(handle, utilization, samplingPeriodUs);
}

nvmlReturn_t nvmlDeviceGetJpgUtilization(nvmlDevice_t handle, unsigned int *utilization,
                                         unsigned int *samplingPeriodUs) {
  return idle_engine(handle, utilization, samplingPeriodUs);
}

nvmlReturn_t nvmlDeviceGetOfaUtilization(nvmlDevice_t handle, unsigned int *utilization,
                                         unsigned int *samplingPeriodUs) {
  return idle_engine(handle, utilization, samplingPeriodUs);
}

nvmlReturn_t nvmlDeviceGetEncoderStats(nvmlDevice_t handle, unsigned int *sessionCount,
                                       unsigned int *averageFps, unsigned int *averageLatency) {
  gpu_of(handle);
  *sessionCount = *averageFps = *averageLatency = 0;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetFBCStats(nvmlDevice_t handle, nvmlFBCStats_t *fbcStats) {
  gpu_of(handle);
  *fbcStats = {};
  return NVML_SUCCESS;
}

} // namespace api
} // namespace va::nvml

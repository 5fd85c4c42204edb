// Power, energy and temperature: readings, limits, thresholds.
#include "readings.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "clock.h"
#include "nvml_api.h"
#include "thermal.h"

namespace va::nvml {

uint64_t unix_us_now() { return node::wall_us(); }

node::Reading reading_of(const Device &device) {
  store().reap();
  const uint64_t now = node::now_ns();
  node::settle_temperature(store(), device.index, now);
  return node::read_device(store(), device.index, now);
}

namespace {

constexpr unsigned kGpuSensor = 0;

// A GPU's threshold of one kind: shutdown, slowdown, memory's and the GPU's own most.
int threshold_of(const NodeModel &model, nvmlTemperatureThresholds_t type) {
  switch (type) {
  case 0:
    return model.shutdown_c;
  case 1:
    return model.slowdown_c;
  case 2:
    return model.memory_operating_c;
  case 3:
    return model.operating_c;
  case 4: // acoustic ones and the GPS target are for cards with fans
  case 5:
  case 6:
  case 7:
    fail(NVML_ERROR_NOT_SUPPORTED);
  default:
    fail(NVML_ERROR_INVALID_ARGUMENT);
  }
}

unsigned degrees(double c) { return static_cast<unsigned>(std::lround(c)); }

} // namespace

namespace api {

nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t handle, unsigned int *power) {
  *power = reading_of(gpu_of(handle)).power_mw;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetTotalEnergyConsumption(nvmlDevice_t handle, unsigned long long *energy) {
  *energy = reading_of(gpu_of(handle)).energy_nj / 1'000'000;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetPowerManagementMode(nvmlDevice_t handle, nvmlEnableState_t *mode) {
  gpu_of(handle);
  *mode = 1;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetPowerManagementLimit(nvmlDevice_t handle, unsigned int *limit) {
  *limit = gpu_of(handle).state.power_limit_mw;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetEnforcedPowerLimit(nvmlDevice_t handle, unsigned int *limit) {
  return nvmlDeviceGetPowerManagementLimit(handle, limit);
}

nvmlReturn_t nvmlDeviceGetPowerManagementDefaultLimit(nvmlDevice_t handle,
                                                      unsigned int *defaultLimit) {
  *defaultLimit = gpu_of(handle).model().limit_mw;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetPowerManagementLimitConstraints(nvmlDevice_t handle,
                                                          unsigned int *minLimit,
                                                          unsigned int *maxLimit) {
  const Device device = gpu_of(handle);
  *minLimit = device.model().least_limit_mw;
  *maxLimit = device.model().most_limit_mw;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceSetPowerManagementLimit(nvmlDevice_t handle, unsigned int limit) {
  const Device device = gpu_of(handle);
  if (limit < device.model().least_limit_mw || limit > device.model().most_limit_mw)
    return NVML_ERROR_INVALID_ARGUMENT;
  change(device.index, [&](DeviceState &d) {
    d.power_limit_mw = limit;
    return NVML_SUCCESS;
  });
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceSetPowerManagementLimit_v2(nvmlDevice_t handle,
                                                  nvmlPowerValue_v2_t *powerValue) {
  constexpr unsigned char kGpuScope = 0;
  if (powerValue->version != version_of<nvmlPowerValue_v2_t>(2))
    return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  if (powerValue->powerScope != kGpuScope)
    return NVML_ERROR_NOT_SUPPORTED;
  return nvmlDeviceSetPowerManagementLimit(handle, powerValue->powerValueMw);
}

nvmlReturn_t nvmlDeviceGetPowerSource(nvmlDevice_t handle, nvmlPowerSource_t *powerSource) {
  gpu_of(handle);
  *powerSource = 0; // mains
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t handle, nvmlTemperatureSensors_t sensorType,
                                      unsigned int *temp) {
  const Device device = gpu_of(handle);
  if (sensorType != kGpuSensor)
    return NVML_ERROR_INVALID_ARGUMENT;
  *temp = degrees(reading_of(device).gpu_c);
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetTemperatureV(nvmlDevice_t handle, nvmlTemperature_t *temperature) {
  if (temperature->version != version_of<nvmlTemperature_t>(1))
    return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  unsigned degrees_c = 0;
  const nvmlReturn_t code =
      nvmlDeviceGetTemperature(handle, temperature->sensorType, &degrees_c);
  temperature->temperature = static_cast<int>(degrees_c);
  return code;
}

nvmlReturn_t nvmlDeviceGetTemperatureThreshold(nvmlDevice_t handle,
                                               nvmlTemperatureThresholds_t thresholdType,
                                               unsigned int *temp) {
  *temp = static_cast<unsigned>(threshold_of(gpu_of(handle).model(), thresholdType));
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetThermalSettings(nvmlDevice_t handle, unsigned int sensorIndex,
                                          nvmlGpuThermalSettings_t *pThermalSettings) {
  constexpr unsigned kAll = 15;
  constexpr int kInternal = 1, kGpuTarget = 1;
  const Device device = gpu_of(handle);
  if (sensorIndex && sensorIndex != kAll)
    return NVML_ERROR_INVALID_ARGUMENT;
  *pThermalSettings = {};
  pThermalSettings->count = 1;
  auto &sensor = pThermalSettings->sensor[0];
  sensor.controller = kInternal;
  sensor.defaultMaxTemp = device.model().shutdown_c;
  sensor.currentTemp = static_cast<int>(degrees(reading_of(device).gpu_c));
  sensor.target = kGpuTarget;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetViolationStatus(nvmlDevice_t handle, nvmlPerfPolicyType_t perfPolicyType,
                                          nvmlViolationTime_t *violTime) {
  constexpr unsigned kPolicies = 12;
  gpu_of(handle);
  if (perfPolicyType >= kPolicies)
    return NVML_ERROR_INVALID_ARGUMENT;
  return *violTime = {}, NVML_ERROR_NOT_SUPPORTED; // how long clocks were held down is not kept
}

} // namespace api
} // namespace va::nvml

// Samples: readings of the last moments, as many as the history of work reaches back.
#include <algorithm>
#include <vector>

#include "clock.h"
#include "nvml_api.h"
#include "readings.h"

namespace va::nvml {
namespace {

enum : unsigned {
  kPower = 0,
  kGpuUtilization = 1,
  kMemoryUtilization = 2,
  kEncoder = 3,
  kDecoder = 4,
  kSamplingTypes = 11,
};
constexpr uint64_t kPeriodNs = 7 * node::kBucketNs; // what utilisation is told over
constexpr int kSamples = node::kBuckets / 7 - 1;

unsigned value_of(const node::Reading &r, nvmlSamplingType_t type) {
  switch (type) {
  case kPower:
    return r.power_mw;
  case kGpuUtilization:
    return r.gpu_percent;
  case kMemoryUtilization:
    return r.memory_percent;
  default:
    return 0; // engines that get no work
  }
}

} // namespace

namespace api {

nvmlReturn_t nvmlDeviceGetSamples(nvmlDevice_t handle, nvmlSamplingType_t type,
                                  unsigned long long lastSeenTimeStamp,
                                  nvmlValueType_t *sampleValType, unsigned int *sampleCount,
                                  nvmlSample_t *samples) {
  constexpr unsigned kUnsignedInt = 1;
  const Device device = gpu_of(handle);
  if (type >= kSamplingTypes)
    return NVML_ERROR_INVALID_ARGUMENT;
  if (type > kDecoder || (device.state.mig && type != kPower))
    return NVML_ERROR_NOT_SUPPORTED;
  reading_of(device); // settles who is gone
  const uint64_t now = node::now_ns(), now_us = node::wall_us();
  std::vector<nvmlSample_t> found;
  for (int ago = kSamples; ago-- > 0;) {
    const uint64_t at = now / kPeriodNs * kPeriodNs - static_cast<uint64_t>(ago) * kPeriodNs;
    const unsigned long long stamp = now_us - (now - at) / 1000;
    if (stamp <= lastSeenTimeStamp)
      continue;
    nvmlSample_t sample{};
    sample.timeStamp = stamp;
    sample.sampleValue.uiVal = value_of(node::read_device(store(), device.index, at), type);
    found.push_back(sample);
  }
  if (sampleValType)
    *sampleValType = kUnsignedInt;
  if (found.empty())
    return NVML_ERROR_NOT_FOUND;
  if (!samples) { // asked for how many there may be
    *sampleCount = kSamples;
    return NVML_SUCCESS;
  }
  const size_t count = std::min<size_t>(*sampleCount, found.size());
  std::copy(found.end() - static_cast<std::ptrdiff_t>(count), found.end(), samples);
  *sampleCount = static_cast<unsigned>(count);
  return NVML_SUCCESS;
}

} // namespace api
} // namespace va::nvml
